"""The score table: its columns, facts about every metric, reading, writing, merging, validating, aggregating.

Every measurement in Earmark is a `Row`, and `Scores` is an ordered table of rows. A missing number is `None`
in Python, an empty cell in CSV and `null` in JSON and Parquet; it is never 0 and never NaN. Numbers survive
every format exactly. Columns are only ever added at the end, so files of older versions still load.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import operator
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, TypeAlias

from earmark.errors import InputError, UsageError, did_you_mean, quoted, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "COLUMNS",
    "KEY",
    "METRICS",
    "PROTOCOLS",
    "RULES",
    "STATUSES",
    "VOCSIM_SUBSETS",
    "MetricFacts",
    "PointKey",
    "Row",
    "Rule",
    "Scores",
    "VocSimSubset",
    "aggregate",
    "find_rule",
    "load_scores",
    "merge",
    "metric_facts",
    "read_scores",
    "validate",
]

STATUSES = ("ok", "not_applicable", "failed")
PROTOCOLS = ("all", "across_groups")

# --- the row --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. NumPy scalars become Python numbers; NaN and infinity are refused.

    A value that could not be measured is None, with a status and a reason.
    """

    suite: str = ""
    subset: str = ""
    system: str = ""
    distance: str = ""
    correction: str = "none"
    protocol: str = "all"
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    lift: float | None = None
    p_value: float | None = None
    n: int | None = None
    status: str = "ok"
    reason: str = ""
    seconds: float | None = None
    version: str = ""
    inputs: str = ""
    baseline_low: float | None = None
    baseline_high: float | None = None

    def __post_init__(self) -> None:
        for name in COLUMNS:
            given = getattr(self, name)
            kept = _checked(name, given, f'Column "{name}" of a score row ({self.metric or "no metric"})')
            if kept is not given:
                object.__setattr__(self, name, kept)

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the measurement: the values of the columns in `KEY`."""
        return (
            self.suite,
            self.subset,
            self.system,
            self.distance,
            self.correction,
            self.protocol,
            self.metric,
        )

    def as_dict(self) -> dict[str, Any]:
        """The row as a dictionary in column order; missing numbers are None."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS: tuple[str, ...] = tuple(column.name for column in fields(Row))
KEY: tuple[str, ...] = COLUMNS[:7]
_DEFAULTS: dict[str, Any] = {column.name: column.default for column in fields(Row)}
_NUMBERS = frozenset(name for name in COLUMNS if _DEFAULTS[name] is None)


def _checked(name: str, given: object, where: str) -> str | float | int | None:
    """The plain Python value of one cell, or an InputError that says where it is."""
    if name not in _NUMBERS:
        if not isinstance(given, str):
            raise InputError(f"{where} holds {given!r}; it must be text.")
        return given if type(given) is str else str(given)
    if given is None:
        return None
    if isinstance(given, bool | str) or not hasattr(given, "__float__"):
        raise InputError(f"{where} holds {given!r}, which is not a number.")
    try:
        number = given if type(given) is float else float(given)
    except (OverflowError, TypeError, ValueError):
        raise InputError(f"{where} holds {given!r}, which is not a finite number.") from None
    if not math.isfinite(number):
        raise InputError(
            f"{where} holds {number}; leave a missing number empty and give a status and a reason."
        )
    if name != "n":
        return number
    if number != int(number) or abs(number) >= 2**63:  # Parquet counts in 64 bits
        raise InputError(f"{where} holds {given!r}; a count is a whole number under 2^63.")
    return operator.index(given) if isinstance(given, SupportsIndex) else int(number)


# --- facts about metrics --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What is known of a metric before it is measured. `percent`: reports print it times 100."""

    spelling: str
    range: tuple[float, float]
    higher_is_better: bool
    percent: bool


_INF = math.inf
METRICS: dict[str, MetricFacts] = {
    facts[0]: MetricFacts(*facts)
    for facts in (
        # retrieval and separation
        ("P@1", (0.0, 1.0), True, True),
        ("P@5", (0.0, 1.0), True, True),
        ("GSR", (0.0, 1.0), True, True),
        ("CSR", (0.0, 1.0), True, True),
        ("CSR_pointwise", (0.0, 1.0), True, True),
        ("CS", (0.0, 1.0), False, True),
        ("CSCF", (0.0, 1.0), False, True),
        ("silhouette", (-1.0, 1.0), True, False),
        # clustering; ARI is printed in percent beside NMI and purity, as the papers do
        ("purity", (0.0, 1.0), True, True),
        ("NMI", (0.0, 1.0), True, True),
        ("ARI", (-0.5, 1.0), True, True),
        ("kmeans_purity", (0.0, 1.0), True, True),
        # hubness
        ("hub_ratio", (0.0, _INF), False, False),
        ("antihub_rate", (0.0, 1.0), False, True),
        ("hub_skew", (-_INF, _INF), False, False),
        ("robin_hood", (0.0, 1.0), False, True),
        # real against generated; the two densities may pass 1
        ("precision", (0.0, 1.0), True, True),
        ("recall", (0.0, 1.0), True, True),
        ("density", (0.0, _INF), True, False),
        ("coverage", (0.0, 1.0), True, True),
        ("clipped_density", (0.0, _INF), True, False),
        ("clipped_coverage", (0.0, 1.0), True, True),
        ("sym_precision", (0.0, 1.0), True, True),
        ("sym_recall", (0.0, 1.0), True, True),
        ("p_precision", (0.0, 1.0), True, True),
        ("p_recall", (0.0, 1.0), True, True),
        ("precision_cover", (0.0, 1.0), True, True),
        ("recall_cover", (0.0, 1.0), True, True),
        # 1 - 2 * area between two curves, summed over 30 steps, can end a little under 0
        ("alpha_precision", (-0.05, 1.0), True, True),
        ("beta_recall", (-0.05, 1.0), True, True),
        # codecs; the published overall score reaches 1.03 because wide-band PESQ passes 4.5
        ("stft_distance", (0.0, _INF), False, False),
        ("mel_distance", (0.0, _INF), False, False),
        ("pesq", (-0.5, 5.0), True, False),
        ("stoi", (-1.0, 1.0), True, False),
        ("f0_corr", (-1.0, 1.0), True, False),
        ("overall", (0.0, 1.03), True, False),
        ("wer", (0.0, _INF), False, True),
        ("eer", (0.0, 1.0), False, True),
        ("min_dcf", (0.0, 1.0), False, False),
        ("er_accuracy", (0.0, 1.0), True, True),
        ("aec_map", (0.0, 1.0), True, True),
        ("kbps", (0.0, _INF), False, False),
    )
}

_DIFFERENCE = ":difference"
_PRECISION_AT = re.compile(r"P@[1-9][0-9]*")


def metric_facts(name: str) -> MetricFacts:
    """Facts for a metric of `METRICS`, for `P@<k>` with any positive k, and for `<metric>:difference`.

    A difference of two values from [lo, hi] lies in [-(hi - lo), hi - lo]; its direction is the metric's.
    """
    if name in METRICS:
        return METRICS[name]
    if _PRECISION_AT.fullmatch(name):
        return replace(METRICS["P@1"], spelling=name)
    base = name.removesuffix(_DIFFERENCE)
    if base != name and not base.endswith(_DIFFERENCE):
        facts = metric_facts(base)
        width = facts.range[1] - facts.range[0]
        return replace(facts, spelling=name, range=(-width, width))
    hint = did_you_mean(name, METRICS) or f" Known are P@<k>, {', '.join(list(METRICS)[2:])}."
    raise InputError(f'There is no metric "{name}".{hint}')


# --- the table ------------------------------------------------------------------------------------

PointKey: TypeAlias = tuple[str, str, str, str]
"""(distance, correction, protocol, metric)"""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """An ordered table of rows, with per-point values when they were asked for.

    `per_point` maps (distance, correction, protocol, metric) to one float64 value for each point, NaN where
    the point was excluded; `point_ids` names the points. Both stay in memory: files hold the rows. Two tables
    are equal when their rows are.
    """

    rows: tuple[Row, ...] = ()
    per_point: Mapping[PointKey, NDArray[np.float64]] = field(default_factory=dict)
    point_ids: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "per_point", dict(self.per_point))
        if self.point_ids is not None:
            object.__setattr__(self, "point_ids", tuple(self.point_ids))
        sizes = {len(values) for values in self.per_point.values()}
        if self.per_point and self.point_ids is not None:
            sizes.add(len(self.point_ids))
        if len(sizes) > 1:
            lengths = ", ".join(str(size) for size in sorted(sizes))
            raise InputError(
                f"Per-point values and ids have different lengths ({lengths}); give one value for each point."
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == other.rows if isinstance(other, Scores) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rows)

    def __add__(self, other: Scores) -> Scores:
        return merge(self, other) if isinstance(other, Scores) else NotImplemented

    def select(self, **filters: object) -> Scores:
        """The rows whose columns equal the given values; a list, tuple or set of values means any of them."""
        for name in filters:
            if name not in _DEFAULTS:
                raise UsageError(f'A score row has no column "{name}".{did_you_mean(name, COLUMNS)}')
        rows = tuple(row for row in self.rows if _matches(row, filters))
        kept = {(row.distance, row.correction, row.protocol, row.metric) for row in rows}
        per_point = {key: values for key, values in self.per_point.items() if key in kept}
        return replace(self, rows=rows, per_point=per_point)

    def row(self, metric: str | None = None, **filters: object) -> Row:
        """The one row that matches; UsageError when there is none, or several, saying what they differ in."""
        if metric is not None:
            filters = {"metric": metric, **filters}
        found = self.select(**filters).rows
        if len(found) == 1:
            return found[0]
        raise UsageError(_several(found, filters) if found else _none(self.rows, filters))

    def value(self, metric: str, **filters: object) -> float:
        """The value of the one matching row; InputError with the row's reason when it has none."""
        row = self.row(metric, **filters)
        if row.status != "ok" or row.value is None:
            why = row.reason or "no reason was given"
            raise InputError(f"{metric} has no value here: {row.status.replace('_', ' ')} ({why}).")
        return row.value

    def to_json(self) -> str:
        """A JSON array of rows, one to a line."""
        lines = [_json_line(row) for row in self.rows]
        return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as .csv, .jsonl, .json or .parquet, by suffix.

        Another process sees the old file or the whole new one, never a part.
        """
        target = Path(path)
        encode = _WRITERS.get(target.suffix.lower())
        if encode is None:
            raise UsageError(
                f"{target}: a score table is written as {', '.join(_WRITERS)}; choose one of these suffixes."
            )
        if not self.rows and target.suffix.lower() == ".jsonl":
            raise InputError(
                f"{target}: JSON Lines cannot hold a table without rows; write it as .csv or .json."
            )
        try:
            data = encode(self)
        except UnicodeEncodeError as error:
            raise InputError(
                f"{target}: the text {error.object!r} cannot be written as UTF-8; rename it."
            ) from error
        _write_atomically(target, data)


def _matches(row: Row, filters: Mapping[str, object]) -> bool:
    for name, wanted in filters.items():
        cell = getattr(row, name)
        if not (cell in wanted if isinstance(wanted, list | tuple | set | frozenset) else cell == wanted):
            return False
    return True


def _none(rows: Sequence[Row], filters: Mapping[str, object]) -> str:
    """Name the first filter that leaves nothing, and what the table has in that column."""
    if not rows:
        return "The score table is empty."
    for name, wanted in filters.items():
        left = [row for row in rows if _matches(row, {name: wanted})]
        if not left:
            present = _distinct(rows, name)
            hint = did_you_mean(wanted, present) if isinstance(wanted, str) else ""
            return f"No row has {name} {_quoted(wanted)}; the table has {_listed(present)}.{hint}"
        rows = left
    return "No row matches."


def _several(rows: Sequence[Row], filters: Mapping[str, object]) -> str:
    asked = ", ".join(f"{name} {_quoted(wanted)}" for name, wanted in filters.items()) or "no filter"
    differing = {name: _distinct(rows, name) for name in KEY if len(_distinct(rows, name)) > 1}
    if not differing:
        return f"{len(rows)} rows with {asked} have the same key; keep one with merge(…, on_conflict='last')."
    what = " and ".join(f"{name} ({_listed(present)})" for name, present in differing.items())
    name, present = next(iter(differing.items()))
    return f"{len(rows)} rows match {asked}; they differ in {what}: add for example {name}={present[0]!r}."


def _distinct(rows: Iterable[Row], name: str) -> list[str]:
    return list(dict.fromkeys(str(getattr(row, name)) for row in rows))


def _quoted(wanted: object) -> str:
    return f'"{wanted}"' if isinstance(wanted, str) else repr(wanted)


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(name or '""' for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def merge(*scores: Scores, on_conflict: Literal["error", "last"] = "error") -> Scores:
    """Put tables together, in order. Rows that agree in all but `seconds` are one measurement, kept once.

    Two different rows with one key are an error; with on_conflict="last" the later replaces the earlier in
    its place. Per-point values are kept when the tables that have them describe the same points under
    different keys.
    """
    if on_conflict not in ("error", "last"):
        raise UsageError(f'on_conflict is "error" or "last", not {on_conflict!r}.')
    rows: dict[tuple[str, ...], Row] = {}
    for row in (row for table in scores for row in table.rows):
        earlier = rows.setdefault(row.key, row)
        if earlier is row or replace(earlier, seconds=row.seconds) == row:
            continue
        if on_conflict == "error":
            names = ", ".join(f"{name} {cell}" for name, cell in zip(KEY, row.key, strict=True) if cell)
            what = next(
                name for name in COLUMNS if name != "seconds" and getattr(earlier, name) != getattr(row, name)
            )
            raise InputError(
                f"Two rows for {names} differ in {what} ({getattr(earlier, what)} and {getattr(row, what)}); "
                "remove one, or merge with on_conflict='last'."
            )
        rows[row.key] = row
    notes = dict.fromkeys(note for table in scores for note in table.notes)
    carrying = [table for table in scores if table.per_point]
    per_point = {key: values for table in carrying for key, values in table.per_point.items()}
    alike = len({_described(table) for table in carrying}) <= 1
    if not alike or len(per_point) != sum(len(table.per_point) for table in carrying):
        per_point = {}
        notes["Per-point values were left out of the merge: the tables describe different points."] = None
    point_ids = carrying[0].point_ids if per_point else None
    return Scores(tuple(rows.values()), per_point, point_ids, tuple(notes))


def _described(table: Scores) -> tuple[object, ...]:
    """Which points the per-point values of a table belong to: the keys of `per_point` do not say it."""
    about = frozenset((row.suite, row.subset, row.system) for row in table.rows)
    return about, table.point_ids, len(next(iter(table.per_point.values())))


# --- files ----------------------------------------------------------------------------------------


def _json_line(row: Row) -> str:
    return json.dumps(row.as_dict(), ensure_ascii=False, allow_nan=False)


def _csv_cell(cell: object) -> str:
    text = "" if cell is None else repr(cell) if isinstance(cell, int | float) else str(cell)
    # When lines end in "\n", Python 3.11's csv.writer leaves a lone "\r" unquoted, and csv.reader refuses it.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _encode_csv(scores: Scores) -> bytes:
    lines = [",".join(COLUMNS)]
    lines += [",".join(_csv_cell(getattr(row, name)) for name in COLUMNS) for row in scores.rows]
    return ("\n".join(lines) + "\n").encode()


def _encode_jsonl(scores: Scores) -> bytes:
    return "".join(_json_line(row) + "\n" for row in scores.rows).encode()


def _encode_json(scores: Scores) -> bytes:
    return scores.to_json().encode()


def _encode_parquet(scores: Scores) -> bytes:
    arrow = require("pyarrow", "Parquet files", "parquet")
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    types = {name: arrow.float64() if name in _NUMBERS else arrow.string() for name in COLUMNS} | {
        "n": arrow.int64()
    }
    columns = [arrow.array([getattr(row, name) for row in scores.rows], type=types[name]) for name in COLUMNS]
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=arrow.schema(list(types.items()))), out)
    return out.getvalue()


_WRITERS: dict[str, Callable[[Scores], bytes]] = {
    ".csv": _encode_csv,
    ".jsonl": _encode_jsonl,
    ".json": _encode_json,
    ".parquet": _encode_parquet,
}


def _write_atomically(target: Path, data: bytes) -> None:
    # A link keeps pointing at its file. The part lies beside that file, since a rename cannot cross disks.
    final = target.resolve()
    part = final.with_name(f".earmark-{secrets.token_hex(8)}.part")
    try:
        try:
            with part.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(final)
        finally:
            part.unlink(missing_ok=True)
    except FileNotFoundError as error:
        raise InputError(f"{target}: the folder {final.parent} does not exist; create it first.") from error
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another place.") from error


def read_scores(path: str | os.PathLike[str]) -> Scores:
    """Read a .csv, .jsonl, .json or .parquet score table.

    Columns that an older version did not write take their defaults. An unknown column, a cell that is not a
    number where one belongs, and NaN or infinity are errors that say where.
    """
    source = Path(path)
    decode = _READERS.get(source.suffix.lower())
    try:
        data = source.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{source} is a folder; give the score file inside it.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{source} cannot be read ({getattr(error, 'strerror', error)}).") from error
    if decode is None:
        raise InputError(f'{source}: a score table is one of {", ".join(_READERS)}, not "{source.suffix}".')
    if not data.strip():
        raise InputError(f"{source} is empty; a score table has at least a header.")
    return Scores(tuple(decode(data, source)))


load_scores = read_scores


def _decode_text(data: bytes, source: Path) -> str:
    try:
        return data.decode("utf-8-sig")  # spreadsheets put a byte-order mark in front
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def _decode_csv(data: bytes, source: Path) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(_decode_text(data, source), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_columns(header, source)
        line = reader.line_num + 1
        for cells in reader:
            where = f"{source}, line {line}"
            line = reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{where} has {len(cells)} cells, the header {len(header)}; check its commas."
                )
            record = {
                name: _parse_number(cell, f'{where}, column "{name}"') if name in _NUMBERS else cell
                for name, cell in zip(header, cells, strict=True)
            }
            yield _row(record, where)
    except csv.Error as error:
        raise InputError(
            f"{source}, line {reader.line_num} is not readable as CSV ({error}); check its quotes."
        ) from error


def _parse_number(cell: str, where: str) -> float | int | None:
    text = cell.strip()
    if not text:
        return None
    try:
        if "_" in text or not text.isascii():  # Python reads 1_000 and Arabic digits; other readers do not
            raise ValueError
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise InputError(
            f"{where} holds {quoted(cell)}, which is not a number; leave it empty if it is missing."
        ) from None


def _check_columns(names: Sequence[str], source: Path) -> None:
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")
    for name in names:
        if name not in _DEFAULTS:
            raise _unknown_column(source, name)
        if names.count(name) > 1:
            raise InputError(f'{source} has the column "{name}" twice; keep one of them.')
    for name in ("metric", "value"):
        if name not in names:
            raise InputError(
                f'{source} has no column "{name}"; a score table needs at least metric and value.'
            )


def _unknown_column(where: object, name: str) -> InputError:
    hint = did_you_mean(name, COLUMNS)
    return InputError(f"{where} has the unknown column {quoted(name)}; remove or rename it.{hint}")


def _row(record: Mapping[str, object], where: str) -> Row:
    """A row from named cells; None, like an absent cell, stands for the column's default."""
    cells: dict[str, Any] = {}
    for name, cell in record.items():
        if name not in _DEFAULTS:
            raise _unknown_column(where, name)
        if cell is not None:
            cells[name] = _checked(name, cell, f'{where}, column "{name}"')
    if "metric" not in cells:
        raise InputError(f'{where} has no "metric"; every score row names one.')
    return Row(**cells)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is not valid JSON ({error.msg} at column {error.colno}); write the table again."
        ) from error
    except (ValueError, RecursionError) as error:  # digits without end, brackets without end
        raise InputError(f"{where} is not a score table ({error}); write the table again.") from error


def _decode_jsonl(data: bytes, source: Path) -> Iterator[Row]:
    for number, line in enumerate(_decode_text(data, source).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        record = _parse_json(line, where)
        if not isinstance(record, dict):
            raise InputError(f"{where} is not a JSON object; JSON Lines holds one score row to a line.")
        yield _row(record, where)


def _decode_json(data: bytes, source: Path) -> Iterator[Row]:
    table = _parse_json(_decode_text(data, source), str(source))
    if not isinstance(table, list):
        raise InputError(f"{source} is not a JSON array; a score table is an array of rows.")
    for number, record in enumerate(table, start=1):
        if not isinstance(record, dict):
            raise InputError(
                f"{source}, row {number} is not a JSON object; a score table is an array of rows."
            )
        yield _row(record, f"{source}, row {number}")


def _decode_parquet(data: bytes, source: Path) -> Iterator[Row]:
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    try:
        table = parquet.ParquetFile(io.BytesIO(data)).read()
        names, records = table.column_names, table.to_pylist()
    except Exception as error:
        # Damaged pages surface as Arrow's own errors, OSError, UnicodeDecodeError and others.
        detail = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{source} is not readable as Parquet ({detail}); write the table again.") from error
    _check_columns(names, source)
    for number, record in enumerate(records, start=1):
        yield _row(record, f"{source}, row {number}")


_READERS: dict[str, Callable[[bytes, Path], Iterator[Row]]] = {
    ".csv": _decode_csv,
    ".jsonl": _decode_jsonl,
    ".json": _decode_json,
    ".parquet": _decode_parquet,
}

# --- validation -----------------------------------------------------------------------------------

_ROUNDING = 1e-9
"""How far a value may lie outside its range before it is more than rounding."""


def validate(rows: Iterable[Row]) -> list[str]:
    """What is wrong with the rows: one sentence each, with the row's number (from 1) and the remedy."""
    problems: list[str] = []
    first_with: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        at = f"Row {number} ({row.metric})" if row.metric else f"Row {number}"
        problems += [f"{at}: {problem}" for problem in _problems(row)]
        earlier = first_with.setdefault(row.key, number)
        if earlier != number:
            problems.append(f"{at}: repeats row {earlier} ({', '.join(KEY)} are the same); keep one of them.")
    return problems


def _problems(row: Row) -> Iterator[str]:
    facts: MetricFacts | None = None
    if not row.metric:
        yield "metric is empty; name one."
    else:
        try:
            facts = metric_facts(row.metric)
        except InputError as error:
            yield f"unknown metric: {error}"
    if row.status not in STATUSES:
        yield f'unknown status "{row.status}"; use {", ".join(STATUSES)}.{did_you_mean(row.status, STATUSES)}'
    elif row.status == "ok" and row.value is None:
        yield "status is ok but there is no value; give one, or another status with a reason."
    elif row.status != "ok" and row.value is not None:
        yield f"status is {row.status} but there is a value; remove the value or set the status to ok."
    if row.status != "ok" and not row.reason.strip():
        yield f"status is {row.status} without a reason; say why in one sentence."
    if row.protocol not in PROTOCOLS:
        hint = did_you_mean(row.protocol, PROTOCOLS)
        yield f'unknown protocol "{row.protocol}"; use {" or ".join(PROTOCOLS)}.{hint}'
    if facts is not None:
        yield from _range_problems(row, facts)
    for lower, upper in (("low", "high"), ("baseline_low", "baseline_high")):
        low, high = getattr(row, lower), getattr(row, upper)
        if (low is None) != (high is None):
            yield f"one of {lower} and {upper} is missing; give both or neither."
        elif low is not None and low > high:
            yield f"{lower} {low:g} is above {upper} {high:g}; exchange them."
    if row.p_value is not None and not 0 < row.p_value <= 1:
        yield f"p_value {row.p_value:g} is outside (0, 1]; from c of m permutations it is (c+1)/(m+1)."
    if row.n is not None and row.n < 0:
        yield f"n {row.n} is negative; it counts points."
    if row.seconds is not None and row.seconds < 0:
        yield f"seconds {row.seconds:g} is negative; leave it empty if it was not measured."


def _range_problems(row: Row, facts: MetricFacts) -> Iterator[str]:
    low, high = facts.range
    for name in ("value", "low", "high", "baseline", "baseline_low", "baseline_high"):
        number = getattr(row, name)
        if number is None or low - _ROUNDING <= number <= high + _ROUNDING:
            continue
        remedy = (
            "values are fractions, divide percent by 100"
            if facts.percent and 1 < number <= 100
            else "measure it again"
        )
        yield f"{name} {number:g} is outside [{low:g}, {high:g}]; {remedy}."


# --- aggregation ----------------------------------------------------------------------------------


class VocSimSubset(NamedTuple):
    """One of VocSim's 19 subsets. Blind ones are low-resource languages that nobody outside may listen to."""

    name: str
    domain: str
    status: str
    title: str


VOCSIM_SUBSETS: tuple[VocSimSubset, ...] = (
    VocSimSubset("BC", "birdsong", "public", "Bird Calls (Zebra Finch)"),
    VocSimSubset("BS1", "birdsong", "public", "Bird Syllables (Zebra Finch)"),
    VocSimSubset("BS2", "birdsong", "public", "Bird Syllables (Zebra Finch)"),
    VocSimSubset("BS3", "birdsong", "public", "Bird Syllables (Bengalese)"),
    VocSimSubset("BS4", "birdsong", "public", "Bird Syllables (Bengalese)"),
    VocSimSubset("BS5", "birdsong", "public", "Bird Syllables (Canary)"),
    VocSimSubset("ES1", "environmental_sounds", "public", "Env. Events (ESC-50)"),
    VocSimSubset("HP", "human_speech", "public", "Phones (LibriSpeech)"),
    VocSimSubset("HS1", "human_speech", "public", "Non-Verbal (AMI)"),
    VocSimSubset("HS2", "human_speech", "public", "Vocal Imitations"),
    VocSimSubset("HU1", "human_speech", "public", "Utterances (VCTK)"),
    VocSimSubset("HU2", "human_speech", "public", "Utterances (AMI)"),
    VocSimSubset("HU3", "human_speech", "blind", "Utter. (Shipibo-Conibo)"),
    VocSimSubset("HU4", "human_speech", "blind", "Utter. (Chintang)"),
    VocSimSubset("HW1", "human_speech", "public", "Words (LibriSpeech)"),
    VocSimSubset("HW2", "human_speech", "public", "Words (AMI)"),
    VocSimSubset("HW3", "human_speech", "blind", "Words (Shipibo-Conibo)"),
    VocSimSubset("HW4", "human_speech", "blind", "Words (Chintang)"),
    VocSimSubset("OC1", "otter_calls", "public", "Otter Calls"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A named set of subsets to average over, as data: their names, or conditions on `VOCSIM_SUBSETS`.

    `where` maps a field of `VocSimSubset` to the values it may have. A rule with neither takes every subset.
    """

    name: str
    description: str
    subsets: tuple[str, ...] = ()
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def required(self) -> tuple[str, ...]:
        """The subsets that must have a value; empty when the rule takes what there is."""
        if self.subsets or not self.where:
            return self.subsets
        return tuple(
            subset.name
            for subset in VOCSIM_SUBSETS
            if all(getattr(subset, name) in allowed for name, allowed in self.where.items())
        )

    @property
    def label(self) -> str:
        """What stands in the `subset` column: "mean", "mean:public", "mean:domain:birdsong"…"""
        return "mean" if self.name == "mean" else f"mean:{self.name}"


def _domain_rule(name: str, description: str, *domains: str) -> Rule:
    # Without the blind subsets: only their host could fill the mean, and "blind" is that mean for speech.
    return Rule(f"domain:{name}", description, where={"domain": domains or (name,), "status": ("public",)})


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("mean", "All subsets in the table."),
        Rule("public", "VocSim's 15 public subsets.", where={"status": ("public",)}),
        Rule("blind", "VocSim's 4 blind subsets.", where={"status": ("blind",)}),
        _domain_rule("birdsong", "Calls and syllables of zebra finches, Bengalese finches and canaries."),
        _domain_rule("otter_calls", "Otter calls."),
        _domain_rule("animal_vocalizations", "Birds and otters.", "birdsong", "otter_calls"),
        _domain_rule(
            "human_speech", "Public human speech: phones, words, utterances, non-verbal sounds, imitations."
        ),
        _domain_rule("environmental_sounds", "Environmental events."),
    )
}


def find_rule(name: str) -> Rule:
    """The rule of that name; "domain:human speech" and "domain:human-speech" find "domain:human_speech"."""
    spelled = re.sub(r"[\s-]+", "_", name.strip().lower())
    if spelled in RULES:
        return RULES[spelled]
    hint = did_you_mean(name, RULES)
    raise UsageError(f'There is no aggregation rule "{name}"; the rules are {", ".join(RULES)}.{hint}')


def aggregate(scores: Scores, rule: str | Rule) -> Scores:
    """Average over the subsets of a rule: one row for each combination of the other key columns.

    value      The plain mean over subsets, each counting once whatever its size. n is the sum of the n.
    low, high  Combined as if the subsets were independent: half-widths h_i on one side give
               sqrt(sum of h_i^2) / count there. Only when every subset has an interval. The interval of the
               baseline is combined alike.
    others     baseline and lift are means and seconds is a sum, when every subset has them. A p value is not
               combined.

    A subset that the rule requires and that has no ok row makes the result not_applicable, with a reason that
    names it. The rule "mean" requires nothing: it averages the ok rows, and its reason names the subsets of
    the same suite that it lacks. Rows that are means already are left out.
    """
    if isinstance(rule, str):
        rule = find_rule(rule)
    required = rule.required()
    groups: dict[tuple[str, ...], dict[str, Row]] = {}
    in_suite: dict[str, dict[str, None]] = {}
    for row in scores.rows:
        if row.subset == "mean" or row.subset.startswith("mean:"):
            continue
        in_suite.setdefault(row.suite, {})[row.subset] = None
        members = groups.setdefault((row.suite, *row.key[2:]), {})
        if row.subset in members:
            raise InputError(f'Subset "{row.subset}" has two rows for {row.metric}; merge the table first.')
        members[row.subset] = row
    return Scores(
        tuple(
            _aggregated(rule, members, required or tuple(in_suite[suite]), bool(required))
            for (suite, *_), members in groups.items()
        ),
        notes=scores.notes,
    )


def _aggregated(rule: Rule, members: Mapping[str, Row], wanted: Sequence[str], strict: bool) -> Row:
    rows = [members[name] for name in wanted if name in members and members[name].status == "ok"]
    values = [row.value for row in rows if row.value is not None]
    have = {row.subset for row in rows if row.value is not None}
    missing = [
        f"{name} ({members[name].status.replace('_', ' ')})"
        if name in members and members[name].status != "ok"
        else name
        for name in wanted
        if name not in have
    ]
    like = next(iter(members.values()))
    common = Row(
        suite=like.suite,
        subset=rule.label,
        system=like.system,
        distance=like.distance,
        correction=like.correction,
        protocol=like.protocol,
        metric=like.metric,
        version=_shared(members.values(), "version"),
    )
    if not values or (strict and missing):
        return replace(common, status="not_applicable", reason=f"missing subsets: {', '.join(missing)}")
    reason = f"{len(values)} of {len(wanted)} subsets; missing: {', '.join(missing)}" if missing else ""
    rows = [row for row in rows if row.value is not None]
    low, high = _combined(rows, "value", "low", "high")
    baseline_low, baseline_high = _combined(rows, "baseline", "baseline_low", "baseline_high")
    counts = [row.n for row in rows if row.n is not None]
    return replace(
        common,
        value=math.fsum(values) / len(values),
        low=low,
        high=high,
        baseline=_mean(rows, "baseline"),
        lift=_mean(rows, "lift"),
        n=sum(counts) if len(counts) == len(rows) else None,
        reason=reason,
        seconds=_total(rows, "seconds"),
        inputs=_combined_hash(rule, rows),
        baseline_low=baseline_low,
        baseline_high=baseline_high,
    )


def _total(rows: Sequence[Row], name: str) -> float | None:
    numbers = [getattr(row, name) for row in rows]
    return None if None in numbers else math.fsum(numbers)


def _mean(rows: Sequence[Row], name: str) -> float | None:
    total = _total(rows, name)
    return None if total is None else total / len(rows)


def _combined(rows: Sequence[Row], middle: str, lower: str, upper: str) -> tuple[float | None, float | None]:
    triples = [(getattr(row, middle), getattr(row, lower), getattr(row, upper)) for row in rows]
    if any(None in triple for triple in triples):
        return None, None
    centre = math.fsum(triple[0] for triple in triples) / len(triples)
    # A bootstrap interval may miss the value it belongs to; that side then counts as having no width.
    down = math.hypot(*(max(0.0, value - low) for value, low, _ in triples)) / len(triples)
    up = math.hypot(*(max(0.0, high - value) for value, _, high in triples)) / len(triples)
    return centre - down, centre + up


def _shared(rows: Iterable[Row], name: str) -> str:
    present = _distinct(rows, name)
    return present[0] if len(present) == 1 else ""


def _combined_hash(rule: Rule, rows: Sequence[Row]) -> str:
    if not all(row.inputs for row in rows):
        return ""
    parts = [rule.label, *sorted(f"{row.subset}={row.inputs}" for row in rows)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
