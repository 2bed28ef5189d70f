"""What hosts announce for blind evaluation: the sets that models are measured on, and the policy of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, func, insert, select, update

from earmark.board.jobs import BlindBoard, BlindSet, PolicyText
from earmark.board.records import User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import current_user, now, record
from earmark.board.storage.definitions import definition_of
from earmark.board.storage.live import blind_names, offered_names, recount_systems
from earmark.board.storage.tables import (
    blind_hosts,
    blind_jobs,
    blind_policies,
    blind_sets,
    live,
    measurements,
    scores,
    submissions,
    systems,
    users,
)
from earmark.databases import Part, reading
from earmark.definitions import Definition
from earmark.errors import quoted
from earmark.scores import WITH_VALUE
from earmark.submissions.texts import joined_likeness


class BlindSets(Part):
    """The part of the store that knows what is announced. `clock` says what time it is."""

    clock: Callable[[], datetime] = staticmethod(now)

    def announce_sets(
        self, user: User, board: str, sets: Sequence[BlindSet], digest: str, text: str, settings: Mapping[str, Any]
    ) -> BlindBoard:
        """Say, as a host's worker, which blind sets models are measured on, and by which policy.

        A set that was announced once stays blind for good; one that is not named any more is not offered. Self-reported
        scores of them no longer count. A name stands for one set of recordings: what is there already under it rests
        on as many clips.
        """

        def work(connection: Connection) -> BlindBoard:
            host, at = current_user(connection, user), self.clock()
            _refuse_strangers(connection, board, host)
            _refuse_public(connection, board, [each.subset for each in sets])
            for each in sets:
                _refuse_other_recordings(connection, board, each)
            _keep_policy(connection, digest, text, settings, at)
            before = blind_names(connection, board), offered_names(connection, board)
            _keep_host(connection, board, host, digest, at)
            gone = update(blind_sets).where(blind_sets.c.board == board).values(offered=False)
            connection.execute(gone)
            for each in sets:
                values = {"title": each.title, "clips": each.clips, "classes": each.classes, "offered": True}
                there = and_(blind_sets.c.board == board, blind_sets.c.subset == each.subset)
                if not connection.execute(update(blind_sets).where(there).values(**values)).rowcount:
                    connection.execute(
                        insert(blind_sets).values(board=board, subset=each.subset, announced=at, **values)
                    )
            if (blind_names(connection, board), offered_names(connection, board)) != before:
                of_board = select(systems.c.id).where(systems.c.board == board, systems.c.changed > 0)
                recount_systems(connection, list(connection.scalars(of_board)))
                record(connection, host.name, "announced", detail=f"{board}: {', '.join(each.subset for each in sets)}")
            return _boards(connection, board)[0]

        return self._write(work)

    def blind_boards(self) -> list[BlindBoard]:
        """The boards on which models are measured blind."""
        with reading(self.engine) as connection:
            return _boards(connection)

    def policy(self, digest: str) -> PolicyText | None:
        """A policy that holds or held, by the beginning of its digest (at least 8 characters) or the whole."""
        if len(digest) < 8 or not digest.isalnum():
            return None
        found = self._rows(select(blind_policies).where(blind_policies.c.digest.startswith(sought(digest))))
        kept = [PolicyText(row.digest, row.text, json.loads(row.settings), row.announced) for row in found]
        return kept[0] if len(kept) == 1 else None


def _refuse_strangers(connection: Connection, board: str, user: User) -> None:
    if user.role != "worker":
        raise NotAllowed("Only a worker of a host announces blind sets; make its user with the role worker.")
    there = connection.execute(select(blind_hosts.c.host_id).where(blind_hosts.c.board == board)).scalar()
    if there not in (None, user.id):
        raise Conflict(f"Blind sets of {board} are measured by another worker account; use that one's token.")


def _written_definition(connection: Connection, board: str) -> Definition | None:
    """The definition of a board that a host or a paper wrote; none where it was made of the scores."""
    definition = definition_of(connection, board)
    return definition if definition and not definition.derived else None


def _refuse_public(connection: Connection, board: str, subsets: Sequence[str]) -> None:
    suite = _written_definition(connection, board)
    known = [subset.name for subset in suite.subsets if not subset.blind] if suite else []
    public = {joined_likeness(name): name for name in known}
    wrong = sorted(public.keys() & set(map(joined_likeness, subsets)))
    if wrong:
        name = public[wrong[0]]
        raise Conflict(f"{name} is a public subset of {board}, which everybody may measure; rename the blind set.")
    if len(set(map(joined_likeness, subsets))) < len(subsets):
        raise Conflict("Two of the blind sets have one name, or names that read alike; rename one of them.")


def _refuse_other_recordings(connection: Connection, board: str, announced: BlindSet) -> None:
    """Refuse a set under whose name the board has, or the paper counts, other recordings: nobody could compare them."""
    name, clips = announced.subset, announced.clips
    suite = _written_definition(connection, board)
    published = suite.subset(name).clips if suite else None
    of_subset = and_(systems.c.board == board, measurements.c.subset == name, scores.c.status.in_(WITH_VALUE))
    counts = (
        select(submissions.c.provenance, func.max(scores.c.n))
        .select_from(live.join(scores).join(systems, systems.c.id == live.c.system_id))
        .join(submissions, submissions.c.id == scores.c.submission_id)
        .join(measurements, measurements.c.id == live.c.measurement_id)
        .where(of_subset, submissions.c.provenance != "self-reported")
        .group_by(submissions.c.provenance)
    )
    most_clips = {row[0]: row[1] or 0 for row in connection.execute(counts)}
    there = and_(blind_sets.c.board == board, blind_sets.c.subset == name)
    before = connection.execute(select(blind_sets.c.clips).where(there)).scalar()
    most = max(most_clips.values(), default=0)
    if published is not None and published != clips:
        known = f"{name} of {board} has {published:,} clips as published"
    elif most > clips:
        known = f"{name} of {board} has figures that rest on {most:,} clips"
    elif before not in (None, clips) and "blind" in most_clips:
        known = f"{name} of {board} had {before:,} clips when figures of it were released"
    else:
        return
    raise Conflict(
        f"{known}, and the set that is announced has {clips:,}: figures of other recordings would stand under one "
        "name. Give the set another name, or a board of its own."
    )


def _keep_policy(connection: Connection, digest: str, text: str, settings: Mapping[str, Any], at: datetime) -> None:
    """Keep a policy under its digest. The words that came first stay, however a later version puts them."""
    there = connection.execute(select(blind_policies).where(blind_policies.c.digest == digest)).first()
    if there is None:
        plain = json.dumps(settings, sort_keys=True)
        values = {"digest": digest, "text": text, "settings": plain, "announced": at}
        connection.execute(insert(blind_policies).values(**values))
        return
    known = json.loads(there.settings)
    if any(known[name] != value for name, value in settings.items() if name in known):
        raise Conflict("Another policy was announced under this digest; a digest stands for one policy.")


def _keep_host(connection: Connection, board: str, host: User, digest: str, at: datetime) -> None:
    values = {"host_id": host.id, "policy": digest, "seen": at}
    if not connection.execute(update(blind_hosts).where(blind_hosts.c.board == board).values(**values)).rowcount:
        connection.execute(insert(blind_hosts).values(board=board, **values))


def _boards(connection: Connection, board: str | None = None) -> list[BlindBoard]:
    query = select(blind_hosts, users.c.name, blind_policies.c.settings).join(users).join(blind_policies)
    if board is not None:
        query = query.where(blind_hosts.c.board == board)
    rows = connection.execute(query.order_by(blind_hosts.c.board)).all()
    sets: dict[str, list[BlindSet]] = {row.board: [] for row in rows}
    for row in connection.execute(select(blind_sets).order_by(blind_sets.c.id)):
        sets.setdefault(row.board, []).append(BlindSet(row.subset, row.title, row.clips, row.classes, row.offered))
    kinds = (blind_jobs.c.board, blind_jobs.c.state)
    tally = connection.execute(select(*kinds, func.count()).group_by(*kinds))
    counts = {(name, state): number for name, state, number in tally}
    boards = []
    for row in rows:
        limits = json.loads(row.settings)
        queued, running = (counts.get((row.board, state), 0) for state in ("queued", "running"))
        boards.append(
            BlindBoard(
                row.board, row.name, row.policy, int(limits["quota"]), int(limits["entries"]),
                int(limits.get("period_days", 0)), row.seen, tuple(sets[row.board]), queued, running,
            )
        )  # fmt: skip
    return boards


def offering(connection: Connection, board: str) -> BlindBoard:
    """The board, when models can be sent to it."""
    found = _boards(connection, sought(board))
    if not found or not found[0].offered:
        offered = [each.board for each in _boards(connection) if each.offered]
        there = f"there are some on {', '.join(offered)}" if offered else "no host has announced any"
        raise NotFound(f"There are no blind sets on {quoted(board)}; {there}.")
    return found[0]


def boards_of(connection: Connection, host: User) -> list[str]:
    if host.role != "worker":
        raise NotAllowed("Only a worker of a host takes jobs; make its user with the role worker.")
    return list(connection.scalars(select(blind_hosts.c.board).where(blind_hosts.c.host_id == host.id)))
