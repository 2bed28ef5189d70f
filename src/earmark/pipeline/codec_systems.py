"""The codecs of a run: opened far enough to know their cards, each with the hash of all that its output depends on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from earmark.codecs.catalogue import availability, card_of, expand, families, open_codec, parse_spec
from earmark.codecs.classical.cards import FACTORIES as CLASSICAL
from earmark.codecs.classical.lyra import weights_folder
from earmark.codecs.contract import Category, Codec, CodecCard
from earmark.errors import InputError, UsageError
from earmark.pipeline import identity, keys
from earmark.pipeline.identity.files import digests, named_by, with_companions

__all__ = ["CodecSystem", "open_systems"]

_HARNESS = ("audio.py", "codecs/adapted.py", "codecs/catalogue.py", "codecs/contract.py", "codecs/harness.py")
_MEASURES = (
    "codecs/alignment.py",
    "codecs/contract.py",
    "codecs/harness.py",
    "codecs/kernels.py",
    "codecs/packet_loss.py",
    "codecs/signal/*.py",
    "codecs/tandem.py",
    "codecs/clip_work.py",
)
_CALIBRATION = ("codecs/alignment.py", "pipeline/codec_delays.py")
_LIBRARIES = ("ai-edge-litert", "av", "imageio-ffmpeg", "numpy", "pycodec2", "scipy", "soundfile", "soxr")
_NEURAL_LIBRARIES = ("ai-edge-litert", "numpy", "onnxruntime", "scipy", "soxr", "torch", "transformers")
_METRIC_LIBRARIES = (
    "numba", "numpy", "pesq", "praat-parselmouth", "pystoi", "scipy", "soxr", "speechmos", "visqol-python", "zimtohrli",
)  # fmt: skip


@dataclass(frozen=True)
class CodecSystem:
    """One setting of a codec. `codec` is what workers are given: its spec, or the codec itself."""

    codec: str | Codec
    card: CodecCard
    key: str

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def coded_kind(self) -> str:
        return f"coded/{self.key}"

    def measured_kind(self, delay: float, category: Category) -> str:
        """Where measurements lie that were made with this delay taken out."""
        code = keys.code_of(_MEASURES), keys.versions(*_METRIC_LIBRARIES)
        return f"codec-metrics/{keys.fingerprint('codec metrics 1', self.key, delay, category, code)}"

    def delay_key(self, digests: Sequence[str]) -> str:
        """The name of a delay calibrated on these clips."""
        return keys.fingerprint("codec delay 1", self.key, list(digests), keys.code_of(_CALIBRATION))


def open_systems(given: Sequence[str | Codec]) -> tuple[list[CodecSystem], list[str]]:
    """Every setting that `given` stands for, and a note on those of a group (`neural`, `lyra`) that cannot run here.

    A setting that was named by itself and cannot run is an error: whoever named it wants it.
    """
    systems: list[CodecSystem] = []
    notes: list[str] = []
    for one in given:
        if not isinstance(one, str):
            systems.append(_strange(one, one, identity.stated_by(one, given=_own_values(one))))
            continue
        for spec in expand([one]):
            lacking = _lacking(spec)
            if lacking and spec == one:
                open_codec(spec)  # says what is wrong, unless its weights are here after all
                lacking = ""
            if lacking:
                notes.append(f"{spec} is left out. {lacking}")
            else:
                systems.append(_named(spec))
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


def _named(spec: str) -> CodecSystem:
    parsed = parse_spec(spec)
    if parsed.name not in families():
        return _strange(spec, *identity.opening(lambda: open_codec(spec), given=_words(spec)))
    if parsed.query or parsed.argument:
        open_codec(spec)  # a wrong option or folder is told now, not as a failure of every clip
    classical = parsed.name in CLASSICAL
    places = ("codecs/classical/*.py",) if classical else ("codecs/neural/*.py", "networks/*.py")
    libraries = keys.versions(*(_LIBRARIES if classical else _NEURAL_LIBRARIES))
    folder = weights_folder() if parsed.name == "lyra" else None
    weights = digests(with_companions(named_by(parsed.argument or "", parsed.options, str(folder or ""))))
    card = card_of(spec)
    behind = [keys.code_of(places), libraries, [digest for _, digest in weights]]
    return CodecSystem(spec, card, _key(card, parsed.with_setting(parsed.setting), behind))


def _strange(given: str | Codec, codec: Any, reads: identity.Reads) -> CodecSystem:
    """A codec from outside: its source counts, that of all it imports, and the files it reads."""
    made = {} if isinstance(given, str) else _own_values(getattr(codec, "model", codec))
    spec = given if isinstance(given, str) else ""
    return CodecSystem(given, codec.card, _key(codec.card, spec, [reads.key, made]))


def _key(card: CodecCard, spec: str, behind: list[Any]) -> str:
    return keys.fingerprint("coded 1", asdict(card), spec, behind, keys.code_of(_HARNESS))


def _words(spec: str) -> list[str]:
    """Parts of a spec that may name files of weights: the values of its options."""
    return [word for word in re.split(r"[?=&]", spec)[1:] if word]


def _own_values(codec: Any) -> dict[str, str]:
    """What an object was made with, as far as text can say it."""
    return {name: repr(value)[:1000] for name, value in sorted(getattr(codec, "__dict__", {}).items())}
