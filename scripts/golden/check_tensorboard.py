#!/usr/bin/env python3
"""Reads event files with TensorBoard's own reader and prints every scalar tag and its last value.

One line of JSON a tag: {"run", "tag", "count", "step", "value", "wall_time"}. Exit status: 0 when at
least --min-tags scalar tags were read, 1 when not (no event file, nothing readable, a missing
--require), so that a writer that TensorBoard cannot read fails a check.

    pip install tensorboard
    python scripts/golden/check_tensorboard.py runs/bandit/tensorboard --require reward/mean
"""

import argparse
import json
import pathlib
import sys


def scalars_of(folder):
    """All scalar series of the event files directly in `folder`, whichever way they are stored."""
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.util import tensor_util

    accumulator = event_accumulator.EventAccumulator(
        str(folder),
        size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0},
    )
    accumulator.Reload()
    tags = accumulator.Tags()
    for tag in tags.get("scalars", []):
        events = accumulator.Scalars(tag)
        yield tag, [(e.step, e.value, e.wall_time) for e in events]
    for tag in tags.get("tensors", []):  # scalars in the newer, tensor form
        events = accumulator.Tensors(tag)
        series = [(e.step, tensor_util.make_ndarray(e.tensor_proto), e.wall_time) for e in events]
        if all(value.size == 1 and value.dtype.kind == "f" for _, value, _ in series):
            yield tag, [(step, float(value.reshape(())), wall) for step, value, wall in series]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("logdir", type=pathlib.Path)
    parser.add_argument("--require", action="append", default=[], metavar="TAG")
    parser.add_argument("--min-tags", type=int, default=1)
    options = parser.parse_args()

    folders = sorted({path.parent for path in options.logdir.rglob("*tfevents*") if path.is_file()})
    if not folders:
        print(f"check_tensorboard: no event file under {options.logdir}", file=sys.stderr)
        return 1
    found = set()
    for folder in folders:
        for tag, series in scalars_of(folder):
            if not series:
                continue
            step, value, wall_time = series[-1]
            found.add(tag)
            print(json.dumps({
                "run": str(folder.relative_to(options.logdir)), "tag": tag, "count": len(series),
                "step": step, "value": value, "wall_time": wall_time,
            }))
    missing = [tag for tag in options.require if tag not in found]
    if missing:
        print(f"check_tensorboard: missing tags {missing}", file=sys.stderr)
        return 1
    if len(found) < max(options.min_tags, 1):
        print(f"check_tensorboard: expected {options.min_tags} scalar tags, found {len(found)}",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
