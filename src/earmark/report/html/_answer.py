"""The answer as it opens a report: the sentences, the best of each subset, and what stands beside them.

Beside it stand both protocols, the systems that failed on clips, and copies among the sounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from earmark.report import answer
from earmark.report.answer import SubsetAnswer
from earmark.report.content import CopyNote, ReportData
from earmark.report.html._results import number_cell, value_cell
from earmark.report.metric_text import facts, goodness, heading, number, points
from earmark.report.ranking import Ranking
from earmark.report.score_index import ACROSS, ALL, Representation, Subset, mean_over_subsets
from earmark.scores import Row
from earmark.tables import MISSING, p_value_text, plain
from earmark.tables.html import Child, Html, folded, join, paragraph, section, table, tag
from earmark.wording import counted, listed

_OPEN = 12
_EXAMPLES = 3


def the_answer(data: ReportData) -> Html:
    ranking = data.ranking
    found = answer.findings(ranking)
    said, name = " ".join(answer.lead(ranking)), answer.champion(ranking)
    before, mention, after = said.partition(name) if name else (said, "", "")
    return section(
        "answer",
        "The answer",
        paragraph(before, tag("b", mention) if mention else None, after, class_="lead"),
        *(_about_copies(note) for note in data.copies if note.sounds),
        _per_subset(found, ranking) if found else None,
        paragraph(_caution(found), class_="quiet") if found else None,
        both_protocols(ranking),
        lost_clips(data),
    )


def _per_subset(found: Sequence[SubsetAnswer], ranking: Ranking) -> Html:
    across = any(finding.over_all for finding in found)
    main = tag("small", "across groups") if all(finding.across for finding in found) else None
    chance = any(finding.row.lift is not None for finding in found)
    heads: list[Child] = ["subset", join("best representation", main), join(heading(ranking.index.headline), main)]
    heads += ["chance", "lift"] if chance else []
    heads += ["over all pairs", "best over all pairs"] if across else []
    lines = []
    for finding in found:
        line: list[Html | str] = [finding.subset.label]
        if finding.hindrance:
            line += ["none", MISSING, *[""] * (2 * chance + 2 * across)]
        else:
            line += [finding.best.label, value_cell(finding.row, ranking.clips_beside(finding.row))]
            line += _chance_cells(finding.row) if chance else []
            line += _over_all_cells(finding) if across else []
        lines.append([*line, answer.verdict(finding)])
    return table([*heads, "compared with the others"], lines, left=2, words=1)


def _caution(found: Sequence[answer.SubsetAnswer]) -> str:
    most = max(finding.others for finding in found) + 1
    said = "Square brackets are 95 % intervals; n counts the clips that were queries."
    if any(finding.row.low is None for finding in found):
        said = "n counts the clips that were queries."
    if most > 1:
        chance = "; the p-value against chance is not corrected for that"
        said += f" The best of {most} was picked on the clips it is scored on, which flatters it a little"
        said += f"{chance}." if any(finding.row.p_value is not None for finding in found) else "."
        contested = [finding for finding in found if finding.others]
        if all(finding.tested for finding in contested):
            said += (
                " Whether it is ahead of the others rests on paired differences on the same clips, corrected for the"
                " number of pairs, and not on whether intervals overlap: “comparisons.csv” holds them."
            )
        elif any(finding.judged for finding in contested):
            said += (
                " No paired differences were measured, so intervals that overlap leave a difference open; a run with"
                " jackknife intervals, which are the default, measures them."
            )
    return said


def _chance_cells(row: Row) -> list[Html | str]:
    if row.baseline is None or row.lift is None:
        return ["", ""]
    p_value = tag("small", p_value_text(row.p_value)) if row.p_value is not None else None
    lift = number_cell(number(row.lift, row.metric, sign=True), row.lift, p_value)
    return [number(row.baseline, row.metric), lift]


def _over_all_cells(finding: SubsetAnswer) -> list[Html | str]:
    """What the best across groups has over all pairs, and what is best there."""
    row, other = finding.over_all, finding.other_row
    if row is None or row.value is None or finding.row.value is None:
        return ["", ""]
    mine = value_cell(row, points(row.value - finding.row.value, row.metric), count=False)
    if not finding.differs or finding.other is None or other is None or other.value is None:
        return [mine, "the same"]
    here = finding.other_across
    fall = f"{number(here.value, here.metric)} across groups" if here is not None and here.value is not None else ""
    shown = number(other.value, other.metric)
    return [mine, number_cell(shown, other.value, tag("small", finding.other.label), tag("small", fall))]


# --- both protocols -----------------------------------------------------------------------------------------------


def both_protocols(ranking: Ranking) -> Html | None:
    """Each representation across groups and over all pairs, with its place in both; None without groups."""
    metric = ranking.index.headline
    across = ranking.index.values(metric, ACROSS)
    over_all = {place: rows for place, rows in ranking.index.values(metric, ALL).items() if place in across}
    here, there = mean_over_subsets(across), mean_over_subsets(over_all)
    places = _places(here, metric), _places(there, metric)
    order = sorted((line for line in here if line in there), key=lambda line: places[0][line])
    if not order:
        return None
    body: list[list[Html | str]] = []
    for line in order:
        cells: list[Html | str] = [line.label]
        for means, place in zip((here, there), places, strict=True):
            cells.append(number_cell(number(means[line], metric), means[line]))
            cells.append(number_cell(f"{place[line]} of {len(means)}", place[line]))
        more = there[line] - here[line]
        body.append([*cells, number_cell(points(more, metric), more)])
    heads: list[Child] = ["representation", join(heading(metric), tag("small", "across groups")), "place"]
    heads += [join(heading(metric), tag("small", "over all pairs")), "place", "more over all pairs"]
    mean = f" Means over {len(across)} subsets." if len(across) > 1 else ""
    made = table(heads, body, caption=f"Both protocols side by side, sorted by the value across groups.{mean}")
    return made if len(order) <= _OPEN else folded(f"Both protocols side by side ({len(order)} representations)", made)


def _places(means: Mapping[Representation, float], metric: str) -> dict[Representation, int]:
    """1 for the best; equal values share a place."""
    turned = -1 if facts(metric).higher_is_better else 1
    order = sorted(turned * mean for mean in means.values())
    return {line: 1 + bisect_left(order, turned * mean) for line, mean in means.items()}


# --- clips that failed --------------------------------------------------------------------------------------------


def lost_clips(data: ReportData) -> Html | None:
    """A line for each system and subset with clips that failed: on how many it was scored, and what it has there."""
    failing = [count for count in data.counts if count.scored < count.clips]
    if not failing:
        return None
    metric = data.ranking.index.headline
    own, ranked = (_best_rows(index.values(metric)) for index in (data.index, data.ranking.index))
    body: list[list[Html | str]] = []
    for count in failing:
        key = Subset(count.suite, count.subset), count.system
        clips = f"{count.scored} of {count.clips}"
        compared = "not ranked" if count.lost_most else _with_n(ranked.get(key))
        body.append([count.system, key[0].label, clips, _with_n(own.get(key)), compared])
    heads = ["system", "subset", "clips", f"{metric} on its own clips", f"{metric} as compared"]
    caption = "Systems that failed on clips. A value on other clips than those of the rest is not comparable with them."
    made = table(heads, body, left=2, caption=caption)
    return made if len(body) <= _OPEN else folded(f"{counted(len(body), 'system')} failed on clips", made)


def _best_rows(values: Mapping[Subset, Mapping[Representation, Row]]) -> dict[tuple[Subset, str], Row]:
    """The best row of each subset and system."""
    best: dict[tuple[Subset, str], Row] = {}
    for place, rows in values.items():
        for line, row in rows.items():
            known = best.setdefault((place, line.system), row)
            if goodness(row) > goodness(known):
                best[place, line.system] = row
    return best


def _with_n(row: Row | None) -> str:
    return MISSING if row is None else f"{number(row.value or 0.0, row.metric, unit=True)} (n = {row.n})"


# --- copies -------------------------------------------------------------------------------------------------------


def _about_copies(note: CopyNote) -> Html:
    """A paragraph for a subset that holds copies; where they were kept it is a warning."""
    count = f"{counted(note.clips, 'clip')} of {note.subset} are copies of {counted(note.sounds, 'sound')}"
    mixed = note.under_several_labels
    labels = f", {counted(mixed, 'sound')} under more than one label" if mixed else ""
    if note.policy == "drop":
        kind, head, kept = "quiet", "Copies left out.", "the first of each sound stays"
        if mixed:
            kept = "none of a sound under several labels stays, and the first of every other one"
        said = f" {count}{labels}. {counted(note.left_out, 'clip')} of them were left out: {kept}."
    else:
        kind, head = "synthetic", "Copies among the sounds."
        said = (
            f" {count}{labels}. They were kept: a copy finds its twin at distance 0, which raises every score below"
            f"{', or lowers it where the labels differ' if mixed else ''}. Run again with “--copies drop” for numbers"
            " that rest on different sounds."
        )
    named = []
    for ids, names in note.examples[:_EXAMPLES]:
        shown = " = ".join(plain(id, 60) for id in ids[:3]) + (" = …" if len(ids) > 3 else "")
        under = f" (labelled {listed(plain(name, 40) for name in names[:4])})" if len(names) > 1 else ""
        named.append(shown + under)
    more = f" For example {listed(named)}; clips.csv names all." if named else ""
    return tag("div", tag("strong", head), said, more, class_=kind, role="note")
