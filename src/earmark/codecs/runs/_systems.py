"""The codecs of a run: opened far enough to know their cards, each with the hash of all that its output depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earmark.codecs._adapted import Adapted
from earmark.codecs.catalogue import availability, card_of, expand, families, open_codec, parse_spec
from earmark.codecs.cells import Confinement, describe, portable
from earmark.codecs.classical.cards import FACTORIES as CLASSICAL
from earmark.codecs.classical.lyra import weights_folder
from earmark.codecs.clip_work import AnyCodec
from earmark.codecs.contract import Category, Codec, CodecCard
from earmark.codecs.neural.cards import FACTORIES as NEURAL
from earmark.errors import InputError, UsageError
from earmark.runs import strangers
from earmark.runs.identity import Stage, distributions_of
from earmark.runs.opened_files import digests, named_by, with_companions
from earmark.runs.store import Cache

CODE = Stage(
    "code",
    3,
    libraries=("numpy", "scipy", "soundfile", "soxr"),
    modules=("audio.py", "codecs/_adapted.py", "codecs/contract.py", "codecs/harness.py"),
)
MEASURE = Stage(
    "measure",
    4,
    libraries=(
        "numba", "numpy", "pesq", "praat-parselmouth", "pystoi", "scipy", "soxr", "speechmos", "visqol-python",
        "zimtohrli",
    ),
    modules=(
        "codecs/alignment.py",
        "codecs/clip_work.py",
        "codecs/harness.py",
        "codecs/kernels.py",
        "codecs/packet_loss.py",
        "codecs/signal/**/*.py",
        "codecs/tandem.py",
    ),
)  # fmt: skip
ROOMS = ("earmark.codecs.classical.", "earmark.codecs.neural.", "earmark.networks.")
"""Where Earmark's own codecs live: a module there that states a `VERSION` counts by it."""
FACTS = (
    "name", "family", "rate", "kbps", "frame_rate", "codebooks", "codebook_sizes", "packet_bits", "lossless",
    "checkpoint", "version",
)  # fmt: skip
"""What of a codec's card its output or the counting of its bits depends on."""


@dataclass(frozen=True)
class CodecSystem:
    """One setting of a codec. `codec` is what workers are given: its spec, or the codec itself."""

    codec: AnyCodec
    card: CodecCard
    key: str
    alone: bool = False  # whether it is worked on by itself: it has weights, or is a stranger's
    files: tuple[str, ...] = ()  # known to be read; part of the key
    stranger: bool = False  # whether its code comes from outside

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def coded_kind(self) -> str:
        return f"coded/{self.key}"

    def measured_kind(self, delay: float, category: Category) -> str:
        """Where measurements lie that were made with this delay taken out."""
        return f"codec-metrics/{MEASURE.key(self.key, delay, category)}"


def open_systems(
    codecs: Sequence[str | Codec], cache: Cache, confinement: Confinement
) -> tuple[list[CodecSystem], list[str]]:
    """Every setting that `codecs` stand for, and a note on those of a group (`neural`, `lyra`) that cannot run here.

    A setting that was named by itself and cannot run is an error: whoever named it wants it. A stranger's codec that is
    named is never opened in this process, unless isolation is turned off.
    """
    systems: list[CodecSystem] = []
    notes: list[str] = []
    for codec in codecs:
        if not isinstance(codec, str):
            systems.append(_object(codec, cache))
            continue
        for spec in expand([codec]):
            lacking = _lacking(spec)
            if lacking and spec == codec:
                open_codec(spec)  # says what is wrong, unless its weights are here after all
                lacking = ""
            if lacking:
                notes.append(f"{spec} is left out. {lacking}")
            else:
                ours = parse_spec(spec).name in families()
                systems.append(_ours(spec) if ours else _strangers(spec, cache, confinement))
    by_name: dict[str, CodecSystem] = {}
    for system in systems:
        if by_name.setdefault(system.name, system).key != system.key:
            raise UsageError(f"Two codecs are called {system.name}: give one of them another name on its card.")
    if not by_name:
        raise InputError(f"None of these codecs can run here. {notes[0] if notes else 'Name at least one.'}")
    return list(by_name.values()), notes


def _lacking(spec: str) -> str:
    """Why a setting of the catalogue cannot run here; "" when it can, has weights of its own, or is a stranger's."""
    parsed = parse_spec(spec)
    ours = parsed.name in families() and not parsed.argument
    return availability(card_of(spec)) if ours else ""


def _ours(spec: str) -> CodecSystem:
    """A setting of the catalogue: what its card says, the packages its modules use, and its weights."""
    parsed = parse_spec(spec)
    if parsed.query or parsed.argument:
        open_codec(spec)  # a wrong option or folder is told now, not as a failure of every clip
    module = {**CLASSICAL, **NEURAL}[parsed.name].partition(":")[0]
    code = strangers.code_of_modules([module], ROOMS)
    folder = weights_folder() if parsed.name == "lyra" else None
    files = with_companions(named_by(parsed.argument, parsed.options, str(folder or "")))
    weights = [digest for _, digest in digests(files)]
    card = card_of(spec)
    behind = code.sources, distributions_of(code.packages), weights
    alone = bool(card.checkpoint or card.how_to_get) and parsed.name not in CLASSICAL
    return CodecSystem(spec, card, _key(card, parsed.with_setting(parsed.setting), *behind), alone)


def _strangers(spec: str, cache: Cache, confinement: Confinement) -> CodecSystem:
    """A codec from outside: its source counts, that of all it imports, and the files it reads."""
    described = describe(spec, confinement, ROOMS)
    files = digests(map(Path, described.files))
    card = _own_family(described.card)
    key = strangers.resolved(cache, _key(card, spec, described.reads, files))
    return CodecSystem(spec, card, key, True, described.files, stranger=True)


def _object(codec: Codec, cache: Cache) -> CodecSystem:
    """A codec that exists as an object: what it holds counts too."""
    codec = codec if callable(getattr(codec, "decode", None)) else Adapted(codec)
    reads = strangers.stated_by(codec, given=_own_values(codec), rooms=ROOMS)
    sent = portable(codec)
    values = _own_values(getattr(codec, "model", codec)) if sent is None else sent.digest
    card = _own_family(codec.card)
    key = strangers.resolved(cache, _key(card, "", reads.key, values))
    return CodecSystem(sent or codec, card, key, True, tuple(map(str, reads.paths)), stranger=True)


def _own_family(card: CodecCard) -> CodecCard:
    """A stranger's codec is no point on the curve of a family of the list, whatever its card says."""
    return replace(card, family=card.name) if card.family in families() else card


def _key(card: CodecCard, spec: str, *behind: Any) -> str:
    return CODE.key({name: getattr(card, name) for name in FACTS}, spec, *behind)


def _own_values(codec: Any) -> dict[str, str]:
    """What an object was made with, as far as text can say it."""
    return {name: repr(value)[:1000] for name, value in sorted(getattr(codec, "__dict__", {}).items())}
