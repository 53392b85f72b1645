#!/usr/bin/env python3
"""Our environments against gym-sokoban and Gymnasium's FrozenLake: steps a second on one core, in alternation.

Every round runs each of them once, one after the other, on the same core, with uniformly random actions and a new
instance at the end of an episode. Steps and resets are timed apart. gym-sokoban is measured with the smallest picture
it offers as observation (a pixel a cell) and, with its drawing function replaced, without any observation; Gymnasium's
FrozenLake with the wrappers that `gymnasium.make` puts around it and without them. Ours include the text observation
of every step.

Prints one JSON line per measurement, then one with the median ratios.

    python3 -m venv /tmp/envspeed
    /tmp/envspeed/bin/pip install gymnasium gym-sokoban 'numpy<2'
    cargo build --release -p ragen
    /tmp/envspeed/bin/python bench/compare_env_speed.py
"""

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Theirs, and the tag of ours that is set against it.
THEIRS = {
    "gym-sokoban": "SimpleSokoban",
    "gym-sokoban without observations": "SimpleSokoban",
    "gymnasium FrozenLake-v1": "FrozenLake",
    "gymnasium FrozenLake-v1 unwrapped": "FrozenLake",
}
MAX_ACTIONS = 10  # an episode, as in ours


class Frozen:
    def __init__(self, unwrapped):
        import gymnasium

        # As many cells and as slippery as ours.
        env = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
        self.env = env.unwrapped if unwrapped else env
        self.sample = self.env.action_space.sample

    def reset(self):
        self.env.reset()

    def step(self):
        _, _, terminated, truncated, _ = self.env.step(self.sample())
        return terminated or truncated


class Sokoban:
    def __init__(self, draws):
        with contextlib.redirect_stderr(io.StringIO()):
            from gym_sokoban.envs.sokoban_env import SokobanEnv

            self.env = SokobanEnv(dim_room=(6, 6), max_steps=100, num_boxes=1)
        if not draws:
            self.env.render = lambda *_, **__: None
        self.sample = self.env.action_space.sample

    def reset(self):
        with contextlib.redirect_stdout(io.StringIO()):  # it prints when a level fails and is made again
            self.env.reset(render_mode="tiny_rgb_array")

    def step(self):
        return self.env.step(self.sample(), observation_mode="tiny_rgb_array")[2]


def worker(name, seconds):
    """Plays for that long and prints what was counted."""
    import warnings

    warnings.filterwarnings("ignore")
    env = Sokoban("without" not in name) if "sokoban" in name else Frozen(name.endswith("unwrapped"))
    steps = episodes = 0
    stepping = resetting = 0.0
    while stepping + resetting < seconds:
        start = time.perf_counter()
        env.reset()
        between = time.perf_counter()
        for _ in range(MAX_ACTIONS):
            steps += 1
            if env.step():
                break
        end = time.perf_counter()
        episodes += 1
        resetting += between - start
        stepping += end - between
    print(json.dumps({
        "name": name,
        "steps_per_second": steps / stepping,
        "resets_per_second": episodes / resetting,
        "steps_per_second_with_resets": steps / (stepping + resetting),
    }))


def run(command, core):
    """The JSON that a command prints, run on one core."""
    pin = (lambda: os.sched_setaffinity(0, {core})) if hasattr(os, "sched_setaffinity") else None
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragen", default=os.path.join(HERE, "..", "target", "release", "ragen"), help="our binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--worker", choices=THEIRS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.seconds)
        return
    if not os.path.exists(options.ragen):
        print(f"{options.ragen} does not exist: cargo build --release -p ragen", file=sys.stderr)
        sys.exit(2)
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds have to be positive")
    ratios = {}
    for round_number in range(options.rounds):
        for name, tag in THEIRS.items():
            seconds = str(options.seconds)
            theirs = run([sys.executable, __file__, "--worker", name, "--seconds", seconds], options.core)
            ours = run([options.ragen, "bench", "envs", tag, "--seconds", seconds, "--json"], options.core)[0]
            print(json.dumps({"round": round_number, "ours": ours, "theirs": theirs}), flush=True)
            for key in ("steps_per_second", "steps_per_second_with_resets"):
                ratios.setdefault((name, key), []).append(ours[key] / theirs[key])
    summary = {}
    for (name, key), values in ratios.items():
        summary.setdefault(name, {})[key] = {
            "median_ratio": round(statistics.median(values), 1),
            "least": round(min(values), 1),
            "most": round(max(values), 1),
        }
    print(json.dumps({"ours_over_theirs": summary}))


if __name__ == "__main__":
    main()
