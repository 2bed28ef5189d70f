"""Whether a model gives the same vectors for the same clips: some clips of its first batch are heard again.

    first batch      a b c d e f g h          as the run hears it
    again            g e c a                  a few of them, backwards, without the others and without the longest
    and again        g e c a                  the same call once more

Between the two last nothing differs: where their answers do, the model keeps state or throws dice (dropout that was not
switched off). Where only the first answers are different, they depend on the company: on clips beside or before them.

Numeric policy. Compared are mean frames, and a difference is measured against the usual (median) distance between two
clips of the batch: what matters is whether it could change who is nearest. Floating-point noise, also of half precision
and of GPUs that add in any order, stays far below; that of other company may be larger (other shapes choose other
kernels), and is given more room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from earmark.extractors.contract import Frames, Waveform, as_array

CLIPS = 4  # heard again
SAME = 0.01  # of the usual distance between clips: the largest difference between two calls that are alike
COMPANY = 0.05
LEAST = 0.1  # of a vector's length: clips nearer to each other than this are no measure

Extract = Callable[[Sequence[Waveform]], Sequence[Frames]]


def choose(waveforms: Sequence[Waveform]) -> dict[int, Waveform]:
    """Copies of a few clips of a batch by their places, backwards.

    The last is not among them unless it is alone: it is the longest, to which a model may pad the others.
    """
    most = max(1, min(CLIPS, len(waveforms) - 1))
    places = np.linspace(0, max(0, len(waveforms) - 2), most if waveforms else 0).round()[::-1]
    return {int(place): np.array(waveforms[int(place)]) for place in places}


def remark_on(extract: Extract, chosen: Mapping[int, Waveform], answers: Sequence[Frames]) -> str:
    """What is to be said of a model that gave `answers` for a batch with the `chosen` clips in it, if anything is."""
    if not chosen:
        return ""
    answers = _arrays(answers)
    try:
        once, twice = (_arrays(extract([np.array(waveform) for waveform in chosen.values()])) for _ in range(2))
    except Exception as error:
        return f"the model failed on clips it had heard before ({type(error).__name__}): it keeps state"
    scale = _scale(answers)
    gap = _gap(once, twice, scale)
    if gap > SAME:
        return (
            f"the model gave different vectors for the same clips heard twice ({_words(gap)}): it keeps state or uses "
            "dropout; call eval()"
        )
    gap = _gap([answers[place] for place in chosen], once, scale)
    if gap > COMPANY:
        return (
            f"the model gave different vectors for the same clips in other company ({_words(gap)}): what it says of a "
            "clip depends on the clips beside or before it"
        )
    return ""


def _arrays(answers: Sequence[Frames]) -> list[Frames]:
    """Frames as arrays: some may still be on a device."""
    return [Frames(as_array(frames.values), frames.valid) for frames in answers]


def _mean(frames: Frames) -> NDArray[np.float64]:
    return np.asarray(np.asarray(frames.values[: frames.valid], np.float64).mean(axis=0))


def _scale(answers: Sequence[Frames]) -> float:
    """The usual distance between clips, or a share of their length where they lie closer or there is one alone."""
    means = [_mean(frames) for frames in answers if np.isfinite(frames.values).all()]
    if not means or len({mean.shape for mean in means}) > 1:
        return 0.0
    stacked = np.array(means)
    apart = [float(np.linalg.norm(one - other)) for row, one in enumerate(stacked) for other in stacked[:row]]
    length = float(np.median(np.linalg.norm(stacked, axis=1)))
    return max(float(np.median(apart)) if apart else length, LEAST * length)


def _gap(first: Sequence[Frames], second: Sequence[Frames], scale: float) -> float:
    """The largest difference of mean frames over the scale; infinite where shapes differ."""
    worst = 0.0
    for one, other in zip(first, second, strict=True):
        if np.shape(one.values) != np.shape(other.values) or one.valid != other.valid:
            return float("inf")
        if not (np.isfinite(one.values).all() and np.isfinite(other.values).all()):
            continue  # such clips fail, and say so
        worst = max(worst, float(np.linalg.norm(_mean(one) - _mean(other))))
    return worst / scale if scale > 0 else float("inf") if worst > 0 else 0.0


def _words(gap: float) -> str:
    if not np.isfinite(gap):
        return "not even as many frames, or nothing to measure them by"
    return f"apart by {100 * gap:.0f} % of the usual distance between clips"
