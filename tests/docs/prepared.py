"""The command `earmark` without seconds of imports and compiled kernels: a process that has them forks for each call.

`python prepared.py serve SOCKET` imports Earmark and waits. `python prepared.py call SOCKET WORDS...` hands over its
words, folder, environment, stdin, stdout and stderr; a fork of the first process does what the installed command would
do, and the caller ends with its status. The first process starts no thread, so no fork inherits half of one.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import threading

PRELOADED = "numpy scipy.stats scipy.signal numba soundfile soxr sklearn.cluster matplotlib.pyplot".split()


def serve(address: str) -> None:
    import importlib
    import pkgutil

    import earmark.cli

    for name in PRELOADED:
        importlib.import_module(name)
    for module in pkgutil.iter_modules(earmark.cli.__path__, "earmark.cli."):
        importlib.import_module(module.name)
    _load_kernels()
    assert threading.active_count() == 1, threading.enumerate()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        while True:
            caller, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _answer(caller)
            caller.close()


def _load_kernels() -> None:
    """Measure a little of everything once: reading compiled kernels takes longer than using them on an example."""
    import numpy as np

    import earmark

    vectors = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
    labels, groups = [str(i % 4) for i in range(60)], [str(i % 20) for i in range(60)]
    for across in (groups, None):
        earmark.evaluate(
            vectors, labels, groups=across, distance=["cosine", "euclidean", "spearman"], correct=["none", "icdm"],
            permutations=9, threads=1,
        )  # fmt: skip
    earmark.fidelity(vectors[:30], vectors[30:], threads=1)


def _answer(caller: socket.socket) -> None:
    """In the fork: become the caller, run the command, send its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(caller, 4, 3)
    (size,) = struct.unpack("!I", head)
    message = b""
    while len(message) < size:
        message += caller.recv(size - len(message))
    call = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = ["earmark", *call["words"]]
    status = 1
    try:
        from earmark.cli import main

        status = main() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        caller.sendall(struct.pack("!i", status))
        os._exit(status)


def call(address: str, words: list[str]) -> int:
    message = json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()  # noqa: PTH109
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(address)
        socket.send_fds(door, [struct.pack("!I", len(message))], [0, 1, 2])
        door.sendall(message)
        answer = door.recv(4)
    return struct.unpack("!i", answer)[0] if len(answer) == 4 else 1


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(call(sys.argv[2], sys.argv[3:]))
