#!/usr/bin/env bash
# Set everything up in .venv, train an agent and evaluate it against the bots.
#   bash training/quickstart.sh [CONFIG]      CONFIG defaults to configs/sb3_maskable/duplas.yaml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
config=${1:-configs/sb3_maskable/duplas.yaml}

if [ ! -x .venv/bin/pip ]; then "${PYTHON:-python3}" -m venv --clear .venv; fi
.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[train]"

run=runs/quickstart-$(date +%Y%m%d-%H%M%S)
.venv/bin/python -m training.sb3_maskable "$config" run="$run"
.venv/bin/python -m training.evaluate "$run"
echo "The run is in $run: its config, metrics, checkpoints and plots."
