"""The first half of a report after the answer: score tables, lift over chance, trends over corpus properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earmark.errors import InputError
from earmark.report import figures, reading
from earmark.report.content import ReportData, SubsetFacts
from earmark.report.correlations import Correlations, metric_correlations
from earmark.report.figures.properties import ENOUGH_SUBSETS
from earmark.report.html.cells import spelled, value_cell
from earmark.report.ranking import Ranking, beside_value
from earmark.report.reading import PROTOCOLS, Representation, Subset, facts, number
from earmark.scores import Row, Scores
from earmark.tables.html import Child, Html, drawing, folded, join, paragraph, section, table, tag

# --- tables -------------------------------------------------------------------------------------------------------


def score_tables(data: ReportData) -> Html:
    ranking = data.ranking
    scores = ranking.scores
    metric = reading.headline(scores)
    parts: list[Child] = [_guide(scores, metric)]
    for protocol in reading.protocols(scores):
        found = reading.values(scores, metric, protocol)
        if found and (len(found) > 1 or len(reading.metrics(scores)) == 1):
            parts.append(_across_subsets(found, metric, protocol, ranking))
    parts += [_heat_figure(ranking, metric, protocol) for protocol in reading.protocols(scores)]
    places = reading.subsets(scores)
    parts += [_one_subset(ranking, place, open_=len(places) == 1) for place in places]
    parts.append(_on_own_clips(data))
    parts.append(_under_noise(data.scores, metric))
    return section("scores", "Scores", parts)


def _on_own_clips(data: ReportData) -> Html | None:
    """The values of every system on the clips it has, as scores.csv holds them, where the ranking rests on others."""
    shared = {(found.suite, found.subset) for found in data.shared}
    lost = {(count.suite, count.subset) for count in data.counts if count.lost_most}
    places = [place for place in reading.subsets(data.scores) if place in shared | lost]
    if not places:
        return None
    said = (
        "Each system on the clips it has. These values rest on different clips and rank nothing, so none is coloured;"
        " the tables above hold those that can be compared."
    )
    own = Ranking(data.scores, counts=tuple(data.counts))
    tables = [_one_subset(own, place, open_=True, ranked=False) for place in places]
    return folded("Scores of each system on its own clips", paragraph(said, class_="quiet"), *tables)


def _under_noise(scores: Scores, metric: str) -> Html | None:
    """What label noise costs: an ablation, kept apart from the answer."""
    noisy = [row for row in reading.ablations(scores) if row.metric == metric and row.value is not None]
    if not noisy:
        return None
    shares = sorted({row.label_noise for row in noisy})
    clean = [row for row in reading.single_subsets(scores) if row.metric == metric and row.value is not None]
    lines: dict[tuple[str, str, str], dict[float, Row]] = {}
    for row in [*clean, *noisy]:
        place = (reading.representation(row).label, row.labelled_subset, row.protocol)
        lines.setdefault(place, {})[row.label_noise] = row
    body = [
        [label, subset, PROTOCOLS.get(protocol, protocol)]
        + [number(found[share].value or 0.0, metric) if share in found else "–" for share in (0.0, *shares)]
        for (label, subset, protocol), found in lines.items()
        if any(share in found for share in shares)
    ]
    heads: list[Child] = [
        "representation",
        "subset",
        "pairs",
        "as labelled",
        *(f"{100 * share:g} %" for share in shares),
    ]
    caption = f"{metric} when a share of the labels is exchanged for others: how far a score can be trusted."
    return folded("Under label noise", table(heads, body, left=3, caption=caption))


def _guide(scores: Scores, metric: str) -> Html:
    rows = reading.single_subsets(scores)
    said = "In each column of the table the deeper the blue the better, and the best is bold."
    if any(row.low is not None for row in rows):
        said += " Under a value stands its 95 % interval."
    if any(row.lift is not None for row in rows):
        said += " In brackets with a sign: its lift over chance."
    if not facts(metric).higher_is_better:
        said += f" For {metric} lower is better."
    return paragraph(said, class_="quiet")


def _across_subsets(found: reading.Values, metric: str, protocol: str, ranking: Ranking) -> Html:
    lines = list(dict.fromkeys(line for rows in found.values() for line in rows))
    means = reading.mean_over_subsets(found)
    with_mean = len(found) > 1 and bool(means)
    ranked = not any(ranking.hindrance(place, list(rows.values())) for place, rows in found.items())
    heads: list[Child] = ["representation"]
    heads += [join(place.label, *_shared_n(rows)) for place, rows in found.items()]
    heads += [join("mean", tag("small", f"of {len(found)} subsets", class_="quiet"))] if with_mean else []
    body = []
    for line in lines:
        cells: list[Html | str] = [line.label]
        for rows in found.values():
            row = rows.get(line)
            cells.append(_heat_cell(row, rows, ranking, not _shared_n(rows)) if row else "")
        if with_mean:
            cells.append(_mean_cell(line, means, metric, ranked))
        body.append(cells)
    kind = PROTOCOLS.get(protocol, protocol)
    return table(heads, body, caption=f"{spelled(metric)}, {kind}, of each representation on each subset.")


def _shared_n(rows: Mapping[Representation, Row]) -> list[Html]:
    counts = {row.n for row in rows.values()}
    (only,) = counts if len(counts) == 1 else (None,)
    return [tag("small", f"n = {only}", class_="quiet")] if only is not None else []


def _heat_cell(row: Row, rivals: Mapping[Representation, Row], ranking: Ranking, count: bool) -> Html:
    """A value among those it may be compared with; without colour where they rest on different clips."""
    lift = "" if row.lift is None else number(row.lift, row.metric, sign=True)
    failed = beside_value(ranking, row)
    if row not in rivals.values() or ranking.hindrance(reading.subset(row), list(rivals.values())):
        return value_cell(row, failed, lift=lift, count=count)
    good = [reading.goodness(other) for other in rivals.values()]
    low, high = min(good), max(good)
    mine = reading.goodness(row)
    heat = (mine - low) / (high - low) if high > low else None
    printed = {number(other.value or 0.0, other.metric) for other in rivals.values()}
    top = max(rivals.values(), key=reading.goodness)
    best = len(printed) > 1 and number(row.value or 0.0, row.metric) == number(top.value or 0.0, top.metric)
    return value_cell(row, failed, lift=lift, best=best, heat=heat, count=count)


def _mean_cell(line: Representation, means: Mapping[Representation, float], metric: str, ranked: bool) -> Html | str:
    if line not in means:
        return "–"
    if not ranked:
        return tag("td", number(means[line], metric), class_="n", data_value=repr(means[line]))
    turned = 1 if facts(metric).higher_is_better else -1
    low, high = min(turned * value for value in means.values()), max(turned * value for value in means.values())
    share = (turned * means[line] - low) / (high - low) if high > low else 0.0
    best = turned * means[line] == high and len(means) > 1
    shown = number(means[line], metric)
    return tag(
        "td", tag("span", shown, class_="best") if best else shown, class_="n heat",
        style=f"--good-share:{share:.2f}", data_value=repr(means[line]),
    )  # fmt: skip


def _heat_figure(ranking: Ranking, metric: str, protocol: str) -> Html | None:
    scores = ranking.scores
    try:
        figure = figures.score_heatmap(scores, protocol=protocol, unranked=ranking.unranked)
    except InputError:
        return None
    places = reading.values(scores, metric, protocol)
    pairs = PROTOCOLS.get(protocol, protocol)
    if len(places) > 1:
        caption = (
            f"{metric} by representation (rows) and subset (columns), {pairs}. Look down a"
            " column for the representation"
            " that suits a kind of sound (framed: the best), along a row for how evenly one serves all."
        )
    else:
        caption = (
            f"Every metric of every representation, {pairs}. Colours run from the worst (dark)"
            " to the best (light) of each"
            " column and say nothing across columns; the best is framed. A representation that"
            " is light all along its row"
            " wins whatever is asked of it."
        )
    picture = figures.as_svg(figure, f"heatmap {protocol}", f"Heat map of {metric}, {pairs}")
    made = drawing(picture, caption, wide=True)
    return made if protocol == reading.main_protocol(scores) else folded(f"The same picture, {pairs}", made)


def _one_subset(ranking: Ranking, place: Subset, *, open_: bool, ranked: bool = True) -> Html:
    """Every metric of one subset, the protocol that answers first; folded away unless it is the only one."""
    main = reading.main_protocol(ranking.scores)
    rows = [row for row in reading.single_subsets(ranking.scores) if reading.subset(row) == place]
    rows.sort(key=lambda row: row.protocol != main)
    names = reading.metrics(rows)
    by_line: dict[tuple[Representation, str], dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault((reading.representation(row), row.protocol), {})[row.metric] = row
    several = len({protocol for _, protocol in by_line}) > 1
    notes: dict[str, int] = {}
    body = []
    for (line, protocol), found in by_line.items():
        cells: list[Html | str] = [line.label]
        cells += [PROTOCOLS.get(protocol, protocol)] if several else []
        for name in names:
            rivals = {
                other: cells_[name]
                for (other, kind), cells_ in by_line.items()
                if ranked and kind == protocol and name in cells_ and cells_[name].value is not None
            }
            cells.append(_any_cell(found.get(name), rivals, ranking, notes))
        body.append(cells)
    heads: list[Child] = ["representation", *(["pairs"] if several else []), *map(spelled, names)]
    made = table(heads, body, left=2 if several else 1)
    remarks = tag("ol", [tag("li", note) for note in notes], class_="quiet") if notes else None
    return folded(f"All metrics on {place.label}", made, remarks, open_=open_)


def _any_cell(
    row: Row | None, rivals: Mapping[Representation, Row], ranking: Ranking, notes: dict[str, int]
) -> Html | str:
    if row is None:
        return ""
    if row.status == "ok" and row.value is not None:
        return _heat_cell(row, rivals, ranking, True)
    reason = row.reason.strip() or "no reason was given"
    mark = notes.setdefault(reason, len(notes) + 1)
    return tag("td", "failed" if row.status == "failed" else "–", tag("sup", str(mark)), class_="n", title=reason)


# --- lift and trends ----------------------------------------------------------------------------------------------


def lift_over_chance(data: ReportData) -> Html:
    scores = data.ranking.scores
    metric = reading.headline(scores)
    try:
        figure = figures.lift_plot(scores)
    except InputError:
        return section(
            "chance", "Above chance?",
            paragraph(
                "Chance was not measured: labels were not shuffled (run with --permutations 1000), or groups leave"
                " nothing to shuffle."
            ),
        )  # fmt: skip
    shown = figures.lift_systems(scores, metric)
    every = list(dict.fromkeys(line.system for rows in reading.values(scores, metric).values() for line in rows))
    caption = (
        f"{metric} minus what shuffled labels give. Dots are values and lines their 95 %"
        " intervals; the pale bar at zero is"
        " where 95 % of shuffled labelings fall. A dot beyond the pale bar is higher than 97.5 % of shuffles; its line"
        " says how far the value would move with other clips or groups."
        " Whether two representations differ is not read from their lines but from their paired difference."
    )
    if not any(row.low is not None for row in scores):
        caption = caption.replace(" and lines their 95 % intervals", "").split(" A dot beyond")[0]
    if "across_groups" in reading.protocols(scores):
        caption += (
            " Across groups, clips of the query's own group may not answer: what the value gains over all pairs"
            " comes from clips of the same speaker, animal or recording, or from there being more of the class to find."
        )
    if len(shown) < len(every):
        caption += f" The {len(shown)} best of {len(every)} systems are drawn; the tables have all."
    picture = figures.as_svg(figure, "lift", f"{metric} above chance")
    return section("chance", "Above chance?", drawing(picture, caption, wide=True))


def correlations_of(data: ReportData) -> Correlations | None:
    """How the metrics correlate, where there are enough configurations."""
    try:
        return metric_correlations(data.scores)
    except InputError:
        return None


def agreement(data: ReportData) -> Html | None:
    """Which metrics say the same; nothing where there are too few configurations to tell."""
    found = correlations_of(data)
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


def corpus(data: ReportData) -> Html:
    """What was measured on, and whether scores follow from it."""
    parts: list[Child] = [_subset_table(data.subsets)] if data.subsets else []
    count = len(reading.subsets(data.scores))
    if count < ENOUGH_SUBSETS:
        parts.append(
            paragraph(
                f"Trends over corpus properties take at least {ENOUGH_SUBSETS} subsets; there "
                f"{'is' if count == 1 else 'are'} {count}.",
                class_="quiet",
            )
        )
    else:
        parts += _trend_figures(data)
    return section("corpus", "The sounds, and what follows from them", parts)


def _trend_figures(data: ReportData) -> list[Html]:
    made = []
    scores = data.ranking.scores
    leading = reading.headline(scores)
    for metric in dict.fromkeys((leading, "GSR")):
        found = reading.values(scores, metric)
        try:
            figure = figures.trends(scores, data.subsets, metric)
        except InputError:
            continue
        best = reading.best_on_average(found, metric)
        name = best.label if best else "the best"
        caption = (
            f"{metric} ({reading.protocol_name(found)}) against what is known of the subsets."
            f" Blue: {name}, the best on average; grey: all others. ρ is the rank"
            f" correlation of the blue points; with n = {len(found)} subsets only a value near ±1 means anything."
            " Boxes span the middle half of all representations in a domain, with its number of subsets in brackets."
        )
        made.append(drawing(figures.as_svg(figure, f"trend {metric}", f"Trends of {metric}"), caption, wide=True))
    return made


def _subset_table(subsets: Sequence[SubsetFacts]) -> Html:
    heads: list[Child] = [
        "subset", "what", "status", "clips", "classes", "clips per class", "groups", "seconds per clip", "minutes",
    ]  # fmt: skip
    lines = [_subset_line(item) for item in subsets]
    used = [n for n in range(len(heads)) if any(line[n] for line in lines)]
    left = sum(n < 3 for n in used)
    return table([heads[n] for n in used], [[line[n] for n in used] for line in lines], left=left)


def _subset_line(item: SubsetFacts) -> list[Html | str]:
    spread = "" if item.per_class is None else f"{item.per_class[0]}–{item.per_class[1]}"
    lasting = item.durations
    return [
        item.subset or item.suite or "all clips",
        " · ".join(filter(None, [item.title, item.domain])),
        item.status,
        str(item.clips),
        str(item.classes),
        spread,
        "" if item.groups is None else str(item.groups),
        "" if lasting is None else f"{lasting.median:.2f} ({lasting.shortest:.2f}–{lasting.longest:.2f})",
        "" if lasting is None else f"{lasting.total / 60:.1f}",
    ]
