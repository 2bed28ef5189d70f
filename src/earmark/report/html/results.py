"""The first half of a report: the answer, the score tables, lift over chance, trends over corpus properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earmark.errors import InputError
from earmark.report import figures, reading
from earmark.report.content import ReportData, SubsetFacts
from earmark.report.correlations import Correlations, metric_correlations
from earmark.report.figures.properties import ENOUGH_SUBSETS
from earmark.report.html import answer
from earmark.report.html.elements import Child, Html, drawing, folded, join, paragraph, section, table, tag
from earmark.report.reading import Representation, Subset, facts, interval, number, points
from earmark.scores import Row, Scores

_PROTOCOL = {"all": "all pairs", "across_groups": "across groups"}


def the_answer(data: ReportData) -> Html:
    found = answer.findings(data.scores)
    return section(
        "answer",
        "The answer",
        paragraph(_emphasised(" ".join(answer.lead(data.scores)), answer.champion(data.scores)), class_="lead"),
        _per_subset(found, data) if found else None,
        paragraph(_caution(found), class_="quiet") if found else None,
    )


def _emphasised(said: str, name: str | None) -> Html:
    """The text with the first mention of a name in bold."""
    before, mention, after = said.partition(name) if name else (said, "", "")
    return join(before, tag("b", mention) if mention else None, after)


def _per_subset(found: Sequence[answer.Finding], data: ReportData) -> Html:
    metric = reading.headline(data.scores)
    across = any(finding.across for finding in found)
    chance = any(finding.row.lift is not None for finding in found)
    heads: list[Child] = ["subset", "best representation", f"{_spelled(metric)}"]
    heads += ["chance", "lift"] if chance else []
    heads += ["across groups"] if across else []
    lines = []
    for finding in found:
        line: list[Html | str] = [finding.subset.label, finding.best.label, _value_cell(finding.row)]
        line += _chance_cells(finding.row) if chance else []
        line += [_across_cell(finding)] if across else []
        lines.append([*line, answer.verdict(finding)])
    return table([*heads, "compared with the others"], lines, left=2, words=1)


def _caution(found: Sequence[answer.Finding]) -> str:
    most = max(finding.others for finding in found) + 1
    said = "Square brackets are 95 % bootstrap intervals; n counts the clips that were queries."
    if any(finding.row.low is None for finding in found):
        said = "n counts the clips that were queries."
    if most > 1:
        said += (
            f" The best of {most} was picked on the clips it is scored on, which flatters it a little; p is not"
            " corrected for that. Overlapping intervals leave a difference open;"
            " “earmark compare” settles it clip by clip."
        )
    return said


def _chance_cells(row: Row) -> list[Html | str]:
    if row.baseline is None or row.lift is None:
        return ["", ""]
    p_value = tag("small", reading.p_text(row.p_value)) if row.p_value is not None else None
    lift = tag("td", number(row.lift, row.metric, sign=True), p_value, class_="n", data_value=repr(row.lift))
    return [number(row.baseline, row.metric), lift]


def _across_cell(finding: answer.Finding) -> Html | str:
    row = finding.across
    if row is None or row.value is None or finding.row.value is None:
        return "not measured"
    return _value_cell(row, f"{points(row.value - finding.row.value, row.metric)}")


def _value_cell(
    row: Row, *more: str, lift: str = "", best: bool = False, heat: float | None = None, count: bool = True
) -> Html:
    """Value (lift), interval and whatever else belongs under it, coloured where `heat` (0 worst, 1 best) is given."""
    assert row.value is not None
    shown = number(row.value, row.metric)
    small = [interval(row), *more, f"n = {row.n}" if count and row.n is not None else ""]
    return tag(
        "td",
        tag("span", shown, class_="best") if best else shown,
        tag("span", f" ({lift})", class_="lift") if lift else None,
        [tag("small", item) for item in small if item],
        class_="n heat" if heat is not None else "n",
        style=None if heat is None else f"--good-share:{heat:.2f}",
        data_value=repr(row.value),
    )


def _spelled(metric: str) -> str:
    arrow = "↑" if facts(metric).higher_is_better else "↓"
    return f"{metric} (%) {arrow}" if facts(metric).percent else f"{metric} {arrow}"


# --- tables -------------------------------------------------------------------------------------------------------


def score_tables(data: ReportData) -> Html:
    scores = data.scores
    metric = reading.headline(scores)
    protocols = reading.protocols(scores)
    parts: list[Child] = [_guide(scores, metric)]
    for protocol in protocols:
        found = reading.values(scores, metric, protocol)
        if found and (len(found) > 1 or len(reading.metrics(scores)) == 1):
            made = _across_subsets(found, metric, protocol)
            parts.append(
                made if protocol == protocols[0] else folded(f"The same, {_PROTOCOL.get(protocol, protocol)}", made)
            )
    parts.append(_heat_figure(scores, metric))
    places = reading.subsets(scores)
    parts += [_one_subset(scores, place, open_=len(places) == 1) for place in places]
    parts.append(_under_noise(scores, metric))
    return section("scores", "Scores", parts)


def _under_noise(scores: Scores, metric: str) -> Html | None:
    """What label noise costs: an ablation, kept apart from the answer."""
    noisy = [row for row in reading.ablations(scores) if row.metric == metric and row.value is not None]
    if not noisy:
        return None
    shares = sorted({float(row.subset.partition("~noise")[2]) for row in noisy})
    clean = [row for row in reading.single_subsets(scores) if row.metric == metric and row.value is not None]
    lines: dict[tuple[str, str, str], dict[float, Row]] = {}
    for row in [*clean, *noisy]:
        subset, _, share = row.subset.partition("~noise")
        lines.setdefault((reading.representation(row).label, subset, row.protocol), {})[float(share or 0)] = row
    body = [
        [label, subset, _PROTOCOL.get(protocol, protocol)]
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
    said = "In each column the more colour the better, and the best is bold."
    if any(row.low is not None for row in rows):
        said += " Under a value stands its 95 % interval."
    if any(row.lift is not None for row in rows):
        said += " In brackets with a sign: its lift over chance."
    if not facts(metric).higher_is_better:
        said += f" For {metric} lower is better."
    return paragraph(said, class_="quiet")


def _across_subsets(found: reading.Values, metric: str, protocol: str) -> Html:
    lines = list(dict.fromkeys(line for rows in found.values() for line in rows))
    means = reading.mean_over_subsets(found)
    with_mean = len(found) > 1 and bool(means)
    heads: list[Child] = ["representation"]
    heads += [join(place.label, *_shared_n(rows)) for place, rows in found.items()]
    heads += [join("mean", tag("small", f"of {len(found)} subsets", class_="quiet"))] if with_mean else []
    body = []
    for line in lines:
        cells: list[Html | str] = [line.label]
        for rows in found.values():
            row = rows.get(line)
            cells.append(_heat_cell(row, rows, not _shared_n(rows)) if row else "")
        if with_mean:
            cells.append(_mean_cell(line, means, metric))
        body.append(cells)
    kind = _PROTOCOL.get(protocol, protocol)
    return table(heads, body, caption=f"{_spelled(metric)}, {kind}, of each representation on each subset.")


def _shared_n(rows: Mapping[Representation, Row]) -> list[Html]:
    counts = {row.n for row in rows.values()}
    (only,) = counts if len(counts) == 1 else (None,)
    return [tag("small", f"n = {only}", class_="quiet")] if only is not None else []


def _heat_cell(row: Row, rivals: Mapping[Representation, Row], count: bool) -> Html:
    good = [reading.goodness(other) for other in rivals.values()]
    low, high = min(good), max(good)
    mine = reading.goodness(row)
    heat = (mine - low) / (high - low) if high > low else None
    printed = {number(other.value or 0.0, other.metric) for other in rivals.values()}
    top = max(rivals.values(), key=reading.goodness)
    best = len(printed) > 1 and number(row.value or 0.0, row.metric) == number(top.value or 0.0, top.metric)
    lift = "" if row.lift is None else number(row.lift, row.metric, sign=True)
    return _value_cell(row, lift=lift, best=best, heat=heat, count=count)


def _mean_cell(line: Representation, means: Mapping[Representation, float], metric: str) -> Html | str:
    if line not in means:
        return "–"
    turned = 1 if facts(metric).higher_is_better else -1
    low, high = min(turned * value for value in means.values()), max(turned * value for value in means.values())
    share = (turned * means[line] - low) / (high - low) if high > low else 0.0
    best = turned * means[line] == high and len(means) > 1
    shown = number(means[line], metric)
    return tag(
        "td", tag("span", shown, class_="best") if best else shown, class_="n heat",
        style=f"--good-share:{share:.2f}", data_value=repr(means[line]),
    )  # fmt: skip


def _heat_figure(scores: Scores, metric: str) -> Html | None:
    try:
        figure = figures.score_heatmap(scores)
    except InputError:
        return None
    places = reading.values(scores, metric)
    if len(places) > 1:
        caption = (
            f"{metric} by representation (rows) and subset (columns), all pairs. Look down a"
            " column for the representation"
            " that suits a kind of sound (framed: the best), along a row for how evenly one serves all."
        )
    else:
        caption = (
            "Every metric of every representation, all pairs. Colours run from the worst (dark)"
            " to the best (light) of each"
            " column and say nothing across columns; the best is framed. A representation that"
            " is light all along its row"
            " wins whatever is asked of it."
        )
    return drawing(figures.as_svg(figure, "heatmap", f"Heat map of {metric}"), caption, wide=True)


def _one_subset(scores: Scores, place: Subset, *, open_: bool) -> Html:
    """Every metric of one subset, folded away unless it is the only one."""
    rows = [row for row in reading.single_subsets(scores) if reading.subset(row) == place]
    names = reading.metrics(rows)
    by_line: dict[tuple[Representation, str], dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault((reading.representation(row), row.protocol), {})[row.metric] = row
    several = len({protocol for _, protocol in by_line}) > 1
    notes: dict[str, int] = {}
    body = []
    for (line, protocol), found in by_line.items():
        cells: list[Html | str] = [line.label]
        cells += [_PROTOCOL.get(protocol, protocol)] if several else []
        for name in names:
            rivals = {
                other: cells_[name]
                for (other, kind), cells_ in by_line.items()
                if kind == protocol and name in cells_ and cells_[name].value is not None
            }
            cells.append(_any_cell(found.get(name), rivals, notes))
        body.append(cells)
    heads: list[Child] = ["representation", *(["pairs"] if several else []), *map(_spelled, names)]
    made = table(heads, body, left=2 if several else 1)
    remarks = tag("ol", [tag("li", note) for note in notes], class_="quiet") if notes else None
    return folded(f"All metrics on {place.label}", made, remarks, open_=open_)


def _any_cell(row: Row | None, rivals: Mapping[Representation, Row], notes: dict[str, int]) -> Html | str:
    if row is None:
        return ""
    if row.status == "ok" and row.value is not None:
        return _heat_cell(row, rivals, True)
    reason = row.reason.strip() or "no reason was given"
    mark = notes.setdefault(reason, len(notes) + 1)
    return tag("td", "failed" if row.status == "failed" else "–", tag("sup", str(mark)), class_="n", title=reason)


# --- lift and trends ----------------------------------------------------------------------------------------------


def lift_over_chance(data: ReportData) -> Html:
    scores = data.scores
    metric = reading.headline(scores)
    try:
        figure = figures.lift_plot(scores)
    except InputError:
        return section(
            "chance", "Above chance?",
            paragraph("Chance was not measured. Permutations of the labels measure it: run again with 1000 of them."),
        )  # fmt: skip
    shown = figures.lift_systems(scores, metric)
    every = list(dict.fromkeys(line.system for rows in reading.values(scores, metric).values() for line in rows))
    caption = (
        f"{metric} minus what shuffled labels give. Dots are values and lines their 95 %"
        " intervals; the pale bar at zero is"
        " where 95 % of shuffled labelings fall. A line clear of the pale bar is better than"
        " chance, and two lines clear of"
        " each other are different."
    )
    if not any(row.low is not None for row in scores):
        caption = caption.replace(" and lines their 95 % intervals", "").split(" A line clear")[0]
    if "across_groups" in reading.protocols(scores):
        caption += (
            " On the right, clips of the query's own group may not answer: what is lost from left to right leaned on"
            " the same speaker, animal or recording, or on there being more clips of the class to find."
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
    leading = reading.headline(data.scores)
    for metric in dict.fromkeys((leading, "GSR")):
        found = reading.values(data.scores, metric)
        try:
            figure = figures.trends(data.scores, data.subsets, metric)
        except InputError:
            continue
        best = reading.best_on_average(found, metric)
        name = best.label if best else "the best"
        caption = (
            f"{metric} against what is known of the subsets. Blue: {name}, the best on average;"
            " grey: all others. ρ is the rank"
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
