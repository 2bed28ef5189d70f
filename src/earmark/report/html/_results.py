"""The first half of a report after the answer: score tables, label noise, lift over chance, which metrics agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from earmark.errors import InputError
from earmark.report import READ_FIRST, figures, leading_metrics
from earmark.report.content import ReportData
from earmark.report.correlations import Correlations
from earmark.report.figures._noise import noise_curves
from earmark.report.metric_text import facts, goodness, heading, interval, number
from earmark.report.noise import find_noise, noise_sentences
from earmark.report.ranking import Ranking
from earmark.report.score_index import (
    ACROSS,
    PROTOCOLS,
    Representation,
    ScoreIndex,
    Subset,
    Values,
    mean_over_subsets,
    representation,
    subset,
)
from earmark.scores import Row
from earmark.tables import MISSING
from earmark.tables.html import Child, Html, drawing, folded, join, paragraph, section, table, tag

# --- cells --------------------------------------------------------------------------------------------------------


def number_cell(shown: str, value: float, *more: Child, best: bool = False, heat: float | None = None) -> Html:
    """A number that sorts by its value, bold where it is the best, coloured by `heat` from 0 (worst) to 1 (best)."""
    return tag(
        "td", tag("span", shown, class_="best") if best else shown, *more, class_="n" if heat is None else "n heat",
        style=None if heat is None else f"--good-share:{heat:.2f}", data_value=repr(value),
    )  # fmt: skip


def value_cell(
    row: Row, *more: str, lift: str = "", best: bool = False, heat: float | None = None, count: bool = True
) -> Html:
    """Value (lift), interval and whatever else belongs under it."""
    assert row.value is not None
    small = [interval(row), *more, f"n = {row.n}" if count and row.n is not None else ""]
    return number_cell(
        number(row.value, row.metric), row.value, tag("span", f" ({lift})", class_="lift") if lift else None,
        *(tag("small", item) for item in small if item), best=best, heat=heat,
    )  # fmt: skip


class _Scale(NamedTuple):
    """The range of values that may be compared, turned so that more is better, and the best as it is printed."""

    low: float
    high: float
    best: str

    @classmethod
    def of(cls, values: Collection[float], metric: str) -> _Scale:
        turned = 1 if facts(metric).higher_is_better else -1
        texts = {number(value, metric) for value in values}
        top = max(values, key=lambda value: turned * value)
        low, high = sorted((turned * min(values), turned * max(values)))
        return cls(low, high, number(top, metric) if len(texts) > 1 else "")

    def heat(self, good: float) -> float | None:
        return (good - self.low) / (self.high - self.low) if self.high > self.low else None


def _scale(rows: Collection[Row], ranking: Ranking) -> _Scale | None:
    """The scale of the values of one column; None where they rest on different clips."""
    first = next(iter(rows), None)
    if first is None or ranking.hindrance(subset(first), rows):
        return None
    return _Scale.of([row.value for row in rows if row.value is not None], first.metric)


def _heat_cell(row: Row, scale: _Scale | None, ranking: Ranking, count: bool) -> Html:
    """A value among those it may be compared with; without colour where there is no scale."""
    lift = "" if row.lift is None else number(row.lift, row.metric, sign=True)
    best, heat = False, None
    if scale is not None:
        best, heat = number(row.value or 0.0, row.metric) == scale.best, scale.heat(goodness(row))
    return value_cell(row, ranking.clips_beside(row), lift=lift, best=best, heat=heat, count=count)


# --- tables -------------------------------------------------------------------------------------------------------


def score_tables(data: ReportData) -> Html:
    ranking, index = data.ranking, data.ranking.index
    metric = index.headline
    parts: list[Child] = [paragraph(READ_FIRST) if metric == "P@1" and "GSR" in index.metrics else None, _guide(index)]
    for protocol in index.protocols:
        found = index.values(metric, protocol)
        if found and (len(found) > 1 or len(index.every_metric) == 1):
            parts.append(_across_subsets(found, protocol, ranking))
    pictures = [_heat_figure(ranking, protocol) for protocol in index.protocols]
    alone = len(index.subsets) == 1
    parts += [] if alone else pictures  # of one subset they show every metric
    parts += [_one_subset(ranking, place, open_=alone, beside=pictures if alone else ()) for place in index.subsets]
    parts += [_on_own_clips(data), _under_noise(data.index, metric)]
    return section("scores", "Scores", parts)


def _on_own_clips(data: ReportData) -> Html | None:
    """The values of every system on the clips it has, as scores.csv holds them, where the ranking rests on others."""
    shared = {(found.suite, found.subset) for found in data.shared}
    lost = {(count.suite, count.subset) for count in data.counts if count.lost_most}
    places = [place for place in data.index.subsets if place in shared | lost]
    if not places:
        return None
    said = (
        "Each system on the clips it has. These values rest on different clips and rank nothing, so none is coloured;"
        " the tables above hold those that can be compared."
    )
    own = Ranking(data.scores, counts=tuple(data.counts))
    tables = [_one_subset(own, place, open_=True, ranked=False) for place in places]
    return folded("Scores of each system on its own clips", paragraph(said, class_="quiet"), *tables)


def _under_noise(index: ScoreIndex, metric: str) -> Html | None:
    """What label noise costs: an ablation, kept apart from the answer."""
    noisy = [row for row in index.ablations if row.metric == metric and row.value is not None]
    if not noisy:
        return None
    shares = sorted({row.label_noise for row in noisy})
    clean = [row for row in index.rows if row.metric == metric and row.value is not None]
    lines: dict[tuple[str, str, str], dict[float, Row]] = {}
    for row in [*clean, *noisy]:
        key = representation(row).label, row.labelled_subset, row.protocol
        lines.setdefault(key, {})[row.label_noise] = row
    body = [
        [label, name, PROTOCOLS.get(protocol, protocol)]
        + [number(rows[share].value or 0.0, metric) if share in rows else MISSING for share in (0.0, *shares)]
        for (label, name, protocol), rows in lines.items()
        if any(share in rows for share in shares)
    ]
    heads = ["representation", "subset", "pairs", "as labelled", *(f"{100 * share:g} %" for share in shares)]
    caption = f"{metric} when a share of the labels is exchanged for others: how far a score can be trusted."
    return folded("Under label noise", _noise_figure(index), table(heads, body, left=3, caption=caption))


def _noise_figure(index: ScoreIndex) -> Html | None:
    try:
        found = find_noise(index)
    except InputError:
        return None
    picture = figures.as_svg(noise_curves(found), "noise", "What is left under label noise")
    return drawing(picture, " ".join(noise_sentences(found)), wide=True)


def _guide(index: ScoreIndex) -> Html:
    said = "In each column of the table the deeper the blue the better, and the best is bold."
    if any(row.low is not None for row in index.rows):
        said += " Under a value stands its 95 % interval."
    if any(row.lift is not None for row in index.rows):
        said += " In brackets with a sign: its lift over chance."
    if not facts(index.headline).higher_is_better:
        said += f" For {index.headline} lower is better."
    return paragraph(said, class_="quiet")


def _across_subsets(found: Values, protocol: str, ranking: Ranking) -> Html:
    metric = ranking.index.headline
    lines = list(dict.fromkeys(line for rows in found.values() for line in rows))
    means = mean_over_subsets(found) if len(found) > 1 else {}
    scales = {place: _scale(rows.values(), ranking) for place, rows in found.items()}
    counts = {place: _shared_n(rows) for place, rows in found.items()}
    heads: list[Child] = ["representation", *(join(place.label, counts[place]) for place in found)]
    heads += [join("mean", tag("small", f"of {len(found)} subsets", class_="quiet"))] if means else []
    mean_scale = _Scale.of(means.values(), metric) if means and None not in scales.values() else None
    body = []
    for line in lines:
        cells: list[Html | str] = [line.label]
        for place, rows in found.items():
            cells.append(_heat_cell(rows[line], scales[place], ranking, counts[place] is None) if line in rows else "")
        body.append([*cells, *([_mean_cell(means.get(line), metric, mean_scale, len(means) > 1)] if means else [])])
    kind = PROTOCOLS.get(protocol, protocol)
    return table(heads, body, caption=f"{heading(metric)}, {kind}, of each representation on each subset.")


def _shared_n(rows: Mapping[Representation, Row]) -> Html | None:
    counts = {row.n for row in rows.values()}
    return (
        tag("small", f"n = {next(iter(counts))}", class_="quiet") if len(counts) == 1 and None not in counts else None
    )


def _mean_cell(mean: float | None, metric: str, scale: _Scale | None, several: bool) -> Html | str:
    if mean is None:
        return MISSING
    shown = number(mean, metric)
    if scale is None:
        return number_cell(shown, mean)
    good = mean if facts(metric).higher_is_better else -mean
    return number_cell(shown, mean, best=several and good == scale.high, heat=scale.heat(good) or 0.0)


def _heat_figure(ranking: Ranking, protocol: str) -> Html | None:
    index = ranking.index
    try:
        figure = figures.score_heatmap(index, protocol=protocol, unranked=ranking.unranked)
    except InputError:
        return None
    metric, pairs = index.headline, PROTOCOLS.get(protocol, protocol)
    if len(index.values(metric, protocol)) > 1:
        caption = (
            f"{metric} by representation (rows) and subset (columns), {pairs}. Look down a column for the"
            " representation that suits a kind of sound (framed: the best), along a row for how evenly one serves all."
        )
    else:
        caption = (
            f"Every metric of every representation, {pairs}. Colours run from the worst (dark) to the best (light) of"
            " each column and say nothing across columns; the best is framed. A representation that is light all along"
            " its row wins whatever is asked of it."
        )
    picture = figures.as_svg(figure, f"heatmap {protocol}", f"Heat map of {metric}, {pairs}")
    made = drawing(picture, caption, wide=True)
    return made if protocol == index.main_protocol else folded(f"The same picture, {pairs}", made)


def _one_subset(
    ranking: Ranking, place: Subset, *, open_: bool, ranked: bool = True, beside: Sequence[Child] = ()
) -> Html:
    """The scores of one subset: the metrics to read first, and all of them under a fold, with what stands `beside`."""
    rows = ranking.index.by_subset.get(place, [])
    metrics, first = list(dict.fromkeys(row.metric for row in rows)), leading_metrics(rows)
    everything = _metric_table(ranking, place, metrics, ranked)
    if len(metrics) <= len(first):
        return folded(f"Scores on {place.label}", everything, *beside, open_=open_)
    return folded(
        f"Scores on {place.label}",
        _metric_table(ranking, place, first, ranked),
        folded(f"All {len(metrics)} metrics on {place.label}", *beside, everything),
        open_=open_,
    )


def _metric_table(ranking: Ranking, place: Subset, metrics: Sequence[str], ranked: bool) -> Html:
    """Some metrics of one subset, the protocol that answers first."""
    main = ranking.index.main_protocol
    rows = sorted(ranking.index.by_subset.get(place, []), key=lambda row: row.protocol != main)
    lines: dict[tuple[Representation, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((representation(row), row.protocol), {})[row.metric] = row
    columns: dict[tuple[str, str], list[Row]] = {}
    for (_, protocol), by_metric in lines.items():
        for row in by_metric.values():
            if row.value is not None:
                columns.setdefault((protocol, row.metric), []).append(row)
    scales = {column: _scale(rivals, ranking) if ranked else None for column, rivals in columns.items()}
    several = len({protocol for _, protocol in lines}) > 1
    notes: dict[str, int] = {}
    body = []
    for (line, protocol), by_metric in lines.items():
        cells: list[Html | str] = [line.label, *([PROTOCOLS.get(protocol, protocol)] if several else [])]
        for metric in metrics:
            cell = by_metric.get(metric)
            if cell is None:
                cells.append("")
            elif cell.status == "ok" and cell.value is not None:
                cells.append(_heat_cell(cell, scales[protocol, metric], ranking, True))
            else:
                reason = cell.reason.strip() or "no reason was given"
                mark = tag("sup", str(notes.setdefault(reason, len(notes) + 1)))
                text = "failed" if cell.status == "failed" else MISSING
                cells.append(tag("td", text, mark, class_="n", title=reason))
        body.append(cells)
    heads = ["representation", *(["pairs"] if several else []), *map(heading, metrics)]
    made = table(heads, body, left=2 if several else 1)
    return join(made, tag("ol", [tag("li", note) for note in notes], class_="quiet") if notes else None)


def predictions(data: ReportData) -> Html | None:
    """The metric that leads, on every subset: measured values as they are, predicted ones marked; None without any."""
    predicted = [row for row in data.scores if row.status == "predicted"]
    if not predicted:
        return None
    metric = data.index.headline
    metric = metric if any(row.metric == metric for row in predicted) else predicted[0].metric
    chosen = [row for row in data.scores if row.metric == metric and row.value is not None and row.protocol == "all"]
    subsets = list(dict.fromkeys(row.subset for row in chosen))
    lines: dict[str, dict[str, Row]] = {}
    for row in chosen:
        lines.setdefault(representation(row).label, {})[row.subset] = row
    body = [[label, *(_predicted_cell(rows.get(name)) for name in subsets)] for label, rows in lines.items()]
    reasons = list(dict.fromkeys(row.reason for row in chosen if row.status == "predicted"))
    said = (
        "A tilde, italics and a dashed line mark what was predicted from the measured subsets and not measured; in "
        "brackets its interval. Means, ranks and the answer above count measurements only."
    )
    unit = " (%)" if facts(metric).percent else ""
    return section(
        "predicted", "Predicted, not measured", paragraph(said),
        table(["representation", *subsets], body, caption=f"{metric}{unit} on every subset."),
        [paragraph(reason, class_="quiet") for reason in reasons[:5]],
    )  # fmt: skip


def _predicted_cell(row: Row | None) -> Html | str:
    """`~61.2` in italics over a dashed line, with its interval and the word: nobody reads it as a measurement."""
    if row is None or row.value is None:
        return MISSING
    shown = number(row.value, row.metric)
    if row.status != "predicted":
        return shown
    style = "font-style:italic;border-bottom:2px dashed currentColor"
    return tag(
        "td", tag("span", f"~{shown}", style=style), tag("small", interval(row)), tag("small", "predicted"), class_="n",
        title=row.reason or None, data_value=repr(row.value),
    )  # fmt: skip


# --- lift and agreement --------------------------------------------------------------------------------------------


def lift_over_chance(data: ReportData) -> Html:
    index = data.ranking.index
    metric = index.headline
    try:
        figure = figures.lift_plot(index)
    except InputError:
        said = (
            "Chance was not measured: labels were not shuffled (run with --permutations 1000), or groups leave"
            " nothing to shuffle."
        )
        return section("chance", "Above chance?", paragraph(said))
    drawn = figures.lift_systems(index, metric)
    systems = {line.system for rows in index.values(metric).values() for line in rows}
    intervals = any(row.low is not None for row in data.ranking.scores)
    caption = (
        f"{metric} minus what shuffled labels give. Dots are values{' and lines their 95 % intervals' * intervals}; the"
        " pale bar at zero is where 95 % of shuffled labelings fall."
    )
    if intervals:
        caption += (
            " A dot beyond the pale bar is higher than 97.5 % of shuffles; its line says how far the value would move"
            " with other clips or groups. Whether two representations differ is not read from their lines but from"
            " their paired difference."
        )
    if ACROSS in index.protocols:
        caption += (
            " Across groups, clips of the query's own group may not answer: what the value gains over all pairs"
            " comes from clips of the same speaker, animal or recording, or from there being more of the class to find."
        )
    if len(drawn) < len(systems):
        caption += f" The {len(drawn)} best of {len(systems)} systems are drawn; the tables have all."
    picture = figures.as_svg(figure, "lift", f"{metric} above chance")
    return section("chance", "Above chance?", drawing(picture, caption, wide=True))


def agreement(found: Correlations | None) -> Html | None:
    """Which metrics say the same; nothing where there are too few configurations to tell."""
    if found is None:
        return None
    caption = (
        f"Rank correlation (Spearman) of each pair of metrics across {len(found.configurations)} configurations"
        " (system and distance), of their means over subsets, all pairs. Metrics near +1 order representations alike,"
        " so one of them tells as much as both; orange marks those that order them the other way round. With few"
        " configurations only values near ±1 mean anything."
    )
    picture = figures.as_svg(figures.correlation_map(found), "correlations", "Correlations of the metrics")
    return section("agreement", "Do the metrics agree?", drawing(picture, f"{caption} {found.caution()}".rstrip()))
