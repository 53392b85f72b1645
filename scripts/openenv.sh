#!/usr/bin/env bash
# OpenEnv in both directions against the package itself: a server made with its template and played by us, and a built-in
# environment served by us and played by its generic client. Needs a Python that has the package `openenv` (see
# scripts/python_packages.sh); says so where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! python=$(scripts/python_packages.sh); then
  echo "notice: OpenEnv is not tried out against the package itself"
  exit 0
fi
case $python in /*) ;; *) python=$PWD/$python ;; esac

cargo build --quiet -p ragen
ragen=$PWD/${CARGO_TARGET_DIR:-target}/debug/ragen
case ${CARGO_TARGET_DIR:-} in /*) ragen=$CARGO_TARGET_DIR/debug/ragen ;; esac
folder=$(mktemp -d)
started=()
finish() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT

free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
wait_for() {
  for _ in $(seq 300); do
    if "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=1)' "$1" 2>/dev/null; then
      return 0
    fi
    sleep 0.2
  done
  echo "nothing answers at $1" >&2
  return 1
}

# 1. The package's own template, as it is made.
port=$(free_port)
(cd "$folder" && "$python" -m openenv.cli init echo_test >/dev/null)
(cd "$folder/echo_test" && exec "$python" -c '
import sys
sys.argv = ["app", "--host", "127.0.0.1", "--port", sys.argv[1]]
from server.app import main
main()' "$port") >"$folder/server.log" 2>&1 &
started+=($!)
wait_for "http://127.0.0.1:$port/health"
printf '%s\n' 'hello' 'a longer message' 'quit' >"$folder/answers"
echo_settings="custom_envs.Echo={env_type: openenv, max_actions_per_traj: 5, max_tokens: 100, env_config: {url: \"http://127.0.0.1:$port\"}}"
played=$("$ragen" play Echo "$echo_settings" <"$folder/answers")
grep -q 'environment ready!' <<<"$played"
grep -q 'echoed_message: a longer message' <<<"$played"
grep -q 'message_length: 16' <<<"$played"
# Sixteen episodes on the one session that the template's server takes.
"$ragen" train "$echo_settings" "es_manager.train.env_configs.tags=[Echo]" "es_manager.val.env_configs.tags=[Echo]" \
  es_manager.train.env_groups=4 es_manager.train.group_size=4 es_manager.val.env_groups=4 warm_start.enabled=false \
  trainer.total_training_steps=1 trainer.log_rollouts=1 --run-dir "$folder/run" >/dev/null
"$python" - "$folder/run/rollouts/" <<'PYTHON'
import json, pathlib, sys

episodes = [json.loads(line)["episode"] for path in pathlib.Path(sys.argv[1]).glob("train_*") for line in path.open()]
kinds = sorted({episode["outcome"]["kind"] for episode in episodes})
assert len(episodes) == 16 and "env_error" not in kinds, (len(episodes), kinds)
print("client against the template's server: %d episodes, outcomes %s" % (len(episodes), ", ".join(kinds)))
PYTHON

# 2. Ours, played by the package's generic client.
port=$(free_port)
"$ragen" envs serve SimpleSokoban --port "$port" >/dev/null &
started+=($!)
wait_for "http://127.0.0.1:$port/health"
"$python" - "http://127.0.0.1:$port" "$ragen" <<'PYTHON'
import subprocess, sys
from openenv.core import GenericEnvClient

url, ragen = sys.argv[1:]
oracle = subprocess.run([ragen, "play", "SimpleSokoban", "--seed", "123"], input="Up\n", text=True, capture_output=True)
assert "#O####\n#XP###" in oracle.stdout, oracle.stdout
with GenericEnvClient(base_url=url).sync() as env, GenericEnvClient(base_url=url).sync() as other:
    first = env.reset(seed=123, split="val")
    assert first.observation["text"] == "######\n######\n#O####\n#XP###\n#__###\n######", first
    assert first.observation["available_actions"] == ["Up", "Down", "Left", "Right"] and not first.done
    other.reset(seed=124)
    for action in ["Down", "Left", "up"]:
        result = env.step({"action": action})
    assert result.done and result.observation["success"] and abs(result.reward - 10.9) < 1e-9, result
    assert env.state()["step_count"] == 3 and other.state()["step_count"] == 0
    try:
        other.step({"action": "Fly"})
    except Exception as error:
        assert "VALIDATION_ERROR" in str(error) or "expected `action`" in str(error), error
    else:
        raise AssertionError("an unknown action was taken")
    assert env.reset(seed=123, split="val").observation["text"] == first.observation["text"]
print("generic client against our server: SimpleSokoban solved")
PYTHON
echo "openenv: ok"
