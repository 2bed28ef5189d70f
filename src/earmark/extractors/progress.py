"""How long work tells how far it is: a bar on stderr, the caller's own function, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "telling"]

Progress = bool | Callable[[int, int], None]
"""True: a bar on stderr once two seconds have passed. A function: called with (done, total). False: nothing."""


@contextmanager
def telling(progress: Progress, total: int, title: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A function to be called with the number of things done so far."""
    if progress is True:
        from tqdm import tqdm

        with tqdm(total=total, desc=title, unit=unit, delay=2.0, leave=False) as bar:
            yield lambda done: bar.update(done - bar.n) and None
    elif callable(progress):
        told = progress
        yield lambda done: told(done, total)
    else:
        yield lambda done: None
