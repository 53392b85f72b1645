"""Run with ``PYTHONPATH=src python3 -m unittest discover -s tests``."""

import json
import os
import subprocess
import sys
import unittest

from ragen_env.adapter import Adapter
from ragen_env.examples.frozen_lake import FrozenLake
from ragen_env.loading import LoadError, load
from ragen_env.numpy_stream import NumpyStream
from ragen_env.server import Server
from ragen_env.text import describe, plain

HELLO = {"method": "hello", "protocol": "ragen-env", "versions": [1], "config": {}}


class Corridor:
    """Walk to the right end.

    This paragraph is not for the agent.
    """

    actions = ["Left", "Right"]

    def __init__(self, length=3, trouble=None):
        self.length, self.trouble, self.at = length, trouble, 0

    def reset(self, *, seed=None, options=None):
        self.at = seed % self.length
        self.options = options
        return "at %d" % self.at, {}

    def step(self, action):
        if self.trouble == "raise":
            raise KeyError("door")
        if self.trouble == "print":
            print("this is not a reply")
            os.write(1, b"nor is this\n")
        self.at = max(0, self.at + (1 if action == 1 else -1))
        done = self.at >= self.length
        reward = float("nan") if self.trouble == "nan" else float(done)
        return "at %d" % self.at, reward, done, False, {"score": 2, "odd": float("inf"), "word": "x"}


class Bare:
    """An observation that is no text, an action that is free, and nothing else."""

    def reset(self, seed=None):
        return (seed, [1, 2])

    def step(self, action):
        return {"said": action}, 0, False, False, None


class NumpyStreamTest(unittest.TestCase):
    def test_draws_of_numpy(self):
        # numpy.random.default_rng(seed).random() and .integers(0, 10), by NumPy 2.
        self.assertEqual(NumpyStream(0).random(), 0.6369616873214543)
        self.assertEqual(NumpyStream(12345).random(), 0.22733602246716966)
        stream = NumpyStream(42)
        self.assertEqual([stream.integers(0, 10) for _ in range(8)], [0, 7, 6, 4, 4, 8, 0, 6])

    def test_agrees_with_numpy_where_it_is(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        for seed in [0, 1, 7, 2**32, 2**63 + 5]:
            ours, theirs = NumpyStream(seed), numpy.random.default_rng(seed)
            for high in [2, 3, 10, 1000, 2**31, 2**32] * 3:
                self.assertEqual(ours.integers(0, high), theirs.integers(0, high))
                self.assertEqual(ours.random(), theirs.random())
                self.assertEqual(ours.choice([0.1, 0.6, 0.3]), theirs.choice(3, p=[0.1, 0.6, 0.3]))


class FrozenLakeTest(unittest.TestCase):
    def test_episodes_of_the_reference(self):
        folder = os.environ.get("RAGEN_FIXTURES")
        if not folder:
            self.skipTest("RAGEN_FIXTURES is not set")
        with open(os.path.join(folder, "vectors", "frozenlake_ragen.jsonl"), encoding="utf-8") as lines:
            cases = [json.loads(line) for line in lines]
        self.assertTrue(cases)
        for case in cases:
            env = FrozenLake(success_rate=case["success_rate"] if case["slippery"] else 1.0)
            observation, _ = env.reset(seed=case["seed"])
            self.assertEqual((observation, env.cells), (case["obs"], "".join(case["desc"])))
            for step in case["steps"]:
                observation, reward, terminated, truncated, info = env.step(step["a"] - 1)
                self.assertEqual((observation, env.player, reward), (step["obs"], step["s"], step["reward"]))
                self.assertEqual(terminated or truncated, step["done"])
                self.assertEqual(info["action_is_effective"], step["info"]["action_is_effective"])
                self.assertEqual(info["success"], step["info"]["success"])


class AdapterTest(unittest.TestCase):
    def test_a_plain_class(self):
        env = Adapter(Corridor())
        self.assertEqual(env.hello()["instruction"], "Walk to the right end.")
        self.assertEqual(env.reset(1, "val"), {"observation": "at 1"})
        self.assertEqual(env.env.options, {"split": "val"})
        step = env.step("Right")
        self.assertEqual((step["observation"], step["terminated"], step["success"]), ("at 2", False, False))
        self.assertEqual(step["extra"], {"score": 2.0})
        self.assertTrue(env.step("Right")["success"])
        with self.assertRaises(ValueError):
            env.step("Up")

    def test_rewards_that_json_cannot_write(self):
        env = Adapter(Corridor(trouble="nan"))
        env.reset(0, "train")
        self.assertEqual(env.step("Left")["reward"], "NaN")

    def test_an_environment_with_nothing_but_the_two_methods(self):
        env = Adapter(Bare())
        self.assertEqual(env.hello()["actions"], [])
        # A pair is an observation and an info only where Gymnasium says so; this one's second is a list.
        self.assertEqual(env.reset(4, "train")["observation"], "(4, [1, 2])")
        self.assertEqual(env.step("go")["observation"], "{'said': 'go'}")

    def test_what_is_no_environment(self):
        with self.assertRaises(TypeError):
            Adapter(object())

    def test_text(self):
        self.assertEqual(plain("  (Down)\nS\x1b[41mF\x1b[0m\x1b[32mG\x1b[0m\n"), "  (Down)\nS[F]G")
        self.assertEqual(describe({"a": (1, 2.5)}), "{'a': (1, 2.5)}")


class ServerTest(unittest.TestCase):
    def test_a_conversation(self):
        server = Server(Corridor)
        with self.assertRaises(Exception):
            server.answer({"method": "reset", "episode": 1, "seed": 0, "split": "train"})
        hello = server.answer({**HELLO, "config": {"length": 1}})
        self.assertEqual((hello["version"], hello["actions"]), (1, ["Left", "Right"]))
        for episode in (1, 2):
            server.answer({"method": "reset", "episode": episode, "seed": 0, "split": "train"})
        self.assertTrue(server.answer({"method": "step", "episode": 1, "action": "Right"})["terminated"])
        self.assertEqual(server.answer({"method": "render", "episode": 2}), {"observation": "at 0"})
        self.assertEqual(server.answer({"method": "close", "episode": 1}), {})
        with self.assertRaises(Exception):
            server.answer({"method": "step", "episode": 1, "action": "Right"})
        with self.assertRaises(Exception):
            server.answer({**HELLO, "versions": [2]})

    def process(self, config):
        process = subprocess.Popen(
            [sys.executable, "-m", "ragen_env", __name__ + ":Corridor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.dirname(os.path.abspath(__file__)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        number = iter(range(100))

        def ask(**request):
            process.stdin.write(json.dumps({"id": next(number), **request}).encode() + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        ask(**{**HELLO, "config": config})
        ask(method="reset", episode=5, seed=0, split="train")
        return process, ask

    def test_printing_does_not_disturb(self):
        _, ask = self.process({"trouble": "print"})
        self.assertEqual(ask(method="step", episode=5, action="Right")["result"]["observation"], "at 1")

    def test_an_exception_is_its_episode_s(self):
        _, ask = self.process({"trouble": "raise"})
        answer = ask(method="step", episode=5, action="Right")
        self.assertEqual(answer, {"id": 2, "error": {"message": "KeyError: 'door'"}})
        self.assertIn("result", ask(method="reset", episode=6, seed=1, split="val"))

    def test_the_end_of_the_input_is_the_end(self):
        process, _ = self.process({})
        process.stdin.close()
        self.assertEqual(process.wait(timeout=10), 0)


class LoadingTest(unittest.TestCase):
    def test_names(self):
        self.assertIs(load("ragen_env.examples.frozen_lake:FrozenLake"), FrozenLake)
        for wrong in ["no_such_module:X", "json:NoSuchThing", "json:__doc__"]:
            with self.assertRaises(LoadError):
                load(wrong)

    def test_gymnasium_s_own(self):
        try:
            import gymnasium  # noqa: F401
        except ImportError:
            self.skipTest("Gymnasium is not installed")
        for name, actions in [("FrozenLake-v1", 4), ("CliffWalking-v1", 4), ("Blackjack-v1", 2), ("Taxi-v3", 6)]:
            env = Adapter(load(name)())
            self.assertEqual(len(env.actions), actions)
            seen = set()
            for seed in range(4):
                first = env.reset(seed, "train")["observation"]
                self.assertEqual(first, env.reset(seed, "train")["observation"], name)
                seen.add(first)
                step = env.step(env.actions[seed % actions])
                self.assertNotIn("\x1b", step["observation"])
                self.assertTrue(step["observation"])
            self.assertTrue(len(seen) > 1 or name in ("FrozenLake-v1", "CliffWalking-v1"))


if __name__ == "__main__":
    unittest.main()
