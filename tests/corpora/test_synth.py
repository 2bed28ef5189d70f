"""The embedded suite: the same sounds every time, of the right shape, neither trivial nor hopeless."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

import earmark
from earmark.corpora.clips import Clip, groups_of, labels_of
from earmark.corpora.synth import SUBSETS, open_synth
from earmark.corpora.synth import _nuisances as nuisance
from earmark.corpora.synth._events import EVENTS, event
from earmark.corpora.synth._sources import (
    RATE,
    contour,
    frame_count,
    frame_grid,
    harmonics,
    moving,
    stream,
    swell,
)
from earmark.corpora.synth._species import CALLS, call, throat
from earmark.corpora.synth._speech import PHONES, say_phone, utterance, word
from earmark.errors import UsageError

SECONDS = {
    "SYN-BS": (0.03, 0.28),
    "SYN-BC": (0.08, 1.15),
    "SYN-ES": (0.85, 2.2),
    "SYN-HP": (0.055, 0.25),
    "SYN-HW": (0.2, 1.0),
    "SYN-HU": (0.8, 2.7),
}


def made(clip: Clip) -> np.ndarray:
    assert clip.make is not None
    samples, rate = clip.make()
    assert rate == RATE
    return samples


def quick_vector(samples: np.ndarray) -> np.ndarray:
    """Mean and deviation over time of a coarse log spectrum: the plainest representation there is."""
    padded = np.pad(samples / np.abs(samples).max(), 256)
    frames = np.lib.stride_tricks.sliding_window_view(padded, 512)[::256] * np.hanning(512)
    power = np.abs(np.fft.rfft(frames, axis=1))[:, 1:] ** 2
    edges = np.unique(np.geomspace(1, 256, 48).astype(int)) - 1
    bands = 10 * np.log10(np.maximum(np.add.reduceat(power, edges, axis=1), 1e-10))
    bands = np.maximum(bands, bands.max() - 80)
    return np.concatenate([bands.mean(axis=0), bands.std(axis=0)])


@pytest.fixture(scope="module")
def tiny() -> dict[str, list[tuple[Clip, np.ndarray]]]:
    subsets = open_synth("tiny").subsets()
    return {name: [(clip, made(clip)) for clip in clips] for name, clips in subsets.items()}


def test_card_says_synthetic() -> None:
    card = open_synth("tiny").card
    assert card.status == "synthetic"
    assert "SYNTHETIC" in card.title
    assert "SYNTHETIC" in card.notes


@pytest.mark.parametrize("name", list(SUBSETS))
def test_clips_are_sound(tiny: dict[str, list[tuple[Clip, np.ndarray]]], name: str) -> None:
    low, high = SECONDS[name]
    for clip, samples in tiny[name]:
        assert samples.dtype == np.float32
        assert samples.ndim == 1
        assert np.isfinite(samples).all()
        assert 0.01 < np.abs(samples).max() < 1.0
        assert low <= len(samples) / RATE <= high, clip.id


@pytest.mark.parametrize("name", list(SUBSETS))
def test_shape_of_a_subset(tiny: dict[str, list[tuple[Clip, np.ndarray]]], name: str) -> None:
    clips = [clip for clip, _ in tiny[name]]
    sizes = Counter(labels_of(clips))
    assert len(sizes) == 6
    assert min(sizes.values()) >= 6
    for label in sizes:  # every class is met in several groups, and more than once in one of them
        groups = Counter(clip.group for clip in clips if clip.label == label)
        assert len(groups) >= 2
        assert max(groups.values()) >= 2
    assert len({clip.id for clip in clips}) == len({clip.recipe for clip in clips}) == len(clips)


def test_no_two_clips_are_the_same(tiny: dict[str, list[tuple[Clip, np.ndarray]]]) -> None:
    sounds = [samples.tobytes() for clips in tiny.values() for _, samples in clips]
    assert len(set(sounds)) == len(sounds)


def test_a_clip_depends_on_its_name_alone(tiny: dict[str, list[tuple[Clip, np.ndarray]]]) -> None:
    larger = {clip.id: clip for clip in open_synth(200)}
    for clips in tiny.values():
        for clip, samples in clips[::-9]:
            twin = pickle.loads(pickle.dumps(larger[clip.id]))
            assert twin.recipe == clip.recipe
            assert twin.group == clip.group
            assert np.array_equal(made(twin), samples)


def test_another_seed_gives_other_sounds() -> None:
    one, two = (open_synth(4, seed=seed, subsets=["SYN-ES"]).clips[0] for seed in (0, 1))
    assert one.recipe != two.recipe
    assert made(one).tobytes() != made(two).tobytes()


@pytest.mark.parametrize("name", list(SUBSETS))
def test_neither_trivial_nor_hopeless_and_harder_across_groups(name: str) -> None:
    clips = open_synth(120, subsets=[name]).clips
    vectors = np.stack([quick_vector(made(clip)) for clip in clips])
    scores = earmark.evaluate(
        vectors, labels_of(clips), groups=groups_of(clips), across_groups=True, metrics="P@1", permutations=20
    )
    rows = {row.protocol: row for row in scores.rows if row.metric == "P@1"}
    everyone, across = rows["all"], rows["across_groups"]
    assert everyone.value is not None
    assert across.value is not None
    assert across.baseline is not None
    assert everyone.value < 1.0
    assert across.value < everyone.value - 0.02
    assert across.value > across.baseline + 0.1


@pytest.mark.parametrize("clips", [1, 2, 3, 7, 54, 333])
def test_any_size(clips: int) -> None:
    corpus = open_synth(clips)
    assert {name: len(found) for name, found in corpus.subsets().items()} == dict.fromkeys(SUBSETS, clips)
    for found in corpus.subsets().values():
        assert clips < 4 or len(set(labels_of(found))) >= 2
    assert open_synth(str(clips)).clips[0].id == corpus.clips[0].id


def test_sizes_by_name() -> None:
    assert len(open_synth("tiny")) == 324
    assert len(open_synth()) == 1800
    assert len(open_synth("medium")) == 10_200


def test_wrong_words() -> None:
    with pytest.raises(UsageError, match="SYN-ES"):
        open_synth("tiny", subsets=["SYN-EZ"])
    with pytest.raises(UsageError, match="tiny, small, medium"):
        open_synth("huge")
    with pytest.raises(UsageError, match="at least one"):
        open_synth(0)


@pytest.mark.parametrize("name", list(EVENTS))
def test_every_event_sounds(name: str) -> None:
    clips = [event(name, stream("place"), stream("moment", number)) for number in range(2)]
    for samples in clips:
        assert np.mean(samples**2) == pytest.approx(1.0, abs=1e-3)
    assert clips[0].tobytes() != clips[1].tobytes()


@pytest.mark.parametrize("name", list(CALLS))
def test_every_call_sounds(name: str) -> None:
    samples = call(name, throat("someone"), stream("now"))
    assert np.mean(samples**2) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("name", list(PHONES))
def test_every_phone_sounds(name: str) -> None:
    samples = say_phone(name, nuisance.draw_speaker("someone"), stream("now"))
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() > 1e-3


def test_words_and_utterances_are_all_different() -> None:
    words = [word(0, number) for number in range(300)]
    assert len(set(words)) == 300
    assert words[:20] == [word(0, number) for number in range(20)]
    assert len({utterance(0, number) for number in range(300)}) == 300


def test_a_vowel_has_its_formants() -> None:
    speaker = nuisance.Speaker("plain", 110.0, 0.02, 1.0, 1.0, 0.01, 0.5, 0.0)
    spectra = {}
    for name in ("i", "a"):
        samples = say_phone(name, speaker, stream("now"))
        spectra[name] = np.abs(np.fft.rfft(samples, 4096)) ** 2
    frequency = np.fft.rfftfreq(4096, 1 / RATE)
    open_part = (frequency > 600) & (frequency < 1500)
    share = {name: power[open_part].sum() / power.sum() for name, power in spectra.items()}
    assert share["a"] > 5 * share["i"]


# --- nuisances and sources --------------------------------------------------------------------------------


def beep(seconds: float = 0.5, pitch: float = 1000.0) -> np.ndarray:
    n = round(seconds * RATE)
    return harmonics(np.full(n, pitch), [1.0]) * swell(n, 0.01, 0.01)


def test_loudness_sets_the_peak() -> None:
    assert np.abs(nuisance.loudness(beep(), -6.0)).max() == pytest.approx(10 ** (-6 / 20))
    assert not nuisance.loudness(np.zeros(10), -6.0).any()


def test_speed_changes_length_and_pitch() -> None:
    quick = nuisance.speed(beep(), 1.25)
    assert len(quick) == round(0.5 * RATE / 1.25)
    peak = np.argmax(np.abs(np.fft.rfft(quick))) * RATE / len(quick)
    assert peak == pytest.approx(1250, abs=5)


@pytest.mark.parametrize("snr", [0.0, 20.0])
def test_background_keeps_its_ratio(snr: float) -> None:
    sound = beep(2.0)
    added = nuisance.background(sound, stream("noise"), snr) - sound
    louder = np.sort(sound**2)[len(sound) // 2 :].mean()
    assert 10 * np.log10(louder / np.mean(added**2)) == pytest.approx(snr, abs=0.5)


def test_a_room_is_the_same_for_the_same_key() -> None:
    here, again, there = (nuisance.room(beep(), key, 0.2, 0.5) for key in ("here", "here", "there"))
    assert np.array_equal(here, again)
    assert not np.allclose(here, there)
    assert len(here) == len(beep())


def test_padding_moves_the_sound() -> None:
    padded = nuisance.padding(beep(), 0.1, 0.2)
    assert len(padded) == round(0.8 * RATE)
    assert not padded[: RATE // 10].any()


def test_speakers_differ_and_stay_themselves() -> None:
    people = [nuisance.draw_speaker(0, number) for number in range(40)]
    assert people[3] == nuisance.draw_speaker(0, 3)
    assert all(70 < person.pitch < 400 and 0.75 < person.tract < 1.35 for person in people)
    assert np.corrcoef([p.pitch for p in people], [p.tract for p in people])[0, 1] > 0.5


def test_moving_filter_of_one_changes_nothing() -> None:
    sound = stream("white").standard_normal(3001)
    plain = np.ones((frame_count(len(sound)), len(frame_grid())))
    assert np.allclose(moving(sound, plain), sound)


def test_contour_meets_its_points() -> None:
    curve = contour([1.0, 3.0, 2.0], 101)
    assert curve[[0, 50, 100]] == pytest.approx([1.0, 3.0, 2.0])
