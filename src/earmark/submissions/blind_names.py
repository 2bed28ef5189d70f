"""Names that a reader takes for a blind subset, which only the host can measure."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from earmark.definitions import BLIND
from earmark.scores.spelling import without_sample
from earmark.submissions.texts import likeness, lookalike


class BlindNames:
    """The blind subsets of a board by what their names look like.

    A name that a reader takes for a blind one is no other subset: case, accents, blanks, hyphens, letters of other
    scripts, and 1, l and I or 0 and O make no difference, and neither does a mean over it. Names that the board's
    definition has for its `public` subsets are those.
    """

    def __init__(self, blind: Collection[str], public: Collection[str] = ()) -> None:
        self._blind, self._public = frozenset(blind), frozenset(public) - frozenset(blind)
        self._alike = {lookalike(name): name for name in (BLIND, *sorted(self._blind))}
        self.meant = lru_cache(4096)(self._meant)

    def __bool__(self) -> bool:
        return bool(self._blind)

    def _meant(self, subset: str) -> str:
        """The blind subset, or "blind" for their mean, that a reader takes a name for; "" where it is another."""
        whole = without_sample(subset)
        if whole in self._public:
            return ""
        _, colon, name = likeness(whole).rpartition(":")
        meant = self._alike.get(lookalike(name), "") if name.strip() else ""
        return "" if meant == BLIND and not colon and meant not in self._blind else meant
