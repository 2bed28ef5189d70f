"""How many packages a team may send for blind evaluation, by the policy of the board."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, func, select

from earmark.board.jobs import BlindBoard
from earmark.board.records import User
from earmark.board.refusals import Conflict, NotAllowed
from earmark.board.storage.tables import blind_jobs
from earmark.wording import counted

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def _counts() -> ColumnElement[bool]:
    """What counts for a quota: not what the host's machines failed on, nor what was taken back before it ran."""
    never_ran = and_(blind_jobs.c.state == "withdrawn", blind_jobs.c.started.is_(None))
    return and_(blind_jobs.c.blame != "infrastructure", ~never_ran)


def job_of_package(connection: Connection, board: str, owner: User, package: ColumnElement[bool]) -> str | None:
    """The team's newest job of a package, unless that was withdrawn or failed for the host's own fault."""
    standing = and_(_counts(), blind_jobs.c.state != "withdrawn")
    own = and_(blind_jobs.c.board == board, blind_jobs.c.team == owner.counted_as)
    same = select(blind_jobs.c.public).where(own, standing, package).order_by(blind_jobs.c.id.desc())
    found: str | None = connection.execute(same).scalar()
    return found


def refuse_quota(connection: Connection, offer: BlindBoard, owner: User, entry: str, at: datetime) -> None:
    """Refuse what is more than the policy gives a team, each day and altogether."""
    if owner.role == "worker":
        raise NotAllowed("A worker does not take part; send the package with a participant's token.")
    of_team = and_(blind_jobs.c.board == offer.board, blind_jobs.c.team == owner.counted_as, _counts())
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    today = select(func.count()).select_from(blind_jobs).where(of_team, blind_jobs.c.created >= day)
    sent = connection.execute(today).scalar_one()
    if sent >= offer.quota:
        raise Conflict(
            f"The {owner.counted_as} has sent {counted(sent, 'package')} to {offer.board} today, and the policy allows "
            f"{offer.quota} a day; the next day begins at 00:00 UTC."
        )
    first = select(blind_jobs.c.entry, func.min(blind_jobs.c.created)).where(of_team).group_by(blind_jobs.c.entry)
    began: dict[str, datetime] = {row[0]: row[1] for row in connection.execute(first)}
    since = at - timedelta(days=offer.period_days) if offer.period_days else _LONG_AGO
    entries = sorted(name for name, moment in began.items() if moment >= since)
    if entry and entry not in began and len(entries) >= offer.entries:
        within = f" in {offer.period_days} days" if offer.period_days else ""
        raise Conflict(
            f"The policy allows each team {offer.entries} new systems on {offer.board}{within}, and the "
            f"{owner.counted_as} has sent {', '.join(entries[:10])}; send it under one of these names."
        )
