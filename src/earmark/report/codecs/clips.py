"""The worst clips of a codec page, to look at and to hear: before, after, and what changed."""

from __future__ import annotations

from earmark.report import audio_player
from earmark.report.audio_player import Sound
from earmark.report.codecs.content import CodecReport, Heard, WorstClip
from earmark.report.codecs.text import shown_value
from earmark.report.figures.codecs import difference_png
from earmark.report.figures.points import spectrogram_png
from earmark.tables import plain
from earmark.tables.html import Child, Html, image, paragraph, section, tag

__all__ = ["worst"]

_FEWEST_CHARACTERS = 9_000


def worst(report: CodecReport) -> Html | None:
    """A row of three pictures for each clip: the reference, the coded clip, and the difference."""
    if not report.worst:
        return None
    room = report.sound_budget // (2 * len(report.worst))
    made = [_clip(one, room) for one in report.worst]
    note = paragraph(
        "For each codec the clip it did worst on. Red is level that the codec added, blue what it took away, 24 dB at "
        "the darkest. Both sounds are cut to the same span and scaled alike.",
        class_="quiet",
    )
    return section("worst", "The worst clips", note, made)


def _clip(one: WorstClip, room: int) -> Html:
    said = paragraph(
        tag("b", one.system), f" on {plain(one.id, 80)} of {one.subset}: {one.metric} ",
        f"{shown_value(one.value, one.metric)}, where its mean is {shown_value(one.mean, one.metric)}.",
    )  # fmt: skip
    try:
        heard = one.fetch()
    except Exception as error:  # whatever a file or a stranger's codec does, the report is written
        return tag(
            "div", said, paragraph(f"no sound: {plain(str(error) or type(error).__name__, 160)}", class_="small")
        )
    before, after = _cut(heard)
    cards = [
        _card("reference", before, room, f"{one.id}, reference"),
        _card(one.system, after, room, f"{one.id}, {one.system}"),
        tag(
            "div",
            tag("b", "difference"),
            image(difference_png(before.samples, after.samples, before.rate), f"What {one.system} changed"),
            tag("span", "red: added, blue: lost", class_="small"),
            class_="clip",
        ),
    ]
    return tag("div", said, tag("div", cards, class_="clips"), class_="retrieval")


def _cut(heard: Heard) -> tuple[Sound, Sound]:
    """The loudest seconds of the reference, and the same seconds of the coded clip at the same scale."""
    before = audio_player.cut(heard.reference, heard.rate)
    first = round(before.start * heard.rate)
    part = heard.reference[first : first + len(before.samples)]
    peak = float(abs(part).max(initial=0.0)) or 1.0
    after = heard.coded[first : first + len(before.samples)] / peak
    return before, Sound(after.astype("float32"), heard.rate, before.start, before.whole)


def _card(name: str, sound: Sound, room: int, spoken: str) -> Html:
    parts: list[Child] = [
        tag("b", name),
        image(spectrogram_png(sound.samples, sound.rate, sound.seconds), f"Spectrogram of {spoken}"),
        tag("span", f"0–{sound.rate / 2000:g} kHz, 0–{sound.seconds:.2f} s", class_="small"),
    ]
    made = audio_player.player(sound, room) if room >= _FEWEST_CHARACTERS else None
    if made is None:
        parts.append(tag("span", "not playable here: the report would grow too large", class_="small"))
    else:
        parts.append(tag("audio", controls=True, preload="none", src=made.uri, aria_label=f"Play {spoken}"))
        parts.append(tag("span", made.remark, class_="small") if made.remark else None)
    return tag("div", parts, class_="clip query" if name == "reference" else "clip")
