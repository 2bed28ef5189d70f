"""The part of a report about hubness corrections: every representation before and after."""

from __future__ import annotations

from earmark.report import figures, reading
from earmark.report.figures.hubness import Cells, before_after, before_after_lines
from earmark.report.reading import ACROSS, ALL, facts, number, points
from earmark.scores import Row, Scores
from earmark.tables.html import Child, Html, drawing, folded, paragraph, section, table, tag

_DRAWN = 36
_OPEN = 12
_CAPTION = "Without correction, then with each; bold is better than without, and under a value stands the difference."


def has_corrections(scores: Scores) -> bool:
    return bool(before_after_lines(scores, protocol=reading.main_protocol(scores))[0])


def before_and_after(scores: Scores) -> Html | None:
    """The figure and the table; nothing where no representation was measured with and without a correction."""
    main = reading.main_protocol(scores)
    lines, corrections, names = before_after_lines(scores, protocol=main)
    if not lines:
        return None
    others = [name for name in corrections if name != "none"]
    said = (
        "A hub is a clip in many neighbour lists. Corrections rescale distances so that lists come out more even;"
        " labels play no part in them. Fewer hubs do not have to mean better neighbours:"
        f" {names[0]} says whether they do."
    )
    caption = (
        f"Grey: no correction; in colour: {reading.listed(others)}. hub_ratio is how much more often than the average"
        " the busiest hundredth of clips is listed, antihub_rate the share of clips in no list."
    )
    if len(lines) > _DRAWN:
        caption += f" The first {_DRAWN} of {len(lines)} are drawn; the table has all."
    if main == ACROSS:
        caption += " Neighbours come from other groups."
    figure = before_after(scores, protocol=main)
    picture = figures.as_svg(figure, "before and after", "Scores before and after correction")
    made = [_table(lines, others, names)]
    if len(lines) > _OPEN:
        made = [folded(f"All {len(lines)} representations before and after", *made)]
    over_all = before_after_lines(scores, protocol=ALL) if main == ACROSS else ({}, [], [])
    if over_all[0]:
        made.append(folded("The same, over all pairs", _table(over_all[0], others, over_all[2])))
    return section(
        "corrected", "Before and after correction",
        paragraph(said), drawing(picture, caption, wide=True), made,
    )  # fmt: skip


def _table(lines: dict[str, Cells], others: list[str], names: list[str]) -> Html:
    heads: list[Child] = ["representation"]
    for name in names:
        arrow = "↑" if facts(name).higher_is_better else "↓"
        heads += [f"{name}{' (%)' if facts(name).percent else ''} {arrow}", *others]
    body = []
    for label, cells in lines.items():
        line: list[Html | str] = [label]
        for name in names:
            found = cells.get(name, {})
            line.append(_cell(found.get("none"), None))
            line += [_cell(found.get(other), found.get("none")) for other in others]
        body.append(line)
    return table(heads, body, caption=_CAPTION)


def _cell(row: Row | None, before: Row | None) -> Html | str:
    if row is None or row.value is None:
        return "–"
    change = None
    better = False
    if before is not None and before.value is not None:
        change = tag("small", points(row.value - before.value, row.metric))
        better = reading.goodness(row) > reading.goodness(before)
    shown = number(row.value, row.metric)
    return tag(
        "td", tag("span", shown, class_="best") if better else shown, change, class_="n", data_value=repr(row.value)
    )
