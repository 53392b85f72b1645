#!/usr/bin/env bash
# Recorded and recomputed log-probabilities equal to the bit, and weights that depend on neither threads nor the
# instruction set: short runs of GRPO and PPO with both models, every sampled token scored again.
#
#   scripts/verify_bits.sh [iterations of the tiny model] [iterations of SmolLM2]      (default: 20 20)
#
# Each run is repeated with 1 and 2 threads, and on a machine with AVX-512 with AVX2 as well; all repetitions of a run
# must report a mismatch of exactly 0 and end at weights with one hash. The portable path, which is slow where the
# compiler's target has no fused multiply-add, takes one short run. Ends with status 1 where anything differs.
#
# RAGEN names the binary (default target/release/ragen), MODEL the real model (default
# models/smollm2-135m-instruct-q4_1.gguf; without it only the tiny model is run).
set -euo pipefail
cd "$(dirname "$0")/.."

ragen=${RAGEN:-target/release/ragen}
model=${MODEL:-models/smollm2-135m-instruct-q4_1.gguf}
tiny_iterations=${1:-20}
real_iterations=${2:-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

[ -x "$ragen" ] || { echo "no binary at $ragen: cargo build --release -p ragen" >&2; exit 2; }

sets=(avx2)
if grep -qw avx512bw /proc/cpuinfo 2>/dev/null; then sets=(avx512 avx2); fi
echo "instruction sets: ${sets[*]}, portable"

common=(
  trainer.val_before_train=false trainer.test_freq=-1 trainer.save_freq=-1 trainer.log_rollouts=-1
  trainer.verify=full "trainer.logger=[]" es_manager.val.env_groups=1 es_manager.val.env_configs.n_groups=null
  actor_rollout_ref.rollout.rollout_filter_include_zero=true actor_rollout_ref.rollout.rollout_filter_value=1.0
  actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0
)
tiny=(
  sokoban warm_start.max_steps=20 warm_start.eval_every=1000 warm_start.batch_size=16 es_manager.train.env_groups=6
  es_manager.train.group_size=4 actor_rollout_ref.actor.ppo_mini_batch_size=8
  actor_rollout_ref.rollout.response_length=32 critic.ppo_mini_batch_size=8
)
real=(
  bandit_smollm2 "model_path=$model" warm_start.enabled=false es_manager.train.env_groups=2
  es_manager.train.group_size=2 actor_rollout_ref.actor.ppo_mini_batch_size=4
  actor_rollout_ref.rollout.response_length=24 critic.ppo_mini_batch_size=4
)

# once NAME ISA THREADS ARGUMENTS...: runs, prints mismatch and hash, leaves the hash in $hash.
once() {
  local name=$1 isa=$2 threads=$3
  shift 3
  local run="$folder/$name-$isa-$threads"
  if ! RAGEN_ISA=$isa "$ragen" train "$@" --threads "$threads" --run-dir "$run" >"$run.log" 2>&1; then
    echo "$name $isa $threads: failed" >&2
    tail -n 5 "$run.log" >&2
    failed=1
    hash=none
    return
  fi
  local mismatch
  read -r hash mismatch < <(python3 - "$run/summary.json" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1]))
print(summary["weights_sha256"], repr(float(summary["mismatch_max"])))
PY
  )
  printf '%-22s %-9s %s threads  mismatch_max %s  %s\n' "$name" "$isa" "$threads" "$mismatch" "${hash:0:16}"
  if [ "$mismatch" != 0.0 ]; then
    echo "$name $isa $threads: the mismatch is not 0" >&2
    failed=1
  fi
}

# same NAME ARGUMENTS...: all instruction sets and numbers of threads end at one hash.
same() {
  local name=$1 first=""
  shift
  for isa in "${sets[@]}"; do
    for threads in 1 2; do
      once "$name" "$isa" "$threads" "$@" "${common[@]}"
      [ -n "$first" ] || first=$hash
      if [ "$hash" != "$first" ]; then
        echo "$name: weights differ" >&2
        failed=1
      fi
    done
  done
}

same tiny-grpo "${tiny[@]}" "trainer.total_training_steps=$tiny_iterations"
same tiny-ppo "${tiny[@]}" "trainer.total_training_steps=$tiny_iterations" algorithm.adv_estimator=gae
short=(
  "${tiny[@]}" warm_start.max_steps=1 warm_start.batch_size=2 es_manager.train.env_groups=1
  trainer.total_training_steps=1 actor_rollout_ref.rollout.response_length=8 agent_proxy.max_turn=2 "${common[@]}"
)
once tiny-short "${sets[0]}" 2 "${short[@]}"
expected=$hash
once tiny-short portable 2 "${short[@]}"
if [ "$hash" != "$expected" ]; then
  echo "tiny-short: the portable path's weights differ" >&2
  failed=1
fi
if [ -s "$model" ]; then
  same smollm2-grpo "${real[@]}" "trainer.total_training_steps=$real_iterations"
  same smollm2-ppo "${real[@]}" "trainer.total_training_steps=$real_iterations" algorithm.adv_estimator=gae
else
  echo "no model at $model: scripts/fetch_smollm2.sh fetches it" >&2
fi
exit "$failed"
