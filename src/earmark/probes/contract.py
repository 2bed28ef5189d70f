"""What a task is: a card, `listen` and `score`. No base class is needed; anything of this shape will do.

    clean clips -- listen --> Heard --+
                                      +-- score --> findings
    coded clips -- listen --> Heard --+

`listen` is the expensive half: a model hears clips. What it heard is plain text or numbers (`Heard`), to be kept by
whoever calls. `score` is cheap and compares what was heard of the same clips before and after a codec. Scoring the
clean clips against themselves gives the row of no codec at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.permutation import Null
from earmark.corpora.clips import Clip
from earmark.embed.pooling import Block, widened
from earmark.errors import InputError
from earmark.progress import Progress
from earmark.wording import counted

__all__ = ["RESAMPLES", "Finding", "Heard", "Pairs", "Task", "TaskCard", "brought_together", "paired"]

RESAMPLES = 300  # bootstrap draws behind every interval


@dataclass(frozen=True)
class TaskCard:
    """Facts about a task that listing and planning need without loading its model."""

    name: str  # as on the command line
    title: str = ""
    metrics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("all",)
    categories: tuple[str, ...] = ("speech",)  # the kinds of sound it makes sense for
    needs: tuple[str, ...] = ()  # of clips: "transcripts", "labels", "groups"
    model: str = ""  # what hears when nothing else is named
    extra: str = ""  # the optional dependency group that model needs
    alternatives: tuple[str, ...] = ()  # other models, as they follow the task's name and a colon
    licence: str = ""  # of the model's weights
    citation: str = ""
    version: str = "1"  # part of the cache key: raise it when what is heard changes
    notes: str = ""


class Finding(NamedTuple):
    """One score of a task, as a row of the score table wants it. A value, or a status and a reason.

    `n` counts clips. With status `ok` the reason says what else a reader should know (trials, clips left out).
    """

    metric: str
    protocol: str = "all"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    status: str = "ok"
    reason: str = ""
    baseline: float | None = None
    lift: float | None = None
    p_value: float | None = None
    distance: str = ""
    correction: str = "none"
    baseline_low: float | None = None
    baseline_high: float | None = None
    interval: str = ""
    unit: str = ""
    units: int | None = None
    comparisons: int | None = None
    shuffle: str = ""
    baseline_error: float | None = None

    @classmethod
    def measured(
        cls, metric: str, protocol: str, value: float, between: tuple[float | None, float | None], **more: Any
    ) -> Finding:
        """A value with its interval."""
        return cls(metric, protocol, value, between[0], between[1], **more)

    def against(self, luck: Null | None) -> Finding:
        """The same with what shuffled labels reach beside it, where that was computed."""
        if luck is None:
            return self
        return self._replace(
            baseline=luck.baseline, lift=luck.lift, p_value=luck.p_value,
            baseline_low=luck.low, baseline_high=luck.high,
        )  # fmt: skip

    @classmethod
    def not_applicable(cls, metric: str, protocol: str, reason: str) -> Finding:
        return cls(metric, protocol, n=0, status="not_applicable", reason=reason)


@dataclass(frozen=True, eq=False)
class Heard:
    """What a model made of clips: a text or a vector for each, and why some have neither.

    `ids` names the clips that were heard, in the order of `texts` or of the rows of `vectors`; `failures` maps the
    others to a reason. `names` are the columns of `vectors` where they have names (the classes of a classifier).
    `blocks` say how columns that follow a clip's length are made up, so that two sets can be brought to one width.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    vectors: NDArray[np.float32] | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    model: str = ""
    blocks: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        answers = self.texts if self.texts is not None else self.vectors
        if answers is None or len(answers) != len(self.ids):
            told = "none" if answers is None else str(len(answers))
            raise InputError(f"There are {counted(len(self.ids), 'clip')} and {told} texts or vectors: give one each.")

    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays for `numpy.savez`: `meta` is JSON in bytes, `vectors` is there when there are vectors. No pickles."""
        meta = {
            "ids": self.ids, "texts": self.texts, "failures": dict(self.failures), "names": self.names,
            "notes": self.notes, "model": self.model, "blocks": self.blocks,
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}
        return arrays if self.vectors is None else {**arrays, "vectors": self.vectors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Heard:
        """What `to_arrays` was given."""
        try:
            meta = json.loads(bytes(np.asarray(arrays["meta"], np.uint8)).decode())
            texts = meta["texts"]
            return cls(
                ids=tuple(meta["ids"]),
                texts=None if texts is None else tuple(texts),
                vectors=np.asarray(arrays["vectors"]) if "vectors" in arrays else None,
                failures=meta["failures"],
                names=tuple(meta["names"]),
                notes=tuple(meta["notes"]),
                model=meta["model"],
                blocks=tuple(Block(*block) for block in meta.get("blocks", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"What a task heard cannot be read back ({error}): listen again.") from error

    @classmethod
    def join(cls, parts: Iterable[Heard]) -> Heard:
        """Parts of one corpus, heard one after the other by the same model, as one."""
        parts = list(parts)
        if not parts:
            raise InputError("There is nothing to join: listen to at least one clip.")
        filled = [part for part in parts if part.ids] or parts[:1]
        first = filled[0]
        if len({(part.model, part.names, part.texts is None) for part in filled}) > 1:
            raise InputError("The parts were heard by different models: listen to all of them with one.")
        return cls(
            ids=tuple(name for part in parts for name in part.ids),
            texts=None if first.texts is None else tuple(text for part in filled for text in part.texts or ()),
            vectors=None if first.vectors is None else np.concatenate(brought_together(filled)),
            failures={name: why for part in parts for name, why in part.failures.items()},
            names=first.names,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            model=first.model,
            blocks=_longest(filled),
        )


def brought_together(parts: Sequence[Heard]) -> list[NDArray[np.float32]]:
    """The vectors of each part, padded in time to the longest clip of all parts.

    Raises InputError where widths differ and nothing says how the columns are made up.
    """
    wanted = _longest(parts)
    known = [part.vectors for part in parts if part.vectors is not None]
    widths = sorted({vectors.shape[1] for vectors in known})
    if wanted:
        return [widened(vectors, part.blocks, wanted) for vectors, part in zip(known, parts, strict=True)]
    if len(widths) > 1:
        raise InputError(
            f"Vectors of {' and '.join(map(str, widths))} numbers cannot be compared: choose a pooling whose length "
            "does not follow the clip's, such as mean_time."
        )
    return known


def _longest(parts: Sequence[Heard]) -> tuple[Block, ...]:
    """The blocks of the longest clip of all parts; none where a part does not tell its own."""
    if len({tuple(block.rows for block in part.blocks) for part in parts}) > 1:
        return ()
    alike = zip(*(part.blocks for part in parts), strict=True)
    return tuple(Block(blocks[0].rows, max(block.columns for block in blocks)) for blocks in alike)


@runtime_checkable
class Task(Protocol):
    """`clips` of `listen` are clean or coded; those of `score` are the clean ones, with labels and groups."""

    card: TaskCard

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard: ...

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]: ...


class Pairs(NamedTuple):
    """Clips heard both clean and coded, with their places in the two, and a sentence on those left out."""

    clips: list[Clip]
    clean: NDArray[np.int64]
    coded: NDArray[np.int64]
    left_out: str


def paired(clips: Sequence[Clip], clean: Heard, coded: Heard) -> Pairs:
    """The clips that both have heard, in the order of `clips`; coded clips bear the ids of the clean ones."""
    before, after = clean.places(), coded.places()
    kept = [clip for clip in clips if clip.id in before and clip.id in after]
    missing = [clip.id for clip in clips if clip.id not in before or clip.id not in after]
    left_out = ""
    if missing:
        first = missing[0]
        why = coded.failures.get(first) or clean.failures.get(first) or "it was not heard"
        left_out = f"{counted(len(missing), 'clip')} left out, first {first}: {why}"
    places = [[found[clip.id] for clip in kept] for found in (before, after)]
    return Pairs(kept, np.array(places[0], np.int64), np.array(places[1], np.int64), left_out)
