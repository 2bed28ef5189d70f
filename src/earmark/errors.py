"""What can go wrong, as a few types. A message is one sentence: the thing, what is wrong, and the remedy.

The command line prints the message alone and leaves with `exit_code`; a traceback means a defect in Earmark.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TextIO

__all__ = [
    "Changed",
    "EarmarkError",
    "Ended",
    "InputError",
    "MissingExtra",
    "Unreachable",
    "UsageError",
    "absent",
    "did_you_mean",
    "no_exit",
    "quoted",
    "require",
    "results_alone",
    "strangers_code",
]


class EarmarkError(Exception):
    """Every error that Earmark raises on purpose. Its text is one printable line.

    >>> try:
    ...     earmark.evaluate(vectors, labels)
    ... except earmark.EarmarkError as error:
    ...     print(error)
    """

    exit_code = 1

    def __str__(self) -> str:
        # Messages quote file names and cells, and those must not break the line or steer a terminal.
        return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in super().__str__())


class InputError(EarmarkError):
    """The data or the file is not usable."""


class Unreachable(InputError):
    """A server that does not answer, or no longer. It ends a run: a clip that lies there is not a bad one."""


class Ended(InputError):
    """A stranger's code would have ended the program."""


class Changed(Unreachable):
    """A file that is not the one a run has hashed. It ends the run: results would lie under another sound's hash."""


class UsageError(EarmarkError):
    """The call or the command line is wrong; the data may be fine."""

    exit_code = 2


class MissingExtra(EarmarkError):
    """An optional dependency is not installed: `MissingExtra("Parquet files", "parquet")`."""

    def __init__(self, thing: str, extra: str) -> None:
        # Both arguments go to Exception, so that the error survives pickling between worker processes.
        super().__init__(thing, extra)
        self.thing = thing
        self.extra = extra

    def __str__(self) -> str:
        return f'{self.thing} need `pip install "earmark[{self.extra}]"`.'


class _Aside:
    """Inside it, and where that is wanted, what is printed goes to stderr, also by child processes; for all threads."""

    def __init__(self) -> None:
        self.wanted = False
        self._lock = threading.Lock()
        self._inside = 0
        self._kept: tuple[int, TextIO] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self.wanted and self._kept is None:
                sys.stdout.flush()
                self._kept = os.dup(1), sys.stdout
                os.dup2(2, 1)
                sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._kept is not None:
                file, sys.stdout = self._kept
                self._kept = None
                os.dup2(file, 1)
                os.close(file)


_ASIDE = _Aside()


def results_alone() -> None:
    """Keep standard output for results from now on: what strangers print goes to stderr."""
    _ASIDE.wanted = True


@contextmanager
def no_exit() -> Iterator[None]:
    """Around calls of a stranger's model, codec, metric or generator: `sys.exit` there fails what was asked of it.

    `Ended` is then raised, and treated as any other error; an interrupt from the keyboard still ends the run. On the
    command line, whose standard output is for results, what a stranger prints goes to stderr (`results_alone`).
    """
    try:
        with _ASIDE:
            yield
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else f"1: {stop.code}"
        raise Ended(f"it ended the program (exit status {' '.join(str(status).split())[:300]})") from None


@contextmanager
def strangers_code(what: str, remedy: str = "") -> Iterator[None]:
    """Around code of others: whatever it raises, or that it ends the program, becomes an InputError of one sentence.

    The sentence begins with `what`, says what was raised, and ends with the remedy. Errors of Earmark's own pass.
    """
    try:
        with no_exit():
            yield
    except EarmarkError as error:
        if not isinstance(error, Ended):
            raise
        raise InputError(f"{what}: {error}.") from error
    except Exception as error:
        text = " ".join(str(error).split())[:300].rstrip(".")
        why = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise InputError(f"{what} ({why}): {remedy}." if remedy else f"{what}: {why}.") from error


def require(module: str, thing: str, extra: str) -> Any:
    """Import an optional module by its dotted name, or raise `MissingExtra(thing, extra)`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(thing, extra) from error


_MOST_COMPARED = 5000
"""Names that a misspelt one is compared with: a sentence is not worth more."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ' Did you mean "x"?' for the nearest known name, or an empty string when none is near.

    The sentence starts with a space, so that it can follow any message. Case is ignored.
    """
    by_lower: dict[str, str] = {}
    for candidate in islice(known, _MOST_COMPARED):
        by_lower.setdefault(candidate.lower(), candidate)
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f' Did you mean "{by_lower[near[0]]}"?' if near else ""


def absent(name: str, present: Iterable[str], what: str, source: object) -> str:
    """A sentence about a name that a source does not have, with the first of those that it has."""
    names = list(present)
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"{source} has no {what} {quoted(name)}; it has {shown or 'none'}.{did_you_mean(name, names)}"


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return " The nearest are x, y and z.", with at most so many names, or an empty string when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in islice(known, _MOST_COMPARED)}
    near = [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.6)]
    if len(near) < 2:
        return f" The nearest is {near[0]}." if near else ""
    return f" The nearest are {', '.join(near[:-1])} and {near[-1]}."


def quoted(text: str, most: int = 60) -> str:
    """Text from a file in quotation marks, cut where it is long: whole files have stood in one cell."""
    return f'"{text}"' if len(text) <= most else f'"{text[:most]}…"'
