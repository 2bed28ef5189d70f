"""The recordings that packages of Debian hold: what a list shows of them, and what a corpus needs.

A family is a registered corpus. Its rows are the parts that a user would name (a voice, a language), with counts that
hold for Debian 12; listing them opens no package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from earmark.corpora.recordings import asterisk, drums, examples, instruments, words
from earmark.corpora.recordings.packages import Package, locate
from earmark.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Part:
    """One line of the list."""

    name: str
    title: str
    clips: int
    classes: int
    groups: int
    rate: str
    licence: str
    language: str
    history: str
    packages: tuple[Package, ...]
    domain: str = "human_speech"

    @property
    def megabytes(self) -> float:
        """What has to be downloaded."""
        return sum(package.megabytes for package in self.packages)

    @property
    def missing(self) -> float:
        """Megabytes that are not on this machine; 0 where all is."""
        return sum(package.megabytes for package in self.packages if locate(package) is None)


def _asterisk_parts() -> list[Part]:
    return [
        Part(
            f"asterisk:{voice.key}", f"telephone prompts, one {voice.sex} voice ({voice.speaker})", voice.clips,
            voice.clips, 1, voice.rate, voice.licence, voice.language, voice.history,
            tuple(package for package in (voice.package, voice.text) if package is not None),
        )
        for voice in asterisk.VOICES.values()
    ]  # fmt: skip


def _word_parts(name: str) -> list[Part]:
    kind = words.SETS[name]
    return [
        Part(
            name, kind.title, sum(kind.languages.values()), kind.classes, kind.groups, kind.rate, kind.licence,
            ", ".join(kind.languages), kind.history, (kind.package,),
        )
    ]  # fmt: skip


def _drum_parts() -> list[Part]:
    return [
        Part(
            f"drums:{part.key}", "strokes on drums and cymbals", part.clips, part.classes, part.kits, "mostly 44.1 kHz",
            part.licence, "", "PCM as the kits hold it", (part.package,), "music",
        )
        for part in drums.PARTS.values()
    ]  # fmt: skip


def _instrument_parts() -> list[Part]:
    notes = {"timgm6mb": (413, 171), "fluidr3": (409, 269)}
    return [
        Part(
            f"instruments:{font.key}", "notes of instruments", notes[font.key][0], len(instruments.PROGRAMS),
            notes[font.key][1], "44.1 kHz", font.licence, "", "rendered from recorded samples", (font.package,),
            "music",
        )
        for font in instruments.FONTS.values()
    ]  # fmt: skip


def _example_parts() -> list[Part]:
    groups = {"sphinx": 4, "codec2": 1}
    return [
        Part(
            f"speech_examples:{part.key}", "sentences that come with a speech program", part.clips, part.clips,
            groups[part.key], part.rate, part.licence, "en", part.history, (part.package,),
        )
        for part in examples.PARTS.values()
    ]  # fmt: skip


def _word_packages(name: str) -> Callable[[str], list[Package]]:
    def packages(argument: str) -> list[Package]:
        words.SETS[name].chosen(argument)  # so that a language that is not there is told
        return [words.SETS[name].package]

    return packages


FAMILIES: dict[str, tuple[Callable[[str], list[Package]], Callable[[], list[Part]]]] = {
    "asterisk": (asterisk.packages_of, _asterisk_parts),
    "drums": (drums.packages_of, _drum_parts),
    **{name: (_word_packages(name), partial(_word_parts, name)) for name in words.SETS},
    "instruments": (instruments.packages_of, _instrument_parts),
    "speech_examples": (examples.packages_of, _example_parts),
}
"""For each registered name: the packages that an argument needs, and the parts of the list."""


def parts_of(family: str) -> list[Part]:
    return FAMILIES[family][1]()


def packages_of(spec: str) -> list[Package]:
    """The packages of a corpus such as `asterisk:en`."""
    family, _, argument = spec.strip().partition(":")
    if family not in FAMILIES:
        raise UsageError(
            f"There is nothing to fetch for {spec!r}.{did_you_mean(family, FAMILIES)} There is for "
            f"{', '.join(FAMILIES)}; `earmark corpus list` shows their parts."
        )
    return FAMILIES[family][0](argument)
