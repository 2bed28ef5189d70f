"""HTML out of Python values. Text is escaped unless it is `Html`, and only this file makes `Html` out of text."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from earmark.tables._text import plain

_VOID = frozenset({"img", "input", "meta", "br"})
_SPACES = "\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child = Html | str | None


def trusted(markup: str) -> Html:
    """Markup made by Earmark itself, such as a drawn figure."""
    return Html(markup)


def text(value: str) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(_visible(value)))


def _visible(value: str) -> str:
    """Control characters, which HTML forbids, as question marks; lines, tabs and narrow spaces stay."""
    return "".join(mark if mark.isprintable() or mark in _SPACES else "?" for mark in value)


def tag(name: str, /, *children: Child | Iterable[Child], **attributes: str | bool | None) -> Html:
    """An element: `tag("a", "here", href="#there", class_="quiet")`. None is nothing, True a bare attribute."""
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(*children)}</{name}>")


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    spelled = key.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{html.escape(plain(value, 100_000_000))}"'


def join(*children: Child | Iterable[Child], between: str = "") -> Html:
    parts: list[str] = []
    for child in children:
        if isinstance(child, str):
            parts.append(text(child))
        elif child is not None:
            parts += [text(item) for item in child if item is not None]
    return Html(between.join(parts))


def paragraph(*children: Child, class_: str | None = None) -> Html:
    return tag("p", *children, class_=class_)


def bullets(items: Iterable[Child], class_: str | None = None) -> Html:
    return tag("ul", [tag("li", item) for item in items if item is not None], class_=class_)


def section(name: str, title: str, *children: Child | Iterable[Child]) -> Html:
    return tag("section", tag("h2", title), *children, id=name)


def folded(title: Child, *children: Child, open_: bool = False) -> Html:
    """A part that opens on a click, without any script."""
    return tag("details", tag("summary", title), tag("div", *children, class_="inside"), open=open_)


def drawing(picture: str, *caption: Child, wide: bool = False) -> Html:
    """A figure and its caption; `wide` ones keep their size on a phone and are scrolled."""
    frame = tag("div", trusted(picture), class_="drawing wide" if wide else "drawing")
    return tag("figure", frame, tag("figcaption", *caption))


def image(data: bytes, description: str, media: str = "image/png", class_: str | None = None) -> Html:
    uri = f"data:{media};base64,{base64.b64encode(data).decode()}"
    return tag("img", src=uri, alt=description, class_=class_, loading="lazy")


def table(
    heads: Sequence[Child],
    lines: Iterable[Sequence[Html | str]],
    *,
    left: int = 1,
    words: int = 0,
    caption: Child = None,
    sortable: bool = True,
    filterable: bool = False,
) -> Html:
    """A table; the first `left` and the last `words` columns are words, the others numbers.

    A cell that is a `<td>` already is kept as it is.
    """
    right = range(left, len(heads) - words)
    top = tag("tr", [tag("th", head, scope="col", class_="n" if n in right else None) for n, head in enumerate(heads)])
    body = [
        tag("tr", [_cell(cell, n, right) for n, cell in enumerate(line)])
        for line in lines
    ]  # fmt: skip
    made = tag(
        "table",
        tag("thead", top),
        tag("tbody", body),
        class_="sortable" if sortable and len(body) > 1 else None,
        data_filter="yes" if filterable and len(body) > 8 else None,
    )
    # Above the frame, not inside: a caption must not scroll away with a wide table.
    return join(paragraph(caption, class_="caption") if caption else None, tag("div", made, class_="scroll"))


def _cell(cell: Html | str, place: int, right: range) -> Html:
    if isinstance(cell, Html) and cell.startswith("<td"):
        return cell
    if place == 0:
        return tag("th", cell, scope="row")
    return tag("td", cell, class_="n" if place in right else None)


def pairs(items: Iterable[tuple[str, Child]]) -> Html:
    """Terms and what they are."""
    return tag("dl", [join(tag("dt", name), tag("dd", value)) for name, value in items])
