"""Where a calculation runs."""

from __future__ import annotations

from typing import Any

from earmark.errors import MissingExtra, UsageError, require
from earmark.geometry.neighbours import WORTH_A_GPU


def torch_device(device: str, work: float) -> Any:
    """The torch device of a name, None for the CPU without torch; "auto": a GPU if there is one and the work pays."""
    if device == "auto":
        try:
            torch = require("torch", "A GPU", "torch")
        except MissingExtra:
            return None
        device = "cuda" if work >= WORTH_A_GPU and torch.cuda.is_available() else "cpu"
    if device == "cpu":
        return None
    kind, _, number = device.removeprefix("torch:").partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise UsageError(f"Unknown device {device!r}: choose auto, cpu, cuda or cuda:1.")
    require("torch", "A GPU", "torch")
    from earmark.geometry import torch_backend

    return torch_backend._device(device.removeprefix("torch:"))
