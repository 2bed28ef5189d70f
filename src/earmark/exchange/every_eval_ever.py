"""Records of Every Eval Ever, the shared database of evaluations: one file for each suite and system.

    SUITE/DEVELOPER/MODEL/UUID.json

Follows version 0.3.0 of its schema. Values keep their unit, with the ends of their range; intervals keep their method.
Records are looked up by developer and model, so the folders are what the model's id says.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.atomic import write_whole
from earmark.errors import UsageError
from earmark.exchange.measured import Measured, file_name, interval, variant
from earmark.scores import Row, metric_facts
from earmark.scores.rows import distinct
from earmark.wording import first_of

SCHEMA = "0.3.0"
RELATIONSHIPS = ("other", "first_party", "third_party", "collaborative")


def write_every_eval_ever(
    measured: Measured, folder: Path, *, organisation: str, relationship: str = "other", dataset: str = ""
) -> tuple[list[Path], list[str]]:
    """Write the records; the files, and what was left out. The name of a file stands for its results."""
    if not organisation:
        raise UsageError("Every Eval Ever asks who measured: give a name with --organisation.")
    source = {
        "source_name": "Earmark", "source_type": "documentation" if measured.printed else "evaluation_run",
        "source_organization_name": organisation, "evaluator_relationship": relationship,
    }  # fmt: skip
    written, rows = [], measured.rows
    for suite in distinct(rows, "suite"):
        for system in distinct((row for row in rows if row.suite == suite), "system"):
            chosen = [row for row in rows if (row.suite, row.system) == (suite, system)]
            written.append(_write(measured, folder, chosen, source, dataset))
    remarks = ["Every Eval Ever keeps texts beside a score: baseline, lift and p-value are among its details."]
    if nameless := [system for system in measured.systems() if "/" not in system]:
        remarks.append(
            f"Every Eval Ever looks models up by developer, and {first_of(nameless, 3)} states none: name it as "
            "DEVELOPER/MODEL with --rename."
        )
    return written, remarks


def _write(measured: Measured, folder: Path, rows: list[Row], source: dict[str, str], dataset: str) -> Path:
    suite, system = rows[0].suite or "custom", rows[0].system
    developer, name = _identity(system)
    results = [_result(measured, row, dataset) for row in rows]
    content = json.dumps([system, source, results], sort_keys=True).encode()
    identity = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)  # the same results, the same file
    now = str(datetime.now(UTC).timestamp())
    record = {
        "schema_version": SCHEMA, "evaluation_id": f"{suite}/{system}/{now}", "retrieved_timestamp": now,
        "source_metadata": source, "eval_library": {"name": "earmark", "version": rows[0].version or __version__},
        "model_info": _model_info(system, measured.printed),
        "evaluation_results": results,
    }  # fmt: skip
    if measured.date:
        record["evaluation_timestamp"] = str(measured.date.timestamp())
    target = folder / _folder_name(suite) / _folder_name(developer or "unknown") / _folder_name(name)
    target /= f"{identity}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode())
    return target


def _identity(system: str) -> tuple[str, str]:
    """Developer and model: what stands before the first `/`, and the rest."""
    developer, slash, name = system.partition("/")
    return (developer, name) if slash and developer and name else ("", system)


def _folder_name(name: str) -> str:
    """A name as the database makes it a folder: `/` becomes a line; what not every system can store, another name."""
    flat = name.replace("/", "_")
    return flat if re.fullmatch(r"[\w.+@() -]*[\w+@()-]", flat) else file_name(flat)


def _model_info(system: str, printed: bool) -> dict[str, Any]:
    developer, name = _identity(system)
    details = {"deployment_type": "unknown" if printed else "self_deployed", "model_availability": "unknown"}
    return {
        "name": name, "id": system, **({"developer": developer} if developer else {}), "additional_details": details,
    }  # fmt: skip


def _bound(value: float) -> float | str:
    """An end of a range, as JSON can hold it."""
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _result(measured: Measured, row: Row, dataset: str) -> dict[str, Any]:
    facts = metric_facts(row.metric)
    low, high = facts.range
    return {
        "evaluation_name": " ".join([row.subset or row.suite or "custom", row.metric, *variant(row).values()]),
        "source_data": _source_data(measured, row, dataset),
        "metric_config": {
            "evaluation_description": facts.words or row.metric, "lower_is_better": not facts.higher_is_better,
            "score_type": "continuous", "min_score": _bound(low), "max_score": _bound(high),
            "metric_id": f"earmark.{row.metric}", "metric_name": row.metric,
            "additional_details": {"metric": row.metric, **variant(row)},
        },
        "score_details": _score(row),
    }  # fmt: skip


def _score(row: Row) -> dict[str, Any]:
    named = {name: getattr(row, name) for name in ("baseline", "lift", "p_value", "units")}
    score: dict[str, Any] = {
        "score": row.value,
        "details": {name: repr(value) for name, value in named.items() if value is not None}
        | ({"reason": row.reason} if row.reason else {}),
    }
    uncertainty: dict[str, Any] = {}
    if ends := interval(row):
        uncertainty["confidence_interval"] = {
            "lower": ends[0], "upper": ends[1], "confidence_level": 0.95,
            "method": " over ".join(part for part in (row.interval, row.unit) if part) or "not stated",
        }  # fmt: skip
    if row.n is not None:
        uncertainty["num_samples"] = row.n
    return score | ({"uncertainty": uncertainty} if uncertainty else {})


def _source_data(measured: Measured, row: Row, dataset: str) -> dict[str, Any]:
    """Where the sounds come from: a dataset on the Hub, an address, or neither."""
    name = row.subset or row.suite or "custom"
    if hub := dataset or measured.dataset_of(row):
        return {"dataset_name": name, "source_type": "hf_dataset", "hf_repo": hub}
    source = str(measured.corpora.get(row.suite, {}).get("source", ""))
    if source.startswith(("https://", "http://")):
        return {"dataset_name": name, "source_type": "url", "url": [source]}
    return {"dataset_name": name, "source_type": "other"}
