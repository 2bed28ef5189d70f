"""A linear head on clean clips: against scikit-learn called by hand, folds without leaks, WavLM's layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.probes import toys

from earmark.corpora.clips import Clip
from earmark.probes import open_task
from earmark.probes.emotion import Emotion, Heads, folds_of, shuffled_accuracy


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return toys.tones(labels=3, groups=5, takes=3)


def test_groups_are_never_on_both_sides_and_labels_are_in_every_fold(clips: list[Clip]) -> None:
    cut = folds_of(clips, 5, 0)
    for fold in range(5):
        held = {clip.group for clip, number in zip(clips, cut.fold, strict=True) if number == fold}
        kept = {clip.group for clip, number in zip(clips, cut.fold, strict=True) if number != fold}
        assert held
        assert not held & kept
        assert len(set(cut.labels[cut.fold == fold])) == 3
    alone = [Clip(clip.id, clip.label) for clip in clips]
    assert np.bincount(folds_of(alone, 5, 0).fold).tolist() == [9] * 5


def test_the_answers_are_those_of_the_head_fitted_by_hand() -> None:
    rng = np.random.default_rng(0)
    clips = [Clip(str(n), f"l{n % 3}", group=f"g{n % 7}") for n in range(60)]
    cut = folds_of(clips, 5, 3)
    clean = rng.normal(size=(60, 4)) + np.eye(3)[cut.labels] @ rng.normal(size=(3, 4))
    coded = clean + 0.5 * rng.normal(size=clean.shape)
    found = Heads.trained(clean, cut).answer(coded)
    for fold in range(5):
        held = cut.fold == fold
        mean, spread = clean[~held].mean(axis=0), clean[~held].std(axis=0)
        head = LogisticRegression(C=1.0, max_iter=2000).fit((clean[~held] - mean) / spread, cut.labels[~held])
        assert (found[held] == head.predict((coded[held] - mean) / spread)).all()


def test_the_baseline_is_what_shuffled_labels_reach() -> None:
    clips = [Clip(str(n), f"l{n % 3}", group=f"g{n % 5}") for n in range(45)]
    cut = folds_of(clips, 5, 0)
    answers = np.random.default_rng(0).integers(0, 3, 45)
    rng, drawn = np.random.default_rng(1), []
    for _ in range(3000):
        right = 0
        for fold in range(5):
            held = cut.fold == fold
            right += (rng.permutation(cut.labels[held]) == answers[held]).sum()
        drawn.append(right / 45)
    assert shuffled_accuracy(answers, cut) == pytest.approx(np.mean(drawn), abs=0.005)


def test_a_head_trained_on_clean_clips_loses_on_noise(clips: list[Clip]) -> None:
    task = Emotion(toys.Spectrum(), bootstrap=40)
    clean = task.listen(clips)
    values = []
    for level in (0.0, 0.6, 6.0):
        accuracy, difference = task.score(clips, clean, task.listen(toys.noisy(clips, level)))
        values.append(accuracy.value or 0.0)
        assert accuracy.lift == pytest.approx((accuracy.value or 0.0) - (accuracy.baseline or 0.0))
        assert accuracy.reason == "5 folds of 5 groups"
        assert difference.value == pytest.approx((accuracy.value or 0.0) - values[0])
    assert values[0] > 0.9
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(("kept", "why"), [(slice(0, 15), "1 label in 15 clips"), (slice(0, 0), "0 labels in 0 clips")])
def test_too_little_has_a_reason(clips: list[Clip], kept: slice, why: str) -> None:
    task = Emotion(toys.Spectrum())
    heard = task.listen(clips)
    found = task.score(clips[kept], heard, heard)
    assert {one.status for one in found} == {"not_applicable"}
    assert why in found[0].reason
    few = [clip for clip in clips if clip.group in ("voice0", "voice1")]
    assert "2 groups do not fill 5 folds" in task.score(few, heard, heard)[0].reason


def test_wavlm_gives_the_plain_mean_of_its_layers(tmp_path: Path) -> None:
    from tests.extractors import tiny_models

    tiny_models.torch.manual_seed(0)
    place = tiny_models.speech("WavLM", tmp_path / "tiny")
    clip = Clip("a", samples=tiny_models.sound(16000, 0.8), rate=16000)
    task: Any = open_task(f"emotion:wavlm:{place}", device="cpu")
    heard = task.listen([clip])
    model = tiny_models.transformers.WavLMModel.from_pretrained(place).eval()
    assert clip.samples is not None
    with tiny_models.torch.inference_mode():
        states = model(tiny_models.torch.from_numpy(clip.samples)[None], output_hidden_states=True).hidden_states
    expected = np.mean([state[0].numpy() for state in states], axis=0).mean(axis=0)
    assert len(states) == 4
    np.testing.assert_allclose(toys.vectors(heard)[0], expected, atol=1e-4)


def test_egemaps_tells_synthetic_manners_of_speaking_apart() -> None:
    """SYNTHETIC: a calm and an agitated reading by espeak-ng, which differ in pitch and pace. No emotions."""
    pytest.importorskip("opensmile")
    pytest.importorskip("espeakng_loader")
    from earmark.corpora._voices import speak

    clips = []
    for variant in ("m1", "f2", "m3", "f4", "m7"):
        lines = [
            (text, *manner) for text in ("the door is open", "we are going home") for manner in ((120, 25), (230, 80))
        ]
        rate, spoken = speak("en-us", variant, lines)
        for number, samples in enumerate(spoken):
            sound = (samples / 32768).astype(np.float32)
            clips.append(
                Clip(f"{variant}{number}", ("calm", "agitated")[number % 2], group=variant, samples=sound, rate=rate)
            )
    task = open_task("emotion", bootstrap=20)
    heard = task.listen(clips)
    accuracy, difference = task.score(clips, heard, heard)
    assert (accuracy.value or 0.0) >= 0.8
    assert difference.value == 0.0
