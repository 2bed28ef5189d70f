"""The answer in words, made from the numbers: what separates best, by how much, and whether that is sure.

Every sentence rests on rows of the table; where a number is missing the sentence says so instead of guessing.
Intervals that do not overlap are called a difference. Overlapping ones are called undecided, not equal.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from earmark.report import reading
from earmark.report.reading import Representation, Subset, facts, interval, listed, number, overlap, p_text, points
from earmark.scores import Row, Scores

SURE = 0.05


@dataclass(frozen=True)
class Finding:
    """The best representation of a subset, the others that its interval does not tell from it, and its fate across
    groups."""

    subset: Subset
    best: Representation
    row: Row
    rivals: list[Representation]
    others: int
    judged: bool
    across: Row | None


def findings(scores: Scores) -> list[Finding]:
    """One for each subset that has a value of the headline metric."""
    metric = reading.headline(scores)
    across = reading.values(scores, metric, "across_groups")
    found = []
    for place, rows in reading.values(scores, metric).items():
        (best, row), *rest = reading.ranked(rows)
        verdicts = [(line, overlap(row, other)) for line, other in rest]
        found.append(
            Finding(
                subset=place,
                best=best,
                row=row,
                rivals=[line for line, close in verdicts if close],
                others=len(rest),
                judged=bool(verdicts) and all(close is not None for _, close in verdicts),
                across=across.get(place, {}).get(best),
            )
        )
    return found


def above_chance(row: Row) -> bool | None:
    """Whether the row is surely better than chance; None where no permutations say so."""
    return None if row.p_value is None else row.p_value <= SURE


def lead(scores: Scores) -> list[str]:
    """The opening: one paragraph as a list of sentences."""
    found = findings(scores)
    if not found:
        return ["No representation has a score: the tables below say why."]
    metric = reading.headline(scores)
    sentences = [_meaning(metric), _overall(found, scores, metric)]
    sentences += [_chance(found, metric), _sureness(found), _groups(found, metric)]
    return [sentence for sentence in sentences if sentence]


_MEANINGS = {
    "P@1": "The question is how often a clip's nearest neighbour is a clip of the same class (P@1).",
    "GSR": "The question is how far a clip lies from other classes compared with its own (GSR).",
}


def _meaning(metric: str) -> str:
    return _MEANINGS.get(metric, f"The leading metric is {metric}.")


def _measured(row: Row) -> str:
    """45.2 % [41.0, 49.1], n = 300"""
    said = " ".join(filter(None, [number(row.value or 0.0, row.metric, unit=True), interval(row)]))
    return said if row.n is None else f"{said}, n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{row.n}"


def _overall(found: list[Finding], scores: Scores, metric: str) -> str:
    count = len({line.best for line in found})
    if len(found) == 1:
        (only,) = found
        if not only.others:
            return f"{only.best.label} reaches {_measured(only.row)} on {only.subset.label}."
        return f"On {only.subset.label}, {only.best.label} does best of {only.others + 1}: {_measured(only.row)}."
    wins = Counter(finding.best for finding in found)
    winner, won = wins.most_common(1)[0]
    values = reading.values(scores, metric)
    means = reading.mean_over_subsets(values)
    top = reading.best_on_average(values, metric)
    total = sum(row.n or 0 for row in (rows[top] for rows in values.values())) if top else 0
    clips = f", {total} queries" if total else ""
    mean = f"{number(means[top], metric, unit=True)} averaged over {len(found)} subsets{clips}" if top else ""
    if count == 1:
        return f"{winner.label} does best on all {len(found)} subsets ({mean})." if top == winner else (
            f"{winner.label} does best on all {len(found)} subsets."
        )  # fmt: skip
    if top is None:
        return f"{winner.label} does best on {won} of {len(found)} subsets; no representation has a value on all."
    first = f"{top.label} does best on the whole ({mean})"
    if top == winner:
        return f"{first}, and on {won} of the {len(found)} subsets by itself."
    return f"{first}; {winner.label} wins the most single subsets, {won} of {len(found)}."


def champion(scores: Scores) -> str | None:
    """The name the opening is about."""
    found = findings(scores)
    if len(found) == 1:
        return found[0].best.label
    metric = reading.headline(scores)
    top = reading.best_on_average(reading.values(scores, metric), metric)
    return top.label if top else None


def _chance(found: list[Finding], metric: str) -> str:
    known = [finding for finding in found if finding.row.lift is not None]
    if not known:
        return "Chance was not measured (no permutations), so how far above it these values lie is not known."
    unsure = [finding.subset.label for finding in known if above_chance(finding.row) is False]
    lifts = [finding.row.lift or 0.0 for finding in known]
    if len(known) == 1:
        row = known[0].row
        chance = number(row.baseline or 0.0, metric, unit=True)
        said = f"That is {points(lifts[0], metric)} {_from(metric)} chance ({chance}"
        said += f", {p_text(row.p_value)})" if row.p_value is not None else ")"
        return said + (
            ", which shuffled labels reach as well: it is not distinguishable from chance." if unsure else "."
        )
    low, high = min(lifts), max(lifts)
    span = f"{number(low, metric, sign=True)} to {points(high, metric)}"
    said = f"The best of each subset lies {span} {_from(metric)} chance"
    if unsure:
        return f"{said}; on {listed(unsure)} it is not distinguishable from chance."
    return said + ", everywhere more than shuffled labels explain." if len(known) == len(found) else said + "."


def _from(metric: str) -> str:
    return "above" if facts(metric).higher_is_better else "from"


def _sureness(found: list[Finding]) -> str:
    contested = [finding for finding in found if finding.others]
    if not contested:
        return ""
    judged = [finding for finding in contested if finding.judged]
    if not judged:
        return "There are no intervals, so which differences between representations are real cannot be judged."
    close = [finding for finding in judged if finding.rivals]
    if not close:
        return "Its lead over every other representation is larger than the intervals." if len(judged) == 1 else (
            "In each subset the lead of the best over all others is larger than the intervals."
        )  # fmt: skip
    if len(judged) == 1:
        names = [line.label for line in close[0].rivals]
        more = listed(names) if len(names) <= 3 else f"{listed(names[:2])} and {len(names) - 2} more"
        return f"The lead is smaller than the intervals: {more} may be as good."
    clear = [finding.subset.label for finding in judged if not finding.rivals]
    if not clear:
        where = f"On none of the {len(judged)} subsets"
        return f"{where} is the lead of the best larger than the intervals: others may be as good."
    return f"The lead of the best is larger than the intervals on {listed(clear)}; elsewhere others may be as good."


def _groups(found: list[Finding], metric: str) -> str:
    drops = [
        (finding, (finding.across.value or 0.0) - (finding.row.value or 0.0))
        for finding in found
        if finding.across is not None
    ]
    if not drops:
        return ""
    turned = 1 if facts(metric).higher_is_better else -1
    finding, most = min(drops, key=lambda item: turned * item[1])
    assert finding.across is not None
    if len(drops) == 1:
        fate = "falls to" if turned * most < 0 else "stands at"
        return (
            f"When neighbours from the same group (speaker, animal, recording) are left out it {fate} "
            f"{_measured(finding.across)}, {points(most, metric)}."
        )
    if turned * most >= 0:
        return "Leaving out neighbours from the same group (speaker, animal, recording) lowers none of these values."
    return (
        "Leaving out neighbours from the same group (speaker, animal, recording) costs most on "
        f"{finding.subset.label}: {points(most, metric)}, to {_measured(finding.across)}."
    )


def verdict(finding: Finding) -> str:
    """Whether the best of a subset is surely the best, in a few words."""
    if not finding.others:
        return "the only one"
    if not finding.judged:
        return "not judged: no intervals"
    if not finding.rivals:
        return f"clear of all {finding.others} others"
    return f"undecided against {len(finding.rivals)} of {finding.others}"
