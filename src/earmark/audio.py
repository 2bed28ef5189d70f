"""Audio files: read, resample, write. The only code that touches them.

Every reader returns mono float32 samples (channels averaged) and a rate. libsndfile decodes what it knows (WAV,
FLAC, OGG, MP3, …); PyAV, from the extra `audio`, decodes the rest (M4A, AAC, …). A span is sought, not cut out of
the whole. A file that cannot be used raises one sentence that names it, so that a run can note it and go on.

    path ── opens for libsndfile? ── yes ── seek, read in blocks, average channels ─┐
                     └── no ── PyAV: seek, decode, average channels ────────────────┴─ finite? ── resample

A run opens a file twice: once for its hash and its header, once for its samples. What the first look found is
remembered in this process while size and time of change stay the same. A file at a URL is fetched whole; the last few
stay in memory, for a recording of which many spans are clips.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark import audio_containers as containers
from earmark.atomic import write_whole
from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError
from earmark.places import is_remote, is_url, locate

__all__ = ["SUFFIXES", "Probe", "file_digest", "peak_normalise", "probe", "read", "read_bytes", "resample", "write"]

Samples = NDArray[np.float32]

SUFFIXES = frozenset(
    {".aif", ".aifc", ".aiff", ".au", ".caf", ".flac", ".mp3", ".oga", ".ogg", ".opus", ".rf64", ".snd", ".w64", ".wav"}
    | {".aac", ".ac3", ".amr", ".g722", ".gsm", ".m4a", ".mka", ".mp4", ".webm", ".wma"}
)
"""File names that are taken for audio when a folder is searched, in lower case."""

SLACK = 0.01
"""Seconds by which a span may pass the end of its file: annotations are rounded, lossy formats are padded."""

_BLOCK = 1 << 20


class Probe(NamedTuple):
    """What a file's header says: seconds, samples per second, channels."""

    duration: float
    rate: int
    channels: int


@dataclass
class _Facts:
    """What is known of a file: the hash of its bytes, its header, and what is damaged in it ('' for nothing)."""

    sha256: str = ""
    header: Probe | None = None
    damage: str | None = None


_known_files: dict[tuple[int | str, ...], _Facts] = {}
_fetched: dict[tuple[str, str], bytes] = {}  # by URL and version
_fetching = threading.Lock()
_FETCHED = 64 << 20  # bytes that stay in memory


def _facts(status: os.stat_result) -> _Facts:
    """What this process knows of a file, by its identity on disk, size and time of change."""
    return _known_files.setdefault((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns), _Facts())


# --- reading ------------------------------------------------------------------------------------------------


def read(
    path: str | os.PathLike[str],
    *,
    rate: int | None = None,
    start: float | None = None,
    end: float | None = None,
) -> tuple[Samples, int]:
    """Mono float32 samples and their rate, never normalised.

    Args:
        path: The file.
        rate: Resample to this rate; without it the file's own rate is kept.
        start: Where the span to decode begins, in seconds; without it, at the start of the file.
        end: Where the span ends, in seconds; without it, at the end of the file.

    Raises:
        InputError: The file is missing, empty, damaged, cut short, without samples, not audio, not finite, or shorter
            than the span.
    """
    name = os.fspath(path)
    _check_span(name, start, end)  # before a file is looked for
    if is_url(name):
        return read_bytes(_fetch(name), name, rate=rate, start=start, end=end)
    with _opened(name) as handle:
        return _decoded(handle, name, rate, start, end)


def read_bytes(
    data: bytes, name: str, *, rate: int | None = None, start: float | None = None, end: float | None = None
) -> tuple[Samples, int]:
    """`read`, for an encoded file held in memory; `name` stands for it in messages."""
    if not data:
        raise InputError(f"{name} is empty (0 bytes): replace it or leave it out.")
    _check_span(name, start, end)
    return _decoded(io.BytesIO(data), name, rate, start, end)


def probe(path: str | os.PathLike[str]) -> Probe:
    """Duration, rate and channels from the header, without decoding. Raises InputError like `read`.

    What only decoding shows (damage in the middle, NaN) is not found here.
    """
    header = _looked_at(os.fspath(path), hashed=False).header
    assert header is not None
    return header


def file_digest(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes. The header is read in the same pass: a `probe` afterwards opens no file."""
    return _looked_at(os.fspath(path), hashed=True).sha256


def _fetch(name: str) -> bytes:
    """The bytes of a file elsewhere, from memory where they have just been fetched."""
    place = locate(name)
    assert is_remote(place)
    try:
        key = name, place.listed_status().version
        with _fetching:
            data = _fetched.get(key)
        if data is None:
            data = place.read_bytes()
            with _fetching:
                _fetched[key] = data
                while len(_fetched) > 1 and sum(map(len, _fetched.values())) > _FETCHED:
                    del _fetched[next(iter(_fetched))]
    except FileNotFoundError as error:
        raise InputError(f"{name} does not exist: check the address.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read ({_detail(error)}): check the address.") from error
    if not data:
        raise InputError(f"{name} is empty (0 bytes): replace it or leave it out.")
    return data


def _looked_at_elsewhere(name: str, *, hashed: bool) -> _Facts:
    place = locate(name)
    assert is_remote(place)
    with suppress(OSError):  # which fetching it tells
        facts = _known_files.setdefault((name, place.listed_status().version), _Facts())
        if facts.sha256 if hashed else facts.header:
            return facts
    data = _fetch(name)
    facts.sha256 = hashlib.sha256(data).hexdigest()
    try:
        facts.header = facts.header or _header(io.BytesIO(data), name)
    except Exception:
        if not hashed:
            raise
    return facts


def _looked_at(name: str, *, hashed: bool) -> _Facts:
    if is_url(name):
        return _looked_at_elsewhere(name, hashed=hashed)
    with suppress(OSError, ValueError):
        facts = _facts(Path(name).stat())
        if facts.sha256 if hashed else facts.header:
            return facts
    with _opened(name) as handle:
        facts = _facts(os.fstat(handle.fileno()))
        if hashed:
            facts.sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
        try:
            facts.header = facts.header or _header(handle, name)
        except Exception:
            if not hashed:  # a file without a usable header has bytes all the same
                raise
    return facts


def _header(handle: Any, name: str) -> Probe:
    sound = _libsndfile(handle, name)
    if sound is None:
        with _pyav_errors(name):
            return Probe(*containers.probe(handle, name))
    with sound:
        _check_whole(handle, name)
        if sound.frames == 0:
            raise InputError(f"{name} holds no samples: replace it or leave it out.")
        return Probe(sound.frames / sound.samplerate, sound.samplerate, sound.channels)


def _decoded(handle: Any, name: str, rate: int | None, start: float | None, end: float | None) -> tuple[Samples, int]:
    sound = _libsndfile(handle, name)
    if sound is None:
        if start is None and end is None:
            _check_whole(handle, name)
        _check_pages(handle, name)
        with _pyav_errors(name):
            samples, native = containers.decode(handle, name, start, end, SLACK)
    else:
        with sound:
            native = sound.samplerate
            samples = _read_span(sound, handle, name, start, end)
    if not len(samples):
        raise InputError(f"{name} holds no samples: replace it or leave it out.")
    bad = int(np.count_nonzero(~np.isfinite(samples)))
    if bad:
        raise InputError(
            f"{name} holds {bad} NaN or infinite of {len(samples)} samples: export it again or leave it out."
        )
    return (samples, native) if rate is None else (resample(samples, native, rate), rate)


def _read_span(sound: Any, handle: Any, name: str, start: float | None, end: float | None) -> Samples:
    rate, total = sound.samplerate, sound.frames
    first = containers.frame_at(start or 0.0, rate)
    last = total if end is None else containers.frame_at(end, rate)
    if (first and first >= total) or last > total + SLACK * rate:
        raise containers.outside(name, start, end, total / rate, containers.cut_short(handle))
    last = min(last, total)
    if start is None and end is None:
        _check_whole(handle, name)
    _check_pages(handle, name)
    try:
        lead = first - _seek(sound, handle, first)
        samples = _read_blocks(sound, last - first + lead)[lead:]
    except (RuntimeError, OSError) as error:
        raise InputError(f"{name} is damaged or cut short ({_detail(error)}): replace it or leave it out.") from error
    tolerance = 2304 if sound.format == "MP3" else 0  # its header counts frames of 1152 samples, give or take two
    if len(samples) < last - first - tolerance:
        raise InputError(
            f"{name} is cut short: its header promises {(last - first) / rate:.2f} s and {len(samples) / rate:.2f} s "
            "are there; replace it or leave it out."
        )
    return samples


def _seek(sound: Any, handle: Any, first: int) -> int:
    """Seek to `first`, or to where decoding must begin so that `first` comes out right; returns the place."""
    place = first
    if not sound.seekable():
        return 0  # as GSM, whose decoder carries its state along
    if sound.format == "MP3":
        # A frame may borrow bits from those before it; 24 small frames are enough to borrow all that can be.
        place = first - 24 * 1152
    elif sound.format == "OGG" and first:
        # An Opus stream counts pages at 48 kHz, whatever its rate.
        page = containers.ogg_last_page(handle) * (sound.samplerate / 48_000 if sound.subtype == "OPUS" else 1)
        place = min(first, int(page)) - 8192
    place = max(place, 0)
    if place:
        sound.seek(place)
    return place


def _read_blocks(sound: Any, frames: int) -> Samples:
    """Average channels block by block: a header's claim never decides how much memory is taken."""
    blocks: list[Samples] = []
    left = frames
    while left > 0:
        block: Samples = sound.read(min(left, _BLOCK), dtype="float32", always_2d=True)
        if not len(block):
            break
        blocks.append(block[:, 0] if block.shape[1] == 1 else block.mean(axis=1, dtype=np.float32))
        left -= len(block)
    if not blocks:
        return np.empty(0, np.float32)
    return np.ascontiguousarray(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))


def _libsndfile(handle: Any, name: str) -> Any:
    """An open soundfile.SoundFile, or None where libsndfile does not know the format.

    libsndfile reads the open file itself: reading through Python would hold up every other thread. Both share one place
    in it, so that whoever else reads must put it back. A format without a header is known by the file's name only; the
    path is made absolute because "-" means standard input to libsndfile.
    """
    import soundfile

    absolute = Path(name).absolute()
    if absolute.suffix.lower() in containers.HEADERLESS:
        return None
    sources = [handle] if isinstance(handle, io.BytesIO) else [handle.fileno(), absolute]
    for source in sources if os.name == "posix" else sources[-1:]:
        handle.seek(0)
        try:
            sound = soundfile.SoundFile(source, closefd=source is absolute)
        except (RuntimeError, TypeError, ValueError):
            continue
        if sound.frames <= 1 << 60:
            return sound
        sound.close()  # a FLAC written to a pipe leaves its length open, and soundfile then loses its place
        return None
    return None


def _check_span(name: str, start: float | None, end: float | None) -> None:
    for bound in (start, end):
        if bound is not None and not (math.isfinite(bound) and bound >= 0):
            raise InputError(f"{name}: a span from {start} to {end} s is not possible; give seconds from 0 up.")
    if end is not None and end <= (start or 0.0):
        raise InputError(f"{name}: the span ends at {end} s, not after its start at {start or 0} s; correct it.")


def _check_whole(handle: Any, name: str) -> None:
    missing = containers.cut_short(handle)
    if missing:
        raise InputError(f"{name} is cut short: {missing}; replace it or leave it out.")


def _check_pages(handle: Any, name: str) -> None:
    """Refuse an OGG file with damaged or missing pages: a decoder passes over them, and time shifts behind them."""
    facts = _Facts() if isinstance(handle, io.BytesIO) else _facts(os.fstat(handle.fileno()))
    if facts.damage is None:
        facts.damage = containers.ogg_damage(handle)
    if facts.damage:
        raise InputError(f"{name} is damaged: {facts.damage}; replace it or leave it out.")


@contextmanager
def _opened(name: str) -> Iterator[Any]:
    """The file, open for reading; what the system refuses becomes one sentence."""
    try:
        if Path(name).is_fifo():  # to open it would be to wait for somebody to write into it
            raise InputError(f"{name} is not a regular file: give an audio file.")
        handle = Path(name).open("rb", buffering=0)  # noqa: SIM115 (closed below; only opening may raise these)
    except FileNotFoundError as error:
        raise InputError(f"{name} does not exist: check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder, not an audio file: give a file, or the folder as a corpus.") from error
    except PermissionError as error:
        raise InputError(f"{name} may not be read (permission denied): change its permissions.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be opened ({_detail(error)}): check the path.") from error
    with handle:
        status = os.fstat(handle.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{name} is not a regular file: give an audio file.")
        if status.st_size == 0:
            raise InputError(f"{name} is empty (0 bytes): replace it or leave it out.")
        yield handle


@contextmanager
def _pyav_errors(name: str) -> Iterator[None]:
    try:
        yield
    except MissingExtra as error:
        if Path(name).suffix.lower() in containers.BEYOND_LIBSNDFILE:
            raise
        raise InputError(
            f"{name} is not audio that libsndfile knows: replace it, leave it out, or, if it is a compressed format, "
            f'`pip install "earmark[audio]"`.'
        ) from error
    except EarmarkError:
        raise
    except Exception as error:  # PyAV raises ValueError, OSError, EOFError and its own types for bad data
        raise InputError(f"{name} is not readable audio ({_detail(error)}): replace it or leave it out.") from error


def _detail(error: BaseException) -> str:
    """A decoder's message as part of a sentence: no path, no final point."""
    text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
    text = " ".join(str(text).split()).removeprefix("Error : ").rstrip(" .")
    return (text[:1].lower() + text[1:]) or type(error).__name__


# --- samples ------------------------------------------------------------------------------------------------


def resample(samples: ArrayLike, rate: float, to: int) -> Samples:
    """Resample with soxr HQ. A clip keeps at least one sample; at an equal rate the samples come back unchanged."""
    if rate <= 0 or to <= 0:
        raise UsageError(f"A rate of {min(rate, to)} Hz is not possible; give a positive whole number.")
    given = np.asarray(samples, dtype=np.float32)
    if rate == to or not len(given):
        return given
    import soxr

    # soxr returns nothing for a clip shorter than its filter's step; silence behind it lets the sound out.
    wanted = max(1, round(len(given) * to / rate))
    made: Samples = soxr.resample(given, rate, to, quality="HQ")
    if len(made) < wanted:
        padded = np.pad(given, (0, math.ceil(rate / to) + 64))
        made = soxr.resample(padded, rate, to, quality="HQ")
    return np.ascontiguousarray(made[:wanted], dtype=np.float32)


def peak_normalise(samples: ArrayLike) -> Samples:
    """Scale so that the largest magnitude is 1. Silence stays silence."""
    given = np.asarray(samples, dtype=np.float32)
    peak = float(np.abs(given).max()) if given.size else 0.0
    return given / np.float32(peak) if peak > 0 else given.copy()


# --- writing ------------------------------------------------------------------------------------------------


def write(path: str | os.PathLike[str], samples: ArrayLike, rate: int) -> None:
    """Write mono 16-bit FLAC or WAV by the suffix; the file appears whole or not at all.

    Values are rounded to the grid that `read` uses (k / 32768), so 16-bit audio comes through unchanged;
    values outside [-1, 1) are clipped.
    """
    import soundfile

    target = locate(path)
    kind = {".flac": "FLAC", ".wav": "WAV"}.get(target.suffix.lower())
    if kind is None:
        raise UsageError(f"{target} cannot be written: give a name that ends in .flac or .wav.")
    given = np.asarray(samples, dtype=np.float64)
    if given.ndim != 1 or not len(given):
        raise InputError(f"{target} cannot be written: it needs one channel with at least one sample.")
    if not np.isfinite(given).all():
        raise InputError(f"{target} cannot be written: the samples hold NaN or infinity.")
    grid = np.clip(np.rint(given * 32768), -32768, 32767).astype(np.int16)
    encoded = io.BytesIO()
    try:
        soundfile.write(encoded, grid, rate, format=kind, subtype="PCM_16")
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{target} cannot be written at {rate} Hz ({_detail(error)}).") from error
    write_whole(target, encoded.getvalue())
