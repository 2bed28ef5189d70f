"""Files that appear whole or not at all: written beside their place, forced to disk, renamed.

A reader never sees half a file, and a killed writer leaves no false one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

__all__ = ["replacing", "write_whole"]


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the target's place when the block ends well and is removed when it does not."""
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
    with replacing(target) as part:
        part.write_bytes(data)
