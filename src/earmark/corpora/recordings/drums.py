"""Strokes on drums and cymbals, recorded for the drum kits of Hydrogen.

    drums:rock        two kits, one acoustic and one an emulation of a drum machine
    drums:kits        fourteen kits more, acoustic and electronic
    drums             all of them

The label is the kind of stroke, as a table of words reads it off the name that a kit gives it; strokes whose name says
no kind, or two, are left out and counted. The group is the kit: across groups a snare has to find one of another kit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.recordings.packages import Package, need
from earmark.corpora.recordings.reading import count_notes, licence_notes, named_parts, split_options
from earmark.wording import counted

_KITS = "usr/share/hydrogen/data/drumkits"
KINDS = {
    "kick": r"kick|bass ?drum",
    "rim": r"rim ?shot|rim ?click|side ?stick|^stick|\bstick$",
    "snare": r"snare",
    "hat_pedal": r"(pedal|pd)\b.*(hh|hat)|(hh|hat).*\b(pedal|pd)\b",
    "hat_semi_open": r"(hh|hat).*semi",
    "hat_closed": r"closed.*(hh|hat)|(hh|hat).*\b(closed|cl)\b",
    "hat_open": r"open.*(hh|hat)|(hh|hat).*\b(open|opened|op)\b",
    "tom": r"\btom|^tom|tom\b",
    "clap": r"clap",
    "cowbell": r"cow ?bell",
    "crash": r"crash",
    "ride": r"ride",
    "splash": r"splash",
    "conga": r"conga",
    "bongo": r"bongo",
    "djembe": r"djembe",
    "tambourine": r"tambourine",
    "clave": r"clave",
    "woodblock": r"woodblock",
}
"""Kinds of strokes, and the words in a name that say so."""
_TOGETHER = ({"rim", "snare"}, {"hat_semi_open", "hat_open"})  # names that say both are the first


@dataclass(frozen=True)
class Kits:
    """A package of drum kits."""

    key: str
    package: Package
    licence: str
    kits: int
    clips: int
    classes: int


PARTS: dict[str, Kits] = {
    part.key: part
    for part in (
        Kits("rock", Package("hydrogen-data", f"{_KITS}/GMRockKit/drumkit.xml", 6.8), "GPL-2+", 2, 95, 15),
        Kits("kits", Package("hydrogen-drumkits", f"{_KITS}/Audiophob/drumkit.xml", 143),
             "GPL-2+; GPL-2; CC-BY-SA-3.0; CC-BY-SA-3.0-us; CC-BY-3.0; CC0 (by kit)", 14, 557, 19),
    )
}  # fmt: skip


def chosen(argument: str) -> list[Kits]:
    keys, _ = split_options(argument, "drums", ())
    return named_parts(keys, "drums", PARTS, "part", list(PARTS))


def packages_of(argument: str) -> list[Package]:
    return [part.package for part in chosen(argument)]


def open_drums(argument: str = "") -> Corpus:
    """Open strokes on drums: `rock`, `kits`, or both. No file is decoded."""
    parts = chosen(argument)
    spec = f"drums:{argument}" if argument else "drums"
    copies = need([part.package for part in parts], spec)
    clips: list[Clip] = []
    notes: list[str] = []
    for part, copy in zip(parts, copies, strict=True):
        notes += licence_notes(copy, part.licence)
        unclear: list[str] = []
        strokes = [
            clip
            for kit in sorted(copy.content.parent.parent.glob("*/drumkit.xml"))
            for clip in _strokes(kit, unclear)
        ]  # fmt: skip
        if unclear:
            names = ", ".join(dict.fromkeys(unclear))
            notes.append(
                f"{copy.revision}: {counted(len(unclear), 'stroke')} left out whose names say no kind, or two "
                f"({names[:80]}...)."
            )
        notes += count_notes(copy, len(strokes), part.clips, "stroke")
        clips += strokes
    card = CorpusCard(
        name=spec,
        title=f"strokes on drums and cymbals, {counted(sum(part.kits for part in parts), 'kit')}",
        source="; ".join(f"https://packages.debian.org/stable/{part.package.name}" for part in parts),
        revision="; ".join(copy.revision for copy in copies),
        licence="; ".join(part.licence for part in parts),
        citation="the authors of the kits, as the packages' copyright files name them",
        domain="music",
        status="public",
        rate="mostly 44.1 kHz",
        history="PCM as the kits hold it; some kits are electronic or an emulation of a drum machine",
        notes="The label is read off the name of a stroke, the group is the kit.",
    )
    return Corpus(card, clips, tuple(notes))


def kind_of(name: str) -> str | None:
    """The kind of stroke that a name says: `Sabian Hat Closed` is a hat_closed; None where it says none, or two."""
    text = re.sub(r"\([^)]*\)", "", name).replace("-", " ").replace("_", " ").strip().lower()
    text = re.sub(r"(?<=[a-z])(?=\d)", " ", text)
    kinds = {kind for kind, words in KINDS.items() if re.search(words, text)}
    for together in _TOGETHER:
        if together <= kinds:
            kinds -= together - {sorted(together, key=list(KINDS).index)[0]}
    return kinds.pop() if len(kinds) == 1 else None


def _strokes(listing: Path, unclear: list[str]) -> Iterator[Clip]:
    kit = listing.parent.name
    for instrument in _named(ElementTree.parse(listing).getroot(), "instrument"):
        name = next((child.text or "" for child in instrument if _tag(child) == "name"), "")
        files = [element.text or "" for element in _named(instrument, "filename")]
        kind = kind_of(name)
        for file in dict.fromkeys(files):
            path = listing.parent / file
            if not path.is_file():
                continue
            if kind is None:
                unclear.append(name)
            else:
                yield Clip(f"{kit}/{name}/{file}", label=kind, group=kit, path=str(path))


def _named(element: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    return (child for child in element.iter() if _tag(child) == tag)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
