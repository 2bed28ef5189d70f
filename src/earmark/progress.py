"""The one progress bar: on stderr, where it is asked for and the work takes longer than two seconds.

A terminal gets a bar that disappears at the end, a notebook a widget, a log file a line every ten seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

__all__ = ["Bar", "Progress", "progress_bar", "tracked"]

Item = TypeVar("Item")

Progress: TypeAlias = bool | Callable[[int, int], None]
"""True: a bar on stderr. A function: called with (done, total). False: nothing."""

DELAY = 2.0  # seconds


class Bar:
    """How far the work is: call it with what was just done, or tell it the count that was `reach`ed."""

    def __init__(self, show: Callable[[Any, str], object]) -> None:
        self.done: float = 0
        self._show = show

    def __call__(self, step: float = 1, note: str = "") -> None:
        self.done += step
        self._show(self.done, note)

    def reach(self, done: float) -> None:
        self(done - self.done)


@contextmanager
def progress_bar(progress: Progress, total: float | None, title: str, unit: str = "") -> Iterator[Bar]:
    """A bar to be called as work is done.

    Args:
        progress: Whether a bar is shown on stderr; or a function that is called with (done, total) instead.
        total: How much work there is; None where nobody knows.
        title: What the work is, printed before the bar.
        unit: What is counted, printed where the total is not known.
    """
    if progress is not True:
        yield Bar(lambda done, note: progress(done, total) if progress else None)  # type: ignore[arg-type]
        return
    tqdm, terminal = _bar_for(sys.stderr.isatty())
    shape = "{l_bar}{bar}|" if terminal else "{desc}: {percentage:.0f} %,"
    with tqdm(
        total=total, desc=title, unit=f" {unit}", delay=DELAY, leave=False, miniters=1,
        file=sys.stderr if terminal else _Lines(), mininterval=0.1 if terminal else 10, maxinterval=60,
        bar_format=None if total is None else shape + " {elapsed} so far, {remaining} left{postfix}",
    ) as bar:  # fmt: skip

        def show(done: float, note: str) -> None:
            if note:
                bar.set_postfix_str(note, refresh=False)
            bar.update(done - bar.n)

        yield Bar(show)


def _bar_for(terminal: bool) -> tuple[Any, bool]:
    """The kind of bar, and whether it is redrawn in its place: on a terminal, and in a notebook that has widgets."""
    if _in_kernel() and not terminal:
        with suppress(ImportError):
            import_module("ipywidgets")
            return import_module("tqdm.notebook").tqdm, True
    return import_module("tqdm").tqdm, terminal


def _in_kernel() -> bool:
    """Whether a notebook runs this; a kernel's package may be loaded by others too."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def tracked(
    items: Iterable[Item], title: str, unit: str = "", *, progress: bool, total: int | None = None
) -> Iterator[Item]:
    """The items, with a bar that advances as they are taken."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress_bar(progress, total, title, unit) as bar:
        for item in items:
            yield item
            bar()


class _Lines:
    """A stream for tqdm that prints each state of the bar as a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            sys.stderr.write(text.strip() + "\n")

    def flush(self) -> None:
        sys.stderr.flush()
