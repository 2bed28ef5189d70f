"""Codecs on the terminal: a line for each setting, then who wins at which rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from earmark.codecs.contract import CodecCard
from earmark.codecs.rate_distortion import Point
from earmark.report.codecs.comparison import (
    LADDER,
    BdRate,
    Comparison,
    Failures,
    best_below,
    compare_settings,
    failing,
    split_by_subset,
)
from earmark.report.codecs.content import Difference
from earmark.report.metric_text import facts, number
from earmark.scores import Row, Scores
from earmark.submissions import Dataset
from earmark.tables import MINUS, MISSING, aligned

__all__ = [
    "SHOWN",
    "bd_matrix",
    "comparison_text",
    "left_out_text",
    "run_text",
    "shared_text",
    "shown_value",
    "signed",
    "winners",
    "without_value",
]

SHOWN = (
    "kbps", "overall", "overall_unsaturated", "stft_distance", "mel_distance", "pesq", "stoi", "f0_corr",
    "f0_voicing_error", "si_sdr", "visqol", "zimtohrli", "dnsmos", "dnsmos_p808", "delay_ms",
)  # fmt: skip
"""Columns of the table on stdout, where they were measured; scores.csv holds everything."""
MOST_REASONS = 5
TASK_COLUMNS = 6
_DECIMALS = {"kbps": 2, "delay_ms": 1, "si_sdr": 1, "f0_voicing_error": 1}
_HEADS = {"overall_unsaturated": "unsat.", "stft_distance": "stft", "mel_distance": "mel", "f0_voicing_error": "v/uv %"}


def run_text(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    protocol: str = "all",
    datasets: Sequence[Dataset] = (),
    failed: Failures = MappingProxyType({}),
) -> str:
    """A table for each subset, then a line on who wins. `datasets` tell the number of clips, `failed` who failed."""
    described = {dataset.subset: dataset for dataset in datasets}
    parts = []
    for subset, scores_of_subset in split_by_subset(scores).items():
        own = scores_of_subset.rows
        if all(row.aggregate for row in own):
            continue
        dataset = described.get(subset)
        parts.append("\n".join([subset, *_table(own, protocol, dataset, failed.get(subset, {}))]))
        tasks = _task_lines(own)
        if tasks:
            parts.append("\n".join(tasks))
        left_out = failing(failed, dataset, "overall") if dataset else {}
        said = winners(
            compare_settings(scores_of_subset, cards, subset, "overall", protocol=protocol, left_out=left_out)
        )
        if said:
            parts.append(said)
    return "\n\n".join(parts) + "\n"


def _table(
    rows: Sequence[Row], protocol: str, dataset: Dataset | None, failed: Mapping[str, Mapping[str, Sequence[str]]]
) -> list[str]:
    found = {(row.system, row.metric): row for row in rows if row.protocol in (protocol, "all")}
    systems = list(dict.fromkeys(row.system for row in rows))
    shown = [metric for metric in SHOWN if any((system, metric) in found for system in systems)]
    heads = ["codec", *(_HEADS.get(metric, metric) for metric in shown), "clips", "failed", "missing"]
    lines = [heads]
    for system in systems:
        cells = [_cell(found.get((system, metric))) for metric in shown]
        own = [found[system, metric] for metric in shown if (system, metric) in found]
        clips = {clip for ids in failed.get(system, {}).values() for clip in ids}
        lines.append([system, *cells, *_counts(own, dataset, len(clips))])
    return aligned(lines, left=1, indent="  ")


def _counts(rows: Sequence[Row], dataset: Dataset | None, failed: int) -> list[str]:
    """Clips that were coded, clips that failed of all, and how many values are missing over all metrics and clips."""
    coded = next((row.n for row in rows if row.metric == "kbps"), None) or 0
    clips = coded if dataset is None else dataset.clips
    lacking = [row for row in rows if row.metric not in ("kbps", "delay_ms", "overall", "overall_unsaturated")]
    missing = sum(max(0, clips - (row.n or 0)) for row in lacking)
    return [str(coded), f"{failed}/{clips}" if failed else "", str(missing) if missing else ""]


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return without_value(row) if row.value is None else shown_value(row.value, row.metric)


def without_value(row: Row) -> str:
    """What stands where a value is missing. A delay that could not be found is no failure of its own."""
    return "failed" if row.status == "failed" and row.metric != "delay_ms" else "–"


def shown_value(value: float, metric: str) -> str:
    """A number as the tables of codecs print it."""
    if metric in _DECIMALS:
        scale = 100 if facts(metric).percent else 1
        return f"{scale * value:.{_DECIMALS[metric]}f}".replace("-", MINUS)
    return number(value, metric)


def _task_lines(rows: Sequence[Row]) -> list[str]:
    """Tasks and what else has a protocol of its own, a line for each codec."""
    special = ("encode_rtf", "decode_rtf", "token_usage", "token_entropy", "token_perplexity", "entropy_kbps")
    own = [
        row for row in rows
        if row.metric not in SHOWN and row.metric not in special and row.statistic != "p1"
        and row.correction in ("none", "")
    ]  # fmt: skip
    columns = list(dict.fromkeys(map(_key, own)))
    if not columns:
        return []
    found = {(row.system, row.metric, row.protocol): row for row in own}
    measured = [column for column in columns if any(_key(row) == column and row.value is not None for row in own)]
    lines: list[str] = []
    for start in range(0, len(measured), TASK_COLUMNS):  # a terminal is so wide
        few = measured[start : start + TASK_COLUMNS]
        heads = ["tasks", *(_task(column) for column in few)]
        systems = dict.fromkeys(row.system for row in own)
        body = [[system, *(_cell(found.get((system, *key))) for key in few)] for system in systems]
        lines += aligned([heads, *body], left=1, indent="  ")
    lacking: dict[str, list[str]] = {}
    for column in columns:
        if column not in measured:
            lacking.setdefault(next(row.reason for row in own if _key(row) == column), []).append(_task(column))
    return [*lines, *(f"  no value of {', '.join(names)}: {reason}" for reason, names in lacking.items())]


def _key(row: Row) -> tuple[str, str]:
    return row.metric, row.protocol


def _task(column: tuple[str, str]) -> str:
    metric, protocol = column
    return metric if protocol == "all" else f"{metric} {protocol}"


def winners(found: Comparison) -> str:
    """Who wins at which rate, as one sentence; nothing when there is no value."""
    best: dict[str, tuple[Point, float]] = {}
    for rate in LADDER:
        point = best_below(found, rate)
        if point is not None:
            best.setdefault(point.system, (point, rate))
    if not best:
        return left_out_text(found)
    said = [
        f"{name} up to {rate:g} kbps ({shown_value(point.value, found.metric)})" for name, (point, rate) in best.items()
    ]
    told = f"best {found.metric} by rate: {', '.join(said)}"
    return "\n".join(filter(None, [told, left_out_text(found)]))


def left_out_text(found: Comparison) -> str:
    """Which settings cannot win because they failed where others did not; nothing when there is none."""
    return "; ".join(
        f"{name} is left out: it failed on {one.clips} of {one.total} clips" for name, one in found.left_out.items()
    )


def comparison_text(found: Sequence[Comparison], differences: Sequence[Difference] = ()) -> str:
    """Rates and scores of every setting, the front, BD-rates, and the steps that do not improve."""
    parts = []
    for one in found:
        if not one.points:
            continue
        direction = "higher" if one.higher_is_better else "lower"
        lines = [f"{one.subset}: {one.metric} ({direction} is better)", *_curve_lines(one), left_out_text(one)]
        parts.append("\n".join(filter(None, lines)))
        if one.bd_rates:
            parts.append(
                "\n".join(["rate that the line needs for the same score as the column (BD-rate)", *_bd_lines(one)])
            )
        parts.append(_monotone(one))
    if differences:
        parts.append(
            "\n".join(["settings of different families at like rates, on the same clips", *_differences(differences)])
        )
    return "\n\n".join(parts) + "\n"


def _curve_lines(found: Comparison) -> list[str]:
    front = {point.system for point in found.front}
    lines = [["codec", "kbps", found.metric, "interval", "front"]]
    for curve in found.curves.values():
        for point in curve.points:
            row = found.rows[point.system]
            spread = "" if row.low is None or row.high is None else (
                f"[{shown_value(row.low, row.metric)}, {shown_value(row.high, row.metric)}]"
            )  # fmt: skip
            mark = "front" if point.system in front else ""
            if point.system in found.left_out:
                mark = "failed {}/{}".format(*found.left_out[point.system])
            lines.append([point.system, f"{point.kbps:.2f}", shown_value(point.value, found.metric), spread, mark])
    return aligned(lines, left=1, indent="  ")


def _bd_lines(found: Comparison) -> list[str]:
    names, cells = bd_matrix(found)
    body = [[name, *line] for name, line in zip(names, cells, strict=True)]
    lines = aligned([["", *names], *body], left=1, indent="  ")
    unknown = [one for one in found.bd_rates if one.change.value is None]
    lines += [f"  {one.family} against {one.anchor}: {shared_text(found, one)}" for one in found.bd_rates if one.shared]
    return [*lines, *(f"  –: {one.family} against {one.anchor}: {one.change.reason}" for one in unknown[:MOST_REASONS])]


def shared_text(found: Comparison, one: BdRate) -> str:
    """Over which scores a BD-rate is taken."""
    if one.shared is None:
        return ""
    low, high = (shown_value(value, found.metric) for value in one.shared)
    return f"over {found.metric} from {low} to {high}"


def bd_matrix(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Families, and for each pair of them the rate that the line needs against the column, as text."""
    names = list(dict.fromkeys(name for one in found.bd_rates for name in (one.anchor, one.family)))
    change = {(one.family, one.anchor): one.change.value for one in found.bd_rates}
    # What A needs against B says what B needs against A.
    change |= {(b, a): None if value is None else 1 / (1 + value) - 1 for (a, b), value in change.items()}
    return names, [
        ["" if line == column else _percent(change.get((line, column))) for column in names] for line in names
    ]


def _percent(change: float | None) -> str:
    return MISSING if change is None else f"{100 * change:+.0f} %".replace("-", MINUS)


def _monotone(found: Comparison) -> str:
    told = found.monotonicity
    said = f"{told.kept} of {told.total} steps to a higher rate inside a family improve {found.metric}"
    wrong = [f"  not: {step}" for step in told.exceptions]
    return "\n".join([said, *wrong])


def signed(one: Difference) -> tuple[str, list[str]]:
    """A difference and the ends of its interval, which may have none, with their signs."""
    ends = [] if one.low is None or one.high is None else [one.low, one.high]
    value, *around = (f"{number:+.3f}".replace("-", MINUS) for number in (one.value, *ends))
    return value, around


def _differences(differences: Iterable[Difference]) -> list[str]:
    lines = [["subset", "metric", "codec", "minus", "difference", "interval", "p", "clips"]]
    for one in differences:
        p = "" if one.p_value is None else f"{one.p_value:.3f}"
        names = f"{one.system} ({one.kbps:.1f})", f"{one.other} ({one.other_kbps:.1f})"
        value, around = signed(one)
        numbers = value, f"[{', '.join(around)}]" if around else ""
        lines.append([one.subset, one.metric, *names, *numbers, p, str(one.n)])
    return aligned(lines, left=1, indent="  ")
