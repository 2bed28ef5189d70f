"""Documents of strangers, read and checked in a process that has a deadline, a bound on memory and nothing to take.

    reading = read_sealed(Question(data, "scores.parquet", limits=limits), seconds=20)

A file that is not what it seems may keep a parser busy, fill the memory or fell it. So bytes that somebody sent are
never parsed in the process that answers: a sealed cell (`earmark.isolation`) does it, with as many of its walls as this
machine has, without network and without files. What comes back is the document in Earmark's own form, plain JSON, and
what the rules say of it. A cell lives for many documents; one that is overdue is ended, and the next question starts
another.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import sys
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError
from earmark.isolation import (
    PARTS,
    BadMessage,
    Cell,
    CellDied,
    CellFailure,
    CellOverdue,
    Message,
    missing_parts,
    sealed,
)
from earmark.isolation import Limits as CellLimits
from earmark.submissions import Limits, Problem, read_document

if TYPE_CHECKING:
    from earmark.submissions import Document

_LOGGER = logging.getLogger("earmark.board")  # `logs` has it too, and loads what a cell does not need
_MEMORY = 1536 << 20
"""Bytes of address space: some 300 million are libraries', and the largest document takes a third of the rest."""
_CPU_SECONDS = 3600
_MOST_CALLS = 500
"""After so many documents a cell is ended: what they may have left behind in it goes too."""
_MOST_IDLE = 4
_KINDS: Mapping[str, type[EarmarkError]] = {"UsageError": UsageError, "MissingExtra": MissingExtra}


class Unread(InputError):
    """The process that read a document was ended, or ended by itself."""


@dataclass(frozen=True)
class Question:
    """A document to be read: its bytes, its name, and what it has to fulfil.

    `announced` are the subsets that hosts measure blind, by board; `form` what an author wrote beside the file.
    """

    data: bytes = field(repr=False)
    filename: str
    board: str = ""
    limits: Limits = field(default_factory=Limits)
    announced: Mapping[str, Collection[str]] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # definitions of boards that hosts wrote
    form: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Reading:
    """What a document is, and what the rules say of it."""

    board: str
    systems: tuple[str, ...]
    rows: int
    digest: str
    subsets: tuple[str, ...]  # single ones that it has measurements of, in its order
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    data: bytes = field(default=b"", repr=False)  # in Earmark's own form

    def document(self, limits: Limits) -> Document:
        """The document itself, from the form that was checked."""
        return read_document(self.data, limits=limits)


class Outcome(NamedTuple):
    """What became of a question: the reading, or the error that reading it here would have raised."""

    seconds: float  # of a processor that it took
    result: Reading | EarmarkError

    def reading(self) -> Reading:
        if isinstance(self.result, EarmarkError):
            raise self.result
        return self.result


# --- inside ----------------------------------------------------------------------------------------------------------


def answer(message: Message) -> Message:
    """What a cell answers: the outcome as JSON, and the document. Errors of the document are outcomes too."""
    started = time.process_time()
    try:
        outcome, data = _judge(message)
    except EarmarkError as error:
        named: Any = (error.thing, error.extra) if isinstance(error, MissingExtra) else (str(error),)
        outcome, data = {"error": [type(error).__name__, *named]}, b""
    outcome["seconds"] = time.process_time() - started
    return Message({}, (json.dumps(outcome).encode(), data))


def _judge(message: Message) -> tuple[dict[str, Any], bytes]:
    from earmark.definitions import from_plain
    from earmark.scores.spelling import is_single
    from earmark.submissions import check

    head = message.head
    limits = Limits(**head["limits"])
    document = _read(message.blobs[0], head, limits)
    written = head["known"].get(document.board)
    known = None if written is None else {document.board: from_plain(written)}
    verdict = check(document, known, limits, head["announced"].get(document.board, ()))
    subsets = dict.fromkeys(row.subset for row in document.scores if row.subset and is_single(row.subset))
    outcome = {
        "board": document.board, "systems": [card.name for card in document.cards], "rows": len(document.scores),
        "subsets": list(subsets), "problems": verdict.problems, "warnings": verdict.warnings,
        "digest": document.digest,
    }  # fmt: skip
    return outcome, b"" if verdict.problems else document.to_bytes()


def _read(data: bytes, head: Mapping[str, Any], limits: Limits) -> Document:
    if head["form"] is None:
        return read_document(data, filename=head["filename"], board=head["board"], limits=limits)
    from earmark.board.pages.card_form import document_from

    return document_from(head["form"], data, head["filename"], limits)


# --- outside ---------------------------------------------------------------------------------------------------------


class _Cells:
    """The cells of this process that have nothing to do; started when there is none, and ended with the process."""

    def __init__(self) -> None:
        self._idle: list[tuple[Cell, int]] = []
        self._busy: set[Cell] = set()
        self._lock = threading.Lock()
        atexit.register(self.close)

    def call(self, message: Message, seconds: float, most: int) -> Message:
        with self._lock:
            cell, calls = self._idle.pop() if self._idle else (_new_cell(), 0)
            self._busy.add(cell)
        fine = False
        try:
            reply = cell.call(message, seconds, most)
            fine = calls < _MOST_CALLS
            return reply
        finally:
            with self._lock:
                self._busy.discard(cell)
                fine = fine and len(self._idle) < _MOST_IDLE
                if fine:
                    self._idle.append((cell, calls + 1))
            if not fine:
                cell.close()

    def warm(self) -> None:
        """Have a cell that waits, so that the first who asks need not."""
        if not self._idle:
            with contextlib.suppress(EarmarkError):
                read_sealed(Question(b"[]", "document.json"), seconds=60.0)

    def close(self) -> None:
        """End all of them, also those that are at work."""
        with self._lock:
            cells = [*(cell for cell, _ in self._idle), *self._busy]
            self._idle.clear()
        for cell in cells:
            cell.close()


CELLS = _Cells()


@cache
def _parts_missing() -> frozenset[str]:
    return frozenset(missing_parts())


def _new_cell() -> Cell:
    function = f"{__name__}:answer"
    if sys.platform != "linux" or "limits" in _parts_missing():  # a deadline still holds there
        return Cell(function, confined=False)
    return sealed(function, limits=CellLimits(memory=_MEMORY, cpu_seconds=_CPU_SECONDS), allowed=PARTS)


def read_sealed(question: Question, *, seconds: float) -> Outcome:
    """Read and check a document within so many seconds; `Unread` where the process that read it had to be ended."""
    head = {
        "filename": question.filename, "board": question.board, "limits": asdict(question.limits),
        "known": dict(question.known),
        "announced": {board: sorted(names) for board, names in question.announced.items()},
        "form": None if question.form is None else dict(question.form),
    }  # fmt: skip
    most, began = 4 * question.limits.max_body + 10_000_000, time.monotonic()
    remedy = question.limits.remedy
    try:
        return _outcome(CELLS.call(Message(head, (question.data,)), seconds, most))
    except CellOverdue:
        sentence = f"The document took longer than {seconds:g} s to read; {remedy}."
    except (CellDied, CellFailure, BadMessage) as error:
        _LOGGER.warning("a document could not be read", extra={"fields": {"why": str(error)}})
        sentence = f"The document cannot be read within the bounds of this board; write it again, or {remedy}."
    return Outcome(time.monotonic() - began, Unread(sentence))


def _outcome(reply: Message) -> Outcome:
    plain = json.loads(reply.blobs[0])
    seconds = plain.pop("seconds")
    if "error" in plain:
        kind, *words = plain["error"]
        return Outcome(seconds, _KINDS.get(kind, InputError)(*words))
    problems = tuple(Problem(*each) for each in plain.pop("problems"))
    plain |= {name: tuple(plain[name]) for name in ("systems", "subsets", "warnings")}
    return Outcome(seconds, Reading(problems=problems, **plain, data=reply.blobs[1]))
