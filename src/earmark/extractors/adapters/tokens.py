"""A tokenizer as an extractor: what `encode` says of a clip, whole numbers [codebooks, frames], as vectors.

    embed(tokens)       what the tokenizer itself makes of them: [frames, D], or [D] for the clip
    codebook_vectors    arrays [size, D], one for each codebook: the entries of a frame are added, as residual ones are
    neither             how often each entry occurs in the clip: one vector of as many numbers as there are entries

The first that the tokenizer offers is taken. Entry 7 is not nearer to 8 than to 700, so the numbers themselves are
never compared. A codec of tokens may be heard in the same way; whether it decodes does not matter here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_array, as_frames
from earmark.registry import Registry

TOKENIZERS: Registry[Any] = Registry(
    "tokenizer",
    "earmark.extractors",
    {},
    methods=("encode",),
    shape="a tokenizer with `encode`",
    remedy="`encode`: give it one that takes a waveform and returns tokens",
)


def is_tokenizer(thing: Any) -> bool:
    """Whether something that was imported encodes and is no extractor of its own."""
    return callable(getattr(thing, "encode", None)) and not callable(getattr(thing, "extract", None))


class Tokens:
    """The tokens of a stranger's tokenizer as frames. Other attributes are the tokenizer's own."""

    def __init__(self, model: Any, name: str = "") -> None:
        self.model = model
        stated = getattr(model, "card", None)
        self.has_own_card = stated is not None
        facts = _facts(stated)
        sizes = facts.get("codebook_sizes") or getattr(model, "codebook_sizes", None)
        self._sizes: tuple[int, ...] = tuple(sizes or ())
        known = {field: value for field, value in facts.items() if field in ExtractorCard.field_names()}
        name = str(known.pop("name", "") or name or type(model).__name__)
        self.card = ExtractorCard.read(name, known) if facts else ExtractorCard.of(model, name)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [as_frames([self.vectors_of(waveform)], 1)[0] for waveform in waveforms]

    def vectors_of(self, waveform: Waveform) -> NDArray[Any]:
        """Vectors [frames, D] of a clip, or one for the whole of it."""
        tokens = self._tokens(self.model.encode(waveform))
        if callable(getattr(self.model, "embed", None)):
            return np.asarray(as_array(self.model.embed(tokens)))
        tables = getattr(self.model, "codebook_vectors", None)
        return self._shares(tokens) if tables is None else self._sums(tokens, [as_array(table) for table in tables])

    def _tokens(self, answer: Any) -> NDArray[np.int64]:
        """[codebooks, frames] from what `encode` returned: an array, or something that has `tokens`."""
        tokens = as_array(getattr(answer, "tokens", answer)) if not isinstance(answer, bytes | list) else None
        if tokens is None or tokens.dtype.kind not in "iu" or tokens.ndim not in (1, 2) or not tokens.size:
            raise InputError(
                f"{self.card.name}: encode returned {type(answer).__name__}, and only tokens can be heard: return "
                "whole numbers [codebooks, frames]."
            )
        return np.atleast_2d(tokens).astype(np.int64)

    def _sums(self, tokens: NDArray[np.int64], tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        shapes = {table.shape[1:] for table in tables}
        if len(tables) < len(tokens) or len(shapes) != 1 or tables[0].ndim != 2:
            raise InputError(
                f"{self.card.name}: codebook_vectors must be an array [size, D] for each of the {len(tokens)} "
                "codebooks, all of the same D."
            )
        self._check(tokens, [len(table) for table in tables])
        return np.asarray(sum(table[row] for table, row in zip(tables, tokens, strict=False)))

    def _shares(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        if len(self._sizes) != len(tokens):
            raise InputError(
                f"{self.card.name}: there are tokens of {len(tokens)} codebooks and no vectors of them: give it "
                "`embed`, `codebook_vectors`, or codebook_sizes on its card."
            )
        self._check(tokens, self._sizes)
        counts = [np.bincount(row, minlength=size) for row, size in zip(tokens, self._sizes, strict=True)]
        return np.concatenate(counts).astype(np.float32) / np.float32(tokens.shape[1])

    def _check(self, tokens: NDArray[np.int64], sizes: Sequence[int]) -> None:
        for number, (row, size) in enumerate(zip(tokens, sizes, strict=False)):
            if int(row.min()) < 0 or int(row.max()) >= size:
                raise InputError(
                    f"{self.card.name}: codebook {number} has {size} entries and a token of {int(row.min())} to "
                    f"{int(row.max())}: state its true size."
                )

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # while unpickling, before __init__
            raise AttributeError(name)
        return getattr(self.model, name)


def _facts(stated: Any) -> dict[str, Any]:
    if is_dataclass(stated) and not isinstance(stated, type):
        return asdict(stated)
    return dict(stated) if isinstance(stated, Mapping) else {}
