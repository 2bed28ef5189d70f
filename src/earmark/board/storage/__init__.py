"""Where the board keeps everything: a SQLite file or a PostgreSQL database, through SQLAlchemy and Alembic.

    store = Store(open_database("sqlite:///board.sqlite3"))
    ada = store.create_user("Ada")
    sent = store.submit(read_document(data, filename="scores.csv"), ada)      pending
    store.decide(sent.id, moderator, accept=True)                             its scores are live
    store.live_scores("vocsim")

Each call of the store is one transaction. Nothing is overwritten: a later accepted submission takes the place of the
scores it measures again, and when it is withdrawn the earlier ones count again. A call either happens whole, with its
line in the audit trail, or not at all. Refusals are `NotAllowed`, `NotFound`, `Conflict`, `Refused` (a document against
the rules) and `databases.Busy`.
"""

from __future__ import annotations

from sqlalchemy import Engine

from earmark import databases
from earmark.board.records import Quotas
from earmark.board.storage.accounts import Accounts
from earmark.board.storage.blind_jobs import BlindJobs
from earmark.board.storage.blind_releases import BlindReleases
from earmark.board.storage.blind_sets import BlindSets
from earmark.board.storage.boards import Boards
from earmark.board.storage.cards import Cards
from earmark.board.storage.drafts import Drafts
from earmark.board.storage.feeds import Feeds
from earmark.board.storage.host_texts import HostTexts
from earmark.board.storage.live import Live, LiveScores
from earmark.board.storage.migrations import upgrade
from earmark.board.storage.news import News
from earmark.board.storage.notices import Notices
from earmark.board.storage.people import People
from earmark.board.storage.sessions import Sessions
from earmark.board.storage.submissions import Submissions
from earmark.submissions import Limits

__all__ = ["LiveScores", "Store", "open_database"]


def open_database(url: str) -> Engine:
    """The database of a board, made and brought up to date where need be."""
    return databases.open_database(url, upgrade)


class Store(
    BlindJobs, BlindReleases, BlindSets, Boards, Cards, Drafts, Feeds, HostTexts, Notices, People, Live, News,
    Submissions, Sessions, Accounts,
):  # fmt: skip
    """A board's memory. Safe to use from several threads, and from several processes on one database."""

    def __init__(
        self, engine: Engine, limits: Limits | None = None, quotas: Quotas | None = None, draft_days: float = 30
    ) -> None:
        self.engine = engine
        self.limits = limits or Limits()  # of one document
        self.quotas = quotas  # of one author and day; None: no limit
        self.draft_days = draft_days

    def close(self) -> None:
        """Close the connections; nothing is lost without it."""
        self.engine.dispose()
