"""Names of sounds: folders, stem and ending, and when two of them name the same sound.

Two names fit each other where nothing in them contradicts: `call03`, `call03.wav` and `calls/call03.wav` may be one
sound; `day1/call03.wav` and `day2/call03.wav`, `call03.wav` and `call03.mp3`, `call03.noisy` and `call03.clean` are
two.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from earmark.audio import SUFFIXES

ENDINGS = SUFFIXES | {".npy", ".npz", ".pt"}
"""What a name may end in beside the sound's own name, in small letters: files of audio and of vectors."""


class SoundName(NamedTuple):
    """`calls/day1/call03.WAV` is ("calls", "day1"), "call03", ".wav"; an ending that is none of ENDINGS is stem."""

    folders: tuple[str, ...]
    stem: str
    ending: str


def parts_of(name: str) -> SoundName:
    """A name as folders, stem and ending."""
    *folders, last = PurePosixPath(name.replace("\\", "/")).parts or (name,)
    ending = PurePosixPath(last).suffix
    if ending.lower() not in ENDINGS:
        return SoundName(tuple(folders), last, "")
    return SoundName(tuple(folders), last.removesuffix(ending), ending.lower())


def without_ending(name: str) -> str:
    """A name without the ending of a file of audio or of vectors; the name itself where it has none."""
    ending = PurePosixPath(name.replace("\\", "/")).suffix
    return name.removesuffix(ending) if ending.lower() in ENDINGS else name


def fit(one: SoundName, other: SoundName) -> bool:
    """Whether two names may be those of one sound: the same, but for what one of them leaves out.

    That is folders at the front, and the ending.
    """
    shared = common_folders(one, other)
    return (
        one.stem == other.stem
        and (one.ending == other.ending or not (one.ending and other.ending))
        and one.folders[len(one.folders) - shared :] == other.folders[len(other.folders) - shared :]
    )


def common_folders(one: SoundName, other: SoundName) -> int:
    """How many folders, counted from the file, both names have."""
    return min(len(one.folders), len(other.folders))
