"""Results for a model repository on the Hugging Face Hub.

    .eval_results/NAME.yaml   one value for each task of a benchmark that is a dataset on the Hub
    README.md                 the key model-index of a model card: every metric, with intervals

Shares are written as percentages, as readers of model pages expect them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError, require
from earmark.exchange.measured import Measured, file_name, interval, scale, variant
from earmark.scores import Row, metric_facts
from earmark.wording import counted, first_of

TASK = "feature-extraction"
TASK_NAME = "Audio representation"
OWN = (TASK, TASK_NAME)
_HEADER = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_MODEL_INDEX = re.compile(r"^model-index:.*(?:\r?\n|\Z)(?:(?:[ \t#-].*|)(?:\r?\n|\Z))*?(?=^[^\s#-]|\Z)", re.MULTILINE)
"""The key and the indented lines, or lines of a list, below it."""


def write_hub(
    measured: Measured,
    repository: Path,
    *,
    metric: str,
    dataset: str = "",
    card: Path | None = None,
) -> tuple[list[Path], list[str]]:
    """Write both; the files, and what was left out.

    Without a dataset on the Hub there is no .eval_results file, and without `card` no model-index.
    """
    system = _only_system(measured)
    hub: Any = require("huggingface_hub", "Exporting to the Hugging Face Hub", "models")
    written: list[Path] = []
    remarks: list[str] = []
    by_dataset: dict[str, list[Row]] = {}
    for row in measured.main_rows(system, metric):
        by_dataset.setdefault(dataset or measured.dataset_of(row), []).append(row)
    homeless = by_dataset.pop("", [])
    if homeless and card is None:
        raise UsageError(
            f"{homeless[0].suite or homeless[0].subset} is not known to be a dataset on the Hugging Face Hub, and "
            ".eval_results names one: give it with --dataset ORGANISATION/NAME, or a model card with --card README.md."
        )
    if homeless:
        remarks.append("No .eval_results file: it names a dataset on the Hub, and none was given (--dataset).")
    for name, rows in by_dataset.items():
        entries = [_entry(hub, name, row, measured) for row in rows]
        target = repository / ".eval_results" / f"{file_name(name.replace('/', '_'))}.yaml"
        _write(target, _yaml(hub.eval_result_entries_to_yaml(entries)))
        written.append(target)
    if by_dataset:
        remarks.append(f".eval_results has one value for each task, {metric}; its interval stands in the notes.")
    if card is not None:
        results = [_result(hub, row, dataset, measured) for row in measured.of_system(system)]
        text, kept = _with_results(hub, card, system, results)
        _write(card, text)
        written.append(card)
        if kept:
            remarks.append(
                f"{card.name} keeps {counted(len(kept), 'earlier result')} of Earmark that this export has not "
                f"({first_of(kept, 3)}): remove those that are out of date."
            )
    return written, remarks


def _only_system(measured: Measured) -> str:
    systems = measured.systems()
    if len(systems) > 1:
        raise UsageError(f"A model repository is of one model: choose one with --systems, of {', '.join(systems)}.")
    return systems[0]


def _value(row: Row) -> float:
    assert row.value is not None
    return round(row.value * scale(row), 6)


def _ends(row: Row) -> str:
    ends = interval(row)
    return f"95 % interval {ends[0] * scale(row):.4g} to {ends[1] * scale(row):.4g}" if ends else ""


def _entry(hub: Any, dataset: str, row: Row, measured: Measured) -> Any:
    unit = "in percent" if metric_facts(row.metric).percent else ""
    how = [f"{name} {value}" for name, value in variant(row).items()]
    notes = ", ".join(
        part for part in (f"{row.metric} {unit}".strip(), *how, _ends(row), row.reason, _made_by(row)) if part
    )
    date = measured.date.date().isoformat() if measured.date else None
    return hub.EvalResultEntry(
        dataset_id=dataset, task_id=row.subset or row.suite or "default", value=_value(row), date=date, notes=notes
    )


def _made_by(row: Row) -> str:
    return f"Earmark {row.version}".strip()


def _result(hub: Any, row: Row, dataset: str, measured: Measured) -> Any:
    """A row as an EvalResult; how it was computed, its interval and chance are arguments of the metric."""
    details: dict[str, Any] = dict(variant(row))
    if ends := interval(row):
        details |= {"low": round(ends[0] * scale(row), 6), "high": round(ends[1] * scale(row), 6), "level": 0.95}
    if row.n is not None:
        details["n"] = row.n
    if row.baseline is not None:
        details["baseline"] = round(row.baseline * scale(row), 6)
    if row.p_value is not None:
        details["p_value"] = row.p_value
    described = ", ".join([row.metric, *variant(row).values()])
    return hub.EvalResult(
        task_type=TASK, task_name=TASK_NAME,
        dataset_type=dataset or measured.dataset_of(row) or row.suite or row.subset or "custom",
        dataset_name=row.subset or row.suite or "custom", dataset_config=row.subset or None,
        metric_type=row.metric, metric_name=described, metric_value=_value(row), metric_args=details or None,
    )  # fmt: skip


# --- the model card -----------------------------------------------------------------------------------------------


def _with_results(hub: Any, card: Path, system: str, results: Sequence[Any]) -> tuple[str, list[str]]:
    """The text of the card with these results in its header; other keys, comments and the text below stay.

    Also the earlier results of Earmark that stay because this export has no value in their place.
    """
    text = _text_of(card)
    end = "\r\n" if "\r\n" in text else "\n"
    found = _HEADER.match(text)
    header, body = (found[1], text[found.end() :]) if found else ("", text)
    name, earlier = _earlier(card, header, system)
    merged = _merged(earlier, results)
    old = merged[: len(merged) - len(results)]
    kept = [f"{one.metric_name} on {one.dataset_name}" for one in old if (one.task_type, one.task_name) == OWN]
    index = {"model-index": hub.ModelCardData(model_name=name, eval_results=merged).to_dict()["model-index"]}
    rest = _MODEL_INDEX.sub("", header)
    if rest and not rest.endswith("\n"):
        rest += end
    return f"---{end}{rest}{_yaml(index).replace(chr(10), end)}---{end}{body}", kept


def _text_of(card: Path) -> str:
    if not card.is_file():
        return ""
    with card.open(encoding="utf-8-sig", newline="") as file:
        return file.read()


def _earlier(card: Path, header: str, system: str) -> tuple[str, list[Any]]:
    """The name of the model in the card and its results so far."""
    import yaml
    from huggingface_hub.repocard_data import model_index_to_eval_results

    try:
        facts = yaml.safe_load(header) or {}
    except yaml.YAMLError as error:
        raise InputError(f"{card} has a header that is not YAML ({str(error).splitlines()[0]}); correct it.") from None
    if not isinstance(facts, dict):
        raise InputError(f"{card} has a header that is no list of keys and values; correct it.")
    index = facts.get("model-index")
    if not index:
        return system, []
    try:
        if len(index) > 1:
            raise InputError(f"{card} lists {len(index)} models under model-index; a card is written of one.")
        return model_index_to_eval_results(index)
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{card} has a model-index that huggingface_hub cannot read; correct or remove it.") from None


def _merged(earlier: Iterable[Any], results: Sequence[Any]) -> list[Any]:
    """Results of others stay; those of the same metric on the same data are replaced."""

    def key(result: Any) -> tuple[object, ...]:
        return (*result.unique_identifier, result.metric_type, result.metric_name)

    replaced = {key(result) for result in results}
    return [result for result in earlier if key(result) not in replaced] + list(results)


def _yaml(data: object) -> str:
    import yaml

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text.encode())
