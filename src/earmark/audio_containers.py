"""What libsndfile leaves open: formats that only PyAV decodes, and files that lack a part of their sound."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, require

BEYOND_LIBSNDFILE = frozenset(
    (".m4a", ".mp4", ".aac", ".wma", ".webm", ".mka", ".ac3", ".amr", ".3gp", ".mov", ".opus", ".g722")
)
HEADERLESS = {".g722": "g722"}
"""Formats without a header, known by the file's name alone: what FFmpeg calls them. A decoder of theirs carries its
state along, so that a span is decoded from the start of the file."""

# Only formats that hold their sound themselves: a playlist could name other files or addresses.
_FORMATS = "aac,ac3,aiff,amr,ape,asf,au,caf,dsf,eac3,flac,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,ogg,tta,w64,wav,wv"
# A lossy decoder needs a few packets before its output is right.
_WARM_UP = 0.25
_PADDING = 4096

Result = TypeVar("Result")

_UNSAID = 0xFFFFFFFF
_FIRST_PAGE, _LAST_PAGE = 2, 4
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_W64_RIFF = bytes.fromhex("726966662e91cf11a5d628db04c10000")
_W64_DATA = bytes.fromhex("64617461f3acd3118cd100c04f8edb8a")


def frame_at(seconds: float, rate: int) -> int:
    """The sample at a time. Halves go up, so that spans of one length hold one number of samples."""
    return math.floor(seconds * rate + 0.5)


def outside(name: str, start: float | None, end: float | None, there: float, missing: str = "") -> InputError:
    """The error for a span that a file does not hold."""
    why = f"it is cut short, {missing}" if missing else "correct the start and end"
    until = "its end" if end is None else f"{end:g} s"
    return InputError(f"{name} lasts {there:.3f} s, so the span from {start or 0:g} s to {until} is outside it: {why}.")


# --- PyAV ---------------------------------------------------------------------------------------------------


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


def _open(handle: Any, name: str) -> tuple[Any, Any]:
    handle.seek(0)
    av = require("av", f"{name}: compressed formats such as M4A and AAC", "audio")
    av.logging.set_level(None)
    raw = HEADERLESS.get(_suffix(name))
    container = av.open(handle, format=raw, options={"format_whitelist": raw or _FORMATS}, metadata_errors="ignore")
    if not container.streams.audio:
        container.close()
        raise InputError(f"{name} holds no sound, only other streams: replace it or leave it out.")
    return container, container.streams.audio[0]


def probe(handle: Any, name: str) -> tuple[float, int, int]:
    """Duration in seconds, rate and channels, from the container where it says them."""
    container, stream = _open(handle, name)
    with container:
        rate, channels, stated = int(stream.rate), int(stream.channels), _stated(container, stream)
    if stated is None:
        stated = len(decode(handle, name, None, None, 0.0)[0])
    return stated / rate, rate, channels


def _stated(container: Any, stream: Any) -> int | None:
    """The number of samples that the container states; None where it is unsaid or, as for raw AAC, a guess."""
    if container.format.name in ("aac", "ac3", "eac3", "mp3", "amr") or not stream.duration:
        return None
    return round(float(stream.duration * stream.time_base) * int(stream.rate))


def decode(
    handle: Any, name: str, start: float | None, end: float | None, slack: float
) -> tuple[NDArray[np.float32], int]:
    """Mono samples of the span and their rate. Decoding starts a few packets before the span."""
    container, stream = _open(handle, name)
    with container:
        rate, base, stated = int(stream.rate), stream.time_base, _stated(container, stream)
        promised = stated  # to within a packet
        if stated is None and "matroska" in container.format.name and len(container.streams) == 1:
            # What a Matroska file says of the whole is said of its only stream.
            promised = round(float(container.duration) / 1_000_000 * rate) if container.duration else None
        origin = float((stream.start_time or 0) * base)
        first = frame_at(start or 0.0, rate)
        last = None if end is None else frame_at(end, rate)
        sought = first / rate > _WARM_UP and _suffix(name) not in HEADERLESS
        if sought:
            container.seek(round((first / rate - _WARM_UP + origin) / base), stream=stream)
        pieces: list[NDArray[np.float32]] = []
        position = None if sought else 0
        for frame in container.decode(stream):
            mono = _mono(frame)
            if position is None:
                position = round((float((frame.pts or 0) * base) - origin) * rate)
            low, high = max(first - position, 0), len(mono)
            if last is not None:
                high = min(last - position, high)
            if low < high:
                pieces.append(mono[low:high])
            position += len(mono)
            if last is not None and position >= last:
                break
    found = np.concatenate(pieces) if pieces else np.empty(0, np.float32)
    there = position or 0
    if start is None and end is None and promised is not None and there < promised - 0.1 * rate:
        raise InputError(
            f"{name} is cut short: its header promises {promised / rate:.2f} s and {there / rate:.2f} s are there; "
            "replace it or leave it out."
        )
    if end is None and stated is not None and 0 < there - stated <= _PADDING:
        # What an encoder adds to fill its last packet is no sound of the recording.
        found = found[: max(stated - first, 0)]
    short = last is not None and len(found) < last - first - slack * rate
    if (first and not len(found)) or short:
        raise outside(name, start, end, (stated or there) / rate)
    return found, rate


def _mono(frame: Any) -> NDArray[np.float32]:
    values = frame.to_ndarray()
    if not frame.format.is_planar:
        values = values.reshape(-1, frame.layout.nb_channels).T
    if values.dtype.kind == "f":
        scaled = values.astype(np.float32)
    elif values.dtype == np.uint8:
        scaled = (values.astype(np.float32) - 128) / 128
    else:
        scaled = (values / -float(np.iinfo(values.dtype).min)).astype(np.float32)
    averaged: NDArray[np.float32] = scaled[0] if len(scaled) == 1 else scaled.mean(axis=0, dtype=np.float32)
    return averaged


# --- files that lack a part -------------------------------------------------------------------------------


def _restoring(look: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """`look` at an open file, which leaves its place in it as it was: a decoder may be reading on from there."""

    def looking(handle: Any) -> Result:
        place = handle.tell()
        try:
            return look(handle)
        finally:
            handle.seek(place)

    return looking


@_restoring
def cut_short(handle: Any) -> str:
    """Say what is missing from the end of a file, or '' when nothing is, or nothing is known.

    libsndfile quietly takes what is left of the sound of these containers.
    """
    handle.seek(0)
    head = handle.read(40)
    magic, kind = head[:4], head[8:12]
    if magic in (b"RIFF", b"RF64") and kind == b"WAVE":
        stated = struct.unpack_from("<Q", head, 28)[0] if magic + head[12:16] == b"RF64ds64" else None
        return _chunk_missing(handle, 12, "<4sI", b"data", 1, stated)
    if magic == b"FORM" and kind in (b"AIFF", b"AIFC"):
        return _chunk_missing(handle, 12, ">4sI", b"SSND", 1)
    if magic == b"caff":
        return _chunk_missing(handle, 8, ">4sq", b"data", 0)
    if magic == b".snd":
        start, length = struct.unpack_from(">II", head, 4)
        return "" if length == _UNSAID else _missing(_size(handle) - start, length)
    if head[:16] == _W64_RIFF:
        return _chunk_missing(handle, 40, "<16sQ", _W64_DATA, 7)
    return _ogg_missing(handle) if magic == b"OggS" else ""


def _size(handle: Any) -> int:
    handle.seek(0, 2)
    return int(handle.tell())


def _missing(there: int, promised: int) -> str:
    if promised <= there:
        return ""
    return f"its header promises {promised} bytes of sound and {max(there, 0)} are there"


def _chunk_missing(handle: Any, place: int, form: str, wanted: bytes, padding: int, stated: int | None = None) -> str:
    """Walk over the chunks to the one with the sound, and compare its length, or what is `stated`, with what follows.

    A chunk of Wave64 counts its own head. Chunks start at even places, those of Wave64 at multiples of eight.
    """
    size, head = _size(handle), struct.calcsize(form)
    own = head if wanted == _W64_DATA else 0
    while place + head <= size:
        handle.seek(place)
        name, length = struct.unpack(form, handle.read(head))
        if name == wanted:
            # Programs that write to a pipe cannot come back for the length and leave one of these.
            unsaid = length in (-1, 0, _UNSAID) or (head == 8 and length >= 0x7FFFF000)
            if unsaid and not stated:
                return ""
            return _missing(size - place - head, stated or length - own)
        if length < own:
            return ""
        place += head + length - own
        place += -place & padding if own else length & padding
    return ""


def _ogg_missing(handle: Any) -> str:
    """The last page of a whole file is there to its last byte, and is marked as the last of its stream."""
    tail = _ogg_tail(handle)
    page = _page_before(tail, len(tail))
    if page < 0:
        return ""
    header = tail[page : page + 27]
    table = tail[page + 27 : page + 27 + header[26]] if len(header) == 27 else b""
    whole = len(header) == 27 and len(table) == header[26] and page + 27 + len(table) + sum(table) <= len(tail)
    if not whole:
        return "its last page is incomplete"
    return "" if header[5] & _LAST_PAGE else "its last page is not marked as the end"


@_restoring
def ogg_damage(handle: Any) -> str:
    """Say which page of an OGG file is damaged or missing, or ''. A decoder passes over such pages without a word.

    Every page has a checksum and a number, and starts where the one before it ends; what follows the marked last page
    may be anything, as tags of other programs are.
    """
    handle.seek(0)
    if handle.read(4) != b"OggS":
        return ""
    handle.seek(0)
    numbers: dict[int, int] = {}
    ended: set[int] = set()
    while len(header := handle.read(27)) == 27:
        if header[:5] != b"OggS\0":
            pages = sum(numbers.values()) + len(numbers)
            return "" if ended >= numbers.keys() else f"what follows page {pages} is no page"
        kind, _, serial, number, checksum = struct.unpack_from("<BqIII", header, 5)
        table = handle.read(header[26])
        body = handle.read(sum(table))
        if len(table) < header[26] or len(body) < sum(table):
            return ""  # the end of the file, which is not looked at here
        if _ogg_checksum(header[:22] + bytes(4) + header[26:] + table + body) != checksum:
            return f"page {number + 1} does not match its checksum"
        if not kind & _FIRST_PAGE and number != numbers.get(serial, number - 1) + 1:
            return f"pages {numbers[serial] + 2} to {number} are missing"
        numbers[serial] = number
        ended.discard(serial)
        if kind & _LAST_PAGE:
            ended.add(serial)
    return ""


def _ogg_checksum(data: bytes) -> int:
    """CRC-32 of the OGG format: the polynomial of zlib with bits in the other order, and nothing inverted."""
    other = ~zlib.crc32(data.translate(_REVERSED), 0xFFFFFFFF) & 0xFFFFFFFF
    return int(f"{other:032b}"[::-1], 2)


@_restoring
def ogg_last_page(handle: Any) -> int:
    """The sample at which the last page of an OGG file starts, or 0 where that is not known.

    libvorbis counts back from the end of a page to find a sample, and the last page states an end that was
    trimmed, so a seek into it comes out late. Opus counts at 48 kHz with a lead-in: its pages then start a little
    before what is returned, which a margin must cover.
    """
    tail = _ogg_tail(handle)
    page = _page_before(tail, _page_before(tail, len(tail)))
    if page < 0:
        return 0
    return max(0, int(struct.unpack_from("<q", tail, page + 6)[0]))


def _ogg_tail(handle: Any) -> bytes:
    """The end of the file with its last two pages: a page is at most 65,307 bytes long."""
    handle.seek(max(0, _size(handle) - 2 * 65_307))
    return bytes(handle.read())


def _page_before(tail: bytes, end: int) -> int:
    """Where the last page that begins before `end` begins, or -1."""
    page = tail.rfind(b"OggS", 0, max(end, 0))
    while page >= 0 and tail[page + 4 : page + 5] not in (b"\0", b""):
        page = tail.rfind(b"OggS", 0, page)
    return page
