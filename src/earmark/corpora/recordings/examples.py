"""Sentences that come with speech programs as examples: few, and by many voices.

    speech_examples:sphinx     14 sentences that come with PocketSphinx, with their text
    speech_examples:codec2     16 recordings that come with Codec 2, by radio amateurs among others, without text
    speech_examples            both

The label is the recording's name and the group the set that it is from, since nobody wrote down who speaks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earmark import audio
from earmark.corpora.clips import Clip, Corpus, CorpusCard, Samples
from earmark.corpora.recordings.packages import Package, need
from earmark.corpora.recordings.reading import count_notes, licence_notes, named_parts, split_options
from earmark.errors import InputError


@dataclass(frozen=True)
class RawSound:
    """A file of 16-bit samples without a header, as a function: its rate is known from elsewhere."""

    path: str
    rate: int

    def __call__(self) -> tuple[Samples, int]:
        try:
            data = Path(self.path).read_bytes()
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror}): check the path.") from error
        if len(data) < 2:
            raise InputError(f"{self.path} holds no samples: replace it or leave it out.")
        return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768), self.rate

    def digest(self) -> str:
        return hashlib.sha256(f"raw {self.rate} {audio.file_digest(self.path)}".encode()).hexdigest()


_SPHINX = {"goforward.raw": "go forward ten meters", "numbers.raw": None, "something.raw": None}
_CODEC2 = (
    "raw/big_dog.raw", "raw/cq_ref.raw", "raw/cross.raw", "raw/forig.raw", "raw/g3plx.raw", "raw/hts1a.raw",
    "raw/hts2a.raw", "raw/kristoff.raw", "raw/mmt1.raw", "raw/morig.raw", "raw/ve9qrp_10s.raw", "raw/vk5qi.raw",
    "raw/speech_orig_16k.wav", "wav/david4.wav", "wav/vk2tpm_004.wav", "wav/wia_16kHz.wav",
)  # fmt: skip
"""Recordings of people: what other files hold is coded already, a test signal, or one of these again."""


def _sphinx_clips(data: Path) -> Iterator[Clip]:
    for name, text in _SPHINX.items():
        if (data / name).is_file():
            yield _clip("sphinx", Path(name).stem, data / name, 16000, text)
    spoken = data / "tidigits" / "dhd.2934z.raw"
    if spoken.is_file():
        yield _clip("tidigits", "dhd.2934z", spoken, 16000, "two nine three four zero")
    for folder, listing in (("librivox", "transcription"), ("cards", "cards.transcription")):
        texts = read_transcription(data / folder / listing)
        for file in sorted((data / folder).glob("*.wav")):
            yield _clip(folder, file.stem, file, 0, texts.get(file.stem))


def _codec2_clips(folder: Path) -> Iterator[Clip]:
    for name in _CODEC2:
        if (folder / name).is_file():
            yield _clip("codec2", Path(name).stem, folder / name, 8000, None)


def _clip(group: str, name: str, file: Path, rate: int, text: str | None) -> Clip:
    if file.suffix == ".raw":
        return Clip(f"{group}/{name}", label=name, group=group, make=RawSound(str(file), rate), text=text)
    return Clip(f"{group}/{name}", label=name, group=group, path=str(file), text=text)


def read_transcription(file: Path) -> dict[str, str]:
    """Texts by name from lines such as `<s> he was not an ill disposed young man </s> (name)`."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    texts = {}
    for line in lines:
        found = re.fullmatch(r"(.*)\(([^()]+)\)\s*", line)
        if found:
            text = " ".join(re.sub(r"</?s>|<sil>|\+\+\w+\+\+", " ", found[1]).split())
            if text:
                texts[Path(found[2]).name] = text
    return texts


@dataclass(frozen=True)
class Examples:
    """The examples of one package."""

    key: str
    package: Package
    licence: str
    holder: str
    rate: str
    history: str
    clips: int


PARTS: dict[str, Examples] = {
    part.key: part
    for part in (
        Examples("sphinx", Package("pocketsphinx-testdata", "usr/share/pocketsphinx/test/data", 1.8), "BSD-2",
                 "1995-2014, Carnegie Mellon University", "16 kHz",
                 "16-bit PCM; five of LibriVox were MP3 at 64 kbps", 14),
        Examples("codec2", Package("codec2-examples", "usr/share/codec2", 11.4), "LGPL-2.1",
                 "2010-2022, David Rowe and contributors", "8 kHz, three at 16 kHz", "16-bit PCM, band of a radio", 16),
    )
}  # fmt: skip


def chosen(argument: str) -> list[Examples]:
    keys, _ = split_options(argument, "speech_examples", ())
    return named_parts(keys, "speech_examples", PARTS, "part", list(PARTS))


def packages_of(argument: str) -> list[Package]:
    return [part.package for part in chosen(argument)]


def open_examples(argument: str = "") -> Corpus:
    """Open sentences that come with speech programs: `sphinx`, `codec2`, or both. No file is decoded."""
    parts = chosen(argument)
    spec = f"speech_examples:{argument}" if argument else "speech_examples"
    copies = need([part.package for part in parts], spec)
    clips: list[Clip] = []
    notes: list[str] = []
    for part, copy in zip(parts, copies, strict=True):
        notes += licence_notes(copy, part.licence)
        found = list((_sphinx_clips if part.key == "sphinx" else _codec2_clips)(copy.content))
        notes += count_notes(copy, len(found), part.clips, "recording")
        clips += found
    card = CorpusCard(
        name=spec,
        title="sentences that come with speech programs",
        source="; ".join(f"https://packages.debian.org/stable/{part.package.name}" for part in parts),
        revision="; ".join(copy.revision for copy in copies),
        licence="; ".join(part.licence for part in parts),
        citation="; ".join(f"Copyright {part.holder}" for part in parts),
        domain="human_speech",
        status="public",
        language="en",
        rate="; ".join(part.rate for part in parts),
        history="; ".join(part.history for part in parts),
        notes="Few clips, chosen by the authors of the programs: good for listening, not for ranking.",
    )
    return Corpus(card, clips, tuple(notes))
