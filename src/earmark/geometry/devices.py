"""Where products are made: the CPU, or a GPU that torch sees. One place that knows the names of devices.

auto          what EARMARK_DEVICE says, else a GPU if torch sees one and the work pays, else the CPU
cpu           NumPy and compiled kernels
cuda, cuda:1  torch on a GPU, with Triton's kernels where they are there
torch:cpu     the code of the GPU on the CPU, to test it where there is none
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ
from typing import Any

from earmark.errors import MissingExtra, UsageError, require

NAMES = "auto, cpu or cuda (cuda:1 is the second)"
WORTH_A_GPU = 1e10  # multiplications from which a GPU that is awake pays: a sweep of 10,000 x 100
WORTH_WAKING = 3e11  # and one that torch has yet to be imported for, which takes seconds
VARIABLE = "EARMARK_DEVICE"  # what "auto" means here, where it is set
_KNOWN = re.compile(r"auto|cpu|cuda(:\d+)?|torch:(cpu|cuda(:\d+)?)")


def check(device: Any) -> None:
    """Refuse what is no device that distances can be swept on."""
    if str(device) == "mps" or str(device).startswith("mps:"):
        raise UsageError(
            "Distances need float64, which mps does not have: leave out the device here, and give it to the model "
            "alone, as in wavlm?device=mps."
        )
    if not _KNOWN.fullmatch(str(device)):
        raise UsageError(f"Unknown device {device!r}: choose {NAMES}.")


def resolve(device: str, work: float) -> str:
    """The device that some work runs on, "auto" decided: "cpu", or what torch calls it behind "torch:".

    `work` is the number of multiplications of its products.
    """
    check(device)
    if device == "auto":
        device = environ.get(VARIABLE) or "auto"
        check(device)
    if device == "auto":
        awake = "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized()
        device = "cuda" if work >= (WORTH_A_GPU if awake else WORTH_WAKING) and sees_cuda() else "cpu"
    if device == "cpu":
        return device
    name = device.removeprefix("torch:")
    torch = require("torch", "Work on a GPU", "torch")
    kind, _, number = name.partition(":")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise UsageError("torch sees no CUDA device here: use device cpu.")
        if int(number or 0) >= torch.cuda.device_count():
            raise UsageError(f"There is no device {name}: torch sees {torch.cuda.device_count()}.")
    return f"torch:{name}"


@contextmanager
def preferring(device: str | None) -> Iterator[None]:
    """Let "auto" mean this device, here and in processes started meanwhile; None changes nothing."""
    if device is None:
        yield
        return
    check(device)
    before = environ.get(VARIABLE)
    environ[VARIABLE] = device
    try:
        yield
    finally:
        if before is None:
            del environ[VARIABLE]
        else:
            environ[VARIABLE] = before


def sees_cuda() -> bool:
    """Whether torch is there and sees a GPU."""
    try:
        torch = require("torch", "Work on a GPU", "torch")
    except MissingExtra:
        return False
    return bool(torch.cuda.is_available())
