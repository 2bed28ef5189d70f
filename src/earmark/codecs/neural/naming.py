"""How weights are called in names and on cards: so that they are told apart, and no path of a machine is published."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

__all__ = ["told", "weights_name"]

_WEIGHTS = (".bin", ".ckpt", ".pkl", ".pt", ".pth", ".safetensors")
_SAY_NOTHING = ("checkpoint", "model", "pytorch_model", "weights")
_LONGEST = 40


def weights_name(checkpoint: str) -> str:
    """Short for a checkpoint: the last part of its path, or of the folder where the file says nothing."""
    place = PurePath(checkpoint)
    if place.suffix in _WEIGHTS:
        place = place.parent if place.stem in _SAY_NOTHING else place.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", place.name)[:_LONGEST]


def told(checkpoint: str) -> str:
    """What a card says of a checkpoint: a name on the hub as it is, of a place on this machine the last part."""
    hub = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", checkpoint) and not Path(checkpoint).exists()
    return checkpoint if hub else weights_name(checkpoint)
