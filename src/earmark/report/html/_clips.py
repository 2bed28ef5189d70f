"""The closer look: the map of the clips, which classes are confused, and the worst retrievals to look at and hear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from earmark.errors import EarmarkError
from earmark.report import figures
from earmark.report._audio_player import Sound, cut, player
from earmark.report._neighbours import (
    Confusions,
    Neighbour,
    Retrieval,
    confusions_of,
    hubs,
    nearest_rows,
    retrieve,
    top_confusions,
    worst_queries,
)
from earmark.report._projection import project
from earmark.report.content import CloseUp, ReportData
from earmark.report.figures._points import MOST_CLASSES, MOST_COLOURS
from earmark.report.html._parts import part_tables
from earmark.report.html._results import number_cell
from earmark.tables import MISSING, plain
from earmark.tables.html import Child, Html, drawing, folded, image, join, paragraph, section, table, tag
from earmark.wording import counted, first_of

WORST = 4
NEIGHBOURS = 3
WORST_OF_OTHERS = 2
NEIGHBOURS_OF_OTHERS = 2
_FEWEST_CHARACTERS = 9_000
_SIDE_BY_SIDE = 14  # classes of a matrix that is legible at half the width


def closer_look(data: ReportData) -> Html | None:
    """A part for each close-up, and the other systems in short, folded away; None when there are none."""
    if not data.close_ups:
        return None
    worst = [retrieve(item, worst_queries(item, WORST), NEIGHBOURS) for item in data.close_ups]
    players = sum(
        1 + len(found.neighbours)
        for item, retrievals in zip(data.close_ups, worst, strict=True)
        for found in retrievals
        if item.fetch
    )
    others = len(data.others) * WORST_OF_OTHERS * (1 + NEIGHBOURS_OF_OTHERS)
    room = data.sound_budget // (players + others) if players else 0
    count = len(data.close_ups)
    what = "the one representation below" if count == 1 else f"the {count} representations below"
    said = (
        f"Scores are averages. For {what}: where the clips lie, which classes are taken for which, and the retrievals"
        " that went most wrong."
    )
    command = tag("code", "earmark map RUN")
    onwards = join("All clips of a run, to click and to hear: ", command, " makes a map of them in a page of its own.")
    parts = []
    for number, (item, retrievals) in enumerate(zip(data.close_ups, worst, strict=True)):
        found = confusions_of(item)
        side = "side" if len(found.classes) <= _SIDE_BY_SIDE else None
        parts.append(
            tag(
                "article",
                tag("h3", item.heading),
                tag("div", _map(item, number, data.seed), _matrix(found, number), class_=side),
                _confusion_table(found),
                _hub_table(item),
                _worst(item, retrievals, room),
            )
        )
    opening = join(paragraph(said), paragraph(onwards, class_="quiet"))
    return section("closer", "A closer look", opening, parts, _other_systems(data, room))


def _other_systems(data: ReportData, room: int) -> Html | None:
    """The systems that are not the best, each under a fold; what is not here has a command."""
    looks = [folded(look.heading, _in_short(look.open, room)) for look in data.others]
    if not looks and not data.unseen:
        return None
    unseen = (
        f"Not shown here: {first_of(list(data.unseen), 4)}. “earmark report RUN --system NAME” puts any system in the "
        "place of the best."
    )
    return join(
        tag("h3", "Other systems") if looks else None,
        looks,
        paragraph(unseen, class_="quiet") if data.unseen else None,
    )


def _in_short(open_: Callable[[], CloseUp], room: int) -> Html:
    """Groups, classes, confusions and the worst retrievals of one representation."""
    try:
        item = open_()
    except EarmarkError as error:
        return paragraph(f"There is no closer look: {error}", class_="quiet")
    retrievals = retrieve(item, worst_queries(item, WORST_OF_OTHERS), NEIGHBOURS_OF_OTHERS)
    return join(_confusion_table(confusions_of(item)), part_tables(item), _worst(item, retrievals, room))


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
        f"Map of {len(placed.rows)} clips ({placed.method}{'; ' + placed.note if placed.note else ''}), coloured by "
        "class. A red rim marks a clip whose nearest neighbour is of another class."
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
        "In percent of a class's clips (row): the class of the nearest neighbour (column). Blue is right, orange is"
        " wrong; classes that are taken for each other stand side by side, so an orange block is a family of sounds."
    )
    if len(found.classes) > MOST_CLASSES:
        caption += f" The {MOST_CLASSES} most confused of {len(found.classes)} classes."
    return drawing(figures.as_svg(figure, f"confusion {number}", "Confusion of classes"), caption)


def _confusion_table(found: Confusions) -> Html | None:
    pairs = top_confusions(found, 8)
    total, wrong = int(found.clips.sum()), found.wrong
    if not total:
        return None
    if not pairs:
        return paragraph(f"No clip of {total} has a nearest neighbour of another class.")
    lines: list[list[Html | str]] = []
    for pair in pairs:
        share = number_cell(f"{100 * pair.clips / pair.size:.0f} %", pair.clips / pair.size)
        lines.append([pair.true, pair.taken_for, share, f"{pair.clips} of {pair.size}"])
    have = "has" if wrong == 1 else "have"
    caption = (
        f"Most frequent confusions. {wrong} of {counted(total, 'clip')} ({100 * wrong / total:.1f}\N{NO-BREAK SPACE}%) "
        f"{have} a nearest neighbour of another class."
    )
    return table(["class", "taken for", "of its clips", "clips"], lines, left=2, caption=caption)


def _hub_table(item: CloseUp) -> Html | None:
    found = hubs(item)
    if not found:
        return None
    measured = any(hub.occurrences is not None for hub in found)
    heads = ["hub", "class", "nearest of", "of them wrong", *([f"among the {item.hub_k} nearest of"] * measured)]
    lines = []
    for hub in found:
        line = [item.ids[hub.row], item.labels[hub.row] or "", counted(hub.times, "clip"), str(hub.wrong)]
        lists = MISSING if hub.occurrences is None else counted(hub.occurrences, "clip")
        lines.append([*line, *([lists] * measured)])
    caption = (
        "Hubs: clips that many others have for nearest neighbour, where one would be expected. Where most are wrong,"
        " listen for something shared that is not the class, such as background noise or silence."
    )
    return table(heads, lines, left=2, caption=caption)


# --- the worst retrievals -------------------------------------------------------------------------------------------


def _worst(item: CloseUp, retrievals: Sequence[Retrieval], room: int) -> Html | None:
    if not retrievals:
        return None
    ways = "No sounds were given with these clips."
    if item.fetch:
        ways = "Listen before you blame the representation: labels, cuts and recordings fail too."
    said = (
        "Clips whose nearest neighbour is of another class, the most misplaced first, one for each pair of classes. "
        f"Beside the query stand its nearest neighbours in order. {ways}"
    )
    shown = [_retrieval(item, found, room) for found in retrievals]
    return join(tag("h4", "The worst retrievals"), paragraph(said, class_="quiet"), shown)


def _retrieval(item: CloseUp, found: Retrieval, room: int) -> Html:
    rows = [found.row, *(neighbour.row for neighbour in found.neighbours)]
    sounds = {row: _sound(item, row) for row in rows}
    longest = max((sound.seconds for sound in sounds.values() if isinstance(sound, Sound)), default=0.0)
    cards = [_card(item, found.row, None, sounds[found.row], longest, room)]
    cards += [_card(item, near.row, near, sounds[near.row], longest, room) for near in found.neighbours]
    taken = item.labels[found.neighbours[0].row] or "a clip without a label"
    own = ""
    if found.own is not None and found.own_rank is not None and found.own.distance is not None:
        own = (
            f"The nearest clip of its own class comes at rank {found.own_rank} of {found.candidates}, at distance "
            f"{found.own.distance:.3g} ({plain(item.ids[found.own.row], 60)})."
        )
    said = paragraph("A clip of ", tag("b", item.labels[found.row] or ""), " taken for ", tag("b", taken), ". ", own)
    return tag("div", said, tag("div", cards, class_="clips"), class_="retrieval")


def _sound(item: CloseUp, row: int) -> Sound | str:
    """The clip cut for the page, or why there is none."""
    if item.fetch is None:
        return ""
    try:
        samples, rate = item.fetch(row)
        return cut(samples, rate) if len(samples) else "no sound: the clip is empty"
    except Exception as error:  # whatever a file or a stranger's function does, the report is written
        return f"no sound: {plain(str(error) or type(error).__name__, 160)}"


def _card(item: CloseUp, row: int, near: Neighbour | None, sound: Sound | str, longest: float, room: int) -> Html:
    label = item.labels[row] or "no label"
    parts: list[Child] = [tag("b", label)]
    if near is None:
        parts.append(tag("span", "query"))
    else:
        parts.append(
            tag("span", "same class" if near.same else "other class", class_="right" if near.same else "wrong")
        )
    if isinstance(sound, Sound):
        parts += sound_parts(sound, longest, room, f"a clip of {label}", f"{label}, {item.ids[row]}")
    elif sound:
        parts.append(small(sound))
    distance = f"distance {near.distance:.3g}" if near and near.distance is not None else ""
    group = item.groups[row] if item.groups is not None else None
    where = " · ".join(filter(None, [distance, group]))
    parts += [small(item.ids[row]), small(where) if where else None]
    return tag("div", parts, class_="clip query" if near is None else "clip")


def small(text: str) -> Html:
    return tag("span", text, class_="small")


def sound_parts(sound: Sound, seconds: float, room: int, drawn: str, played: str) -> list[Child]:
    """A sound as its spectrogram, which spans `seconds`, and as a player of at most `room` characters."""
    parts: list[Child] = [
        image(figures.spectrogram_png(sound.samples, sound.rate, seconds), f"Spectrogram of {drawn}"),
        small(f"0–{sound.rate / 2000:g} kHz, 0–{seconds:.2f} s"),
    ]
    made = player(sound, room) if room >= _FEWEST_CHARACTERS else None
    if made is None:
        return [*parts, small("not playable here: the report would grow too large")]
    parts.append(tag("audio", controls=True, preload="none", src=made.uri, aria_label=f"Play {played}"))
    return [*parts, small(made.remark) if made.remark else None]
