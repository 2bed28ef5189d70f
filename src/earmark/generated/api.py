"""From two sets of vectors to a score table: `earmark.fidelity`. Nothing here knows of audio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from earmark.generated import _jackknife as jackknife
from earmark.generated._asked import CORRECTIONS, INTERVALS, READINGS, Asked
from earmark.generated._findings import HEADLINES, Fidelity
from earmark.generated._judging import NO_INTERVAL, GeneratedSet, judge_sets
from earmark.geometry import spaces

__all__ = ["CORRECTIONS", "HEADLINES", "INTERVALS", "NO_INTERVAL", "READINGS", "Fidelity", "fidelity"]


def fidelity(
    real: Any, generated: Any, *, metrics: str | Sequence[str] | None = None, k: int | Mapping[str, int] = 5,
    correct: str | Sequence[str] = CORRECTIONS, reading: Literal["both", "corrected", "literal"] = "both",
    distance: str | Sequence[str] = "euclidean", intervals: str | None = None, bootstrap: int | None = None,
    groups: jackknife.Groups = None, real_groups: jackknife.Groups = None, seed: int = 0, cap: bool = True,
    ids: Sequence[str] | None = None, real_ids: Sequence[str] | None = None, ties: spaces.Ties = "average",
    bandwidth: float | str = "real", device: str = "auto", memory: str | int = "2GB", threads: int | None = None,
    system: str = "", subset: str = "", suite: str = "", progress: bool = False,
) -> Fidelity:  # fmt: skip
    """Judge `generated` [M, D] against `real` [N, D]: is it like the real, and does it cover it? Returns Fidelity.

    Every metric is given as it is (correction "none") and, where it is defined, with hubness corrected ("gicdm").

    Args:
        real: One row for each real clip.
        generated: One row for each generated clip.
        metrics: Names, in a list or with commas; None is all but alpha_precision and beta_recall, which train a
            network, and fad_inf and kad; "all" is all.
        k: Neighbours that make a ball: one number (the cover pair keeps its 3), or a number for each metric by name.
        correct: "none", "gicdm" or both.
        reading: The clipped pair under GICDM has two readings: `clipped_density` is the corrected one,
            `clipped_density_literal` the literal one; or both.
        distance: One or several of cosine, euclidean, spearman.
        intervals: "jackknife" (both sets lose half of their points, 24 times, and everything is found anew; 7 to 13
            evaluations), "bootstrap" (the points that are judged are drawn and the balls that judge them held fixed, so
            it is too narrow) or "none".
        bootstrap: Resamples of the points; a number alone chooses that kind of interval, and 0 none.
        groups: The recording or speaker of each generated point: whole groups are left out.
        real_groups: The same of the real points.
        seed: Seed of smaller sets, resamples and the network.
        cap: Whether clipped_density is cut at 1.
        ids: Names of the generated rows.
        real_ids: Names of the real rows.
        ties: Ranks of equal values under spearman: "average", or "ordinal" as in published numbers.
        bandwidth: Of kad: whose points' median distance is the width of the kernel, "real" or "generated", or a number.
        device: Where distances are computed: cpu, cuda, cuda:1, or auto (a GPU if torch sees one and it pays).
        memory: Budget for tiles and batches, beside the vectors: "2GB", or a number of bytes.
        threads: Threads at work; None is one for each core. No result depends on it.
        system: Name of the generator, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.

    Returns:
        Rows of a score table, and a value for each generated sample and each real point.

    >>> earmark.fidelity(real, generated).value("clipped_density", correction="gicdm")
    """
    asked = Asked.make(
        metrics=metrics, k=k, correct=correct, reading=reading, distance=distance, intervals=intervals,
        bootstrap=bootstrap, seed=seed, cap=cap, ties=ties, device=device, memory=memory, threads=threads,
        bandwidth=bandwidth,
    )  # fmt: skip
    about = {"suite": suite, "subset": subset}
    one = GeneratedSet(system, generated, groups, ids)
    return judge_sets(real, [one], asked, real_groups, real_ids, about, progress=progress)[0].fidelity
