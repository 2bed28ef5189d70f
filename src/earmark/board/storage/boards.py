"""Boards: their definitions with every version of them, names that they had before, and who sees them."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from earmark.board.records import Submission, User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage.accounts import current_user, now, record
from earmark.board.storage.definitions import (
    Version,
    blind_by_definition,
    current_definitions,
    definition_of,
    name_now,
    packed,
    version_of,
    versions_of,
)
from earmark.board.storage.live import announced_names, grow, live_scores, recount_systems
from earmark.board.storage.tables import board_definitions, board_names, metadata, systems
from earmark.databases import Part, reading
from earmark.definitions import (
    BoardMetric,
    BoardSubset,
    Definition,
    Measured,
    check_name,
    derived_definition,
    from_plain,
    to_plain,
)
from earmark.definitions.derived import VALUED
from earmark.errors import UsageError, quoted
from earmark.submissions import Document
from earmark.wording import listed


class Boards(Part):
    """The part of the store that knows what the boards are."""

    def definition(self, board: str) -> Version | None:
        """The definition that holds on a board; None where there is no such board.

        A board of before definitions gets one of the scores that it has, once: it is kept from then on.
        """
        name = sought(board)
        with reading(self.engine) as connection:
            version = version_of(connection, name)
            if version is not None or not _has_scores(connection, name):
                return version
        self._write(lambda connection: keep_definition(connection, name, ""))
        with reading(self.engine) as connection:
            return version_of(connection, name)

    def known(self, board: str) -> dict[str, Definition]:
        """The definition that the rules check a document for a board against, by its name."""
        with reading(self.engine) as connection:
            name = sought(board)
            definition = definition_of(connection, name_now(connection, name))
        return {name: definition} if definition else {}

    def written_definitions(self) -> dict[str, dict[str, Any]]:
        """The definitions that hosts wrote, as plain values, by the names that boards have or had."""
        former = self.former_names()
        with reading(self.engine) as connection:
            held = current_definitions(connection)
        plain = {name: to_plain(each) for name, each in held.items() if not each.derived}
        return plain | {old: plain[new] for old, new in former.items() if new in plain}

    def definitions(self, board: str) -> list[Version]:
        """Every definition that was kept of a board, the newest first."""
        with reading(self.engine) as connection:
            return versions_of(connection, sought(board))

    def define(
        self, definition: Definition, moderator: User, note: str = "", *, expected: int | None = None
    ) -> Version:
        """Give a board a definition, new or in the place of the one that it has; that stays on record.

        `expected` is the version that the change was made from: a `Refusal` (412) when there is another by now.
        """
        from_plain(to_plain(definition))  # also one that no text was read for
        return self._define(replace(definition, derived=False), moderator, note, expected)

    def _define(self, definition: Definition, moderator: User, note: str, expected: int | None) -> Version:
        def work(connection: Connection) -> Version:
            user = _moderating(connection, moderator)
            board = definition.name
            if (new := name_now(connection, board)) != board:
                raise Conflict(f"The board {board} is called {new} now; define it by that name.")
            before = version_of(connection, board)
            there = before.version if before else 0
            if expected is not None and expected != there:
                raise Refusal(
                    f"The definition of {board} has changed since: version {there} holds, not {expected}. "
                    "Read it again and make your change to that.", 412,
                )  # fmt: skip
            changed = changed_parts(before.definition if before else Definition(board), definition)
            if before is not None and not changed:
                return before
            return _keep(connection, definition, there + 1, user.name, note or _changes(changed))

        return self._write(work)

    def add_to_definition(
        self, board: str, moderator: User, *, subsets: tuple[str, ...] = (), metrics: tuple[str, ...] = ()
    ) -> Version:
        """Make subsets and metrics that submissions brought part of the definition: from now on they are ranked."""
        version = self.definition(board)
        if version is None:
            raise NotFound(f'There is no board "{board}".')
        return self._define(widened(version.definition, subsets, metrics), moderator, "", version.version)

    def rename_board(self, board: str, name: str, moderator: User) -> Version:
        """Give a board another name; its old address leads to the new one from now on, for good."""
        check_name(name)

        def work(connection: Connection) -> Version:
            user, old = _moderating(connection, moderator), sought(board)
            keep_definition(connection, old, user.name)
            version = version_of(connection, old)
            if version is None:
                raise NotFound(f'There is no board "{old}" to rename.')
            alias = connection.execute(select(board_names.c.board).where(board_names.c.name == name)).scalar()
            if alias not in (None, old) or (alias is None and _is_taken(connection, name)):
                raise Conflict(f"There is, or was, another board {quoted(name)}; choose another name.")
            connection.execute(board_names.delete().where(board_names.c.name == name))
            for table in metadata.tables.values():
                if "board" in table.columns:
                    connection.execute(update(table).where(table.c.board == old).values(board=name))
            connection.execute(insert(board_names).values(name=old, board=name, at=now()))
            changed = replace(version.definition, name=name)
            return _keep(connection, changed, version.version + 1, user.name, f"renamed from {old}", "renamed_board")

        return self._write(work)

    def former_names(self) -> dict[str, str]:
        """Names that boards had before, and what they are called now."""
        return {row.name: row.board for row in self._rows(select(board_names.c.name, board_names.c.board))}

    def may_read(self, board: str, user: User | None) -> bool:
        """Whether somebody sees a board at all."""
        with reading(self.engine) as connection:
            definition = definition_of(connection, name_now(connection, sought(board)))
        return definition is None or may_read(definition, user)

    def unreadable(self, user: User | None) -> frozenset[str]:
        """The private boards that somebody does not see, by the names that they have or had."""
        with reading(self.engine) as connection:
            held = current_definitions(connection)
        private = {name for name, each in held.items() if not may_read(each, user)}
        return frozenset(private | {old for old, new in self.former_names().items() if new in private})

    def unlisted(self, user: User | None) -> frozenset[str]:
        """The boards that are on no list for somebody: private ones of others, and, but for moderators, hidden ones."""
        with reading(self.engine) as connection:
            held = current_definitions(connection)
        hidden = {name for name, each in held.items() if each.state == "hidden"}
        return self.unreadable(user) | (hidden if user is None or not user.moderates else set())

    def may_see(self, submission: Submission, user: User | None) -> bool:
        """Whether somebody may know of a submission: of a private board its readers alone, and who sent it."""
        return submission.is_of(user) or self.may_read(submission.board, user)


def may_read(definition: Definition, user: User | None) -> bool:
    """Whether somebody sees a board of that definition."""
    if user is None:
        return definition.is_readable_by()
    return definition.is_readable_by(user.name, user.team, moderates=user.moderates)


# --- documents that arrive -------------------------------------------------------------------------------------------


def as_named_now(connection: Connection, document: Document, user: User) -> Document:
    """The document for the board by the name that it has now; who does not see the board is not told that name."""
    name = name_now(connection, sought(document.board))
    refuse_strangers(definition_of(connection, name), user, document.board)
    return document if name == document.board else document.for_board(name)


def refuse_strangers(definition: Definition | None, user: User, name: str) -> None:
    """NotAllowed for who does not see a board, by the name that they have for it."""
    if definition is not None and not may_read(definition, user):
        raise NotAllowed(f"The board {name} is private; ask its host to name you among its readers.")


def refuse_closed(definition: Definition | None, user: User) -> None:
    """Refuse scores for a board that takes none today, or that somebody does not see."""
    if definition is None:
        return
    refuse_strangers(definition, user, definition.name)
    if sentence := definition.closed(datetime.now(UTC).date()):
        raise Conflict(sentence)


def refuse_archived(connection: Connection, board: str) -> None:
    """Conflict for what would change the table of an archived board."""
    definition = definition_of(connection, board)
    if definition is not None and definition.state == "archived":
        raise Conflict(f"The board {board} is archived and its table stays as it is; a moderator opens it again first.")


def keep_definition(connection: Connection, board: str, user: str) -> None:
    """Give a board that has scores and no definition one made of these scores."""
    if version_of(connection, board) is not None or not _has_scores(connection, board):
        return
    live = live_scores(connection, board, None)
    columns = (live.system_id.tolist(), live["subset"], live["protocol"], live["metric"], live["status"], live["value"])
    measured = [
        Measured(system, subset, protocol, metric)
        for system, subset, protocol, metric, status, value in zip(*columns, strict=True)
        if status in VALUED and value == value
    ]
    if measured:
        hidden = blind_by_definition(connection, board) | announced_names(connection, board)
        definition = derived_definition(board, measured, hidden)
        _keep(connection, definition, 1, user, "made of the scores that were there")


# --- changes ---------------------------------------------------------------------------------------------------------


def changed_parts(before: Definition, after: Definition) -> list[str]:
    """The keys in which two definitions differ."""
    return [part.name for part in fields(Definition) if getattr(before, part.name) != getattr(after, part.name)]


def widened(definition: Definition, subsets: tuple[str, ...], metrics: tuple[str, ...]) -> Definition:
    """The definition with more subsets, each ranked by itself, and more metrics, over the means that are there."""
    new_subsets = [BoardSubset(name) for name in subsets if not definition.has_subsets([name])]
    new_metrics = [BoardMetric(name) for name in metrics if not definition.has_metric(name)]
    groups = [
        replace(group, metrics=(*group.metrics, *(metric.name for metric in new_metrics))) if group.metrics else group
        for group in definition.groups[:1]
    ]
    return replace(
        definition, subsets=(*definition.subsets, *new_subsets), metrics=(*definition.metrics, *new_metrics),
        groups=(*groups, *definition.groups[1:]),
    )  # fmt: skip


def _changes(parts: list[str]) -> str:
    named = [part for part in parts if part != "derived"]
    return f"changed {listed(named)}" if named else "taken over as it was"


def _moderating(connection: Connection, moderator: User) -> User:
    user = current_user(connection, moderator)
    if not user.moderates:
        raise NotAllowed("Only a moderator defines boards.")
    return user


def _keep(
    connection: Connection, definition: Definition, version: int, user: str, note: str, action: str = "defined_board"
) -> Version:
    at, board = now(), definition.name
    if len(note) > 2000:
        raise UsageError("The note on a change has at most 2,000 characters; shorten it.")
    blind_before = blind_by_definition(connection, board)
    values = {"board": board, "version": version, "user": user, "at": at, "note": note}
    connection.execute(insert(board_definitions).values(**values, text=packed(definition)))
    if definition.derived and version == 1:
        return Version(board, version, definition, user, at, note)  # readers see what they saw
    record(connection, user, action, detail=f"{board}, version {version}: {note}")
    grow(connection)
    if blind_before != definition.blind:  # what authors claim of blind subsets stands in front of no host's score
        scored = select(systems.c.id).where(systems.c.board == board, systems.c.changed > 0)
        recount_systems(connection, list(connection.scalars(scored)))
    return Version(board, version, definition, user, at, note)


def _has_scores(connection: Connection, board: str) -> bool:
    accepted = select(systems.c.id).where(systems.c.board == board, systems.c.changed > 0).limit(1)
    return connection.execute(accepted).first() is not None


def _is_taken(connection: Connection, name: str) -> bool:
    there = select(systems.c.id).where(systems.c.board == name).limit(1)
    return version_of(connection, name) is not None or connection.execute(there).first() is not None
