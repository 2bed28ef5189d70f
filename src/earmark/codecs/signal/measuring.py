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
from earmark.codecs.signal import _intelligibility, _opinion, _pitch, _quality, _spectral, _waveform  # noqa: F401
from earmark.codecs.signal._published import PUBLISHED, entered
from earmark.codecs.signal._sound import Pair, Sound
from earmark.codecs.signal._waveform import gain_matched
from earmark.errors import InputError, MissingExtra, UsageError, did_you_mean, no_exit, require
from earmark.metrics.catalogue import find, is_path
from earmark.scores.metrics import METRICS as RECORDS
from earmark.scores.metrics import family, named

Definitions = Literal["mended", "reference"]

_OWN = {name: RECORDS[name] for name in family("signal")}
CORE = tuple(name for name, record in _OWN.items() if record.standard)
EXTRA = tuple(name for name in _OWN if name not in CORE)

METRICS: Mapping[str, Callable[[Pair], Measured]] = MappingProxyType(
    {name: record.function for name, record in _OWN.items() if record.function is not None}
)
"""Every metric by its spelling in score tables."""

OFFERED = ("reference", "decoded", "rate", "category")
"""What a metric of one's own may take: samples of both clips, aligned, their rate, and what kind of sound they are."""


def measure(
    reference: ArrayLike | Sound, decoded: ArrayLike, rate: int, metrics: str | Sequence[str] = CORE, *,
    definitions: Definitions = "mended", gain_match: bool = False, category: Category = "speech",
) -> dict[str, Measured]:  # fmt: skip
    """Every metric of one decoded clip, {spelling: Measured}; an import path is a metric of one's own.

    `reference` may be a `Sound`, so that its share of the work is done once for many codecs. `definitions="reference"`
    computes what Codec-SUPERB's code computes; its failure values are statuses whose reasons name them, lengths may
    differ, and the shorter clip is padded with zeros. `gain_match` scales the decoded clip to the energy of the
    reference first. `category` decides which model ViSQOL uses. A package that is not installed raises MissingExtra:
    that is no property of the clip.
    """
    metrics = named(metrics)
    functions = {name: _function(name) for name in metrics}
    if definitions not in get_args(Definitions):
        raise UsageError(f'definitions is "mended" or "reference", not {definitions!r}.')
    if category not in CATEGORIES:
        raise UsageError(f"A category is {', '.join(CATEGORIES)}, not {category!r}.")
    clean = reference if isinstance(reference, Sound) else Sound(reference, rate)
    if clean.rate != rate:
        raise UsageError(f"The reference is at {clean.rate} Hz and the decoded clip at {rate} Hz; resample one.")
    output = np.asarray(decoded)
    as_published = definitions == "reference"
    if as_published and output.ndim == 1 and len(output) != len(clean.samples):
        clean, output = _padded(clean, output)
    refused = _unusable(clean, output)
    if refused is not None:
        heard = output.ndim == 1 and output.dtype.kind == "f"  # what Codec-SUPERB's code would take as well
        return {name: entered(refused, name) if as_published and heard else refused for name in metrics}
    coded = Sound(output, rate)
    silence = _silence(clean, coded)
    if silence is not None and not as_published:
        return dict.fromkeys(metrics, silence)
    if gain_match and silence is None:
        coded = Sound(gain_matched(output, clean.samples), rate)
    pair = Pair(clean, coded, category)
    if as_published:
        functions |= {name: PUBLISHED[name] for name in functions if name in PUBLISHED}
    if silence is not None:
        return {name: _as_silence(silence, name, pair) for name in functions}
    return {name: _guarded(function, pair) for name, function in functions.items()}


def require_packages(metrics: str | Sequence[str]) -> None:
    """Raise MissingExtra for the first metric whose package is not installed: better before a run than in it."""
    for name in named(metrics):
        _function(name)
        record = find(name)
        if record.package is not None:
            require(*record.package, "codecs")


def _function(name: str) -> Callable[[Pair], Measured]:
    """What measures a pair: one of Earmark's own, or a stranger's function of what OFFERED names."""
    if name in METRICS:
        return METRICS[name]
    if not is_path(name):
        raise UsageError(
            f'There is no signal metric "{name}".{did_you_mean(name, METRICS)} Known: {", ".join(METRICS)}.'
        )
    record = find(name, OFFERED)

    def measured(pair: Pair) -> Measured:
        offered = (pair.reference.samples, pair.decoded.samples, pair.reference.rate, pair.category)
        given = dict(zip(OFFERED, offered, strict=True))
        value = record.compute(**{argument: given[argument] for argument in record.needs})
        return value if isinstance(value, Measured) else Measured(float(value))

    return measured


def _padded(clean: Sound, output: np.ndarray[Any, Any]) -> tuple[Sound, np.ndarray[Any, Any]]:
    """Both as long as the longer of the two, with zeros at the end."""
    length = max(len(clean.samples), len(output))
    if len(clean.samples) < length:
        clean = Sound(np.pad(clean.samples, (0, length - len(clean.samples))), clean.rate)
    return clean, np.pad(output, (0, length - len(output)))


def _unusable(clean: Sound, output: np.ndarray[Any, Any]) -> Measured | None:
    """Why no metric at all can be had of this pair, if so."""
    if output.ndim != 1 or output.dtype.kind != "f":
        return Measured.failed(f"the decoded clip is {output.dtype} of shape {output.shape}, not one row of floats")
    if not np.isfinite(output).all():
        return Measured.failed(f"{np.count_nonzero(~np.isfinite(output))} decoded samples are NaN or infinite")
    if len(output) != len(clean.samples):
        return Measured.failed(f"the decoded clip has {len(output)} samples and the reference {len(clean.samples)}")
    return None


def _silence(clean: Sound, coded: Sound) -> Measured | None:
    """The status of a pair of which one clip is silent, if so. What the codec did wrong is `failed`."""
    if clean.silent:
        return Measured.not_applicable("the reference is silent")
    if coded.silent:
        return Measured.failed("the decoded clip is silent and the reference is not")
    return None


def _as_silence(silence: Measured, name: str, pair: Pair) -> Measured:
    """The status of silence, with the number that Codec-SUPERB's code makes of it."""
    if name not in PUBLISHED:
        return silence
    return entered(silence, name, _guarded(PUBLISHED[name], pair).value)


def _guarded(metric: Callable[[Pair], Measured], pair: Pair) -> Measured:
    try:
        with np.errstate(all="ignore"), no_exit():  # what is not finite is caught below
            measurement = metric(pair)
    except (MissingExtra, UsageError):
        raise
    except InputError as error:
        return Measured.failed(str(error))
    except Exception as error:  # other people's compiled code, on input that nobody foresaw
        return Measured.failed(f"{type(error).__name__}: {error}")
    if measurement.value is not None and not np.isfinite(measurement.value):
        return Measured.failed(f"the value came out as {measurement.value}")
    return measurement
