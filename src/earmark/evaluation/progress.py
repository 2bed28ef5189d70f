"""Progress of long work, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from earmark.evaluation.options import Options


@contextmanager
def progress_bar(options: Options, total: float, title: str, unit: str) -> Iterator[Any]:
    """A progress bar on stderr that appears only when the work takes over two seconds."""
    if not options.progress:
        yield lambda _: None
        return
    from tqdm import tqdm

    shape = "{l_bar}{bar}| {elapsed} so far, {remaining} left"
    with tqdm(total=total, desc=title, unit=unit, delay=2.0, leave=False, bar_format=shape) as bar:
        yield bar.update
