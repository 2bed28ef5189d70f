"""What every route shares: the running board, who asks, documents that arrive, and answers that a reader may keep."""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, TypeVar

import anyio.to_thread
from fastapi import Depends
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from earmark._version import __version__
from earmark.board.boards.name_risks import lookalikes
from earmark.board.boards.snapshot import NoSuchBoard
from earmark.board.boards.snapshots import Snapshots
from earmark.board.jobs import Job
from earmark.board.packages import Packages
from earmark.board.records import Draft, Submission, User
from earmark.board.refusals import NotFound, Refusal, too_often
from earmark.board.settings import Settings, Throttle
from earmark.board.storage import Store
from earmark.board.storage.definitions import Version
from earmark.board.web.caching import Page, PageCache, answer, packed
from earmark.board.web.kept_pages import NAMES, canonical
from earmark.board.web.lanes import LaneName, Turns, anonymous_limits
from earmark.board.web.logs import Meters
from earmark.board.web.reading import Question, Reading
from earmark.board.web.security import Signer, address_of_asker, bearer_of, decoded, encoded, visitor_of
from earmark.errors import quoted
from earmark.submissions import Document, Limits, Refused, SystemCard
from earmark.submissions.texts import joined_likeness
from earmark.wording import counted

Result = TypeVar("Result")
_NAMED_SUBSETS = 5

INSPECTORS = 2
"""Packages that are looked at at the same time in one process."""


@dataclass(frozen=True)
class Context:
    """The parts of a running board, made once when the app starts: `request.app.state.context`.

    Every template sees `title` (of the site) and `registration`; pages that are made for one reader pass `visitor` (a
    `User` or None, from `security.visitor_of(request)`).
    """

    settings: Settings
    store: Store
    snapshots: Snapshots
    templates: Jinja2Templates
    signer: Signer
    sign_ins: Throttle
    answers: PageCache
    meters: Meters
    packages: Packages


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def definition_now(context: Context, board: str) -> Version:
    """The definition that holds on a board."""
    version = context.store.definition(board)
    if version is None:
        raise NoSuchBoard(f'There is no board "{board}".')
    return version


def address_of(request: Request) -> str:
    """The address of the board as the world sees it, without a slash at the end."""
    return context_of(request).settings.base_url or str(request.base_url).rstrip("/")


def _author(request: Request) -> User:
    """Whose token it is. Tokens that fit nobody are counted for the address they come from."""
    plain = bearer_of(request)
    if plain is None:
        raise Refusal("This needs a token: send it as `Authorization: Bearer TOKEN`.", 401)
    user = context_of(request).store.authenticate(plain)
    if user is None:
        count_stranger(request)
        if context_of(request).store.is_of_banned(plain):
            raise Refusal("The host of this board has closed this account; write to the host.", 401)
        raise Refusal("The token is unknown or was revoked; make a new one.", 401)
    request.state.user_name = user.name
    request.state.bearer = True  # from now on this token has a rate of its own
    return user


def _moderator(request: Request) -> User:
    user = _author(request)
    if not user.moderates:
        raise Refusal("Only a moderator of this board may do that.", 403)
    return user


def _worker(request: Request) -> User:
    user = _author(request)
    if user.role != "worker":
        raise Refusal("Only a worker of a host may do that; its user is made with the role worker.", 403)
    return user


def _reader(request: Request) -> User | None:
    """Whose token it is, or None when there is none; a wrong token is refused here too."""
    return _author(request) if bearer_of(request) is not None else visitor_of(request)


Asked = Annotated[Context, Depends(context_of)]
"""The board that is asked."""
Author = Annotated[User, Depends(_author)]
Moderator = Annotated[User, Depends(_moderator)]
Worker = Annotated[User, Depends(_worker)]
Reader = Annotated[User | None, Depends(_reader)]


def count_stranger(request: Request) -> None:
    """Count an unknown token or a registration for the address that it comes from; 429 when there were too many."""
    wait = context_of(request).sign_ins.take(address_of_asker(request.scope))
    if wait > 0:
        raise too_often("Too many unknown tokens or registrations.", wait)


def new_account(request: Request, name: str, team: str) -> tuple[User, str]:
    """A new user with a token, which is shown this once, where the host has opened registration."""
    context = context_of(request)
    if context.settings.registration != "open":
        raise Refusal("Registration is closed here; ask the host of the board for a token.", 403)
    count_stranger(request)
    user = context.store.register(name, team)
    request.state.user_name = user.name
    return user, context.store.create_token(user, "registration")[0]


def blind_context(request: Request) -> Context:
    """The board, where its host takes packages for blind evaluation."""
    context = context_of(request)
    if not context.settings.blind:
        raise NotFound("Blind evaluation is off on this board; its host turns it on with `earmark blind serve`.")
    return context


def readable_job(context: Context, id: str, user: User | None) -> Job:
    """A job, for those who may see it; for everybody else there is none."""
    job = context.store.job(id)
    hosts = {each.host for each in context.store.blind_boards() if each.board == job.board}
    if not (job.is_readable_by(user) or (user is not None and user.role == "worker" and user.name in hosts)):
        raise NotFound("There is no such job on this board, or it is another team's.")
    return job


async def inspect_apart(request: Request, work: Callable[[], Result]) -> Result:
    """The work on a package, in a thread of its own, after those that came before: readers of pages do not wait."""
    return await anyio.to_thread.run_sync(work, limiter=request.app.state.inspectors)


async def check_document(
    request: Request, user: User | None, question: Question, then: Callable[[Reading], Result]
) -> Result:
    """What `then` makes of a document that is checked and not stored, in the lane of whoever asks."""
    name: LaneName = "checks" if user else "anonymous"
    return await _read(request, name, user, question, then)


async def take_document(
    request: Request, user: User, key: str, question: Question, then: Callable[[Submission], Result]
) -> Result:
    """What `then` makes of the submission that a document becomes; `Refused` when it breaks the rules, the first one
    when it came before."""
    context = context_of(request)

    def store(reading: Reading) -> Result:
        document, notes = _remarked(context, reading, user)
        return then(receive(context, document, user, key, notes))

    return await _read(request, "submissions", user, question, store)


async def keep_draft(request: Request, user: User, question: Question, then: Callable[[Draft], Result]) -> Result:
    """What `then` makes of the draft that a document becomes; `Refused` when it breaks the rules."""
    context = context_of(request)

    def store(reading: Reading) -> Result:
        document, notes = _remarked(context, reading, user)
        return then(context.store.save_draft(document, user, notes))

    return await _read(request, "submissions", user, question, store)


def _remarked(context: Context, reading: Reading, user: User) -> tuple[Document, list[str]]:
    """A document that the rules have nothing against, and what is worth knowing of it."""
    if reading.problems:
        raise Refused(reading.problems)
    document = reading.document(context.settings.limits)
    return document, remarks(context, reading, user, document.cards)


def receive(context: Context, document: Document, user: User, key: str, notes: Sequence[str]) -> Submission:
    """Store a document as pending; the first one when it came before."""
    submission = context.store.submit(document, user, idempotency_key=key, notes=notes)
    context.meters.submissions.labels("received").inc()
    return submission


async def _read(
    request: Request, lane: LaneName, user: User | None, question: Question, then: Callable[[Reading], Result]
) -> Result:
    asker = f"user {user.name}" if user else address_of_asker(request.scope)
    store = context_of(request).store
    announced, known, unseen = await run_in_threadpool(
        lambda: (store.announced_subsets(), store.written_definitions(), store.unreadable(user))
    )
    announced = {board: names for board, names in announced.items() if board not in unseen}
    known = {board: each for board, each in known.items() if board not in unseen}
    turns: Mapping[LaneName, Turns] = request.app.state.lanes
    return await turns[lane].read(request, asker, replace(question, announced=announced, known=known), then)


def limits_for(request: Request, user: User | None) -> Limits:
    """The most that a document may have: of somebody without a token, less."""
    settings = context_of(request).settings
    if user is None and not settings.anonymous_rows:
        raise Refusal("Checks need a token here; send it, or check with `earmark submit FILE --dry-run`.", 401)
    return settings.limits if user else anonymous_limits(settings)


def settle(context: Context, submission: Submission) -> Submission:
    """Count what became of a submission, and show it on the next page."""
    context.meters.submissions.labels(submission.state).inc()
    context.snapshots.refresh()
    return submission


def remarks(context: Context, reading: Reading, user: User, cards: Sequence[SystemCard] = ()) -> list[str]:
    """What is worth knowing of a document on this board: names that look like others', subsets that are new."""
    try:
        snapshot = context.snapshots.current(reading.board)
    except NoSuchBoard:
        return []
    if not context.store.may_read(reading.board, user):
        return []
    described = cards or [SystemCard(name) for name in reading.systems]
    alike = lookalikes(snapshot, described, user.name, user.team)
    return [*islice(alike, _NAMED_SUBSETS), *new_subsets(context, reading, user)]


def new_subsets(context: Context, reading: Reading, user: User | None) -> list[str]:
    """What is worth knowing of subsets that the board does not have, if anything was accepted there.

    Of a board that somebody does not see, nothing.
    """
    try:
        panels = context.snapshots.current(reading.board).panels
    except NoSuchBoard:
        return []
    there = {subset for panel in panels.values() for subset in panel.subsets}
    if not there or not context.store.may_read(reading.board, user):
        return []
    alike = {joined_likeness(subset): subset for subset in there}
    new = [subset for subset in reading.subsets if subset not in there]
    notes = [
        f"The subset {quoted(subset)} is written {quoted(alike[joined_likeness(subset)])} on {reading.board}, and "
        "would be another one; rename it if they are the same."
        for subset in new
        if joined_likeness(subset) in alike
    ]
    unlike = [quoted(subset) for subset in new if joined_likeness(subset) not in alike]
    if unlike:
        more = f" and {len(unlike) - _NAMED_SUBSETS} more" if len(unlike) > _NAMED_SUBSETS else ""
        names = f"{', '.join(unlike[:_NAMED_SUBSETS])}{more}"
        notes.append(f"{reading.board} does not have {counted(len(unlike), 'subset')} of this: {names}.")
    return notes[:_NAMED_SUBSETS]


def sent(shape: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A shape as JSON, written by pydantic once and not checked again by FastAPI."""
    return Response(shape.model_dump_json(), status, headers, "application/json")


def kept(request: Request, make: Callable[[], BaseModel]) -> Response:
    """An answer that stays right until the board changes: its ETag stands for the address and the board's generation.

    A reader who has it already gets 304 and nothing is computed; others get what was made for the first who asked. All
    of it is of the generation that its tag stands for.
    """
    context = context_of(request)
    context.snapshots.boards()  # looks whether the store has grown
    shown = context.snapshots.latest
    route = request.scope["route"]
    query = canonical(request, (*NAMES, *(each.alias for each in route.dependant.query_params))).url.query
    place = f"{address_of(request)}{request.url.path}?{query}"
    state = f"{__version__} {shown.generation} {place}"
    tag = f'W/"{hashlib.sha256(state.encode("utf-8", "surrogateescape")).hexdigest()[:24]}"'

    def made() -> Page:
        with context.snapshots.pinned(shown):
            return packed(make().model_dump_json(), "application/json")

    return answer(request, tag, lambda: context.answers.fetch(tag, made))


def cursor_after(place: list[str | int]) -> str:
    """Where a page ended, as text for the next request."""
    return encoded(json.dumps(place).encode())


def cursor_of(text: str, *kinds: type) -> list[str | int]:
    """What `cursor_after` was given: as many parts of such kinds, or 422."""
    try:
        place = json.loads(decoded(text))
    except (ValueError, binascii.Error, RecursionError):
        place = None
    fits = isinstance(place, list) and [type(part) for part in place] == list(kinds)
    if not fits or not all(0 <= part < 2**62 for part in place if isinstance(part, int)):
        raise Refusal("The cursor does not come from this list; leave it out to start at the beginning.", 422)
    parts: list[str | int] = place
    return parts
