"""The recordings that packages of Debian hold: what a list shows of them, and what a corpus needs.

A family is a registered corpus. Its rows are the parts that a user would name (a voice, a language), with counts that
hold for Debian 12; listing them opens no package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from earmark.corpora.recordings import asterisk
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


FAMILIES: dict[str, tuple[Callable[[str], list[Package]], Callable[[], list[Part]]]] = {
    "asterisk": (asterisk.packages_of, _asterisk_parts),
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
