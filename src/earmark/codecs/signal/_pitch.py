"""Pitch: does the decoded clip rise and fall with the reference, and is it voiced where the reference is?

Pitch is Praat's autocorrelation method through parselmouth: 50 to 1100 Hz, voicing threshold 0.6, a frame each
256/22050 s. Boersma, Proceedings of the Institute of Phonetic Sciences 17, 1993.

Both clips are at 16 kHz and have their frames at the same times. The correlation is of log pitch over the frames that
are voiced in both; the share of frames with another voicing is a metric of its own. (Codec-SUPERB's way, `_published`,
warps one clip into the other and finds a good path through anything: speech played backwards can pass for a codec that
keeps the pitch.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal._sound import Pair, Sound
from earmark.errors import require
from earmark.scores.metrics import FRACTION, metric

Floats = NDArray[np.float64]

RATE = 16_000
STEP = 256 / 22_050  # seconds
FLOOR, CEILING = 50.0, 1100.0
VOICING = 0.6
SHORTEST = 0.12  # seconds: two of Praat's windows, so that there is more than one frame
FEWEST = 10  # voiced frames, 0.12 s
STILL = 1.0  # cents: what the pitch of the reference must move, as a standard deviation


@metric(
    range=(-1.0, 1.0), standard=True, package=("parselmouth", "Pitch metrics"),
    words="correlation of the pitch of the two clips",
)  # fmt: skip
def f0_corr(pair: Pair) -> Measured:
    """Pearson correlation of the pitch of the two clips, -1 to 1, higher is better; 1 for the same waveform.

    Not applicable when the reference has fewer than ten voiced frames or a pitch that does not move (by a standard
    deviation of a cent); failed when the decoded clip has lost the voiced frames or the movement.
    """
    if pair.reference.seconds < SHORTEST:
        return _too_short()
    clean, heard = _track(pair.reference), _track(pair.decoded)
    if np.count_nonzero(clean) < FEWEST:
        return Measured.not_applicable(f"the reference has fewer than {FEWEST} voiced frames")
    if cents(clean[clean > 0]).std() <= STILL:
        return _still()
    both = (clean > 0) & (heard > 0)
    if np.count_nonzero(both) < FEWEST:
        return Measured.failed(f"fewer than {FEWEST} voiced frames of the reference are voiced in the decoded clip")
    kept = cents(clean[both])
    if kept.std() <= STILL:
        return Measured.failed("the decoded clip is voiced only where the pitch of the reference does not move")
    return _correlation(kept, cents(heard[both]))


@metric(
    range=FRACTION, higher_is_better=False, percent=True, standard=True, package=("parselmouth", "Pitch metrics"),
    words="share of frames that are voiced in one clip alone",
)  # fmt: skip
def f0_voicing_error(pair: Pair) -> Measured:
    """Share of frames that are voiced in one clip and not in the other, 0 to 1, lower is better."""
    if pair.reference.seconds < SHORTEST:
        return _too_short()
    clean, heard = _track(pair.reference), _track(pair.decoded)
    return Measured(float(np.mean((clean > 0) != (heard > 0))))


def _correlation(clean: Floats, heard: Floats) -> Measured:
    if clean.std() == 0.0:
        return _still()
    if heard.std() == 0.0:
        return Measured.failed("the pitch of the decoded clip does not move")
    return Measured(min(max(float(np.corrcoef(clean, heard)[0, 1]), -1.0), 1.0))


def _track(sound: Sound) -> Floats:
    return sound.once("pitch", lambda: pitch_track(sound.at(RATE), RATE))


def pitch_track(samples: Waveform, rate: int) -> Floats:
    """Pitch in hertz of every frame, 0 where unvoiced, of samples that are taken to be at `rate`."""
    praat = require("parselmouth", "Pitch metrics", "codecs")
    track = praat.Sound(samples.astype(np.float64), float(rate)).to_pitch_ac(
        time_step=STEP, pitch_floor=FLOOR, pitch_ceiling=CEILING, voicing_threshold=VOICING
    )
    return np.asarray(track.selected_array["frequency"], np.float64)


def cents(hertz: Floats) -> Floats:
    """Cents from 440 Hz."""
    return np.asarray(1200.0 * np.log2(hertz / 440.0))


def _still() -> Measured:
    return Measured.not_applicable("the pitch of the reference does not move")


def _too_short() -> Measured:
    return Measured.not_applicable(f"the clip is shorter than {1000 * SHORTEST:.0f} ms")
