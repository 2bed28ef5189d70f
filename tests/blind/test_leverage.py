"""How much may hang on one clip: vectors that ask about a single clip are found, and models of sounds are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.blind_attack import draw_labels
from numpy.typing import NDArray
from tests.blind.ledgers import policy_of

from earmark import evaluate
from earmark.blind.leverage import MOST_CLIPS, clips_worth, without_outweighed
from earmark.blind.release import OUTWEIGHED, release
from earmark.scores import Scores

CLIPS = 500
random = np.random.default_rng(4)
LABELS = draw_labels(CLIPS, 30, random)
SIZES = np.bincount(LABELS)
FAR = 7


def _far(scale: float, others: int = 0) -> NDArray[Any]:
    vectors = np.random.default_rng(1).standard_normal((CLIPS, 16))
    vectors[FAR : FAR + 1 + others] *= scale
    return vectors


def _opposite() -> NDArray[Any]:
    vectors = np.ones((CLIPS, 16)) + 1e-4 * np.random.default_rng(2).standard_normal((CLIPS, 16))
    vectors[FAR] = -1.0
    return vectors


def _scores(vectors: NDArray[Any], labels: NDArray[Any], distance: str, correction: str = "none") -> Scores:
    names = [str(label) for label in labels]
    return evaluate(vectors, names, distance=distance, correct=correction, metrics=("P@k", "GSR"), subset="HU4")


@pytest.mark.parametrize(
    ("vectors", "distance", "correction"),
    [
        (_far(1e5), "euclidean", "none"),
        (_far(1e5), "euclidean", "nicdm"),
        (_far(1e4, others=20), "euclidean", "none"),
        (_opposite(), "cosine", "none"),
    ],
)
def test_a_clip_that_outweighs_its_class_is_found_and_gsr_withheld(
    vectors: NDArray[Any], distance: str, correction: str
) -> None:
    assert clips_worth(vectors, SIZES.max(), distance=distance, correction=correction) > MOST_CLIPS
    scores = _scores(vectors, LABELS, distance, correction)
    told = without_outweighed(scores, vectors, SIZES, distance=distance, correction=correction, seed=0)
    assert {row.metric: (row.status, row.reason) for row in told}["GSR"] == ("not_applicable", OUTWEIGHED)
    assert told.select(metric=["P@1", "P@5"]) == scores.select(metric=["P@1", "P@5"])


def test_such_a_clip_would_tell_the_size_of_its_class() -> None:
    """The attack itself: GSR falls with the number of clips that share the far one's label."""
    values = {}
    for code in (SIZES.argmax(), SIZES.argmin()):
        labels = LABELS.copy()
        labels[FAR] = code
        values[SIZES[code]] = _scores(_far(1e5), labels, "euclidean").value("GSR")
    gap = (values[SIZES.min()] - values[SIZES.max()]) * CLIPS
    assert gap > 0.3 * (SIZES.max() - SIZES.min())


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "spearman"])
def test_models_of_sounds_keep_their_gsr(distance: str) -> None:
    """Clusters, tails as heavy as Student's with 3 degrees of freedom, and a clip six times as loud as the others."""
    noise = np.random.default_rng(3)
    vectors = noise.standard_normal((30, 16))[LABELS] + noise.standard_t(3, (CLIPS, 16))
    vectors[FAR] *= 6
    assert clips_worth(vectors, SIZES.max(), distance=distance) < MOST_CLIPS / 2
    scores = _scores(vectors, LABELS, distance)
    assert without_outweighed(scores, vectors, SIZES, distance=distance, correction="none", seed=0) == scores


def test_a_withheld_figure_is_told_in_fixed_words() -> None:
    scores = without_outweighed(
        _scores(_opposite(), LABELS, "cosine"), _opposite(), SIZES, distance="cosine", correction="none", seed=0
    )
    policy = policy_of(sets={"HU4": policy_of().sets["HU4"]})
    told = {row.metric: row for row in release(policy, scores, {}, board="vocsim", entry="bat").rows}
    assert (told["GSR"].value, told["GSR"].reason) == (None, OUTWEIGHED)


def test_where_gsr_means_nothing_there_is_nothing_to_weigh() -> None:
    vectors = _far(1e5)
    assert clips_worth(vectors, SIZES.max(), distance="euclidean", correction="csls") == 0.0
    scores = _scores(vectors, LABELS, "euclidean", "csls")
    assert without_outweighed(scores, vectors, SIZES, distance="euclidean", correction="csls", seed=0) == scores
