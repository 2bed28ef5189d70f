"""What answers in the cells of the tests."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from earmark.isolation import Message

_calls = 0


def answer(message: Message) -> Message:
    global _calls
    _calls += 1
    given = dict(message.head)
    task = given.pop("do")
    if task == "echo":
        return Message(given, message.blobs)
    if task == "flood":
        return Message({}, (bytes(100_000),))
    return Message(globals()[f"_{task}"](**given))


def _count() -> dict[str, object]:
    return {"count": _calls}


def _raise(text: str) -> dict[str, object]:
    raise KeyError(text)


def _exit() -> dict[str, object]:
    sys.exit(3)


def _end(code: int, text: str = "") -> dict[str, object]:
    print(text, file=sys.stderr, flush=True)
    time.sleep(0.2)
    os._exit(code)


def _crash() -> dict[str, object]:
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def _sleep() -> dict[str, object]:
    time.sleep(3600)
    return {}


def _print(text: str) -> dict[str, object]:
    print(text)
    os.write(1, b"and so on\n")
    return {"done": True}


def _nonsense() -> dict[str, object]:
    for number in range(3, 20):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    return {}


def _environment() -> dict[str, object]:
    return {"values": list(os.environ.values())}


def _look(file: str, process: int) -> dict[str, object]:
    try:
        with socket.create_connection(("127.0.0.1", 1), timeout=1):
            network = True
    except ConnectionRefusedError:
        network = len(socket.if_nameindex()) > 1
    except OSError:
        network = False
    return {
        "file": Path(file).exists(),
        "process": process != 0 and Path(f"/proc/{process}").exists(),
        "network": network,
        "home": any(Path.home().glob(".bash*")),
    }


def _read(file: str) -> dict[str, object]:
    return {"text": Path(file).read_text()}


def _write(file: str) -> dict[str, object]:
    try:
        Path(file).write_text("x")
    except OSError:
        return {"written": False}
    return {"written": True}


def _work(library: str, file: str = "") -> dict[str, object]:
    """Something that the library does with memory, threads and code of its own making."""
    return {"result": globals()[f"_by_{library}"](file)}


def _by_torch(file: str) -> float:
    import torch

    torch.set_num_threads(2)
    with torch.no_grad():
        frames = torch.nn.Conv1d(1, 8, 400, 160)(torch.ones(1, 1, 16000))
        spectrum = torch.stft(torch.ones(16000), 512, window=torch.hann_window(512), return_complex=True)
    return float(frames.isfinite().sum() + spectrum.abs().isfinite().sum())


def _by_onnxruntime(file: str) -> float:
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(file)
    return float(session.run(None, {"audio": np.ones(100, np.float32)})[0].sum())


def _by_numba(file: str) -> float:
    import numba
    import numpy as np

    @numba.njit(parallel=True)
    def total(values):
        result = 0.0
        for place in numba.prange(len(values)):
            result += values[place]
        return result

    return float(total(np.ones(1000)))


def _by_scipy(file: str) -> float:
    import numpy as np
    import scipy.linalg

    return float(scipy.linalg.svdvals(np.eye(100)).sum())
