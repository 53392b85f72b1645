# Runs a program on the inputs of its tests, inside a sandbox, and reports what comes out.
#
# It reads one JSON request from standard input and writes JSON lines: "ready" when limits are in force, then one line
# per test. It never sees an expected output, so a program cannot pass by reading or forging verdicts: the comparison
# happens outside. Limits that the sandbox does not set are set here, before any of the program runs.
import ast
import atexit
import builtins
import ctypes
import io
import json
import os
import platform
import resource
import struct
import sys

request = json.loads(sys.stdin.buffer.read())
channel = os.dup(1)


def report(line):
    data = (json.dumps(line) + "\n").encode()
    while data:
        data = data[os.write(channel, data):]


def limit(kind, value):
    resource.setrlimit(kind, (value, value))


def forbid_processes():
    """A system call filter: threads are allowed, processes, programs, sockets and mounts are not."""
    # Numbers of: clone, socket, and everything that is refused whatever its arguments.
    calls = {
        "x86_64": (0xC000003E, 56, 41, [57, 58, 59, 101, 155, 161, 165, 166, 248, 249, 250, 272, 298, 308, 310, 311,
                                        321, 322, 323, 425, 428, 429, 430, 431, 432, 433, 442]),
        "aarch64": (0xC00000B7, 220, 198, [39, 40, 41, 51, 97, 117, 217, 218, 219, 221, 241, 268, 270, 271, 280, 281,
                                           282, 425, 428, 429, 430, 431, 432, 433, 442]),
    }
    if platform.machine() not in calls:
        raise OSError("no system call filter for " + platform.machine())
    arch, clone, socket, refused = calls[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill, no_permission, not_there = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
    clone3, clone_thread = 435, 0x00010000

    def op(code, value, then=0, otherwise=0):
        return struct.pack("HBBI", code, then, otherwise, value)

    program = [
        op(load, 4), op(equal, arch, 1, 0), op(give, kill),
        op(load, 0), op(at_least, 0x40000000, 0, 1), op(give, no_permission),
        # The C library falls back to clone where clone3 does not exist.
        op(equal, clone3, 0, 1), op(give, not_there),
    ]
    for number in [socket] + refused:
        program += [op(equal, number, 0, 1), op(give, no_permission)]
    program += [
        op(equal, clone, 0, 3),
        op(load, 16), op(any_bit, clone_thread, 1, 0), op(give, no_permission),
        op(give, allow),
    ]
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.addressof(header), 0, 0):
        raise OSError("the system call filter was refused: " + os.strerror(ctypes.get_errno()))


def argument(text):
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except Exception:
            pass
    return text


def call(scope, name, given):
    owner = scope["Solution"]() if "Solution" in scope else None
    function = getattr(owner, name) if owner is not None else scope[name]
    if isinstance(given, str):
        given = [argument(line) for line in given.split("\n") if line.strip()]
    result = function(*given)
    try:
        value = json.dumps(result, allow_nan=False)
    except Exception:
        value = None
    return {"text": str(result), "json": value}


def run_program(code, given):
    # Real files under the usual descriptors, so that every way to read and write works.
    with open("/tmp/.in", "wb") as file:
        file.write(given.encode())
    for path, flags, descriptor in (
        ("/tmp/.in", os.O_RDONLY, 0),
        ("/tmp/.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1),
    ):
        opened = os.open(path, flags)
        # A program may have closed the descriptor; then the file is opened under it at once.
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=False)
    error = None
    try:
        exec(code, {"__name__": "__main__", "__builtins__": builtins})
    except SystemExit:
        pass
    except BaseException as problem:
        error = problem
    # Programs may leave their last output to the interpreter's end.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    with open("/tmp/.out", "rb") as file:
        text = file.read(request["output_bytes"]).decode("utf-8", "replace")
    return {"text": text} if error is None else failed(error)


def failed(problem):
    return {"error": (type(problem).__name__ + ": " + str(problem))[:300]}


limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_AS, request["memory_bytes"])
limit(resource.RLIMIT_FSIZE, request["file_bytes"])
limit(resource.RLIMIT_NOFILE, 64)
limit(resource.RLIMIT_CPU, request["cpu_seconds"])
null = os.open("/dev/null", os.O_RDWR)
for descriptor in (0, 1, 2):
    os.dup2(null, descriptor)
forbid_processes()
report({"ready": True})

functional = request["function"] is not None
scope = {"__name__": "solution", "__builtins__": builtins}
broken = None
try:
    code = compile(request["code"], "answer.py", "exec")
    if functional:
        exec(code, scope)
except BaseException as problem:
    broken = failed(problem)
for number, given in enumerate(request["inputs"]):
    if broken is not None:
        line = dict(broken)
    elif functional:
        try:
            line = call(scope, request["function"], given)
        except BaseException as problem:
            line = failed(problem)
    else:
        try:
            line = run_program(code, given)
        except BaseException as problem:
            line = failed(problem)
    line["test"] = number
    report(line)
os._exit(0)
