#!/bin/sh
# Makes the environment in which the plugin is tried in the real Hermes Agent, or leaves it alone when it is there.
#
#   scripts/hermes_environment.sh FOLDER [VERSION]      from the project's top folder; VERSION is 0.19.* when left out
#
# An environment of its own: Hermes brings many packages along, in versions of its choice.
set -eu

folder=$1
version=${2:-0.19.*}

sh scripts/environment.sh "$folder" dev
[ "$(cat "$folder/hermes-agent" 2>/dev/null)" = "$version" ] && exit 0
echo "Installing hermes-agent $version into $folder; this takes a minute, once." >&2
"$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check "hermes-agent==$version"
echo "$version" > "$folder/hermes-agent"
