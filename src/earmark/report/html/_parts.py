"""Which groups and classes fare worst: speakers, birds or recordings, and labels, of one representation."""

from __future__ import annotations

from earmark.errors import InputError
from earmark.report.content import CloseUp, ReportData
from earmark.report.parts import TESTED, By, Parts, parts_of
from earmark.tables.html import Html, join, paragraph, section, tag

MOST = 10
"""Lines that are shown: the lowest, which are worth listening to."""


def groups_and_classes(data: ReportData) -> Html | None:
    """A part for each close-up; None where nothing is known of single clips."""
    parts = [(item, part_tables(item)) for item in data.close_ups]
    made = [tag("article", tag("h3", item.heading), part) for item, part in parts if part]
    if not made:
        return None
    said = (
        f"The lowest first. In brackets the 95 % interval of {TESTED}, each clip counted as a draw of its own. "
        f"“Elsewhere” is the {TESTED} of the same classes in other groups, or of the other classes; p asks whether "
        "dealing out the clips at random would give as large a difference, corrected for the number of lines. What is "
        "bold stands out. “earmark tables RUN --kind groups,classes” has every line, of any system."
    )
    return section("groups", "Which groups and classes fare worst?", paragraph(said, class_="quiet"), made)


def part_tables(item: CloseUp) -> Html | None:
    """The groups and the classes of a close-up, as far as there are several."""
    made = [_table(parts) for by in ("group", "class") if (parts := _parts(item, by)) is not None and len(parts) > 1]
    return join(made) if made else None


def _parts(item: CloseUp, by: By) -> Parts | None:
    try:
        return parts_of(item.per_point, item.labels, item.groups, by, protocol=item.protocol)
    except InputError:
        return None


def _table(parts: Parts) -> Html:
    cut = f" The lowest {MOST} of {len(parts)} are shown." if len(parts) > MOST else ""
    return join(paragraph(" ".join(parts.sentences()) + cut), parts.table(MOST).to_html(sortable=True))
