"""Which configurations are one model: those of a family may not stand on both sides of a split.

VocSim's configurations are twelve models under several poolings (together: twenty methods), PCA sizes and distances.
Two of one method score almost alike, so that a method is predicted from itself when they are split at random. Methods
of one model are cousins: the stricter split holds out models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["method", "model"]

VOCSIM_MODELS: dict[str, str] = {
    **dict.fromkeys(("EW", "EWF", "EWMTF", "EWT", "EWTF"), "Whisper"),
    **dict.fromkeys(("E", "EF", "EMTF", "ET", "ETF"), "WhisperSeg"),
    **dict.fromkeys(("CLP", "CLAP"), "CLAP"),
    **{"WLM": "WavLM", "W2V": "Wav2Vec2", "MAE": "AudioMAE", "EAT": "EAT", "BEATs": "BEATs"},
    **{"CC": "EnCodec", "VC": "VAE", "AC": "AE", "M": "log-mel"},
}
"""The model behind each of VocSim's codes."""

CODECS = dict(zip("ABCDEF", ("SpeechTokenizer", "AcademiCodec", "AudioDec", "DAC", "EnCodec", "FunCodec"), strict=True))
"""The model behind each letter of Codec-SUPERB."""

_VOCSIM_METHOD = re.compile(r"(?P<code>[A-Za-z0-9]+?)(?: D(?:30|100))?")
_CODEC = re.compile(r"(?P<letter>[A-F])[1-9]?")


def vocsim_family(method: str, level: Level = "method") -> str:
    """The family of a configuration such as "EWMTF D100": its method, EWMTF, or the model behind it, Whisper.

    A name that is not VocSim's is a family of its own.
    """
    found = _VOCSIM_METHOD.fullmatch(method.strip())
    if found is None or found["code"] not in VOCSIM_MODELS:
        return method
    return found["code"] if level == "method" else VOCSIM_MODELS[found["code"]]


def vocsim_kind(method: str) -> str:
    """What a configuration is among those of its method: "D100", "D30", or "raw" without PCA."""
    family = vocsim_family(method)
    return method.strip().removeprefix(family).strip() or "raw"


def codec_family(codec: str) -> str:
    """The model of a codec such as "E3": EnCodec; another name is a family of its own."""
    found = _CODEC.fullmatch(codec.strip())
    return CODECS[found["letter"]] if found else codec


def families(name: str, systems: Iterable[str], level: Level = "method") -> dict[str, str]:
    """The family of each system of a published set: "vocsim" (by method or by model), "codec-superb" (by codec)."""
    if name == "codec-superb":
        return {system: codec_family(system) for system in systems}
    if name.startswith("vocsim"):
        return {system: vocsim_family(system, level) for system in systems}
    return {system: system for system in systems}
