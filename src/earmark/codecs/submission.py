"""The submission file of codecs: one strict JSON document with a card and measured rows for each codec.

    {"format": "earmark-codec-submission", "version": 1, "earmark": "0.1", "suite": "codec", "definitions": "mended",
     "versions": {"numpy": "2.3"},
     "datasets": [{"subset": "esc50", "category": "audio", "clips": 200, "seconds": 1000.0, "digest": "ab…"}],
     "codecs": [{"card": {"name": "opus@12", "family": "opus", …},
                 "results": [{"subset": "esc50", "metric": "pesq", "value": 3.36, …}]}]}

A result is a row of the score table without suite and system, which stand above it; cells that say nothing are left
out. Any subset of metrics and datasets may be there, but what is there must be whole: a value with the number of clips
it rests on, the version that measured it and the hash of its inputs, or a status with a reason; and a row for the
bitrate of each codec, which is counted and never taken from its name. Reading refuses what is not strict JSON, what is
too large or too deep, unknown keys, keys given twice, NaN, and rows that no measurement could have given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from earmark._version import __version__
from earmark.codecs.contract import Category, CodecCard
from earmark.errors import InputError, did_you_mean
from earmark.scores import COLUMNS, Row, Scores, validate
from earmark.scores.rows import DEFAULTS

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "VERSION",
    "Dataset",
    "Document",
    "read_document",
    "schema",
    "to_document",
    "to_json",
]

FORMAT = "earmark-codec-submission"
VERSION = 1
MOST_BYTES = 8 << 20
MOST_DEPTH = 8
MOST_TEXT = 2_000
MOST_CODECS = 2_000
MOST_RESULTS = 100_000

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"', re.S)
_BRACKETS = re.compile(r"[\[\]{}]")
_STATED = ("delay_ms",)  # a card may say it, and then it rests on no clips
_RESULT_COLUMNS = tuple(name for name in COLUMNS if name not in ("suite", "system"))


@dataclass(frozen=True)
class Dataset:
    """What the codecs were measured on. `digest` is a hash of the sounds, in order."""

    subset: str
    category: Category
    clips: int
    seconds: float = 0.0
    digest: str = ""
    title: str = ""


@dataclass(frozen=True)
class Document:
    """A submission as values: a card for each codec and every row that was measured of them."""

    cards: tuple[CodecCard, ...]
    scores: Scores
    suite: str = "codec"
    definitions: str = "mended"
    datasets: tuple[Dataset, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    earmark: str = __version__


# --- the shape of the file -------------------------------------------------------------------------------------------

_Text = Annotated[str, Field(max_length=MOST_TEXT)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Card(_Part):
    name: _Name
    family: _Name
    title: _Text = ""
    rate: Annotated[int, Field(ge=1, le=10_000_000)] = 16000
    kbps: _Number | None = None
    frame_rate: _Number | None = None
    codebooks: _Count | None = None
    codebook_sizes: Annotated[list[_Count], Field(max_length=256)] = []
    packet_bits: _Count | None = None
    causal: bool | None = None
    delay: int | None = None
    lossless: bool = False
    variable_rate: bool = False
    licence: _Text = ""
    citation: _Text = ""
    extra: _Text = ""
    checkpoint: _Text = ""
    how_to_get: _Text = ""
    paper_code: _Text = ""
    version: _Text = "1"
    notes: _Text = ""


class _Result(_Part):
    subset: _Text
    metric: _Name
    distance: _Text = ""
    correction: _Text = "none"
    protocol: _Name = "all"
    value: _Number | None = None
    low: _Number | None = None
    high: _Number | None = None
    baseline: _Number | None = None
    lift: _Number | None = None
    p_value: _Number | None = None
    n: _Count | None = None
    status: Literal["ok", "not_applicable", "failed"] = "ok"
    reason: _Text = ""
    seconds: _Number | None = None
    version: _Name
    inputs: _Name
    baseline_low: _Number | None = None
    baseline_high: _Number | None = None
    interval: str = ""
    unit: str = ""
    units: int | None = None
    comparisons: int | None = None
    shuffle: str = ""
    baseline_error: _Number | None = None
    ablation: str = ""
    aggregate: str = ""
    statistic: str = ""


class _Dataset(_Part):
    subset: _Text
    category: Literal["speech", "audio", "music"]
    clips: _Count
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    digest: _Text = ""
    title: _Text = ""


class _Codec(_Part):
    card: _Card
    results: Annotated[list[_Result], Field(min_length=1, max_length=MOST_RESULTS)]


class _File(_Part):
    format: Literal["earmark-codec-submission"]
    version: Literal[1]
    earmark: _Name
    suite: _Name = "codec"
    definitions: Literal["mended", "reference"] = "mended"
    versions: Annotated[dict[str, _Text], Field(max_length=200)] = {}
    datasets: Annotated[list[_Dataset], Field(max_length=10_000)] = []
    codecs: Annotated[list[_Codec], Field(min_length=1, max_length=MOST_CODECS)]


def schema() -> dict[str, Any]:
    """The JSON schema of a submission file."""
    return _File.model_json_schema()


# --- writing ---------------------------------------------------------------------------------------------------------


def to_document(document: Document) -> dict[str, Any]:
    """The submission as plain values that JSON can hold; InputError when it could not be read back."""
    plain = _plain(document)
    _check(_parsed(plain))
    return plain


def to_json(document: Document) -> str:
    """The text of the file: the same document gives the same text."""
    return json.dumps(to_document(document), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _plain(document: Document) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "earmark": document.earmark,
        "suite": document.suite,
        "definitions": document.definitions,
        "versions": dict(sorted(document.versions.items())),
        "datasets": [asdict(dataset) for dataset in document.datasets],
        "codecs": [
            {"card": _card(card), "results": [_result(row) for row in document.scores if row.system == card.name]}
            for card in document.cards
        ],
    }


def _card(card: CodecCard) -> dict[str, Any]:
    said = {one.name: getattr(card, one.name) for one in fields(CodecCard) if getattr(card, one.name) != one.default}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def _result(row: Row) -> dict[str, Any]:
    cells = {name: getattr(row, name) for name in _RESULT_COLUMNS}
    if len(row.reason) > MOST_TEXT:  # a file must stay readable; clips.csv has every reason
        cells["reason"] = row.reason[: MOST_TEXT - 1] + "…"
    always = ("subset", "metric", "value", "status")
    return {name: cell for name, cell in cells.items() if name in always or cell != DEFAULTS[name]}


# --- reading ---------------------------------------------------------------------------------------------------------


def read_document(data: bytes | str) -> Document:
    """The submission in `data`, checked; InputError with one sentence that says where it is wrong."""
    found = _parsed(strict_json(data))
    document = Document(
        tuple(CodecCard(**_as_card(codec.card)) for codec in found.codecs),
        Scores(tuple(_rows(found))),
        found.suite,
        found.definitions,
        tuple(Dataset(**dataset.model_dump()) for dataset in found.datasets),
        dict(found.versions),
        found.earmark,
    )
    _check(found)
    return document


def strict_json(data: bytes | str) -> Any:
    """JSON without NaN, without keys given twice, of bounded size and depth."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > MOST_BYTES:
        raise InputError(f"The submission has {len(raw):,} bytes; at most {MOST_BYTES:,} are read: send it in parts.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"The submission is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error
    _refuse_depth(text)
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once, parse_int=_whole)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"The submission is not valid JSON ({error}): write it with a JSON library.") from error


def _refuse_depth(text: str) -> None:
    """Refuse nesting before the parser, which goes down by recursion, meets it."""
    depth = 0
    for mark in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if mark in "[{" else -1
        if depth > MOST_DEPTH:
            raise InputError(f"The submission is nested more than {MOST_DEPTH} deep: see the schema in the manual.")


def _no_constant(name: str) -> Any:
    raise InputError(f"The submission holds {name}: leave a missing number out, and give a status and a reason.")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise InputError("The submission holds a whole number of more than 20 digits: nothing here counts that far.")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"The submission gives the key {twice[:60]!r} twice in one place: keep one of them.")
    return found


def _parsed(plain: Any) -> _File:
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise InputError(f'This is not a codec submission: the key "format" must be "{FORMAT}".')
    if plain.get("version") != VERSION:
        raise InputError(
            f"The submission has version {plain.get('version')!r}; this Earmark reads version {VERSION}: "
            "update Earmark, or write the file again."
        )
    try:
        return _File.model_validate(plain)
    except ValidationError as error:
        raise InputError(f"The submission is not valid: {_explained(error)}") from None


def _explained(error: ValidationError) -> str:
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = "/".join(str(part) for part in first["loc"])
    match first["type"]:
        case "extra_forbidden":
            known = {name for part in (_File, _Codec, _Card, _Result, _Dataset) for name in part.model_fields}
            return f"unknown key {place}.{did_you_mean(str(first['loc'][-1]), known)}"
        case "missing":
            return f"{place} is missing; it is needed."
        case _:
            given = repr(first["input"])
            return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {given[:60]}."


def _as_card(card: _Card) -> dict[str, Any]:
    return {**card.model_dump(), "codebook_sizes": tuple(card.codebook_sizes)}


def _rows(found: _File) -> Iterable[Row]:
    for codec in found.codecs:
        for result in codec.results:
            yield Row(suite=found.suite, system=codec.card.name, **result.model_dump())


def _check(found: _File) -> None:
    """Refuse what has the right shape and is no measurement."""
    names = [codec.card.name for codec in found.codecs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The submission has two codecs called {name!r}: give each setting a name of its own.")
    subsets = [dataset.subset for dataset in found.datasets]
    if len(set(subsets)) < len(subsets):
        raise InputError("The submission describes one dataset twice: keep one of them.")
    for codec in found.codecs:
        if not any(result.metric == "kbps" for result in codec.results):
            raise InputError(
                f"{codec.card.name} has no row for its bitrate: measure kbps from the payload, as `earmark codec run` "
                "does."
            )
        for result in codec.results:
            if result.status == "ok" and result.n is None and result.metric not in _STATED:
                raise InputError(
                    f"{codec.card.name}, {result.subset}, {result.metric}: a value without n; say on how many clips it "
                    "rests."
                )
    rows = list(_rows(found))
    problems = validate(rows)
    if problems:
        raise InputError(f"The submission is not valid: {problems[0]}")
