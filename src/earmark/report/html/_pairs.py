"""All pairs: every representation of a subset against every other, on the same clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earmark.report.answer import SURE
from earmark.report.content import ReportData
from earmark.report.html._results import number_cell
from earmark.report.metric_text import interval, number, points
from earmark.report.ranking import Ranking
from earmark.report.score_index import PROTOCOLS, Representation, Subset, ranked
from earmark.scores import Row
from earmark.tables import p_value_text
from earmark.tables.html import Html, folded, join, paragraph, section, tag
from earmark.wording import counted

MOST = 12
"""Representations that a matrix shows: more would not be read."""
_OPEN = 3  # subsets whose matrix is unfolded


def all_pairs(data: ReportData) -> Html | None:
    """A matrix for each subset; None where no pairs were compared, or one pair alone, which the answer tells."""
    ranking = data.ranking
    metric = ranking.index.headline
    made: list[Html] = []
    for place, rows in ranking.index.values(metric).items():
        order = ranked(rows)
        pairs = _pairs(ranking, order)
        if len(order) > 2 and pairs:
            part = _matrix(place, order, pairs)
            made.append(part if len(made) < _OPEN else folded(f"All pairs on {place.label}", part))
    if not made:
        return None
    said = (
        f"Each cell is the {metric} of its row minus that of its column, in points, on the same clips. Filled: the "
        "difference is larger than other clips, or groups, would explain, after correction for the number of pairs; "
        "the others are open. “comparisons.csv” has every pair with interval and p-value, and “earmark compare” "
        "gives the same for other metrics."
    )
    return section("pairs", "All pairs", paragraph(said), made)


_Pairs = Mapping[tuple[Representation, Representation], Row]


def _pairs(ranking: Ranking, order: Sequence[tuple[Representation, Row]]) -> _Pairs:
    """The better minus the worse of every pair that was compared."""
    found = {}
    for number_, (better, first) in enumerate(order):
        for worse, second in order[number_ + 1 :]:
            row = ranking.pair(first, second)
            if row is not None and row.value is not None:
                found[better, worse] = row
    return found


def _matrix(place: Subset, order: Sequence[tuple[Representation, Row]], pairs: _Pairs) -> Html:
    shown = [name for name, _ in order[:MOST]]
    protocol = order[0][1].protocol
    sure = sum(row.p_value is not None and row.p_value < SURE for row in pairs.values())
    differ = "differs" if sure == 1 else "differ"
    caption = f"{place.label}, {PROTOCOLS.get(protocol, protocol)}: {sure} of {counted(len(pairs), 'pair')} {differ}."
    if len(order) > MOST:
        caption += f" The best {MOST} of {len(order)} representations are shown."
    body = []
    for rank, (name, row) in enumerate(order[: len(shown)], start=1):
        head = tag("th", tag("span", str(rank), class_="rank"), name.label, scope="row")
        value = number_cell(number(row.value or 0.0, row.metric), row.value or 0.0)
        body.append([head, value, *(_cell(pairs.get((name, other))) for other in shown[1:])])
    heads = ["representation", order[0][1].metric, *(str(rank) for rank in range(2, len(shown) + 1))]
    top = tag("tr", [tag("th", head, scope="col", class_="n" if n else None) for n, head in enumerate(heads)])
    grid = tag("table", tag("thead", top), tag("tbody", [tag("tr", row) for row in body]), class_="pairs")
    return join(paragraph(caption, class_="caption"), tag("div", grid, class_="scroll"))


def _cell(row: Row | None) -> Html:
    if row is None or row.value is None:
        return tag("td", class_="n none")
    sure = row.p_value is not None and row.p_value < SURE
    about = [points(row.value, row.metric), interval(row), p_value_text(row.p_value) if row.p_value is not None else ""]
    return tag(
        "td", number(row.value, row.metric, sign=True), class_="n sure" if sure else "n open",
        title=" ".join(filter(None, about)),
    )  # fmt: skip
