"""Codecs on the terminal: a line for each setting, then who wins at which rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from earmark.codecs.contract import CodecCard
from earmark.codecs.rate_distortion import Point
from earmark.report.codecs._comparison import (
    LADDER,
    BdRate,
    Comparison,
    Difference,
    Failures,
    best_below,
    compare_settings,
    failing,
    split_by_subset,
)
from earmark.report.metric_text import facts, number
from earmark.scores import Row, Scores
from earmark.submissions import Dataset
from earmark.tables import MINUS, MISSING, aligned

SHOWN = (
    "kbps", "overall", "overall_unsaturated", "stft_distance", "mel_distance", "pesq", "stoi", "f0_corr",
    "f0_voicing_error", "si_sdr", "visqol", "zimtohrli", "dnsmos", "dnsmos_p808", "delay_ms",
)  # fmt: skip
"""Columns of the table on stdout, where they were measured; scores.csv holds everything."""
MOST_REASONS = 5
_WHOLE = ("kbps", "delay_ms", "overall", "overall_unsaturated")  # that are no means over clips
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
    for subset, own in split_by_subset(scores).items():
        dataset = described.get(subset)
        left_out = failing(failed, dataset, "overall") if dataset else {}
        compared = compare_settings(own, cards, subset, "overall", protocol=protocol, left_out=left_out)
        parts.append("\n".join([subset, *_table(own.rows, protocol, dataset, failed.get(subset, {}))]))
        parts += filter(None, ["\n".join(_task_lines(own.rows)), winners(compared)])
    return "\n\n".join(parts) + "\n"


def _table(
    rows: Sequence[Row], protocol: str, dataset: Dataset | None, failed: Mapping[str, Mapping[str, Sequence[str]]]
) -> list[str]:
    """A line for each setting; clips that were coded, that failed of all, and values missing over metrics and clips."""
    found = {(row.system, row.metric): row for row in rows if row.protocol in (protocol, "all")}
    systems = list(dict.fromkeys(row.system for row in rows))
    shown = [metric for metric in SHOWN if any((system, metric) in found for system in systems)]
    lines = [["codec", *(_HEADS.get(metric, metric) for metric in shown), "clips", "failed", "missing"]]
    for system in systems:
        rate = found.get((system, "kbps"))
        coded = (rate.n if rate else None) or 0
        clips = coded if dataset is None else dataset.clips
        lost = len({clip for ids in failed.get(system, {}).values() for clip in ids})
        measured = [row for metric in shown if metric not in _WHOLE and (row := found.get((system, metric)))]
        missing = sum(max(0, clips - (row.n or 0)) for row in measured)
        counts = [str(coded), f"{lost}/{clips}" if lost else "", str(missing) if missing else ""]
        lines.append([system, *(_cell(found.get((system, metric))) for metric in shown), *counts])
    return aligned(lines, left=1, indent="  ")


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
    columns: dict[tuple[str, str], list[Row]] = {}
    for row in own:
        columns.setdefault((row.metric, row.protocol), []).append(row)
    titles = {key: key[0] if key[1] == "all" else " ".join(key) for key in columns}
    found = {(row.system, row.metric, row.protocol): row for row in own}
    measured = [key for key, rows in columns.items() if any(row.value is not None for row in rows)]
    lines: list[str] = []
    for start in range(0, len(measured), TASK_COLUMNS):  # a terminal is so wide
        few = measured[start : start + TASK_COLUMNS]
        systems = dict.fromkeys(row.system for row in own)
        body = [[system, *(_cell(found.get((system, *key))) for key in few)] for system in systems]
        lines += aligned([["tasks", *(titles[key] for key in few)], *body], left=1, indent="  ")
    lacking: dict[str, list[str]] = {}
    for key in (key for key in columns if key not in measured):
        lacking.setdefault(columns[key][0].reason, []).append(titles[key])
    return [*lines, *(f"  no value of {', '.join(names)}: {reason}" for reason, names in lacking.items())]


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
    return "\n".join(filter(None, [f"best {found.metric} by rate: {', '.join(said)}", left_out_text(found)]))


def left_out_text(found: Comparison) -> str:
    """Which settings cannot win because they failed where others did not; nothing when there is none."""
    return "; ".join(
        f"{name} is left out: it failed on {one.clips} of {one.total} clips" for name, one in found.left_out.items()
    )


def comparison_text(found: Sequence[Comparison], differences: Sequence[Difference] = ()) -> str:
    """Rates and scores of every setting, the front, BD-rates, and the steps that do not improve."""
    blocks = []
    for one in found:
        if not one.points:
            continue
        direction = "higher" if one.higher_is_better else "lower"
        blocks.append([f"{one.subset}: {one.metric} ({direction} is better)", *_curve_lines(one), left_out_text(one)])
        if one.bd_rates:
            blocks.append(["rate that the line needs for the same score as the column (BD-rate)", *_bd_lines(one)])
        steps = one.monotonicity
        said = f"{steps.kept} of {steps.total} steps to a higher rate inside a family improve {one.metric}"
        blocks.append([said, *(f"  not: {step}" for step in steps.exceptions)])
    if differences:
        heading = "settings of different families at like rates, on the same clips"
        lines = [["subset", "metric", "codec", "minus", "difference", "interval", "p", "clips"]]
        for pair in differences:
            names, value, around, *rest = difference_cells(pair)
            lines.append([pair.subset, pair.metric, *names, value, f"[{', '.join(around)}]" if around else "", *rest])
        blocks.append([heading, *aligned(lines, left=1, indent="  ")])
    return "\n\n".join("\n".join(filter(None, lines)) for lines in blocks) + "\n"


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
    shown = {pair: f"{100 * value:+.0f} %".replace("-", MINUS) for pair, value in change.items() if value is not None}
    return names, [["" if a == b else shown.get((a, b), MISSING) for b in names] for a in names]


def difference_cells(one: Difference) -> tuple[list[str], str, list[str], str, str]:
    """Both settings with their rates, the difference, the ends of its interval if it has one, p and the clips."""
    names = [f"{one.system} ({one.kbps:.1f})", f"{one.other} ({one.other_kbps:.1f})"]
    ends = [] if one.low is None or one.high is None else [one.low, one.high]
    value, *around = (f"{number:+.3f}".replace("-", MINUS) for number in (one.value, *ends))
    return names, value, around, "" if one.p_value is None else f"{one.p_value:.3f}", str(one.n)
