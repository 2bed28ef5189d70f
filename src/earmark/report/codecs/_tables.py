"""The tables of a codec page: every setting, tasks, speed and delay, families, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from earmark.codecs.ranking import KINDS, TITLES, kind_of, why_apart
from earmark.report.codecs._comparison import CodecReport, Comparison, Failed
from earmark.report.codecs.text import (
    FLOORED,
    above_floor,
    anchors_of,
    bd_matrix,
    difference_cells,
    floor_lines,
    floor_of,
    sampling_rates,
    shared_text,
    shown_value,
    without_value,
)
from earmark.report.metric_text import facts
from earmark.scores import STATUS_MARKS, Row, Scores
from earmark.scores.spelling import at_rate
from earmark.tables.html import Html, bullets, folded, join, paragraph, section, table, tag, text
from earmark.wording import counted, first_of, listed

_COUNTED = ("kbps", "header_kbps", "overall", "overall_unsaturated")
_APART = (
    "kbps", "header_kbps", "encode_rtf", "decode_rtf", "delay_ms", "token_usage", "token_entropy", "token_perplexity",
    "entropy_kbps", "overall", "overall_unsaturated",
)  # fmt: skip


def settings(report: CodecReport, of_subset: Mapping[str, Scores]) -> Iterator[Html]:
    """A table for each dataset: rate, overall scores and metrics, each with its interval and the clips it rests on."""
    for dataset in report.datasets:
        own = of_subset.get(dataset.subset, Scores())
        about = f"{dataset.subset}: {counted(dataset.clips, 'clip')} of {dataset.category}."
        yield _settings(report, own, report.protocol, about)
        for rate in sampling_rates(own):
            at = at_rate(report.protocol, rate)
            yield _settings(report, own, at, f"{dataset.subset}, the clips at {rate:,} Hz alone.")
        yield _percentiles(report, dataset.subset, own)


def _settings(report: CodecReport, scores: Scores, protocol: str, about: str) -> Html:
    _, at, rate = protocol.partition("@")
    rows = {
        (row.system, row.metric): row
        for row in scores
        if row.protocol in (protocol, f"all{at}{rate}") and row.correction in ("none", "")
    }
    metrics = [metric for metric in (*_COUNTED, *report.metrics) if any(name == metric for _, name in rows)]
    if not any(row.value for (_, metric), row in rows.items() if metric == "header_kbps"):
        metrics = [metric for metric in metrics if metric != "header_kbps"]
    heads = ["codec", *(_head(metric) for metric in metrics)]
    lines = [
        [name_cell(report, name), *(_value_cell(rows.get((name, metric))) for metric in metrics)]
        for name in in_order(report)
    ]
    caption = (
        f"{about} Under a value its 95 % interval and, where some are missing, the clips that have one. * lacks the "
        "clips that the codec failed on and is not ranked; anchors, which lose nothing, stand at the end."
    )
    return table(heads, lines, caption=caption, filterable=True)


def in_order(report: CodecReport) -> list[str]:
    """Every codec, anchors at the end."""
    return sorted(report.cards, key=lambda name: report.cards[name].lossless)


def name_cell(report: CodecReport, name: str) -> Html:
    """The name of a codec with what its results rest on, where that is not what it should be."""
    card, standing = report.cards[name], report.standings.get(name)
    kind = kind_of(standing) if standing is not None else "isolated"
    if card.lossless:
        return join(name, " ", tag("span", "anchor", class_="badge"))
    if kind == "isolated":
        return text(name)
    words = "isolation unknown" if kind == "unknown" else "not isolated" if kind == "unisolated" else "faulty"
    return join(name, " ", tag("span", words, class_="badge", title=why_apart(standing) if standing else None))


def _rates(report: CodecReport, scores: Iterable[Row]) -> dict[str, Html | str]:
    """A cell with the bitrate of every codec."""
    rows = {row.system: row for row in scores if (row.metric, row.protocol) == ("kbps", "all")}
    return {name: _value_cell(rows.get(name)) for name in report.cards}


def _head(metric: str) -> str:
    return metric if metric.endswith("kbps") else f"{metric} {'↑' if facts(metric).higher_is_better else '↓'}"


def _value_cell(row: Row | None) -> Html | str:
    if row is None:
        return ""
    if row.value is None:
        return tag("td", without_value(row), class_="n quiet", title=row.reason)
    low_high = "" if row.low is None or row.high is None else (
        f"{shown_value(row.low, row.metric)} to {shown_value(row.high, row.metric)}"
    )  # fmt: skip
    partly = row.status == "incomplete" or (row.reason and row.metric not in _APART)
    missing = counted(row.n or 0, "clip") if partly else ""
    below = " · ".join(filter(None, [low_high, missing]))
    small = tag("small", below) if below else None
    value = STATUS_MARKS.get(row.status, "") + shown_value(row.value, row.metric)
    return tag("td", value, small, class_="n", data_value=repr(row.value), title=row.reason or None)


def _percentiles(report: CodecReport, subset: str, scores: Scores) -> Html:
    """What the worst clips get, folded."""
    rows = {
        (row.system, row.metric): row
        for row in scores
        if row.statistic == "p1" and row.protocol in (report.protocol, "all")
    }
    metrics = [metric for metric in report.metrics if any((name, f"{metric}:p1") in rows for name in report.cards)]
    rates = _rates(report, scores)
    lines = [
        [name, rates[name], *(_value_cell(rows.get((name, f"{metric}:p1"))) for metric in metrics)]
        for name in in_order(report)
    ]
    note = paragraph(
        "The value that one clip in a hundred does not reach (passes, where less is better). A mean hides what the "
        "worst clips get. Point at a value to see which clips they are."
    )
    made = table(["codec", "kbps", *(_head(metric) for metric in metrics)], lines)
    return folded(f"First percentile on {subset}", note, made)


def tasks(report: CodecReport, of_subset: Mapping[str, Scores]) -> Html | None:
    """What recognisers, verifiers and classifiers make of coded clips."""
    made: list[Html] = []
    anchors = anchors_of(report.cards)
    for dataset in report.datasets:
        scores = of_subset.get(dataset.subset, Scores())
        own = [
            row
            for row in scores
            if row.metric not in (*_APART, *report.metrics) and row.statistic != "p1" and not row.ablation
        ]
        columns = list(dict.fromkeys((row.metric, row.protocol, row.correction) for row in own))
        if not columns:
            continue
        found = {(row.system, row.metric, row.protocol, row.correction): row for row in own}
        heads, rates = ["codec", "kbps"], _rates(report, scores)
        lines: list[list[Html | str]] = [[name_cell(report, name), rates[name]] for name in in_order(report)]
        for metric, protocol, correction in columns:
            about = ", ".join(part for part in (protocol, correction) if part not in ("all", "none", ""))
            heads.append(f"{_head(metric)} ({about})" if about else _head(metric))
            rows = {name: found.get((name, metric, protocol, correction)) for name in in_order(report)}
            floor = floor_of([row for row in rows.values() if row], anchors) if metric == FLOORED else None
            if floor is not None:
                heads.append(f"{metric} above {floor.system}")
            for line, row in zip(lines, rows.values(), strict=True):
                line.append(_value_cell(row))
                if floor is not None:
                    line.append(above_floor(row, floor))
        said = bullets(floor_lines(own, anchors)) if any(row.metric == FLOORED for row in own) else None
        caption = f"{dataset.subset}. Point at a value for what it rests on."
        made.append(join(table(heads, lines, caption=caption), said))
    return section("tasks", "What machines still hear", made) if made else None


def standings(report: CodecReport) -> Html | None:
    """What each codec's results rest on: isolation, the check, promises; nothing for runs that say nothing of it."""
    if not report.standings:
        return None
    kinds = {name: kind_of(standing) for name, standing in report.standings.items() if name in report.cards}
    lossy = [name for name in kinds if not report.cards[name].lossless]
    by_kind = {kind: [name for name in lossy if kinds[name] == kind] for kind in KINDS}
    said = [f"{TITLES[kind]}: {listed(names)}." for kind, names in by_kind.items() if names]
    if len(said) > 1:
        said.append("Codecs of different kinds are not ranked with each other: winners are of the first kind.")
    lines = []
    for name in in_order(report):
        standing = report.standings.get(name)
        if standing is None:
            continue
        kept = [promise.name for promise in standing.promises if promise.status == "kept"]
        broken = "; ".join(f"{promise.name}: {promise.reason}" for promise in standing.broken)
        lines.append([
            name_cell(report, name), _with_reason(standing.isolation, standing.isolation_reason),
            _with_reason(standing.check, standing.check_reason), ", ".join(kept), broken or "none",
        ])  # fmt: skip
    heads = ["codec", "isolation", "check", "promises kept", "promises broken"]
    caption = (
        "Isolation is full where encoder and decoder shared nothing but what was sent. The check is that of “earmark "
        "check”; promises are what the card says, seen while the run went on."
    )
    return section(
        "standing", "What the results rest on", bullets(said),
        table(heads, lines, left=5, caption=caption),
    )  # fmt: skip


def _with_reason(word: str, reason: str) -> Html:
    return tag("td", word, tag("small", reason) if reason else None)


def speed(report: CodecReport, of_subset: Mapping[str, Scores]) -> Html:
    """Delay, real-time factors, what taking the delay out changes, and how tokens are used."""
    if not report.datasets:
        return section("speed", "Delay, speed and tokens")
    own = of_subset.get(report.datasets[0].subset, ())
    rows = {(row.system, row.protocol, row.metric): row for row in own}
    columns = [("all", metric) for metric in ("delay_ms", "encode_rtf", "decode_rtf")]
    columns += [("unaligned", metric) for metric in ("stoi", "mel_distance", "stft_distance")]
    columns += [("all", metric) for metric in ("token_usage", "token_entropy", "token_perplexity", "entropy_kbps")]
    shown = [column for column in columns if any((name, *column) in rows for name in report.cards)]
    titles = [f"{metric}{' unaligned' * (protocol == 'unaligned')}" for protocol, metric in shown]
    lines, rates = [], _rates(report, own)
    for name in in_order(report):
        nominal = report.cards[name].kbps
        told = "" if nominal is None else f"{nominal:g}"
        lines.append([name, rates[name], told, *(_value_cell(rows.get((name, *column))) for column in shown)])
    caption = (
        "Delay is one number for a codec: declared, or found on several clips and then taken out of all of them. "
        "“Unaligned” is what a benchmark without that sees. A real-time factor of 0.1 is ten times faster than the "
        "sound."
    )
    made = table(["codec", "kbps", "nominal kbps", *titles], lines, caption=caption)
    return section("speed", "Delay, speed and tokens", made)


def families(report: CodecReport, found: Mapping[str, Sequence[Comparison]]) -> Iterator[Html]:
    """BD-rates, steps that do not improve, and settings at like rates."""
    for subset, comparisons in found.items():
        for one in comparisons:
            if one.metric in ("overall", "pesq") and one.bd_rates:
                yield _bd_rates(subset, one)
    yield _monotone(found)
    if report.differences:
        lines = []
        for pair in report.differences:
            names, value, around, *rest = difference_cells(pair)
            lines.append([pair.subset, *names, pair.metric, value, " to ".join(around), *rest])
        heads = ["subset", "codec (kbps)", "minus (kbps)", "metric", "difference", "interval", "p", "clips"]
        caption = "Settings of different families at like rates, on the clips that both have a value for."
        yield table(heads, lines, left=4, caption=caption, filterable=True)


def _bd_rates(subset: str, found: Comparison) -> Html:
    """A cell for each pair of families: the rate that the line needs against the column."""
    names, cells = bd_matrix(found)
    lines = [[name, *line] for name, line in zip(names, cells, strict=True)]
    caption = (
        f"{subset}: rate that the family of the line needs for the same {found.metric} as that of the column (BD-rate)."
    )
    unknown = [pair for pair in found.bd_rates if pair.change.value is None]
    why = bullets(f"{pair.family} against {pair.anchor}: {pair.change.reason}" for pair in unknown)
    rest = folded(f"{counted(len(unknown), 'pair')} without a BD-rate", why) if unknown else None
    known = [
        f"{pair.family} against {pair.anchor}: {shared_text(found, pair)}" for pair in found.bd_rates if pair.shared
    ]
    ranges = folded("Scores that each pair shares", bullets(known)) if known else None
    return join(table(["", *names], lines, caption=caption, sortable=False), ranges, rest)


def _monotone(found: Mapping[str, Sequence[Comparison]]) -> Html:
    lines, wrong = [], []
    for subset, comparisons in found.items():
        for one in comparisons:
            told = one.monotonicity
            lines.append([subset, one.metric, f"{told.kept} of {told.total}"])
            wrong += [f"{subset}, {one.metric}: {step}" for step in told.exceptions]
    caption = "Steps to the next higher rate inside a family that improve the score."
    made = table(["subset", "metric", "steps"], lines, left=2, caption=caption)
    return join(made, folded(f"{counted(len(wrong), 'step')} that do not", bullets(wrong)) if wrong else None)


def failures(report: CodecReport) -> Html | None:
    """Clips without a value, a line for each reason: what a clip lacks, it lacks for every codec."""
    if not report.failures:
        return None
    found: dict[tuple[str, str, str], list[Failed]] = {}
    for one in report.failures:
        found.setdefault((one.subset, one.status, one.reason), []).append(one)
    lines = []
    for (subset, status, reason), ones in found.items():
        what = _shortly(dict.fromkeys(one.what for one in ones), 4)
        codecs = _shortly(dict.fromkeys(one.system for one in ones), 4)
        clips = max(one.clips for one in ones)
        lines.append([subset, what, codecs, status.replace("_", " "), str(clips), f"{reason} (first: {ones[0].first})"])
    heads = ["subset", "what", "codecs", "status", "clips", "reason"]
    caption = (
        "Not applicable: the clip itself leaves the metric undefined. Failed: the codec did not return what it must. "
        "Neither is counted as a number."
    )
    return section(
        "missing", "What has no value", table(heads, lines, left=4, words=1, caption=caption, filterable=True)
    )


def _shortly(names: Iterable[str], most: int) -> str:
    return first_of(list(names), most)
