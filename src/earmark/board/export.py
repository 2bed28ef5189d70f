"""What readers see of a board, as tables for other programs: CSV or Parquet, one folder for each board.

scores        the live scores: a score table that `earmark.load_scores` and `earmark analyze` read
origins       for each of its rows the submission it came with, and that submission's provenance and date
systems       the cards
submissions   everything that was accepted, also what was withdrawn later, with the reasons
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from earmark.board.storage import Store
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.scores import KEY, Scores
from earmark.tables.files import write_columns

Format = Literal["csv", "parquet"]


def export(store: Store, folder: Path, suffix: Format = "csv", boards: Sequence[str] = ()) -> list[Path]:
    """Write the tables of some boards, or of all, and return the files."""
    there = store.boards()
    for name in boards:
        if name not in there:
            known = ", ".join(there) or "none yet"
            raise UsageError(f'There is no board "{name}"; there are {known}.{did_you_mean(name, there)}')
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder to write into.")
    return [path for name in boards or there for path in _export(store, folder / name, suffix, name)]


def _export(store: Store, folder: Path, suffix: Format, board: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    systems = store.systems(board)
    live = store.live_scores(board)
    sent: list[dict[str, Any]] = []
    while page := store.submissions(
        board=board, limit=1000, before=sent[-1]["id"] if sent else None, was_accepted=True
    ):
        sent += map(asdict, page)
    origins = (live[name] for name in ("submission_id", "provenance", "created"))
    names = {system.id: system.card.name for system in systems}
    scores = Scores(tuple(live.rows(board, names)))
    scores.write(folder / f"scores.{suffix}")
    tables: dict[str, list[dict[str, Any]]] = {
        "origins": [
            {**dict(zip(KEY, row.key, strict=True)), "submission": origin, "provenance": how, "created": when}
            for row, origin, how, when in zip(scores, *origins, strict=True)
        ],
        "systems": [
            {
                "board": system.board, "slug": system.slug,
                **{name: value for name, value in asdict(system.card).items() if name != "details"},
                "owner": system.owner, "team": system.team, "created": system.created,
            }
            for system in systems
        ],
        "submissions": sent,
    }  # fmt: skip
    for name, rows in tables.items():
        finish = _formula_free if suffix == "csv" else lambda value: value
        header = list(rows[0]) if rows else []
        columns = {column: [finish(_cell(row[column])) for row in rows] for column in header}
        write_columns(folder / f"{name}.{suffix}", columns, "tables of a board")
    return [folder / f"{name}.{suffix}" for name in ("scores", *tables)]


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "; ".join(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _formula_free(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula begins with an apostrophe: authors write it, hosts open it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
