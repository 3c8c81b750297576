#!/bin/sh
# Prints the path of a Python that can make the project's environment; else says in one line what to install.
# $PYTHON, when set, is the only candidate.
set -u

# Each candidate is started, not only looked up: version managers put commands on the path that refuse to run.
suits='import sys
if sys.version_info < (3, 11): sys.exit(3)
try: import ensurepip, venv
except ImportError: sys.exit(4)
print(sys.executable)'

without_venv=
for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    found=$("$candidate" -c "$suits" 2>/dev/null)
    case $? in
        0) [ -n "$found" ] && printf '%s\n' "$found" && exit 0 ;;
        4) without_venv=${without_venv:-$candidate} ;;
    esac
done

if [ -n "$without_venv" ]; then
    echo "$without_venv has no venv module: install it (Debian, Ubuntu: apt install python3-venv) and try again" >&2
else
    echo "no Python 3.11 or newer found (tried: ${PYTHON:-python3.13, python3.12, python3.11, python3, python}):" \
        "install one, or name it: make PYTHON=/path/to/python3" >&2
fi
exit 1
