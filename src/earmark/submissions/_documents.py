"""A document that an author sends: the scores of some systems on one board, with a card for each.

It is read from a score table (.csv, .jsonl, .json, .parquet) or from Earmark's own form

    {"format": "earmark-submission", "version": 1, "board": "vocsim", "provenance": "self-reported",
     "systems": [{"name": "my model", "family": "Whisper", "parameters_m": 635}],
     "scores": [{"system": "my model", "subset": "BC", "distance": "cosine", "metric": "P@1", "value": 0.7, …}]}

into which every other is turned: `to_bytes` writes it the same way each time, and its SHA-256 is the digest. A score
is a row of the score table; cells that say nothing are left out. What `earmark codec run` writes has in addition what
the codecs were measured on (`datasets`), by which `definitions` of the metrics and with which `versions` of libraries,
and `details` of the cards; such a document has version 2. What Earmark 0.1 wrote for codecs is read as well.

Reading refuses what is too large or too deep before it is parsed, NaN and infinity, keys given twice, unknown keys, and
compressed files. Whether the scores can be believed is asked in `rules`. Nothing here needs a database or a web server,
so that `earmark submit` reads exactly what the board will read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, Literal, cast, get_args

from earmark.errors import EarmarkError, InputError, did_you_mean, quoted
from earmark.scores import COLUMNS, Row, Scores, decode_rows
from earmark.scores.rows import COUNTS, DEFAULTS, NUMBERS, distinct
from earmark.scores.spelling import columns_of
from earmark.submissions._cards import Dataset, SystemCard, card_from, dataset_from, plain_card
from earmark.submissions._strictness import Limits, check_parquet, refuse_compressed, strict_json
from earmark.tables import decode_text
from earmark.wording import counted

Provenance = Literal["self-reported", "reproduced", "blind", "printed"]
FORMAT = "earmark-submission"
VERSION = 2
_CODEC_FORMAT, _CODEC_VERSION = "earmark-codec-submission", 1
_SUFFIXES = (".csv", ".jsonl", ".json", ".parquet")
_DEFINITIONS = ("mended", "reference")
_RUN_KEYS = ("definitions", "versions", "datasets")
_KEYS = ("format", "version", "board", "provenance", "systems", "scores", *_RUN_KEYS)
_CODEC_KEYS = ("format", "version", "earmark", "suite", "codecs", *_RUN_KEYS)
_CODEC_DETAILS = (
    "rate", "frame_rate", "codebooks", "codebook_sizes", "packet_bits", "causal", "delay", "lossless", "variable_rate",
    "extra", "checkpoint", "how_to_get", "paper_code", "version",
)  # fmt: skip


@dataclass(frozen=True)
class Document:
    """The scores of some systems on one board. Two documents are the same when their digests are.

    `definitions`, `datasets` and `versions` say how a run of codecs measured; other documents leave them empty.
    """

    board: str
    cards: tuple[SystemCard, ...]
    scores: Scores
    provenance: Provenance = "self-reported"
    definitions: str = ""
    datasets: tuple[Dataset, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, scores: Scores, *, board: str = "", cards: Iterable[SystemCard] = (), **more: Any) -> Document:
        """A document from scores: the board is their suite, and a system without a card gets one with its name alone.

        Where no row names a system, one card alone names them all. `more` are the other fields of a document.
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
        return cls(board, given + bare, Scores(rows), **more)

    def for_board(self, board: str) -> Document:
        """The same scores for a board of another name."""
        return replace(self, board=board, scores=Scores(tuple(replace(row, suite=board) for row in self.scores)))

    @property
    def version(self) -> str:
        """What measured the scores, as their rows say: one version, or several with commas."""
        return ", ".join(sorted(name for name in distinct(self.scores.rows, "version") if name))

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The document in Earmark's own form, as values that JSON can hold."""
        run: dict[str, Any] = {
            "definitions": self.definitions,
            "versions": dict(sorted(self.versions.items())),
            "datasets": [asdict(dataset) for dataset in self.datasets],
        }
        run = {name: value for name, value in run.items() if value}
        return {
            "format": FORMAT,
            # The least version that can say it, so that older boards read what they can.
            "version": VERSION if run or any(card.details for card in self.cards) else 1,
            "board": self.board,
            "provenance": self.provenance,
            **run,
            "systems": [plain_card(card) for card in self.cards],
            "scores": [_plain_row(row, self.board) for row in self.scores.rows],
        }

    def to_bytes(self) -> bytes:
        """The document in Earmark's own form; equal documents give equal bytes, whatever file they came from."""
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        try:
            return json.dumps(self.plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The text {error.object!r:.80} cannot be written as UTF-8; rename it.") from error

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `to_bytes()`, in hexadecimal."""
        return hashlib.sha256(self._bytes).hexdigest()


_CELLS = attrgetter(*COLUMNS)
_UNSAID = {**DEFAULTS, "metric": None}


def _plain_row(row: Row, board: str) -> dict[str, Any]:
    """The cells that say something that the document's board and the row's own names do not."""
    elsewhere: dict[str, Any] = {**_UNSAID, "suite": board}
    elsewhere |= columns_of(row.subset, row.distance, row.protocol, row.metric)._asdict()
    named = zip(COLUMNS, _CELLS(row), elsewhere.values(), strict=True)
    return {name: cell for name, cell, known in named if cell != known}


def schema() -> dict[str, Any]:
    """The JSON schema of Earmark's own form."""
    cell = {name: {"type": ["number", "null"] if name in NUMBERS else "string"} for name in COLUMNS}
    cell |= {name: {"type": ["integer", "null"]} for name in COUNTS}
    texts = {"type": "string"}
    return {
        "type": "object",
        "required": ["format", "version", "board", "scores"],
        "properties": {
            "format": {"const": FORMAT},
            "version": {"enum": [1, VERSION]},
            "board": texts,
            "provenance": {"enum": [*get_args(Provenance)]},
            "definitions": {"enum": [*_DEFINITIONS]},
            "versions": {"type": "object", "additionalProperties": texts},
            "datasets": {"type": "array", "items": {"type": "object", "required": ["subset", "category", "clips"]}},
            "systems": {
                "type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": texts}},
            },
            "scores": {"type": "array", "items": {"type": "object", "required": ["metric"], "properties": cell}},
        },
    }  # fmt: skip


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
        raise InputError(f"{name} has {len(data):,} bytes; at most {limits.max_body:,} are taken: {limits.remedy}.")
    refuse_compressed(data, name)
    if not data.strip():
        raise InputError(f"{name} is empty; a score table has at least a header and a row.")
    if suffix not in _SUFFIXES:
        raise InputError(f"{name}: a document is one of {', '.join(_SUFFIXES)}, not {quoted(suffix)}.")
    given = tuple(cards or ())
    if suffix == ".json":
        document = _from_json(strict_json(data, name, limits), name, board, given, limits)
    else:
        rows = _json_lines(data, name, limits) if suffix == ".jsonl" else _from_table(data, name, suffix, limits)
        document = Document.of(Scores(tuple(rows)), board=board, cards=given)
    if len(document.cards) > limits.max_systems:
        raise InputError(
            f"The document has {len(document.cards):,} systems; at most {limits.max_systems:,} are taken: "
            f"{limits.remedy}."
        )
    return document


def _from_json(plain: Any, name: str, board: str, cards: tuple[SystemCard, ...], limits: Limits) -> Document:
    if isinstance(plain, list):
        return Document.of(Scores(tuple(_rows(plain, name, limits))), board=board, cards=cards)
    form = plain.get("format") if isinstance(plain, dict) else None
    if form == _CODEC_FORMAT:
        plain = _from_codec_form(plain, name)
    elif form != FORMAT:
        raise InputError(
            f'{name} is neither an array of score rows nor a document with "format" "{FORMAT}" or "{_CODEC_FORMAT}".'
        )
    _check_keys(plain, _KEYS, name, VERSION)
    addressee = plain.get("board", "")
    definitions, versions = plain.get("definitions", ""), plain.get("versions", {})
    if not isinstance(addressee, str):
        raise InputError(f'{name}: "board" is text, not {quoted(str(addressee))}.')
    if board and addressee and board != addressee and not definitions:
        raise InputError(f"{name} is for the board {quoted(addressee)}, not for {quoted(board)}; send it there.")
    provenance = plain.get("provenance", "self-reported")
    for key, choices in (("provenance", get_args(Provenance)), ("definitions", ("", *_DEFINITIONS))):
        if (given := plain.get(key, choices[0])) not in choices:
            raise InputError(f'{name}: "{key}" is {", ".join(filter(None, choices))}, not {quoted(str(given))}.')
    if not isinstance(versions, dict) or not all(isinstance(text, str) for text in versions.values()):
        raise InputError(f'{name}: "versions" names libraries, each with a text.')
    systems, datasets, scores = (plain.get(key, []) for key in ("systems", "datasets", "scores"))
    if not isinstance(systems, list) or not isinstance(scores, list) or not isinstance(datasets, list):
        raise InputError(f'{name}: "systems" and "scores" are arrays.')
    inside = [card_from(card, f"{name}, system {number}") for number, card in enumerate(systems, start=1)]
    described = {card.name for card in cards}
    # The suite of a run of codecs is the name of the run; whoever sends it says which board it is for.
    rows = _rows(scores, name, limits, {"suite": board or addressee})
    return Document.of(
        Scores(tuple(rows)),
        board=board or addressee,
        cards=(*cards, *(card for card in inside if card.name not in described)),
        provenance=cast(Provenance, provenance),
        definitions=definitions,
        datasets=tuple(dataset_from(one, f"{name}, dataset {at}") for at, one in enumerate(datasets, start=1)),
        versions=versions,
    )


def _check_keys(plain: Mapping[str, Any], known: Sequence[str], name: str, newest: int) -> None:
    for key in plain:
        if key not in known:
            hint = did_you_mean(key, known)
            raise InputError(f"{name} has the unknown key {quoted(key)}; remove or rename it.{hint}")
    version = plain.get("version")
    if isinstance(version, bool) or version not in range(1, newest + 1):
        raise InputError(
            f"{name} has version {quoted(str(version))}; this Earmark reads version {newest}: update Earmark, or write "
            "the document again."
        )


def _from_codec_form(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The form in which Earmark 0.1 wrote runs of codecs, as today's: a card with its results becomes a system."""
    _check_keys(plain, _CODEC_KEYS, name, _CODEC_VERSION)
    systems, scores = [], []
    codecs = plain.get("codecs")
    if not isinstance(codecs, list) or not codecs:
        raise InputError(f'{name}: "codecs" is an array of at least one codec.')
    for number, codec in enumerate(codecs, start=1):
        card, results = (codec.get(key) for key in ("card", "results")) if isinstance(codec, dict) else (None, None)
        if not isinstance(card, dict) or not isinstance(results, list) or set(codec) != {"card", "results"}:
            raise InputError(f'{name}, codec {number} is not an object with a "card" and an array of "results".')
        stated = {"description" if key == "notes" else key: value for key, value in card.items()}
        details = {key: stated.pop(key) for key in _CODEC_DETAILS if key in stated}
        systems.append({**stated, "kind": "codec", "details": {k: v for k, v in details.items() if v is not None}})
        scores += [{**row, "system": card.get("name")} if isinstance(row, dict) else row for row in results]
    return {
        "format": FORMAT, "version": VERSION, "board": plain.get("suite", "codec"), "systems": systems,
        "scores": scores, "definitions": plain.get("definitions", "mended"), "versions": plain.get("versions", {}),
        "datasets": plain.get("datasets", []),
    }  # fmt: skip


def _json_lines(data: bytes, name: str, limits: Limits) -> Iterable[Row]:
    lines = enumerate(decode_text(data, name).split("\n"), start=1)
    records = (strict_json(line.encode(), f"{name}, line {at}", limits) for at, line in lines if line.strip())
    return _rows(records, name, limits)


def _rows(
    records: Iterable[Any], name: str, limits: Limits, defaults: Mapping[str, str] | None = None
) -> Iterable[Row]:
    for number, record in enumerate(records, start=1):
        where = f"{name}, row {number}"
        if number > limits.max_rows:
            raise InputError(f"{name} has more than {limits.max_rows:,} rows; {limits.remedy}.")
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


def _from_table(data: bytes, name: str, suffix: str, limits: Limits) -> Iterable[Row]:
    """A CSV or Parquet table, read by the score table's own reader."""
    if suffix == ".parquet":
        check_parquet(data, name, limits)
    elif data.count(b"\n") > limits.max_rows + 1:
        raise InputError(f"{name} has more than {limits.max_rows:,} lines; {limits.remedy}.")
    return decode_rows(data, PurePosixPath(name))
