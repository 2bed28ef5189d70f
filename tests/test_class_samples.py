"""Some clips of some classes: which are drawn, by rules that a slow reader can follow, and evenly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import earmark
from earmark.errors import UsageError
from earmark.vectors.class_samples import ClassSample, draw_sample, parse_sample, told

LABELS = st.lists(st.sampled_from([*"abcdef", "", None]), min_size=1, max_size=60)


@settings(max_examples=80, deadline=None)
@given(labels=LABELS, classes=st.integers(2, 7), clips=st.integers(2, 6), random=st.booleans(), seed=st.integers(0, 99))
def test_every_rule_of_the_draw(labels: list[str | None], classes: int, clips: int, random: bool, seed: int) -> None:
    ids = [f"clip {row}" for row in range(len(labels))]
    sample = ClassSample(classes, clips, random)
    draw = draw_sample(labels, ids, sample, seed)
    sizes = Counter(label for label in labels if label)
    taken = Counter(labels[row] for row in draw.rows)
    enough = [label for label in sizes if sizes[label] >= clips]
    assert set(taken.values()) <= {clips}
    assert set(taken) <= set(enough)
    assert len(taken) == min(classes, len(enough)) == draw.classes
    assert list(draw.rows) == sorted(set(draw.rows))
    assert (draw.fitting, draw.of_classes, draw.of_clips) == (len(enough), len(sizes), sum(sizes.values()))
    if not random:  # more frequent first, then by name
        assert all((-sizes[a], a) < (-sizes[b], b) for a in taken for b in enough if b not in taken)  # type: ignore[index,operator]
    # The order of the clips plays no part; a larger draw of a class keeps those of a smaller one.
    order = np.random.default_rng(seed).permutation(len(labels))
    again = draw_sample([labels[row] for row in order], [ids[row] for row in order], sample, seed)
    assert {ids[row] for row in draw.rows} == {ids[order[row]] for row in again.rows}
    more = draw_sample(labels, ids, ClassSample(None, clips + 1), seed)
    in_both = {labels[row] for row in more.rows} & set(taken)
    assert {row for row in draw.rows if labels[row] in in_both} <= set(more.rows)


def test_all_stands_for_every_one() -> None:
    labels = [*"aaaa", *"bb", *"ccc", None, "d"]
    assert draw_sample(labels, None, parse_sample("2xall")).rows == (0, 1, 2, 3, 6, 7, 8)
    drawn = draw_sample(labels, None, parse_sample("ALL×3"))
    assert Counter(labels[row] for row in drawn.rows) == {"a": 3, "c": 3}
    assert draw_sample(labels, None, parse_sample("3x2:frequent")).sample == ClassSample(3, 2)


def test_a_draw_is_even() -> None:
    """Each clip of a class equally often, and each class: chi-squared over 600 seeds, far below its 0.1 % bound."""
    labels = [kind for kind in "abcdefgh" for _ in range(8)]
    clips, kinds = np.zeros(64), Counter[str]()
    for seed in range(600):
        rows = draw_sample(labels, None, ClassSample(3, 2, random=True), seed).rows
        clips[list(rows)] += 1
        kinds.update({labels[row] for row in rows})
    by_class = np.array([kinds[kind] for kind in "abcdefgh"])
    assert ((by_class - 225) ** 2 / 225).sum() < 24.3
    assert ((clips - 56.25) ** 2 / 56.25).sum() < 103.4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("50by5", "write 50x5"), ("", "write 50x5"), ("5x", "write 50x5"), ("-5x5", "write 50x5"),
        ("50x5:rare", "write 50x5"), ("50x1", "at least 2"), ("50x0", "at least 2"), ("1x5", "1 class"),
        ("allxall", "leave the sample out"), ("allx5:random", "leave :random out"),
    ],
)  # fmt: skip
def test_what_is_no_sample(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_sample(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2x2", "4 of 10 clips, 2 of each of the 2 most frequent classes (sample 2x2, seed 3)"),
        ("2x2:random", "4 of 10 clips, 2 of each of 2 classes drawn at random (sample 2x2:random, seed 3)"),
        ("5x3", "6 of 10 clips, 3 of each of the 2 classes that have as many (sample 5x3, seed 3)"),
        ("allx4", "4 of 10 clips, 4 of each of the 1 class that has as many (sample allx4, seed 3)"),
        ("2xall", "7 of 10 clips, all of the 2 most frequent classes (sample 2xall)"),
        ("5x9", "no class has 9 clips, the largest has 4 (sample 5x9)"),
    ],
)
def test_what_a_draw_says_of_itself(text: str, said: str) -> None:
    draw = draw_sample([*"aaaa", *"bb", *"ccc", "d", None], None, parse_sample(text), 3)
    assert draw.text == said
    if draw.rows:
        assert told({"A": draw, "B": draw}) == [f"A and B each: {said}"]
    else:
        with pytest.raises(UsageError, match=r"No class of A, B has the 9 clips .*the largest has 4"):
            told({"A": draw, "B": draw})


@pytest.mark.parametrize(
    ("labels", "text", "said"),
    [
        ("eeddccbbaa", "3x2", "the first 3 in the alphabet of 5 classes of one size"),
        ("eeddccbba", "3x2", "the first 3 in the alphabet of the 4 most frequent classes, all of one size"),
        ("dddccbbaa", "3x2", "the 3 most frequent classes, 2 of them the first in the alphabet of 3 of one size"),
        ("ddccbba", "3x2", "the 3 most frequent classes"),
        ("eeddccbbaa", "3x2:random", "3 classes drawn at random"),
    ],
)  # fmt: skip
def test_where_classes_of_one_size_are_left_out_the_alphabet_is_named(labels: str, text: str, said: str) -> None:
    draw = draw_sample([*labels], None, parse_sample(text))
    assert f", 2 of each of {said} (sample {text}," in draw.text


def test_one_class_is_all_there_is() -> None:
    assert (
        draw_sample(["a"] * 5, None, parse_sample("5x3")).text
        == "3 of 5 clips, 3 of the only class (sample 5x3, seed 0)"
    )


def test_an_evaluation_of_a_sample_is_that_of_its_rows() -> None:
    generator = np.random.default_rng(0)
    labels = np.array([*"aaaaaabbbbccccd", ""])
    vectors, ids = generator.standard_normal((16, 4)), [f"id{row}" for row in range(16)]
    groups = [str(row % 5) for row in range(15)] + [None]
    rows = list(draw_sample(labels.tolist(), ids, parse_sample("2x3"), 1).rows)
    found = earmark.evaluate(
        vectors, labels, groups=groups, ids=ids, sample="2X3", seed=1, subset="ES1", per_point=True, permutations=20
    )
    wanted = earmark.evaluate(
        vectors[rows], labels[rows], groups=[groups[row] for row in rows], seed=1, permutations=20
    )
    for row, other in zip(found, wanted, strict=True):
        assert (row.value, row.low, row.high, row.baseline, row.n) == (
            other.value, other.low, other.high, other.baseline, other.n,
        )  # fmt: skip
        assert (row.subset, row.ablation, row.single) == ("ES1~2x3:seed1", "sample2x3:seed1", True)
        if row.status == "ok":
            assert "6 of 15 clips, 3 of each of the 2 most frequent classes, 1 of them the first " in row.reason
        assert row.inputs != other.inputs
    points = found.per_point["cosine", "none", "all", "P@1"]
    assert np.flatnonzero(np.isfinite(points)).tolist() == rows
    for wrong, said in (("2x9", "No class of the rows has the 9 clips"), (7, "must be a text")):
        with pytest.raises(UsageError, match=said):
            earmark.evaluate(vectors, labels, sample=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fewer than min_class_size 5"):
        earmark.evaluate(vectors, labels, sample="2x3", min_class_size=5)
