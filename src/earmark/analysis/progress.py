"""A bar on stderr for loops that may take more than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def steps(items: Iterable[Item], title: str, unit: str, *, total: int | None = None, shown: bool) -> Iterator[Item]:
    """The items, with a bar that appears after two seconds and disappears at the end, when it is `shown`."""
    if not shown:
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(items, desc=title, unit=unit, total=total, delay=2.0, leave=False, file=sys.stderr)
