"""What the API and the pages do alike when a document arrives or somebody asks for one."""

from __future__ import annotations

from earmark.board.context import Context
from earmark.board.records import Submission, User
from earmark.board.submission import Document

__all__ = ["is_own", "may_read_rows", "receive"]


def receive(context: Context, document: Document, user: User, key: str) -> Submission:
    """Store a document as pending; `Refused` when it breaks the rules, the first one when it came before."""
    submission = context.store.submit(document, user, idempotency_key=key)
    context.meters.submissions.labels("received").inc()
    return submission


def is_own(submission: Submission, user: User | None) -> bool:
    """Whether the user, or their team, sent it."""
    return user is not None and (user.name == submission.owner or (user.team != "" and user.team == submission.team))


def may_read_rows(submission: Submission, user: User | None) -> bool:
    """Accepted scores are everybody's; others are their author's and the moderators'."""
    moderates = user is not None and user.role == "moderator"
    return submission.state == "accepted" or is_own(submission, user) or moderates
