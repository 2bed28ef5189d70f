"""The public conformance suite: what every extractor must do, as named checks with one sentence each.

`earmark check mypackage.mymodule:MyModel` runs them and prints a table to paste in a pull request. From pytest:

    from earmark.extractors.conformance import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_model(check):
        assert check(Subject(MyModel())).status != "fail"

Sounds are made here (seeded noise, glides, silence); nothing is read from disk. An extractor with `fit` learns from
them first. "warn" is allowed but should be read: someone's numbers may depend on it. "skip" says that an earlier
failure leaves nothing to be found: one defect is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import EarmarkError
from earmark.extractors.catalogue import Adapted
from earmark.extractors.contract import ExtractorCard, Frames, Waveform

__all__ = ["CHECKS", "Finding", "Subject", "check_extractor", "table"]

Status = Literal["pass", "warn", "fail", "skip"]
STATUSES: tuple[Status, ...] = ("pass", "warn", "fail", "skip")

CLOSE = 1e-3  # largest difference, relative to the largest magnitude, that batching may make
LOOSE = 1e-2
LONG_SECONDS = 60.0


class Finding(NamedTuple):
    """The outcome of one check."""

    name: str
    status: Status
    sentence: str


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


def card(subject: Subject) -> Finding:
    """The card states a possible rate and a name."""
    if not isinstance(subject.rate, int) or not 1000 <= subject.rate <= 1_000_000:
        return _fail("card", f"The rate is {subject.rate!r}; it must be a whole number of hertz from 1000 up.")
    if not subject.card.name:
        return _fail("card", "The card has no name.")
    if not subject.extractor.has_own_card:
        return _warn("card", f"There is no card: the name {subject.card.name!r} and {subject.rate} Hz are assumed.")
    missing = [field for field in ("licence", "short_name", "title") if not getattr(subject.card, field)]
    if missing:
        return _warn("card", f"The card does not state: {', '.join(missing)}.")
    return _pass("card", f"{subject.card.name}, {subject.rate} Hz.")


def shape(subject: Subject) -> Finding:
    """Every answer is [T, D] with one D, the one on the card."""
    answers = subject.hear([subject.sound(0.5), subject.sound(1.0, 1)])
    widths = {answer.values.shape[1] for answer in answers}
    if any(0 in answer.values.shape for answer in answers):
        return _fail("shape", "An answer has no frames or no features.")
    if len(widths) != 1:
        return _fail(
            "shape",
            f"Clips of one batch have different numbers of features, {sorted(widths)}: frames are [T, D], time first.",
        )
    stated = subject.card.dimension
    if stated is not None and stated not in widths:
        return _fail("shape", f"The card says {stated} features; there are {widths.pop()}.")
    shapes = ", ".join(f"{seconds} s: {answer.values.shape}" for seconds, answer in zip((0.5, 1), answers, strict=True))
    return _pass("shape", f"{shapes}.")


def dtype(subject: Subject) -> Finding:
    """Values are floating-point numbers."""
    found = subject.hear([subject.sound(0.5)])[0].values.dtype
    if found.kind != "f":
        return _warn("dtype", f"Values are {found}: whole numbers are taken as they are; codes have no distances.")
    return _pass("dtype", f"Values are {found}.")


def finite(subject: Subject) -> Finding:
    """No NaN and no infinity on an ordinary sound."""
    return _finite("finite", subject, [subject.sound(1.0)], "a one-second sound")


def valid_counts(subject: Subject) -> Finding:
    """1 <= valid <= T."""
    for seconds in (0.05, 1.0):
        values, valid = subject.hear([subject.sound(seconds)])[0]
        if not 1 <= valid <= len(values):
            return _fail("valid_counts", f"A clip of {seconds} s says {valid} of its {len(values)} frames are valid.")
    return _pass("valid_counts", f"{valid} of {len(values)} frames are valid in one second.")


def deterministic(subject: Subject) -> Finding:
    """The same clip twice gives the same numbers."""
    gap = subject.restlessness
    if gap == 0:
        return _pass("deterministic", "Two runs agree bit for bit.")
    remedy = "switch dropout and other chance off (model.eval()), keep no state, or seed it"
    return _graded("deterministic", gap, "Two runs on the same clips", remedy)


def order_kept(subject: Subject) -> Finding:
    """Answers come in the order of the waveforms."""
    if subject.restlessness > LOOSE:
        return _skip("order_kept", "Two runs on the same clips differ already.")
    batch = [subject.sound(0.8, seed) for seed in range(4)]
    forward, backward = subject.hear(batch), subject.hear(batch[::-1])
    gap = _gap(forward, backward[::-1])
    return _graded("order_kept", gap, "A batch and the same batch reversed", "answer in the order of the waveforms")


def batch_independent(subject: Subject) -> Finding:
    """A clip's frames do not depend on the clips beside it."""
    if subject.restlessness > LOOSE:
        return _skip("batch_independent", "Two runs on the same clips differ already.")
    batch = [subject.sound(0.3), subject.sound(2.0, 1), subject.sound(1.0, 2)]
    alone = [subject.hear([waveform])[0] for waveform in batch]
    beside = subject.hear(batch)
    for one, other in zip(alone, beside, strict=True):
        if one.values.shape != other.values.shape or one.valid != other.valid:
            return _fail(
                "batch_independent",
                f"A clip gives {one.valid} of {len(one.values)} valid frames alone and {other.valid} of "
                f"{len(other.values)} beside a longer one: cut off the padding that the batch made.",
            )
    remedy = "mask the padding, or hear clips one by one"
    return _graded("batch_independent", _gap(alone, beside), "A clip alone and in a batch", remedy)


def short_clips(subject: Subject) -> Finding:
    """10 ms and a single sample give at least one frame."""
    sounds = [subject.sound(0.01), subject.sound(0.0)]
    finding, raised = _attempt(lambda _: _finite("short_clips", subject, sounds, "10 ms and one sample"), subject)
    if not raised:
        return finding
    return _fail("short_clips", f"{finding.sentence.removesuffix('.')}: pad what is shorter than the model needs.")


def silence(subject: Subject) -> Finding:
    """Digital silence gives finite numbers."""
    return _finite("silence", subject, [np.zeros(subject.rate, np.float32)], "a second of silence")


def long_clip(subject: Subject) -> Finding:
    """A minute of sound is heard, or cut to the context that the card states."""
    seconds = LONG_SECONDS
    waveform = np.tile(subject.sound(1.0), int(seconds))
    found = _finite("long_clip", subject, [waveform], f"{seconds:.0f} s of sound")
    if found.status != "pass" or subject.card.context_seconds is not None:
        return found
    cut = waveform.copy()
    cut[len(cut) // 2 :] = subject.sound(seconds / 2, 5)[: len(cut) - len(cut) // 2]
    if _gap(subject.hear([waveform]), subject.hear([cut])) == 0:
        return _warn(
            "long_clip", "The second half of a minute changes nothing: state what the model hears as context_seconds."
        )
    return found


def input_untouched(subject: Subject) -> Finding:
    """The waveforms are not modified."""
    given = [subject.sound(0.5), subject.sound(0.8, 1)]
    before = [waveform.copy() for waveform in given]
    subject.playing = _lengths(given, subject.rate)
    subject.extractor.extract(given)
    if len(given) != len(before) or any((a != b).any() for a, b in zip(given, before, strict=True)):
        return _fail("input_untouched", "extract changes the waveforms it is given: work on a copy.")
    return _pass("input_untouched", "The waveforms are as they were.")


def tells_sounds_apart(subject: Subject) -> Finding:
    """Different sounds give different numbers."""
    first, second = (subject.hear([subject.sound(1.0, seed)]) for seed in (0, 3))
    if _gap(first, second) == 0:
        return _fail("tells_sounds_apart", "Two different sounds give the same numbers.")
    return _pass("tells_sounds_apart", "Different sounds give different numbers.")


CHECKS: tuple[Callable[[Subject], Finding], ...] = (
    card,
    shape,
    dtype,
    finite,
    valid_counts,
    deterministic,
    order_kept,
    batch_independent,
    short_clips,
    silence,
    long_clip,
    input_untouched,
    tells_sounds_apart,
)


def check_extractor(extractor: Any) -> list[Finding]:
    """Run every check; an exception is a failure of that check, in one sentence.

    When an ordinary sound gives no frames at all (`shape` raised), the checks after it are skipped.
    """
    subject = Subject(extractor)
    findings: list[Finding] = []
    hopeless = False
    for check in CHECKS:
        if hopeless:
            findings.append(_skip(check.__name__, "There are no frames to look at: see `shape`."))
            continue
        finding, raised = _attempt(check, subject)
        findings.append(finding)
        hopeless = raised and check is shape
    return findings


def table(findings: Sequence[Finding], title: str) -> str:
    """The findings as a Markdown table, with a heading that says how many there are of each."""
    counts = ", ".join(
        f"{number} {status}" for status in STATUSES if (number := sum(finding.status == status for finding in findings))
    )
    wide = max(len("check"), *(len(finding.name) for finding in findings))
    long = max(len("finding"), *(len(finding.sentence) for finding in findings))
    lines = [f"{title}: {counts}", "", f"| {'check':{wide}} | result | {'finding':{long}} |"]
    lines.append(f"|{'-' * (wide + 2)}|--------|{'-' * (long + 2)}|")
    for finding in findings:
        sentence = finding.sentence.replace("|", "\\|")
        lines.append(f"| {finding.name:{wide}} | {finding.status:6} | {sentence:{long}} |")
    return "\n".join(lines) + "\n"


# --- pieces --------------------------------------------------------------------------------------------------


def _attempt(check: Callable[[Subject], Finding], subject: Subject) -> tuple[Finding, bool]:
    """A check's finding, and whether it came from an exception."""
    try:
        return check(subject), False
    except Exception as error:
        text = (" ".join(str(error).split()) or "no message").removesuffix(".")
        if isinstance(error, EarmarkError):  # extract answered, but not with frames: see `as_frames`
            return _fail(check.__name__, f"{text} (for {subject.playing})."), True
        return _fail(check.__name__, f"It raised {type(error).__name__}: {text} (on {subject.playing})."), True


def _lengths(waveforms: Sequence[Waveform], rate: int) -> str:
    """The sounds of a batch in words: "clips of 0.5 s and 1 s"."""
    said = [f"{len(waveform) / rate:.3g} s" if len(waveform) > 1 else "1 sample" for waveform in waveforms]
    return f"a clip of {said[0]}" if len(said) == 1 else f"clips of {', '.join(said[:-1])} and {said[-1]}"


def _finite(name: str, subject: Subject, waveforms: Sequence[Waveform], thing: str) -> Finding:
    answers = subject.hear(waveforms)
    if any(0 in answer.values.shape for answer in answers):
        return _fail(name, f"There is no frame for {thing}: give at least one.")
    if not all(np.isfinite(answer.values).all() for answer in answers):
        return _fail(name, f"There is NaN or infinity for {thing}: look for a division by 0 or the logarithm of 0.")
    frames = " and ".join(str(len(answer.values)) for answer in answers)
    return _pass(name, f"Frames for {thing}: {frames}.")


def _gap(first: Sequence[Frames], second: Sequence[Frames]) -> float:
    """The largest difference over the largest magnitude; infinite when shapes or counts differ.

    NaN and infinity in the same places are no difference: `finite` speaks of them.
    """
    worst = 0.0
    for one, other in zip(first, second, strict=True):
        if one.values.shape != other.values.shape or one.valid != other.valid:
            return float("inf")
        a, b = (_wide(answer.values) for answer in (one, other))
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
            return float("inf")
        largest = max(float(np.abs(values[finite]).max(initial=0.0)) for values in (a, b))
        if largest > 0:
            worst = max(worst, float(np.abs(a[finite] - b[finite]).max()) / largest)
    return worst


def _wide(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _graded(name: str, gap: float, thing: str, remedy: str) -> Finding:
    if not np.isfinite(gap):
        return _fail(name, f"{thing} give frames of different shapes, or NaN in other places: {remedy}.")
    said = f"{thing} differ by {gap:.1e} of the largest value"
    if gap <= CLOSE:
        return _pass(name, f"{said}.")
    return _warn(name, f"{said}: {remedy}.") if gap <= LOOSE else _fail(name, f"{said}: {remedy}.")


def _pass(name: str, sentence: str) -> Finding:
    return Finding(name, "pass", sentence)


def _warn(name: str, sentence: str) -> Finding:
    return Finding(name, "warn", sentence)


def _fail(name: str, sentence: str) -> Finding:
    return Finding(name, "fail", sentence)


def _skip(name: str, sentence: str) -> Finding:
    return Finding(name, "skip", sentence)
