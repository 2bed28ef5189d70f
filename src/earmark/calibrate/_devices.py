"""Where a calculation runs."""

from __future__ import annotations

from typing import Any

from earmark.errors import require
from earmark.geometry import devices


def torch_device(device: str, work: float) -> Any:
    """The torch device that `geometry.devices` makes of a name, or None for the CPU without torch."""
    name = devices.resolve(device, work)
    return None if name == "cpu" else require("torch", "Work on a GPU", "torch").device(name.removeprefix("torch:"))
