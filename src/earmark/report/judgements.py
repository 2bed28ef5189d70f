"""How far metrics go with what people said of the same systems: correlations as text, as a file, and on a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from earmark.analysis.human import Correlation, Gain, HumanAgreement, HumanRelation
from earmark.atomic import write_whole
from earmark.places import locate
from earmark.tables import MISSING, NumberFormat, aligned, csv_text, p_value_text
from earmark.tables.html import Html, bullets, paragraph, table
from earmark.wording import counted, listed

COLUMNS = (
    "distance", "correction", "metric", "n", "pearson", "pearson_low", "pearson_high", "pearson_p",
    "pearson_p_adjusted", "spearman", "spearman_low", "spearman_high", "spearman_p", "spearman_p_adjusted", "reason",
)  # fmt: skip
_RELATION_HEADS = ("n", "Pearson", "95 %", "p", "Spearman", "95 %", "p")
_TWO = NumberFormat(2)
_GAIN_HEADS = ("without", "with", "difference", "95 %")


def to_text(human: HumanAgreement) -> list[str]:
    """Blocks: remarks on what was left out or is too little, the correlations, what corrections add to them."""
    blocks = ["\n".join(f"note: {note}" for note in human.notes)] if human.notes else []
    blocks += [_lines("agreement with the judgements", _RELATION_HEADS, map(_relation, human.relations))]
    blocks += [meaning(human)]
    if human.gains:
        blocks += [
            _lines("what GICDM adds to Pearson's r", _GAIN_HEADS, map(_gain, human.gains)),
            gains_sentence(human),
        ]
    return blocks


def to_html(human: HumanAgreement) -> list[Html]:
    made = [bullets(human.notes)] if human.notes else []
    made += [paragraph(meaning(human)), _table("Agreement", _RELATION_HEADS, map(_relation, human.relations))]
    if human.gains:
        made += [paragraph(gains_sentence(human)), _table("What GICDM adds", _GAIN_HEADS, map(_gain, human.gains))]
    return made


def _lines(title: str, heads: Sequence[str], rows: Iterable[list[str]]) -> str:
    return "\n".join(
        aligned([[title, *heads], *([f"  {name}", *cells] for name, *cells in rows)], indent="  ", gap="   ")
    )


def _table(caption: str, heads: Sequence[str], rows: Iterable[list[str]]) -> Html:
    return table(["score", *heads], list(rows), words=1, caption=caption, sortable=False)


def _relation(item: HumanRelation) -> list[str]:
    name = f"{item.metric}{'' if item.correction == 'none' else ' with ' + item.correction.upper()}"
    return [name, str(len(item.systems)), *_correlation(item.pearson), *_correlation(item.spearman)]


def _correlation(found: Correlation | None) -> list[str]:
    if found is None:
        return [MISSING, "", ""]
    p_value = "" if found.p_adjusted is None else p_value_text(found.p_adjusted).removeprefix("p").strip(" =")
    return [_TWO.text(found.value), _ends(found.low, found.high), p_value]


def _gain(gain: Gain) -> list[str]:
    values = _TWO.text(gain.without), _TWO.text(gain.corrected), _TWO.text(gain.value, sign=True)
    return [gain.metric, *values, _ends(gain.low, gain.high)]


def _ends(low: float | None, high: float | None) -> str:
    return _TWO.interval(low, high)


def meaning(human: HumanAgreement) -> str:
    """What the numbers are."""
    return (
        "More is better in both, so that a positive correlation is agreement. Intervals are over generators: they say "
        f"what other generators of this kind would show. p is corrected for {counted(len(human.relations), 'score')}."
    )


def gains_sentence(human: HumanAgreement) -> str:
    """For which metrics the difference that GICDM makes is larger than other generators explain."""
    sure = [gain for gain in human.gains if gain.low is not None and gain.high is not None]
    if not sure:
        return "With so few generators nothing can be said of what GICDM adds."
    better = [gain.metric for gain in sure if (gain.low or 0.0) > 0.0]
    worse = [gain.metric for gain in sure if (gain.high or 0.0) < 0.0]
    said = [f"better: {listed(better)}"] if better else []
    said += [f"worse: {listed(worse)}"] if worse else []
    if not said:
        return f"None of these {counted(len(sure), 'difference')} is larger than other generators would explain."
    return f"Larger than other generators would explain, each by itself: {'; '.join(said)}."


def write_correlations(human: HumanAgreement, path: str | os.PathLike[str]) -> None:
    """A line for each metric: its correlations with the judgements."""
    rows = []
    for item in human.relations:
        cells: dict[str, object] = {
            "distance": item.distance, "correction": item.correction, "metric": item.metric, "n": len(item.systems),
            "reason": item.reason or None,
        }  # fmt: skip
        for kind, found in (("pearson", item.pearson), ("spearman", item.spearman)):
            values = (None,) * 5 if found is None else found
            names = ("", "_low", "_high", "_p", "_p_adjusted")
            cells |= {kind + name: value for name, value in zip(names, values, strict=True)}
        rows.append(cells)
    write_records(COLUMNS, rows, path)


def write_records(columns: Sequence[str], rows: Sequence[Mapping[str, object]], path: str | os.PathLike[str]) -> None:
    """Rows with these columns as .csv or .json."""
    target = locate(path)
    ordered = [{name: row.get(name) for name in columns} for row in rows]
    as_json = target.suffix.lower() == ".json"
    text = json.dumps(ordered, indent=1, ensure_ascii=False) + "\n" if as_json else csv_text(columns, ordered)
    write_whole(target, text.encode())
