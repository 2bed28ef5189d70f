"""Before a model hears anything that is not its author's to hear: the same sandbox, the same checks, synthetic sounds.

`earmark blind check` is this on the author's machine: what the model raised and printed is shown in full, cut, and
without characters that steer a terminal. The host does it again, and tells the author one of a few fixed sentences
(`Rehearsal.told`): the sounds are synthetic, but the machine is not, and a model could read from it (from the cache of
files, say) what another one has left there after it heard the blind recordings.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from earmark.blind._steadiness import MOST_MOVED, TOLERANCE, difference, moved_share
from earmark.blind.models import ConfinedModel, ModelFault, scrubbed
from earmark.blind.packages import Package
from earmark.conformance import CheckResult, failed, passed, run_checks, warned
from earmark.embedding import pooling
from earmark.errors import InputError
from earmark.extractors import conformance
from earmark.extractors.conformance import Subject
from earmark.extractors.contract import Frames, Waveform
from earmark.isolation import Limits
from earmark.progress import Progress, progress_bar
from earmark.tables import plain
from earmark.wording import counted

__all__ = ["TOLD", "Rehearsal", "rehearse"]

CLIPS_FORETOLD = 10_000
SLOW_SECONDS = 1.0  # a second of sound that takes longer than this is warned of
NEAR = 0.5  # of the memory that is allowed: more is warned of
_DIFFERENT = "its answer must depend on the sound alone: no dropout, no counter, no averages over what it heard"


TOLD = {
    "opens": "your model could not be opened",
    "shape": "your model did not give frames [T, D] with one number of features",
    "finite": "your model gave NaN or infinity for an ordinary sound",
    "valid_counts": "your model states an impossible number of valid frames",
    "pooled": "the frames of your model could not be pooled",
    "deterministic": "your model answered the same sound differently a second time",
    "short_clips": "your model failed on 10 ms of sound or on a single sample",
    "silence": "your model failed on digital silence",
    "tells_sounds_apart": "your model gave the same numbers for different sounds",
    "steady": "your model answered the same sound differently after others, or in a new process",
    "speed": "your model failed on a second of sound",
}
"""What a host says of a check that failed."""


class Rehearsal(NamedTuple):
    """Whether a model may go on to the blind recordings, what was found, and what it printed and raised."""

    passed: bool
    findings: tuple[CheckResult, ...]
    log: str

    @property
    def told(self) -> str:
        """What the host tells the participant: words of ours, chosen by the first check that failed."""
        wrong = [finding.name for finding in self.findings if finding.status == "fail"]
        if not wrong:
            return "The rehearsal on synthetic sounds passed."
        why = TOLD.get(wrong[0], "it did not do what a model does")
        return f"The rehearsal on synthetic sounds failed: {why}; `earmark blind check` shows more on your machine."

    @property
    def sentence(self) -> str:
        """The first thing that failed, in full: for authors on their own machine, and for the host's log."""
        wrong = [finding for finding in self.findings if finding.status == "fail"]
        if not wrong:
            return "The rehearsal on synthetic sounds passed."
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return plain(f"The rehearsal on synthetic sounds failed: {wrong[0].name}: {wrong[0].sentence}{more}", 1000)


class _Told:
    """The model with its faults in full: here they may be read."""

    has_own_card = True

    def __init__(self, model: ConfinedModel, tick: Callable[[], None]) -> None:
        self.model, self.card, self._tick = model, model.card, tick
        self.seconds: list[tuple[float, float]] = []  # of sound, and what it took

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        answers = []
        for waveform in waveforms:
            self._tick()
            started = time.perf_counter()
            try:
                answers += self.model.extract([waveform])
            except ModelFault as fault:
                raise InputError(_in_full(fault)) from fault
            self.seconds.append((len(waveform) / self.card.rate, time.perf_counter() - started))
        return answers


def rehearse(
    package: Package,
    *,
    limits: Limits | None = None,
    allowed: Collection[str] = (),
    seconds_per_clip: float | None = None,
    progress: Progress = False,
) -> Rehearsal:
    """The model of an unpacked package on synthetic sounds, in a sealed cell.

    Raises UsageError where the sandbox lacks a part that is not allowed to be missing.
    """
    lines: list[str] = []
    started = time.perf_counter()
    try:
        model = ConfinedModel(
            package, limits=limits, allowed=allowed, seconds_per_clip=seconds_per_clip, say=lines.append
        )
    except ModelFault as fault:
        return Rehearsal(False, (CheckResult("opens", "fail", _in_full(fault)),), scrubbed("\n".join(lines)))
    opening = time.perf_counter() - started
    with model, progress_bar(progress, _EXPECTED, f"rehearse {package.entry}", "clip") as bar:
        told = _Told(model, lambda: bar() if bar.done < _EXPECTED else None)
        subject = Rehearsed(told, package, limits or Limits())
        opened = f"It opened in {opening:.1f} s and hears {model.card.rate} Hz."
        findings = [
            CheckResult("opens", "pass", opened),
            *run_checks(CHECKS, subject, conformance.shape, "There are no frames to look at: see `shape`."),
        ]
        bar.reach(_EXPECTED)
    log = scrubbed("\n".join(lines))
    return Rehearsal(all(finding.status != "fail" for finding in findings), tuple(findings), log)


class Rehearsed(Subject):
    """A model under rehearsal, with its package."""

    def __init__(self, told: _Told, package: Package, limits: Limits) -> None:
        super().__init__(told)
        self.told, self.package, self.limits = told, package, limits

    def vectors(self, waveform: Waveform) -> list[Any]:
        """What the host will keep of a clip: its frames, pooled."""
        return pooling.pool(self.hear([waveform])[0], pooling.atoms(self.package.pooling))


def pooled(subject: Rehearsed) -> CheckResult:
    """Frames can be pooled as the package asks."""
    lengths = [len(vector) for vector in subject.vectors(subject.sound(1.0))]
    return passed(f"{subject.package.pooling} gives {' + '.join(map(str, lengths))} numbers for a second of sound.")


def steady(subject: Rehearsed) -> CheckResult:
    """The same answers after other sounds were heard, and in a new cell."""
    sounds = [subject.sound(0.3 + 0.2 * seed, seed) for seed in range(20, 26)]
    first = [subject.vectors(sound) for sound in sounds]
    later = [subject.vectors(sound) for sound in reversed(sounds)][::-1]
    subject.told.model.renew()
    anew = [subject.vectors(sound) for sound in sounds[::2]]
    every = _rows(first, first)
    for other, chosen, when in (
        (later, [0, 1, 2, 3, 4, 5], "after other sounds"),
        (anew, [0, 2, 4], "in a new process"),
    ):
        before = [first[number] for number in chosen]
        gap = max(max(map(difference, one, two)) for one, two in zip(before, other, strict=True))
        if (
            gap > TOLERANCE
            or moved_share(every[chosen], _rows(other, first), every, subject.package.distance, chosen) > MOST_MOVED
        ):
            return failed(f"One sound is answered differently {when}: {_DIFFERENT}.")
    return passed("Sounds are answered alike after other sounds and in a new process.")


def _rows(answers: Sequence[Sequence[Any]], every: Sequence[Sequence[Any]]) -> Any:
    """Vectors as rows of one width: those that follow time are padded to the longest."""
    widths = [max(len(answer[part]) for answer in every) for part in range(len(every[0]))]
    padded = [
        [np.pad(vector[:width], (0, max(0, width - len(vector)))) for vector, width in zip(answer, widths, strict=True)]
        for answer in answers
    ]
    return np.array([np.concatenate(parts) for parts in padded])


def long_clip(subject: Rehearsed) -> CheckResult:
    """A minute of sound; blind recordings are mostly shorter, so a failure is a warning."""
    try:
        result = conformance.long_clip(subject)
    except InputError as error:
        return warned(f"A minute of sound fails ({error}): a set with clips that long would be refused.")
    return result._replace(status="warn") if result.status == "fail" else result


def speed(subject: Rehearsed) -> CheckResult:
    """What ten thousand clips would take here."""
    for seed in range(3):
        subject.hear([subject.sound(1.0, seed)])
    a_second = statistics.median(took for seconds, took in subject.told.seconds if 0.9 <= seconds <= 1.1)
    hours = a_second * CLIPS_FORETOLD / 3600
    foretold = f"{hours:.1f} hours" if hours >= 1 else counted(math.ceil(60 * hours), "minute")
    said = f"A second of sound takes {1000 * a_second:.0f} ms here: {CLIPS_FORETOLD:,} clips of a second {foretold}."
    return warned(f"{said} That is slow; a host may allow less.") if a_second > SLOW_SECONDS else passed(said)


def memory(subject: Rehearsed) -> CheckResult:
    """How near the model came to the limit."""
    peak, limit = subject.told.model.peak, subject.limits.memory
    said = f"It used {peak / 1e9:.1f} GB of memory at most; the limit here was {limit / 1e9:.1f} GB."
    return warned(f"{said} Longer clips may need more.") if peak > NEAR * limit else passed(said)


CHECKS: tuple[Callable[[Rehearsed], CheckResult], ...] = (
    conformance.shape, conformance.finite, conformance.valid_counts, pooled, conformance.deterministic,
    conformance.short_clips, conformance.silence, conformance.tells_sounds_apart, steady, long_clip, speed, memory,
)  # fmt: skip
_EXPECTED = 36  # clips that these checks play


_WALLS = ("Operation not permitted", "Permission denied", "Read-only file system", "internet connection", "Errno 38")
"""What errors say where a model ran into a wall of its cell."""


def _in_full(fault: ModelFault) -> str:
    """A fault with what the model raised."""
    said = scrubbed(" ".join(fault.detail.split()), 500)
    if fault.kind in ("raised", "open") and any(sign in said for sign in _WALLS):
        said += " (a sealed cell has no network, no other programs or processes, and writes to /tmp only)"
    return f"{fault.sentence.removesuffix('.')}: {said}" if said else fault.sentence
