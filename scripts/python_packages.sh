#!/usr/bin/env bash
# Prints the path of a Python interpreter that has the packages openenv and gymnasium, which the end-to-end scripts play
# against: the one named in RAGEN_PYTHON, python3 if it has them, else one in a virtual environment below target/, which is
# made and filled when it can be. Fails, with the reason on standard error, where none is to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

has() { "$1" -c 'import gymnasium, openenv.core' >/dev/null 2>&1; }
for python in ${RAGEN_PYTHON:+"$RAGEN_PYTHON"} python3 target/python-packages/bin/python; do
  if command -v "$python" >/dev/null && has "$python"; then
    command -v "$python"
    exit 0
  fi
done
if ! command -v python3 >/dev/null; then
  echo "notice: python3 was not found" >&2
  exit 1
fi
folder=target/python-packages
if ! python3 -m venv "$folder" >/dev/null 2>&1 ||
  ! "$folder/bin/python" -m pip install --quiet --retries 1 --timeout 20 'openenv>=0.10,<0.11' 'gymnasium>=1.0' >&2; then
  rm -rf "$folder"
  echo "notice: the Python packages openenv and gymnasium could not be installed" >&2
  exit 1
fi
echo "$folder/bin/python"
