#!/usr/bin/env bash
# Test the core and its environments with other releases of what they need, in an environment of its own, .venv-NAME.
#   bash tests/versions.sh NAME [ARGUMENT…]     tests/versions/NAME.txt has the releases; further arguments go to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-}
if [ -z "$name" ] || [ ! -f "tests/versions/$name.txt" ]; then
    echo "usage: bash tests/versions.sh NAME, where tests/versions/NAME.txt is one of:" tests/versions/*.txt >&2
    exit 2
fi
shift

environment=.venv-$name
if [ ! -x "$environment/bin/pip" ]; then "${PYTHON:-python3}" -m venv --clear "$environment"; fi
"$environment/bin/python" -m pip install --quiet --upgrade --requirement "tests/versions/$name.txt" --editable .
"$environment/bin/python" -m pip list | grep -iE '^(numpy|numba|gymnasium|pettingzoo) '

exec "$environment/bin/python" -m pytest tests/test_{envs_*,batch*,game,match,kernel,observation*,check_envs,golden_*}.py -k "not SB3" "$@"
