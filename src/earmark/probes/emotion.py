"""Emotion recognition: a linear head trained on clean clips, tested on coded ones.

Clips become vectors (eGeMAPS by default; `emotion:wavlm:CHECKPOINT` takes the mean over frames of the plain mean of
all hidden layers, where SUPERB learns the weights of the layers). Five folds: features are standardised and a
multinomial logistic regression (L2, C = 1) is fitted on the clean clips of four, and tested on the coded clips of the
fifth. Clips of one group, a speaker, are never on both sides; without groups folds are drawn within labels. The
labels are those of the clips that the user gives: no emotions come with Earmark.

`er_accuracy` is the share of clips whose label is found. Its baseline is what the same answers reach when the labels
of the test clips are shuffled. `er_accuracy:difference` is coded minus clean, clip by clip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError
from earmark.extractors.contract import Extractor, is_layered
from earmark.probes._contract import Responses
from earmark.probes._encoding import EncoderTask, LayerMean
from earmark.probes._scoring import (
    CleanShare,
    draw_clips,
    group_codes,
    join_notes,
    mean_interval,
    measured,
    not_applicable,
    pair_clips,
)
from earmark.probes.tasks import CARDS
from earmark.scores import Row
from earmark.wording import counted

FOLDS = 5
STEPS = 2000  # of the solver, at most

Matrix = NDArray[np.float64]


class Emotion(EncoderTask):
    """`emotion`, `emotion:wavlm:microsoft/wavlm-base`, `emotion:` and any extractor; `layers=last` takes its last."""

    card = CARDS["emotion"]

    def __init__(
        self, model: str | Extractor = "", *, layers: str = "mean", folds: int = FOLDS, **options: Any
    ) -> None:
        if layers not in ("mean", "last"):
            raise UsageError(f"layers is mean or last, not {layers!r}.")
        if folds < 2:
            raise UsageError(f"At least 2 folds are needed, not {folds}.")
        self.folds, self.layers = folds, layers
        self._clean: CleanShare[Heads] = CleanShare()
        super().__init__(model, **options)

    def open_model(self, model: str | Extractor, options: Mapping[str, Any]) -> Extractor:
        extractor = super().open_model(model, options)
        layered = self.layers == "mean" and is_layered(extractor) and extractor.layers
        return LayerMean(extractor) if layered else extractor  # type: ignore[arg-type]

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        """Scores `er_accuracy` and `er_accuracy:difference`, protocol `all`."""
        pairs = pair_clips(clips, clean, coded)
        kept = [row for row, clip in enumerate(pairs.clips) if clip.label]
        chosen = [pairs.clips[row] for row in kept]
        try:
            cut = folds_of(chosen, self.folds, seed)
        except InputError as error:
            why = join_notes(str(error), pairs.left_out)
            return [not_applicable(name, "all", why) for name in self.card.metrics]
        before, after = (values[kept] for values in self.vectors(pairs, clean, coded))
        heads = self._clean.of(clean, pairs, seed, lambda: Heads.trained(before, cut))
        answers = heads.answer(after)
        right_before, right = ((answer == cut.labels).astype(np.float64) for answer in (heads.clean, answers))
        draws = draw_clips(chosen, self.bootstrap, seed)
        value, baseline = float(right.mean()), shuffled_accuracy(answers, cut)
        lost = right - right_before
        shared: dict[str, Any] = {"n": len(kept), "reason": join_notes(cut.note, pairs.left_out)}
        return [
            measured("er_accuracy", "all", value, mean_interval(right, draws), baseline=baseline,
                     lift=value - baseline, **shared),
            measured("er_accuracy:difference", "all", float(lost.mean()), mean_interval(lost, draws), **shared),
        ]  # fmt: skip


class Folds(NamedTuple):
    """Codes of the labels, and the fold in which each clip is tested."""

    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    note: str


def folds_of(clips: Sequence[Clip], folds: int, seed: int) -> Folds:
    """Share clips out among folds with like labels in each, and no group in two of them."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    labels = np.unique([clip.label or "" for clip in clips], return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(labels) if len(labels) else np.zeros(0, np.int64)
    if len(sizes) < 2:
        raise InputError(f"{counted(len(sizes), 'label')} in {counted(len(clips), 'clip')}: at least two are needed")
    groups = group_codes(clips)
    most = int(sizes.min()) if groups is None else len(np.unique(groups))
    if most < folds:
        thing = "clips of the rarest label" if groups is None else "groups"
        raise InputError(f"{most} {thing} do not fill {folds} folds")
    maker: Any = StratifiedKFold if groups is None else StratifiedGroupKFold
    cutter = maker(folds, shuffle=True, random_state=seed)
    fold = np.zeros(len(clips), np.int64)
    for number, (train, test) in enumerate(cutter.split(np.zeros(len(clips)), labels, groups)):
        if len(np.unique(labels[train])) < 2:
            raise InputError("a fold leaves one label to learn from: give clips of each label by more groups")
        fold[test] = number
    of_groups = "" if groups is None else f" of {counted(most, 'group')}"
    return Folds(labels, fold, f"{folds} folds{of_groups}")


class Heads(NamedTuple):
    """A linear head for each fold, trained on the clean clips of the others, and its answers for the clean clips."""

    cut: Folds
    heads: tuple[Any, ...]
    clean: NDArray[np.int64]

    @classmethod
    def trained(cls, clean: Matrix, cut: Folds) -> Heads:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        heads = tuple(
            make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=STEPS)).fit(
                clean[cut.fold != number], cut.labels[cut.fold != number]
            )
            for number in np.unique(cut.fold)
        )
        untried = cls(cut, heads, cut.labels)
        return untried._replace(clean=untried.answer(clean))

    def answer(self, vectors: Matrix) -> NDArray[np.int64]:
        """The label of every clip by the head that was trained without its fold."""
        answers = np.zeros(len(self.cut.labels), np.int64)
        for head, number in zip(self.heads, np.unique(self.cut.fold), strict=True):
            held = self.cut.fold == number
            answers[held] = head.predict(vectors[held])
        return answers


def shuffled_accuracy(answers: NDArray[np.int64], cut: Folds) -> float:
    """What the answers reach on average when labels are shuffled within each fold: counted, not drawn."""
    expected = 0.0
    for number in np.unique(cut.fold):
        held = cut.fold == number
        size = int(max(answers.max(), cut.labels.max())) + 1
        given, true = np.bincount(answers[held], minlength=size), np.bincount(cut.labels[held], minlength=size)
        expected += float(given @ true) / held.sum()
    return expected / len(answers)
