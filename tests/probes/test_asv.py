"""Verification of coded clips: trials counted by hand, both enrolments, lists of trials, and ECAPA's network."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.probes import toys

from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError
from earmark.probes import Responses, Row, asv
from earmark.probes._trials import choose_trials
from earmark.probes._verification import Trials, curve, eer
from earmark.probes.asv import Verification


def by_key(found: list[Row]) -> dict[tuple[str, str], Row]:
    return {(one.metric, one.protocol): one for one in found}


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return toys.tones()


@pytest.fixture(scope="module")
def task() -> Verification:
    return Verification(toys.Spectrum(), bootstrap=30)


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def test_trials_of_both_enrolments_are_those_counted_by_hand(clips: list[Clip], task: Verification) -> None:
    clean, coded = task.listen(clips), task.listen(toys.noisy(clips, 0.3))
    found = by_key(task.score(clips, clean, coded))
    before, after = toys.vectors(clean), toys.vectors(coded)
    pairs = list(combinations(range(len(clips)), 2))
    same = [clips[i].group == clips[j].group for i, j in pairs]
    expected = eer(curve(Trials(np.array([cosine(after[i], after[j]) for i, j in pairs]), np.array(same))))
    assert found["eer", "coded_enrol"].value == pytest.approx(expected, abs=1e-9)
    both = list(permutations(range(len(clips)), 2))
    same = [clips[i].group == clips[j].group for i, j in both]
    expected = eer(curve(Trials(np.array([cosine(before[i], after[j]) for i, j in both]), np.array(same))))
    assert found["eer", "clean_enrol"].value == pytest.approx(expected, abs=1e-9)
    assert found["eer", "clean_enrol"].reason == f"{len(both)} trials; 5 speakers"
    expected = np.mean([cosine(one, two) for one, two in zip(before, after, strict=True)])
    assert found["speaker_similarity", "all"].value == pytest.approx(expected, abs=1e-9)
    for one in found.values():
        assert one.n == len(clips)
        assert one.low is not None
        assert one.high is not None
        assert one.value is not None
        assert one.low <= one.high


def test_no_codec_is_the_clean_row(clips: list[Clip], task: Verification) -> None:
    clean = task.listen(clips)
    found = by_key(task.score(clips, clean, clean))
    assert found["eer", "coded_enrol"].value == pytest.approx(found["eer", "clean_enrol"].value or 0.0)
    assert found["eer:difference", "coded_enrol"].value == 0.0
    assert found["speaker_similarity", "all"].value == pytest.approx(1.0)


def test_more_noise_makes_more_errors(task: Verification) -> None:
    clips = toys.tones(labels=1, groups=8, takes=4)
    clean = task.listen(clips)
    rates = [
        by_key(task.score(clips, clean, task.listen(toys.noisy(clips, level))))["eer", "clean_enrol"].value
        for level in (0.01, 0.3, 4.0)
    ]
    assert rates == sorted(rates, key=lambda rate: rate or 0.0)
    assert (rates[-1] or 0.0) > 0.3


def test_a_clip_that_failed_is_left_out_and_told(clips: list[Clip], task: Verification) -> None:
    clean = task.listen(clips)
    coded = task.listen([*toys.noisy(clips[:-1], 0.1), toys.broken(clips[-1])])
    found = by_key(task.score(clips, clean, coded))
    assert found["eer", "coded_enrol"].n == len(clips) - 1
    assert f"1 clip left out, first {clips[-1].id}" in found["eer", "coded_enrol"].reason


def test_without_speakers_or_clips_there_is_a_reason(task: Verification, clips: list[Clip]) -> None:
    alone = [Clip(clip.id, clip.label, samples=clip.samples, rate=clip.rate) for clip in clips[:4]]
    heard = task.listen(alone)
    found = by_key(task.score(alone, heard, heard))
    assert found["eer", "clean_enrol"].status == "not_applicable"
    assert "no clip has a group" in found["eer", "clean_enrol"].reason
    assert found["speaker_similarity", "all"].status == "ok"
    nothing = Responses((), vectors=np.zeros((0, 0), np.float32), failures={clip.id: "no" for clip in alone})
    assert {one.status for one in task.score(alone, heard, nothing)} == {"not_applicable"}
    one_voice = [clip for clip in clips if clip.group == "voice0"]
    heard = task.listen(one_voice)
    assert "1 speaker make no trials" in by_key(task.score(one_voice, heard, heard))["eer", "coded_enrol"].reason


def test_a_list_of_trials_is_followed(clips: list[Clip], tmp_path: Path) -> None:
    chosen = [(clips[0], clips[1], 1), (clips[0], clips[2], 0), (clips[5], clips[4], 1), (clips[3], clips[9], 0)]
    place = tmp_path / "trials.txt"
    place.write_text("".join(f"{same} {one.id} {two.id}\n" for one, two, same in chosen) + "\n1 not here\n")
    task = Verification(toys.Spectrum(), trials=str(place), bootstrap=10)
    heard = task.listen(clips)
    found = by_key(task.score(clips, heard, heard))["eer", "coded_enrol"]
    assert found.n == 8 - 1  # clip 0 is in two trials
    assert found.reason.startswith("4 trials; 1 listed trials of other clips; no interval: 4 speakers are too few")
    place.write_text("yes a b\n")
    with pytest.raises(InputError, match="Line 1"):
        Verification(toys.Spectrum(), trials=str(place))


def test_of_many_pairs_some_are_drawn(clips: list[Clip]) -> None:
    task = Verification(toys.Spectrum(), most_trials=300)
    heard = task.listen(clips)
    found = by_key(task.score(clips, heard, heard))["eer", "coded_enrol"]
    assert found.reason == "300 trials; 5 speakers; drawn from 780 pairs"
    assert found.value == by_key(task.score(clips, heard, heard))["eer", "coded_enrol"].value
    every = Verification(toys.Spectrum())
    assert found.value == pytest.approx(by_key(every.score(clips, heard, heard))["eer", "coded_enrol"].value, abs=0.03)
    with pytest.raises(UsageError, match="At least 2 trials"):
        Verification(toys.Spectrum(), most_trials=1)


@pytest.mark.parametrize("sizes", [[40, 40, 40], [2, 3, 90, 30, 1, 1, 1], [1] * 150 + [2], [100, 1], [3] * 60])
def test_drawn_trials_are_different_pairs_with_every_speakers_share(sizes: list[int]) -> None:
    speakers = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(0).shuffle(speakers)
    speakers = np.r_[-1, speakers, -1]
    chosen = choose_trials(speakers, 1000, 5)
    assert len({tuple(sorted(pair)) for pair in zip(chosen.first, chosen.second, strict=True)}) == len(chosen.first)
    assert (speakers[chosen.first] >= 0).all()
    np.testing.assert_array_equal(chosen.same, speakers[chosen.first] == speakers[chosen.second])
    counts = np.array(sizes)
    of_one, of_two = int((counts * (counts - 1)).sum() // 2), int((counts * (counts.sum() - counts)).sum() // 2)
    same = min(of_one, 500)
    assert chosen.same.sum() == same
    assert (~chosen.same).sum() == pytest.approx(min(of_two, 1000 - same), abs=len(sizes))
    shares = np.bincount(speakers[chosen.first][chosen.same], minlength=len(sizes))
    np.testing.assert_allclose(shares, counts * (counts - 1) / 2 * same / of_one, atol=1.0)
    either = np.bincount(np.r_[speakers[chosen.first], speakers[chosen.second]][np.r_[~chosen.same, ~chosen.same]])
    expected = counts * (counts.sum() - counts) * (~chosen.same).sum() / of_two
    np.testing.assert_allclose(either, expected, atol=4 * np.sqrt(expected.max()) + 2)


def test_what_only_the_clean_clips_decide_is_computed_once(clips: list[Clip], monkeypatch: pytest.MonkeyPatch) -> None:
    task = Verification(toys.Spectrum())
    clean = task.listen(clips)
    calls: list[int] = []
    monkeypatch.setattr(asv, "choose_trials", lambda *given: calls.append(1) or choose_trials(*given))
    first = task.score(clips, clean, task.listen(toys.noisy(clips, 0.3)))
    task.score(clips, clean, task.listen(toys.noisy(clips, 0.1)))
    assert len(calls) == 1
    fewer = task.listen([*toys.noisy(clips[:-1], 0.3), toys.broken(clips[-1])])
    task.score(clips, clean, fewer)
    task.score(clips, clean, fewer, seed=1)
    assert len(calls) == 3
    assert task.score(clips, clean, task.listen(toys.noisy(clips, 0.3))) == first


# --- ECAPA ------------------------------------------------------------------------------------------------------


def plain_ecapa(state: dict[str, Any], x: Any, scale: int) -> Any:
    """The network by hand, from a checkpoint's tensors."""
    import torch
    from torch.nn import functional

    def conv(name: str, x: Any, dilation: int = 1) -> Any:
        weight = state[f"{name}.conv.weight"]
        edge = dilation * (weight.shape[2] - 1) // 2
        padded = functional.pad(x, (edge, edge), mode="reflect") if edge else x
        return functional.conv1d(padded, weight, state[f"{name}.conv.bias"], dilation=dilation)

    def normed(name: str, x: Any) -> Any:
        mean, var = state[f"{name}.norm.running_mean"], state[f"{name}.norm.running_var"]
        scaled = (x - mean[:, None]) / torch.sqrt(var[:, None] + 1e-5)
        return scaled * state[f"{name}.norm.weight"][:, None] + state[f"{name}.norm.bias"][:, None]

    def step(name: str, x: Any, dilation: int = 1) -> Any:
        return normed(f"{name}.norm", conv(f"{name}.conv", x, dilation).clamp(min=0))

    x = step("blocks.0", x)
    heard = []
    for number in (1, 2, 3):
        y, name = step(f"blocks.{number}.tdnn1", x), f"blocks.{number}"
        parts, before = list(y.chunk(scale, dim=1)), None
        for place in range(1, scale):
            given = parts[place] if before is None else parts[place] + before
            parts[place] = before = step(f"{name}.res2net_block.blocks.{place - 1}", given, number + 1)
        y = step(f"{name}.tdnn2", torch.cat(parts, dim=1))
        gate = conv(f"{name}.se_block.conv1", y.mean(dim=2, keepdim=True)).clamp(min=0)
        x = x + y * torch.sigmoid(conv(f"{name}.se_block.conv2", gate))
        heard.append(x)
    x = step("mfa", torch.cat(heard, dim=1))
    around = [x.mean(dim=2, keepdim=True), x.var(dim=2, keepdim=True, unbiased=False).sqrt()]
    context = torch.cat([x, *(one.expand_as(x) for one in around)], dim=1)
    weights = conv("asp.conv", torch.tanh(step("asp.tdnn", context))).softmax(dim=2)
    mean = (weights * x).sum(dim=2, keepdim=True)
    spread = ((weights * x**2).sum(dim=2, keepdim=True) - mean**2).clamp(min=1e-12).sqrt()
    return conv("fc", normed("asp_bn", torch.cat([mean, spread], dim=1)))[:, :, 0]


def plain_features(samples: np.ndarray) -> np.ndarray:
    """80 mel bands in decibels, frame by frame."""
    padded = np.pad(samples.astype(float), 200)
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = [padded[start : start + 400] * window for start in range(0, len(samples) + 1, 160)]
    power = np.abs(np.fft.rfft(frames)) ** 2
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82)
    hertz = 700 * (10 ** (mel / 2595) - 1)
    bins, bands = np.linspace(0, 8000, 201), []
    for low, centre in pairwise(hertz[:-1]):
        bands.append(np.maximum(0, 1 - np.abs(bins - centre) / (centre - low)))
    decibels = 10 * np.log10(np.maximum(power @ np.array(bands).T, 1e-10))
    decibels = np.maximum(decibels, decibels.max() - 80)
    return (decibels - decibels.mean(axis=0)).T


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    from earmark.networks.ecapa import EcapaTdnn

    torch.manual_seed(0)
    network = EcapaTdnn(width=16, gathered=24, dimension=12, narrow=6, attention=5, scale=4)
    state = {
        name: value if "num_batches" in name else 0.5 + torch.rand_like(value) if "running_var" in name
        else 0.3 * torch.randn_like(value) for name, value in network.state_dict().items()
    }  # fmt: skip
    place = tmp_path_factory.mktemp("ecapa") / "embedding_model.ckpt"
    torch.save(state, place)
    return place


def test_ecapa_by_its_checkpoint_is_the_network_by_hand(checkpoint: Path) -> None:
    import torch

    task = Verification(f"ecapa:{checkpoint}?allow_pickle=true")
    rng = np.random.default_rng(0)
    sounds = [rng.standard_normal(count).astype(np.float32) / 5 for count in (16000, 9000)]
    state = torch.load(checkpoint, weights_only=True)
    for sound, frames in zip(sounds, task.extractor.extract(sounds), strict=True):
        features = torch.from_numpy(plain_features(sound)).float()[None]
        expected = plain_ecapa(state, features, 4).numpy()
        assert frames.values.shape == (1, 12)
        np.testing.assert_allclose(frames.values, expected, rtol=2e-3, atol=2e-3)
    assert task.extractor.card.dimension == 12
    assert task.extractor.extract([np.zeros(10, np.float32)])[0].values.shape == (1, 12)


def test_ecapa_of_full_size_has_the_published_parameters() -> None:
    torch = pytest.importorskip("torch")
    from earmark.networks.ecapa import EcapaTdnn
    from earmark.probes.asv import ECAPA_CARD

    with torch.device("meta"):
        assert sum(one.numel() for one in EcapaTdnn().parameters()) == ECAPA_CARD.parameters


def test_a_file_that_is_no_ecapa_is_told(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"weights": torch.zeros(2)}, tmp_path / "other.ckpt")
    with pytest.raises(InputError, match="no ECAPA-TDNN"):
        Verification(f"ecapa:{tmp_path / 'other.ckpt'}?allow_pickle=true")
    with pytest.raises(InputError, match=r"embedding_model\.ckpt"):
        Verification("ecapa")
