from __future__ import annotations

import numpy as np
import pytest

from earmark.embedding.pooling import (
    POOLINGS,
    Block,
    Variant,
    atoms,
    join,
    parse,
    pool,
    rows_of,
    stack,
    system_code,
    widened,
)
from earmark.errors import InputError, UsageError
from earmark.extractors.contract import ExtractorCard, Frames

VALUES = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 1.0], [6.0, 8.0, 0.0], [9.0, 9.0, 9.0]], np.float32)
FRAMES = Frames(VALUES, 3)  # the last frame is padding

EXPECTED = {
    "mean_time": [18 / 4, 21 / 4, 10 / 4],
    "masked_mean_time": [3.0, 4.0, 1 / 3],
    "max_time": [6.0, 8.0, 1.0],
    "first_time": [3.0, 4.0, 0.0],
    "last_time": [6.0, 8.0, 0.0],
    "attention_time": [(5 * 3 + 10 * 6) / 16, (5 * 4 + 10 * 8) / 16, 1 / 16],
    "mean_feature": [7 / 3, 1 / 3, 14 / 3, 9.0],
    "first_feature": [3.0, 0.0, 6.0, 9.0],
    "flatten": [3, 0, 6, 9, 4, 0, 8, 9, 0, 1, 0, 9],
}


@pytest.mark.parametrize("name", POOLINGS)
def test_by_hand(name: str) -> None:
    (vector,) = pool(FRAMES, [name])
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, EXPECTED[name], rtol=1e-6)


def test_vectors_do_not_hold_on_to_the_frames() -> None:
    assert all(vector.base is None and vector is not VALUES for vector in pool(FRAMES, list(POOLINGS)))


def test_attention_without_any_norm_is_the_mean() -> None:
    np.testing.assert_array_equal(pool(Frames(np.zeros((2, 3)), 2), ["attention_time"])[0], np.zeros(3))


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (Frames(np.zeros((0, 3)), 0), "shape"),
        (Frames(np.zeros(3), 1), "shape"),
        (Frames(np.zeros((2, 3)), 0), "0 of 2 frames"),
        (Frames(np.zeros((2, 3)), 3), "3 of 2 frames"),
        (Frames(np.array([[1.0, np.nan]]), 1), "NaN"),
    ],
)
def test_impossible_frames_are_refused(frames: Frames, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pool(frames, ["mean_time"])


def test_padding_is_in_time_in_each_part() -> None:
    clips = [Frames(np.arange(1.0, 7).reshape(3, 2), 3), Frames(np.array([[7.0, 9.0]]), 1)]
    names = ["mean_feature", "mean_time", "flatten"]
    matrices = {}
    for place, name in enumerate(names):
        matrices[name] = stack([pool(clip, names)[place] for clip in clips], rows_of(name, 2))
    np.testing.assert_array_equal(matrices["flatten"], [[1, 3, 5, 2, 4, 6], [7, 0, 0, 9, 0, 0]])
    np.testing.assert_array_equal(join("mean_feature+mean_time", matrices), [[1.5, 3.5, 5.5, 3, 4], [8, 0, 0, 7, 9]])


def padded_in_time(clips: list[Frames], longest: int) -> np.ndarray:
    """What `flatten` is, written another way: frames under zeros up to the longest, features first, in one line."""
    rows = []
    for clip in clips:
        image = np.zeros((longest, clip.values.shape[1]), np.float32)
        image[: len(clip.values)] = clip.values
        rows.append(np.transpose(image).reshape(-1))
    return np.array(rows)


@pytest.mark.parametrize("features", [1, 2, 13])
def test_flattened_clips_of_many_lengths_keep_the_columns_of_each_feature(features: int) -> None:
    random = np.random.default_rng(features)
    lengths = [4, 1, 17, 3, 17, 9]
    clips = [Frames(random.standard_normal((length, features)).astype(np.float32), length) for length in lengths]
    found = stack([pool(clip, ["flatten"])[0] for clip in clips], rows_of("flatten", features))
    np.testing.assert_array_equal(found, padded_in_time(clips, 17))


def test_equal_lengths_are_laid_out_as_ever() -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((5, 7, 3)).astype(np.float32)
    found = stack([pool(Frames(one, 7), ["flatten"])[0] for one in values], 3)
    assert found.tobytes() == np.array([one.T.ravel() for one in values]).tobytes()


def test_two_sets_of_unlike_lengths_are_brought_to_one_width() -> None:
    random = np.random.default_rng(1)
    clips = [Frames(random.standard_normal((length, 3)).astype(np.float32), length) for length in (2, 5, 4)]
    names = ["flatten", "mean_time", "mean_feature"]

    def matrix(chosen: list[Frames]) -> np.ndarray:
        pooled = [pool(clip, names) for clip in chosen]
        parts = {name: stack([one[at] for one in pooled], rows_of(name, 3)) for at, name in enumerate(names)}
        return join("flatten+mean_time+mean_feature", parts)

    def blocks(longest: int) -> list[Block]:
        return [Block(3, longest), Block(1, 3), Block(1, longest)]

    together, short = matrix(clips), matrix([clips[0], clips[2]])
    np.testing.assert_array_equal(widened(short, blocks(4), blocks(5)), together[[0, 2]])
    assert widened(short, blocks(4), blocks(4)) is short


def test_a_vector_that_is_not_made_of_so_many_features_is_refused() -> None:
    with pytest.raises(InputError, match="not made of 3 features"):
        stack([np.ones(6, np.float32), np.ones(4, np.float32)], 3)


def test_stack_empties_its_list_and_takes_none() -> None:
    vectors = [np.ones(2, np.float32)]
    assert stack(vectors).shape == (1, 2)
    assert vectors == []
    assert stack([]).shape == (0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean_time", Variant("mean_time")),
        ("MTF", Variant("mean_time+mean_feature")),
        ("TF D30", Variant("first_time+first_feature", 30)),
        ("T", Variant("first_time")),
        ("F", Variant("first_feature")),
        ("MT", Variant("mean_time")),
        ("MF D100", Variant("mean_feature", 100)),
        ("concat_mean_time_feat", Variant("mean_time+mean_feature")),
        ("max_time+MF", Variant("max_time+mean_feature")),
        ("MTF+last_time", Variant("mean_time+mean_feature+last_time")),
        (" flatten D100 ", Variant("flatten", 100)),
    ],
)
def test_names_and_codes(text: str, expected: Variant) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["mean_tim", "", "mean_time+", "MTF D0", "MTF D", "MTF 100"])
def test_what_is_not_a_pooling(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(UsageError, match='Did you mean "mean_time"'):
        atoms("mean_tmie")


@pytest.mark.parametrize(
    ("code", "short", "variant"),
    [
        ("EWMTF D100", "EW", Variant("mean_time+mean_feature", 100)),
        ("EWT", "EW", Variant("first_time")),
        ("ETF D30", "E", Variant("first_time+first_feature", 30)),
        ("EAT", "EAT", Variant("flatten")),
        ("M", "M", Variant("flatten")),
        ("MAE D30", "MAE", Variant("flatten", 30)),
        ("MAE D30W", "MAE", parse("flatten D30W")),
    ],
)
def test_table_codes(code: str, short: str, variant: Variant) -> None:
    assert system_code(ExtractorCard("x", short_name=short, frame_rate=50.0), *variant) == code


def test_codes_of_models_without_one_are_written_out() -> None:
    assert system_code(ExtractorCard("mine", frame_rate=50.0), "MTF", 30) == "mine mean_time+mean_feature D30"
    assert system_code(ExtractorCard("mine"), "mean_time") == "mine"
    assert system_code(ExtractorCard("clap", short_name="CLP"), "mean_time", 100) == "CLP D100"
