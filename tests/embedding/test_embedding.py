from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fresh import run_fresh

import earmark
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.embedding.embed import embed, embed_audio
from earmark.embedding.hearing import hear, windows
from earmark.embedding.pooling import POOLINGS, pool, stack
from earmark.errors import InputError, MissingExtra, UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import ExtractorCard, Frames, Waveform


def clips_of(count: int = 10, rate: int = 16000) -> list[Clip]:
    random = np.random.default_rng(0)
    return [
        Clip(f"c{k}", label=f"l{k % 3}", group=f"g{k % 2}", rate=rate,
             samples=(0.3 * random.standard_normal(200 + 700 * k)).astype(np.float32))
        for k in range(count)
    ]  # fmt: skip


class Counting:
    """Frames of the samples themselves, four a frame; counts forward passes and can be told to fail."""

    card = ExtractorCard("counting", rate=16000, context_seconds=0.2)

    def __init__(self, fails: Any = lambda waveform: False) -> None:
        self.batches: list[int] = []
        self.fails = fails

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        self.batches.append(len(waveforms))
        if any(self.fails(waveform) for waveform in waveforms):
            raise RuntimeError("out of\nluck")
        values = [np.resize(waveform, (1 + len(waveform) // 1000, 4)) for waveform in waveforms]
        return [Frames(value, len(value)) for value in values]


def test_every_pooling_from_one_pass_is_what_pooling_alone_gives() -> None:
    clips, model = clips_of(), Counting()
    asked = [*POOLINGS, "MTF"]
    found = embed(clips, model, asked, batch=4)
    assert sum(model.batches) == len(clips)
    assert list(found.vectors) == asked
    frames = [Counting().extract([c.samples / np.abs(c.samples).max()])[0] for c in clips]
    for name in POOLINGS:
        expected = stack([pool(f, [name])[0] for f in frames], 4 if name == "flatten" else 1)
        np.testing.assert_array_equal(found.vectors[name], expected)
    parts = [found.vectors["mean_time"], found.vectors["mean_feature"]]
    np.testing.assert_array_equal(found.vectors["MTF"], np.hstack(parts))
    assert found.ids == tuple(clip.id for clip in clips)
    assert found.labels == tuple(clip.label for clip in clips)
    assert found.groups == tuple(clip.group for clip in clips)
    assert found.failures == ()


def test_flattened_log_mel_is_band_major_and_padded_after_the_decibels() -> None:
    clips = clips_of(3)
    found = embed(clips, open_extractor("logmel"), ["flatten"]).vectors["flatten"]
    frames = [one.answer for window in hear([[clip] for clip in clips], open_extractor("logmel")) for one in window]
    assert found.shape == (3, 128 * len(frames[2].values))
    for row, one in zip(found, frames, strict=True):
        bands = row.reshape(128, -1)
        np.testing.assert_array_equal(bands[:, : len(one.values)], one.values.T)
        np.testing.assert_array_equal(bands[:, len(one.values) :], 0.0)


@pytest.mark.parametrize("options", [{"batch": 1}, {"batch": 3}, {"threads": 1}, {"threads": 5}])
@pytest.mark.usefixtures("several_threads")
def test_batches_and_threads_change_no_bit(options: dict[str, Any]) -> None:
    clips = clips_of(20)
    expected = embed(clips, open_extractor("logmel"), ["flatten"]).vectors["flatten"]
    found = embed(clips, open_extractor("logmel"), ["flatten"], **options).vectors["flatten"]
    np.testing.assert_array_equal(found, expected)


def test_clips_are_resampled_and_peak_normalised() -> None:
    class Listening(Counting):
        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            self.heard = list(waveforms)
            return super().extract(waveforms)

    model = Listening()
    embed([Clip("a", samples=np.full(8000, 0.25, np.float32), rate=8000)], model, ["mean_time"])
    (heard,) = model.heard
    assert len(heard) == 16000
    assert np.abs(heard).max() == pytest.approx(1.0)
    assert heard.dtype == np.float32


def test_a_failing_clip_costs_only_itself(tmp_path: Path) -> None:
    clips = clips_of(9)
    (tmp_path / "text.wav").write_text("not audio")
    clips[2] = Clip("text", path=str(tmp_path / "text.wav"))
    clips[4] = Clip("silent nothing", samples=np.zeros(0, np.float32), rate=16000)
    doomed = len(clips[6].samples)
    found = embed(clips, Counting(lambda waveform: len(waveform) == doomed), ["mean_time"])
    assert [failure.id for failure in found.failures] == ["text", "silent nothing", "c6"]
    assert "text.wav" in found.failures[0].reason
    assert found.failures[2].reason == "RuntimeError: out of luck"
    assert found.ids == ("c0", "c1", "c3", "c5", "c7", "c8")
    assert len(found.vectors["mean_time"]) == 6
    assert found.notes()[0].startswith("3 of 9 clips failed; first text: ")


def test_nan_and_changing_dimensions_are_failures() -> None:
    class Odd(Counting):
        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            answers = super().extract(waveforms)
            return [
                Frames(a.values * np.nan if len(w) == 900 else a.values[:, : 3 if len(w) == 1600 else 4], a.valid)
                for a, w in zip(answers, waveforms, strict=True)
            ]

    found = embed(clips_of(4), Odd(), ["mean_time"])
    assert dict(found.failures) == {
        "c1": "the model returned NaN or infinity",
        "c2": "the model returned 3 features, and 4 for the clips before",
    }


def test_a_broken_extractor_ends_the_run_early() -> None:
    model = Counting(lambda waveform: True)
    with pytest.raises(InputError, match="counting failed on each of the first 64 clips: RuntimeError: out of luck"):
        embed(clips_of(30) * 20, model, ["mean_time"])
    assert len(model.batches) < 100
    with pytest.raises(InputError, match="None of 3 clips"):
        embed(clips_of(3), model, ["mean_time"])
    with pytest.raises(InputError, match="None of 0 clips"):
        embed([], model, ["mean_time"])


def test_errors_of_usage_are_not_failures_of_clips() -> None:
    class Needs(Counting):
        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            raise MissingExtra("These models", "torch")

    with pytest.raises(MissingExtra):
        embed(clips_of(2), Needs(), ["mean_time"])
    with pytest.raises(UsageError, match="no pooling 'mena'"):
        embed(clips_of(2), Counting(), ["mena"])
    with pytest.raises(UsageError, match="No pooling"):
        embed(clips_of(2), Counting(), [])
    with pytest.raises(UsageError, match="batch"):
        embed(clips_of(2), Counting(), ["flatten"], batch=0)


def test_what_the_model_does_not_hear_is_counted() -> None:
    clips = [Clip(str(n), samples=np.ones(n, np.float32), rate=16000) for n in (1600, 3200, 4800)]
    found = embed(clips, Counting(), ["mean_time"])
    assert found.truncated == 1
    assert found.seconds == pytest.approx(0.6)
    assert found.seconds_unheard == pytest.approx(0.1)
    assert found.notes() == ("1 clips are longer than the model hears; 0.1 s were cut off",)


def test_progress_counts_clips_and_no_group_is_none() -> None:
    told: list[tuple[int, int]] = []
    clips = [Clip(str(k), samples=np.ones(9, np.float32), rate=16000) for k in range(3)]
    found = embed(clips, Counting(), ["flatten"], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert found.groups is None


def test_a_model_that_learns_is_fitted_once() -> None:
    class Learning(Counting):
        fitted = False
        fits = 0

        def fit(self, clips: Sequence[Clip], *, progress: Any, checkpoint: Any) -> None:
            self.fits, self.fitted = self.fits + 1, True

    model = Learning()
    for _ in range(2):
        embed(clips_of(2), model, ["mean_time"])
    assert model.fits == 1


def test_frames_are_not_kept() -> None:
    import gc
    import weakref

    alive: list[weakref.ref[Any]] = []
    most = 0

    class Watching(Counting):
        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            nonlocal most
            gc.collect()
            most = max(most, sum(reference() is not None for reference in alive))
            answers = super().extract(waveforms)
            alive.extend(weakref.ref(answer.values) for answer in answers)
            return answers

    embed(clips_of(40), Watching(), list(POOLINGS), batch=4)
    assert most <= 8


def test_the_package_is_the_public_function() -> None:
    corpus = Corpus(CorpusCard("toy"), clips_of(8))
    found = earmark.embed(corpus, "logmel", "MTF D3")
    again = embed_audio(corpus.clips, open_extractor("logmel"), "mean_time+mean_feature", pca=3)
    assert found.vectors.shape == (8, 3)
    np.testing.assert_array_equal(found.vectors, again.vectors)
    assert embed_audio(corpus, pca=30).notes == ("PCA: 7 of 30 components, all that 8 points in 2560 dimensions have",)
    with pytest.raises(UsageError, match="give one of them"):
        embed_audio(corpus, pool="MTF D3", pca=4)


def test_the_public_name_is_the_same_function_before_and_after_the_package_is_imported() -> None:
    run_fresh(
        "import earmark\n"
        "from earmark.corpora.clips import Clip\n"
        "import numpy as np\n"
        "clips = [Clip('a', samples=np.ones(9, np.float32), rate=16000)]\n"
        "first = earmark.embed(clips, 'mfcc')\n"
        "second = earmark.embed(clips, 'mfcc')\n"
        "assert (first.vectors == second.vectors).all() and first.vectors.shape == (1, 80)\n"
    )


def test_batches_hold_clips_of_like_lengths_and_answers_keep_their_order() -> None:
    """Shuffled lengths: inside a window, padding to the longest of a batch adds little."""
    lengths = np.random.default_rng(0).permutation(np.arange(1, 65)) * 100
    clips = [Clip(id=str(n), samples=np.ones(n, np.float32), rate=16000) for n in lengths]
    seen: list[list[int]] = []

    class Watching(Counting):
        def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
            seen.append([len(waveform) for waveform in waveforms])
            return [Frames(np.full((1, 1), len(waveform), np.float32), 1) for waveform in waveforms]

    (heard,) = [list(window) for window in hear([clips], Watching(), batch=8)]
    assert {one.place: one.answer.values[0, 0] for one in heard if one.error is None} == dict(enumerate(lengths))
    assert seen == [[100 * n for n in range(start, start + 8)] for start in range(1, 65, 8)]


def test_windows_bound_the_sound_held_at_once() -> None:
    assert windows([]) == []
    assert windows([0.0] * 130) == [slice(0, 64), slice(64, 128), slice(128, 130)]
    assert windows([400.0, 400.0, 100.0, 1000.0, 1.0]) == [slice(0, 1), slice(1, 3), slice(3, 4), slice(4, 5)]


def test_what_is_no_clip_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="A str is no clip"):
        embed_audio(["sounds/a.wav"], "mfcc")
    with pytest.raises(UsageError, match="A ndarray is no clip"):
        embed_audio(np.zeros((3, 16000), np.float32), "mfcc")
