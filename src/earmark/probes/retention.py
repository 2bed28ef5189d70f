"""Content identity and fidelity: what of a set of sounds a codec keeps, as a representation hears it.

Content. Does a coded clip still lie with its own kind?

    coded_enrol   P@1 and GSR inside the coded set, as `earmark.evaluate` gives them
    clean_enrol   a coded clip looks among the clean ones, its own left out (`tasks.retrieval`)

Each has a baseline from shuffled labels and a lift; `P@1:difference` and `GSR:difference` are coded minus clean on the
same clips. Intervals and p-values come from leaving out each clip (each group, where clips have groups), coded and
clean, as query and as candidate. GSR is not monotone in quality: a codec that blurs
everything alike may raise it, so P@1 is to be read first.

Fidelity. Is the coded set like the clean one, and does it cover it? `earmark.fidelity` with the clean clips as the
real ones, plain and corrected for hubs (GICDM). No labels are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError
from earmark.evaluation import compare, evaluate
from earmark.extractors.contract import Extractor
from earmark.fidelity.api import fidelity
from earmark.probes.catalogue import CARDS
from earmark.probes.contract import RESAMPLES, Finding, Heard, TaskCard, paired
from earmark.probes.encoding import encode_clips, heard_by, open_encoder, vectors_of
from earmark.probes.events import PERMUTATIONS, label_codes
from earmark.probes.resampling import group_codes
from earmark.probes.retrieval import answers, answers_without, chance
from earmark.progress import Progress
from earmark.scores import Row

__all__ = ["CodedFidelity", "Content", "coded_fidelity", "content_identity"]

FIDELITY = ("clipped_density", "clipped_coverage", "density", "coverage")
_METRICS = ("P@1", "GSR")
_QUANTITY = {"P@1": "hit", "GSR": "gsr"}


def content_identity(
    clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], *, permutations: int = PERMUTATIONS, seed: int = 0
) -> list[Finding]:
    """P@1 and GSR of coded vectors [N, D] and their differences to clean ones [N, D] of the same clips, row by row."""
    _check_widths(clean, coded)
    codes = label_codes(clips)
    if len(codes) == 0 or np.bincount(codes[codes >= 0], minlength=1).max() < 2:
        return _nothing("no two clips share a label")
    return [
        *_inside(clean, coded, clips, permutations, seed),
        *_across(clean, coded, clips, codes, permutations, seed),
    ]


def coded_fidelity(
    clean: NDArray[Any], coded: NDArray[Any], *, metrics: Sequence[str] = FIDELITY, distance: str = "euclidean",
    bootstrap: int = RESAMPLES, seed: int = 0, groups: Sequence[Any] | NDArray[Any] | None = None,
) -> list[Finding]:  # fmt: skip
    """Fidelity of coded vectors [M, D] against clean ones [N, D], with corrections none and gicdm.

    Where there are as many, a clip and its coded copy are a pair, and the jackknife leaves out pairs, or the pairs of a
    group. `bootstrap` 0 is no interval.
    """
    _check_widths(clean, coded)
    try:
        pairs = (range(len(coded)) if groups is None else groups) if len(clean) == len(coded) else None
        found = fidelity(clean, coded, metrics=metrics, distance=distance, seed=seed, reading="corrected",
                         intervals="jackknife" if bootstrap else "none", groups=pairs, real_groups=pairs)  # fmt: skip
    except EarmarkError as error:
        return [
            Finding.not_applicable(name, "all", str(error))._replace(correction=correction, distance=distance)
            for correction in ("none", "gicdm") for name in metrics
        ]  # fmt: skip
    return [_from_row(row, row.protocol) for row in found.rows]


class _WithExtractor:
    """Tasks that compare vectors of any extractor."""

    card: TaskCard

    def __init__(self, model: str | Extractor, pool: str, options: dict[str, Any]) -> None:
        self.extractor, self.pool = open_encoder(model, **options), pool
        self.card = heard_by(self.card, self.extractor)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        return encode_clips(clips, self.extractor, self.pool, progress=progress)


class Content(_WithExtractor):
    """The task `content`: `content:speech_embedding` and so on."""

    card = CARDS["content"]

    def __init__(
        self, model: str | Extractor = "", *, permutations: int = PERMUTATIONS, pool: str = "", **options: Any
    ) -> None:
        options.pop("bootstrap", None)  # version 0.1.0 drew queries; nothing is drawn any more
        super().__init__(model or self.card.model, pool, options)
        self.permutations = permutations

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        pairs = paired(clips, clean, coded)
        if not pairs.clips:
            return _nothing(pairs.left_out or "there are no clips")
        before, after = vectors_of(pairs, clean, coded, self.card.name)
        found = content_identity(before, after, pairs.clips, permutations=self.permutations, seed=seed)
        return [_noted(one, pairs.left_out) for one in found]


class CodedFidelity(_WithExtractor):
    """The task `fidelity`: `fidelity:speech_embedding` and so on."""

    card = CARDS["fidelity"]

    def __init__(
        self, model: str | Extractor = "", *, metrics: Sequence[str] | str = FIDELITY, distance: str = "euclidean",
        bootstrap: int = RESAMPLES, pool: str = "", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(model or self.card.model, pool, options)
        self.metrics = tuple(metrics.split(",")) if isinstance(metrics, str) else tuple(metrics)
        self.distance, self.bootstrap = distance, bootstrap

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        pairs = paired(clips, clean, coded)
        if not pairs.clips:
            why = pairs.left_out or "there are no clips"
            return [
                Finding.not_applicable(name, "all", why)._replace(correction=correction, distance=self.distance)
                for correction in ("none", "gicdm") for name in self.metrics
            ]  # fmt: skip
        before, after = vectors_of(pairs, clean, coded, self.card.name)
        found = coded_fidelity(
            before, after, metrics=self.metrics, distance=self.distance, bootstrap=self.bootstrap, seed=seed,
            groups=group_codes(pairs.clips),
        )  # fmt: skip
        return [_noted(one, pairs.left_out) for one in found]


# --- inside the coded set ---------------------------------------------------------------------------------------


def _inside(
    clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], permutations: int, seed: int
) -> list[Finding]:
    labels, groups = [clip.label for clip in clips], group_codes(clips)
    alone = evaluate(coded, labels, metrics=_METRICS, k=1, groups=groups, permutations=permutations, seed=seed)
    difference = compare(coded, clean, labels, metrics=_METRICS, k=1, groups=groups)
    return [_from_row(row, "coded_enrol") for row in (*alone.rows, *difference.rows)]


# --- coded clips among clean ones -------------------------------------------------------------------------------


def _across(
    clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], codes: NDArray[np.int64], permutations: int,
    seed: int,
) -> list[Finding]:  # fmt: skip
    wanted = tuple(_QUANTITY.values())
    after, before = answers(coded, clean, codes, wanted), answers(clean, clean, codes, wanted)
    groups = group_codes(clips)
    unit, units = ("clip", np.arange(len(clips))) if groups is None else ("group", groups)
    after_without, before_without = (answers_without(queries, clean, codes, units) for queries in (coded, clean))
    means = {name: float(np.nanmean(after[name])) for name in wanted if np.isfinite(after[name]).any()}
    luck = chance(coded, clean, codes, means, permutations, seed) if permutations else {}
    found = []
    for metric, name in _QUANTITY.items():
        if name not in means:
            found.append(Finding.not_applicable(metric, "clean_enrol", "one label only: nothing to tell apart"))
            continue
        n = int(np.isfinite(after[name]).sum())
        around = jackknife.interval(means[name], after_without[name], (0.0, 1.0), unit)
        one = Finding(metric, "clean_enrol", means[name], around.low, around.high, n=n, distance="cosine",
                      reason=around.reason, **_rests_on(around.low, unit, around.units))  # fmt: skip
        found.append(one.against(luck.get(name)))
        lost = jackknife.difference(
            means[name], float(np.nanmean(before[name])), after_without[name], before_without[name], (0.0, 1.0),
            unit=unit,
        )  # fmt: skip
        found.append(Finding(f"{metric}:difference", "clean_enrol", lost.value, lost.low, lost.high, n=n,
                             p_value=lost.p_value, distance="cosine", reason=lost.reason,
                             **_rests_on(lost.low, unit, lost.units)))  # fmt: skip
    return found


def _rests_on(low: float | None, unit: str, units: int) -> dict[str, Any]:
    return {} if low is None else {"interval": "jackknife", "unit": unit, "units": units}


# --- small things -----------------------------------------------------------------------------------------------


def _check_widths(clean: NDArray[Any], coded: NDArray[Any]) -> None:
    if clean.shape[1] != coded.shape[1]:
        raise InputError(
            f"The clean vectors have {clean.shape[1]} dimensions and the coded ones {coded.shape[1]}: give as many."
        )


def _nothing(why: str) -> list[Finding]:
    names = [name for metric in _METRICS for name in (metric, f"{metric}:difference")]
    return [Finding.not_applicable(name, kind, why) for kind in ("coded_enrol", "clean_enrol") for name in names]


def _from_row(row: Row, protocol: str) -> Finding:
    return Finding(
        row.metric, protocol, row.value, row.low, row.high, n=row.n, status=row.status, reason=row.reason,
        baseline=row.baseline, lift=row.lift, p_value=row.p_value, distance=row.distance, correction=row.correction,
        baseline_low=row.baseline_low, baseline_high=row.baseline_high, interval=row.interval, unit=row.unit,
        units=row.units, comparisons=row.comparisons, shuffle=row.shuffle, baseline_error=row.baseline_error,
    )  # fmt: skip


def _noted(one: Finding, note: str) -> Finding:
    return one._replace(reason="; ".join(part for part in (one.reason, note) if part))
