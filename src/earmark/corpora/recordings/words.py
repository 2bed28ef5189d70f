"""Words, letters and syllables that people recorded for programs which teach children to read and to paint.

    tuxpaint:fr        spoken names of some 900 pictures, with their text; all languages together without an argument
    ktuberling:ca      names of the parts of a puzzle
    klettres:en,en_GB  letters and syllables of an alphabet
    gcin               Mandarin syllables with their tone, nearly all of them by two voices

The label is the item: a picture, a part, a letter, a syllable. The group is the language, because nobody wrote down who
speaks and a language seems to have one voice; of `gcin` it is the voice. Within one language an item is spoken once, so
that there is nothing to retrieve but across languages, where it is another word. Exceptions: `gcin`, whose syllables
two people speak, and `klettres:en,en_GB`, the letters of one alphabet in two accents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.recordings.packages import Copy, Package, need
from earmark.corpora.recordings.reading import count_notes, licence_notes, named_parts, split_options
from earmark.errors import InputError

_VORBIS = "coded once before in Vorbis, at various rates of bits"


@dataclass(frozen=True)
class WordSet:
    """A package with recordings in one or more languages. `languages` has the number of clips of each in Debian 12."""

    name: str
    title: str
    package: Package
    licence: str
    holder: str
    rate: str
    history: str
    languages: dict[str, int]
    classes: int
    groups: int
    read: Callable[[Path, str], Iterator[Clip]]
    notes: str

    def chosen(self, argument: str) -> list[str]:
        keys, _ = split_options(argument, self.name, ())
        known = {language: language for language in self.languages}
        return named_parts(keys, self.name, known, "language", list(known))

    def open(self, argument: str) -> Corpus:
        languages = self.chosen(argument)
        spec = f"{self.name}:{argument}" if argument else self.name
        (copy,) = need([self.package], spec)
        clips: list[Clip] = []
        notes = licence_notes(copy, self.licence)
        for language in languages:
            spoken = list(self.read(copy.content, language))
            if not spoken:
                raise InputError(f"{copy.revision} holds no clips of {language}: fetch or install the package again.")
            notes += [f"{language}: {note}" for note in count_notes(copy, len(spoken), self.languages[language])]
            clips += spoken
        return Corpus(self.card(spec, languages, copy), clips, tuple(notes))

    def card(self, spec: str, languages: list[str], copy: Copy) -> CorpusCard:
        return CorpusCard(
            name=spec,
            title=self.title,
            source=f"https://packages.debian.org/stable/{self.package.name}",
            revision=copy.revision,
            licence=self.licence,
            citation=f"Copyright {self.holder}",
            domain="human_speech",
            status="public",
            language=", ".join(language.replace("_", "-") for language in languages),
            rate=self.rate,
            history=self.history,
            notes=self.notes,
        )


# --- readers ------------------------------------------------------------------------------------------------


def _spoken_pictures(stamps: Path, language: str) -> Iterator[Clip]:
    """`bear_desc_fr.ogg` is the picture `bear` named in French, `bear_desc.ogg` in English; `bear.txt` has the text."""
    ending = "_desc" if language == "en" else f"_desc_{language}"
    for file in sorted([*stamps.rglob(f"*{ending}.ogg"), *stamps.rglob(f"*{ending}.wav")]):
        picture = file.with_name(file.stem.removesuffix(ending))
        label = picture.relative_to(stamps).as_posix()
        yield Clip(
            f"{language}/{label}", label=label, group=language, path=str(file),
            text=picture_text(picture.with_name(f"{picture.name}.txt"), language),
        )  # fmt: skip


def picture_text(file: Path, language: str) -> str | None:
    """What a picture is called: the first line in English, then lines such as `fr.utf8=Un ours.`; None if unsaid."""
    try:
        first, *others = file.read_text("utf-8", "replace").splitlines() or [""]
    except OSError:
        return None
    if language == "en":
        return first.strip() or None
    start = f"{language}.utf8="
    return next((line.removeprefix(start).strip() or None for line in others if line.startswith(start)), None)


def _puzzle_parts(sounds: Path, language: str) -> Iterator[Clip]:
    for name, file in _listed(sounds / f"{language}.soundtheme", sounds):
        yield Clip(f"{language}/{name}", label=name, group=language, path=str(file))


def _letters(folder: Path, language: str) -> Iterator[Clip]:
    """Letters and syllables; accents of one language share their labels."""
    alphabet = language.partition("_")[0]
    for name, file in _listed(folder / language / "sounds.xml", folder):
        kind = "letter" if file.parent.name == "alpha" else "syllable"
        yield Clip(f"{language}/{kind}/{name}", label=f"{alphabet}/{name}", group=language, path=str(file), text=name)


def _listed(listing: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files that a list in XML gives, once each; files that are not there are passed over."""
    try:
        # A list may have several roots.
        text = re.sub(r"<\?xml.*?\?>", "", listing.read_text("utf-8", "replace"))
        tree = ElementTree.fromstring(f"<all>{text}</all>")
    except (OSError, ElementTree.ParseError) as error:
        raise InputError(f"{listing} is not a readable list of sounds ({error}): install the package again.") from error
    seen: set[str] = set()
    for sound in tree.iter("sound"):
        name, file = sound.get("name", "").strip(), folder / sound.get("file", "")
        if name and name not in seen and file.is_file():
            seen.add(name)
            yield name, file


_SPEAKERS = {"3": "Edward Der-Hua Liu", "5": "Chu Lo"}


def _syllables(folder: Path, _: str) -> Iterator[Clip]:
    for file in sorted(folder.glob("*/*.ogg")):
        if file.stem in _SPEAKERS:
            syllable = file.parent.name
            yield Clip(
                f"{syllable}/{file.stem}", label=syllable, group=_SPEAKERS[file.stem], path=str(file), text=syllable
            )


# --- the packages -------------------------------------------------------------------------------------------

SETS: dict[str, WordSet] = {
    words.name: words
    for words in (
        WordSet(
            "tuxpaint", "spoken names of pictures", Package(
                "tuxpaint-stamps-default", "usr/share/tuxpaint/stamps", 161,
            ), "GPL-2", "2002-2022, Bill Kendrick and contributors", "44.1 kHz, few at 5 to 22 kHz", _VORBIS,
            {"be": 694, "bg": 917, "ca": 918, "da": 322, "el": 681, "en": 66, "es": 890, "fr": 928, "lt": 88, "ml": 6,
             "nl": 67, "pt_BR": 15, "ro": 920, "ru": 920},
            951, 14, _spoken_pictures,
            "Recorded by volunteers at home. Some recordings stand for several pictures: a run leaves such copies out. "
            "The text is that of the package, not checked against the recordings.",
        ),
        WordSet(
            "ktuberling", "names of the parts of a puzzle", Package(
                "ktuberling-data", "usr/share/ktuberling/sounds", 46.7,
            ), "GPL-2+", "2007-2017, Albert Astals Cid and contributors", "8 to 48 kHz",
            "coded once before in Vorbis or Opus, or 16-bit PCM, by language",
            {"ca": 190, "da": 167, "de": 71, "el": 70, "en": 71, "es": 13, "fi": 11, "fr": 190, "ga": 13, "gl": 71,
             "it": 13, "lt": 167, "nds": 13, "nl": 13, "nn": 190, "pt": 13, "ro": 13, "ru": 164, "sl": 70, "sr": 15,
             "sv": 13, "uk": 190, "wa": 71},
            194, 23, _puzzle_parts,
            "Recorded by volunteers at home. The label is the English name of the part in every language; no text says "
            "what is spoken.",
        ),
        WordSet(
            "klettres", "letters and syllables", Package(
                "klettres-data", "usr/share/klettres", 39.5,
            ), "GPL-2+", "2001-2011, Anne-Marie Mahfouf and contributors", "44.1 kHz (Norwegian: 128 kHz)", _VORBIS,
            {"ar": 28, "cs": 50, "da": 57, "de": 63, "en": 45, "en_GB": 49, "es": 144, "fr": 54, "he": 51, "hu": 82,
             "it": 100, "lt": 102, "ml": 521, "nb": 29, "nds": 78, "nl": 48, "pt_BR": 102, "ru": 94, "tn": 42,
             "uk": 94},
            1791, 20, _letters,
            "Recorded by volunteers at home. The label is the language and the letter or syllable.",
        ),
        WordSet(
            "gcin", "Mandarin syllables with tone, by two voices", Package(
                "gcin-voice", "usr/share/gcin-voice/ogg", 7.7,
            ), "GPL-3 or LGPL-3 (Liu); CC-BY-3 (Lo)", "2014, Edward Der-Hua Liu; Chu Lo and ChionMeilin", "44.1 kHz",
            _VORBIS,
            {"zh": 2358},
            1200, 2, _syllables,
            "The label is the syllable in Zhuyin with the number of its tone. Both speak 1158 of 1200 syllables. "
            "How the voices were recorded is not stated; both are cut to the syllable.",
        ),
    )
}  # fmt: skip


def open_tuxpaint(argument: str = "") -> Corpus:
    """Spoken names of pictures: `fr`, `fr,es`; all languages without an argument. No file is decoded."""
    return SETS["tuxpaint"].open(argument)


def open_ktuberling(argument: str = "") -> Corpus:
    """Names of the parts of a puzzle: `ca`, `ca,uk`; all languages without an argument. No file is decoded."""
    return SETS["ktuberling"].open(argument)


def open_klettres(argument: str = "") -> Corpus:
    """Letters and syllables: `en,en_GB`; all languages without an argument. No file is decoded."""
    return SETS["klettres"].open(argument)


def open_gcin(argument: str = "") -> Corpus:
    """Mandarin syllables by two voices. No file is decoded."""
    return SETS["gcin"].open(argument)
