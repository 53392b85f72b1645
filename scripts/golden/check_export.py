#!/usr/bin/env python3
"""Checks that a model folder exported by `ragen` means the same to `transformers`.

Loads DIR with AutoModelForCausalLM and AutoTokenizer in float32, refuses missing, unexpected or
mismatched weights, computes log-probability and entropy of given token ids, and compares them with
the JSON object that `ragen score DIR --json --ids 1,2,3` prints:

    {"ids": [...], "log_prob": [...], "entropy": [...]}

`log_prob[i]` and `entropy[i]` belong to the prediction of `ids[i+1]`, so both are one shorter than
`ids`; one more entropy, that of the distribution after the last id, is allowed and not compared. Exit status: 0 when the largest difference is below --tolerance, 1 when it is not or the
folder does not load cleanly, 2 when the check could not be made.

    python scripts/golden/check_export.py out/model --ragen target/release/ragen --ids 1,2,3,4
    target/release/ragen score out/model --json --ids 1,2,3 | \
        python scripts/golden/check_export.py out/model --scores -
    python scripts/golden/check_export.py out/model --ids 1,2,3        # only prints

    pip install torch transformers safetensors numpy
"""

import argparse
import json
import pathlib
import subprocess
import sys

DEFAULT_TEXT = "The agent pushes the box to the right; the goal is two steps down."


class CannotCheck(Exception):
    """The check itself could not be made (as opposed to: it was made and failed)."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dir", type=pathlib.Path, help="exported model folder")
    parser.add_argument("--scores", help="file with the binary's JSON, or - for standard input")
    parser.add_argument("--ragen", help="path of the binary: run it instead of reading --scores")
    parser.add_argument("--ids", help="comma-separated token ids; default: those in --scores, "
                                      "else a sentence encoded with the folder's tokenizer")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="in nats (default 1e-4)")
    parser.add_argument("--no-tokenizer", action="store_true",
                        help="the folder has no tokenizer, do not ask for one")
    return parser.parse_args()


def parse_scores(text, origin):
    """The binary's JSON object (one line or several), with its fields checked."""
    try:
        scores = json.loads(text)
    except ValueError as error:
        raise CannotCheck(f"{origin}: expected one JSON object: {error}") from error
    for field in ("ids", "log_prob", "entropy"):
        if not isinstance(scores, dict) or not isinstance(scores.get(field), list):
            raise CannotCheck(f"{origin}: expected an array in field {field!r}")
    predictions = len(scores["ids"]) - 1
    if len(scores["entropy"]) == predictions + 1:
        scores["entropy"].pop()  # the distribution after the last id: nothing to compare it with here
    for field in ("log_prob", "entropy"):
        if len(scores[field]) != predictions:
            raise CannotCheck(f"{origin}: expected {predictions} values in {field!r} for "
                              f"{len(scores['ids'])} ids, found {len(scores[field])}")
    return scores


def run_ragen(binary, folder, ids):
    command = [binary, "score", str(folder), "--json", "--ids", ",".join(map(str, ids))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotCheck(f"cannot run {binary}: {error}") from error
    if done.returncode != 0:
        raise CannotCheck(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.strip()}")
    return parse_scores(done.stdout, "output of ragen score")


def load(folder):
    """Model in float32 and the list of complaints about its weights."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True,
        output_loading_info=True,
    )
    complaints = [f"{kind}: {sorted(map(str, names))}" for kind, names in info.items() if names]
    return model.eval(), complaints


def load_tokenizer(folder):
    """The folder's tokenizer and complaints; transformers makes up an empty one where there is none."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    back = tokenizer.decode(tokenizer.encode(DEFAULT_TEXT, add_special_tokens=False))
    if back.strip() == DEFAULT_TEXT:
        return tokenizer, []
    return tokenizer, [f"tokenizer: {DEFAULT_TEXT!r} comes back as {back!r}"]


def reference_scores(model, ids):
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    log_p = torch.log_softmax(logits.double(), dim=-1)
    log_prob = log_p.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    entropy = -(log_p.exp() * log_p).sum(-1)
    return {"log_prob": log_prob.tolist(), "entropy": entropy.tolist()}


def largest_difference(ours, theirs):
    """max |a - b|; anything that is not a finite number counts as infinite."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        difference = abs(a - b) if isinstance(a, (int, float)) else float("inf")
        worst = max(worst, difference if difference == difference else float("inf"))
    return worst


def check(options):
    if not options.dir.is_dir():
        raise CannotCheck(f"{options.dir}: expected a model folder")
    scores = None
    if options.scores:
        text = sys.stdin.read() if options.scores == "-" else pathlib.Path(options.scores).read_text()
        scores = parse_scores(text, options.scores)

    model, complaints = load(options.dir)
    tokenizer = None
    if not options.no_tokenizer:
        tokenizer, more = load_tokenizer(options.dir)
        complaints += more

    if options.ids:
        ids = [int(part) for part in options.ids.split(",")]
    elif scores:
        ids = scores["ids"]
    elif tokenizer:
        ids = tokenizer.encode(DEFAULT_TEXT, add_special_tokens=False)
    else:
        raise CannotCheck("no ids: give --ids or --scores")
    if len(ids) < 2:
        raise CannotCheck(f"expected at least two ids, found {len(ids)}")
    if not all(isinstance(i, int) and 0 <= i < model.config.vocab_size for i in ids):
        raise CannotCheck(f"expected ids from 0 to {model.config.vocab_size - 1}, found {ids}")
    if options.ragen:
        scores = run_ragen(options.ragen, options.dir, ids)
    if scores and scores["ids"] != ids:
        raise CannotCheck(f"the scores are of other ids: expected {ids}, found {scores['ids']}")

    reference = reference_scores(model, ids)
    report = {"dir": str(options.dir), "parameters": model.num_parameters(), "ids": ids}
    if tokenizer:
        report["text"] = tokenizer.decode(ids)
        report["chat_template"] = bool(getattr(tokenizer, "chat_template", None))
    report.update(reference)
    report["complaints"] = complaints
    passed = not complaints
    if scores:
        report["log_prob_difference"] = largest_difference(scores["log_prob"], reference["log_prob"])
        report["entropy_difference"] = largest_difference(scores["entropy"], reference["entropy"])
        worst = max(report["log_prob_difference"], report["entropy_difference"])
        report["tolerance"] = options.tolerance
        passed = passed and worst < options.tolerance
    report["passed"] = passed
    print(json.dumps(report))
    return 0 if passed else 1


def main():
    try:
        return check(arguments())
    except CannotCheck as error:
        print(f"check_export: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        # What transformers raises when a folder does not load.
        print(f"check_export: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
