"""The papers' printed results on a board, accepted and marked as printed."""

from __future__ import annotations

from typing import NamedTuple

from earmark.board.records import Submission
from earmark.board.storage import Store
from earmark.submissions.printed import PUBLISHED_BOARDS, published_document


class Loaded(NamedTuple):
    """What became of one printed set. `new`: it was not on the board before."""

    board: str
    systems: int
    rows: int
    new: bool
    submission: Submission


def load_published(store: Store, *, with_repeats: bool = False) -> list[Loaded]:
    """Put the printed results on the board, accepted and marked as printed. A second time changes nothing.

    Values that repeat another system's are shown and not ranked, unless `with_repeats` counts them as measurements.

    When a later version of Earmark reads a printed table better, its rows take the place of the earlier ones. A set
    that a moderator withdrew stays withdrawn.
    """
    papers = store.papers()
    loaded = []
    for board in PUBLISHED_BOARDS:
        document = published_document(board, with_repeats=with_repeats)
        key = f"published:{board}:{document.digest}"
        sent = store.submit(document, papers, idempotency_key=key)
        new = sent.state == "pending"
        if new:  # also after a load that was killed between the two
            sent = store.decide(sent.id, papers, accept=True)
        loaded.append(Loaded(board, len(sent.systems), sent.rows, new, sent))
    return loaded
