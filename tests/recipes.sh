#!/usr/bin/env bash
# Test a framework's recipe in an environment of its own, .venv-NAME, with the versions of docs/recipes/NAME.txt.
#   bash tests/recipes.sh NAME [ARGUMENT…]      further arguments go to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-}
if [ -z "$name" ] || [ ! -f "docs/recipes/$name.txt" ]; then
    echo "usage: bash tests/recipes.sh NAME, where docs/recipes/NAME.txt is one of:" docs/recipes/*.txt >&2
    exit 2
fi
shift

environment=.venv-$name
if [ ! -x "$environment/bin/pip" ]; then "${PYTHON:-python3}" -m venv --clear "$environment"; fi
"$environment/bin/python" -m pip install --quiet --requirement "docs/recipes/$name.txt" --editable .

exec "$environment/bin/python" -m pytest -m long "tests/test_recipes_$name.py" "$@"
