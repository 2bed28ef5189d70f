"""Whose a file is: Python's or an installed package's, Earmark's own, or the user's; and whether it holds data."""

from __future__ import annotations

import functools
import os
import sysconfig
from pathlib import Path

import earmark

__all__ = ["WEIGHTS", "is_data", "is_installed", "is_ours"]

WEIGHTS = frozenset(
    ".bin .ckpt .engine .gguf .h5 .hdf5 .jit .joblib .keras .mlmodel .model .msgpack .npy .npz .onnx .ort .pb "
    ".pdiparams .pdmodel .pkl .plan .pt .pth .safetensors .tflite .torchscript .ts".split()
)
"""Names of weights end so. Other text that a model holds is not taken for the name of a file."""

_CODE = frozenset(".dll .dylib .nbc .nbi .py .pyc .pyd .pyi .so".split())
_SYSTEM = tuple(
    f"/{name}/" for name in "dev etc lib lib64 proc run sys usr/lib usr/share/locale usr/share/zoneinfo".split()
)
_SECRETS = ("token", "stored_tokens", ".netrc")
_OURS = f"{Path(earmark.__file__).parent}{os.sep}"


def is_data(file: Path) -> bool:
    """Whether a file is one whose content may change a model's numbers: no code, no system file, no package's own."""
    name = file.name
    return not (
        file.suffix in _CODE
        or ".so." in name
        or name in _SECRETS
        or (file.parent.name == "refs" and file.parent.parent.name.startswith("models--"))  # of the hub's cache
        or is_installed(file)
        or is_ours(file)
        or "__pycache__" in file.parts
        or str(file).startswith(_SYSTEM)
        or not file.is_file()
    )


def is_ours(file: Path) -> bool:
    """Whether a file is part of Earmark."""
    return str(file).startswith(_OURS)


def is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, which count by their versions."""
    return not file.is_absolute() or str(file).startswith(_folders())


@functools.cache
def _folders() -> tuple[str, ...]:
    places = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(dict.fromkeys(f"{place}{os.sep}" for place in [*places, *(place.resolve() for place in places)]))
