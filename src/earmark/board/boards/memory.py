"""What is made of a snapshot, once, when it is first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from earmark.board.boards.chosen import is_chosen
from earmark.board.boards.field import Field
from earmark.board.boards.groups import Group

Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

_FEW = 16  # states of tables of which the text of all lines is kept
_PASSING = 128
"""How much of what was made for means of readers' own choice is kept: there are more choices than memory holds."""


class _Nothing:
    """What stands for a thing that was not made yet."""


_NOTHING = _Nothing()


@dataclass(frozen=True, eq=False, kw_only=True)
class Memory:
    """Keeps what is made of something that never changes. Safe to use from many threads."""

    _made: dict[object, Any] = field(default_factory=dict, repr=False)
    _passing: dict[object, Any] = field(
        kw_only=True, default_factory=dict, repr=False
    )  # the last few, for readers' own choices
    _few: dict[object, Any] = field(default_factory=dict, repr=False)
    _locks: dict[object, threading.RLock] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def once(self, key: object, make: Callable[[], Made], *, passing: bool = False) -> Made:
        """What `make` returns, made once for this snapshot. Other things can be made meanwhile.

        What is `passing` is forgotten when much else of its kind was made since.
        """
        kept = self._passing if passing else self._made
        made: Made | _Nothing = kept.get(key, _NOTHING)
        if not isinstance(made, _Nothing):
            return made
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            made = kept.get(key, _NOTHING)
            if isinstance(made, _Nothing):
                made = kept[key] = make()
        if passing:
            self._forget()
        return made

    def few(self, key: object, make: Callable[[], Made]) -> Made:
        """What was made for a key, of which only the last few are kept: what is large and soon made again."""
        with self._lock:
            made: Made | _Nothing = self._few.pop(key, _NOTHING)
            if not isinstance(made, _Nothing):
                self._few[key] = made
                return made
        fresh = make()
        with self._lock:
            self._few[key] = fresh
            for old in list(self._few)[:-_FEW]:
                del self._few[old]
        return fresh

    def _forget(self) -> None:
        with self._lock:
            for key in list(self._passing)[:-_PASSING]:
                del self._passing[key]
                self._locks.pop(key, None)


Remembering = TypeVar("Remembering", bound=Memory)


def made_once(
    make: Callable[Concatenate[Remembering, Arguments], Made],
) -> Callable[Concatenate[Remembering, Arguments], Made]:
    """A function of a snapshot whose result is made once for each snapshot, and then kept with it."""

    @wraps(make)
    def kept(snapshot: Remembering, /, *args: Arguments.args, **options: Arguments.kwargs) -> Made:
        key = (make.__qualname__, args, *options.items())
        passing = any(_is_passing(arg) for arg in args)
        return snapshot.once(key, lambda: make(snapshot, *args, **options), passing=passing)

    return kept


def _is_passing(arg: object) -> bool:
    """Whether something was made for subsets of a reader's own choice."""
    group = arg.group if isinstance(arg, Field) else arg
    return isinstance(group, Group) and is_chosen(group.key)
