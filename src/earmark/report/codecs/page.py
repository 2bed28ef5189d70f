"""A codec run as one HTML file that needs nothing else: who wins at which rate, the curves, the clips to listen to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from earmark._version import __version__
from earmark.errors import InputError
from earmark.report.codecs import clips, method, tables
from earmark.report.codecs.comparison import LADDER, Comparison, best_below, compare_settings, compared_metrics, failing
from earmark.report.codecs.content import CodecReport
from earmark.report.codecs.text import left_out_text, shown_value
from earmark.report.correlations import metric_correlations
from earmark.report.figures.codecs import Line, rate_distortion, steps
from earmark.report.figures.style import as_svg, library
from earmark.report.figures.tables import correlation_map
from earmark.report.html.shell import footer, whole_page, write_page
from earmark.report.reading import listed
from earmark.scores import Row, Scores
from earmark.submissions import Dataset
from earmark.tables.html import Html, bullets, drawing, paragraph, section, table, tag
from earmark.wording import counted

__all__ = ["render_codecs", "write_codecs"]


def write_codecs(report: CodecReport, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_page(render_codecs(report), path)


def render_codecs(report: CodecReport) -> str:
    """The page as HTML text: the same report gives the same text."""
    library()
    found = {dataset.subset: _compared(report, dataset) for dataset in report.datasets}
    codecs = len(report.cards)
    families = len({card.family for card in report.cards.values()})
    meta = (
        f"{counted(codecs, 'setting')} of {families} famil{'y' if families == 1 else 'ies'} on "
        f"{listed(_described(dataset) for dataset in report.datasets)} · Earmark {__version__}"
    )
    header = tag("header", tag("h1", report.title), paragraph(meta, class_="meta"))
    parts = [
        section("answer", "Who keeps most, at which rate", *_answers(report, found)),
        section("curves", "Rate against what is kept", *_curves(report, found)),
        section("table", "Every setting", *tables.settings(report)),
        tables.tasks(report),
        tables.speed(report),
        _repeated(report),
        section("rates", "Families against each other", *tables.families(report, found)),
        _agreement(report),
        clips.worst(report),
        tables.failures(report),
        section("method", "How it was measured", *method.explained(report)),
    ]
    made = [part for part in parts if part is not None]
    return whole_page(report.title, __version__, header, made, footer(__version__))


def _described(dataset: Dataset) -> str:
    return f"{dataset.title or dataset.subset} ({dataset.category}, {counted(dataset.clips, 'clip')})"


def _compared(report: CodecReport, dataset: Dataset) -> list[Comparison]:
    return [
        compare_settings(
            report.scores, report.cards, dataset.subset, metric, protocol=protocol,
            left_out=failing(report.failed, dataset, metric),
        )
        for metric, protocol in compared_metrics(report.scores, dataset.subset)
    ]  # fmt: skip


# --- the answer ------------------------------------------------------------------------------------------------------


def _answers(report: CodecReport, found: dict[str, list[Comparison]]) -> Iterator[Html]:
    said = False
    for subset, comparisons in found.items():
        overall = next((one for one in comparisons if one.metric in ("overall", "pesq")), None)
        if overall is None or not overall.points:
            continue
        said = True
        yield paragraph(*_sentence(report, subset, overall))
        if overall.left_out:
            yield paragraph(f"{left_out_text(overall)}.")
        yield _ladder(subset, comparisons)
    if not said:
        yield paragraph("Nothing could be compared: fewer than two settings have a value and a rate.")
    if report.notes:
        yield bullets(report.notes, class_="quiet")


def _sentence(report: CodecReport, subset: str, found: Comparison) -> Iterator[Html | str]:
    """The best that loses something, what it costs, and who is on the front."""
    sign = 1 if found.higher_is_better else -1
    lossy = [point for point in found.whole if not report.cards[point.system].lossless]
    if not lossy:
        return
    best = max(lossy, key=lambda point: sign * point.value)
    yield f"On {subset}, "
    yield tag("b", best.system)
    yield f" has the best {found.metric} of the codecs that lose something: {shown_value(best.value, found.metric)}"
    yield f" at {best.kbps:.1f} kbps. "
    front = [point.system for point in found.front if not report.cards[point.system].lossless]
    if len(front) > 1:
        yield f"No other setting is better at the same rate or lower than {listed(front)}."


def _ladder(subset: str, comparisons: Sequence[Comparison]) -> Html:
    """For each rate the winner under each metric."""
    shown = [one for one in comparisons if one.points][:5]
    lines: list[list[Html | str]] = []
    for rate in LADDER:
        winners = [best_below(one, rate) for one in shown]
        if any(winner is not None for winner in winners):
            cells = [
                "–" if point is None else f"{point.system} ({shown_value(point.value, one.metric)})"
                for one, point in zip(shown, winners, strict=True)
            ]
            if not lines or lines[-1][1:] != cells:  # a rate that changes nothing needs no line
                lines.append([f"{rate:g} kbps", *cells])
    heads = ["up to", *(f"best {one.metric}" for one in shown)]
    return table(
        heads, lines, words=len(shown), sortable=False, caption=f"{subset}: the best setting that sends at most"
    )


# --- curves ----------------------------------------------------------------------------------------------------------


def _curves(report: CodecReport, found: dict[str, list[Comparison]]) -> Iterator[Html]:
    for dataset in report.datasets:
        drawn = [one for one in found[dataset.subset] if one.points]
        if not drawn:
            continue
        picture = as_svg(
            rate_distortion(drawn), f"curves {dataset.subset}", f"Rate against quality on {dataset.subset}"
        )
        caption = (
            f"{_described(dataset)}. Settings of a family are joined; bars are 95 % intervals over clips; the dotted "
            "line is the best that is reached at each rate. ↑ more is better, ↓ less is."
        )
        yield drawing(picture, caption, wide=len(drawn) > 1)


def _repeated(report: CodecReport) -> Html | None:
    """Tandem coding and packet loss, where they were measured."""
    made: list[Html] = []
    for kind, along, title in (
        ("tandem", "passes through the codec", "After several passes"),
        ("loss", "packets lost (%)", "When packets are lost"),
    ):
        for dataset in report.datasets:
            panels = _panels(report.scores, dataset.subset, kind, report.protocol)
            if panels:
                picture = as_svg(steps(panels, along), f"{kind} {dataset.subset}", f"{title}: {dataset.subset}")
                made.append(drawing(picture, f"{title}, on {dataset.subset}.", wide=True))
    return section("repeated", "Passes and losses", made) if made else None


def _agreement(report: CodecReport) -> Html | None:
    """Which metrics order the settings alike; nothing where there are too few settings to say."""
    apart = ("kbps", "delay_ms", "encode_rtf", "decode_rtf")
    rows = [row for row in report.scores if row.metric not in apart and row.protocol == report.protocol]
    try:
        found = metric_correlations(Scores(tuple(rows)), report.protocol)
    except InputError:
        return None
    picture = as_svg(correlation_map(found), "agreement", "Rank correlation of each pair of metrics")
    caption = (
        f"Spearman's rank correlation across {counted(len(found.configurations), 'setting')} of the means over "
        f"subsets. {found.caution()}"
    )
    return section("agreement", "Which metrics say the same", drawing(picture, caption))


def _panels(scores: Scores, subset: str, kind: str, protocol: str) -> dict[str, list[Line]]:
    found: dict[str, dict[str, dict[float, Row]]] = {}
    own = [row for row in scores if row.subset == subset and row.status == "ok"]
    for row in own:
        name, _, amount = row.protocol.partition(":")
        if name == kind:
            found.setdefault(row.metric, {}).setdefault(row.system, {})[float(amount)] = row
    if kind == "loss":  # nothing lost is where the curve begins
        for row in own:
            if row.protocol == protocol and row.system in found.get(row.metric, {}):
                found[row.metric][row.system][0.0] = row
    return {
        metric: [
            Line(system, tuple(sorted(rows)), tuple(rows[at] for at in sorted(rows)))
            for system, rows in systems.items()
        ]
        for metric, systems in found.items()
    }
