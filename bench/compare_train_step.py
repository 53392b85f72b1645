#!/usr/bin/env python3
"""Our training step against PyTorch's: alternating runs on one machine, medians and ranges.

Runs, one after the other and never at the same time,

    ragen bench train-step --model PATH --batch 4 --len 256 --steps N --json
    python bench/torch_train_step.py  --model PATH --batch 4 --len 256 --steps N

at least five times each, so that a noisy neighbour hits both alike. The first step of every run is
a warm-up and left out. The binary prints one JSON line per step with `tokens_per_s`, and a line with
`peak_rss_bytes` at the end; beside that figure the peak that the kernel reports for the whole child
process is measured for both in the same way, and the ratio is made of that one.

    cargo build --release -p ragen
    python bench/compare_train_step.py --model SmolLM2-135M-Instruct.Q4_1.gguf --torch-model smollm2_hf
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


class CannotCompare(Exception):
    """One of the two sides did not run."""


def run(command, threads):
    """Runs a command to its end: its JSON lines and the peak resident set of the child in bytes."""
    environment = dict(os.environ)
    for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = str(threads)
    # Files rather than pipes: the child is waited for with wait4, which does not read pipes.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            child = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        except OSError as error:
            raise CannotCompare(f"cannot run {command[0]}: {error}") from error
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text, complaint = out.read(), err.read()
    if child.returncode != 0:
        raise CannotCompare(
            f"{' '.join(command)}\nended with status {child.returncode}:\n{complaint.strip()[-2000:]}"
        )
    lines = []
    for line in text.splitlines():
        if line.startswith(("{", "[")):
            try:
                lines.append(json.loads(line))
            except ValueError as error:
                raise CannotCompare(f"{command[0]}: not JSON: {line!r}: {error}") from error
    return lines, usage.ru_maxrss * 1024


def measure(command, threads):
    """Speed of every step but the first, and both figures of peak memory, of one run."""
    lines, peak = run(command, threads)
    speeds = [line["tokens_per_s"] for line in lines if "tokens_per_s" in line]
    if len(speeds) < 2:
        raise CannotCompare(
            f"{' '.join(command)}\nexpected at least two lines with tokens_per_s (the first is a "
            f"warm-up), found {len(speeds)}"
        )
    reported = [line["peak_rss_bytes"] for line in lines if "peak_rss_bytes" in line]
    return {
        "tokens_per_s": speeds[1:],
        "peak_rss_bytes": peak,
        "reported_peak_rss_bytes": reported[-1] if reported else None,
    }


def find_ragen(given):
    """The binary: as given, as built here, or on the path."""
    candidates = [given] if given else [
        HERE.parent / "target" / "release" / "ragen", shutil.which("ragen"),
    ]
    for candidate in candidates:
        found = candidate and shutil.which(str(candidate))
        if found:
            return found
    raise CannotCompare(
        f"no ragen binary at {' or '.join(str(c) for c in candidates if c)}: build it with "
        "`cargo build --release -p ragen` or name it with --ragen"
    )


def summary(runs):
    speeds = [speed for run_ in runs for speed in run_["tokens_per_s"]]
    peaks = [run_["peak_rss_bytes"] for run_ in runs]
    return {
        "runs": len(runs),
        "steps": len(speeds),
        "tokens_per_s_median": statistics.median(speeds),
        "tokens_per_s_range": [min(speeds), max(speeds)],
        "peak_rss_bytes_median": statistics.median(peaks),
        "peak_rss_bytes_range": [min(peaks), max(peaks)],
    }


def compare(options):
    shape = ["--batch", str(options.batch), "--len", str(options.len), "--steps", str(options.steps)]
    ours_command = [find_ragen(options.ragen), "bench", "train-step", "--model", options.model]
    ours_command += shape + ["--json"]
    torch_command = [options.python, str(HERE / "torch_train_step.py"), "--threads",
                     str(options.threads), "--model", options.torch_model or options.model] + shape
    ours, theirs = [], []
    for alternation in range(options.alternations):
        pair = {}
        for name, command, runs in (("ragen", ours_command, ours), ("torch", torch_command, theirs)):
            measured = measure(command, options.threads)
            runs.append(measured)
            pair[name] = measured
        print(json.dumps({"alternation": alternation, "load_average": os.getloadavg()[0], **pair}),
              flush=True)
    result = {"ragen": summary(ours), "torch": summary(theirs)}
    result["speed_ratio"] = (
        result["ragen"]["tokens_per_s_median"] / result["torch"]["tokens_per_s_median"]
    )
    paired = [
        statistics.median(a["tokens_per_s"]) / statistics.median(b["tokens_per_s"])
        for a, b in zip(ours, theirs, strict=True)
    ]
    result["speed_ratio_per_alternation_range"] = [min(paired), max(paired)]
    result["memory_ratio"] = (
        result["ragen"]["peak_rss_bytes_median"] / result["torch"]["peak_rss_bytes_median"]
    )
    result["settings"] = {"batch": options.batch, "len": options.len, "threads": options.threads,
                          "steps_per_run": options.steps, "warm_up_steps": 1}
    print(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="for our binary: .gguf file or folder")
    parser.add_argument("--torch-model", help="for PyTorch, when another path (default: the same)")
    parser.add_argument("--ragen", help="our binary (default: target/release/ragen, then the path)")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3, help="per run, the first is a warm-up")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alternations", type=int, default=5)
    options = parser.parse_args()
    try:
        compare(options)
    except CannotCompare as error:
        print(f"compare_train_step: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
