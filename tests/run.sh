#!/usr/bin/env bash
# Set everything up in .venv, then the everyday checks: style, types, tests.
# Arguments go to pytest: `bash tests/run.sh -m long` runs the long tests instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ ! -x .venv/bin/pip ]; then "${PYTHON:-python3}" -m venv --clear .venv; fi
.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,train,openspiel]"

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
exec .venv/bin/python -m pytest "$@"
