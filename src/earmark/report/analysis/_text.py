"""An analysis for a terminal: the findings in sentences, then a small table; and scores with predicted ones marked."""

from __future__ import annotations

import textwrap

from earmark.analysis.prowl import THRESHOLD
from earmark.analysis.similarities import NINE
from earmark.analysis.study import Study
from earmark.report.analysis import _sentences as sentences
from earmark.report.analysis._page import order_cells
from earmark.report.metric_text import facts, interval, number
from earmark.report.score_index import representation
from earmark.scores import STATUS_MARKS, Row, Scores
from earmark.scores.spelling import is_single
from earmark.tables import MISSING, aligned, plain

_PROTOCOLS = {"all": "", "across_groups": " · across groups"}
_WIDTH = 100


def analysis_text(study: Study) -> str:
    """What an analysis found, to read in a minute."""
    blocks = [f"{sentences.title(study)}: {sentences.size(study)}"]
    for name, said in (
        ("Which datasets are redundant (SimBA's stalk)", sentences.redundancy(study)),
        ("Which to run first (prowl)", sentences.representatives(study)),
        ("Would a wider search help (beams)", sentences.beams(study)),
        ("What the others would say (pounce)", sentences.predictions(study)),
        ("Do the predictions hold under noise", sentences.noise(study)),
        ("Do the predictions hold for other models (folds)", sentences.folds(study)),
        ("How sure the ranking is", sentences.ranks(study)),
        ("What the blind subsets add", sentences.blind(study)),
        ("Do distances and metrics agree", sentences.agreements(study)),
        ("The lite suite", sentences.lite(study)),
    ):
        if said:
            body = textwrap.fill(" ".join(said), _WIDTH, initial_indent="  ", subsequent_indent="  ")
            blocks.append(f"{name}\n{body}")
    blocks.append(_representatives(study))
    return "\n\n".join(blocks) + "\n"


def _representatives(study: Study) -> str:
    lines = [["order by", "SCAUC", "|S*|", "stable", "swapped", "S*"]]
    for row in study.prowl.rows():
        chosen = " ".join(row["order"][: int(row["size"])]) if row["similarity"] in NINE else ""
        lines.append([*order_cells(row), chosen if len(chosen) <= 48 else f"{chosen[:47]}…"])
    words = (
        f"SCAUC: coverage, averaged over all sizes. |S*|: datasets until it reaches {THRESHOLD}. stable: until it "
        "stays there. swapped: pairs of models that these datasets (S*) rank the other way round."
    )
    return "\n".join([*aligned(lines, left=1, words=1), textwrap.fill(words, _WIDTH)])


def filled_text(scores: Scores) -> str:
    """For each metric, subsets by systems: `90.0` was measured, `~70.9 [54.9, 85.4]` predicted. Reasons stand below."""
    by_metric: dict[str, list[Row]] = {}
    for row in scores:
        if row.value is not None:
            by_metric.setdefault(row.metric, []).append(row)
    blocks = [_filled_block(metric, rows) for metric, rows in by_metric.items()]
    reasons = dict.fromkeys(row.reason for row in scores if row.status == "predicted")
    said = "\n".join(f"~ {reason}" for reason in reasons)
    return "\n\n".join([*blocks, *([said] if said else [])]) + "\n"


def _filled_block(metric: str, rows: list[Row]) -> str:
    cells: dict[tuple[str, str], str] = {}
    for row in rows:
        name = plain(representation(row).label) + _PROTOCOLS.get(row.protocol, f" · {row.protocol}")
        value = STATUS_MARKS.get(row.status, "") + number(row.value or 0.0, metric)
        cells[row.subset, name] = f"{value} {interval(row)}".rstrip() if row.status == "predicted" else value
    names = list(dict.fromkeys(name for _, name in cells))
    subsets = sorted(dict.fromkeys(subset for subset, _ in cells), key=lambda subset: not is_single(subset))
    lines = [["subset", *names]]
    lines += [[subset or "all clips", *(cells.get((subset, name), MISSING) for name in names)] for subset in subsets]
    unit = " (%)" if facts(metric).percent else ""
    better = "higher" if facts(metric).higher_is_better else "lower"
    heading = f"{metric}{unit}, {better} is better; ~ was predicted, not measured"
    return "\n".join([heading, "", *aligned(lines)])
