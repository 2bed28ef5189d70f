"""How a release is decided, inside one transaction of the ledger."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, select

from earmark.blind import _tables
from earmark.blind._tables import append, entries, read_entries
from earmark.blind.chain import Entry, canonical, commit
from earmark.blind.duplicates import leverage, similarity
from earmark.blind.policy import Policy
from earmark.blind.policy_text import HEARINGS, new_entries
from earmark.blind.release import Figure, Release, measured_figures, release
from earmark.errors import EarmarkError, InputError, UsageError, quoted
from earmark.scores import Row, Scores
from earmark.scores.rows import DEFAULTS
from earmark.submissions import Document, SystemCard, card_from, check, plain_card
from earmark.submissions.texts import fault_of
from earmark.wording import first_of

_FARTHEST = timedelta(days=30)
"""A release whose day would lie farther ahead is refused: more is sent than the policy can let out."""


@dataclass(frozen=True)
class Submitted:
    """A job as the board and the package describe it."""

    job: str
    board: str
    team: str
    entry: str
    package: str
    distance: str
    correction: str

    def __post_init__(self) -> None:
        for name in ("job", "board", "team", "entry"):
            text = getattr(self, name)
            fault = fault_of(text, _tables.NAME) if text.strip() else "is empty"
            if fault:
                raise UsageError(f"The {name} of a job {fault}.")

    @classmethod
    def of(cls, job: str, board: str, team: str, entry: str, package: str, exact: Scores, policy: Policy) -> Submitted:
        """The job with the distance and the correction that its figures were measured with: one of each."""
        settings = {(row.distance, row.correction) for row in measured_figures(policy, exact).values()}
        if len(settings) != 1:
            raise InputError("The figures of a submission have several distances or corrections; it declares one.")
        return cls(job, board, team, entry, package, *settings.pop())

    def like(self, body: Mapping[str, Any]) -> bool:
        """Whether an earlier release has the same distance and correction."""
        return (self.distance, self.correction) == (body["distance"], body["correction"])


def time_text(when: datetime) -> str:
    """A time in UTC as the ledger writes it; texts sort as times do."""
    return when.astimezone(UTC).isoformat(timespec="seconds")


def slot_after(when: datetime, minutes: int) -> datetime:
    """The next full multiple of so many minutes of the day; the time itself where it is one."""
    midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
    length = timedelta(minutes=minutes)
    return midnight + -(-(when - midnight) // length) * length


# --- may anything leave, and when ------------------------------------------------------------------------------------


def refusal_of(connection: Connection, job: Submitted, policy: Policy, now: datetime) -> str:
    """Why nothing of a job is released, in fixed words; empty when it may be."""
    own = _releases(connection, job)
    name = quoted(job.entry)
    if own:
        about = [entry.number for entry in own]
        objections = (entries.c.kind == "objection") & entries.c.about.in_(about)
        if connection.scalar(select(func.count()).select_from(entries).where(objections)):
            return f"The owners objected to a release of the entry {name}; nothing more is released under this name."
        first = own[0].body
        if not job.like(first):
            return (
                f"The entry {name} was released with distance {first['distance']} and correction "
                f"{first['correction']}; submit other settings under a name of their own."
            )
    elif refused := _no_room(connection, job, policy, now):
        return refused
    if _slot(connection, job.team, policy, now) - now > _FARTHEST:
        return "More was sent than the policy can release in a month; submit again later."
    return ""


def hearing_of(connection: Connection, job: Submitted, policy: Policy, now: datetime) -> str:
    """Why a model may not hear the recordings today; else it is written down that it does.

    A hearing that never becomes a release tells something too, by failing and by its time. So that neither failures nor
    a board that was taken over can have many, they are counted here: three times as many as may be released.
    """
    today = time_text(now)[:10]
    hearings = (entries.c.kind == "hearing") & (func.substr(entries.c.at, 1, 10) == today)
    teams = list(connection.scalars(select(entries.c.team).where(hearings)))
    for number, most, whose in (
        (teams.count(job.team), HEARINGS * policy.quota, "of your team"),
        (len(teams), HEARINGS * policy.releases_per_day, "of all teams together"),
    ):
        if number >= most:
            return (
                f"The recordings were heard by {most} submissions {whose} today, as many as may; submit again tomorrow."
            )
    heard = {name: getattr(job, name) for name in ("job", "board", "team", "entry")}
    append(connection, time_text(now), "hearing", heard)
    return ""


def unfit_card(policy: Policy, job: Submitted, card: Mapping[str, Any] | SystemCard) -> str:
    """Why a release with this card could not stand on the board; asked before anything is heard."""
    rows = [
        Row(suite=job.board, subset=terms.name, system=job.entry, distance=job.distance, metric=metric, value=0.5)
        for terms in policy.sets.values()
        for metric in terms.steps
    ]
    try:
        described = card if isinstance(card, SystemCard) else card_from({**card, "name": job.entry})
        canonical(plain_card(described))
        problems = check(Document(job.board, (described,), Scores(tuple(rows)), provenance="blind"), known={}).problems
    except (EarmarkError, ValueError, TypeError, RecursionError) as error:
        return f"The card of the system cannot be kept ({str(error)[:300].rstrip('.')}); mend it."
    return f"The board would not take the card of the system: {problems[0].message}" if problems else ""


def _no_room(connection: Connection, job: Submitted, policy: Policy, now: datetime) -> str:
    """Why there may be no new entry."""
    period = timedelta(days=policy.period_days)
    columns = (entries.c.board, entries.c.team, entries.c.entry)
    begun = select(*columns, func.min(entries.c.at).label("first")).where(entries.c.kind == "release")
    recent = begun.group_by(*columns).having(func.min(entries.c.at) > time_text(now - period)).order_by("first")
    rows = connection.execute(recent).all()
    own = [row for row in rows if row.team == job.team]
    for held, most, whose in ((own, policy.entries, "Your team"), (rows, policy.entries_overall, "All teams together")):
        if len(held) >= most:
            free = datetime.fromisoformat(held[-most].first) + period
            used = f" ({first_of([row.entry for row in own], 5)})" if held is own else ""
            verb = "has" if held is own else "have"
            return (
                f"{whose} {verb} {new_entries(most)} in {policy.period_days} days{used}, as many as the policy allows; "
                f"submit under the name of an entry of yours, or a new one "
                f"after {free.date().isoformat()}."
            )
    return ""


def _slot(connection: Connection, team: str, policy: Policy, now: datetime) -> datetime:
    """When a release may leave: at the next slot of the first day on which there is room for it."""
    slot = slot_after(now, policy.slot_minutes)
    day = func.substr(entries.c.not_before, 1, 10)
    ahead = (entries.c.kind == "release") & (day >= slot.date().isoformat())
    taken: dict[str, list[str]] = {}
    for row in connection.execute(select(day.label("day"), entries.c.team).where(ahead)):
        taken.setdefault(row.day, []).append(row.team)
    while True:
        teams = taken.get(slot.date().isoformat(), [])
        if len(teams) < policy.releases_per_day and teams.count(team) < policy.quota:
            return slot
        slot = (slot + timedelta(days=1)).replace(hour=0, minute=0)


# --- what leaves -----------------------------------------------------------------------------------------------------


def judge(
    connection: Connection, job: Submitted, exact: Scores, fingerprints: Mapping[str, bytes], policy: Policy,
    now: datetime, card: SystemCard,
) -> Entry:  # fmt: skip
    """Write the release or the refusal of a job to the end of the chain."""
    at = time_text(slot_after(now, policy.slot_minutes))
    _record_policy(connection, policy, at)
    common = {
        "job": job.job, "board": job.board, "team": job.team, "entry": job.entry, "package": job.package,
        "policy": policy.digest, "distance": job.distance, "correction": job.correction,
    }  # fmt: skip
    if refused := refusal_of(connection, job, policy, now) or _hanging(fingerprints, policy):
        return append(connection, at, "refusal", {**common, "message": refused, "not_before": at})
    twin = _twin(connection, job, exact, fingerprints, policy)
    repeats = None if twin is None else _own_twin(connection, job, twin)
    counted_as = exact if twin is None else _stored(connection, twin)
    earlier = _releases(connection, job)
    told = release(policy, counted_as, history_of(earlier), board=job.board, entry=job.entry)
    told = as_repeated(told, job.entry, repeats)
    message = told.message
    if repeats is not None:
        message = f"Nearly the same model as your job {repeats['job']}, whose measurement counts for both. {message}"
    body = {
        **common, "rows": [plain_row(row) for row in told.rows], "jobs": jobs_of(told, job.job, earlier),
        "fresh": sorted(map(list, told.fresh)),
        "repeats": None if repeats is None else repeats["job"], "message": message, "card": plain_card(card),
        "sign_off": policy.sign_off, "slot_minutes": policy.slot_minutes,
        "not_before": time_text(_slot(connection, job.team, policy, now)),
    }  # fmt: skip
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(fingerprints.items())}
    private = canonical({"rows": [plain_row(row) for row in exact.rows], "twin": twin, "fingerprints": digests})
    nonce = secrets.token_hex(32)
    entry = append(connection, at, "release", body, commitment=commit(nonce, private))
    connection.execute(insert(_tables.private), {"number": entry.number, "nonce": nonce, "body": private})
    for name, data in fingerprints.items():
        connection.execute(insert(_tables.fingerprints), {"number": entry.number, "subset": name, "data": data})
    return entry


def _hanging(fingerprints: Mapping[str, bytes], policy: Policy) -> str:
    """The refusal of vectors in which too much hangs on one clip. Labels have no say in it."""
    if max((leverage(data) for data in fingerprints.values()), default=0.0) <= policy.leverage:
        return ""
    return (
        f"One clip is the nearest of more than {policy.leverage:.0%} of the others, so that the figures would hang on "
        "its label; nothing is released. Vectors that are nearly all the same look like this."
    )


def plain_row(row: Row) -> dict[str, Any]:
    """The cells of a row that say something."""
    return {name: cell for name, cell in row.as_dict().items() if cell != DEFAULTS[name]}


def history_of(releases: list[Entry]) -> dict[Figure, Row]:
    """The figures that stand after some releases of one entry: those of the last."""
    rows = [Row(**cells) for cells in releases[-1].body["rows"]] if releases else []
    return {(row.subset, row.metric): row for row in rows}


def jobs_of(told: Release, job: str, earlier: list[Entry]) -> list[str]:
    """The job that each row was measured for: figures climb one by one, and may be of several packages."""
    before = zip(earlier[-1].body["rows"], earlier[-1].body["jobs"], strict=True) if earlier else ()
    known = {(cells["subset"], cells["metric"]): source for cells, source in before}
    figures = [(row.subset, row.metric) for row in told.rows]
    return [job if figure in told.fresh else known[figure] for figure in figures]


def as_repeated(told: Release, entry: str, repeats: Mapping[str, Any] | None) -> Release:
    """New rows of a model that its team has under another name: shown as repeated, and ranked nowhere."""
    if repeats is None or repeats["entry"] == entry:
        return told
    reason = f"nearly the same model as the entry {repeats['entry']} of the same team"
    return replace(
        told,
        rows=tuple(
            replace(row, status="repeated", reason=reason)
            if (row.subset, row.metric) in told.fresh and row.status == "ok"
            else row
            for row in told.rows
        ),
    )


def exact_scores(connection: Connection, number: int) -> Scores | None:
    """The exact scores of an entry; None where it has none."""
    found = connection.scalar(select(_tables.private.c.body).where(_tables.private.c.number == number))
    return None if found is None else scores_in(json.loads(found))


def scores_in(private: Mapping[str, Any]) -> Scores:
    """The exact scores in the private part of an entry."""
    return Scores(tuple(Row(**cells) for cells in private["rows"]))


def _stored(connection: Connection, number: int) -> Scores:
    found = exact_scores(connection, number)
    if found is None:
        raise InputError(f"The private part of entry {number} is missing; `earmark blind audit --verify` says more.")
    return found


def _releases(connection: Connection, job: Submitted) -> list[Entry]:
    """The releases under an entry, oldest first."""
    same = [entries.c[name] == getattr(job, name) for name in ("board", "team", "entry")]
    return list(read_entries(connection, entries.c.kind == "release", *same))


def _record_policy(connection: Connection, policy: Policy, at: str) -> None:
    """The policy becomes an entry when it is first used, and when another was used in between."""
    latest = select(entries.c.body).where(entries.c.kind == "policy").order_by(entries.c.number.desc()).limit(1)
    found = connection.scalar(latest)
    if found is None or json.loads(found)["digest"] != policy.digest:
        append(connection, at, "policy", {"digest": policy.digest, "policy": policy.plain})


def _twin(
    connection: Connection, job: Submitted, exact: Scores, fingerprints: Mapping[str, bytes], policy: Policy
) -> int | None:
    """The first release of a model that is nearly the same, of any team; its measurement then counts for this one.

    Nearly the same: distance and correction are equal, no figure differs by more than a step, and of the neighbours in
    the fingerprints the policy's share is equal. Releases that count as another's are not compared: small changes of
    small changes would never be measured.
    """
    own = measured_figures(policy, exact)
    query = select(entries.c.number, entries.c.body, _tables.private.c.body.label("private"))
    joined = query.join(_tables.private, _tables.private.c.number == entries.c.number).order_by(entries.c.number)
    for row in connection.execute(joined).all():
        private = json.loads(row.private)
        if private["twin"] is not None or not job.like(json.loads(row.body)):
            continue
        if not within_steps(policy, own, scores_in(private)):
            continue
        of_entry = select(_tables.fingerprints).where(_tables.fingerprints.c.number == row.number)
        earlier = {found.subset: found.data for found in connection.execute(of_entry)}
        if similarity(dict(fingerprints), earlier) >= policy.duplicates:
            return int(row.number)
    return None


def within_steps(policy: Policy, own: Mapping[Figure, Row], other: Scores) -> bool:
    """Whether no figure of two tables differs by more than a step."""
    try:
        others = measured_figures(policy, other)
    except InputError:
        return False  # measured under a policy with other sets
    for (subset, metric), row in own.items():
        value, earlier = row.value, others[subset, metric].value
        if value is None or earlier is None:
            if value is not earlier:
                return False
        elif abs(value - earlier) > policy.sets[subset].steps[metric]:
            return False
    return True


def _own_twin(connection: Connection, job: Submitted, twin: int) -> Mapping[str, Any] | None:
    """The first release of the team itself that the twin's measurement counts for. Of others' it is told nothing."""
    query = select(entries.c.number, entries.c.body, _tables.private.c.body.label("private"))
    joined = query.join(_tables.private, _tables.private.c.number == entries.c.number).order_by(entries.c.number)
    for row in connection.execute(joined.where(entries.c.team == job.team, entries.c.board == job.board)):
        if row.number == twin or json.loads(row.private)["twin"] == twin:
            body: Mapping[str, Any] = json.loads(row.body)
            return body
    return None
