#!/usr/bin/env bash
# Test the core and its environments with other releases of what they need, in an environment of its own, .venv-NAME.
#   bash tests/versions.sh NAME [ARGUMENT…]     tests/versions/NAME.txt has the releases; further arguments go to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/environment.sh
environment tests/versions tests/versions.sh "${1:-}"
"$python" -m pip list | grep -iE '^(numpy|numba|gymnasium|pettingzoo) '

exec "$python" -m pytest tests/test_{envs_*,batch*,game,match,kernel,observation*,check_envs,golden_*}.py -k "not SB3" "${@:2}"
