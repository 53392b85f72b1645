#!/usr/bin/env python3
"""Ours against what is used today, in alternation on one machine: medians, ranges, ratios.

Each comparison runs our binary and the other side one after the other, never at the same time, at
least five times each, so that a noisy neighbour hits both alike; the ratio is the median of the
pairs' ratios, printed with their range. What is loaded or warmed up first is left out of the time.

    rl-step     one update of 8 groups x 8 members, prompts of 170 tokens, responses of 60, against
                torch_rl_step.py (padded, prompts once a member, only responses projected)
    decode      batch 64, prompts of 170, 60 new tokens, against hf_generate.py and, where
                --gguf is given, the best of llama_cpp_decode.py over those files and batch sizes
    iteration   a whole GRPO iteration of 8 x 8 x 60 tokens on Bandit against trl_grpo.py
    binaries    one iteration of the tiny default run, two binaries of ours: --ragen and --other

    python bench/compare.py rl-step --model model.gguf --hf smollm2_hf
    python bench/compare.py decode --model model.gguf --hf smollm2_hf --gguf model.gguf model-f32.gguf
    python bench/compare.py binaries --model warm_tiny_folder --other old/ragen
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

from compare_train_step import CannotCompare, find_ragen, run

HERE = pathlib.Path(__file__).resolve().parent

# What TRL is given in trl_grpo.py, in our words: 8 groups x 8 members, exactly 60 tokens, one update.
ITERATION = [
    "bandit_smollm2", "es_manager.train.env_groups=8", "es_manager.train.group_size=8",
    "actor_rollout_ref.rollout.response_length=60", "actor_rollout_ref.actor.ppo_mini_batch_size=64",
]


def values(lines, key, skip=0):
    """The values of a key in the lines that have it, without the first `skip`."""
    found = [line[key] for line in lines if key in line][skip:]
    if not found:
        raise CannotCompare(f"no line with {key}")
    return found


class Side:
    """One side of a comparison: a name, a command and how its speed is read off its output."""

    def __init__(self, name, command, speed):
        self.name, self.command, self.speed = name, command, speed
        self.speeds, self.peaks = [], []

    def measure(self, threads):
        lines, peak = run(self.command, threads)
        self.speeds.append(self.speed(lines))
        self.peaks.append(peak)
        return {"speed": self.speeds[-1], "peak_rss_bytes": peak}

    def summary(self):
        return {
            "median": statistics.median(self.speeds), "range": [min(self.speeds), max(self.speeds)],
            "peak_rss_bytes_median": statistics.median(self.peaks),
        }


def steps_a_second(lines, key, skip=1):
    return 1.0 / statistics.median(values(lines, key, skip))


def sides(options):
    """Our side first, then those it is compared with."""
    ragen = find_ragen(options.ragen)
    model = ["--model", options.model]
    python = lambda script, *rest: [options.python, str(HERE / script), *rest]
    hf = ["--model", options.hf or options.model, "--threads", str(options.threads)]
    if options.what == "rl-step":
        speed = lambda lines: steps_a_second(lines, "update_s")
        ours = [ragen, "bench", "rl-step", *model, "--steps", str(options.steps), "--json"]
        theirs = python("torch_rl_step.py", *hf, "--steps", str(options.steps))
        return [Side("ragen", ours, speed), Side("torch", theirs, speed)]
    if options.what == "decode":
        # Ours and llama.cpp: decoding alone. transformers' figure holds the prompts, and ours beside it does too.
        command = [ragen, "bench", "decode", *model, "--batch", "64", "--json"]
        one = lambda key: lambda lines: values(flatten(lines), key)[0]
        found = [Side("ragen with prompts", command, one("new_tokens_per_s_with_prefill"))]
        found.append(Side("transformers", python("hf_generate.py", *hf), one("new_tokens_per_s")))
        if options.gguf:
            found.append(Side("ragen decoding", command, one("decode_tokens_per_s")))
            theirs = python("llama_cpp_decode.py", *options.gguf, "--threads", str(options.threads))
            best = lambda lines: max(values(lines, "decode_tokens_per_s"))
            found.append(Side("llama.cpp, best", theirs, best))
        return found
    threads = ["--threads", str(options.threads)]
    if options.what == "iteration":
        ours = [ragen, *threads, "bench", "iteration", *ITERATION, f"model_path={options.model}"]
        ours += ["--steps", str(options.steps), "--json"]
        theirs = python("trl_grpo.py", *hf, "--steps", str(options.steps))
        return [Side("ragen", ours, lambda lines: steps_a_second(lines, "step_s", 0)),
                Side("TRL", theirs, lambda lines: steps_a_second(lines, "seconds", 0))]
    rest = [*threads, "bench", "iteration", "sokoban", f"model_path={options.model}"]
    rest += ["--steps", str(options.steps), "--json"]
    speed = lambda lines: steps_a_second(lines, "step_s", 0)
    return [Side("ragen", [ragen, *rest], speed), Side("other", [options.other, *rest], speed)]


def flatten(lines):
    """JSON lines, lists among them taken apart."""
    return [item for line in lines for item in (line if isinstance(line, list) else [line])]


def compare(options):
    # In pairs: every second side is what the one before it is compared with.
    all_sides = sides(options)
    for alternation in range(options.alternations):
        measured = {side.name: side.measure(options.threads) for side in all_sides}
        print(json.dumps({"alternation": alternation, "load_average": os.getloadavg()[0], **measured}),
              flush=True)
    result = {side.name: side.summary() for side in all_sides}
    for ours, theirs in zip(all_sides[::2], all_sides[1::2], strict=True):
        ratios = [a / b for a, b in zip(ours.speeds, theirs.speeds, strict=True)]
        result[f"{ours.name} / {theirs.name}"] = {
            "median": statistics.median(ratios), "range": [min(ratios), max(ratios)],
        }
    result["settings"] = {key: value for key, value in vars(options).items() if value is not None}
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["rl-step", "decode", "iteration", "binaries"])
    parser.add_argument("--model", required=True, help="for our binary: .gguf file or folder")
    parser.add_argument("--hf", help="the same model as a Hugging Face folder, for the Python side")
    parser.add_argument("--gguf", nargs="*", help="files for llama.cpp")
    parser.add_argument("--ragen", help="our binary (default: target/release/ragen, then the path)")
    parser.add_argument("--other", help="binaries: the other one")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--steps", type=int, default=2, help="steps a run; the first is a warm-up "
                        "where it allocates")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alternations", type=int, default=5)
    options = parser.parse_args()
    if options.what == "binaries" and not options.other:
        parser.error("binaries needs --other")
    try:
        compare(options)
    except CannotCompare as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
