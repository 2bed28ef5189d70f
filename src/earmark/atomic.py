"""Files that appear whole or not at all: written beside their place, forced to disk, renamed.

A reader never sees half a file, and a killed writer leaves no false one. A target elsewhere (`earmark.places`) gets the
whole file by one upload.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["replacing", "write_whole"]


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the target's place when the block ends well and is removed when it does not."""
    remote = _elsewhere(target)
    if remote is not None:
        with tempfile.TemporaryDirectory(prefix="earmark-") as folder:
            part = Path(folder) / remote.name
            yield part
            remote.upload(part)
        return
    # A link keeps pointing at its file. The part lies beside that file, since a rename cannot cross disks.
    final = target.resolve()
    part = final.with_name(f".{final.name[:80]}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        yield part
        with part.open("rb+") as stream:
            os.fsync(stream.fileno())
        part.replace(final)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def write_whole(target: Path, data: bytes) -> None:
    """Write bytes to the target, whole or not at all."""
    remote = _elsewhere(target)
    if remote is not None:
        remote.write_bytes(data)
        return
    with replacing(target) as part:
        part.write_bytes(data)


def _elsewhere(target: object) -> Any:
    """The target, where it is a path of another machine, which takes whole files itself; else None."""
    return None if isinstance(target, Path) else target
