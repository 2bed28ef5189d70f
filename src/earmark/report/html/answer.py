"""The answer as it opens a report: the sentences, the best of each subset, and what stands beside them.

Beside it stand both protocols, the systems that failed on clips, and copies among the sounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earmark.report import answer, reading
from earmark.report.content import CopyNote, ReportData
from earmark.report.html.cells import spelled, value_cell
from earmark.report.ranking import Ranking, beside_value
from earmark.report.reading import ACROSS, ALL, Representation, facts, listed, number, points
from earmark.scores import Row
from earmark.tables import p_value_text, plain
from earmark.tables.html import Child, Html, folded, join, paragraph, section, table, tag
from earmark.wording import counted

_OPEN = 12
_EXAMPLES = 3


def the_answer(data: ReportData) -> Html:
    ranking = data.ranking
    found = answer.findings(ranking)
    return section(
        "answer",
        "The answer",
        paragraph(_emphasised(" ".join(answer.lead(ranking)), answer.champion(ranking)), class_="lead"),
        on_copies(data.copies),
        _per_subset(found, ranking) if found else None,
        paragraph(_caution(found), class_="quiet") if found else None,
        both_protocols(ranking),
        lost_clips(data),
    )


def _emphasised(said: str, name: str | None) -> Html:
    """The text with the first mention of a name in bold."""
    before, mention, after = said.partition(name) if name else (said, "", "")
    return join(before, tag("b", mention) if mention else None, after)


def _per_subset(found: Sequence[answer.Finding], ranking: Ranking) -> Html:
    metric = reading.headline(ranking.scores)
    across = any(finding.over_all for finding in found)
    main = tag("small", "across groups") if all(finding.across for finding in found) else None
    chance = any(finding.row.lift is not None for finding in found)
    heads: list[Child] = ["subset", join("best representation", main), join(spelled(metric), main)]
    heads += ["chance", "lift"] if chance else []
    heads += ["over all pairs", "best over all pairs"] if across else []
    lines = []
    for finding in found:
        best = "none" if finding.hindrance else finding.best.label
        value = "–" if finding.hindrance else value_cell(finding.row, beside_value(ranking, finding.row))
        line: list[Html | str] = [finding.subset.label, best, value]
        line += ([""] * 2 if finding.hindrance else _chance_cells(finding.row)) if chance else []
        line += ([""] * 2 if finding.hindrance else _over_all_cells(finding)) if across else []
        lines.append([*line, answer.verdict(finding)])
    return table([*heads, "compared with the others"], lines, left=2, words=1)


def _caution(found: Sequence[answer.Finding]) -> str:
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
    lift = tag("td", number(row.lift, row.metric, sign=True), p_value, class_="n", data_value=repr(row.lift))
    return [number(row.baseline, row.metric), lift]


def _over_all_cells(finding: answer.Finding) -> list[Html | str]:
    """What the best across groups has over all pairs, and what is best there."""
    row, other = finding.over_all, finding.other_row
    if row is None or row.value is None or finding.row.value is None:
        return ["", ""]
    mine = value_cell(row, f"{points(row.value - finding.row.value, row.metric)}", count=False)
    if not finding.differs or finding.other is None or other is None or other.value is None:
        return [mine, "the same"]
    here = finding.other_across
    fall = f"{number(here.value, here.metric)} across groups" if here is not None and here.value is not None else ""
    name = tag("small", finding.other.label)
    shown = number(other.value, other.metric)
    return [mine, tag("td", shown, name, tag("small", fall), class_="n", data_value=repr(other.value))]


# --- both protocols -----------------------------------------------------------------------------------------------


def both_protocols(ranking: Ranking) -> Html | None:
    """Each representation across groups and over all pairs, with its place in both; None without groups."""
    metric = reading.headline(ranking.scores)
    across = reading.values(ranking.scores, metric, ACROSS)
    over_all = {place: rows for place, rows in reading.values(ranking.scores, metric, ALL).items() if place in across}
    here, there = reading.mean_over_subsets(across), reading.mean_over_subsets(over_all)
    lines = [line for line in here if line in there]
    if not lines:
        return None
    places = _places(here, metric), _places(there, metric)
    order = sorted(lines, key=lambda line: places[0][line])
    body: list[list[Html | str]] = [
        [
            line.label,
            _cell(here[line], metric),
            _place(places[0][line], len(here)),
            _cell(there[line], metric),
            _place(places[1][line], len(there)),
            tag("td", points(there[line] - here[line], metric), class_="n", data_value=repr(there[line] - here[line])),
        ]
        for line in order
    ]
    heads: list[Child] = ["representation", join(spelled(metric), tag("small", "across groups")), "place"]
    heads += [join(spelled(metric), tag("small", "over all pairs")), "place", "more over all pairs"]
    mean = f" Means over {len(across)} subsets." if len(across) > 1 else ""
    caption = f"Both protocols side by side, sorted by the value across groups.{mean}"
    made = table(heads, body, caption=caption)
    return made if len(order) <= _OPEN else folded(f"Both protocols side by side ({len(order)} representations)", made)


def _places(means: Mapping[Representation, float], metric: str) -> dict[Representation, int]:
    """1 for the best; equal values share a place."""
    turned = 1 if facts(metric).higher_is_better else -1
    return {line: 1 + sum(turned * other > turned * value for other in means.values()) for line, value in means.items()}


def _cell(value: float, metric: str) -> Html:
    return tag("td", number(value, metric), class_="n", data_value=repr(value))


def _place(place: int, count: int) -> Html:
    return tag("td", f"{place} of {count}", class_="n", data_value=str(place))


# --- clips that failed --------------------------------------------------------------------------------------------


def lost_clips(data: ReportData) -> Html | None:
    """A line for each system and subset with clips that failed: on how many it was scored, and what it has there."""
    failing = [count for count in data.counts if count.scored < count.clips]
    if not failing:
        return None
    metric = reading.headline(data.ranking.scores)
    own, ranked = reading.values(data.scores, metric), reading.values(data.ranking.scores, metric)
    body: list[list[Html | str]] = []
    for count in failing:
        place = reading.Subset(count.suite, count.subset)
        body.append(
            [
                count.system,
                place.label,
                f"{count.scored} of {count.clips}",
                _best_of(own.get(place, {}), count.system),
                "not ranked" if count.lost_most else _best_of(ranked.get(place, {}), count.system),
            ]
        )
    heads: list[Child] = ["system", "subset", "clips", f"{metric} on its own clips", f"{metric} as compared"]
    caption = "Systems that failed on clips. A value on other clips than those of the rest is not comparable with them."
    made = table(heads, body, left=2, caption=caption)
    return made if len(body) <= _OPEN else folded(f"{counted(len(body), 'system')} failed on clips", made)


def _best_of(rows: Mapping[Representation, Row], system: str) -> str:
    own = [row for line, row in rows.items() if line.system == system]
    if not own:
        return "–"
    best = max(own, key=reading.goodness)
    return " ".join(filter(None, [number(best.value or 0.0, best.metric, unit=True), f"(n = {best.n})"]))


# --- copies -------------------------------------------------------------------------------------------------------


def on_copies(notes: Sequence[CopyNote]) -> Html | None:
    """A paragraph for each subset that holds copies; where they were kept it is a warning."""
    made = [_on_copies(note) for note in notes if note.sounds]
    return join(*made) if made else None


def _on_copies(note: CopyNote) -> Html:
    count = f"{counted(note.clips, 'clip')} of {note.subset} are copies of {counted(note.sounds, 'sound')}"
    mixed = note.under_several_labels
    labels = f", {counted(mixed, 'sound')} under more than one label" if mixed else ""
    if note.policy == "drop":
        what = "the first of each sound stays" if not mixed else (
            "none of a sound under several labels stays, and the first of every other one"
        )  # fmt: skip
        said = f" {count}{labels}. {counted(note.left_out, 'clip')} of them were left out: {what}."
        head = "Copies left out."
    else:
        said = (
            f" {count}{labels}. They were kept: a copy finds its twin at distance 0, which raises every score below"
            f"{', or lowers it where the labels differ' if mixed else ''}. Run again with “--copies drop” for numbers"
            " that rest on different sounds."
        )
        head = "Copies among the sounds."
    named = [_set(ids, labels_) for ids, labels_ in note.examples[:_EXAMPLES]]
    more = f" For example {listed(named)}; clips.csv names all." if named else ""
    kind = "quiet" if note.policy == "drop" else "synthetic"
    return tag("div", tag("strong", head), said, more, class_=kind, role="note")


def _set(ids: Sequence[str], labels: Sequence[str]) -> str:
    shown = " = ".join(plain(id, 60) for id in ids[:3]) + (" = …" if len(ids) > 3 else "")
    under = f" (labelled {listed([plain(label, 40) for label in labels[:4]])})" if len(labels) > 1 else ""
    return shown + under
