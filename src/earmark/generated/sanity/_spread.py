"""The sanity bench past one machine: pairs as steps of a Dask cluster, or in shares that are merged.

Scores are a few numbers, so they come home with the answer of a step; a share keeps them in a journal of its own.

    FOLDER/scores.csv                       the journal of the study
    FOLDER/shards/3-of-40/scores.csv        that of a share
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from earmark.errors import InputError, UsageError
from earmark.generated.sanity._scoring import Task, batches, score_all, travelling
from earmark.places import locate
from earmark.progress import progress_bar
from earmark.runs.clusters import DaskWorkers
from earmark.runs.executors import Answer, Done, Job, JobAddress, Listed, Step, carry_out, keep_job
from earmark.runs.journal import SCORES, Journal, TrialScore, read_journal
from earmark.runs.pool import Lost
from earmark.runs.shards import SHARDS, Share, read_shards
from earmark.runs.store import Cache

SCORE_PAIRS = f"{__name__}:score_pairs"
LIBRARIES = ("numba", "numpy", "scipy")


def score_pairs(_: Job, tasks: Sequence[Task]) -> Done:
    """The scores of some pairs; what a metric raises ends the study."""
    return Done({"pairs": len(tasks)}, facts={"scores": score_all(tasks)})


class Scoring(Listed):
    """An agenda of pairs, a few to a step."""

    def __init__(self, waiting: Sequence[Task], job: JobAddress, keep: Callable[[list[TrialScore]], None]) -> None:
        self._keep = keep
        super().__init__(
            Step(SCORE_PAIRS, job, f"pairs {number}: {batch[0].check}", ([travelling(task) for task in batch],),
                 len(batch))
            for number, batch in enumerate(batches(waiting), start=1)
        )  # fmt: skip

    def note(self, step: Step, answer: Answer) -> None:
        if isinstance(answer, Lost):
            raise InputError(
                f"The workers that scored {step.name} ended ({answer}), most likely for want of memory: give them "
                "more; the same --into continues."
            )
        if isinstance(answer, Exception):
            raise answer
        for scores in answer.facts["scores"]:
            self._keep(scores)


def score_on_cluster(
    waiting: Sequence[Task], journal: Journal, scheduler: str, into: str | Path | None, progress: bool
) -> None:
    """Let the workers of a Dask scheduler score pairs."""
    if into is None:
        raise UsageError("Workers of a cluster meet in a folder: give --into, a folder or URL that all of them see.")
    cache = Cache(str(locate(into) / "cache"))
    job = keep_job(cache, {}, LIBRARIES)
    with (
        progress_bar(progress, len(waiting), "sanity", "pair") as tick,
        DaskWorkers(scheduler, None, cache.url) as executor,
    ):
        carry_out(executor, Scoring(waiting, job, journal.add), tick)


def share_of(waiting: Sequence[Task], share: Share) -> list[Task]:
    """The pairs of a share, by their place among all of them: shares that run at any time never overlap."""
    return [task for place, batch in enumerate(batches(waiting)) if share.takes(place) for task in batch]


def take_shares(journal: Journal, into: str | Path) -> int:
    """Know what shares have scored; how many scores are new."""
    folder = locate(into)
    new = 0
    for record in read_shards(folder):
        found = read_journal(folder / SHARDS / record.share.stem / SCORES)
        lacking = [score for trial, score in found.items() if trial not in journal.scores]
        journal.add(lacking)
        new += len(lacking)
    return new
