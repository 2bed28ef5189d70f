"""A stranger's model on blind recordings: heard clip by clip, pooled and scored on the host's side.

    clip --> samples at the model's rate, peak 1 --> sealed cell --> frames, checked --> pooled here --> journal
                                                                                              |
    PCA on the vectors of the set, the declared distance and correction, P@1, P@5, GSR  <-----+

Pooling, PCA, distance and metrics are Earmark's own and run here. The model never learns names, labels, the order of
the corpus or how many clips there are. A clip on which it fails costs it the job: leaving clips out would be a choice.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earmark.atomic import write_whole
from earmark.blind import duplicates
from earmark.blind._journal import Answer, Journal
from earmark.blind._schedule import Schedule, canary, make_schedule, seed_of
from earmark.blind._steadiness import (
    LEAST_KEPT,
    MOST_MOVED,
    TOLERANCE,
    difference,
    kept_neighbours,
    moved_share,
)
from earmark.blind.leverage import without_outweighed
from earmark.blind.models import ConfinedModel, ModelFault, scrubbed, worst
from earmark.blind.packages import Package
from earmark.blind.sets import BlindSet, Host
from earmark.embedding import pooling
from earmark.embedding.hearing import Sound, listen
from earmark.embedding.pca import fit
from earmark.errors import InputError
from earmark.evaluation import evaluate, study_hubness
from earmark.extractors.contract import Frames, Waveform
from earmark.progress import Progress, progress_bar
from earmark.scores import Scores

__all__ = ["METRICS", "PERMUTATIONS", "Vectors", "fingerprint", "hear", "reduced", "score"]

METRICS = ("P@k", "GSR")
PERMUTATIONS = 1000
FAILING_CLIPS = 3
MOST_VECTOR_BYTES = 1 << 30
"""All vectors of a set: they are held in memory to be scored."""
FINGERPRINT_CLIPS, FINGERPRINT_K = 5000, 5
_AHEAD = 4


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector for each clip of a set, pooled, in the order of the set; before any PCA."""

    name: str
    values: NDArray[np.float32]


def hear(
    package: Package,
    blind: BlindSet,
    *,
    host: Host,
    folder: Path,
    allowed: Collection[str] = (),
    progress: Progress = False,
) -> Vectors:
    """The vectors of every clip of a set.

    Args:
        package: unpacked.
        blind: the set.
        host: its limits and its secret.
        folder: of the job: what was heard, the order, and the log for the host lie there, and a second call goes on
            with them.
        allowed: parts of the sandbox that may be missing.
        progress: as everywhere; whoever is told should tell the participant tenths only.

    Raises ModelFault for what the model does wrong, and any other error for what the host does wrong.
    """
    place = Path(folder) / "sets" / blind.name
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    clips, names = blind.clips, pooling.atoms(package.pooling)
    schedule = make_schedule(len(clips), _job_seed(place / "seed"))
    say = _log(Path(folder) / "host.log", blind.name)
    clock = _Clock(Path(folder) / "seconds", host.job_seconds)
    faults: list[ModelFault] = []
    with (
        Journal(place / "journal", len(names)) as journal,
        ConfinedModel(
            package,
            limits=host.limits,
            allowed=allowed,
            seconds_per_clip=host.seconds_per_clip,
            features=next((answer.features for answer in journal.answers.values()), None),
            say=lambda text: say(text, "model| "),
        ) as model,
        progress_bar(progress, len(schedule.order), f"hear {blind.name}", "clip") as bar,
        clock,
    ):
        for number, waveform in _sounds(schedule, blind, host, model.card.rate, frozenset(journal.answers)):
            if waveform is None:  # heard before the worker was stopped
                bar()
                continue
            if number in schedule.renewals or clock.cell_is_old(host.limits):
                model.renew()
                clock.new_cell()
            try:
                (frames,) = model.extract([waveform])
                journal.add(number, _pooled(frames, names), int(frames.values.shape[1]))
            except ModelFault as fault:
                say(f"item {number}: {fault.kind}")
                if fault.kind in ("open", "inconsistent"):
                    raise
                faults.append(fault)
                if len(faults) >= FAILING_CLIPS:
                    break
            if journal.bytes_held / max(1, len(journal.answers)) * len(schedule.order) > MOST_VECTOR_BYTES:
                raise ModelFault("too_much")
            clock.check()
            bar()
        answers = dict(journal.answers)
    if faults:
        raise worst(faults)
    return Vectors(blind.name, _matrix(answers, schedule, package, say))


def reduced(vectors: Vectors, package: Package) -> NDArray[np.float32]:
    """What is scored: the vectors, or their principal components where the package asks for them."""
    return _scored(vectors.values, vectors.values[:0], package)[0]


def score(vectors: Vectors, blind: BlindSet, package: Package, *, host: Host) -> Scores:
    """The exact scores of a set: P@1, P@5 and GSR with baseline, lift and interval. They stay with the host."""
    values, labels, groups = reduced(vectors, package), blind.labels, blind.group_names
    scores = evaluate(
        values,
        labels,
        groups=groups,
        distance=package.distance,
        correct=package.correction,
        metrics=METRICS,
        k=(1, 5),
        permutations=PERMUTATIONS,
        suite=host.board,
        subset=blind.name,
        system=package.entry,
    )
    scores = replace(scores, rows=tuple(replace(row, seconds=None) for row in scores.rows))
    return without_outweighed(
        scores,
        values[_scored_places(blind)],
        blind.class_sizes.values(),
        distance=package.distance,
        correction=package.correction,
        seed=seed_of(host.secret, "leverage", blind.name),
    )


def _scored_places(blind: BlindSet) -> list[int]:
    """The clips that count: of classes of two or more."""
    return [place for place, label in enumerate(blind.labels) if label in blind.class_sizes]


def fingerprint(vectors: Vectors, blind: BlindSet, package: Package, *, host: Host) -> bytes:
    """Neighbour lists of clips that only the host knows: nearly the same for models that are nearly the same.

    Neighbours are those that are scored: among the clips that count, by the corrected distance.
    """
    scored = _scored_places(blind)
    values, count = reduced(vectors, package)[scored], len(scored)
    random = np.random.default_rng(seed_of(host.secret, "fingerprint", blind.name))
    chosen = np.sort(random.choice(count, min(count, FINGERPRINT_CLIPS), replace=False))
    corrections = dict.fromkeys(("none", package.correction))
    study = study_hubness(values, k=min(FINGERPRINT_K, count - 2), distance=package.distance, correct=[*corrections])
    plain = study.lists[package.distance, "none"]
    # A set of too few clips for a correction has no scores by it, and no lists.
    return duplicates.pack(study.lists.get((package.distance, package.correction), plain)[chosen])


# --- hearing ---------------------------------------------------------------------------------------------------------


def _sounds(
    schedule: Schedule, blind: BlindSet, host: Host, rate: int, known: frozenset[int]
) -> Iterator[tuple[int, Waveform | None]]:
    """Every item with its place in the order and its samples, decoded a little ahead; None where it is known."""

    def prepared(item: int) -> Waveform:
        if item >= schedule.clips:
            return canary(item, host.secret, blind.name, rate)
        sound = listen(blind.clips[item], rate)
        if isinstance(sound, Sound):
            return sound.waveform
        raise InputError(f"The blind set {blind.name}: a clip cannot be read: {sound}") from sound

    with ThreadPoolExecutor(2) as pool:
        waiting = {}
        try:
            for number in range(len(schedule.order)):
                for ahead in range(number, min(number + _AHEAD, len(schedule.order))):
                    if ahead not in waiting and ahead not in known:
                        waiting[ahead] = pool.submit(prepared, schedule.order[ahead])
                yield number, None if number in known else waiting.pop(number).result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _pooled(frames: Frames, names: Sequence[str]) -> list[NDArray[np.float32]]:
    """The vectors of a clip; frames of numbers so large that their sums overflow have none."""
    with np.errstate(all="ignore"):
        vectors = pooling.pool(frames, names)
    if not all(np.isfinite(vector).all() for vector in vectors):
        raise ModelFault("nan", detail="the pooled vector overflows")
    return vectors


def _matrix(
    answers: dict[int, Answer], schedule: Schedule, package: Package, say: Callable[[str], None]
) -> NDArray[np.float32]:
    """Vectors in the order of the set. What was heard twice must have been answered alike."""
    first: dict[int, Answer] = {}
    again: dict[int, Answer] = {}
    for number, item in enumerate(schedule.order):
        if item not in first:
            first[item] = answers[number]
            continue
        again[item] = answers[number]
        gap = max(map(difference, first[item].vectors, again[item].vectors))
        if gap > TOLERANCE:
            say(f"item {number}: the second answer differs from the first by {gap:.3g}")
            raise ModelFault("inconsistent")
    # Without canaries: one may be longer than any clip, and vectors that follow time would be padded to it.
    repeated = [item for item in again if item < schedule.clips]
    rows = [*(first[clip] for clip in range(schedule.clips)), *(again[item] for item in repeated)]
    values = _joined(rows, package.pooling)
    matrix = values[: schedule.clips]
    scored, seconds = _scored(matrix, values[schedule.clips :], package)
    moved = moved_share(scored[repeated], seconds, scored, package.distance, repeated)
    kept = kept_neighbours(scored[repeated], seconds, scored, package.distance, repeated)
    say(f"{moved:.1%} of the clips that were heard twice moved; they kept {kept:.1%} of their neighbours")
    if moved > MOST_MOVED or kept < LEAST_KEPT:
        raise ModelFault("inconsistent")
    return matrix


def _scored(
    matrix: NDArray[np.float32], more: NDArray[np.float32], package: Package
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of the set, and more of them, in the space that is scored."""
    if package.pca is None:
        return matrix, more
    with np.errstate(all="ignore"):  # numbers of a stranger's may overflow
        fitted = fit(matrix, package.pca)
        scored = fitted.transform(matrix), fitted.transform(more)
    if not all(np.isfinite(part).all() for part in scored):
        raise ModelFault("unscored")
    return scored


def _joined(rows: Sequence[Answer], pooled: str) -> NDArray[np.float32]:
    """A matrix of the vectors of these answers, each pooling padded by itself."""
    matrices = {
        name: pooling.stack([row.vectors[column] for row in rows], pooling.rows_of(name, rows[0].features))
        for column, name in enumerate(pooling.atoms(pooled))
    }
    return pooling.join(pooled, matrices)


class _Clock:
    """How long a job has taken, kept over restarts; and how old the present cell is."""

    def __init__(self, file: Path, most: float) -> None:
        self._file, self._most = file, most
        self._before = float(file.read_text("utf-8")) if file.exists() else 0.0
        self._started = self._cell = self._noted = time.monotonic()

    def __enter__(self) -> _Clock:
        self._started = self._cell = self._noted = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._note()

    def new_cell(self) -> None:
        self._cell = time.monotonic()

    def cell_is_old(self, limits: object) -> bool:
        """Whether the cell may have used half of its processor time: an honest slow model must not run out of it."""
        busy = (time.monotonic() - self._cell) * max(1, getattr(limits, "threads", 1))
        return busy > getattr(limits, "cpu_seconds", np.inf) / 2

    def check(self) -> None:
        now = time.monotonic()
        if self._before + now - self._started > self._most:
            raise ModelFault("too_long")
        if now - self._noted > 10:
            self._note()

    def _note(self) -> None:
        self._noted = time.monotonic()
        write_whole(self._file, f"{self._before + self._noted - self._started:.3f}".encode())


def _job_seed(file: Path) -> int:
    """The seed of a job's order, drawn once and kept with the job."""
    if not file.exists():
        write_whole(file, secrets.token_hex(16).encode())
    return int(file.read_text("ascii"), 16)


def _log(file: Path, name: str) -> Callable[..., None]:
    """Writes to the log that stays with the host. Lines in the stranger's words are marked, and steer no terminal."""

    def say(text: str, mark: str = "") -> None:
        with file.open("a", encoding="utf-8", errors="replace") as stream:
            stream.writelines(f"{name}: {mark}{line}\n" for line in scrubbed(text).splitlines())

    return say
