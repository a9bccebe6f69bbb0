#!/usr/bin/env bash
# Test a framework's recipe in an environment of its own, .venv-NAME, with the versions of docs/recipes/NAME.txt.
#   bash tests/recipes.sh NAME [ARGUMENT…]      further arguments go to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/environment.sh
environment docs/recipes tests/recipes.sh "${1:-}"

exec "$python" -m pytest -m long "tests/test_recipes_$1.py" "${@:2}"
