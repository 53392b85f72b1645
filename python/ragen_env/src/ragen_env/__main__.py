"""The command: ``python -m ragen_env TARGET``."""

import argparse
import json
import random
import sys

from .adapter import Adapter
from .loading import LoadError, load
from .server import serve


def main(arguments=None):
    """Parses the arguments and serves. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ragen_env",
        description="Serves an environment to RAGEN on standard input and output, one JSON object a line.",
    )
    parser.add_argument("target", help="module:Class (or any callable), or the name of one of Gymnasium's environments")
    parser.add_argument("--config", default="{}", help="keyword arguments as JSON, under those that RAGEN sends")
    parser.add_argument("--try", dest="attempt", action="store_true", help="play a random episode and print it instead")
    parser.add_argument("--seed", type=int, default=0, help="with --try: the instance")
    options = parser.parse_args(arguments)
    try:
        config = json.loads(options.config)
        if not isinstance(config, dict):
            raise ValueError("not an object")
    except ValueError as error:
        parser.error("--config: expected a JSON object, found %s (%s)" % (options.config, error))
    try:
        make = load(options.target)
    except LoadError as error:
        print("error: %s" % error, file=sys.stderr)
        return 2
    if options.attempt:
        return play(Adapter(make(**config)), options.seed)
    serve(lambda **sent: make(**{**config, **sent}))
    return 0


def play(env, seed):
    """Plays an episode with random actions and prints what an agent sees."""
    print(env.instruction)
    started = env.reset(seed, "train")
    print("\n" + started["observation"])
    draw = random.Random(seed)
    for _ in range(100):
        actions = started.get("available_actions") or started.get("actions") or env.actions
        if not actions:
            print("\nactions are free text; there is nothing to draw from")
            break
        action = draw.choice(actions)
        started = env.step(action)
        print("\n> %s  (reward %s)\n%s" % (action, started["reward"], started["observation"]))
        if started["terminated"] or started["truncated"]:
            print("\n%s" % ("success" if started["success"] else "no success"))
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
