"""What is wrong with a document, as values: a code, where, and one sentence with the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from earmark.errors import InputError
from earmark.wording import counted


class Problem(NamedTuple):
    """One thing that is wrong with a document.

    `code` is a stable word for programs, `message` the sentence for people. `pointer` says where it is, as a JSON
    pointer such as `/scores/3/value`; `field` is the column or the key, and `row` the number of the score row (from 1).
    """

    code: str
    message: str
    pointer: str = ""
    field: str = ""
    row: int | None = None


class Refused(InputError):
    """A document that breaks the rules. `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Plain tuples go to Exception, so that the error survives pickling between processes.
        super().__init__([tuple(problem) for problem in problems])
        self.problems = tuple(Problem(*problem) for problem in problems)

    def __str__(self) -> str:
        more = len(self.problems) - 1
        others = f" There {'is' if more == 1 else 'are'} {counted(more, 'more problem')}." if more else ""
        text = f"{self.problems[0].message}{others}"
        return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)
