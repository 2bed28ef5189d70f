"""What a task is: a card, `listen` and `score`. No base class is needed; anything of this shape will do.

    clean clips -- listen --> Responses --+
                                          +-- score --> scores
    coded clips -- listen --> Responses --+

`listen` is the expensive half: a model hears clips. Its responses are plain text or numbers, to be kept by whoever
calls. `score` is cheap and compares the responses to the same clips before and after a codec. Scoring the clean clips
against themselves gives the row of no codec at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from earmark.cards import Card
from earmark.corpora.clips import Clip
from earmark.embedding.pooling import Block, widened
from earmark.errors import InputError
from earmark.progress import Progress
from earmark.scores import Row
from earmark.wording import counted


@dataclass(frozen=True)
class TaskCard(Card):
    """Facts about a task that listing and planning need without loading its model."""

    name: str  # as on the command line
    title: str = ""
    metrics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("all",)
    categories: tuple[str, ...] = ("speech",)  # the kinds of sound it makes sense for
    needs: tuple[str, ...] = ()  # of clips: "transcripts", "labels", "groups"
    model: str = ""  # what hears when nothing else is named
    extra: str = ""  # the optional dependency group that model needs
    licence: str = ""  # of the model's weights
    citation: str = ""
    version: str = "1"  # part of the cache key: raise it when what is heard changes
    notes: str = ""


@dataclass(frozen=True, eq=False)
class Responses:
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
            count = "none" if answers is None else str(len(answers))
            raise InputError(f"There are {counted(len(self.ids), 'clip')} and {count} texts or vectors: give one each.")

    def rows(self) -> dict[str, int]:
        """The row of each clip that was heard."""
        return {name: row for row, name in enumerate(self.ids)}

    def apart(self) -> Iterator[Responses]:
        """The answer for each clip by itself, without the zeros that bring it to the length of the longest."""
        for row, name in enumerate(self.ids):
            if self.vectors is None:
                yield replace(self, ids=(name,), texts=self.texts and (self.texts[row],), failures={})
            else:
                vector, blocks = _without_padding(self.vectors[row], self.blocks)
                yield replace(self, ids=(name,), vectors=vector[None], blocks=blocks, failures={})

    @classmethod
    def joined(cls, parts: Sequence[Responses]) -> Responses:
        """Answers of several sets of clips as those of one, in order; of what they share the first part's."""
        ids = tuple(name for part in parts for name in part.ids)
        failures = {name: why for part in parts for name, why in part.failures.items()}
        if parts[0].vectors is None:
            texts = tuple(text for part in parts for text in part.texts or ())
            return replace(parts[0], ids=ids, texts=texts, failures=failures)
        blocks = _widest(parts)
        vectors = np.concatenate(align_widths(parts))
        return replace(parts[0], ids=ids, vectors=vectors, blocks=blocks, failures=failures)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays for `numpy.savez`: `meta` is JSON in bytes, `vectors` is there when there are vectors. No pickles."""
        meta = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "vectors"}
        meta["failures"] = dict(self.failures)
        arrays: dict[str, NDArray[Any]] = {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}
        return arrays if self.vectors is None else {**arrays, "vectors": self.vectors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Responses:
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


def align_widths(parts: Sequence[Responses]) -> list[NDArray[np.float32]]:
    """The vectors of each part, padded in time to the longest clip of all parts.

    Raises InputError where widths differ and nothing says how the columns are made up.
    """
    vectors = [part.vectors for part in parts if part.vectors is not None]
    widest = _widest(parts)
    if widest:
        return [widened(matrix, part.blocks, widest) for matrix, part in zip(vectors, parts, strict=True)]
    widths = sorted({matrix.shape[1] for matrix in vectors})
    if len(widths) > 1:
        raise InputError(
            f"Vectors of {' and '.join(map(str, widths))} numbers cannot be compared: choose a pooling whose length "
            "does not follow the clip's, such as mean_time."
        )
    return vectors


def _widest(parts: Sequence[Responses]) -> tuple[Block, ...]:
    """The blocks that hold those of every part; none where the parts are not made up alike."""
    if len({tuple(block.rows for block in part.blocks) for part in parts}) != 1:
        return ()
    return tuple(
        Block(blocks[0].rows, max(block.columns for block in blocks))
        for blocks in zip(*(part.blocks for part in parts), strict=True)
    )


def _without_padding(
    vector: NDArray[np.float32], blocks: Sequence[Block]
) -> tuple[NDArray[np.float32], tuple[Block, ...]]:
    kept, parts, start = [], [], 0
    for block in blocks:
        part = vector[start : start + block.width].reshape(block.rows, block.columns)
        filled = np.flatnonzero(part.any(axis=0))
        part = part[:, : filled[-1] + 1 if len(filled) else 1]
        kept.append(Block(*part.shape))
        parts.append(part.ravel())
        start += block.width
    return (np.concatenate(parts), tuple(kept)) if blocks else (vector, ())


@runtime_checkable
class Task(Protocol):
    """`clips` of `listen` are clean or coded; those of `score` are the clean ones, with labels and groups.

    A task that states `each_clip = True` promises that what it hears of a clip does not depend on the clips beside it:
    a run then keeps it by the clip, and lets it hear clips of several codecs at once.
    """

    card: TaskCard

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses: ...

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]: ...
