"""Content identity and fidelity: what of a set of sounds a codec keeps, as a representation hears it.

Content. Does a coded clip still lie with its own kind?

    coded_enrol   P@1 and GSR inside the coded set, as `earmark.evaluate` gives them
    clean_enrol   a coded clip looks among the clean ones, its own left out (`retrieval`)

Each has a baseline from shuffled labels and a lift; `P@1:difference` and `GSR:difference` are coded minus clean on the
same clips. Intervals and p-values come from leaving out each clip (each group, where clips have groups), coded and
clean, as query and as candidate. GSR is not monotone in quality: a codec that blurs
everything alike may raise it, so P@1 is to be read first.

Fidelity. Is the coded set like the clean one, and does it cover it? `earmark.fidelity` with the clean clips as the
real ones, plain and corrected for hubs (GICDM). No labels are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError
from earmark.evaluation import compare, evaluate
from earmark.extractors.contract import Extractor
from earmark.generated.api import fidelity
from earmark.probes._contract import Responses
from earmark.probes._encoding import EncoderTask
from earmark.probes._scoring import RESAMPLES, group_codes, join_notes, measured, not_applicable, pair_clips, rests_on
from earmark.probes.retrieval import PERMUTATIONS, RetrievalTask, answers, answers_without, chance, label_codes
from earmark.probes.tasks import CARDS
from earmark.scores import Row

FIDELITY = ("clipped_density", "clipped_coverage", "density", "coverage")
_QUANTITY = {"P@1": "hit", "GSR": "gsr"}


def content_identity(
    clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], *, permutations: int = PERMUTATIONS, seed: int = 0
) -> list[Row]:
    """P@1 and GSR of coded vectors [N, D] and their differences to clean ones [N, D] of the same clips, row by row."""
    _check_widths(clean, coded)
    codes = label_codes(clips)
    if len(codes) == 0 or np.bincount(codes[codes >= 0], minlength=1).max() < 2:
        return _no_content("no two clips share a label")
    return [
        *_inside(clean, coded, clips, permutations, seed),
        *_across(clean, coded, clips, codes, permutations, seed),
    ]


def coded_fidelity(
    clean: NDArray[Any], coded: NDArray[Any], *, metrics: Sequence[str] = FIDELITY, distance: str = "euclidean",
    bootstrap: int = RESAMPLES, seed: int = 0, groups: Sequence[Any] | NDArray[Any] | None = None,
) -> list[Row]:  # fmt: skip
    """Fidelity of coded vectors [M, D] against clean ones [N, D], with corrections none and gicdm.

    Where there are as many, a clip and its coded copy are a pair, and the jackknife leaves out pairs, or the pairs of a
    group. `bootstrap` 0 is no interval.
    """
    _check_widths(clean, coded)
    try:
        pairs = (range(len(coded)) if groups is None else groups) if len(clean) == len(coded) else None
        scores = fidelity(clean, coded, metrics=metrics, distance=distance, seed=seed, reading="corrected",
                          intervals="jackknife" if bootstrap else "none", groups=pairs, real_groups=pairs)  # fmt: skip
    except EarmarkError as error:
        return _no_fidelity(metrics, distance, str(error))
    return [replace(row, seconds=None) for row in scores.rows]


class Content(RetrievalTask):
    """The task `content`: `content:speech_embedding` and so on. Nothing is drawn: it has no use for `bootstrap`."""

    card = CARDS["content"]

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        pairs = pair_clips(clips, clean, coded)
        if not pairs.clips:
            return _no_content(pairs.left_out or "there are no clips")
        before, after = self.vectors(pairs, clean, coded)
        rows = content_identity(before, after, pairs.clips, permutations=self.permutations, seed=seed)
        return _with_note(rows, pairs.left_out)


class CodedFidelity(EncoderTask):
    """The task `fidelity`: `fidelity:speech_embedding` and so on."""

    card = CARDS["fidelity"]

    def __init__(
        self, model: str | Extractor = "", *, metrics: Sequence[str] | str = FIDELITY, distance: str = "euclidean",
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(model, **options)
        self.metrics = tuple(metrics.split(",")) if isinstance(metrics, str) else tuple(metrics)
        self.distance = distance

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        pairs = pair_clips(clips, clean, coded)
        if not pairs.clips:
            return _no_fidelity(self.metrics, self.distance, pairs.left_out or "there are no clips")
        before, after = self.vectors(pairs, clean, coded)
        rows = coded_fidelity(
            before, after, metrics=self.metrics, distance=self.distance, bootstrap=self.bootstrap, seed=seed,
            groups=group_codes(pairs.clips),
        )  # fmt: skip
        return _with_note(rows, pairs.left_out)


def _inside(clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], permutations: int, seed: int) -> list[Row]:
    labels, groups = [clip.label for clip in clips], group_codes(clips)
    alone = evaluate(coded, labels, metrics=tuple(_QUANTITY), k=1, groups=groups, permutations=permutations, seed=seed)
    difference = compare(coded, clean, labels, metrics=tuple(_QUANTITY), k=1, groups=groups)
    return [replace(row, protocol="coded_enrol", seconds=None) for row in (*alone.rows, *difference.rows)]


def _across(
    clean: NDArray[Any], coded: NDArray[Any], clips: Sequence[Clip], codes: NDArray[np.int64], permutations: int,
    seed: int,
) -> list[Row]:  # fmt: skip
    wanted = tuple(_QUANTITY.values())
    after, before = answers(coded, clean, codes, wanted), answers(clean, clean, codes, wanted)
    groups = group_codes(clips)
    unit, units = ("clip", np.arange(len(clips))) if groups is None else ("group", groups)
    after_without, before_without = (answers_without(queries, clean, codes, units) for queries in (coded, clean))
    means = {name: float(np.nanmean(after[name])) for name in wanted if np.isfinite(after[name]).any()}
    luck = chance(coded, clean, codes, means, permutations, seed) if permutations else {}
    rows = []
    for metric, name in _QUANTITY.items():
        if name not in means:
            rows.append(not_applicable(metric, "clean_enrol", "one label only: nothing to tell apart"))
            continue
        alone = jackknife.interval(means[name], after_without[name], (0.0, 1.0), unit)
        lost = jackknife.difference(
            means[name], float(np.nanmean(before[name])), after_without[name], before_without[name], (0.0, 1.0),
            unit=unit,
        )  # fmt: skip
        shared: dict[str, Any] = {"n": int(np.isfinite(after[name]).sum()), "distance": "cosine"}
        rows += [
            measured(metric, "clean_enrol", means[name], (alone.low, alone.high), luck.get(name), reason=alone.reason,
                     **shared, **rests_on(alone.low, unit, alone.units)),
            measured(f"{metric}:difference", "clean_enrol", lost.value, (lost.low, lost.high), p_value=lost.p_value,
                     reason=lost.reason, **shared, **rests_on(lost.low, unit, lost.units)),
        ]  # fmt: skip
    return rows


def _check_widths(clean: NDArray[Any], coded: NDArray[Any]) -> None:
    if clean.shape[1] != coded.shape[1]:
        raise InputError(
            f"The clean vectors have {clean.shape[1]} dimensions and the coded ones {coded.shape[1]}: give as many."
        )


def _no_content(why: str) -> list[Row]:
    names = [name for metric in _QUANTITY for name in (metric, f"{metric}:difference")]
    return [not_applicable(name, kind, why) for kind in ("coded_enrol", "clean_enrol") for name in names]


def _no_fidelity(metrics: Sequence[str], distance: str, why: str) -> list[Row]:
    return [
        not_applicable(name, "all", why, correction=correction, distance=distance)
        for correction in ("none", "gicdm") for name in metrics
    ]  # fmt: skip


def _with_note(rows: Sequence[Row], note: str) -> list[Row]:
    return [replace(row, reason=join_notes(row.reason, note)) for row in rows]
