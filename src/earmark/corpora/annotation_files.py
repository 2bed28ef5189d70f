"""Annotations as other programs write them: spans of recordings with labels.

    Raven         a table with tabs and the columns Begin Time (s), End Time (s); BirdNET-Analyzer writes it too
    Audacity      start, end and label, with tabs and without a header
    Praat         .TextGrid, long or short, UTF-8 or UTF-16; one tier of intervals
    Kaleidoscope  .csv with the columns IN FILE, OFFSET and DURATION; BirdNET-Analyzer writes it too
    BirdNET       .csv with the columns Start (s), End (s) and Common name, as BirdNET-Analyzer writes it

A row that is no span is left out, with a reason. Numbers may have a decimal comma.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from earmark.errors import InputError, did_you_mean
from earmark.places import is_remote
from earmark.tables.files import decode_text, read_bytes, read_csv

Kind = Literal["raven", "audacity", "praat", "kaleidoscope", "birdnet"]
SUFFIXES = (".txt", ".tsv", ".textgrid", ".csv")

_RAVEN = {
    "selection", "view", "channel", "begin time (s)", "end time (s)", "low freq (hz)", "high freq (hz)", "begin file",
    "end file", "begin path", "file offset (s)", "delta time (s)", "delta freq (hz)", "avg power density (db fs/hz)",
    "confidence", "rank", "begin clock time", "begin date", "begin date time",
}  # fmt: skip
_LABELS: dict[str, tuple[str, ...]] = {
    "raven": ("label", "species", "annotation", "common name", "species code", "call type", "type", "class", "tags"),
    "kaleidoscope": ("manual id", "top1match*", "top1match", "auto id*", "auto id", "common_name", "scientific_name"),
    "birdnet": ("common name", "scientific name"),
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\S)')


class Annotation(NamedTuple):
    """A span in seconds; `recording` is the file that the row names, if it names one."""

    where: str
    start: float
    end: float
    label: str | None
    recording: str | None = None
    group: str | None = None
    subset: str = ""


class Annotations(NamedTuple):
    """What a file holds: spans, a reason for each row that is none, and which column or tier the labels are."""

    spans: list[Annotation]
    broken: list[str]
    labels: str
    channels: frozenset[str] = frozenset()  # that selections of Raven are on


def kind_of(file: Path) -> Kind | None:
    """Which program's annotations a file holds, by its name and first lines; None where it is something else."""
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES or is_remote(file) or not file.is_file():
        return None
    if suffix == ".textgrid":
        return "praat"
    with file.open("rb") as stream:
        data = stream.read(4096)
    lines = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if suffix == ".csv":
        header = {name.strip().strip('"').lower() for name in first.split(",")}
        if {"start (s)", "end (s)"} <= header and header & {*_LABELS["birdnet"]}:
            return "birdnet"
        return "kaleidoscope" if {"in file", "offset", "duration"} <= header else None
    if {"begin time (s)", "end time (s)"} <= {name.strip().lower() for name in first.split("\t")}:
        return "raven"
    cells = first.split("\t")
    if len(cells) > 2 and cells[2].count(",") > 7:  # a window's vector, as BirdNET-Analyzer writes them
        return None
    return "audacity" if len(cells) > 1 and all(_NUMBER.fullmatch(cell.strip()) for cell in cells[:2]) else None


def read_annotation_file(file: Path, kind: Kind, columns: Mapping[str, str]) -> Annotations:
    """The spans of a file. `columns` name those of the label (for Praat the tier), group, subset and path."""
    data = read_bytes(file, "file of annotations")
    utf16 = data[:2] in _UTF16
    try:
        text = data.decode("utf-16") if utf16 else decode_text(data, file)
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not readable as UTF-16 ({error.reason}): write it again.") from error
    if kind == "audacity":
        return _read_audacity(text, file)
    if kind == "praat":
        return _read_textgrid(text, file, columns.get("label", ""))
    return _read_table(text, file, kind, columns)


def _number(text: str) -> float:
    """A time in seconds, or NaN."""
    text = text.strip()
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else math.nan


def _problem(start: float, end: float) -> str:
    if not (math.isfinite(start) and math.isfinite(end)):
        return "a time is no number of seconds"
    if start < 0:
        return f"it begins before the recording, at {start:g} s"
    return f"it ends at {end:g} s, not after its start at {start:g} s" if end <= start else ""


def _sorted_out(rows: Iterator[Annotation], labels: str) -> Annotations:
    spans, broken = [], []
    for row in rows:
        why = _problem(row.start, row.end)
        if why:
            broken.append(f"{row.where}: {why}")
        else:
            spans.append(row)
    return Annotations(spans, broken, labels)


# --- Audacity -----------------------------------------------------------------------------------------------


def _read_audacity(text: str, file: Path) -> Annotations:
    def rows() -> Iterator[Annotation]:
        for number, line in enumerate(text.splitlines(), start=1):
            cells = line.split("\t")
            if not line.strip() or cells[0] == "\\":  # the second line of a label with frequencies
                continue
            start, end, label = (*cells, "", "", "")[:3]
            yield Annotation(f"{file.name}, line {number}", _number(start), _number(end), label.strip() or None)

    return _sorted_out(rows(), "the label track")


# --- Raven, Kaleidoscope and BirdNET-Analyzer -------------------------------------------------------------------


def _read_table(text: str, file: Path, kind: Kind, columns: Mapping[str, str]) -> Annotations:
    lines = list(_tabbed(text)) if kind == "raven" else list(read_csv(text, file))
    header = [name.strip().lower() for name in lines[0][1]] if lines else []
    records = [
        (number, dict(zip(header, (cell.strip() for cell in cells), strict=False))) for number, cells in lines[1:]
    ]
    asked = {role: column.strip().lower() for role, column in columns.items()}
    for role, column in asked.items():
        if column not in header and (role, column) != ("group", "none"):
            shown = ", ".join(header)
            raise InputError(f"{file} has no column {column!r} (columns: {shown}).{did_you_mean(column, header)}")
    label = asked.get("label") or _label_column(kind, header, [record for _, record in records])

    def rows() -> Iterator[Annotation]:
        seen: set[str] = set()
        for number, record in records:
            selection = record.get("selection", "") if kind == "raven" else ""
            if selection and selection in seen:  # Raven repeats a selection in each of its views
                continue
            seen.add(selection)
            start, end = _SPANS[kind](record)
            yield Annotation(
                f"{file.name}, line {number}", start, end, record.get(label) or None,
                recording=record.get(asked["path"]) if "path" in asked else _recording_of(record),
                group=record.get(asked.get("group", "")), subset=record.get(asked.get("subset", ""), ""),
            )  # fmt: skip

    read = _sorted_out(rows(), f"the column {label}" if label else "")
    channels = frozenset(record.get("channel", "") for _, record in records) - {""} if kind == "raven" else frozenset()
    return read._replace(channels=channels)


def _tabbed(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.split("\t")


def _label_column(kind: Kind, header: list[str], records: list[dict[str, str]]) -> str:
    """A column that programs or people call so and that says something, else the only one a person added, else none."""
    filled = [name for name in header if any(record.get(name) for record in records)]
    known = next((name for name in _LABELS[kind] if name in filled), "")
    own = [name for name in filled if name not in _RAVEN]
    return known or (own[0] if kind == "raven" and len(own) == 1 else "")


def _raven_span(record: Mapping[str, str]) -> tuple[float, float]:
    """In the time of the file that the row names: Begin Time counts from the first of a sequence of files."""
    start, end = _number(record.get("begin time (s)", "")), _number(record.get("end time (s)", ""))
    offset = _number(record.get("file offset (s)", ""))
    return (start, end) if math.isnan(offset) else (offset, offset + (end - start))


def _kaleidoscope_span(record: Mapping[str, str]) -> tuple[float, float]:
    start = _number(record.get("offset", ""))
    return start, start + _number(record.get("duration", ""))


def _birdnet_span(record: Mapping[str, str]) -> tuple[float, float]:
    return _number(record.get("start (s)", "")), _number(record.get("end (s)", ""))


_SPANS = {"raven": _raven_span, "kaleidoscope": _kaleidoscope_span, "birdnet": _birdnet_span}


def _recording_of(record: Mapping[str, str]) -> str | None:
    if record.get("in file"):
        return "/".join(filter(None, [record.get("folder", ""), record["in file"]]))
    return record.get("begin path") or record.get("begin file") or record.get("file") or None


# --- Praat --------------------------------------------------------------------------------------------------


def _read_textgrid(text: str, file: Path, tier: str) -> Annotations:
    tiers = _interval_tiers(text, file)
    if not tier and len(tiers) > 1:
        names = ", ".join(tiers)
        raise InputError(f"{file} has {len(tiers)} tiers of intervals ({names}): name one with --label-column.")
    if not tiers or (tier and tier not in tiers):
        held = ", ".join(tiers) or "none"
        raise InputError(f"{file} has no tier of intervals {tier!r} (there are: {held}).{did_you_mean(tier, tiers)}")
    name = tier or next(iter(tiers))
    return _sorted_out(iter(tiers[name]), f"the tier {name}")


def _interval_tiers(text: str, file: Path) -> dict[str, list[Annotation]]:
    """Tiers by name. Only texts in quotes and numbers that stand alone count, in the long format and the short."""
    tokens: list[str | float] = [
        match[1].replace('""', '"') if match[1] is not None else float(match[2]) for match in _TOKEN.finditer(text)
    ]
    if tokens[:2] != ["ooTextFile", "TextGrid"]:
        raise InputError(f"{file} is no TextGrid of Praat in text format: save it as a text file.")
    tiers: dict[str, list[Annotation]] = {}
    place = 5
    try:
        for _ in range(int(tokens[4])):
            kind, name, count = tokens[place], str(tokens[place + 1]), int(tokens[place + 4])
            width = 3 if kind == "IntervalTier" else 2
            rows = [tokens[at : at + width] for at in range(place + 5, place + 5 + width * count, width)]
            place += 5 + width * count
            if width == 3:
                tiers[name] = [
                    Annotation(f"{file.name}, {name}, interval {number}", float(start), float(end), str(label).strip())
                    for number, (start, end, label) in enumerate(rows, start=1)
                    if str(label).strip()
                ]
    except (IndexError, ValueError) as error:
        raise InputError(f"{file} ends too early or is no TextGrid: save it again.") from error
    return tiers
