"""Promises of a codec that are checked while it is measured, on a few clips of the run and in processes of their own.

    delay         what the card declares is what is measured
    tempo         the sound comes back as fast as it went in: a slow decoder that is cut to length keeps only the length
    state         a clip is coded the same whatever was coded before it
    determinism   the same clip gives the same payload, the same payload the same sound

Each is kept, broken, or unknown where the clips cannot tell. Limits are set so that none of the codecs in the list is
accused on speech, music or noises (tests/codecs/test_promises.py), and stand in docs/codec.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from earmark.codecs import harness
from earmark.codecs.alignment import FEWEST_CLIPS, calibrate, envelopes
from earmark.codecs.contract import Codec, CodecCard, Waveform
from earmark.codecs.standing import Promise
from earmark.errors import EarmarkError

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[Waveform, Waveform]]
Sounds = Sequence[tuple[Waveform, int]]

NEAR_WAVEFORM = 0.001
"""Seconds by which a declared delay may differ from one that is read off the waveform."""
NEAR_ENVELOPE = 0.03
"""The same where only the envelope can tell."""
TEMPO_LIMIT = 0.02
"""100 ms in five seconds. Over six short clips of a vocoder the best tempo is off by up to half as much by chance."""
_AGREEING = 2.0 / 3.0
"""The share of the clips that must be slower, or faster, one by one."""
_STRETCHES = np.arange(-12, 12.5, 0.5) / 100.0
_LEAST_SECONDS = 1.5
_MOST_SECONDS = 6.0
_STEP = 0.02  # seconds between envelopes
_REACH = 0.25
_LEAST_STEPS = 30
_LEAST_FIT = 0.3
_SAME = 1e-4


def check_delay(card: CodecCard, pairs: Pairs, rate: int) -> Promise:
    """Compare the declared delay with what the clips show."""
    if card.delay is None:
        return Promise("delay", "unknown", "the card declares none: it is calibrated")
    declared = card.delay / card.rate
    try:
        measured = calibrate(pairs, rate)
    except EarmarkError as error:
        return Promise("delay", "unknown", str(error))
    if measured.n < FEWEST_CLIPS:
        return Promise("delay", "unknown", f"too few clips suit ({measured.n} of {FEWEST_CLIPS})")
    limit = NEAR_WAVEFORM if measured.method == "waveform" else NEAR_ENVELOPE + measured.spread_seconds
    off = abs(measured.seconds - declared)
    both = f"{1000 * declared:.1f} ms are declared and {1000 * measured.seconds:.1f} ms measured"
    return Promise("delay", "broken" if off > limit else "kept", both)


def check_tempo(pairs: Pairs, rate: int) -> Promise:
    """Look for the tempo at which envelopes of original and decoded clip fit best, over all clips together."""
    fits = [fit for original, decoded in pairs if (fit := _fits(original, decoded, rate)) is not None]
    if len(fits) < FEWEST_CLIPS:
        return Promise("tempo", "unknown", f"too few clips are long and lively enough ({len(fits)} of {FEWEST_CLIPS})")
    slower = float(_STRETCHES[np.mean(fits, axis=0).argmax()])
    agreeing = np.mean([np.sign(slower) * _STRETCHES[fit.argmax()] > 0 for fit in fits])
    if abs(slower) < TEMPO_LIMIT - 1e-9 or agreeing < _AGREEING:
        return Promise("tempo", "kept")
    word = "slower" if slower > 0 else "faster"
    return Promise("tempo", "broken", f"what comes back is {100 * abs(slower):.1f} % {word} than what went in")


def _fits(original: Waveform, decoded: Waveform, rate: int) -> Floats | None:
    """How well the envelopes fit at each tempo, as the correlation at the best lag.

    The middle of the original is compared with as much of the decoded clip, stretched about the same moment: what the
    delay pushes over the ends then favours no tempo.
    """
    length = min(len(original), len(decoded), round(_MOST_SECONDS * rate))
    if length < _LEAST_SECONDS * rate:
        return None
    reference, heard = (_coarse(envelopes(clip[:length], rate)) for clip in (original, decoded))
    count = min(len(reference), len(heard))
    margin = round(_REACH / _STEP) + int(np.ceil(_STRETCHES[-1] * count / 2.0)) + 2
    times = np.arange(margin, count - margin)
    if len(times) < _LEAST_STEPS:
        return None
    wanted = _normalised(reference[times])
    lags = range(-round(_REACH / _STEP), round(_REACH / _STEP) + 1)
    fits = np.array([max(_fit(wanted, heard, times, stretch, lag) for lag in lags) for stretch in _STRETCHES])
    return fits if fits.max() >= _LEAST_FIT else None


def _coarse(bands: Floats) -> Floats:
    """Envelopes of ten wide bands in steps of `_STEP`, each a mean."""
    step = round(1000 * _STEP)
    count = len(bands) // step
    return np.asarray(bands[: count * step].reshape(count, step, 10, -1).mean(axis=(1, 3)))


def _fit(wanted: Floats, heard: Floats, times: NDArray[np.int64], stretch: float, lag: int) -> float:
    """The correlation of the middle with the decoded clip, stretched about the middle and moved by a lag."""
    middle = (times[0] + times[-1]) / 2.0
    places = middle + (times - middle) * (1.0 + stretch) + lag
    whole = np.floor(places).astype(int)
    part = (places - whole)[:, None]
    return float((wanted * _normalised(heard[whole] * (1.0 - part) + heard[whole + 1] * part)).sum())


def _normalised(bands: Floats) -> Floats:
    centred = bands - bands.mean(axis=0)
    return np.asarray(centred / max(float(np.linalg.norm(centred)), 1e-300))


def check_repeats(
    fresh: Callable[[], AbstractContextManager[Codec]], sounds: Sounds, payloads: Sequence[bytes]
) -> tuple[tuple[Promise, Promise], list[Waveform]]:
    """Code the clips once more, in reverse and by a codec that saw nothing else; also what is decoded, in order.

    A codec that only encodes decodes nothing.

    Args:
        fresh: opens the codec where nothing was coded before.
        sounds: clips and their rates.
        payloads: what was sent for them in the run.
    """
    numbers = range(len(sounds))
    with fresh() as codec:
        sent = {number: _payload(codec, sounds[number]) for number in reversed(numbers)}
        hears = range(0) if codec.card.encode_only else numbers
        decoded = [_sound(codec, payloads[number], sounds[number]) for number in hears]
        once_more = {number: _sound(codec, payloads[number], sounds[number]) for number in reversed(hears)}
    changed = [number for number in numbers if sent[number] != payloads[number]]
    differing = [number for number in hears if not _same(decoded[number], once_more[number])]
    if not changed and not differing:
        return (Promise("state", "kept"), Promise("determinism", "kept")), decoded
    # Two that saw nothing agree where it is the past that matters, and differ where it is chance.
    number = (changed or differing)[0]
    firsts = []
    for _ in range(2):
        with fresh() as codec:
            firsts.append(
                _payload(codec, sounds[number])
                if changed
                else _sound(codec, payloads[number], sounds[number]).tobytes()
            )
    return _verdict("encodes" if changed else "decodes", firsts[0] == firsts[1]), decoded


def _verdict(verb: str, repeats: bool) -> tuple[Promise, Promise]:
    if repeats:
        reason = f"it {verb} a clip differently after other clips"
        return Promise("state", "broken", reason), Promise("determinism", "kept")
    chance = f"it {verb} the same clip differently each time"
    return Promise("state", "unknown", chance), Promise("determinism", "broken", chance)


def _payload(codec: Codec, sound: tuple[Waveform, int]) -> bytes:
    return harness.pack(harness.encode(codec, *sound).coded)


def _sound(codec: Codec, payload: bytes, sound: tuple[Waveform, int]) -> Waveform:
    samples, rate = sound
    return harness.decode(codec, harness.unpack(payload), rate, len(samples))


def _same(first: Waveform, second: Waveform) -> bool:
    return first.shape == second.shape and bool(np.allclose(first, second, atol=_SAME))
