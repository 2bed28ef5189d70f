"""Results as mteb saves them: MODEL/REVISION/TASK.json, one file for each subset.

main_score is the metric chosen, as a fraction, higher is better; every other measured metric stands beside it under its
own name, with the ends of its interval (`P@1_low`, `P@1_high`). mteb need not be installed to write them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.atomic import write_whole
from earmark.errors import UsageError
from earmark.exchange.measured import UNKNOWN_REVISION, Measured, file_name, interval, moment, variant
from earmark.scores import Row, metric_facts

NO_LANGUAGE = "zxx-Zxxx"
"""What mteb writes for sounds without language."""


def write_mteb(
    measured: Measured, folder: Path, *, metric: str, languages: Sequence[str] = (NO_LANGUAGE,)
) -> tuple[list[Path], list[str]]:
    """Write one folder for each system; the files, and what was left out."""
    if not metric_facts(metric).higher_is_better:
        raise UsageError(
            f"mteb ranks by its main score, of which more is better, and of {metric} less is: choose another with "
            "--metrics; its first is the main score."
        )
    written: list[Path] = []
    for system in measured.systems():
        place = folder / file_name(system.replace("/", "__").replace(" ", "_")) / UNKNOWN_REVISION
        place.mkdir(parents=True, exist_ok=True)
        _save(place / "model_meta.json", {"name": system, "revision": UNKNOWN_REVISION, "languages": None})
        for row in measured.main_rows(system, metric):
            task = row.subset or row.suite or "default"
            target = place / f"{file_name(task)}.json"
            if target in written:
                raise UsageError(f"Two results would be called {target.relative_to(folder)}: export one of them alone.")
            _save(target, _task_result(measured, row, task, list(languages)))
            written.append(target)
    if not written:
        raise UsageError(f"No system has a measured {metric}; choose another with --metrics.")
    return written, ["mteb has no place for baselines, p-values and reasons: they stay in the score table."]


def _save(target: Path, data: object) -> None:
    write_whole(target, (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode())


def _task_result(measured: Measured, main: Row, task: str, languages: list[str]) -> dict[str, Any]:
    scores: dict[str, Any] = {"main_score": main.value, "hf_subset": "default", "languages": languages}
    for row in measured.of_system(main.system):
        if (row.suite, row.subset) == (main.suite, main.subset):
            scores |= _named_values(row)
    return {
        "dataset_revision": measured.revision_of(main), "task_name": task, "mteb_version": None,
        "scores": {"test": [scores]}, "evaluation_time": None, "kg_co2_emissions": None,
        "date": moment(measured).timestamp(),
    }  # fmt: skip


def _named_values(row: Row) -> dict[str, float | None]:
    """`cosine_P@1` and its ends, as mteb names scores of several similarities."""
    name = "_".join([*variant(row).values(), row.metric])
    ends = interval(row)
    return {name: row.value} | ({f"{name}_low": ends[0], f"{name}_high": ends[1]} if ends else {})
