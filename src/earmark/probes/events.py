"""Audio events: whether a coded sound is still found among its own kind, or still named by a classifier.

events                  any encoder (BirdNET by default): a coded clip looks for its kind among the clean ones
events:ast:CHECKPOINT   AST scores the labels it was trained on; `aec_map` over those that the clips have

Retrieval, protocol `clean_enrol`: `accuracy` is the share of coded clips whose nearest clean clip, their own left out,
is of their kind (P@1, a nearest-neighbour classifier); `aec_map` the mean over clips of the average precision of the
whole ranking. Both have a baseline from shuffled labels. Classifier, protocol `all`: `aec_map` is the mean over
classes of the average precision of the clips ranked by the class's score. A clip may have several labels, separated by
";". `aec_map:difference` is coded minus clean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval
from earmark.corpora.clips import Clip
from earmark.errors import InputError, require
from earmark.extractors.contract import Extractor
from earmark.extractors.pretrained import load_model
from earmark.extractors.spectrogram_transformer import AST
from earmark.extractors.torch_models import Batch
from earmark.probes._contract import Responses, Task
from earmark.probes._encoding import EncoderTask
from earmark.probes._scoring import (
    CleanShare,
    draw_clips,
    join_notes,
    mean_interval,
    measured,
    not_applicable,
    pair_clips,
)
from earmark.probes.retrieval import RetrievalTask, answers, chance, label_codes
from earmark.probes.tasks import CARDS
from earmark.progress import Progress
from earmark.scores import Row
from earmark.specs import parse_spec
from earmark.wording import counted


def open_events(model: str | Extractor = "", **parameters: Any) -> Task:
    """Retrieval with an encoder, or the classifier of an AST checkpoint."""
    is_classifier = isinstance(model, str) and parse_spec(model).name == "ast"
    return (EventLabels if is_classifier else EventRetrieval)(model, **parameters)


class EventRetrieval(RetrievalTask):
    """`events`, `events:speech_embedding`, `events:` and any extractor."""

    card = CARDS["events"]

    def __init__(self, model: str | Extractor = "", **options: Any) -> None:
        super().__init__(model, **options)
        self._clean: CleanShare[NDArray[np.float64]] = CleanShare()  # the average precision of the clean clips

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        """Scores `accuracy`, `aec_map` and `aec_map:difference`, protocol `clean_enrol`."""
        pairs = pair_clips(clips, clean, coded)
        before, after = self.vectors(pairs, clean, coded)
        codes = label_codes(pairs.clips)
        values = answers(after, before, codes, ("hit", "ap")) if len(codes) else {}
        if not any(np.isfinite(answer).any() for answer in values.values()):
            why = join_notes("no two clips share a label", pairs.left_out)
            return [not_applicable(name, "clean_enrol", why) for name in self.card.metrics]
        draws = draw_clips(pairs.clips, self.bootstrap, seed)
        means = {name: float(np.nanmean(answer)) for name, answer in values.items()}
        luck = chance(after, before, codes, means, self.permutations, seed) if self.permutations else {}
        lost = values["ap"] - self._clean.of(clean, pairs, seed, lambda: answers(before, before, codes, ("ap",))["ap"])
        measures = (
            ("accuracy", "hit", values["hit"]),
            ("aec_map", "ap", values["ap"]),
            ("aec_map:difference", "", lost),
        )
        rows = []
        for metric, name, answer in measures:
            kept = np.isfinite(answer)
            value = means[name] if name else float(answer[kept].mean())
            between = mean_interval(answer[kept], draws[:, kept])
            rows.append(
                measured(metric, "clean_enrol", value, between, luck.get(name), n=int(kept.sum()),
                         reason=pairs.left_out, distance="cosine")
            )  # fmt: skip
        return rows


class AstLabels(AST):
    """AST as the classifier it was trained to be. Frames [1, labels]: the sigmoid of its answers for `names`."""

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        labels = self._checkpoint.json("config.json").get("id2label") or {}
        if not labels:
            name = self._checkpoint.name
            raise InputError(f"{name} names no labels (id2label in config.json): give a fine-tuned classifier.")
        self.names = tuple(str(labels[key]) for key in sorted(labels, key=int))

    def load(self) -> Any:
        library = require("transformers", "These models", "models")
        return load_model(library.ASTForAudioClassification, self._checkpoint)

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        scores = network(self.spectrogram(batch)).logits.float().sigmoid()[:, None, :]
        return dict.fromkeys(layers, scores)


class EventLabels(EncoderTask):
    """`events:ast:MIT/ast-finetuned-audioset-10-10-0.4593`: the scores of its own classes."""

    card = CARDS["events"]
    extractor: AstLabels

    def __init__(self, model: str | Extractor = "ast", **options: Any) -> None:
        super().__init__(model, **options, pool="mean_time")

    def open_model(self, model: str | Extractor, options: Mapping[str, Any]) -> Extractor:
        spec = parse_spec(str(model))
        return AstLabels(spec.argument or "", **{**spec.options, **options})

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        return replace(super().listen(clips, progress=progress), names=self.extractor.names, blocks=())

    def score(self, clips: Sequence[Clip], clean: Responses, coded: Responses, *, seed: int = 0) -> list[Row]:
        """Scores `aec_map` and `aec_map:difference`, protocol `all`."""
        pairs = pair_clips(clips, clean, coded)
        before, after = self.vectors(pairs, clean, coded)
        try:
            classes, truth = _truth(pairs.clips, clean.names)
        except InputError as error:
            why = join_notes(str(error), pairs.left_out)
            return [not_applicable(name, "all", why) for name in ("aec_map", "aec_map:difference")]
        draws = draw_clips(pairs.clips, self.bootstrap, seed).astype(np.float64)
        weights = np.vstack([np.ones(len(pairs.clips)), draws])
        with_codec, without = (_class_mean(side[:, classes], truth, weights) for side in (after, before))
        reason = join_notes(f"{len(classes)} classes", pairs.left_out)
        return [
            measured(metric, "all", float(means[0]), interval(means[1:]), n=len(pairs.clips), reason=reason)
            for metric, means in (("aec_map", with_codec), ("aec_map:difference", with_codec - without))
        ]


def average_precision(
    scores: NDArray[Any], truth: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Average precision under each row of `weights` [B, N]: the sum over thresholds of (recall gained) x precision.

    Clips of one score are one threshold, so their order does not matter. NaN where no clip is of the class.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(scores[order]) != 0, True])
    drawn = weights[:, order]
    ranked, right = (np.cumsum(counts, axis=1)[:, ends] for counts in (drawn, drawn * truth[order]))
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(ranked > 0, right / ranked, 0.0)
        recall = right / right[:, -1:]
    return np.asarray((np.diff(recall, axis=1, prepend=0.0) * precision).sum(axis=1))


def _class_mean(
    scores: NDArray[np.float64], truth: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """mAP under each row of weights: classes that a draw has no clip of are left out of its mean."""
    each = np.stack([average_precision(*columns, weights) for columns in zip(scores.T, truth.T, strict=True)])
    counts = np.isfinite(each).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, np.nansum(each, axis=0) / np.maximum(counts, 1), np.nan)


def _truth(clips: Sequence[Clip], names: Sequence[str]) -> tuple[list[int], NDArray[np.bool_]]:
    """Which classes of the model the clips have, and who has them [clips, classes]."""
    known: Mapping[str, int] = {_plain(name): column for column, name in enumerate(names)}
    has = [{known[_plain(part)] for part in (clip.label or "").split(";") if _plain(part) in known} for clip in clips]
    classes = sorted(set().union(*has)) if has else []
    if not classes:
        labels = ", ".join(sorted({clip.label for clip in clips if clip.label})[:3]) or "none"
        raise InputError(f"no label ({labels}) is a class of the model, such as {', '.join(names[:3])}")
    truth = np.array([[column in own for column in classes] for own in has], np.bool_)
    if truth.all(axis=0).all():
        raise InputError(f"every clip has every class ({counted(len(classes), 'class')}): nothing is to be ranked")
    return classes, truth


def _plain(name: str) -> str:
    """Class names as people write them: case, underscores and spaces around do not count."""
    return " ".join(name.replace("_", " ").lower().split())
