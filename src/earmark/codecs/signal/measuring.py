"""Run metrics on a pair of waveforms and say of each: a number, not applicable, or failed.

The rule that decides between the last two: `not_applicable` when the *reference* leaves the metric undefined (it is
silent, too short, unvoiced …), `failed` when the reference would do and the *decoded* clip does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from earmark.codecs.contract import CATEGORIES, Category, Measured
from earmark.codecs.signal import intelligibility, opinion, pitch, quality, spectral, waveform
from earmark.codecs.signal.sound import Pair, Sound
from earmark.errors import InputError, MissingExtra, UsageError, did_you_mean, require

__all__ = ["CORE", "EXTRA", "METRICS", "Definitions", "measure", "require_packages"]

Definitions = Literal["mended", "reference"]

CORE = ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr", "f0_voicing_error", "si_sdr")
EXTRA = ("visqol", "zimtohrli", "dnsmos", "dnsmos_p808")

METRICS: Mapping[str, Callable[[Pair], Measured]] = MappingProxyType(
    {
        "stft_distance": spectral.stft_distance,
        "mel_distance": spectral.mel_distance,
        "pesq": quality.pesq,
        "stoi": intelligibility.stoi,
        "f0_corr": pitch.f0_corr,
        "f0_voicing_error": pitch.f0_voicing_error,
        "si_sdr": waveform.si_sdr,
        "visqol": opinion.visqol,
        "zimtohrli": opinion.zimtohrli,
        "dnsmos": opinion.dnsmos,
        "dnsmos_p808": opinion.dnsmos_p808,
    }
)
"""Every metric by its spelling in score tables."""

_PACKAGES = {
    "pesq": ("pesq", "PESQ scores"),
    "f0_corr": ("parselmouth", "Pitch metrics"),
    "f0_voicing_error": ("parselmouth", "Pitch metrics"),
    "visqol": ("visqol", "ViSQOL scores"),
    "zimtohrli": ("zimtohrli", "Zimtohrli scores"),
    "dnsmos": ("speechmos.dnsmos", "DNSMOS scores"),
    "dnsmos_p808": ("speechmos.dnsmos", "DNSMOS scores"),
}


def measure(
    reference: ArrayLike | Sound,
    decoded: ArrayLike,
    rate: int,
    metrics: Sequence[str] = CORE,
    *,
    definitions: Definitions = "mended",
    gain_match: bool = False,
    category: Category = "speech",
) -> dict[str, Measured]:
    """Every metric of one decoded clip, {spelling: Measured}.

    `reference` may be a `Sound`, so that its share of the work is done once for many codecs. `definitions="reference"`
    computes what Codec-SUPERB's code computes, without its sentinels; lengths may then differ, and the shorter clip is
    padded with zeros. `gain_match` scales the decoded clip to the energy of the reference first. `category` decides
    which model ViSQOL uses. A package that is not installed raises MissingExtra: that is no property of the clip.
    """
    _check_arguments(metrics, definitions, category)
    clean = reference if isinstance(reference, Sound) else Sound(reference, rate)
    if clean.rate != rate:
        raise UsageError(f"The reference is at {clean.rate} Hz and the decoded clip at {rate} Hz; resample one.")
    heard = np.asarray(decoded)
    if definitions == "reference" and heard.ndim == 1 and len(heard) != len(clean.samples):
        clean, heard = _padded(clean, heard)
    refused = _refusal(clean, heard)
    if refused is not None:
        return dict.fromkeys(metrics, refused)
    coded = Sound(waveform.gain_matched(heard, clean.samples) if gain_match else heard, rate)
    pair = Pair(clean, coded, definitions == "reference", category)
    return {name: _guarded(METRICS[name], pair) for name in metrics}


def require_packages(metrics: Sequence[str]) -> None:
    """Raise MissingExtra for the first metric whose package is not installed: better before a run than in it."""
    _check_arguments(metrics, "mended", "speech")
    for name in metrics:
        if name in _PACKAGES:
            module, thing = _PACKAGES[name]
            require(module, thing, "codecs")


def _check_arguments(metrics: Sequence[str], definitions: str, category: str) -> None:
    for name in metrics:
        if name not in METRICS:
            raise UsageError(
                f'There is no signal metric "{name}".{did_you_mean(name, METRICS)} Known: {", ".join(METRICS)}.'
            )
    if definitions not in get_args(Definitions):
        raise UsageError(f'definitions is "mended" or "reference", not {definitions!r}.')
    if category not in CATEGORIES:
        raise UsageError(f"A category is {', '.join(CATEGORIES)}, not {category!r}.")


def _padded(clean: Sound, heard: np.ndarray[Any, Any]) -> tuple[Sound, np.ndarray[Any, Any]]:
    """Both as long as the longer of the two, with zeros at the end."""
    length = max(len(clean.samples), len(heard))
    if len(clean.samples) < length:
        clean = Sound(np.pad(clean.samples, (0, length - len(clean.samples))), clean.rate)
    return clean, np.pad(heard, (0, length - len(heard)))


def _refusal(clean: Sound, heard: np.ndarray[Any, Any]) -> Measured | None:
    """Why no metric at all can be had of this pair, if so. What the codec did wrong is `failed`."""
    if heard.ndim != 1 or heard.dtype.kind != "f":
        return Measured.failed(f"the decoded clip is {heard.dtype} of shape {heard.shape}, not one row of floats")
    if not np.isfinite(heard).all():
        return Measured.failed(f"{np.count_nonzero(~np.isfinite(heard))} decoded samples are NaN or infinite")
    if len(heard) != len(clean.samples):
        return Measured.failed(f"the decoded clip has {len(heard)} samples and the reference {len(clean.samples)}")
    if clean.silent:
        return Measured.not_applicable("the reference is silent")
    if Sound(heard, clean.rate).silent:
        return Measured.failed("the decoded clip is silent and the reference is not")
    return None


def _guarded(metric: Callable[[Pair], Measured], pair: Pair) -> Measured:
    try:
        with np.errstate(all="ignore"):  # what is not finite is caught below
            found = metric(pair)
    except (MissingExtra, UsageError):
        raise
    except InputError as error:
        return Measured.failed(str(error))
    except Exception as error:  # other people's compiled code, on input that nobody foresaw
        return Measured.failed(f"{type(error).__name__}: {error}")
    if found.value is not None and not np.isfinite(found.value):
        return Measured.failed(f"the value came out as {found.value}")
    return found
