"""Why the board does not do what it was asked to: each kind has its own status in the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from earmark.errors import EarmarkError, InputError
from earmark.wording import counted

__all__ = ["Busy", "Conflict", "NotAllowed", "NotFound", "Problem", "Refused"]


class NotAllowed(EarmarkError):
    """This user may not do that: 403."""


class NotFound(EarmarkError):
    """There is no such thing on this board: 404."""


class Conflict(EarmarkError):
    """It does not fit what is there already: 409."""


class Busy(EarmarkError):
    """The database did not answer in time; nothing was stored, and the same call may be made again: 503."""


class Problem(NamedTuple):
    """One thing that is wrong with a document, and where: a JSON pointer such as `/scores/3/value`."""

    pointer: str
    sentence: str


class Refused(InputError):
    """A document that breaks the rules: 422. `problems` says everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Plain pairs go to Exception, so that the error survives pickling between processes.
        super().__init__([tuple(problem) for problem in problems])
        self.problems = tuple(Problem(*problem) for problem in problems)

    def __str__(self) -> str:
        first = self.problems[0]
        more = len(self.problems) - 1
        others = f" There {'is' if more == 1 else 'are'} {counted(more, 'more problem')}." if more else ""
        said = f"{first.sentence}{others}"
        return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in said)
