#!/bin/sh
# Drives the scripted Lean server of the tests with the public client as well: installs kimina-client into a virtual
# environment of its own (.venv-kimina) and runs the test that compares the two.
set -eu
cd "$(dirname "$0")/.."
[ -x .venv-kimina/bin/python ] || python3 -m venv .venv-kimina
# The package does not name pygments among what it needs.
.venv-kimina/bin/python -m pip install --quiet kimina-client==0.2.1 pygments
RAGEN_KIMINA_PYTHON="$PWD/.venv-kimina/bin/python" \
    cargo test -p ragen-envs --test lean the_public_client_drives_the_same_server -- --nocapture
