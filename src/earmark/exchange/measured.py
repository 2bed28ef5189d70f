"""What may leave: measured rows, by system and subset, with what the run knows of its sounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from earmark.analysis.sources import PREFIX, open_scores
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.places import locate
from earmark.runs import read_record
from earmark.scores import Row, Scores, metric_facts
from earmark.scores.rows import distinct
from earmark.wording import counted

_HUB = re.compile(r"(?:hf:|https://huggingface\.co/datasets/)?([\w.-]+/[\w.-]+)")
UNKNOWN_REVISION = "no_revision_available"


@dataclass(frozen=True)
class Measured:
    """Rows that were measured, and where they come from."""

    rows: tuple[Row, ...]
    printed: bool = False
    """Whether the values were copied from a paper."""
    date: datetime | None = None
    corpora: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def systems(self) -> list[str]:
        return distinct(self.rows, "system")

    def of_system(self, system: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.system == system)

    def main_rows(self, system: str, metric: str) -> list[Row]:
        """One row of the metric for each subset; UsageError where several distances or protocols could be meant."""
        chosen: dict[tuple[str, str], Row] = {}
        for row in self.of_system(system):
            if row.metric != metric:
                continue
            earlier = chosen.setdefault((row.suite, row.subset), row)
            for column in ("distance", "correction", "protocol"):
                pair = getattr(earlier, column), getattr(row, column)
                if pair[0] != pair[1]:
                    raise UsageError(
                        f"{system} has {metric} on {row.subset or row.suite} with {column} {pair[0]} and {pair[1]}: "
                        f"choose one with --{column}."
                    )
        return list(chosen.values())

    def dataset_of(self, row: Row) -> str:
        """The dataset on the Hugging Face Hub that the row's corpus comes from, or an empty text."""
        source = str(self.corpora.get(row.suite, {}).get("source", ""))
        found = _HUB.fullmatch(source)
        return found[1] if found else ""

    def revision_of(self, row: Row) -> str:
        return str(self.corpora.get(row.suite, {}).get("revision", "")) or UNKNOWN_REVISION


def open_measured(
    source: str,
    *,
    metrics: Sequence[str] = (),
    systems: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    everything: bool = False,
    **columns: str | None,
) -> Measured:
    """The measured rows of a score table, a run folder, a plain table or printed results.

    `columns` are values of distance, correction and protocol that rows are kept for. With `everything`, means over
    subsets, ablations and differences are kept too.
    """
    scores, _ = open_scores(source, metrics[0] if len(metrics) == 1 else None)
    wanted: dict[str, object] = {name: value for name, value in columns.items() if value}
    for column, names in (("metric", metrics), ("system", systems)):
        if names:
            wanted[column] = _present(column, names, scores)
    rows = tuple(_renamed(scores.select(**wanted).rows, rename or {}, scores))
    kept = tuple(row for row in rows if _leaves(row, everything))
    if not kept:
        raise InputError(f"{source} has no measured value that could be exported; see its columns status and reason.")
    remarks = () if len(kept) == len(rows) else (_left_behind(rows, kept),)
    record = _record(source)
    finished = record.get("finished")
    return Measured(
        kept, source.startswith(PREFIX), datetime.fromisoformat(finished) if finished else None,
        {str(card["name"]): card for card in record.get("corpora", ())}, remarks,
    )  # fmt: skip


def _leaves(row: Row, everything: bool) -> bool:
    plain = everything or not (row.ablation or row.aggregate or row.statistic)
    return row.status == "ok" and row.value is not None and plain


def _left_behind(rows: Sequence[Row], kept: Sequence[Row]) -> str:
    count = counted(len(rows) - len(kept), "row")
    return f"{count} left behind: not measured, means over subsets, ablations or differences."


def _present(column: str, names: Iterable[str], scores: Scores) -> list[str]:
    present = distinct(scores.rows, column)
    for name in names:
        if name not in present:
            hint = did_you_mean(name, present) or f" It has {', '.join(present)}."
            raise UsageError(f"There is no {column} {name} in the table.{hint}")
    return list(names)


def _renamed(rows: Iterable[Row], names: Mapping[str, str], scores: Scores) -> Iterable[Row]:
    present = [names.get(name, name) for name in distinct(scores.rows, "system")]
    _present("system", names, scores)
    for name in present:
        if present.count(name) > 1:
            raise UsageError(f"Two systems would be called {name}: rename them apart.")
    for row in rows:
        yield replace(row, system=names[row.system]) if row.system in names else row


def _record(source: str) -> Mapping[str, Any]:
    if source.startswith(PREFIX) or not (locate(source) / "run.json").is_file():
        return {}
    return read_record(source)


def scale(row: Row) -> float:
    """What a value is multiplied by where percentages are expected."""
    return 100.0 if metric_facts(row.metric).percent else 1.0


def variant(row: Row) -> dict[str, str]:
    """How the metric was computed: distance, correction and protocol, where they say something."""
    named = {"distance": row.distance, "correction": row.correction, "protocol": row.protocol}
    return {name: value for name, value in named.items() if value not in ("", "none", "all")}


def interval(row: Row) -> tuple[float, float] | None:
    return None if row.low is None or row.high is None else (row.low, row.high)


def file_name(name: str) -> str:
    """A name for a file or folder: letters, digits, dots, lines."""
    return re.sub(r"[^\w.+@-]+", "_", name).strip("._") or "unnamed"


def moment(measured: Measured) -> datetime:
    """When it was measured, else now."""
    return measured.date or datetime.now(UTC)
