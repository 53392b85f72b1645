"""The protocol's loop: one JSON object a line in, one out, until the input ends."""

import json
import os
import sys
import threading
import time
import traceback

from .adapter import Adapter

PROTOCOL = "ragen-env"
VERSION = 1

# Objects that wait to be used again.
_SPARE = 64
# Seconds between looks at whether the trainer is still there.
_WATCH = 5.0


class Refused(Exception):
    """A request that makes no sense here."""


class Server:
    """Environments by the numbers of their episodes."""

    def __init__(self, make):
        self._make = make
        self._config = {}
        self._playing = {}
        self._spare = []
        self._greeted = False

    def answer(self, request):
        """The result of a request."""
        method = request.get("method")
        if method == "step":
            return self._of(request).step(request["action"])
        if method == "hello":
            return self._hello(request)
        if not self._greeted:
            raise Refused("expected `hello` first")
        if method == "reset":
            return self._reset(request)
        if method == "render":
            return self._of(request).render()
        if method == "oracle":
            return self._of(request).oracle(request["actions_left"])
        if method == "close":
            env = self._playing.pop(request["episode"], None)
            if env is not None:
                self._put_away(env)
            return {}
        raise Refused("unknown method %r" % (method,))

    def _hello(self, request):
        if request.get("protocol") != PROTOCOL or VERSION not in request.get("versions", []):
            raise Refused(
                "this is `%s` version %d; asked for `%s` %s"
                % (PROTOCOL, VERSION, request.get("protocol"), request.get("versions"))
            )
        self._config = request.get("config") or {}
        env = self._new()
        self._spare.append(env)
        self._greeted = True
        return {"protocol": PROTOCOL, "version": VERSION, **env.hello()}

    def _reset(self, request):
        episode = request["episode"]
        env = self._playing.pop(episode, None) or (self._spare.pop() if self._spare else self._new())
        # One that raises is not used again.
        result = env.reset(request["seed"], request["split"])
        self._playing[episode] = env
        return result

    def _of(self, request):
        env = self._playing.get(request["episode"])
        if env is None:
            raise Refused("episode %s was not reset" % request["episode"])
        return env

    def _new(self):
        return Adapter(self._make(**self._config))

    def _put_away(self, env):
        if len(self._spare) < _SPARE:
            self._spare.append(env)
        else:
            env.close()


def serve(make):
    """Serves the environments that ``make(**config)`` makes until standard input ends.

    Standard output belongs to the protocol: whatever else writes there, C code too, finds itself on standard error.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    server = Server(make)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    for line in requests:
        request = json.loads(line)
        try:
            reply = encode({"id": request["id"], "result": server.answer(request)})
        except Exception as error:  # Whatever it is, it is this episode's.
            if not isinstance(error, Refused):
                traceback.print_exc(file=sys.stderr)
            reply = encode({"id": request["id"], "error": {"message": "%s: %s" % (type(error).__name__, error)}})
        data = reply.encode("utf-8", "replace") + b"\n"
        while data:
            data = data[replies.write(data) :]


def _watch(parent):
    """Ends the process when the trainer is gone, even from within an environment that never returns."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)
