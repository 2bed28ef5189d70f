"""A stranger's model as an extractor: it runs in a sealed cell, and nothing that it answers is believed.

    clip --> one message --> cell: the model, its package, nothing else --> one array, checked here --> frames

The cell sees the samples of one clip at a time: no name, no label, no number, nothing of how many there are. What comes
back is an array of a stated length, or a fault. A fault is one of a few fixed sentences: nothing that the stranger's
code chose can be in it, once it has heard what it may not tell. What it raised and printed is in `detail` and `log`,
which stay with the host, or are shown after a rehearsal, where all sounds were synthetic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from earmark.blind._manifest import RATES
from earmark.blind.packages import Package
from earmark.errors import InputError, UsageError
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.isolation import (
    BadMessage,
    Cell,
    CellDied,
    CellFailure,
    CellOverdue,
    Limits,
    Message,
    array_of,
    arrays_message,
    sealed,
)
from earmark.wording import counted

__all__ = ["FAULTS", "MOST_NUMBERS", "ConfinedModel", "ModelFault", "scrubbed", "worst"]

OPEN_SECONDS = 300.0
REAL_TIMES, SPARE_SECONDS = 5.0, 20.0
"""What a clip may take where the host does not say: so many times its length, and so many seconds more."""
MOST_NUMBERS = 1 << 24
"""Frames times features of a clip: 64 MB; a large Whisper gives two million."""
MOST_FEATURES = 1 << 17
LOG_LENGTH = 16_000
TOLD_CLIPS = 3
"""More failing clips than these are never counted."""
_FUNCTION = "earmark.blind._inside:answer"

FAULTS = {
    "open": "Your model could not be opened.",
    "nan": "Your model returned NaN or infinity on {clips}.",
    "shape": "Your model returned something else than frames [T, D] on {clips}.",
    "features": "Your model returned another number of features on {clips} than on others.",
    "too_large": "Your model returned more numbers than the host takes on {clips}.",
    "too_slow": "Your model took longer than the host allows on {clips}.",
    "too_long": "Your model took longer than the host allows for a whole job.",
    "out_of_memory": "Your model needed more memory than the host allows on {clips}.",
    "died": "The process of your model ended on {clips}.",
    "raised": "Your model raised an error on {clips}.",
    "malformed": "Your model's process sent something that is no answer on {clips}.",
    "too_much": "The vectors of your model are too long for the host: state a pooling that gives shorter ones.",
    "unscored": "The vectors of your model hold numbers that are too large to be compared.",
    "inconsistent": "Your model answered the same sound differently a second time.",
}
"""Everything that a participant can learn of a failure on blind recordings."""


class ModelFault(InputError):
    """A failure of a stranger's model: its kind and one of the fixed sentences. `detail` is for the host alone."""

    def __init__(self, kind: str, clips: int = 1, detail: str = "") -> None:
        self.kind, self.clips, self.detail = kind, min(clips, TOLD_CLIPS), detail
        self.sentence = FAULTS[kind].format(clips=counted(self.clips, "clip"))
        super().__init__(self.sentence)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.clips, self.detail)


class ConfinedModel:
    """The model of an unpacked package in a cell of its own, in the shape of any extractor.

    Args:
        package: what `earmark.blind.packages.unpack` returned.
        limits: of the cell.
        allowed: parts of the sandbox that may be missing on this machine.
        seconds_per_clip: what a clip may take; None: by its length.
        most_numbers: frames times features that are taken of a clip.
        features: how many it gave before, where it has been heard already.
        say: is given what the model printed and raised, line by line, for the host's log.

    Raises ModelFault("open") where it cannot be opened, UsageError where the sandbox lacks a part that is not allowed
    to be missing.
    """

    def __init__(
        self,
        package: Package,
        *,
        limits: Limits | None = None,
        allowed: Collection[str] = (),
        seconds_per_clip: float | None = None,
        most_numbers: int = MOST_NUMBERS,
        features: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if package.folder is None:
            raise UsageError("A package must be unpacked before its model can be opened.")
        self.package = package
        self._limits, self._allowed = limits or Limits(), frozenset(allowed)
        self._seconds, self._most = seconds_per_clip, most_numbers
        self._say = say or (lambda text: None)
        self._lock = threading.Lock()
        self._features = features
        self._cell: Cell | None = None
        self._opened = False
        self.peak = 0  # bytes of memory, as the model's own process says; for rehearsals
        self.card = ExtractorCard(name=package.entry, pooling=package.pooling, rate=package.rate or 16000)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the cell; the next clip starts another."""
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.close()
            if cell.printed:
                self._say(cell.printed)

    def renew(self) -> None:
        """A new cell, which has heard nothing."""
        with self._lock:
            self.close()
            self._open()

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        """The frames of clips, one message for each."""
        return [self._frames(waveform) for waveform in waveforms]

    def _frames(self, waveform: Waveform) -> Frames:
        with self._lock:
            if self._cell is None or not self._cell.alive:
                self.close()
                self._open()
            assert self._cell is not None
            message = arrays_message({"do": "hear", "most": self._most}, [np.asarray(waveform, np.float32)])
            seconds = self._seconds or REAL_TIMES * len(waveform) / self.card.rate + SPARE_SECONDS
            reply = self._asked(lambda cell: cell.call(message, seconds, 8 * self._most + 4096))
            return self._checked(reply)

    def _open(self) -> None:
        package = self.package
        names = ("kind", "folder", "model", "architecture", "setup", "options")
        head = {"do": "open", **{name: getattr(package, name) for name in names}}
        self._cell = sealed(_FUNCTION, readable=(str(package.folder),), limits=self._limits, allowed=self._allowed)
        try:
            self._cell.call(Message({"do": "ready"}), OPEN_SECONDS, 4096)
        except (CellDied, CellFailure, CellOverdue, BadMessage) as error:  # nothing of the package has run yet
            self.close()
            raise InputError(f"The host's sandbox does not start: {error}.") from error
        try:
            reply = self._asked(lambda cell: cell.call(Message(head), OPEN_SECONDS, 4096))
            rate = reply.head.get("rate")
            if type(rate) is not int or rate not in RATES or (package.rate or rate) != rate:
                wanted = f", and the package states {package.rate}" if package.rate else ""
                raise ModelFault("open", detail=f"its rate is {rate!a} Hz{wanted}")
        except ModelFault as fault:
            self.close()
            raise ModelFault("open", detail=fault.detail or fault.sentence) from None
        if not self._opened:
            parameters = reply.head.get("parameters")
            known = type(parameters) is int and 0 <= parameters < 1 << 50
            self.card = replace(self.card, rate=rate, parameters=parameters if known else None)
            self._opened = True
        elif rate != self.card.rate:
            self.close()
            raise ModelFault("inconsistent", detail=f"its rate was {self.card.rate} Hz and is {rate} Hz")

    def _asked(self, call: Callable[[Cell], Message]) -> Message:
        """The reply of the cell, whatever goes wrong being a fault."""
        assert self._cell is not None
        cell = self._cell
        try:
            return call(cell)
        except CellFailure as error:
            kind = {"MemoryError": "out_of_memory", "TooLarge": "too_large"}.get(error.kind, "raised")
            raise self._fault(kind, f"{error.kind}: {error}") from None
        except CellOverdue as error:
            raise self._fault("too_slow", str(error)) from None
        except CellDied as error:
            raise self._fault("died", str(error)) from None
        except BadMessage as error:  # no message, or one that is too long
            raise self._fault("malformed", str(error)) from None

    def _fault(self, kind: str, detail: str) -> ModelFault:
        self._say(detail)
        return ModelFault(kind, detail=detail)

    def _checked(self, reply: Message) -> Frames:
        """The frames of a reply: numbers, [T, D], finite, as many features as ever, some of them valid."""
        try:
            values = array_of(reply)
        except InputError as error:
            raise self._fault("malformed", str(error)) from None
        valid, peak = reply.head.get("valid"), reply.head.get("peak")
        if type(peak) is int and 0 <= peak < 1 << 50:
            self.peak = max(self.peak, peak)
        if values.ndim != 2 or 0 in values.shape or type(valid) is not int or not 1 <= valid <= len(values):
            raise self._fault("shape", f"an array of shape {values.shape}, {valid!a} of its frames valid")
        if values.size > self._most or values.shape[1] > MOST_FEATURES:
            raise self._fault("too_large", f"an array of shape {values.shape}")
        if not np.isfinite(values).all():
            raise self._fault("nan", "NaN or infinity")
        if self._features is None:
            self._features = values.shape[1]
        elif values.shape[1] != self._features:
            raise self._fault("features", f"{values.shape[1]} features, and {self._features} before")
        return Frames(values, valid)


def worst(faults: Iterable[ModelFault]) -> ModelFault:
    """What is told of several failing clips: the kind of the first, and how many there were of it, at most three."""
    found = list(faults)
    alike = [fault for fault in found if fault.kind == found[0].kind]
    return ModelFault(found[0].kind, len(alike), "\n".join(fault.detail for fault in found))


def scrubbed(text: str, most: int = LOG_LENGTH) -> str:
    """A stranger's text without what steers a terminal; of a long one the end, where errors are."""
    shown = "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)
    return shown if len(shown) <= most else f"…{shown[-most:]}"
