"""Codecs on the terminal: a line for each setting, then who wins at which rate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from earmark.codecs.contract import CodecCard
from earmark.codecs.overall import DISTANCES
from earmark.codecs.ranking import KINDS, MARKS, TITLES, kind_of, leading_kind, why_apart
from earmark.codecs.rate_distortion import Point
from earmark.codecs.standing import Standing
from earmark.report.codecs._comparison import (
    LADDER,
    BdRate,
    Comparison,
    Difference,
    Failures,
    apart,
    best_below,
    compare_settings,
    failing,
    split_by_subset,
)
from earmark.report.metric_text import facts, number
from earmark.scores import STATUS_MARKS, Row, Scores
from earmark.scores.spelling import at_rate
from earmark.submissions import Dataset
from earmark.tables import MINUS, MISSING, aligned

SHOWN = (
    "kbps", "header_kbps", "overall", "overall_unsaturated", "stft_distance", "mel_distance", "pesq", "stoi", "f0_corr",
    "f0_voicing_error", "si_sdr", "visqol", "zimtohrli", "dnsmos", "dnsmos_p808", "delay_ms",
)  # fmt: skip
"""Columns of the table on stdout, where they were measured; scores.csv holds everything."""
APART = (
    "encode_rtf", "decode_rtf", "token_usage", "token_entropy", "token_perplexity", "entropy_kbps",
)  # fmt: skip
"""What no table on stdout shows."""
FLOORED = "dwer"
"""The metric that is not 0 without loss: a recogniser hears a sound that was resampled and rounded differently."""
MOST_REASONS = 5
_WHOLE = ("kbps", "header_kbps", "delay_ms", "overall", "overall_unsaturated")  # that are no means over clips
TASK_COLUMNS = 6
_DECIMALS = {"kbps": 2, "header_kbps": 2, "delay_ms": 1, "si_sdr": 1, "f0_voicing_error": 1}
_HEADS = {
    "header_kbps": "header",
    "overall_unsaturated": "unsat.",
    "stft_distance": "stft",
    "mel_distance": "mel",
    "f0_voicing_error": "v/uv %",
}


def run_text(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    protocol: str = "all",
    datasets: Sequence[Dataset] = (),
    failed: Failures = MappingProxyType({}),
    *,
    metrics: Sequence[str] = (),
    standings: Mapping[str, Standing] = MappingProxyType({}),
) -> str:
    """A table for each subset, then a line on who wins, and what the results rest on.

    `datasets` tell the number of clips, `failed` who failed, `metrics` those that were asked for, own ones included.
    """
    described = {dataset.subset: dataset for dataset in datasets}
    parts = [lost] if (lost := total_failures(scores, cards)) else []
    others = apart(standings, cards)
    table = _Table(cards, standings, [*SHOWN, *(metric for metric in metrics if metric not in SHOWN)], failed)
    for subset, own in split_by_subset(scores).items():
        dataset = described.get(subset)
        parts.append("\n".join([subset, *table.lines(own.rows, protocol, subset, dataset)]))
        for rate in sampling_rates(own):
            at = at_rate(protocol, rate)
            clips = [row for row in own.rows if row.protocol in (at, at_rate("all", rate))]
            parts.append("\n".join([f"{subset}, clips at {rate} Hz", *table.lines(clips, at, subset)]))
        parts += filter(None, ["\n".join(_task_lines(own.rows, table, metrics))])
        left_out = others | (failing(failed, dataset, "overall") if dataset else {})
        for at in [protocol, *(at_rate(protocol, rate) for rate in sampling_rates(own))]:
            compared = compare_settings(own, cards, subset, "overall", protocol=at, left_out=left_out)
            # Why others are ranked apart is said once, below all tables.
            untold = [name for name, why in compared.left_out.items() if others.get(name) == why]
            parts += filter(None, [winners(compared, untold)])
    return "\n\n".join([*parts, *filter(None, [standing_text(standings, cards)])]) + "\n"


def total_failures(scores: Iterable[Row], cards: Mapping[str, CodecCard]) -> str:
    """Which settings have no result at all, and why; nothing where all have some."""
    rows = [row for row in scores if row.metric == "kbps"]
    measured = {row.system for row in rows if row.value is not None}
    reasons = {row.system: row.reason for row in reversed(rows)}
    lines = [
        f"{name} has no result: {reasons.get(name, 'it was not measured')}" for name in cards if name not in measured
    ]
    return "\n".join(lines)


def standing_text(standings: Mapping[str, Standing], cards: Mapping[str, CodecCard]) -> str:
    """What the results rest on where that is not what it should be: of all codecs, and of those that have a mark."""
    lossy = {name: standing for name, standing in standings.items() if name in cards and not cards[name].lossless}
    leading = leading_kind(kind_of(standing) for standing in lossy.values())
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, standing in lossy.items():
        kind = kind_of(standing)
        if kind != KINDS[0]:
            mark = TITLES[kind].partition(":")[0] if kind == leading else MARKS[kind]
            reasons.setdefault((mark, why_apart(standing)), []).append(name)
    lines = [f"{mark} {', '.join(names)}: {reason}" for (mark, reason), names in reasons.items()]
    for name, standing in lossy.items():
        told = why_apart(standing)
        broken = [promise for promise in standing.broken if promise.reason not in told]
        lines += [f"{name} broke a promise of its card, {promise.name}: {promise.reason}" for promise in broken]
    return "\n".join(lines)


def sampling_rates(scores: Iterable[Row]) -> list[int]:
    """The sampling rates that rows are of, where a subset has several."""
    return sorted({int(rate) for row in scores for _, at, rate in [row.protocol.partition("@")] if at})


class _Table:
    """The table of a subset: a line for each setting, what loses nothing last."""

    def __init__(
        self,
        cards: Mapping[str, CodecCard],
        standings: Mapping[str, Standing],
        columns: Sequence[str],
        failed: Failures,
    ) -> None:
        self.cards, self.columns, self.failed = cards, columns, failed
        self._marks = {name: MARKS[kind_of(standings.get(name, Standing()))] for name in apart(standings, cards)}

    def lines(self, rows: Sequence[Row], protocol: str, subset: str, dataset: Dataset | None = None) -> list[str]:
        """Values, then clips that were coded, that failed of all, and values missing over metrics and clips."""
        at = protocol.partition("@")[2]
        protocols = (protocol, at_rate("all", int(at)) if at else "all")
        found = {(row.system, row.metric): row for row in rows if row.protocol in protocols}
        whole = (*_WHOLE, *DISTANCES) if sampling_rates(rows) else _WHOLE  # what has no mean over all clips
        systems = sorted(dict.fromkeys(row.system for row in rows), key=self.is_anchor)
        shown = [metric for metric in self.columns if any((system, metric) in found for system in systems)]
        shown = [name for name in shown if name != "header_kbps" or any(_value(found, s, name) for s in systems)]
        lines = [["codec", *(_HEADS.get(metric, metric) for metric in shown), "clips", "failed", "missing"]]
        for system in systems:
            rate = found.get((system, "kbps"))
            coded = (rate.n if rate else None) or 0
            clips = coded if dataset is None else dataset.clips
            lost = len({clip for ids in self.failed.get(subset, {}).get(system, {}).values() for clip in ids})
            measured = [row for metric in shown if metric not in whole and (row := found.get((system, metric)))]
            missing = sum(max(0, clips - (row.n or 0)) for row in measured) if dataset is not None else 0
            counts = [str(coded), f"{lost}/{clips}" if lost and dataset else "", str(missing) if missing else ""]
            lines.append([self.name(system), *(_cell(found.get((system, metric))) for metric in shown), *counts])
        return aligned(lines, left=1, indent="  ")

    def is_anchor(self, system: str) -> bool:
        return system in self.cards and self.cards[system].lossless

    def name(self, system: str) -> str:
        """The name with its mark; an anchor in brackets."""
        if self.is_anchor(system):
            return f"({system})"
        return f"{system} {self._marks[system]}" if system in self._marks else system


def _value(found: Mapping[tuple[str, str], Row], system: str, metric: str) -> float | None:
    row = found.get((system, metric))
    return row.value if row else None


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row.value is None:
        return without_value(row)
    return STATUS_MARKS.get(row.status, "") + shown_value(row.value, row.metric)


def without_value(row: Row) -> str:
    """What stands where a value is missing. A delay that could not be found is no failure of its own."""
    return "failed" if row.status == "failed" and row.metric != "delay_ms" else "–"


def shown_value(value: float, metric: str) -> str:
    """A number as the tables of codecs print it."""
    if metric in _DECIMALS:
        scale = 100 if facts(metric).percent else 1
        return f"{scale * value:.{_DECIMALS[metric]}f}".replace("-", MINUS)
    return number(value, metric)


def _task_lines(rows: Sequence[Row], table: _Table, metrics: Sequence[str]) -> list[str]:
    """Tasks and what else has a protocol of its own, a line for each codec, with the rate that was counted."""
    special = (*SHOWN, *metrics, *APART)
    own = [
        row for row in rows
        if row.metric not in special and row.statistic != "p1" and row.correction in ("none", "")
        and "@" not in row.protocol
    ]  # fmt: skip
    columns: dict[tuple[str, str], list[Row]] = {}
    for row in own:
        columns.setdefault((row.metric, row.protocol), []).append(row)
    titles = {key: key[0] if key[1] == "all" else " ".join(key) for key in columns}
    found = {(row.system, row.metric, row.protocol): row for row in own}
    rates = {row.system: row for row in rows if (row.metric, row.protocol) == ("kbps", "all")}
    floor = floor_of((row for row in own if row.metric == FLOORED), anchors_of(table.cards))
    measured = [key for key, rows in columns.items() if any(row.value is not None for row in rows)]
    systems = sorted(dict.fromkeys(row.system for row in own), key=table.is_anchor)
    lines: list[str] = []
    for start in range(0, len(measured), TASK_COLUMNS):  # a terminal is so wide
        few = measured[start : start + TASK_COLUMNS]
        body = [["tasks", "kbps"], *([table.name(system), _cell(rates.get(system))] for system in systems)]
        for key in few:
            own_rows = [found.get((system, *key)) for system in systems]
            cells = [[titles[key], *map(_cell, own_rows)]]
            if key[0] == FLOORED and floor is not None:
                cells.append(["above floor", *(above_floor(row, floor) for row in own_rows)])
            for column in cells:
                for line, cell in zip(body, column, strict=True):
                    line.append(cell)
        lines += aligned(body, left=1, indent="  ")
    lines += [f"  {line}" for line in floor_lines(own, anchors_of(table.cards))]
    lacking: dict[str, list[str]] = {}
    for key in (key for key in columns if key not in measured):
        lacking.setdefault(columns[key][0].reason, []).append(titles[key])
    return [*lines, *(f"  no value of {', '.join(names)}: {reason}" for reason, names in lacking.items())]


def floor_lines(rows: Iterable[Row], anchors: Collection[str]) -> list[str]:
    """What a setting without loss (one of `anchors`) has of `dwer`, below which no codec is expected."""
    own = [row for row in rows if row.metric == FLOORED and row.value is not None]
    if not own:
        return []
    floor = floor_of(own, anchors)
    if floor is None:
        return [f"{FLOORED} has no floor here: name a codec without loss, such as pcm, to see what the others add to"]
    interval = f" {spread}" if (spread := interval_text(floor)) else ""
    value = number(floor.value or 0.0, FLOORED, unit=True)
    return [f"floor of {FLOORED}: {value}{interval} of {floor.system}, which loses nothing"]


def above_floor(row: Row | None, floor: Row) -> str:
    """By how much a value exceeds what is reached without loss; nothing for the anchor itself."""
    if row is None or row.value is None or floor.value is None or row.system == floor.system:
        return ""
    return number(row.value - floor.value, row.metric, sign=True)


def floor_of(rows: Iterable[Row], anchors: Collection[str]) -> Row | None:
    """The row of a setting that loses nothing, where one was measured."""
    return next((row for row in rows if row.system in anchors and row.value is not None), None)


def anchors_of(cards: Mapping[str, CodecCard]) -> set[str]:
    """The settings that lose nothing."""
    return {name for name, card in cards.items() if card.lossless}


def interval_text(row: Row) -> str:
    """The interval of a row as tables of codecs print it; nothing where there is none."""
    if row.low is None or row.high is None:
        return ""
    return f"[{shown_value(row.low, row.metric)}, {shown_value(row.high, row.metric)}]"


def winners(found: Comparison, untold: Collection[str] = ()) -> str:
    """Who wins at which rate, as one sentence, and who is left out, but the `untold`; nothing without a value."""
    best: dict[str, tuple[Point, float]] = {}
    for rate in LADDER:
        point = best_below(found, rate)
        if point is not None:
            best.setdefault(point.system, (point, rate))
    left_out = left_out_text(found, untold)
    if not best:
        return left_out
    said = [
        f"{name} up to {rate:g} kbps ({shown_value(point.value, found.metric)})" for name, (point, rate) in best.items()
    ]
    hertz = found.protocol.partition("@")[2]
    clips = f", clips at {hertz} Hz" if hertz else ""
    return "\n".join(filter(None, [f"best {found.metric} by rate{clips}: {', '.join(said)}", left_out]))


def left_out_text(found: Comparison, untold: Collection[str] = ()) -> str:
    """Which settings are not ranked, and why, but the `untold`; nothing when there is none."""
    lines = (f"{name} is left out: {why.reason}" for name, why in found.left_out.items() if name not in untold)
    return "\n".join(lines)


def comparison_text(found: Sequence[Comparison], differences: Sequence[Difference] = ()) -> str:
    """Rates and scores of every setting, the front, BD-rates, and the steps that do not improve."""
    blocks = []
    for one in found:
        if not one.points:
            continue
        direction = "higher" if one.higher_is_better else "lower"
        at = f", {one.protocol}" if "@" in one.protocol else ""
        heading = f"{one.subset}: {one.metric}{at} ({direction} is better)"
        blocks.append([heading, *_curve_lines(one), *_floor_line(one), left_out_text(one)])
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
            mark = "front" if point.system in front else "anchor" if point.system in found.anchors else ""
            if point.system in found.left_out:
                mark = found.left_out[point.system].mark
            lines.append([point.system, f"{point.kbps:.2f}", _cell(row), interval_text(row), mark])
    return aligned(lines, left=1, indent="  ")


def _floor_line(found: Comparison) -> list[str]:
    return floor_lines(found.rows.values(), found.anchors) if found.metric == FLOORED else []


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
