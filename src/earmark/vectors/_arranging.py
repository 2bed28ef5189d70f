"""Distances in another order, as one matrix: as they are, in memory, or in a temporary file where memory is short."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.vectors.distances import Distances, release_pages

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HIGHEST = 64  # rows copied at once
SPARE = 1 << 24  # bytes of disk that stay free


def arranged(distances: Distances, order: Ints, memory: int) -> tuple[Array, Floats, Callable[[], None]]:
    """The distances of the items of `order` to each other, [n, n]; the largest of each row; what lets go of pages.

    Items in the order of the matrix are not copied. A copy that takes more than half of `memory` (bytes) is written to
    a temporary file, which is gone with the process, and mapped from there.
    """
    values, n = distances.values, len(order)
    blocks = _blocks(distances, order, memory)
    largest = np.empty(n)
    as_they_are = n == distances.n and distances.ready and bool((order == np.arange(n)).all())
    if as_they_are:
        for rows, block in blocks:
            largest[rows] = block.max(axis=1, initial=0.0)
            distances.release()
        return np.asarray(values), largest, distances.release
    dtype = np.float32 if values.dtype == np.float32 and distances.symmetrise != "mean" else np.float64
    size = n * n * np.dtype(dtype).itemsize
    if size <= memory // 2:
        copy = np.empty((n, n), dtype)
        for rows, block in blocks:
            copy[rows], largest[rows] = block, block.max(axis=1, initial=0.0)
            distances.release()
        return copy, largest, lambda: None
    _check_disk(size)
    with tempfile.TemporaryFile(prefix="earmark-distances-") as file:
        for rows, block in blocks:
            file.write(block.astype(dtype, copy=False).tobytes())
            largest[rows] = block.max(axis=1, initial=0.0)
            distances.release()
        file.flush()
        mapped = np.asarray(np.memmap(file, dtype, mode="r+", shape=(n, n)))
    return mapped, largest, lambda: release_pages(mapped)


def _blocks(distances: Distances, order: Ints, memory: int) -> Iterator[tuple[slice, Floats]]:
    height = int(np.clip(memory // 8 // (8 * max(len(order), 1)), 1, HIGHEST))
    for start in range(0, len(order), height):
        rows = slice(start, min(start + height, len(order)))
        yield rows, distances.block(order[rows], order)


def _check_disk(size: int) -> None:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < size + SPARE:
        raise InputError(
            f"Distances in the order of the classes take {size / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} GB "
            "free: allow more with --memory, or set TMPDIR to a folder with more space."
        )
