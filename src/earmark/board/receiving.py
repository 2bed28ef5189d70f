"""What the API and the pages do alike when a document arrives or somebody asks for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread
from starlette.requests import Request

from earmark.board.web.context import Context
from earmark.board.boards.groups import is_single
from earmark.board.web.problems import ProblemError
from earmark.board.records import Submission, User
from earmark.board.web.security import address_of_asker
from earmark.board.boards.snapshot import NoSuchBoard
from earmark.submissions import Document
from earmark.board.names import likeness
from earmark.errors import quoted
from earmark.wording import counted

__all__ = ["count_stranger", "is_own", "may_read_rows", "new_subsets", "read_apart", "receive"]

Result = TypeVar("Result")


_NAMED_SUBSETS = 5
_BLANKS = str.maketrans("", "", " _-")

READERS = 2
"""Documents that are read at the same time in one process: each may take some hundred megabytes meanwhile."""


async def read_apart(request: Request, work: Callable[[], Result]) -> Result:
    """The work on a document, in a thread of its own, after those that came before: readers of pages do not wait."""
    return await anyio.to_thread.run_sync(work, limiter=request.app.state.readers)


def receive(context: Context, document: Document, user: User, key: str) -> Submission:
    """Store a document as pending; `Refused` when it breaks the rules, the first one when it came before."""
    submission = context.store.submit(document, user, idempotency_key=key, notes=new_subsets(context, document))
    context.meters.submissions.labels("received").inc()
    return submission


def new_subsets(context: Context, document: Document) -> list[str]:
    """What is worth knowing of subsets that the board does not have, if anything was accepted there."""
    try:
        panels = context.snapshots.current(document.board).panels
    except NoSuchBoard:
        return []
    there = {subset for panel in panels.values() for subset in panel.subsets}
    if not there:
        return []
    alike = {_joined(subset): subset for subset in there}
    brought = dict.fromkeys(row.subset for row in document.scores if row.subset and is_single(row.subset))
    new = [subset for subset in brought if subset not in there]
    found = [
        f"The subset {quoted(subset)} is written {quoted(alike[_joined(subset)])} on {document.board}, and would be "
        "another one; rename it if they are the same."
        for subset in new
        if _joined(subset) in alike
    ]
    unlike = [quoted(subset) for subset in new if _joined(subset) not in alike]
    if unlike:
        more = f" and {len(unlike) - _NAMED_SUBSETS} more" if len(unlike) > _NAMED_SUBSETS else ""
        named = f"{', '.join(unlike[:_NAMED_SUBSETS])}{more}"
        found.append(f"{document.board} does not have {counted(len(unlike), 'subset')} of this: {named}.")
    return found[:_NAMED_SUBSETS]


def _joined(subset: str) -> str:
    """A name without what writers differ in: case, and blanks or what stands for them."""
    return likeness(subset).translate(_BLANKS)


def count_stranger(context: Context, request: Request) -> None:
    """Count an unknown token or a registration for the address that it comes from; 429 when there were too many."""
    wait = context.sign_ins.take(address_of_asker(request.scope))
    if wait > 0:
        after = str(max(1, round(wait + 0.5)))
        said = f"Too many unknown tokens or registrations; try again in {after} s."
        raise ProblemError(429, said, headers={"Retry-After": after})


def is_own(submission: Submission, user: User | None) -> bool:
    """Whether the user, or their team, sent it."""
    return user is not None and (user.name == submission.owner or (user.team != "" and user.team == submission.team))


def may_read_rows(submission: Submission, user: User | None) -> bool:
    """Accepted scores are everybody's; others are their author's and the moderators'."""
    moderates = user is not None and user.role == "moderator"
    return submission.state == "accepted" or is_own(submission, user) or moderates
