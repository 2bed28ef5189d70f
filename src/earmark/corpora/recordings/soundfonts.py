"""SoundFont 2 files: recorded notes of instruments, and a small player for them.

    phdr ─ preset (bank, program) ─ pbag ─ pgen ──┐ zones: key and velocity ranges, an instrument
    inst ─ instrument ───────────── ibag ─ igen ──┤ zones: key and velocity ranges, a sample, its root, loop, envelope
    shdr ─ sample (start, end, loop, rate, pitch) ┴ smpl: 16-bit sound

The player moves a recorded sample to the key that is asked for, repeats its loop, and applies the volume envelope
(delay, attack, hold, decay, sustain). It leaves out filters, modulators, vibrato, pan and effects. Left and right
samples are averaged. What it makes is therefore the recording, transposed; not what a synthesiser would play.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import audio
from earmark.errors import InputError

VERSION = 2  # of the player: raise it when a sample of sound changes
RATE = 44100
VELOCITY = 100
FADE = 0.05  # seconds at the end of a note

Samples = NDArray[np.float32]

# Numbers of generators, as the format gives them.
_DELAY, _ATTACK, _HOLD, _DECAY, _SUSTAIN = 33, 34, 35, 36, 37
_INSTRUMENT, _KEYS, _VELOCITIES, _ATTENUATION = 41, 43, 44, 48
_COARSE, _FINE, _SAMPLE, _MODES, _SCALE, _ROOT = 51, 52, 53, 54, 56, 58
_ADDED = (_DELAY, _ATTACK, _HOLD, _DECAY, _SUSTAIN, _ATTENUATION, _COARSE, _FINE)  # of a preset, to an instrument's
_DEFAULTS = {_DELAY: -12000, _ATTACK: -12000, _HOLD: -12000, _DECAY: -12000, _SCALE: 100}


class Sample(NamedTuple):
    """A recorded sample: its place in the sound, its loop, rate and pitch."""

    name: str
    start: int
    end: int
    loop_start: int
    loop_end: int
    rate: int
    key: int
    correction: int  # cents
    kind: int


class Zone(NamedTuple):
    """A sample of a preset with the generators that apply to it."""

    sample: Sample
    generators: dict[int, int]

    def of(self, generator: int) -> int:
        return self.generators.get(generator, _DEFAULTS.get(generator, 0))


@dataclass(frozen=True)
class SoundFont:
    """A file's samples and presets; the sound itself is mapped, not read."""

    path: str
    presets: dict[tuple[int, int], list[Zone]]  # by bank and program
    sound: NDArray[np.int16] = field(repr=False)

    def zones(self, program: int, key: int) -> list[Zone]:
        """What sounds when a key is struck at the velocity of this player."""
        return [
            zone
            for zone in self.presets.get((0, program), [])
            if _within(zone.generators.get(_KEYS), key) and _within(zone.generators.get(_VELOCITIES), VELOCITY)
        ]

    def play(self, program: int, key: int, seconds: float) -> Samples:
        """A note: mono, at 44.1 kHz, 16 bits, not louder than full scale. Raises InputError where there is none."""
        zones = self.zones(program, key)
        if not zones:
            raise InputError(f"{self.path} has no sound for program {program}, key {key}: choose another.")
        voices = [_play(zone, self.sound, key, seconds) for zone in zones]
        length = max(map(len, voices))
        mixed = np.sum([np.pad(voice, (0, length - len(voice))) for voice in voices], axis=0) / len(voices)
        fade = min(length, round(FADE * RATE))
        mixed[length - fade :] *= np.linspace(1, 0, fade)
        # In steps of 16 bits, as the recordings are: finer ones would be lost to every codec that takes 16 bits.
        whole = np.round(mixed / max(1.0, float(np.abs(mixed).max())) * 32767)
        return np.asarray(whole / 32768, np.float32)


@lru_cache(maxsize=4)
def read_soundfont(path: str) -> SoundFont:
    """Read the tables of a file. Raises InputError where it is none, or its tables contradict each other."""
    try:
        chunks = dict(_chunks(Path(path)))
        tables = {name: chunks[name] for name in ("phdr", "pbag", "pgen", "inst", "ibag", "igen", "shdr")}
        where, size = struct.unpack("<QQ", chunks["smpl"])
        sound = np.memmap(path, "<i2", "r", where, (size // 2,))
        return SoundFont(path, _presets(tables), sound)
    except (KeyError, struct.error, ValueError, IndexError) as error:
        raise InputError(f"{path} is no readable SoundFont 2 ({error}): fetch or install its package again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): fetch or install its package again.") from error


def _chunks(path: Path) -> Iterator[tuple[str, bytes]]:
    """The tables of the file; of the sound, its place and size instead of its bytes."""
    with path.open("rb") as stream:
        riff, _, kind = struct.unpack("<4sI4s", stream.read(12))
        if (riff, kind) != (b"RIFF", b"sfbk"):
            raise ValueError("it does not begin as one")
        while len(head := stream.read(8)) == 8:
            name, size = struct.unpack("<4sI", head)
            if name == b"LIST":
                stream.read(4)
            elif name == b"smpl":
                yield "smpl", struct.pack("<QQ", stream.tell(), size)
                stream.seek(size + size % 2, 1)
            else:
                yield name.decode("latin-1"), stream.read(size + size % 2)[:size]


def _presets(tables: dict[str, bytes]) -> dict[tuple[int, int], list[Zone]]:
    samples = [
        Sample(_text(name), start, end, loop_start, loop_end, rate, key, correction, kind)
        for name, start, end, loop_start, loop_end, rate, key, correction, _, kind in struct.iter_unpack(
            "<20sIIIIIBbHH", tables["shdr"]
        )
    ]
    instruments = [row[1] for row in struct.iter_unpack("<20sH", tables["inst"])]
    instrument_zones = [
        _zones(tables["ibag"], tables["igen"], low, high, _SAMPLE) for low, high in itertools.pairwise(instruments)
    ]
    heads = list(struct.iter_unpack("<20sHHHIII", tables["phdr"]))
    presets: dict[tuple[int, int], list[Zone]] = {}
    for (_, program, bank, low, *_), (_, _, _, high, *_) in itertools.pairwise(heads):
        zones = []
        for outer in _zones(tables["pbag"], tables["pgen"], low, high, _INSTRUMENT):
            for inner in instrument_zones[outer[_INSTRUMENT]]:
                sample = samples[inner[_SAMPLE]]
                merged = _merged(inner, outer)
                if merged is not None and sample.rate and not sample.kind & 0x8000:  # 0x8000: in the ROM of a card
                    zones.append(Zone(sample, merged))
        presets.setdefault((bank, program), zones)
    return presets


def _zones(bags: bytes, generators: bytes, low: int, high: int, target: int) -> list[dict[int, int]]:
    """The generators of each zone; those of the first, if it has no target, hold for all."""
    shared: dict[int, int] = {}
    zones = []
    for bag in range(low, high):
        first, _, last, _ = struct.unpack_from("<HHHH", bags, 4 * bag)
        own: dict[int, int] = {}
        for row in range(first, last):
            number, amount = struct.unpack_from("<Hh", generators, 4 * row)
            own[number] = amount & 0xFFFF if number in (_KEYS, _VELOCITIES, target) else amount
        if target in own:
            zones.append({**shared, **own})
        elif bag == low:
            shared = own
    return zones


def _merged(inner: dict[int, int], outer: dict[int, int]) -> dict[int, int] | None:
    """The generators of an instrument's zone with those of the preset's; None where their ranges do not meet."""
    merged = dict(inner)
    for number in _ADDED:
        if number in outer:
            merged[number] = inner.get(number, _DEFAULTS.get(number, 0)) + outer[number]
    for number in (_KEYS, _VELOCITIES):
        low, high = _range(inner.get(number))
        other_low, other_high = _range(outer.get(number))
        low, high = max(low, other_low), min(high, other_high)
        if low > high:
            return None
        merged[number] = low | high << 8
    return merged


def _range(amount: int | None) -> tuple[int, int]:
    return (0, 127) if amount is None else (amount & 0xFF, amount >> 8)


def _within(amount: int | None, value: int) -> bool:
    low, high = _range(amount)
    return low <= value <= high


def _text(name: bytes) -> str:
    return name.split(b"\0")[0].decode("latin-1").strip()


# --- playing ------------------------------------------------------------------------------------------------


def _play(zone: Zone, sound: NDArray[np.int16], key: int, seconds: float) -> NDArray[np.float64]:
    sample = zone.sample
    root = zone.generators.get(_ROOT, -1)
    root = root if 0 <= root <= 127 else sample.key if sample.key <= 127 else 60
    cents = (key - root) * zone.of(_SCALE) + 100 * zone.of(_COARSE) + zone.of(_FINE) + sample.correction
    heard = sample.rate * 2 ** (cents / 1200)  # samples of the recording in a second of the note
    needed = int(np.ceil(seconds * heard)) + 1
    recorded = sound[sample.start : sample.end].astype(np.float32) / 32768
    loop = (sample.loop_start - sample.start, sample.loop_end - sample.start)
    if zone.of(_MODES) & 1 and 0 <= loop[0] < loop[1] <= len(recorded) and needed > loop[1]:
        times = -(-(needed - loop[1]) // (loop[1] - loop[0]))
        recorded = np.concatenate([recorded[: loop[1]], np.tile(recorded[loop[0] : loop[1]], times)])
    note = audio.resample(recorded[:needed], max(1, round(heard)), RATE)[: round(seconds * RATE)].astype(np.float64)
    return note * _envelope(zone, len(note)) * 10 ** (-max(0, zone.of(_ATTENUATION)) / 200)


def _envelope(zone: Zone, length: int) -> NDArray[np.float64]:
    """The volume of a held note: it rises straight, is held, and falls evenly in decibels to what is sustained."""
    delay, attack, hold, decay = (2 ** (zone.of(number) / 1200) for number in (_DELAY, _ATTACK, _HOLD, _DECAY))
    time = np.arange(length) / RATE - delay
    falling = np.clip((time - attack - hold) / decay, 0, None) * 100  # in dB: a decay is the time for 100 of them
    level: NDArray[np.float64] = 10 ** (-np.minimum(falling, max(0, zone.of(_SUSTAIN)) / 10) / 20)
    return np.where(time < 0, 0, np.where(time < attack, np.clip(time / attack, 0, 1), level))
