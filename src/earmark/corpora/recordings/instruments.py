"""Notes of instruments, from the recorded samples of soundfonts.

    instruments:timgm6mb      59 instruments, seven notes each, from a small soundfont
    instruments:fluidr3       the same from a large one
    instruments               both: the same instrument, recorded twice

The label is the instrument by the list of General MIDI. A soundfont has few recordings of an instrument, and notes near
each other are one recording, transposed: with one soundfont the group is therefore the recording, with two it is the
soundfont. Notes are made when they are read, by the player of `soundfonts`; nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from earmark import audio
from earmark.corpora.clips import Clip, Corpus, CorpusCard, Samples
from earmark.corpora.recordings.packages import Package, need
from earmark.corpora.recordings.reading import licence_notes, named_parts, split_options
from earmark.corpora.recordings.soundfonts import RATE, VERSION, read_soundfont

KEYS = (48, 52, 55, 60, 64, 67, 72)  # C3, E3, G3, C4, E4, G4, C5
SECONDS = 1.5
PROGRAMS = {
    0: "acoustic grand piano", 4: "electric piano", 6: "harpsichord", 7: "clavinet", 8: "celesta", 9: "glockenspiel",
    10: "music box", 11: "vibraphone", 12: "marimba", 13: "xylophone", 14: "tubular bells", 15: "dulcimer",
    16: "drawbar organ", 19: "church organ", 20: "reed organ", 21: "accordion", 22: "harmonica", 24: "nylon guitar",
    25: "steel guitar", 26: "jazz guitar", 29: "overdriven guitar", 32: "acoustic bass", 33: "fingered bass",
    40: "violin", 41: "viola", 42: "cello", 43: "contrabass", 45: "pizzicato strings", 46: "harp", 47: "timpani",
    48: "string ensemble", 52: "choir aahs", 56: "trumpet", 57: "trombone", 58: "tuba", 59: "muted trumpet",
    60: "french horn", 61: "brass section", 64: "soprano sax", 65: "alto sax", 66: "tenor sax", 67: "baritone sax",
    68: "oboe", 69: "english horn", 70: "bassoon", 71: "clarinet", 72: "piccolo", 73: "flute", 74: "recorder",
    75: "pan flute", 79: "ocarina", 104: "sitar", 105: "banjo", 106: "shamisen", 107: "koto", 108: "kalimba",
    109: "bagpipe", 110: "fiddle", 111: "shanai",
}  # fmt: skip
"""Instruments of General MIDI that somebody plays, with their numbers; no synthesisers, no effects."""


@dataclass(frozen=True)
class Font:
    """A soundfont of Debian."""

    key: str
    package: Package
    licence: str
    holder: str


FONTS: dict[str, Font] = {
    font.key: font
    for font in (
        Font("timgm6mb", Package("timgm6mb-soundfont", "usr/share/sounds/sf2/TimGM6mb.sf2", 5.4), "GPL-2",
             "2004, Tim Brechbill; 2010, David Bolton"),
        Font("fluidr3", Package("fluid-soundfont-gm", "usr/share/sounds/sf2/FluidR3_GM.sf2", 120), "MIT",
             "2000-2002 and 2008, Frank Wen; 2008, Toby Smithe"),
    )
}  # fmt: skip


def chosen(argument: str) -> list[Font]:
    keys, _ = split_options(argument, "instruments", ())
    return named_parts(keys, "instruments", FONTS, "soundfont", list(FONTS))


def packages_of(argument: str) -> list[Package]:
    return [font.package for font in chosen(argument)]


def open_instruments(argument: str = "") -> Corpus:
    """Notes of instruments: `timgm6mb`, `fluidr3`, or both. Nothing is played until a clip is read."""
    fonts = chosen(argument)
    spec = f"instruments:{argument}" if argument else "instruments"
    copies = need([font.package for font in fonts], spec)
    clips: list[Clip] = []
    notes: list[str] = []
    for font, copy in zip(fonts, copies, strict=True):
        notes += licence_notes(copy, font.licence)
        file = str(copy.content)
        held, sha256 = read_soundfont(file), audio.file_digest(file)
        for program, name in PROGRAMS.items():
            for key in KEYS:
                zones = held.zones(program, key)
                if not zones:
                    notes.append(f"{copy.revision} has no {name} at key {key}.")
                    continue
                clips.append(
                    Clip(
                        f"{font.key}/{name}/{key}", label=name,
                        group=font.key if len(fonts) > 1 else zones[0].sample.name,
                        make=partial(play, file, program, key),
                        recipe=f"earmark soundfonts {VERSION}, {sha256}, program {program}, key {key}, {SECONDS} s",
                    )
                )  # fmt: skip
    card = CorpusCard(
        name=spec,
        title=f"notes of {len(PROGRAMS)} instruments",
        source="; ".join(f"https://packages.debian.org/stable/{font.package.name}" for font in fonts),
        revision="; ".join(copy.revision for copy in copies),
        licence="; ".join(font.licence for font in fonts),
        citation="; ".join(f"Copyright {font.holder}" for font in fonts),
        domain="music",
        status="public",
        rate=f"{RATE / 1000} kHz",
        history="rendered from recorded samples: transposed, looped and enveloped, without filters and effects",
        notes=f"{len(KEYS)} notes of {SECONDS} s of each instrument. Samples of a soundfont are edited, and some may "
        "be synthetic; who played them is not stated.",
    )
    return Corpus(card, clips, tuple(notes))


def play(file: str, program: int, key: int) -> tuple[Samples, int]:
    """The samples of a clip and their rate."""
    return read_soundfont(file).play(program, key, SECONDS), RATE
