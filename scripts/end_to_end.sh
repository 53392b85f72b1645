#!/usr/bin/env bash
# A few iterations of the main job with the binary that the tests built: train, evaluate, export, score; the same seed
# twice gives the same weights. Takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

# As the README starts it: without naming a binary.
cargo run --quiet -- --version
ragen=${CARGO_TARGET_DIR:-target}/debug/ragen
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

small=(es_manager.train.env_groups=8 es_manager.val.env_groups=32 warm_start.max_steps=40 warm_start.batch_size=32
  warm_start.target_success=1.0 trainer.total_training_steps=2)
hash_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1/summary.json"; }

"$ragen" train "${small[@]}" --run-dir "$folder/a" --threads 2
"$ragen" train "${small[@]}" --run-dir "$folder/b" --threads 1 >/dev/null
if [ "$(hash_of "$folder/a")" != "$(hash_of "$folder/b")" ]; then
  echo "the same seed gave two different models" >&2
  exit 1
fi
"$ragen" eval "$folder/a" --json >/dev/null
"$ragen" export "$folder/a" "$folder/export"
"$ragen" score "$folder/export" --ids 1,20,21,22 --json
"$ragen" train bandit "${small[@]}" --run-dir "$folder/bandit" >/dev/null
"$ragen" train frozen_lake "${small[@]}" --run-dir "$folder/lake" >/dev/null
echo "end to end: ok"
