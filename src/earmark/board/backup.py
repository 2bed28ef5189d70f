"""The whole board in one file, from a running board, and back into any database.

The file is gzip-packed JSON Lines: a line that says what it is, then for each table a line with its columns and a line
for each row, and a last line with the SHA-256 of everything before it. It is taken in one read transaction, so that it
is the board of one moment while others go on writing, and it does not know which database it came from: a board moves
from SQLite to PostgreSQL by a backup and a restore. It holds the hashes of tokens and the key that signs cookies, so
that only its owner may read the file.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, DateTime, Engine, LargeBinary, MetaData, Table, func, insert, select, text
from sqlalchemy.types import TypeEngine

from earmark._version import __version__
from earmark.atomic import replacing
from earmark.board.storage.database import connect, open_database, reading, writing
from earmark.board.storage.migrations import HEAD, bring_to, revision_of
from earmark.errors import InputError

FORMAT = "earmark-board-backup"
VERSION = 1
_AT_ONCE = 2000
Progress = Callable[[int], None]


class BackedUp(NamedTuple):
    """What went into a file or came out of it: rows of each table, and when the file was made."""

    tables: dict[str, int]
    made: str
    earmark: str


# --- out -------------------------------------------------------------------------------------------------------------


def backup(engine: Engine, target: Path, progress: Progress | None = None) -> BackedUp:
    """Write the whole database to a file, whole or not at all; `progress` hears of every few rows written."""
    _spare_database(engine, target)
    with reading(engine) as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        tables = [table for table in metadata.sorted_tables if table.name != "alembic_version"]
        counts = {table.name: _count(connection, table) for table in tables}
        made = BackedUp(counts, datetime.now(UTC).isoformat(timespec="seconds"), __version__)
        header = {
            "format": FORMAT, "version": VERSION, "revision": revision_of(connection), "earmark": made.earmark,
            "made": made.made, "tables": counts,
        }  # fmt: skip
        try:
            with replacing(target) as part:
                part.touch(mode=0o600)
                with gzip.open(part, "wb", compresslevel=6) as stream:
                    digest = hashlib.sha256()
                    for line in _lines(connection, tables, header, progress):
                        digest.update(line)
                        stream.write(line)
                    stream.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
        except FileNotFoundError as error:
            raise InputError(f"{target}: its folder does not exist; create it first.") from error
    return made


def _spare_database(engine: Engine, target: Path) -> None:
    """InputError when the backup would take the place of the database itself."""
    if engine.dialect.name != "sqlite":
        return
    own = Path(engine.url.database or "").resolve()
    if target.resolve() in (own, *(own.with_name(own.name + end) for end in ("-wal", "-shm", "-journal"))):
        raise InputError(f"{target} is the database itself; write the backup to another file.")


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _lines(
    connection: Connection, tables: list[Table], header: dict[str, Any], progress: Progress | None
) -> Iterator[bytes]:
    yield _line(header)
    for table in tables:
        yield _line({"table": table.name, "columns": [column.name for column in table.columns]})
        writers = [_writer(column.type) for column in table.columns]
        keys = list(table.primary_key.columns)
        found = connection.execution_options(yield_per=_AT_ONCE).execute(select(table).order_by(*keys))
        for rows in found.partitions(_AT_ONCE):
            for row in rows:
                yield _line([write(cell) for write, cell in zip(writers, row, strict=True)])
            if progress:
                progress(len(rows))


def _line(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _writer(kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    if isinstance(kind, DateTime):
        return _moment_out
    if isinstance(kind, LargeBinary):
        return lambda cell: None if cell is None else base64.b64encode(cell).decode()
    return lambda cell: cell


def _moment_out(cell: datetime | None) -> str | None:
    if cell is None:
        return None
    return (cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)).isoformat()


# --- back ------------------------------------------------------------------------------------------------------------


def restore(source: Path, url: str, progress: Progress | None = None) -> BackedUp:
    """Put a backup into a database that is new or empty, all of it or nothing, and bring it up to this version."""
    header = _header(next(_read(source), b""), source)  # before the database is made: a wrong file leaves nothing
    engine = connect(url)
    try:
        writing(engine, lambda connection: _refuse_full(connection, header["revision"]))
        writing(engine, lambda connection: bring_to(connection, header["revision"]))

        def work(connection: Connection) -> None:
            _refuse_full(connection, header["revision"])
            _fill(connection, source, header, progress)

        writing(engine, work)
    finally:
        engine.dispose()
    open_database(url).dispose()  # brings an older backup up to date
    return BackedUp(dict(header["tables"]), header["made"], header["earmark"])


def _read(source: Path) -> Iterator[bytes]:
    """The lines of a backup, each whole; InputError when the file is damaged, cut off, or no backup."""
    digest = hashlib.sha256()
    held: bytes | None = None
    try:
        with gzip.open(source, "rb") as stream:
            for line in stream:
                if held is not None:
                    digest.update(held)
                    yield held
                held = line
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source} is damaged or no backup of a board ({error}); nothing was restored.") from error
    try:
        last = json.loads(held or b"")
        whole = last["sha256"] == digest.hexdigest()
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise InputError(f"{source} is not whole: its end is missing or was changed; nothing was restored.")


def _header(line: bytes, source: Path) -> dict[str, Any]:
    try:
        header = json.loads(line)
        known = header["format"] == FORMAT
    except (ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise InputError(f"{source} is no backup of a board; `earmark board backup` makes one.")
    if header["version"] != VERSION or header["revision"] > HEAD:
        raise InputError(f"{source} was made by Earmark {header['earmark']}, which is newer than this; update Earmark.")
    found: dict[str, Any] = header
    return found


def _refuse_full(connection: Connection, revision: str) -> None:
    there = revision_of(connection)
    metadata = MetaData()
    metadata.reflect(connection)
    if there is None and metadata.tables:
        raise InputError("The database holds something else than a board; name a new one.")
    for table in metadata.sorted_tables:
        if table.name != "alembic_version" and connection.execute(select(table).limit(1)).first() is not None:
            raise InputError("The database is not empty, and a restore overwrites nothing; name a new one.")
    if there is not None and there > revision:
        raise InputError(f"The database has newer tables ({there}) than the backup ({revision}); name a new one.")


def _fill(connection: Connection, source: Path, header: dict[str, Any], progress: Progress | None) -> None:
    metadata = MetaData()
    metadata.reflect(connection)
    lines = _read(source)
    next(lines)
    table: Table | None = None
    readers: list[Callable[[Any], Any]] = []
    names: list[str] = []
    waiting: list[dict[str, Any]] = []
    counts = dict.fromkeys(header["tables"], 0)

    def flush() -> None:
        if table is not None and waiting:
            connection.execute(insert(table), waiting)
            counts[table.name] += len(waiting)
            if progress:
                progress(len(waiting))
            waiting.clear()

    for line in lines:
        plain = json.loads(line)
        if isinstance(plain, dict):
            flush()
            table, names = metadata.tables[plain["table"]], plain["columns"]
            readers = [_reader(table.columns[name].type) for name in names]
            continue
        waiting.append({name: read(cell) for name, read, cell in zip(names, readers, plain, strict=True)})
        if len(waiting) >= _AT_ONCE:
            flush()
    flush()
    if counts != header["tables"]:
        raise InputError(f"{source} does not hold the rows that its first line counts; nothing was restored.")
    if connection.dialect.name == "postgresql":
        _set_counters(connection, metadata)


def _reader(kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    if isinstance(kind, DateTime):
        return lambda cell: None if cell is None else datetime.fromisoformat(cell)
    if isinstance(kind, LargeBinary):
        return lambda cell: None if cell is None else base64.b64decode(cell)
    return lambda cell: cell


def _set_counters(connection: Connection, metadata: MetaData) -> None:
    """Rows came with their numbers, which PostgreSQL does not count along."""
    for table in metadata.sorted_tables:
        if "id" not in table.columns:
            continue
        most = connection.execute(select(func.max(table.c.id))).scalar()
        if most is not None:
            connection.execute(
                text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :most)"), {"table": table.name, "most": most}
            )
