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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval
from earmark.corpora.clips import Clip
from earmark.errors import InputError
from earmark.extractors.contract import Extractor
from earmark.probes.catalogue import CARDS
from earmark.probes.contract import RESAMPLES, Finding, Heard, Task, paired
from earmark.probes.encoding import encode_clips, heard_by, open_encoder, vectors_of
from earmark.probes.resampling import draws_of, mean_interval
from earmark.probes.retrieval import answers, chance
from earmark.progress import Progress
from earmark.specs import parse_spec
from earmark.wording import counted

__all__ = ["PERMUTATIONS", "EventLabels", "EventRetrieval", "average_precision", "label_codes", "open_events"]

PERMUTATIONS = 200


def open_events(model: str | Extractor = "", **parameters: Any) -> Task:
    """Retrieval with an encoder, or the classifier of an AST checkpoint."""
    if isinstance(model, str) and parse_spec(model).name == "ast":
        return EventLabels(model, **parameters)
    return EventRetrieval(model, **parameters)


class EventRetrieval:
    """`events`, `events:speech_embedding`, `events:` and any extractor."""

    card = CARDS["events"]

    def __init__(
        self, model: str | Extractor = "", *, bootstrap: int = RESAMPLES, permutations: int = PERMUTATIONS,
        pool: str = "", **options: Any,
    ) -> None:  # fmt: skip
        self.bootstrap, self.permutations, self.pool = bootstrap, permutations, pool
        self.extractor = open_encoder(model or self.card.model, **options)
        self.card = heard_by(self.card, self.extractor)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        return encode_clips(clips, self.extractor, self.pool, progress=progress)

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        """Findings `accuracy`, `aec_map` and `aec_map:difference`, protocol `clean_enrol`."""
        pairs = paired(clips, clean, coded)
        before, after = vectors_of(pairs, clean, coded, self.card.name)
        codes = label_codes(pairs.clips)
        after_values = answers(after, before, codes, ("hit", "ap")) if len(codes) else {}
        if not any(np.isfinite(values).any() for values in after_values.values()):
            why = "; ".join(part for part in ("no two clips share a label", pairs.left_out) if part)
            return [Finding.not_applicable(name, _INDEX, why) for name in ("accuracy", "aec_map", "aec_map:difference")]
        before_values = answers(before, before, codes, ("ap",))
        draws = draws_of(pairs.clips, self.bootstrap, seed)
        means = {name: float(np.nanmean(values)) for name, values in after_values.items()}
        luck = chance(after, before, codes, means, self.permutations, seed) if self.permutations else {}
        found = []
        for metric, name in (("accuracy", "hit"), ("aec_map", "ap")):
            values, kept = _answered(after_values[name])
            one = Finding.measured(metric, _INDEX, means[name], mean_interval(values, draws[:, kept]), n=len(values),
                          reason=pairs.left_out, distance="cosine")  # fmt: skip
            found.append(one.against(luck.get(name)))
        lost, kept = _answered(after_values["ap"] - before_values["ap"])
        found.append(
            Finding.measured(
                "aec_map:difference", _INDEX, float(lost.mean()), mean_interval(lost, draws[:, kept]), n=len(lost),
                reason=pairs.left_out, distance="cosine",
            )
        )  # fmt: skip
        return found


_INDEX = "clean_enrol"


class EventLabels:
    """`events:ast:MIT/ast-finetuned-audioset-10-10-0.4593`: the scores of its own classes."""

    card = CARDS["events"]

    def __init__(self, model: str = "ast", *, bootstrap: int = RESAMPLES, **options: Any) -> None:
        from earmark.probes.ast_labels import AstLabels

        spec = parse_spec(model)
        self.bootstrap = bootstrap
        self.classifier = AstLabels(spec.argument or "", **{**spec.options, **options})
        self.card = heard_by(self.card, self.classifier)

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Heard:
        heard = encode_clips(clips, self.classifier, "mean_time", progress=progress)
        return Heard(heard.ids, vectors=heard.vectors, failures=heard.failures, names=self.classifier.names,
                     notes=heard.notes, model=heard.model)  # fmt: skip

    def score(self, clips: Sequence[Clip], clean: Heard, coded: Heard, *, seed: int = 0) -> list[Finding]:
        """Findings `aec_map` and `aec_map:difference`, protocol `all`."""
        pairs = paired(clips, clean, coded)
        before, after = vectors_of(pairs, clean, coded, self.card.name)
        try:
            classes, truth = _truth(pairs.clips, clean.names)
        except InputError as error:
            why = "; ".join(part for part in (str(error), pairs.left_out) if part)
            return [Finding.not_applicable(name, "all", why) for name in ("aec_map", "aec_map:difference")]
        draws = draws_of(pairs.clips, self.bootstrap, seed).astype(np.float64)
        weights = np.vstack([np.ones(len(pairs.clips)), draws])
        with_codec = _class_mean(after[:, classes], truth, weights)
        without = _class_mean(before[:, classes], truth, weights)
        reason = "; ".join(part for part in (f"{len(classes)} classes", pairs.left_out) if part)
        n, lost = len(pairs.clips), with_codec - without
        return [
            Finding.measured("aec_map", "all", float(with_codec[0]), interval(with_codec[1:]), n=n, reason=reason),
            Finding.measured("aec_map:difference", "all", float(lost[0]), interval(lost[1:]), n=n, reason=reason),
        ]


def label_codes(clips: Sequence[Clip]) -> NDArray[np.int64]:
    """A number for each label; -1 for a clip without one."""
    names = sorted({clip.label for clip in clips if clip.label})
    codes = {name: code for code, name in enumerate(names)}
    return np.array([codes[clip.label] if clip.label else -1 for clip in clips], np.int64)


def average_precision(
    scores: NDArray[Any], truth: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Average precision under each row of `weights` [B, N]: the sum over thresholds of (recall gained) x precision.

    Clips of one score are one threshold, so their order does not matter. NaN where no clip is of the class.
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(scores[order]) != 0, True])
    drawn = weights[:, order]
    found, right = np.cumsum(drawn, axis=1)[:, ends], np.cumsum(drawn * truth[order], axis=1)[:, ends]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(found > 0, right / found, 0.0)
        recall = right / right[:, -1:]
    return np.asarray((np.diff(recall, axis=1, prepend=0.0) * precision).sum(axis=1))


def _class_mean(
    scores: NDArray[np.float64], truth: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """mAP under each row of weights: classes that a draw has no clip of are left out of its mean."""
    each = np.stack([average_precision(scores[:, one], truth[:, one], weights) for one in range(scores.shape[1])])
    counts = np.isfinite(each).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, np.nansum(each, axis=0) / np.maximum(counts, 1), np.nan)


def _truth(clips: Sequence[Clip], names: Sequence[str]) -> tuple[list[int], NDArray[np.bool_]]:
    """Which classes of the model the clips have, and who has them [clips, classes]."""
    known: Mapping[str, int] = {_plain(name): place for place, name in enumerate(names)}
    has = [{known[_plain(part)] for part in (clip.label or "").split(";") if _plain(part) in known} for clip in clips]
    classes = sorted(set().union(*has)) if has else []
    if not classes:
        said = ", ".join(sorted({clip.label for clip in clips if clip.label})[:3]) or "none"
        raise InputError(f"no label ({said}) is a class of the model, such as {', '.join(names[:3])}")
    truth = np.array([[one in own for one in classes] for own in has], np.bool_)
    if truth.all(axis=0).all():
        raise InputError(f"every clip has every class ({counted(len(classes), 'class')}): nothing is to be ranked")
    return classes, truth


def _plain(name: str) -> str:
    """Class names as people write them: case, underscores and spaces around do not count."""
    return " ".join(name.replace("_", " ").lower().split())


def _answered(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    kept = np.isfinite(values)
    return values[kept], kept
