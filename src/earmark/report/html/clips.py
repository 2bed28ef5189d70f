"""The closer look: the map of the clips, which classes are confused, and the worst retrievals to look at and hear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earmark.errors import EarmarkError
from earmark.report import audio_player, figures
from earmark.report.content import CloseUp, ReportData
from earmark.report.figures.points import MOST_CLASSES, MOST_COLOURS
from earmark.report.neighbours import (
    Confusions,
    Neighbour,
    Retrieval,
    confusions,
    hubs,
    nearest_rows,
    retrieve,
    top_confusions,
    worst_queries,
)
from earmark.report.projection import project
from earmark.tables import plain
from earmark.tables.html import Child, Html, drawing, image, join, paragraph, section, table, tag
from earmark.wording import counted

WORST = 4
NEIGHBOURS = 3
_FEWEST_CHARACTERS = 9_000
_SIDE_BY_SIDE = 14  # classes of a matrix that is legible at half the width


@dataclass(frozen=True)
class _Look:
    """A close-up with its worst retrievals chosen, so that the room for sounds can be shared out."""

    close_up: CloseUp
    retrievals: list[Retrieval]

    @property
    def sounds(self) -> int:
        return sum(1 + len(item.neighbours) for item in self.retrievals) if self.close_up.fetch else 0


def closer_look(data: ReportData) -> Html | None:
    """A part for each close-up; None when there are none."""
    if not data.close_ups:
        return None
    looks = [_Look(item, retrieve(item, worst_queries(item, WORST), NEIGHBOURS)) for item in data.close_ups]
    players = sum(look.sounds for look in looks)
    room = data.sound_budget // players if players else 0
    parts = [_close_up(look, number, room, data.seed) for number, look in enumerate(looks)]
    return section("closer", "A closer look", paragraph(_introduction(looks)), parts)


def _introduction(looks: Sequence[_Look]) -> str:
    what = "the one representation below" if len(looks) == 1 else f"the {len(looks)} representations below"
    return (
        f"Scores are averages. For {what}: where the clips lie, which classes are taken for"
        " which, and the retrievals that "
        "went most wrong."
    )


def _close_up(look: _Look, number: int, room: int, seed: int) -> Html:
    item = look.close_up
    found = confusions(item.labels, item.nearest)
    small = len(found.classes) <= _SIDE_BY_SIDE
    return tag(
        "article",
        tag("h3", item.label + (" (across groups)" if item.protocol == "across_groups" else "")),
        tag("div", _map(item, number, seed), _matrix(found, number), class_="side" if small else None),
        _confusion_table(found),
        _hub_table(item),
        _worst(look, room, found),
    )


# --- the map --------------------------------------------------------------------------------------------------------


def _map(item: CloseUp, number: int, seed: int) -> Html | None:
    if item.vectors is None or len(item.vectors) < 3:
        return None
    try:
        placed = project(item.vectors, seed, distance=item.distance)
    except EarmarkError as error:
        return paragraph(f"There is no map: {error}", class_="quiet")
    rows = nearest_rows(item.nearest)
    wrong = [row >= 0 and item.labels[place] != item.labels[row] for place, row in enumerate(rows)]
    figure = figures.projection(placed, item.labels, wrong=wrong)
    classes = len({label for label in item.labels if label})
    caption = (
        f"Map of {len(placed.rows)} clips"
        f" ({placed.method}{'; ' + placed.note if placed.note else ''}), coloured by class."
        " A red rim marks a clip whose nearest neighbour is of another class."
    )
    if placed.method == "t-SNE":
        caption += " Read who lies beside whom; sizes of islands and gaps between them mean little."
    if classes > MOST_COLOURS:
        caption += f" The {MOST_COLOURS} largest of {classes} classes have colours."
    if placed.kept is not None:
        caption += (
            f" {100 * placed.kept:.0f} % of the clips have their true nearest neighbour among their ten nearest here."
        )
    return drawing(figures.as_svg(figure, f"map {number}", f"Map of the clips of {item.label}"), caption)


# --- confusions -----------------------------------------------------------------------------------------------------


def _matrix(found: Confusions, number: int) -> Html | None:
    if len(found.classes) < 2:
        return None
    figure = figures.confusion(found)
    caption = (
        "In percent of a class's clips (row): the class of the nearest neighbour (column). Blue"
        " is right, orange is wrong; "
        "classes that are taken for each other stand side by side, so an orange block is a family of sounds."
    )
    if len(found.classes) > MOST_CLASSES:
        caption += f" The {MOST_CLASSES} most confused of {len(found.classes)} classes."
    return drawing(figures.as_svg(figure, f"confusion {number}", "Confusion of classes"), caption)


def _confusion_table(found: Confusions) -> Html | None:
    pairs = top_confusions(found, 8)
    total = int(found.counts.sum())
    if not total:
        return None
    wrong = total - int(np.trace(found.counts))
    if not pairs:
        return paragraph(f"No clip of {total} has a nearest neighbour of another class.")
    lines = [
        [pair.true, pair.taken_for, _td(f"{100 * pair.clips / pair.size:.0f} %", pair.clips / pair.size),
         f"{pair.clips} of {pair.size}"]
        for pair in pairs
    ]  # fmt: skip
    caption = (
        f"Most frequent confusions. {wrong} of {total} clips ({100 * wrong / total:.1f}\N{NO-BREAK SPACE}%) have a"
        " nearest neighbour of another "
        "class."
    )
    return table(["class", "taken for", "of its clips", "clips"], lines, left=2, caption=caption)


def _td(shown: str, value: float) -> Html:
    return tag("td", shown, class_="n", data_value=repr(float(value)))


def _hub_table(item: CloseUp) -> Html | None:
    found = hubs(item)
    if not found:
        return None
    measured = any(hub.occurrences is not None for hub in found)
    heads: list[Child] = ["hub", "class", "nearest of", "of them wrong"]
    heads += [f"among the {item.hub_k} nearest of"] if measured else []
    lines = []
    for hub in found:
        line: list[Html | str] = [
            item.ids[hub.row],
            item.labels[hub.row] or "",
            counted(hub.times, "clip"),
            str(hub.wrong),
        ]
        line += [counted(hub.occurrences, "clip") if hub.occurrences is not None else "–"] if measured else []
        lines.append(line)
    caption = (
        "Hubs: clips that many others have for nearest neighbour, where one would be expected. Where most are wrong,"
        " listen for something shared that is not the class, such as background noise or silence."
    )
    return table(heads, lines, left=2, caption=caption)


# --- the worst retrievals -------------------------------------------------------------------------------------------


def _worst(look: _Look, room: int, found: Confusions) -> Html | None:
    if not look.retrievals:
        return None
    shown = [_retrieval(look.close_up, item, room) for item in look.retrievals]
    ways = "Listen before you blame the representation: labels, cuts and recordings fail too." if look.sounds else (
        "No sounds were given with these clips."
    )  # fmt: skip
    return join(
        tag("h4", "The worst retrievals"),
        paragraph(
            "Clips whose nearest neighbour is of another class, the most misplaced first, one"
            " for each pair of classes. "
            f"Beside the query stand its nearest neighbours in order. {ways}",
            class_="quiet",
        ),
        shown,
    )


def _retrieval(item: CloseUp, found: Retrieval, room: int) -> Html:
    rows = [found.row, *(neighbour.row for neighbour in found.neighbours)]
    sounds = {row: _sound(item, row) for row in rows}
    longest = max((sound.seconds for sound in sounds.values() if isinstance(sound, audio_player.Sound)), default=0.0)
    cards = [_card(item, found.row, None, sounds[found.row], longest, room)]
    cards += [_card(item, near.row, near, sounds[near.row], longest, room) for near in found.neighbours]
    taken = item.labels[found.neighbours[0].row]
    names = tag("b", item.labels[found.row] or ""), tag("b", taken or "a clip without a label")
    said = join("A clip of ", names[0], " taken for ", names[1], ". ", _own_class(item, found))
    return tag("div", paragraph(said), tag("div", cards, class_="clips"), class_="retrieval")


def _own_class(item: CloseUp, found: Retrieval) -> str:
    if found.own is None or found.own_rank is None or found.own.distance is None:
        return ""
    return (
        f"The nearest clip of its own class comes at rank {found.own_rank} of {found.candidates}, at distance "
        f"{found.own.distance:.3g} ({plain(item.ids[found.own.row], 60)})."
    )


def _sound(item: CloseUp, row: int) -> audio_player.Sound | str:
    """The clip cut for the page, or why there is none."""
    if item.fetch is None:
        return ""
    try:
        samples, rate = item.fetch(row)
        if not len(samples):
            return "no sound: the clip is empty"
        return audio_player.cut(samples, rate)
    except Exception as error:  # whatever a file or a stranger's function does, the report is written
        return f"no sound: {plain(str(error) or type(error).__name__, 160)}"


def _card(
    item: CloseUp, row: int, near: Neighbour | None, sound: audio_player.Sound | str, longest: float, room: int
) -> Html:
    parts: list[Child] = []
    label = item.labels[row] or "no label"
    if isinstance(sound, audio_player.Sound):
        picture = figures.spectrogram_png(sound.samples, sound.rate, longest)
        parts.append(image(picture, f"Spectrogram of a clip of {label}"))
        parts.append(tag("span", f"0–{sound.rate / 2000:g} kHz, 0–{longest:.2f} s", class_="small"))
        parts += _player(sound, room, f"{label}, {item.ids[row]}")
    elif sound:
        parts.append(tag("span", sound, class_="small"))
    kind = "query" if near is None else "right" if near.same else "wrong"
    mark = "query" if near is None else "same class" if near.same else "other class"
    name = tag("b", label)
    group = item.groups[row] if item.groups is not None else None
    where = " · ".join(
        filter(None, [f"distance {near.distance:.3g}" if near and near.distance is not None else "", group])
    )
    parts = [
        name,
        tag("span", mark, class_=None if near is None else kind),
        *parts,
        tag("span", item.ids[row], class_="small"),
        tag("span", where, class_="small") if where else None,
    ]
    return tag("div", parts, class_="clip query" if near is None else "clip")


def _player(sound: audio_player.Sound, room: int, name: str) -> list[Html]:
    made = audio_player.player(sound, room) if room >= _FEWEST_CHARACTERS else None
    if made is None:
        return [tag("span", "not playable here: the report would grow too large", class_="small")]
    remark = [tag("span", made.remark, class_="small")] if made.remark else []
    return [tag("audio", controls=True, preload="none", src=made.uri, aria_label=f"Play {name}"), *remark]
