"""The whole board in one file, from a running board, and back into any database.

The file is gzip-packed JSON Lines: a line that says what it is, then for each table a line with its columns and a line
for each row, and a last line with the SHA-256 of everything before it. It is taken in one read transaction, so that it
is the board of one moment while others go on writing, and it does not know which database it came from: a board moves
from SQLite to PostgreSQL by a backup and a restore. It holds the hashes of tokens and the key that signs cookies, so
that only its owner may read the file.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, DateTime, Engine, LargeBinary, MetaData, Table, func, insert, select, text
from sqlalchemy.types import TypeEngine

from earmark._version import __version__
from earmark.atomic import replacing
from earmark.board.storage import open_database
from earmark.board.storage.migrations import HEAD, bring_to, revision_of
from earmark.databases import connect, reading, writing
from earmark.errors import InputError

FORMAT = "earmark-board-backup"
VERSION = 1
_LEFT_OUT = ("alembic_version", "sessions")  # whoever was signed in signs in again
_AT_ONCE = 2000
_OWN_ENDS = ("", "-wal", "-shm", "-journal")
Progress = Callable[[int], None]


class BackedUp(NamedTuple):
    """What went into a file or came out of it: rows of each table, and when the file was made."""

    tables: dict[str, int]
    made: str
    earmark: str


def backup(engine: Engine, target: Path, progress: Progress = lambda rows: None) -> BackedUp:
    """Write the whole database to a file, whole or not at all; `progress` hears of every few rows written."""
    own = Path(engine.url.database or "").resolve()
    if engine.dialect.name == "sqlite" and target.resolve() in [Path(f"{own}{end}") for end in _OWN_ENDS]:
        raise InputError(f"{target} is the database itself; write the backup to another file.")
    with reading(engine) as connection:
        tables = _tables(connection)
        counts = {
            table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in tables.values()
        }
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
                    for plain in chain([header], _plain_rows(connection, tables.values(), progress)):
                        line = _line(plain)
                        digest.update(line)
                        stream.write(line)
                    stream.write(_last_line(digest.hexdigest()))
        except FileNotFoundError as error:
            raise InputError(f"{target}: its folder does not exist; create it first.") from error
    return made


def _tables(connection: Connection) -> dict[str, Table]:
    """The tables that are there, those that others refer to first."""
    metadata = MetaData()
    metadata.reflect(connection)
    return {table.name: table for table in metadata.sorted_tables if table.name not in _LEFT_OUT}


def _plain_rows(connection: Connection, tables: Iterable[Table], progress: Progress) -> Iterator[Any]:
    for table in tables:
        yield {"table": table.name, "columns": [column.name for column in table.columns]}
        rows = select(table).order_by(*table.primary_key.columns)
        for some in connection.execution_options(yield_per=_AT_ONCE).execute(rows).partitions(_AT_ONCE):
            yield from ([_plain_cell(cell) for cell in row] for row in some)
            progress(len(some))


def _line(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, datetime):
        return (cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)).isoformat()
    return base64.b64encode(cell).decode() if isinstance(cell, bytes) else cell


def _cell(plain: Any, kind: TypeEngine[Any]) -> Any:
    if isinstance(kind, DateTime) and plain is not None:
        return datetime.fromisoformat(plain)
    return base64.b64decode(plain) if isinstance(kind, LargeBinary) and plain is not None else plain


def restore(source: Path, url: str, progress: Progress = lambda rows: None) -> BackedUp:
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
    last = b""
    try:
        with gzip.open(source, "rb") as stream:
            for line in stream:
                if last:
                    digest.update(last)
                    yield last
                last = line
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{source} is damaged or no backup of a board ({error}); nothing was restored.") from error
    if last != _last_line(digest.hexdigest()):
        raise InputError(f"{source} is not whole: its end is missing or was changed; nothing was restored.")


def _last_line(digest: str) -> bytes:
    return json.dumps({"sha256": digest}).encode() + b"\n"


def _header(line: bytes, source: Path) -> dict[str, Any]:
    header: Any = None
    with contextlib.suppress(ValueError):
        header = json.loads(line)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{source} is no backup of a board; `earmark board backup` makes one.")
    if header["version"] != VERSION or header["revision"] > HEAD:
        raise InputError(f"{source} was made by Earmark {header['earmark']}, which is newer than this; update Earmark.")
    return header


def _refuse_full(connection: Connection, revision: str) -> None:
    there = revision_of(connection)
    tables = _tables(connection)
    if there is None and tables:
        raise InputError("The database holds something else than a board; name a new one.")
    if any(connection.execute(select(table).limit(1)).first() is not None for table in tables.values()):
        raise InputError("The database is not empty, and a restore overwrites nothing; name a new one.")
    if there is not None and there > revision:
        raise InputError(f"The database has newer tables ({there}) than the backup ({revision}); name a new one.")


def _fill(connection: Connection, source: Path, header: dict[str, Any], progress: Progress) -> None:
    tables = _tables(connection)
    counts = dict.fromkeys(header["tables"], 0)
    plain_lines = map(json.loads, islice(_read(source), 1, None))
    line = next(plain_lines, None)
    while line is not None:
        table = tables[line["table"]]
        columns = [table.columns[name] for name in line["columns"]]
        rows: list[dict[str, Any]] = []
        line = next(plain_lines, None)
        while isinstance(line, list):
            rows.append({to.name: _cell(cell, to.type) for to, cell in zip(columns, line, strict=True)})
            line = next(plain_lines, None)
            if len(rows) >= _AT_ONCE or not isinstance(line, list):
                connection.execute(insert(table), rows)
                counts[table.name] += len(rows)
                progress(len(rows))
                rows = []
    if counts != header["tables"]:
        raise InputError(f"{source} does not hold the rows that its first line counts; nothing was restored.")
    if connection.dialect.name == "postgresql":  # rows came with their numbers, which it does not count along
        for table in tables.values():
            most = connection.execute(select(func.max(table.c.id))).scalar() if "id" in table.columns else None
            if most is not None:
                counter = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :most)")
                connection.execute(counter, {"table": table.name, "most": most})
