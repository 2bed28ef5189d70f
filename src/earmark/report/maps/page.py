"""The map as one HTML file: the values as JSON, the controls as plain elements, and a script that joins the two."""

from __future__ import annotations

from earmark.report.html._shell import footer, whole_page
from earmark.report.maps._packing import as_json, pack
from earmark.report.maps._sounds import Sounds
from earmark.report.maps.content import MapContent
from earmark.tables.html import Child, Html, folded, join, paragraph, tag, trusted
from earmark.wording import counted

SCRIPTS = ("map_data.js", "map_plane.js", "map_panel.js", "map_start.js")
STYLES = ("report.css", "map.css")
LINKED = "data: 'self' file:"
"""Where linked sounds may come from: the page's own place alone."""

_KEYS = (
    ("Arrows", "go to the next clip in that direction; with Shift, move the map"),
    ("+ and −, 0", "zoom; the whole map"),
    ("Enter or Space", "hear the chosen clip"),
    ("1 to 9", "go to that neighbour of the chosen clip"),
    ("Backspace", "go back to the clip before"),
    ("L", "draw a loop around clips; again, move the map"),
    ("Escape", "let go of clip, loop and search"),
)


def render_map(content: MapContent, sounds: Sounds) -> str:
    """The page as text: the same content gives the same text."""
    return whole_page(
        content.title,
        content.version,
        _header(content),
        tag("noscript", paragraph("This map is drawn by a script inside the page: allow it to run.")),
        _controls(),
        tag("div", _plane(), _side(), class_="stage"),
        tag("p", id="told", class_="quiet"),
        [paragraph(note, class_="quiet") for note in (*content.notes, sounds.note) if note],
        _table(),
        folded("Keys", tag("dl", [join(tag("dt", key), tag("dd", what)) for key, what in _KEYS])),
        footer(content.version) if sounds.kind != "linked" else _linked_footer(content.version),
        tag("p", id="status", role="status", class_="unseen"),
        _json("map-data", pack(content)),
        _json("map-sounds", _sounds(sounds)),
        media=LINKED if sounds.kind == "linked" else "data:",
        styles=STYLES,
        scripts=SCRIPTS,
    )


def _json(name: str, text: str) -> Html:
    return tag("script", trusted(text), type="application/json", id=name)


def _sounds(sounds: Sounds) -> str:
    rows = list(sounds.addresses)
    return as_json({
        "kind": sounds.kind, "rows": rows, "addresses": [sounds.addresses[row] for row in rows],
        "remarks": [sounds.remarks.get(row, "") for row in rows],
    })  # fmt: skip


def _header(content: MapContent) -> Html:
    labels = {label for label in content.clips.labels if label}
    line = [
        counted(len(content.clips), "clip"),
        counted(len(labels), "label") if labels else "no labels",
        content.views[0].title if len(content.views) == 1 else "",  # of several, the menu names the one that is shown
        f"Earmark {content.version}" if content.version else "",
    ]
    synthetic = None
    if content.synthetic:
        synthetic = tag(
            "div", tag("strong", "SYNTHETIC DATA."), " The sounds were computed, not recorded.",
            class_="synthetic", role="note",
        )  # fmt: skip
    about = paragraph(" · ".join(filter(None, line)), class_="meta")
    return tag("header", tag("h1", content.title), about, synthetic)


def _choice(name: str, title: str) -> Html:
    return tag("label", title, " ", tag("select", id=name), data_of=name)


def _button(name: str, text: str, title: str, pressed: bool | None = None) -> Html:
    state = None if pressed is None else str(pressed).lower()
    return tag("button", text, type="button", id=name, title=title, aria_label=title, aria_pressed=state)


def _controls() -> Html:
    search = tag("label", "Search ", tag("input", type="search", id="search", placeholder="clip, label, group, file"))
    choices: list[Child] = [_choice("view", "Vectors"), _choice("layout", "Places"), _choice("colour", "Colour")]
    count = tag("span", id="count", class_="quiet")
    return tag("div", *choices, search, count, class_="controls", role="group", aria_label="What the map shows")


def _plane() -> Html:
    tools = tag(
        "div",
        _button("loop", "Loop", "Draw a loop around clips", pressed=False),
        _button("closer", "+", "Closer"),
        _button("farther", "−", "Farther"),
        _button("whole", "Whole", "The whole map"),
        class_="tools",
    )
    canvas = tag(
        "canvas", id="map", tabindex="0", role="application", aria_describedby="told",
        aria_label="Map of clips. Arrow keys go from clip to clip; the table below the map lists them all.",
    )  # fmt: skip
    return tag("div", canvas, tools, tag("div", id="tip", hidden=True), class_="plane")


def _side() -> Html:
    return tag(
        "aside",
        tag("section", tag("h2", "Chosen clip"), tag("div", id="clip"), aria_label="Chosen clip"),
        tag("section", tag("h2", "Loop"), tag("div", id="loop-told"), id="looped", hidden=True, aria_label="Loop"),
        tag("section", tag("h2", "Colours", id="legend-title"), tag("div", id="legend"), aria_label="Colours"),
        class_="side",
        aria_label="Chosen clip and colours",
    )


def _table() -> Html:
    return tag(
        "details", tag("summary", "The clips as a table"), tag("div", id="table", class_="inside"), id="table-part"
    )


def _linked_footer(version: str) -> Html:
    by = f"Written by Earmark {version}".strip()
    return tag("footer", f"{by}. Sounds are played from files beside this one; nothing is loaded from a network.")
