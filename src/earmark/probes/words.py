"""Wrong words: how two transcripts are made comparable, and how many edits lie between them.

Normalisation. Unicode compatibility forms (NFKC), lower case, every mark that is not a letter, a digit or an
apostrophe inside a word becomes a space, and spaces are one. Numbers stay as they are written: "20" and "twenty" are
different words. Nothing else is done, so that two people get the same count.

The word error rate of a set is (substitutions + deletions + insertions) / words of the reference, both summed over
all clips: long sentences count for more. It is 0 at best and may pass 1. A clip whose reference has no words adds its
insertions and no words; a set without any words has no rate.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import require

__all__ = ["Edits", "edits", "normalised"]

_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_NO_WORD = re.compile(r"[^\w']|_|(?<!\w)'|'(?!\w)")


def normalised(text: str) -> str:
    """Words in one spelling, with single spaces between them."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).lower()
    return " ".join(_NO_WORD.sub(" ", plain).split())


class Edits(NamedTuple):
    """For each clip: words that were wrong, missing or too many, and words of the reference."""

    errors: NDArray[np.float64]
    words: NDArray[np.float64]

    @property
    def rate(self) -> float | None:
        """Errors over words of the whole set; None when there are no words."""
        return float(self.errors.sum() / self.words.sum()) if self.words.sum() else None


def edits(references: Sequence[str], heard: Sequence[str]) -> Edits:
    """The least edits that turn each reference into what was heard, counted in words."""
    jiwer = require("jiwer", "Word error rates", "codecs")
    errors, words = np.zeros(len(references)), np.zeros(len(references))
    for place, (reference, found) in enumerate(zip(map(normalised, references), map(normalised, heard), strict=True)):
        words[place] = len(reference.split())
        if not reference:  # jiwer takes no empty reference
            errors[place] = len(found.split())
            continue
        counts = jiwer.process_words(reference, found)
        errors[place] = counts.substitutions + counts.deletions + counts.insertions
    return Edits(errors, words)
