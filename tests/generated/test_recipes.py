"""Recipes: the table, what is done to sounds, what becomes a point, and distances with clips as units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

import earmark
from earmark.errors import InputError, UsageError
from earmark.extractors.contract import ExtractorCard, Frames
from earmark.extractors.model_cards import CARDS
from earmark.generated import listening
from earmark.generated._distributions import frechet_distance, kad
from earmark.generated.by_recipe import INDIVIDUAL, audio_distance
from earmark.generated.listening import Points, Windowed, level_of, pooled
from earmark.generated.recipes import Recipe, find_recipe, recipes
from earmark.specs import parse_spec

RNG = np.random.default_rng(0)


def recipe(**changes: Any) -> Recipe:
    return Recipe(**{"name": "mine", "dimension": 4, "point": "frame", **changes})


# --- the table ----------------------------------------------------------------------------------------------------


def test_every_entry_is_a_recipe_of_a_model_that_is_known() -> None:
    for name, entry in recipes().items():
        assert name == entry.name == name.lower()
        assert all([entry.follows, entry.notes, entry.paper])
        if not entry.model:
            assert entry.notes[0].startswith("Vectors alone")
            continue
        spec, card = parse_spec(entry.model), CARDS[entry.extractor]
        layered = {"layer", "rate"}
        assert set(spec.options) <= layered
        assert card.dimension in (entry.dimension, None) or spec.argument or "layer" in spec.options
        assert bool(entry.window) == bool(entry.hop)
        assert entry.weights or entry.follows == "Earmark"
    assert sum(entry.follows == "Earmark" for entry in recipes().values()) >= 2


def test_a_recipe_of_ones_own_is_a_file_and_mistakes_in_it_are_named(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("model: mfcc\ndimension: 80\npoint: clip\nmetrics: [fad, kad]\nnotes: mine\n")
    found = find_recipe(str(path))
    assert (found.name, found.metrics, found.notes) == ("own", ("frechet_distance", "kad"), ("mine",))
    for text, said in (
        ("model: mfcc\npoint: clip\n", "needs dimension and point"),
        ("dimension: 8\npoint: word\n", "point is 'word'; choose from frame, second, clip"),
        ("dimension: 8\npoint: clip\nlayer: 3\n", "a recipe has no 'layer'"),
        ("dimension: 8\npoint: clip\nwindow: 2\n", "a window needs a hop"),
        ("dimension: 8\npoint: clip\nmetrics: [density]\n", "'density' is none of frechet_distance"),
        ("- 3\n", "holds no recipe"),
        ("a: [", "cannot be read as a recipe"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said.replace("[", r"\[")):
            find_recipe(str(path))
    with pytest.raises(UsageError, match='Did you mean "fadtk-vggish"'):
        find_recipe("fadtk-vgish")


# --- sounds to points ---------------------------------------------------------------------------------------------


class Heard:
    """A model that answers with what it is given: the first sample and the length of a clip."""

    def __init__(self) -> None:
        self.card = ExtractorCard("heard", rate=100)

    def extract(self, waveforms: list[NDArray[np.float32]]) -> list[Frames]:
        return [Frames(np.array([[wave[0], len(wave), wave[-1]]]), 1) for wave in waveforms]


def test_windows_are_dropped_or_filled_at_the_end() -> None:
    clips = [np.arange(1, 251, dtype=np.float32), np.arange(1, 41, dtype=np.float32)]
    dropped = Windowed(Heard(), recipe(window=1.0, hop=0.5))
    long, short = (frames.values.tolist() for frames in dropped.extract(clips))
    assert long == [[1, 100, 100], [51, 100, 150], [101, 100, 200], [151, 100, 250]]
    assert short == [[1, 100, 0]]  # shorter than a window: zeros behind it
    filled = Windowed(Heard(), recipe(window=1.0, hop=1.0, rest="filled"))
    long, short = (frames.values.tolist() for frames in filled.extract(clips))
    assert long == [[1, 100, 100], [101, 100, 200], [201, 100, 0]]
    assert short == [[1, 100, 0]]
    assert filled.card.frame_rate == 1.0


def test_levels() -> None:
    quiet, loud = np.array([0.02, -0.05], np.float32), np.array([0.5, -0.8, 0.1], np.float32)
    np.testing.assert_array_equal(level_of(recipe(), 10)(quiet), quiet)
    np.testing.assert_allclose(level_of(recipe(level="maximum"), 10)(quiet), quiet / 0.1)
    np.testing.assert_allclose(level_of(recipe(level="maximum"), 10)(loud), loud / 0.5)
    np.testing.assert_allclose(level_of(recipe(level="peak"), 10)(loud), loud / 0.8)
    np.testing.assert_allclose(level_of(recipe(level="16 bit"), 10)(loud), np.rint(loud * 32767) / 32768)
    assert level_of(recipe(level="16 bit"), 10)(np.array([1e-6, 7.0], np.float32)).tolist() == [0.0, 32767 / 32768]
    assert len(level_of(recipe(longest=0.2), 10)(loud)) == 2
    assert not level_of(recipe(level="maximum"), 10)(np.zeros(3, np.float32)).any()


def test_points_are_frames_seconds_or_clips() -> None:
    frames = np.arange(14, dtype=np.float32).reshape(7, 2)
    assert pooled(frames, recipe(), 2.3).tolist() == frames.tolist()
    assert pooled(frames, recipe(point="clip"), 2.3).tolist() == [[6, 7]]
    assert pooled(frames, recipe(point="second"), 2.3).tolist() == [[2, 3], [8, 9]]  # 3 frames each, one left over
    assert pooled(frames, recipe(point="second"), 0.5).tolist() == [[6, 7]]
    assert pooled(np.full((1, 1), 1 + 1e-4, np.float32), recipe(rounding="float16"), 1.0).tolist() == [[1.0]]
    with pytest.raises(InputError, match="too large for float16"):
        pooled(np.full((1, 1), 1e6, np.float32), recipe(rounding="float16"), 1.0)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """Two folders of tones in noise, of several rates and lengths; a silent clip, one of ten samples, a broken one."""
    for name, pitch in (("real", 300.0), ("made", 500.0)):
        (tmp_path / name).mkdir()
        for take in range(14):
            rate = (16000, 8000, 44100)[take % 3]
            time = np.arange(int(rate * (0.2 + 0.1 * (take % 4)))) / rate
            clip = np.sin(2 * np.pi * (pitch + 40 * take) * time) + 0.1 * RNG.normal(size=len(time))
            soundfile.write(tmp_path / name / f"{take:02d}.wav", 0.4 * clip / np.abs(clip).max(), rate)
    soundfile.write(tmp_path / "made" / "silent.wav", np.zeros(4000), 16000)
    soundfile.write(tmp_path / "made" / "short.wav", 0.1 * np.ones(10), 16000)
    (tmp_path / "made" / "broken.wav").write_bytes(b"RIFF no more")
    return str(tmp_path / "real"), str(tmp_path / "made")


def test_from_folders_of_sounds_to_distances(folders: tuple[str, str]) -> None:
    scores = audio_distance(*folders, recipe="earmark-mfcc", metrics="fad,kad", threads=1)
    assert {row.protocol for row in scores} == {"earmark-mfcc"}
    vectors = [earmark.embed(folder, "mfcc").vectors for folder in folders]
    assert scores.value("frechet_distance") == pytest.approx(frechet_distance(*vectors), rel=1e-6)
    assert scores.value("kad") == pytest.approx(kad(*vectors).value, rel=1e-6)
    assert "1 clip of 17 failed; first broken.wav" in scores.notes[0]
    assert scores.sample_ids is not None
    worst = [scores.sample_ids[row] for row in scores.worst(3)]
    assert "silent.wav" in worst
    assert scores.row("kad").unit == "clip"
    with pytest.raises(UsageError, match="is a recipe for mfcc, not for logmel"):
        audio_distance(*folders, recipe="earmark-mfcc", extractor="logmel")
    with pytest.raises(UsageError, match="give its vectors as files"):
        audio_distance(*folders, recipe="stable-audio-openl3")


def test_parameters_that_change_a_model_are_part_of_the_name(folders: tuple[str, str]) -> None:
    own = recipe(model="logmel?hop=256", dimension=128, point="second", longest=0.2, metrics=("kad",))
    assert listening.open_model(own)[1] == "mine"
    model, name = listening.open_model(own, "logmel?hop=128&fmin=50")
    assert (model.card.frame_rate, name) == (125.0, "mine?hop=128&fmin=50")
    scores = audio_distance(*folders, recipe=own, extractor="logmel?hop=128", intervals="none")
    assert {row.protocol for row in scores} == {"mine?hop=128"}


# --- distances of points ------------------------------------------------------------------------------------------


def clustered(clips: int, shift: float = 0.0) -> Points:
    """Clips of two to five frames that are alike within a clip."""
    counts = RNG.integers(2, 6, size=clips)
    middles = RNG.normal(size=(clips, 4)) + shift
    values = np.concatenate([middle + 0.3 * RNG.normal(size=(n, 4)) for middle, n in zip(middles, counts, strict=True)])
    return Points(values, np.repeat(np.arange(clips), counts), tuple(f"clip{n}" for n in range(clips)))


def test_clips_are_the_units_where_points_are_frames() -> None:
    real, made = clustered(40), clustered(30, 0.8)
    scores = audio_distance(real, made, recipe=recipe(metrics=("frechet_distance", "fad_inf", "kad")))
    whole = frechet_distance(real.values, made.values)
    assert scores.value("frechet_distance") == pytest.approx(whole)
    row = scores.row("frechet_distance")
    assert (row.unit, row.units) == ("clip", 30)
    narrow = earmark.fidelity(real.values, made.values, metrics="fad", correct="none").row("frechet_distance")
    assert row.high - row.low > 1.2 * (narrow.high - narrow.low)  # frames of a clip say the same thing over again
    raised = scores.per_sample["euclidean", "none", "all", "frechet_distance"]
    without = [frechet_distance(real.values, made.values[made.clips != clip]) for clip in range(30)]
    assert np.corrcoef(raised, whole - np.array(without))[0, 1] > 0.98
    alone = scores.per_sample["euclidean", "none", "all", INDIVIDUAL]
    assert alone[7] == pytest.approx(frechet_distance(real.values, made.values[made.clips == 7]))


def test_vectors_of_other_tools_come_in_as_they_keep_them(tmp_path: Path) -> None:
    real, made = clustered(15), clustered(12)
    for name, points in (("real", real), ("made", made)):
        (tmp_path / name).mkdir()
        for clip, ident in enumerate(points.ids):
            np.save(tmp_path / name / f"{ident}.npy", points.values[points.clips == clip].astype(np.float16))
        np.savez(tmp_path / f"{name}.npz", vectors=points.values, groups=[points.ids[clip] for clip in points.clips])
    options: dict[str, Any] = {"recipe": recipe(metrics=("frechet_distance", "kad")), "intervals": "none"}
    expected = audio_distance(real, made, **options)
    from_files = audio_distance(tmp_path / "real.npz", str(tmp_path / "made.npz"), **options)
    assert from_files.value("kad") == expected.value("kad")
    assert len(from_files.per_sample["euclidean", "none", "all", "kad"]) == 12
    from_folders = audio_distance(tmp_path / "real", tmp_path / "made", **options)
    assert from_folders.value("frechet_distance") == pytest.approx(expected.value("frechet_distance"), rel=1e-2)
    from_arrays = audio_distance(real.values, made.values, **options)
    assert from_arrays.value("kad") == expected.value("kad")
    np.save(tmp_path / "made" / "wide.npy", np.zeros((2, 5)))
    with pytest.raises(InputError, match=r"wide.npy holds float64 of shape \(2, 5\): frames by 4 numbers"):
        audio_distance(tmp_path / "real", tmp_path / "made", **options)
    with pytest.raises(InputError, match="density is no distance of two distributions"):
        audio_distance(real, made, metrics="density", **options)
    wide = audio_distance(np.zeros((3, 7)) + np.arange(3)[:, None], np.ones((3, 7)), **options)
    assert "7 numbers in a vector, and mine has 4" in wide.notes[0]
