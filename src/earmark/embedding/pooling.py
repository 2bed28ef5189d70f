"""Frames [T, D] of a clip to one vector: the poolings, their padding rules, and the papers' codes for them.

    name               takes            gives    code
    mean_time          every frame      [D]      MT    what the model put out, padding included
    masked_mean_time   valid frames     [D]      VMT
    max_time           valid frames     [D]      XT    element by element
    first_time         frame 0          [D]      T
    last_time          last valid       [D]      LT
    attention_time     valid frames     [D]      NT    mean weighted by each frame's Euclidean norm
    mean_feature       every frame      [T]      MF
    first_feature      every frame      [T]      F     feature 0 over time
    flatten            every frame      [D * T]        feature-major: all of feature 0, then all of feature 1, ...

`a+b` concatenates: `mean_time+mean_feature` is MTF, `first_time+first_feature` is TF.

Padding. Where T varies between clips, the last three give vectors of different lengths. They are padded with zeros in
time to the longest clip of the set that is embedded together: `mean_feature` and `first_feature` at their end,
`flatten` at the end of every feature, so that a feature has the same columns in all clips. In a concatenation each part
is padded by itself, so that the parts of all clips stand in the same columns. Padding comes after everything the
extractor does (for log-mel: after the decibels). A vector therefore depends on the longest clip of its set, but
only in the number of its zeros.

    flatten of two frames and of three, features a and b:    a0 a1 0  b0 b1 0
                                                             a0 a1 a2 b0 b1 b2

Where every frame is zero, `attention_time` has no weights and falls back to the plain mean.
Sums are made in float64; vectors are float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.embedding import on_device
from earmark.embedding.pca import Reduction
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.extractors.contract import ExtractorCard, Frames

Vector = NDArray[np.float32]

NOT_FINITE = "the model returned NaN or infinity"


class Pooling(NamedTuple):
    """A pooling as data: what it does, whether its length follows T, and its code in tables."""

    reduce: Callable[[NDArray[Any], int], NDArray[Any]]
    follows_time: bool
    code: str


class Variant(NamedTuple):
    """A pooling in its canonical spelling, how many principal components, or None, and whether they are whitened."""

    pooling: str
    pca: int | None = None
    whiten: bool = False


class Block(NamedTuple):
    """How the columns of a part are made up: so many rows one after another, each of so many columns."""

    rows: int
    columns: int

    @property
    def width(self) -> int:
        return self.rows * self.columns


def _mean(values: NDArray[Any]) -> NDArray[Any]:
    return values.mean(axis=0, dtype=np.float64)  # type: ignore[no-any-return]


def _attention(values: NDArray[Any]) -> NDArray[Any]:
    wide = values.astype(np.float64)
    norms = np.sqrt(np.einsum("td,td->t", wide, wide))
    return norms @ wide / norms.sum() if norms.any() else _mean(values)


POOLINGS: dict[str, Pooling] = {
    "mean_time": Pooling(lambda values, valid: _mean(values), False, "MT"),
    "masked_mean_time": Pooling(lambda values, valid: _mean(values[:valid]), False, "VMT"),
    "max_time": Pooling(lambda values, valid: values[:valid].max(axis=0), False, "XT"),
    "first_time": Pooling(lambda values, valid: values[0], False, "T"),
    "last_time": Pooling(lambda values, valid: values[valid - 1], False, "LT"),
    "attention_time": Pooling(lambda values, valid: _attention(values[:valid]), False, "NT"),
    "mean_feature": Pooling(lambda values, valid: values.mean(axis=1, dtype=np.float64), True, "MF"),
    "first_feature": Pooling(lambda values, valid: values[:, 0], True, "F"),
    "flatten": Pooling(lambda values, valid: values.T.ravel(), True, ""),
}

_PAIRS = {"MTF": "mean_time+mean_feature", "TF": "first_time+first_feature"}
_CODES = {**{one.code: name for name, one in POOLINGS.items() if one.code}, **_PAIRS}
ALIASES: dict[str, str] = {
    **_CODES,
    "mean_feat": "mean_feature",
    "first_feat": "first_feature",
    "first_frame": "first_time",
    "concat_mean_time_feat": "mean_time+mean_feature",
    "mean_row_col": "mean_time+mean_feature",
    "concat_first_time_feat": "first_time+first_feature",
    "first_row_col": "first_time+first_feature",
}


# --- names ---------------------------------------------------------------------------------------------------


def parse(text: str) -> Variant:
    """Read `mean_time`, `a+b`, a code such as MTF, each with ` D100` (` D100W`: whitened) or not.

    >>> parse("MTF D100")
    Variant(pooling='mean_time+mean_feature', pca=100, whiten=False)
    """
    found = re.fullmatch(r"\s*(\S+?)(?:\s+D(\d+)(W?))?\s*", text)
    if found is None:
        raise UsageError(f"{text!r} is not a pooling: write a name, a+b, or a code such as MTF D100.")
    if found[2] is not None and int(found[2]) < 1:
        raise UsageError("D0 asks for no components: leave it out for no PCA.")
    return Variant("+".join(atoms(found[1])), None if found[2] is None else int(found[2]), bool(found[3]))


def atoms(pooling: str) -> tuple[str, ...]:
    """The single poolings that a name, an alias or a concatenation is made of."""
    text = pooling.strip()
    names: list[str] = []
    for word in ALIASES.get(text, text).split("+"):
        for name in ALIASES.get(word, word).split("+"):
            if name not in POOLINGS:
                raise UsageError(
                    f"There is no pooling {word!r}.{did_you_mean(word, [*POOLINGS, *ALIASES])} "
                    f"Known: {', '.join(POOLINGS)}; a+b concatenates."
                )
            names.append(name)
    return tuple(names)


def system_code(card: ExtractorCard, pooling: str, pca: int | None = None, whiten: bool = False) -> str:
    """How tables name a system: EWMTF D100, M D30, M D30W. No pooling is named for `flatten` and for clip-level models.

    Where extractor or pooling has no code, names are written out: `mymodel mean_time D30`.
    """
    name = "+".join(atoms(pooling))
    codes = {canonical: code for code, canonical in _CODES.items()}
    short = card.short_name or card.name
    if name != "flatten" and card.frame_rate is not None:
        short += codes[name] if card.short_name and name in codes else f" {name}"
    return f"{short} {Reduction(pca, whiten).code}" if pca else short


# --- vectors -------------------------------------------------------------------------------------------------


def pool(frames: Frames, names: Sequence[str]) -> list[Vector]:
    """One vector for each of the single poolings `names`, from one clip's frames.

    Raises InputError for frames that are not [T, D] with at least one valid frame, or not finite.
    """
    (started,) = start_pooling([(frames, names)])
    return started()


def start_pooling(wanted: Sequence[tuple[Frames, Sequence[str]]]) -> list[Callable[[], list[Vector]]]:
    """`pool` of many frames, each with its poolings, as functions that give the vectors, or raise.

    Frames that are tensors are pooled at once, where they are, and their vectors are sent back together; arrays are
    pooled when they are asked for.
    """
    started: list[Callable[[], list[Vector]]] = []
    staying: list[int] = []
    for number, (frames, names) in enumerate(wanted):
        started.append(partial(_pool, frames, names))
        if on_device.is_tensor(frames.values) and _has_shape(frames):
            staying.append(number)
    if staying:
        arriving = on_device.start_pooling([wanted[number] for number in staying])
        for number, vectors in zip(staying, arriving, strict=True):
            started[number] = partial(_finite, vectors)
    return started


def _finite(arriving: Callable[[], list[Vector] | None]) -> list[Vector]:
    vectors = arriving()
    if vectors is None:
        raise InputError(NOT_FINITE)
    return vectors


def _has_shape(frames: Frames) -> bool:
    try:
        _check_shape(frames)
    except InputError:  # to be raised when the vectors are asked for
        return False
    return True


def _pool(frames: Frames, names: Sequence[str]) -> list[Vector]:
    _check_shape(frames)
    values, valid = frames
    if not np.isfinite(values).all():
        raise InputError(NOT_FINITE)
    # A copy: a view of the frames would keep all of them in memory.
    return [np.array(POOLINGS[name].reduce(values, valid), dtype=np.float32) for name in names]


def _check_shape(frames: Frames) -> None:
    shape, valid = tuple(frames.values.shape), frames.valid
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"the model returned frames of shape {shape}, not [T, D] with T and D at least 1")
    if not 1 <= valid <= shape[0]:
        raise InputError(f"the model says {valid} of {shape[0]} frames are valid")


def rows_of(name: str, features: int) -> int:
    """How many rows over time a single pooling lays one after another: `flatten` one for each feature."""
    return features if name == "flatten" else 1


def lay(target: NDArray[np.float32], vector: Vector, rows: int = 1) -> None:
    """Write a vector made of `rows` rows into `target`, zeros that may be longer: each row at the start of its own.

    Raises InputError when either cannot be cut into so many rows.
    """
    if len(vector) % rows or len(target) % rows:
        raise InputError(f"a flattened vector of {len(vector)} numbers is not made of {rows} features")
    target.reshape(rows, -1)[:, : len(vector) // rows] = vector.reshape(rows, -1)


def stack(vectors: list[Vector], rows: int = 1) -> NDArray[np.float32]:
    """A matrix of vectors, padded in time: each of their `rows` rows with zeros at its end, to the longest.

    Empties the list as it goes, to save memory.
    """
    width = max((len(vector) for vector in vectors), default=0)
    matrix = np.zeros((len(vectors), width), np.float32)
    for row in range(len(vectors) - 1, -1, -1):
        lay(matrix[row], vectors.pop(), rows)
    return matrix


def widened(matrix: NDArray[Any], blocks: Sequence[Block], wanted: Sequence[Block]) -> NDArray[Any]:
    """Vectors of one set padded in time to the blocks of a set with longer clips."""
    if tuple(blocks) == tuple(wanted):
        return matrix
    out = np.zeros((len(matrix), sum(block.width for block in wanted)), matrix.dtype)
    start = place = 0
    for block, wide in zip(blocks, wanted, strict=True):
        part = matrix[:, start : start + block.width].reshape(len(matrix), block.rows, block.columns)
        target = out[:, place : place + wide.width].reshape(len(matrix), wide.rows, wide.columns)
        target[:, :, : block.columns] = part
        out[:, place : place + wide.width] = target.reshape(len(matrix), -1)
        start, place = start + block.width, place + wide.width
    return out


def join(pooling: str, matrices: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """The matrix of a concatenation from those of its parts; a single pooling's is returned as it is."""
    parts = [matrices[name] for name in atoms(pooling)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
