"""A document that an author sends: the scores of some systems on one board, with a card for each.

It is read from a score table (.csv, .jsonl, .json, .parquet), from the JSON of codecs, or from Earmark's own form

    {"format": "earmark-submission", "version": 1, "board": "vocsim", "provenance": "self-reported",
     "systems": [{"name": "my model", "family": "Whisper", "parameters_m": 635}],
     "scores": [{"system": "my model", "subset": "BC", "distance": "cosine", "metric": "P@1", "value": 0.7, …}]}

into which every other is turned: `to_bytes` writes it the same way each time, and its SHA-256 is the digest. Reading
refuses what is too large or too deep before it is parsed, NaN and infinity, keys given twice, and compressed files.
Whether the scores can be believed is asked in `rules`. Nothing here needs a database or a web server, so that
`earmark submit` reads exactly what the board will read.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, cast, get_args

from earmark.board.cards import card_from, plain_card
from earmark.board.limits import Limits
from earmark.board.records import Provenance, SystemCard
from earmark.board.strictness import check_parquet, refuse_compressed, strict_json, text_of
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean, quoted
from earmark.scores import COLUMNS, Row, Scores, read_scores
from earmark.scores.rows import DEFAULTS, distinct
from earmark.wording import counted

__all__ = ["FORMAT", "VERSION", "Document", "read_document"]

FORMAT = "earmark-submission"
VERSION = 1
_CODEC_FORMAT = "earmark-codec-submission"
_SUFFIXES = (".csv", ".jsonl", ".json", ".parquet")
_KEYS = ("format", "version", "board", "provenance", "systems", "scores")


@dataclass(frozen=True)
class Document:
    """The scores of some systems on one board. Two documents are the same when their digests are."""

    board: str
    cards: tuple[SystemCard, ...]
    scores: Scores
    provenance: Provenance = "self-reported"

    @classmethod
    def of(
        cls,
        scores: Scores,
        *,
        board: str = "",
        cards: Iterable[SystemCard] = (),
        provenance: Provenance = "self-reported",
    ) -> Document:
        """A document from scores: the board is their suite, and a system without a card gets one with its name alone.

        Where no row names a system, one card alone names them all.
        """
        given = tuple(cards)
        rows = scores.rows
        suites = distinct(rows, "suite")
        board = board or (suites[0] if len(suites) == 1 else "")
        if not board:
            if len(suites) > 1:
                raise InputError(f"The scores name {counted(len(suites), 'suite')}; send each board its own.")
            raise InputError(
                "The scores do not say which board they are for; name it with --board, in the column suite, or in the "
                "field Board of the form."
            )
        if set(suites) == {""}:
            rows = tuple(replace(row, suite=board) for row in rows)
        if distinct(rows, "system") == [""] and len(given) == 1:
            rows = tuple(replace(row, system=given[0].name) for row in rows)
        with_card = {card.name for card in given}
        bare = tuple(SystemCard(name) for name in distinct(rows, "system") if name not in with_card)
        return cls(board, given + bare, Scores(rows), provenance)

    @property
    def version(self) -> str:
        """What measured the scores, as their rows say: one version, or several with commas."""
        return ", ".join(sorted(name for name in distinct(self.scores.rows, "version") if name))

    def to_bytes(self) -> bytes:
        """The document in Earmark's own form; equal documents give equal bytes, whatever file they came from."""
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "board": self.board,
            "provenance": self.provenance,
            "systems": [plain_card(card) for card in self.cards],
            "scores": [_plain_row(row, self.board) for row in self.scores.rows],
        }
        try:
            return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The text {error.object!r:.80} cannot be written as UTF-8; rename it.") from error

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `to_bytes()`, in hexadecimal."""
        return hashlib.sha256(self._bytes).hexdigest()


def _plain_row(row: Row, board: str) -> dict[str, Any]:
    """The cells that say something; `suite` only where it is not the document's board."""
    cells = {name: getattr(row, name) for name in COLUMNS}
    return {
        name: cell
        for name, cell in cells.items()
        if (cell != board if name == "suite" else name == "metric" or cell != DEFAULTS[name])
    }


# --- reading ---------------------------------------------------------------------------------------------------------


def read_document(
    data: bytes,
    *,
    filename: str = "",
    board: str = "",
    cards: Sequence[SystemCard] | None = None,
    limits: Limits | None = None,
) -> Document:
    """The document in some bytes, in the format of the file's suffix; without a name, as JSON.

    `cards` describe the systems of a score table, and come before the cards that are inside a document. InputError
    says in one sentence what cannot be read and where; no bytes raise anything else.
    """
    limits = limits or Limits()
    name = PurePosixPath(filename.replace("\\", "/")).name or "document.json"
    suffix = PurePosixPath(name).suffix.lower()
    if len(data) > limits.max_body:
        raise InputError(f"{name} has {len(data):,} bytes; at most {limits.max_body:,} are taken: send it in parts.")
    refuse_compressed(data, name)
    if not data.strip():
        raise InputError(f"{name} is empty; a score table has at least a header and a row.")
    if suffix not in _SUFFIXES:
        raise InputError(f"{name}: a document is one of {', '.join(_SUFFIXES)}, not {quoted(suffix)}.")
    if suffix == ".json":
        return _from_json(data, name, board, tuple(cards or ()), limits)
    if suffix == ".jsonl":
        scores = Scores(tuple(_rows(_json_lines(data, name, limits), name, limits)))
    else:
        scores = _from_table(data, name, suffix, limits)
    return _within(Document.of(scores, board=board, cards=cards or ()), limits)


def _within(document: Document, limits: Limits) -> Document:
    if len(document.cards) > limits.max_systems:
        raise InputError(
            f"The document has {len(document.cards):,} systems; at most {limits.max_systems:,} are taken: send it in "
            "parts."
        )
    return document


def _from_json(data: bytes, name: str, board: str, cards: tuple[SystemCard, ...], limits: Limits) -> Document:
    plain = strict_json(data, name, limits)
    if isinstance(plain, list):
        return _within(Document.of(Scores(tuple(_rows(plain, name, limits))), board=board, cards=cards), limits)
    form = plain.get("format") if isinstance(plain, dict) else None
    if form == FORMAT:
        return _within(_from_own(plain, name, board, cards, limits), limits)
    if form == _CODEC_FORMAT:
        return _within(_from_codecs(data, board, cards), limits)
    raise InputError(
        f'{name} is neither an array of score rows nor a document with "format" "{FORMAT}" or "{_CODEC_FORMAT}".'
    )


def _from_own(
    plain: Mapping[str, Any], name: str, board: str, cards: tuple[SystemCard, ...], limits: Limits
) -> Document:
    for key in plain:
        if key not in _KEYS:
            raise InputError(
                f"{name} has the unknown key {quoted(key)}; remove or rename it.{did_you_mean(key, _KEYS)}"
            )
    if plain.get("version") != VERSION or isinstance(plain.get("version"), bool):
        raise InputError(
            f"{name} has version {quoted(str(plain.get('version')))}; this Earmark reads version {VERSION}: update "
            "Earmark, or write the document again."
        )
    said = plain.get("board", "")
    if not isinstance(said, str):
        raise InputError(f'{name}: "board" is text, not {quoted(str(said))}.')
    if board and said and board != said:
        raise InputError(f"{name} is for the board {quoted(said)}, not for {quoted(board)}; send it there.")
    provenance = plain.get("provenance", "self-reported")
    if provenance not in get_args(Provenance):
        raise InputError(f'{name}: "provenance" is {", ".join(get_args(Provenance))}, not {quoted(str(provenance))}.')
    systems, scores = plain.get("systems", []), plain.get("scores", [])
    if not isinstance(systems, list) or not isinstance(scores, list):
        raise InputError(f'{name}: "systems" and "scores" are arrays.')
    inside = [card_from(card, f"{name}, system {number}") for number, card in enumerate(systems, start=1)]
    named = {card.name for card in cards}
    rows = tuple(_rows(scores, name, limits, {"suite": board or said}))
    return Document.of(
        Scores(rows),
        board=board or said,
        cards=(*cards, *(card for card in inside if card.name not in named)),
        provenance=cast(Provenance, provenance),
    )


def _from_codecs(data: bytes, board: str, cards: tuple[SystemCard, ...]) -> Document:
    from earmark.codecs import submission as codecs

    found = codecs.read_document(data)
    named = {card.name for card in cards}
    inside = tuple(
        SystemCard(
            card.name,
            kind="codec",
            title=card.title,
            family=card.family,
            description=card.notes,
            licence=card.licence,
            kbps=card.kbps,
            citation=card.citation,
        )
        for card in found.cards
        if card.name not in named
    )
    scores = found.scores
    if board and board != found.suite:
        # A run's suite is the name of the run; whoever sends it says which board it is for.
        scores = Scores(tuple(replace(row, suite=board) for row in scores.rows))
    return Document.of(scores, board=board or found.suite, cards=cards + inside)


def _json_lines(data: bytes, name: str, limits: Limits) -> Iterable[Any]:
    for number, line in enumerate(text_of(data, name).split("\n"), start=1):
        if line.strip():
            yield strict_json(line.encode(), f"{name}, line {number}", limits)


def _rows(
    records: Iterable[Any], name: str, limits: Limits, defaults: Mapping[str, str] | None = None
) -> Iterable[Row]:
    for number, record in enumerate(records, start=1):
        where = f"{name}, row {number}"
        if number > limits.max_rows:
            raise InputError(f"{name} has more than {limits.max_rows:,} rows; send it in parts.")
        if not isinstance(record, dict):
            raise InputError(f"{where} is not a JSON object; a score table is an array of rows.")
        for column in record:
            if column not in DEFAULTS:
                hint = did_you_mean(column, COLUMNS)
                raise InputError(f"{where} has the unknown column {quoted(column)}; remove or rename it.{hint}")
        if not record.get("metric"):
            raise InputError(f'{where} has no "metric"; every score row names one.')
        cells = {**(defaults or {}), **{column: cell for column, cell in record.items() if cell is not None}}
        try:
            yield Row(**cells)
        except EarmarkError as error:
            raise InputError(f"{where}: {error}") from error


def _from_table(data: bytes, name: str, suffix: str, limits: Limits) -> Scores:
    """A CSV or Parquet table, read by the score table's own reader, which reads files."""
    if suffix == ".parquet":
        check_parquet(data, name, limits)
    elif data.count(b"\n") > limits.max_rows + 1:
        raise InputError(f"{name} has more than {limits.max_rows:,} lines; send it in parts.")
    with tempfile.TemporaryDirectory(prefix="earmark-") as folder:
        source = Path(folder) / f"table{suffix}"
        source.write_bytes(data)
        try:
            return read_scores(source)
        except UsageError:
            raise
        except EarmarkError as error:
            raise InputError(str(error).replace(str(source), name)) from None
