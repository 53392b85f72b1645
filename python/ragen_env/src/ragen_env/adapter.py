"""A Gymnasium-style environment in the terms of the protocol: texts, names of actions, plain numbers."""

import inspect
import math

from .text import describe, plain, simple


class Adapter:
    """One environment object. Plays one episode at a time."""

    def __init__(self, env):
        for method in ("reset", "step"):
            if not callable(getattr(env, method, None)):
                raise TypeError("%s has no method `%s`: expected a Gymnasium-style environment" % (_name(env), method))
        self.env = env
        self.name = _name(env)
        self.actions = _action_names(env)
        self.instruction = _instruction(env)
        self.legend = [[str(symbol), str(meaning)] for symbol, meaning in dict(_get(env, "legend", {})).items()]
        self.can_hold_out = bool(_get(env, "can_hold_out", True))
        self.features = ["oracle"] if callable(_get(env, "oracle", None)) else []
        self._render = _text_renderer(env)
        self._key = _get(env, "state_key", None)
        self._available = _get(env, "available_actions", None)
        self._reset_takes = _parameters(env.reset)
        self._numbers = {}
        self._shown = ""

    def hello(self):
        """What the handshake says of the environment."""
        return {
            "name": self.name,
            "instruction": self.instruction,
            "actions": self.actions,
            "legend": self.legend,
            "can_hold_out": self.can_hold_out,
            "features": self.features,
        }

    def reset(self, seed, split):
        """Starts the episode of a seed."""
        arguments = {}
        if "seed" in self._reset_takes:
            arguments["seed"] = seed
        if "options" in self._reset_takes:
            arguments["options"] = {"split": split}
        answer = self.env.reset(**arguments)
        paired = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
        observation, info = answer if paired else (answer, {})
        names = [str(name) for name in info.get("actions", self.actions)]
        self._numbers = {name: number for number, name in enumerate(names)}
        result = {"observation": self._text(observation)}
        if "actions" in info:
            result["actions"] = names
        self._observed(result)
        return result

    def step(self, action):
        """Takes the action of this name, or this text."""
        if self._numbers:
            if action not in self._numbers:
                raise ValueError("unknown action %r; known are %s" % (action, ", ".join(self._numbers)))
            action = self._numbers[action]
        answer = self.env.step(action)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise TypeError(
                "step returned %s: expected (observation, reward, terminated, truncated, info)" % _shape(answer)
            )
        observation, reward, terminated, truncated, info = answer
        info = dict(info or {})
        reward, terminated = float(reward), bool(terminated)
        success = info.pop("success", info.pop("is_success", None))
        result = {
            "observation": self._text(observation),
            "reward": reward if math.isfinite(reward) else _word(reward),
            "terminated": terminated,
            "truncated": bool(truncated),
            "success": self._success(reward, terminated) if success is None else bool(success),
        }
        for key in ("action_is_valid", "action_is_effective"):
            if key in info:
                result[key] = bool(info.pop(key))
        result["extra"] = _numbers_of(info)
        self._observed(result)
        return result

    def render(self):
        """The present state as text."""
        return {"observation": self._shown}

    def oracle(self, actions_left):
        """The environment's own advice."""
        advice = [str(name) for name in self.env.oracle(actions_left)] if actions_left > 0 else []
        optimum = _get(self.env, "optimum", None)
        return {"actions": advice, "optimum": float(optimum(actions_left)) if callable(optimum) else None}

    def close(self):
        """Frees what the environment holds."""
        close = getattr(self.env, "close", None)
        if callable(close):
            close()

    def _success(self, reward, terminated):
        judge = _get(self.env, "is_success", None)
        return bool(judge(reward, terminated)) if callable(judge) else terminated and reward > 0

    def _text(self, observation):
        if isinstance(observation, str):
            return plain(observation)
        rendered = self._rendered()
        return describe(observation) if rendered is None else rendered

    def _rendered(self):
        if not callable(self._render):
            return None
        try:
            rendered = self._render()
        except NotImplementedError:
            return None
        return plain(rendered) if isinstance(rendered, str) else None

    def _observed(self, result):
        """Adds what some environments know of a state."""
        self._shown = result["observation"]
        if callable(self._key):
            result["state_key"] = str(self._key())
        if callable(self._available):
            result["available_actions"] = [str(name) for name in self._available()]


def _get(env, name, default):
    """A member of the environment or of what its wrappers wrap."""
    for owner in (env, getattr(env, "unwrapped", None)):
        found = getattr(owner, name, None)
        if found is not None:
            return found
    return default


def _text_renderer(env):
    """The method that may render text. A Gymnasium environment that was made for another mode has none."""
    mode = getattr(env, "render_mode", "ansi")
    if mode == "ansi" or (mode is None and getattr(env, "spec", None) is None):
        return getattr(env, "render", None)
    return None


def _name(env):
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(env).__name__)


def _instruction(env):
    given = _get(env, "instruction", None)
    if given is None:
        document = inspect.getdoc(type(env)) if "__doc__" in vars(type(env)) else None
        given = (document or "").strip().split("\n\n")[0]
    return str(given)


def _action_names(env):
    names = _get(env, "actions", None)
    if names is not None:
        return [str(name) for name in names]
    space = getattr(env, "action_space", None)
    kind = type(space).__name__
    if space is None or kind == "Text":
        return []
    if kind == "Discrete":
        first = int(getattr(space, "start", 0))
        if first != 0:
            raise TypeError("an action space that starts at %d needs `actions`, the names of the actions" % first)
        return [str(number) for number in range(int(space.n))]
    raise TypeError("the action space %s cannot be spoken: expected Discrete or Text, or `actions`" % (space,))


def _parameters(function):
    """The keyword arguments that can be given; both, where anything can."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {"seed", "options"}
    if any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return {"seed", "options"}
    return {parameter.name for parameter in parameters}


def _numbers_of(info):
    """The finite numbers of an info mapping, by name."""
    numbers = {}
    for name, value in info.items():
        value = simple(value)
        if isinstance(value, (bool, int, float)) and math.isfinite(value):
            numbers[str(name)] = float(value)
    return numbers


def _word(reward):
    return "NaN" if math.isnan(reward) else ("Infinity" if reward > 0 else "-Infinity")


def _shape(answer):
    return "%d values" % len(answer) if isinstance(answer, tuple) else type(answer).__name__
