"""The tables of a codec page: every setting, tasks, speed and delay, families, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from earmark.report.codecs._comparison import CodecReport, Comparison, Failed
from earmark.report.codecs.text import bd_matrix, difference_cells, shared_text, shown_value, without_value
from earmark.report.metric_text import facts
from earmark.scores import Row, Scores
from earmark.tables.html import Html, bullets, folded, join, paragraph, section, table, tag
from earmark.wording import counted

_COUNTED = ("kbps", "overall", "overall_unsaturated")
_APART = (
    "kbps", "encode_rtf", "decode_rtf", "delay_ms", "token_usage", "token_entropy", "token_perplexity", "entropy_kbps",
    "overall", "overall_unsaturated",
)  # fmt: skip


def settings(report: CodecReport, of_subset: Mapping[str, Scores]) -> Iterator[Html]:
    """A table for each dataset: rate, overall scores and metrics, each with its interval and the clips it rests on."""
    for dataset in report.datasets:
        rows = {
            (row.system, row.metric): row
            for row in of_subset.get(dataset.subset, ())
            if row.protocol in (report.protocol, "all") and row.correction in ("none", "")
        }
        metrics = [*_COUNTED, *report.metrics]
        heads = ["codec", *(_head(metric) for metric in metrics)]
        lines = [[name, *(_value_cell(rows.get((name, metric))) for metric in metrics)] for name in report.cards]
        caption = (
            f"{dataset.subset}: {counted(dataset.clips, 'clip')} of {dataset.category}. Under a value its 95 % "
            "interval and, where some are missing, the clips that have one."
        )
        yield table(heads, lines, caption=caption, filterable=True)
        yield _percentiles(report, dataset.subset, rows)


def _head(metric: str) -> str:
    return f"{metric} {'↑' if facts(metric).higher_is_better else '↓'}" if metric != "kbps" else metric


def _value_cell(row: Row | None) -> Html | str:
    if row is None:
        return ""
    if row.value is None:
        return tag("td", without_value(row), class_="n quiet", title=row.reason)
    low_high = "" if row.low is None or row.high is None else (
        f"{shown_value(row.low, row.metric)} to {shown_value(row.high, row.metric)}"
    )  # fmt: skip
    missing = f"{row.n} clips" if row.reason and row.metric not in _APART else ""
    below = " · ".join(filter(None, [low_high, missing]))
    small = tag("small", below) if below else None
    value = shown_value(row.value, row.metric)
    return tag("td", value, small, class_="n", data_value=repr(row.value), title=row.reason or None)


def _percentiles(report: CodecReport, subset: str, rows: Mapping[tuple[str, str], Row]) -> Html:
    """What the worst clips get, folded."""
    metrics = [metric for metric in report.metrics if any((name, f"{metric}:p1") in rows for name in report.cards)]
    lines = [[name, *(_value_cell(rows.get((name, f"{metric}:p1"))) for metric in metrics)] for name in report.cards]
    note = paragraph(
        "The value that one clip in a hundred does not reach (passes, where less is better). A mean hides what the "
        "worst clips get. Point at a value to see which clips they are."
    )
    made = table(["codec", *(_head(metric) for metric in metrics)], lines)
    return folded(f"First percentile on {subset}", note, made)


def tasks(report: CodecReport, of_subset: Mapping[str, Scores]) -> Html | None:
    """What recognisers, verifiers and classifiers make of coded clips."""
    made: list[Html] = []
    for dataset in report.datasets:
        own = [
            row
            for row in of_subset.get(dataset.subset, ())
            if row.metric not in (*_APART, *report.metrics) and row.statistic != "p1" and not row.ablation
        ]
        columns = list(dict.fromkeys((row.metric, row.protocol, row.correction) for row in own))
        if not columns:
            continue
        found = {(row.system, row.metric, row.protocol, row.correction): row for row in own}
        heads = ["codec"]
        for metric, *setting in columns:
            about = ", ".join(part for part in setting if part not in ("all", "none", ""))
            heads.append(f"{_head(metric)} ({about})" if about else _head(metric))
        lines = [[name, *(_value_cell(found.get((name, *column))) for column in columns)] for name in report.cards]
        made.append(table(heads, lines, caption=f"{dataset.subset}. Point at a value for what it rests on."))
    return section("tasks", "What machines still hear", made) if made else None


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
    lines = []
    for name, card in report.cards.items():
        nominal = "" if card.kbps is None else f"{card.kbps:g}"
        lines.append([name, nominal, *(_value_cell(rows.get((name, *column))) for column in shown)])
    caption = (
        "Delay is one number for a codec: declared, or found on several clips and then taken out of all of them. "
        "“Unaligned” is what a benchmark without that sees. A real-time factor of 0.1 is ten times faster than the "
        "sound."
    )
    made = table(["codec", "nominal kbps", *titles], lines, caption=caption)
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
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
