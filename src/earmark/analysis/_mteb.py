"""Results of mteb: a folder of MODEL/REVISION/TASK.json, one of these files, or a saved ModelResult.

A model's score on a task is the mean over splits and subsets, as mteb takes it. mteb need not be installed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.tables import read_text

META = "model_meta.json"
_BESIDE = frozenset({"hf_subset", "languages", "mteb_version", "evaluation_time"})


class _Result(NamedTuple):
    model: str
    task: str
    entries: list[dict[str, Any]]
    path: Path


def is_results(path: Path) -> bool:
    """Whether a file or folder holds results of mteb."""
    if path.is_dir():
        return any(_read(file) is not None for file in _files(path))
    return path.is_file() and _read(path) is not None


def read_values(path: Path, metric: str | None) -> dict[tuple[str, str], float | None]:
    """Values by model and task: of a metric as mteb names it, or main scores."""
    results = list(_results(path))
    key = metric or "main_score"
    entries = [entry for result in results for entry in result.entries]
    known = sorted({name for entry in entries for name, value in entry.items() if _is_number(value)} - _BESIDE)
    if key not in known:
        raise UsageError(
            f"{path} has no score {quoted(key)}; mteb names them {', '.join(known)}.{did_you_mean(key, known)}"
        )
    values: dict[tuple[str, str], float | None] = {}
    places: dict[tuple[str, str], Path] = {}
    for result in results:
        cell = result.model, result.task
        if cell in places:
            raise InputError(
                f"{result.path} and {places[cell]} both have {result.model} on {result.task}; keep one revision."
            )
        places[cell] = result.path
        values[cell] = _mean(result, key)
    return values


def _mean(result: _Result, key: str) -> float | None:
    """None where a split or subset lacks the score."""
    values: list[Any] = [entry.get(key) for entry in result.entries]
    if not values or any(value is None for value in values):
        return None
    if not all(map(_is_number, values)):
        raise InputError(f"{result.path}: {quoted(key)} of {result.task} is not a number; choose another score.")
    mean = math.fsum(values) / len(values)
    return mean if math.isfinite(mean) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*.json")) if file.name != META)


def _read(path: Path) -> dict[str, Any] | None:
    """What a file holds, if it is mteb's."""
    text = read_text(path)
    if not text.lstrip().startswith("{"):  # a score table is a list
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return None
    single = isinstance(data.get("task_name"), str) and isinstance(data.get("scores"), dict)
    return data if single or isinstance(data.get("task_results"), list) else None


def _results(path: Path) -> Iterator[_Result]:
    for file in _files(path) if path.is_dir() else [path]:
        data = _read(file)
        if data is None:
            continue  # a folder may hold other files
        if "task_results" in data:
            model = str(data.get("model_name") or file.stem)
            yield from (_result(model, task, file) for task in data["task_results"])
        else:
            yield _result(_model_of(file, path), data, file)


def _result(model: str, data: Mapping[str, Any], file: Path) -> _Result:
    try:
        entries = [dict(entry) for split in data["scores"].values() for entry in split]
        return _Result(model, str(data["task_name"]), entries, file)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{file} is not as mteb writes results: scores are lists by split; save them again.") from None


def _model_of(file: Path, given: Path) -> str:
    """The name in model_meta.json, or that of the model's folder."""
    meta = file.parent / META
    if meta.is_file():
        name = json.loads(read_text(meta)).get("name")
        if isinstance(name, str) and name:
            return name
    if not given.is_dir():
        raise InputError(
            f"{file} does not say which model it is of: keep {META} beside it, or give the folder that holds a folder "
            "for each model."
        )
    folders = file.relative_to(given).parts[:-1]
    name = folders[-2] if len(folders) > 1 else folders[0] if folders else given.resolve().name
    return name.replace("__", "/")
