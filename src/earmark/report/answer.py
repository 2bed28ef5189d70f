"""The answer in words, made from the numbers: what separates best, by how much, and whether that is sure.

Every sentence rests on rows of the table; where a number is missing the sentence says so instead of guessing. Where
clips were also compared across groups, that is the question; what changes over all pairs is told beside it. `separated`
decides what is called a difference. What it leaves open is called undecided, not equal.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from earmark.report.metric_text import facts, interval, number, number_format, points
from earmark.report.ranking import Ranking, clips_said
from earmark.report.score_index import (
    ACROSS,
    ALL,
    Representation,
    Subset,
    Values,
    best_on_average,
    mean_over_subsets,
    overlap,
    ranked,
)
from earmark.scores import Row
from earmark.tables import NumberFormat, p_value_text
from earmark.wording import all_of, counted, listed, none_of

SURE = 0.05


@dataclass(frozen=True)
class SubsetAnswer:
    """The best representation of a subset, and the others that are not told from it.

    `hindrance` says why nothing is called the best, where the rows cannot be compared: `best` is then only the first.
    Of a subset that was measured across groups: `over_all` is the best one's row over all pairs, `other` what is best
    there and `other_row` its row there, `other_across` its row across groups, and `other_clear` whether it is surely
    better there than the one that is best across groups.
    """

    subset: Subset
    best: Representation
    row: Row
    rivals: list[Representation]
    others: int
    judged: bool
    tested: str = ""  # what was left out to test the differences (clip or group); empty where intervals decide
    hindrance: str = ""
    over_all: Row | None = None
    other: Representation | None = None
    other_row: Row | None = None
    other_across: Row | None = None
    other_clear: bool | None = None

    @property
    def across(self) -> bool:
        return self.row.protocol == ACROSS

    @property
    def differs(self) -> bool:
        """Whether another representation is better over all pairs."""
        return self.other is not None and self.other != self.best


def separated(best: Row, other: Row, difference: Row | None) -> bool | None:
    """Whether the best is surely better than another: the one place where that is decided. None: it cannot be told.

    By the paired difference on the same clips, where it was tested: its p-value, corrected for the number of
    comparisons, is below .05. Else by the two intervals, which must not overlap.
    """
    if difference is not None and difference.p_value is not None:
        return difference.p_value < SURE
    close = overlap(best, other)
    return None if close is None else not close


def findings(ranking: Ranking) -> list[SubsetAnswer]:
    """One for each subset that has a value of the headline metric."""
    metric = ranking.index.headline
    over_all = ranking.index.values(metric, ALL)
    found = []
    for place, rows in ranking.index.values(metric).items():
        (best, row), *rest = ranked(rows)
        differences = {line: ranking.difference(other) for line, other in rest}
        tested = [row.unit or "clip" for row in differences.values() if row is not None and row.p_value is not None]
        verdicts = {line: separated(row, other, differences[line]) for line, other in rest}
        there = ranked(over_all.get(place, {})) if row.protocol == ACROSS else []
        other, other_row = there[0] if there else (None, None)
        if other_row is not None and best in over_all[place] and over_all[place][best].value == other_row.value:
            other, other_row = best, over_all[place][best]  # as good as the first
        mine = over_all.get(place, {}).get(best) if there else None
        clear = None
        if mine is not None and other_row is not None and other != best:
            clear = separated(other_row, mine, ranking.difference(mine))
        found.append(
            SubsetAnswer(
                subset=place,
                best=best,
                row=row,
                rivals=[line for line, clear in verdicts.items() if clear is False],
                others=len(rest),
                judged=bool(verdicts) and None not in verdicts.values(),
                tested=tested[0] if tested and len(tested) == len(rest) else "",
                hindrance=ranking.hindrance(place, rows.values()),
                over_all=mine,
                other=other,
                other_row=other_row,
                other_across=rows.get(other) if other is not None else None,
                other_clear=clear,
            )
        )
    return found


def above_chance(row: Row) -> bool | None:
    """Whether the row is surely better than chance; None where no permutations say so."""
    return None if row.p_value is None else row.p_value <= SURE


def lead(ranking: Ranking) -> list[str]:
    """The opening: one paragraph as a list of sentences."""
    every = findings(ranking)
    if not every:
        return [*clips_said(ranking), "No representation has a score that can be ranked: the tables below say why."]
    metric = ranking.index.headline
    found = [finding for finding in every if not finding.hindrance]
    sentences = [_meaning(metric, every)]
    if found:
        sentences += [_overall(found, ranking, metric), _chance(found, metric), _sureness(found)]
        sentences += [_protocols(found, ranking, metric)]
    sentences += [
        f"On {finding.subset.label} no representation is called the best: {finding.hindrance}."
        for finding in every
        if finding.hindrance
    ]
    return [sentence for sentence in [*sentences, *clips_said(ranking)] if sentence]


_NEIGHBOUR = {
    "P@1": "how often a clip's nearest neighbour{from_} is a clip of the same class ({name})",
    "GSR": "how far a clip lies from other classes compared with its own{among} ({name})",
}


def _meaning(metric: str, found: list[SubsetAnswer]) -> str:
    across = [finding for finding in found if finding.across]
    name = f"{metric} across groups" if across else metric
    if metric not in _NEIGHBOUR:
        said = f"The leading metric is {name}"
    else:
        said = "The question is " + _NEIGHBOUR[metric].format(
            name=name,
            from_=" from another group (speaker, animal, recording)" if across else "",
            among=" among clips of other groups (speakers, animals, recordings)" if across else "",
        )
    without = [finding.subset.label for finding in found if not finding.across]
    if across and without:
        said += f"; on {listed(without)}, not measured across groups, over all pairs"
    return f"{said}."


def _measured(row: Row) -> str:
    """45.2 % [41.0, 49.1], n = 300, or n = 300 clips of 12 groups, which the interval then rests on."""
    said = " ".join(filter(None, [number(row.value or 0.0, row.metric, unit=True), interval(row)]))
    groups = f" clips of {counted(row.units, 'group')}" if row.unit == "group" and row.units is not None else ""
    return said if row.n is None else f"{said}, n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{row.n}{groups}"


def _crowned(found: list[SubsetAnswer], ranking: Ranking, metric: str, protocol: str | None = None) -> Values:
    """The values that a mean over subsets rests on: those of subsets that have a best."""
    places = {finding.subset for finding in found}
    every = ranking.index.values(metric, protocol)
    return {place: rows for place, rows in every.items() if place in places}


def _overall(found: list[SubsetAnswer], ranking: Ranking, metric: str) -> str:
    values = _crowned(found, ranking, metric)
    if len(found) == 1:
        (only,) = found
        where, reached = only.subset.label, _measured(only.row)
        if not only.others:
            return f"{only.best.label} reaches {reached} on {where}."
        equals = [line.label for line, row in values[only.subset].items() if row.value == only.row.value]
        if len(equals) > 1:
            return f"On {where}, {listed(equals)} share the best value of {only.others + 1}: {reached}."
        return f"On {where}, {only.best.label} does best of {only.others + 1}: {reached}."
    wins = Counter(finding.best for finding in found)
    winner, won = wins.most_common(1)[0]
    top = best_on_average(values, metric)
    mean = ""
    if top is not None:
        total = sum(rows[top].n or 0 for rows in values.values())
        clips = f", {total} {'query' if total == 1 else 'queries'}" if total else ""
        value = number(mean_over_subsets(values)[top], metric, unit=True)
        mean = f" ({value} averaged over {len(found)} subsets{clips})"
    if len(wins) == 1:
        return f"{winner.label} does best on {all_of(len(found))} subsets{mean if top == winner else ''}."
    if top is None:
        return f"{winner.label} does best on {won} of {len(found)} subsets; no representation has a value on all."
    first = f"{top.label} does best on the whole{mean}"
    if top == winner:
        return f"{first}, and on {won} of the {len(found)} subsets by itself."
    return f"{first}; {winner.label} wins the most single subsets, {won} of {len(found)}."


def champion(ranking: Ranking) -> str | None:
    """The name the opening is about; None where nothing is called the best."""
    found = [finding for finding in findings(ranking) if not finding.hindrance]
    if len(found) == 1:
        return found[0].best.label
    metric = ranking.index.headline
    top = best_on_average(_crowned(found, ranking, metric), metric)
    return top.label if top else None


# --- across groups and over all pairs -----------------------------------------------------------------------------

_OVER_ALL = "Over all pairs, where neighbours of the same group count as well, "


def _protocols(found: list[SubsetAnswer], ranking: Ranking, metric: str) -> str:
    """What changes when neighbours of the same group may answer; nothing where groups were not asked about."""
    both = [finding for finding in found if finding.across and finding.over_all is not None]
    if not both:
        return ""
    form = number_format(metric)
    return _in_one_subset(both[0], form) if len(both) == len(found) == 1 else _in_subsets(both, ranking, metric, form)


def _in_one_subset(finding: SubsetAnswer, form: NumberFormat) -> str:
    assert finding.over_all is not None
    there = form.text(finding.over_all.value, unit=True)
    if not finding.differs or finding.other is None or finding.other_row is None:
        gain = points((finding.over_all.value or 0.0) - (finding.row.value or 0.0), finding.row.metric)
        best = ", and is the best there too" if finding.others else ""
        return f"{_OVER_ALL}{finding.best.label} has {there}, {gain} against its value across groups{best}."
    fall, apart = "", ""
    if finding.other_across is not None:
        fall = f" and {form.text(finding.other_across.value, unit=True)} across groups"
    if finding.other_clear is not None:
        apart = f", a difference {_size(finding.tested, larger=finding.other_clear)}"
    return (
        f"{_OVER_ALL}another one does best: {finding.other.label}, with "
        f"{form.text(finding.other_row.value, unit=True)}{fall}; {finding.best.label} has {there} there{apart}."
    )


def _in_subsets(found: list[SubsetAnswer], ranking: Ranking, metric: str, form: NumberFormat) -> str:
    across, over_all = (_crowned(found, ranking, metric, protocol) for protocol in (ACROSS, ALL))
    here, there = mean_over_subsets(across), mean_over_subsets(over_all)
    best, other = best_on_average(across, metric), best_on_average(over_all, metric)
    changed = [finding.subset.label for finding in found if finding.differs]
    where = f" The best one changes on {listed(changed)}." if changed else " It is the same one on every subset."
    if best is None or other is None:
        return f"{_OVER_ALL}no representation has a value on every subset.{where}" if changed else ""
    if other == best or there.get(best) == there[other]:
        gain = f"{points(there[best] - here[best], metric)} against its mean across groups"
        return f"{_OVER_ALL}{best.label} has {form.text(there[best], unit=True)} on average, {gain}.{where}"
    fall = f" and {form.text(here[other], unit=True)} across groups" if other in here else ""
    mine = f"; {best.label} has {form.text(there[best], unit=True)} there" if best in there else ""
    value = form.text(there[other], unit=True)
    return f"{_OVER_ALL}{other.label} does best on average, with {value}{fall}{mine}.{where}"


# --- chance and sureness ------------------------------------------------------------------------------------------


def _chance(found: list[SubsetAnswer], metric: str) -> str:
    known = [finding for finding in found if finding.row.lift is not None]
    if not known:
        return (
            "How far above chance these values lie is not known: labels were not shuffled (--permutations), or groups "
            "allow no other order of them."
        )
    unsure = [finding.subset.label for finding in known if above_chance(finding.row) is False]
    untested = [finding.subset.label for finding in found if above_chance(finding.row) is None]
    lifts = [finding.row.lift or 0.0 for finding in known]
    side = "above" if facts(metric).higher_is_better else "from"
    if len(found) == 1:
        row = known[0].row
        chance = number(row.baseline or 0.0, metric, unit=True)
        said = f"That is {points(lifts[0], metric)} {side} chance ({chance}"
        said += f", {p_value_text(row.p_value)})" if row.p_value is not None else ")"
        if untested:
            return f"{said}; whether that is more than shuffled labels explain was not tested."
        return said + (
            ", which shuffled labels reach as well: it is not distinguishable from chance." if unsure else "."
        )
    low, high = min(lifts), max(lifts)
    span = f"{number(low, metric, sign=True)} to {points(high, metric)}"
    said = f"The best of each subset lies {span if len(known) > 1 else points(low, metric)} {side} chance"
    if len(known) < len(found):
        said = said.replace("each subset", listed(finding.subset.label for finding in known))
    if unsure:
        said += f"; on {listed(unsure)} it is not distinguishable from chance"
    if untested:
        return f"{said}; on {listed(untested)} whether it is more than shuffled labels explain was not tested."
    return f"{said}." if unsure else f"{said}, everywhere more than shuffled labels explain."


def _sureness(found: list[SubsetAnswer]) -> str:
    contested = [finding for finding in found if finding.others]
    if not contested:
        return ""
    judged = [finding for finding in contested if finding.judged]
    if not judged:
        return "There are no intervals, so which differences between representations are real cannot be judged."
    close = [finding for finding in judged if finding.rivals]
    units = {finding.tested for finding in judged}
    unit = units.pop() if len(units) == 1 else ""
    larger, smaller = _size(unit, larger=True), _size(unit, larger=False)
    if len(found) == 1:
        if not close:
            return f"Its lead over every other representation is {larger}."
        names = [line.label for line in close[0].rivals]
        more = listed(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"
        return f"The lead is {smaller}: {more} may be as good."
    clear = [finding.subset.label for finding in judged if not finding.rivals]
    unjudged = [finding.subset.label for finding in contested if not finding.judged]
    missing = f"; on {listed(unjudged)} that cannot be judged, for want of intervals" if unjudged else ""
    if not clear and len(judged) == 1:
        return f"On {judged[0].subset.label} the lead of the best is {smaller}: others may be as good{missing}."
    if not clear:
        where = f"On none of {len(judged)} subsets" if unjudged else f"On {none_of(len(judged), 'subset')}"
        return f"{where} is the lead of the best {larger}: others may be as good{missing}."
    if len(clear) == len(contested) == len(found):
        return f"In each subset the lead of the best over all others is {larger}."
    elsewhere = "; elsewhere others may be as good" if close else ""
    if close and unjudged:
        elsewhere = f"; on {listed(finding.subset.label for finding in close)} others may be as good"
    return f"The lead of the best is {larger} on {listed(clear)}{elsewhere}{missing}."


def _size(unit: str, *, larger: bool) -> str:
    """How a difference compares with what leaving out units, or the intervals, explain."""
    if not unit:
        return f"{'larger' if larger else 'smaller'} than the intervals"
    return f"{'' if larger else 'no '}larger than a change of {unit}s explains"


def verdict(finding: SubsetAnswer) -> str:
    """Whether the best of a subset is surely the best, in a few words."""
    if finding.hindrance:
        return f"no verdict: {finding.hindrance}"
    if not finding.others:
        return "the only one"
    if not finding.judged:
        return "not judged: no intervals"
    if not finding.rivals:
        return f"clear of {all_of(finding.others)} others" if finding.others > 1 else "clear of the other one"
    return f"undecided against {len(finding.rivals)} of {finding.others}"
