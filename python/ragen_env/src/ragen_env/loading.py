"""From the name of a target to something that makes environments."""

import importlib
import os
import sys

from .toy_text import KNOWN


class LoadError(Exception):
    """The target cannot be had."""


def load(target):
    """A callable that makes environments from keyword arguments.

    ``module:Name`` is an attribute of a module (the current folder is searched first); anything else is the name of a
    Gymnasium environment, which is made with text rendering where it has any.
    """
    module, colon, name = target.partition(":")
    if colon and not name.split(":")[0].count("-v"):
        return _attribute(target, module, name)
    return _gymnasium(target)


def _attribute(target, module, name):
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise LoadError("`%s`: cannot import `%s`: %s" % (target, module, error)) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise LoadError("`%s`: `%s` has no `%s`" % (target, module, name))
        found = getattr(found, part)
    if not callable(found):
        raise LoadError("`%s`: expected a class or a function, found %r" % (target, found))
    return found


def _gymnasium(name):
    try:
        import gymnasium
    except ImportError as error:
        raise LoadError(
            "`%s` is not of the form module:Class, and Gymnasium, which might know the name, is not installed "
            "(pip install gymnasium)" % name
        ) from error
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.DeprecatedEnv as error:
        # Gymnasium drops a version when the next one comes; the environment is still the one that was meant.
        newest = _newest(gymnasium, name)
        if newest is None:
            raise LoadError("`%s`: %s" % (name, error)) from error
        print("%s is served: %s" % (newest.id, error), file=sys.stderr)
        spec, name = newest, newest.id
    except gymnasium.error.Error as error:
        raise LoadError("`%s`: %s" % (name, error)) from error
    known = KNOWN.get(spec.name)

    def make(**config):
        if known is not None and known.render_mode is not None:
            config.setdefault("render_mode", known.render_mode)
        elif known is None and "render_mode" not in config and _has_ansi(gymnasium, name, config):
            config["render_mode"] = "ansi"
        env = gymnasium.make(name, **config)
        return known(env) if known is not None else env

    return make


def _newest(gymnasium, name):
    """The newest registered version of an environment; None when there is none."""
    base = name.rpartition("-v")[0]
    versions = [spec for spec in gymnasium.registry.values() if "%s-v%s" % (base, spec.version) == spec.id]
    return max(versions, key=lambda spec: spec.version, default=None)


def _has_ansi(gymnasium, name, config):
    """Whether the environment can be rendered as text. One is made to ask it."""
    env = gymnasium.make(name, **config)
    try:
        return "ansi" in (env.metadata.get("render_modes") or [])
    finally:
        env.close()
