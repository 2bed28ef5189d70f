"""A codec whose two halves run in two processes that share nothing but the payload.

    samples ── encoder's cell ── packets or tokens, header ── decoder's cell ── samples
                                 counted and checked here

`isolated` gives an object of the same shape as any codec: whoever codes, measures or checks need not know. Encoder and
decoder are opened apart, from the same spelling; each sees the system, Python, its own code and weights, and neither
the clips nor what the other wrote (`earmark.isolation`). A call that takes too long, ends its process or sends nonsense
costs the clip. Cells stay warm while clip after clip comes; those of Earmark's own classical codecs are shared, any
other codec has cells of its own.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.catalogue import is_path, parse_spec
from earmark.codecs.classical.cards import FACTORIES as CLASSICAL
from earmark.codecs.classical.lyra import weights_folder
from earmark.codecs.contract import Codec, CodecCard, CodecFailure, Coded, Waveform
from earmark.codecs.harness import pack, unpack
from earmark.errors import InputError, UsageError
from earmark.extractors import wheel_weights
from earmark.isolation import (
    Bounds,
    Cell,
    CellDied,
    CellFailure,
    CellOverdue,
    Message,
    Support,
    array_of,
    arrays_message,
    support,
)
from earmark.runs.opened_files import named_by

REAL_TIMES, SPARE_SECONDS = 20.0, 30.0
"""What each half of a codec may take for a clip: so many times its length, and so many seconds more."""
OPEN_SECONDS = 600.0
"""What opening a codec may take: weights are read then."""
_FUNCTION = "earmark.codecs._inside:answer"
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME")

Mode = Literal["auto", "full", "off"]


@dataclass(frozen=True)
class Confinement:
    """How codecs are kept apart: what none of them may see, what they may, and how long they may take."""

    mode: Mode = "auto"
    hidden: tuple[str, ...] = ()  # clips, and folders of caches and results
    readable: tuple[str, ...] = ()
    clip_seconds: float | None = None  # None: by the length of the clip

    def allowed(self, seconds: float) -> float:
        """What a half may take for a clip of so many seconds."""
        return self.clip_seconds if self.clip_seconds is not None else REAL_TIMES * seconds + SPARE_SECONDS

    def support(self) -> Support:
        """What can be offered here; raises UsageError where full isolation was asked for and cannot be had."""
        offered = Support("none", "isolation was turned off") if self.mode == "off" else support()
        if self.mode == "full" and offered.level != "full":
            raise UsageError(f"Codecs cannot be fully isolated here: {offered.reason}.")
        return offered


class Portable(NamedTuple):
    """A codec that exists as an object, as bytes that another process can open."""

    data: bytes
    digest: str
    card: CodecCard


def portable(codec: Codec) -> Portable | None:
    """The codec as bytes; None where another process could not import what it is made of."""
    try:
        data = pickle.dumps(codec, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # a stranger's object may refuse in any way
        return None
    return None if b"__main__" in data else Portable(data, hashlib.sha256(data).hexdigest(), codec.card)


class IsolatedCodec:
    """A codec in two cells, in the shape of any codec."""

    thread_safe = True

    def __init__(self, codec: str | Portable, confinement: Confinement, encoder: Cell, decoder: Cell) -> None:
        self._codec, self._confinement = codec, confinement
        self._name = codec if isinstance(codec, str) else codec.digest
        self._cells = {"encode": encoder, "decode": decoder}
        self.files: set[str] = set()  # opened by either half
        facts = self._open("decode")
        self.card = card_from(facts.head["card"])
        self.has_own_card = bool(facts.head.get("has_own_card", True))
        if facts.head.get("conceals"):
            self.decode_with_losses = self._decode_with_losses

    def encode(self, waveform: Waveform) -> Coded:
        message = arrays_message({"do": "encode", "codec": self._name}, [np.asarray(waveform, np.float32)])
        reply = self._ask("encode", message, len(waveform), _most(len(waveform)))
        coded: Coded = self._received(lambda: unpack(reply.blobs[0]))
        return coded

    def decode(self, coded: Coded) -> Waveform:
        return self._decoded(Message({"do": "decode", "codec": self._name}, (pack(coded),)), coded)

    def _decode_with_losses(self, coded: Coded, lost: NDArray[np.bool_]) -> Waveform:
        message = arrays_message({"do": "decode", "codec": self._name}, [np.asarray(lost, np.bool_)], pack(coded))
        return self._decoded(message, coded)

    def prepare(self) -> None:
        """Open the encoder, so that its first clip is not timed with its weights."""
        self._open("encode")

    def _decoded(self, message: Message, coded: Coded) -> Waveform:
        reply = self._ask("decode", message, coded.samples, _most(coded.samples))
        waveform: Waveform = self._received(lambda: array_of(reply))
        return waveform

    def _received(self, read: Any) -> Any:
        try:
            return read()
        except (InputError, IndexError) as error:
            raise CodecFailure(f"{self.card.name}: its process sent something else than it was asked for.") from error

    def _open(self, half: str) -> Message:
        codec = self._codec
        head = {"do": "open", "codec": self._name, "spec": codec if isinstance(codec, str) else ""}
        try:
            return self._kept(
                self._cells[half].call(Message(head, () if isinstance(codec, str) else (codec.data,)), OPEN_SECONDS)
            )
        except CellFailure as error:
            raise self._failure("opening it", error) from error
        except (CellDied, CellOverdue) as error:
            raise CodecFailure(f"{self._title}: while it was opened, {error}.") from error

    def _ask(self, half: str, message: Message, samples: int, most: int = 4 << 30) -> Message:
        cell = self._cells[half]
        seconds = self._confinement.allowed(samples / self.card.rate)
        what = str(message.head["do"])
        try:
            try:
                return self._kept(cell.call(message, seconds, most))
            except CellFailure as error:
                if error.kind != "NotOpened":
                    raise
            self._open(half)
            return self._kept(cell.call(message, seconds, most))
        except CellFailure as error:
            raise self._failure(what, error) from error
        except (CellDied, CellOverdue) as error:
            raise CodecFailure(f"{self.card.name}: {what} did not return: {error}.") from error

    def _kept(self, reply: Message) -> Message:
        files = reply.head.get("files", ())
        if isinstance(files, list):
            self.files.update(file for file in files[:10_000] if isinstance(file, str))
        return reply

    @property
    def _title(self) -> str:
        return str(getattr(getattr(self, "card", None), "name", "") or (self._codec if isinstance(self._codec, str)
                                                                       else self._codec.card.name))  # fmt: skip

    def _failure(self, what: str, error: CellFailure) -> InputError:
        if error.kind == "EarmarkError":
            return InputError(str(error)) if what == "opening it" else CodecFailure(str(error))
        if error.kind == "Ended":
            return CodecFailure(f"{self._title}: {what}: {error}.")
        text = f"{self._title}: {what} raised {error.kind}: {error}".rstrip(": ")
        missing = error.missing
        if missing and self._cells["decode"].support.level == "full" and Path(missing).exists():
            text += f" (an isolated codec does not see {missing}: name it, or its folder, with --readable)"
        return CodecFailure(f"{text}.")


def _most(samples: int) -> int:
    """The bytes that may come from a cell for so many samples: more is no codec, and would fill the owner's memory."""
    return (64 << 20) + 64 * samples


LONGEST_TEXT = 10_000


def card_from(facts: Mapping[str, Any]) -> CodecCard:
    """A card as it came from a cell. What is counted, allocated or written by it is of the right type and size."""
    try:
        known = {name: facts[name] for name in CodecCard.field_names() if name in facts}
        card = CodecCard(**{**known, "codebook_sizes": tuple(known.get("codebook_sizes", ()))})
    except (TypeError, KeyError) as error:
        raise InputError("A codec's process sent a card that is none.") from error
    for name, value in vars(card).items():
        if not _is_possible(name, value):
            raise InputError(f"A codec's card has an impossible {name}: {str(value)[:100]!a}.")
    return card


def _is_possible(name: str, value: Any) -> bool:
    match name:
        case "rate":
            return type(value) is int and 1000 <= value <= 1_000_000
        case "codebook_sizes":
            return all(type(size) is int and 1 <= size < 1 << 62 for size in value)
        case "packet_bits" | "codebooks":
            return value is None or (type(value) is int and 1 <= value < 1 << 31)
        case "delay":
            return value is None or (type(value) is int and abs(value) < 1 << 31)
        case "kbps" | "frame_rate":
            return value is None or (type(value) in (int, float) and 0 <= value < 1e9)
        case "causal" | "lossless" | "encode_only" | "variable_rate":
            return type(value) is bool or (name == "causal" and value is None)
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return False
    if name in ("name", "family"):
        return 0 < len(value) <= 200 and value.isprintable()
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


# --- cells that stay warm --------------------------------------------------------------------------------------------


class _Warm:
    """The cells of this process: a pair for Earmark's classical codecs, a pair for the codec that came last, and a
    second pair of either, in which results are tried again."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._pairs: dict[tuple[str, Bounds, bool], tuple[Cell, Cell]] = {}  # by owner, bounds, and whether again
        self._lock = threading.Lock()

    def pair(self, owner: str, bounds: Bounds, again: bool) -> tuple[Cell, Cell]:
        with self._lock:
            if self._owner != os.getpid():  # a fork may not talk to its parent's cells
                self._owner, self._pairs = os.getpid(), {}
            wanted = owner, bounds, again
            if wanted not in self._pairs:
                for known in [known for known in self._pairs if bool(known[0]) == bool(owner) and known[2] == again]:
                    for cell in self._pairs.pop(known):
                        cell.close()
                self._pairs[wanted] = Cell(_FUNCTION, bounds), Cell(_FUNCTION, bounds)
            return self._pairs[wanted]

    def close(self) -> None:
        for pair in self._pairs.values() if self._owner == os.getpid() else ():
            for cell in pair:
                cell.close()
        self._pairs.clear()


_WARM = _Warm()
atexit.register(_WARM.close)


def close_cells() -> None:
    """End the warm cells of this process."""
    _WARM.close()
    isolated.cache_clear()


@functools.lru_cache(maxsize=16)
def isolated(codec: str | Portable, confinement: Confinement, again: bool = False) -> IsolatedCodec:
    """The codec in the warm cells of this process; `again` in other ones, which saw nothing of the first."""
    confinement.support()
    owner, bounds = _owner_and_bounds(codec, confinement)
    return IsolatedCodec(codec, confinement, *_WARM.pair(owner, bounds, again))


@contextmanager
def fresh_cells(codec: str | Portable, confinement: Confinement) -> Iterator[IsolatedCodec]:
    """The codec in cells that have seen nothing, and that end with the block."""
    _, bounds = _owner_and_bounds(codec, confinement)
    with Cell(_FUNCTION, bounds) as encoder, Cell(_FUNCTION, bounds) as decoder:
        yield IsolatedCodec(codec, confinement, encoder, decoder)


class Description(NamedTuple):
    """A stranger's codec: its card, and the hash of what its output depends on."""

    card: CodecCard
    reads: str
    files: tuple[str, ...]


def describe(spec: str, confinement: Confinement, rooms: Iterable[str]) -> Description:
    """Open a stranger's codec in a cell of its own, never in this process, and say what its output depends on."""
    _, bounds = _owner_and_bounds(spec, confinement)
    given = [word for word in _words(spec) if word]
    head = {"do": "describe", "codec": spec, "spec": spec, "given": given, "rooms": list(rooms)}
    with Cell(_FUNCTION, bounds, confined=confinement.mode != "off") as cell:
        try:
            reply = cell.call(Message(head), OPEN_SECONDS)
        except CellFailure as error:
            known = error.kind == "EarmarkError"
            said = str(error) if error.kind == "Ended" else f"{error.kind}: {error}"
            raise InputError(str(error) if known else f"{spec} cannot be opened: {said}.") from error
        except (CellDied, CellOverdue) as error:
            raise InputError(f"{spec} cannot be opened: {error}.") from error
        files = set(reply.head.get("paths", ()))
        try:
            tried = cell.call(Message({"do": "try", "codec": spec}), confinement.allowed(1.0))
            files |= set(tried.head.get("files", ()))
        except (CellFailure, CellDied, CellOverdue):
            pass  # the clips will say what is wrong with it
    return Description(card_from(reply.head["card"]), str(reply.head["reads"]), tuple(sorted(files)))


_MOST_COVERED = 200


def covering(
    files: Iterable[str], codecs: Iterable[Any] = (), confinement: Confinement | None = None
) -> tuple[str, ...]:
    """A few folders that hold the files, and those behind links; files in a folder from which Python or one of the
    codecs may read, or around one, are named singly: a folder that is read cannot be covered."""
    entries = [*sys.path, sys.prefix, sys.base_prefix, str(Path.cwd())]
    for codec in codecs:
        if isinstance(codec, str | Portable):
            entries += _owner_and_bounds(codec, confinement or Confinement())[1].readable
    needed = {path for entry in entries if entry for path in (Path(entry).absolute(), Path(entry).resolve())}
    used = {folder for path in needed for folder in (path, *path.parents)}
    folders: dict[Path, list[str]] = {}
    for path in {path for file in files for path in (Path(file).absolute(), Path(file).resolve())}:
        folders.setdefault(path.parent, []).append(str(path))
    single = [file for folder, inside in folders.items() if folder in used for file in inside]
    covered = {folder for folder in folders if folder not in used}
    while len(covered) > _MOST_COVERED:
        outer = {folder.parent if folder.parent not in used else folder for folder in covered}
        if outer == covered:
            break
        covered = outer
    return (*sorted(map(str, covered)), *sorted(single))


def _owner_and_bounds(codec: str | Portable, confinement: Confinement) -> tuple[str, Bounds]:
    """Whose cells a codec runs in ("" for Earmark's own classical ones), and what they may see."""
    folder = weights_folder()
    readable = [*confinement.readable, *([str(folder)] if folder else [])]
    if isinstance(codec, str):
        spec = parse_spec(codec)
        if spec.name in CLASSICAL and not spec.argument:
            return "", Bounds(tuple(readable), confinement.hidden)
        named = named_by(spec.argument, spec.options)
        readable += {str(path.parent) for path in named}
        if not is_path(spec) and spec.name in CLASSICAL:
            return codec, Bounds(tuple(readable), confinement.hidden)
    home = Path.home()
    readable += [os.environ.get(name, "") for name in _CACHES]
    readable += [str(home / ".cache/huggingface"), str(home / ".cache/torch"), str(wheel_weights.weights_folder())]
    working = str(Path.cwd())
    if isinstance(codec, str) and (file := codec.partition(":")[0]).endswith(".py"):
        readable.append(str(Path(file).expanduser().absolute().parent))
    bounds = Bounds(tuple(path for path in readable if path), confinement.hidden, working)
    return (codec if isinstance(codec, str) else codec.digest), bounds


def _words(spec: str) -> list[str]:
    """Names and values of the options in a spelling: they may name files."""
    return [word for option in spec.split("?")[1:] for pair in option.split("&") for word in pair.split("=")]
