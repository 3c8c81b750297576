#!/bin/sh
# Makes the environment that `make` works in, or leaves it alone when it is up to date.
#
#   scripts/environment.sh FOLDER [EXTRA]      from the project's top folder; EXTRA is dev or docs
#
# A stamp in FOLDER says what was installed, and for what: another pyproject.toml means installing again,
# and a moved checkout or a Python that is gone means starting over, since both are written into the environment.
set -eu

folder=$1
extra=${2:-}
top=$PWD
stamp=$folder/installed${extra:+-$extra}
wanted="$top $(cksum < pyproject.toml)"

belongs_here() {
    [ "$(cat "$folder/made-for" 2>/dev/null)" = "$top" ] && "$folder/bin/python" -c '' 2>/dev/null
}

is_current() {
    # Without an extra, any stamp will do: each extra brings the project itself along.
    for made in "$folder"/installed${extra:+-$extra}*; do
        [ "$(cat "$made" 2>/dev/null)" = "$wanted" ] && return 0
    done
    return 1
}

make_anew() {
    python=$(sh scripts/find-python.sh)
    # VENV may name any folder: only what is an environment is ours to replace.
    if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then
        echo "$folder is there and is not a Python environment: remove it, or name another one: make VENV=…" >&2
        exit 1
    fi
    rm -rf "$folder"
    echo "Making the environment $folder with $("$python" --version)." >&2
    "$python" -m venv "$folder"
    echo "$top" > "$folder/made-for"
}

belongs_here || make_anew
is_current && exit 0
echo "Installing the project${extra:+ with its $extra tools} into $folder; this takes a minute, once." >&2
"$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable ".${extra:+[$extra]}"
echo "$wanted" > "$stamp"
