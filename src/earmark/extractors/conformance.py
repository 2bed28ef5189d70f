"""What every extractor must do, as named checks with one sentence each.

`earmark check mypackage.mymodule:MyModel` runs them and prints a table to paste in a pull request. From pytest:

    from earmark.extractors.conformance import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_model(check):
        assert check(Subject(MyModel())).status != "fail"

Sounds are made here (seeded noise, glides, silence); nothing is read from disk. An extractor with `fit` learns from
them first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from earmark.conformance import CheckResult, describe, failed, judge_card, passed, run_checks, skipped, warned
from earmark.extractors.catalogue import Adapted
from earmark.extractors.contract import ExtractorCard, Frames, Waveform

CLOSE = 1e-3  # largest difference, relative to the largest magnitude, that batching may make
LOOSE = 1e-2
LONG_SECONDS = 60.0


class Subject:
    """An extractor under test, with the sounds it is tested on."""

    def __init__(self, extractor: Any) -> None:
        self.extractor = extractor if isinstance(extractor, Adapted) else Adapted(extractor)
        self.card: ExtractorCard = self.extractor.card
        self.rate = self.card.rate
        self.playing = "no sound"  # what the extractor was given last, in words
        learn = getattr(self.extractor, "fit", None)
        if learn is not None and not getattr(self.extractor, "fitted", False):
            learn([self.sound(1.0, seed) for seed in range(12)], progress=False, checkpoint=None)

    def sound(self, seconds: float, seed: int = 0) -> Waveform:
        """A glide in noise, peak 1; another one for every seed."""
        count = max(1, round(seconds * self.rate))
        random = np.random.default_rng(seed)
        time = np.arange(count) / self.rate
        glide = np.sin(2.0 * np.pi * (200.0 + 150.0 * seed + 300.0 * np.minimum(time, 1.0)) * time)
        samples = glide + 0.1 * random.standard_normal(count)
        peak = float(np.abs(samples).max())
        return (samples / peak if peak > 0 else samples).astype(np.float32)

    def hear(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        """What the extractor says; copies go in, so that no check disturbs another."""
        self.playing = _lengths(waveforms, self.rate)
        return self.extractor.extract([waveform.copy() for waveform in waveforms])

    @cached_property
    def restlessness(self) -> float:
        """How far two runs on the same clips are apart."""
        batch = [self.sound(1.0), self.sound(0.7, 1)]
        return _gap(self.hear(batch), self.hear(batch))


# --- the checks ----------------------------------------------------------------------------------------------


def card(subject: Subject) -> CheckResult:
    """The card states a possible rate and a name."""
    missing = [field for field in ("licence", "short_name", "title") if not getattr(subject.card, field)]
    return judge_card(subject.card, missing, own=subject.extractor.has_own_card)


def shape(subject: Subject) -> CheckResult:
    """Every answer is [T, D] with one D, the one on the card."""
    answers = subject.hear([subject.sound(0.5), subject.sound(1.0, 1)])
    widths = {answer.values.shape[1] for answer in answers}
    if any(0 in answer.values.shape for answer in answers):
        return failed("An answer has no frames or no features.")
    if len(widths) != 1:
        return failed(
            f"Clips of one batch have different numbers of features, {sorted(widths)}: frames are [T, D], time first."
        )
    stated = subject.card.dimension
    if stated is not None and stated not in widths:
        return failed(f"The card says {stated} features; there are {widths.pop()}.")
    shapes = ", ".join(f"{seconds} s: {answer.values.shape}" for seconds, answer in zip((0.5, 1), answers, strict=True))
    return passed(f"{shapes}.")


def dtype(subject: Subject) -> CheckResult:
    """Values are floating-point numbers."""
    values_type = subject.hear([subject.sound(0.5)])[0].values.dtype
    if values_type.kind != "f":
        return warned(f"Values are {values_type}: whole numbers are taken as they are; codes have no distances.")
    return passed(f"Values are {values_type}.")


def finite(subject: Subject) -> CheckResult:
    """No NaN and no infinity on an ordinary sound."""
    return _expect_finite(subject, [subject.sound(1.0)], "a one-second sound")


def valid_counts(subject: Subject) -> CheckResult:
    """1 <= valid <= T."""
    for seconds in (0.05, 1.0):
        values, valid = subject.hear([subject.sound(seconds)])[0]
        if not 1 <= valid <= len(values):
            return failed(f"A clip of {seconds} s says {valid} of its {len(values)} frames are valid.")
    return passed(f"{valid} of {len(values)} frames are valid in one second.")


def deterministic(subject: Subject) -> CheckResult:
    """The same clip twice gives the same numbers."""
    gap = subject.restlessness
    if gap == 0:
        return passed("Two runs agree bit for bit.")
    remedy = "switch dropout and other chance off (model.eval()), keep no state, or seed it"
    return _grade(gap, "Two runs on the same clips", remedy)


def order_kept(subject: Subject) -> CheckResult:
    """Answers come in the order of the waveforms."""
    if subject.restlessness > LOOSE:
        return skipped("Two runs on the same clips differ already.")
    batch = [subject.sound(0.8, seed) for seed in range(4)]
    forward, backward = subject.hear(batch), subject.hear(batch[::-1])
    gap = _gap(forward, backward[::-1])
    return _grade(gap, "A batch and the same batch reversed", "answer in the order of the waveforms")


def batch_independent(subject: Subject) -> CheckResult:
    """A clip's frames do not depend on the clips beside it."""
    if subject.restlessness > LOOSE:
        return skipped("Two runs on the same clips differ already.")
    batch = [subject.sound(0.3), subject.sound(2.0, 1), subject.sound(1.0, 2)]
    alone = [subject.hear([waveform])[0] for waveform in batch]
    beside = subject.hear(batch)
    for single, other in zip(alone, beside, strict=True):
        if single.values.shape != other.values.shape or single.valid != other.valid:
            return failed(
                f"A clip gives {single.valid} of {len(single.values)} valid frames alone and {other.valid} of "
                f"{len(other.values)} beside a longer one: cut off the padding that the batch made."
            )
    remedy = "mask the padding, or hear clips one by one"
    return _grade(_gap(alone, beside), "A clip alone and in a batch", remedy)


def short_clips(subject: Subject) -> CheckResult:
    """10 ms and a single sample give at least one frame."""
    sounds = [subject.sound(0.01), subject.sound(0.0)]
    try:
        return _expect_finite(subject, sounds, "10 ms and one sample")
    except Exception as error:
        return failed(f"{describe(error)} (on {subject.playing}): pad what is shorter than the model needs.")


def silence(subject: Subject) -> CheckResult:
    """Digital silence gives finite numbers."""
    return _expect_finite(subject, [np.zeros(subject.rate, np.float32)], "a second of silence")


def long_clip(subject: Subject) -> CheckResult:
    """A minute of sound is heard, or cut to the context that the card states."""
    waveform = np.tile(subject.sound(1.0), int(LONG_SECONDS))
    result = _expect_finite(subject, [waveform], f"{LONG_SECONDS:.0f} s of sound")
    if result.status != "pass" or subject.card.context_seconds is not None:
        return result
    other = waveform.copy()
    other[len(other) // 2 :] = subject.sound(LONG_SECONDS / 2, 5)[: len(other) - len(other) // 2]
    if _gap(subject.hear([waveform]), subject.hear([other])) == 0:
        return warned("The second half of a minute changes nothing: state what the model hears as context_seconds.")
    return result


def input_untouched(subject: Subject) -> CheckResult:
    """The waveforms are not modified."""
    given = [subject.sound(0.5), subject.sound(0.8, 1)]
    before = [waveform.copy() for waveform in given]
    subject.playing = _lengths(given, subject.rate)
    subject.extractor.extract(given)
    if len(given) != len(before) or any((a != b).any() for a, b in zip(given, before, strict=True)):
        return failed("extract changes the waveforms it is given: work on a copy.")
    return passed("The waveforms are as they were.")


def tells_sounds_apart(subject: Subject) -> CheckResult:
    """Different sounds give different numbers."""
    first, second = (subject.hear([subject.sound(1.0, seed)]) for seed in (0, 3))
    if _gap(first, second) == 0:
        return failed("Two different sounds give the same numbers.")
    return passed("Different sounds give different numbers.")


CHECKS: tuple[Callable[[Subject], CheckResult], ...] = (
    card, shape, dtype, finite, valid_counts, deterministic, order_kept, batch_independent, short_clips, silence,
    long_clip, input_untouched, tells_sounds_apart,
)  # fmt: skip


def check_extractor(extractor: Any) -> list[CheckResult]:
    """Run every check; when an ordinary sound gives no frames at all (`shape` raised), those after it are skipped."""
    return run_checks(CHECKS, Subject(extractor), shape, "There are no frames to look at: see `shape`.")


# --- pieces --------------------------------------------------------------------------------------------------


def _lengths(waveforms: Sequence[Waveform], rate: int) -> str:
    """The sounds of a batch in words: "clips of 0.5 s and 1 s"."""
    lengths = [f"{len(waveform) / rate:.3g} s" if len(waveform) > 1 else "1 sample" for waveform in waveforms]
    return f"a clip of {lengths[0]}" if len(lengths) == 1 else f"clips of {', '.join(lengths[:-1])} and {lengths[-1]}"


def _expect_finite(subject: Subject, waveforms: Sequence[Waveform], thing: str) -> CheckResult:
    answers = subject.hear(waveforms)
    if any(0 in answer.values.shape for answer in answers):
        return failed(f"There is no frame for {thing}: give at least one.")
    if not all(np.isfinite(answer.values).all() for answer in answers):
        return failed(f"There is NaN or infinity for {thing}: look for a division by 0 or the logarithm of 0.")
    frames = " and ".join(str(len(answer.values)) for answer in answers)
    return passed(f"Frames for {thing}: {frames}.")


def _gap(first: Sequence[Frames], second: Sequence[Frames]) -> float:
    """The largest difference over the largest magnitude; infinite when shapes or counts differ.

    NaN and infinity in the same places are no difference: `finite` speaks of them.
    """
    worst = 0.0
    for ours, theirs in zip(first, second, strict=True):
        if ours.values.shape != theirs.values.shape or ours.valid != theirs.valid:
            return float("inf")
        a, b = np.asarray(ours.values, np.float64), np.asarray(theirs.values, np.float64)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
            return float("inf")
        largest = max(float(np.abs(values[finite]).max(initial=0.0)) for values in (a, b))
        if largest > 0:
            worst = max(worst, float(np.abs(a[finite] - b[finite]).max()) / largest)
    return worst


def _grade(gap: float, thing: str, remedy: str) -> CheckResult:
    if not np.isfinite(gap):
        return failed(f"{thing} give frames of different shapes, or NaN in other places: {remedy}.")
    difference = f"{thing} differ by {gap:.1e} of the largest value"
    if gap <= CLOSE:
        return passed(f"{difference}.")
    return (warned if gap <= LOOSE else failed)(f"{difference}: {remedy}.")
