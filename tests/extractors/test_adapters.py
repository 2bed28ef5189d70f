"""Models in formats of others: each adapter on a real tiny model, against that model called directly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.extractors import tiny_onnx as onnx

from earmark.errors import EarmarkError, InputError, UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.conformance import check_extractor
from earmark.extractors.mel_front_end import MelFrontEnd

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

RANDOM = np.random.default_rng(0)
KERNELS = (0.05 * RANDOM.standard_normal((4, 1, 400))).astype(np.float32)
BANDS = RANDOM.standard_normal((20, 6)).astype(np.float32)
FRONT_END = {"n_fft": 512, "hop": 160, "mels": 20, "fmin": 60, "fmax": 3800}


def noise(samples: int, seed: int = 1) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal(samples)
    return (made / np.abs(made).max()).astype(np.float32)


def convolved(samples: np.ndarray) -> np.ndarray:
    """What the tiny waveform model computes: four kernels of 400 samples every 160."""
    return np.lib.stride_tricks.sliding_window_view(samples, 400)[::160] @ KERNELS[:, 0].T


def passes(model: Any) -> None:
    """Every check passes, but for the card, which knows no licence."""
    assert {finding.name for finding in check_extractor(model) if finding.status != "pass"} <= {"card"}


# --- ONNX -----------------------------------------------------------------------------------------------------


def wave_model(path: Path, shape: onnx.Shape) -> Path:
    """Samples of any declared shape to frames [B, T, 4]."""
    nodes = [
        onnx.node("Reshape", ["audio", "flat"], ["x"]),
        onnx.node("Conv", ["x", "kernels"], ["y"], strides=[160]),
        onnx.node("Transpose", ["y"], ["frames"], perm=[0, 2, 1]),
    ]
    weights = {"kernels": KERNELS, "flat": np.array([1, 1, -1])}
    return onnx.write(path, nodes, {"audio": shape}, {"frames": [1, "time", 4]}, weights)


@pytest.mark.parametrize("shape", [["samples"], ["batch", "samples"], ["batch", 1, "samples"]])
def test_an_onnx_model_of_samples(tmp_path: Path, shape: onnx.Shape) -> None:
    made = open_extractor(f"onnx:{wave_model(tmp_path / 'wave.onnx', shape)}")
    assert (made.card.name, made.card.rate, made.card.dimension) == ("wave", 16000, 4)
    assert made.card.frame_rate == pytest.approx(100, rel=0.03)
    clip = noise(4000)
    np.testing.assert_allclose(made.extract([clip])[0].values, convolved(clip), atol=1e-4)
    passes(made)


def test_an_input_of_fixed_length_is_given_windows_of_it(tmp_path: Path) -> None:
    made = open_extractor(f"onnx:{wave_model(tmp_path / 'wave.onnx', [1, 1600])}", hop=0.05)
    clip = noise(3200)
    expected = [convolved(clip[start : start + 1600]) for start in (0, 800, 1600)]
    np.testing.assert_allclose(made.extract([clip])[0].values, np.concatenate(expected), atol=1e-4)
    passes(made)


def mel_model(path: Path, shape: onnx.Shape, order: list[int]) -> Path:
    """A mel spectrogram to one vector: its mean over time, times a matrix."""
    nodes = [
        onnx.node("Transpose", ["mels"], ["ordered"], perm=order),
        onnx.node("Reshape", ["ordered", "flat"], ["x"]),
        onnx.node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        onnx.node("MatMul", ["mean", "bands"], ["vector"]),
    ]
    weights = {"bands": BANDS, "flat": np.array([-1, 20])}
    return onnx.write(path, nodes, {"mels": shape}, {"vector": [1, 6]}, weights)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        (["batch", "time", 20], [0, 1, 2]),
        (["batch", 20, "time"], [0, 2, 1]),
        (["batch", 1, "time", 20], [0, 1, 2, 3]),
        (["batch", 20, "time", 1], [0, 3, 2, 1]),
    ],
)
def test_a_mel_spectrogram_is_described_beside_the_model(tmp_path: Path, shape: onnx.Shape, order: list[int]) -> None:
    file = mel_model(tmp_path / "mel.onnx", shape, order)
    said = {"front_end": FRONT_END, "card": {"short_name": "MEL", "licence": "CC0-1.0", "title": "Tiny"}}
    (tmp_path / "mel.yaml").write_text(yaml.safe_dump(said))
    made = open_extractor(f"onnx:{file}")
    clip = noise(8000)
    expected = MelFrontEnd.of(FRONT_END)(clip).mean(axis=0) @ BANDS
    np.testing.assert_allclose(made.extract([clip])[0].values, expected[None], atol=1e-3)
    assert made.card.frame_rate is None
    assert all(finding.status == "pass" for finding in check_extractor(made))


def test_mel_frames_of_fixed_number_and_windows_of_asked_length(tmp_path: Path) -> None:
    fixed = mel_model(tmp_path / "fixed.onnx", [1, 1, 76, 20], [0, 1, 2, 3])
    made = open_extractor(f"onnx:{fixed}", front_end=FRONT_END)
    clip = noise(512 + 75 * 160)  # 76 frames
    expected = MelFrontEnd.of(FRONT_END)(clip).mean(axis=0) @ BANDS
    np.testing.assert_allclose(made.extract([clip])[0].values, expected[None], atol=1e-3)
    free = mel_model(tmp_path / "free.onnx", [1, "time", 20], [0, 1, 2])
    windows = open_extractor(f"onnx:{free}", front_end=FRONT_END, seconds=0.25)
    assert windows.extract([noise(16000)])[0].values.shape == (4, 6)
    assert windows.card.frame_rate == 4


def test_the_setup_is_part_of_the_version_and_so_of_every_cache_key(tmp_path: Path) -> None:
    file = mel_model(tmp_path / "mel.onnx", [1, "time", 20], [0, 1, 2])
    versions = {
        open_extractor(f"onnx:{file}", front_end=FRONT_END | {"power": power}).card.version for power in (1.0, 2.0)
    }
    assert len(versions) == 2


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "describe its mel spectrogram as front_end"),
        ({"front_end": {"mels": 21}}, "does not tell which axis is time"),
        ({"front_end": {"melz": 20}}, 'Did you mean "mels"'),
        ({"front_end": FRONT_END, "output": "vektor"}, 'Did you mean "vector"'),
        ({"front_end": FRONT_END, "layout": ["batch", "time"]}, "has 3 axes"),
        ({"front_end": FRONT_END, "layout": ["batch", "mel", "zeit"]}, "made of batch, channel, time, mel"),
        ({"front_end": FRONT_END, "output_layout": ["batch", "time", "feature"]}, "returned an array of shape"),
        ({"front_end": FRONT_END, "hop": 0.1}, "a hop needs seconds"),
        ({"front_end": FRONT_END, "seconds": -1}, "must be positive"),
        ({"front_end": FRONT_END, "seconds": 0.5, "hop": 0.6}, "would not hear what lies between"),
        ({"front_end": FRONT_END, "card": {"license": "MIT"}}, 'Did you mean "licence"'),
    ],
)
def test_what_an_onnx_file_cannot_be_given_is_said(tmp_path: Path, parameters: dict[str, Any], words: str) -> None:
    file = mel_model(tmp_path / "mel.onnx", [1, "time", 20], [0, 1, 2])
    with pytest.raises(EarmarkError, match=words):
        open_extractor(f"onnx:{file}", **parameters)


def test_files_that_are_not_there_or_not_onnx(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_extractor(f"onnx:{tmp_path / 'none.onnx'}")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(InputError, match="cannot be opened as an ONNX model"):
        open_extractor(f"onnx:{tmp_path / 'text.onnx'}")
    wave_model(tmp_path / "wave.onnx", ["samples"])
    for text in ("rate: yes", "rate: 020000", "front_end: {mels: on}"):
        (tmp_path / "wave.yaml").write_text(text)
        with pytest.raises(UsageError, match=r"numbers, not yes or no|not a plain number|cannot be yes or no"):
            open_extractor(f"onnx:{tmp_path / 'wave.onnx'}")
    (tmp_path / "wave.yaml").write_text("ratte: 8000")
    with pytest.raises(UsageError, match=r"wave.yaml: unknown key 'ratte'. Did you mean \"rate\""):
        open_extractor(f"onnx:{tmp_path / 'wave.onnx'}")


# --- TorchScript ----------------------------------------------------------------------------------------------


class Tiny(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Samples [B, T] to (frames [B, 4, T'], their mean [B, 4])."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv1d(1, 4, 400, stride=160, bias=False)
        self.convolution.weight.data = torch.from_numpy(KERNELS)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        frames = self.dropout(self.convolution(samples[:, None]))
        return frames, frames.mean(dim=2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_torchscript_file(tmp_path: Path) -> None:
    torch.jit.script(Tiny()).save(tmp_path / "tiny.pt")  # in training mode: the adapter switches dropout off
    clip = noise(4000)
    frames = open_extractor(f"torchscript:{tmp_path / 'tiny.pt'}", output_layout=["batch", "feature", "time"])
    np.testing.assert_allclose(frames.extract([clip])[0].values, convolved(clip), atol=1e-4)
    passes(frames)
    whole = open_extractor(f"torchscript:{tmp_path / 'tiny.pt'}", output="1")
    np.testing.assert_allclose(whole.extract([clip])[0].values, convolved(clip).mean(axis=0)[None], atol=1e-4)
    with pytest.raises(UsageError, match="returns 2 tensors"):
        open_extractor(f"torchscript:{tmp_path / 'tiny.pt'}", output="2")
    with pytest.raises(UsageError, match="give a layout"):
        open_extractor(f"torchscript:{tmp_path / 'tiny.pt'}", front_end=FRONT_END)
    (tmp_path / "text.pt").write_text("no model")
    with pytest.raises(InputError, match="cannot be opened as a TorchScript file"):
        open_extractor(f"torchscript:{tmp_path / 'text.pt'}")


# --- HEAR -----------------------------------------------------------------------------------------------------

HEAR = """
import torch

class Model(torch.nn.Module):
    sample_rate, timestamp_embedding_size, scene_embedding_size = 8000, 3, 6

    def __init__(self, scale):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(scale))
        self.dropout = torch.nn.Dropout(0.5)

def load_model(model_file_path=""):
    return Model(float(open(model_file_path).read()) if model_file_path else 1.0)

def get_timestamp_embeddings(audio, model):
    frames = audio.unfold(1, 400, 200)
    values = torch.stack([frames.mean(2), frames.std(2), frames.abs().amax(2)], dim=2) * model.scale
    stamps = torch.arange(frames.shape[1]) * 25.0
    return model.dropout(values), stamps.repeat(len(audio), 1)

def get_scene_embeddings(audio, model):
    values, _ = get_timestamp_embeddings(audio, model)
    return torch.cat([values.mean(1), values.amax(1)], dim=1)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, from which modules are imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_module_with_the_hear_api(here: Path) -> None:
    (here / "tiny_hear.py").write_text(HEAR)
    (here / "scale.txt").write_text("2.0")
    made = open_extractor("hear:tiny_hear:scale.txt")
    assert (made.card.rate, made.card.dimension, made.card.frame_rate) == (8000, 3, 40)
    clip = noise(2000)
    frames = np.lib.stride_tricks.sliding_window_view(clip, 400)[::200]
    expected = 2 * np.stack([frames.mean(1), frames.std(1, ddof=1), np.abs(frames).max(1)], axis=1)
    np.testing.assert_allclose(made.extract([clip])[0].values, expected, atol=1e-6)
    passes(made)
    scene = open_extractor("hear:tiny_hear", kind="scene")
    assert (scene.card.dimension, scene.card.frame_rate) == (6, None)
    np.testing.assert_allclose(scene.extract([clip])[0].values[0, :3], expected.mean(axis=0) / 2, atol=1e-6)
    assert scene.card.version != made.card.version  # other weights


@pytest.mark.parametrize(
    ("module", "right", "wrong", "words"),
    [
        ("turned_hear", "return model.dropout(values),", "return values.transpose(1, 2),", "with 79 timestamps"),
        ("seconds_hear", "* 25.0", "* 0.025", "asks for milliseconds"),
        ("samples_hear", "* 25.0", "* 200", "asks for milliseconds"),
    ],
)
def test_axes_and_times_that_are_not_those_of_the_hear_api_are_told(
    here: Path, module: str, right: str, wrong: str, words: str
) -> None:
    (here / f"{module}.py").write_text(HEAR.replace(right, wrong))
    with pytest.raises(InputError, match=words):
        open_extractor(f"hear:{module}")


def test_what_does_not_follow_the_hear_api_is_said(here: Path) -> None:
    (here / "no_hear.py").write_text("get_scene_embeddings = load_model = lambda *given: None\n")
    with pytest.raises(InputError, match="states no sample_rate"):
        open_extractor("hear:no_hear")
    with pytest.raises(UsageError, match="no_hear has no get_timestamp_embeddings"):
        open_extractor("hear:no_hear", kind="timestamp")
    with pytest.raises(InputError, match="cannot be imported"):
        open_extractor("hear:nowhere.to.be.found")


# --- a function -----------------------------------------------------------------------------------------------

FUNCTIONS = """
import numpy as np

def plain(samples):
    return [samples.mean(), samples.std()]

def with_rate(samples, rate, scale=1.0):
    return scale * np.array([[samples.std(), rate]])

with_rate.rate = 8000

def make_nothing(samples, rate, weights):
    return samples
"""


def test_a_function_of_samples(here: Path) -> None:
    (here / "my_functions.py").write_text(FUNCTIONS)
    clip = noise(800)
    plain = open_extractor("my_functions:plain")
    np.testing.assert_allclose(plain.extract([clip])[0].values, [[clip.mean(), clip.std()]], rtol=1e-6)
    passes(plain)
    rated = open_extractor("my_functions:with_rate", scale=2.0)
    assert (rated.card.rate, rated.card.name) == (8000, "with_rate")
    np.testing.assert_allclose(rated.extract([clip])[0].values, [[2 * clip.std(), 16000]], rtol=1e-6)
    with pytest.raises(UsageError, match="takes no size"):
        open_extractor("my_functions:with_rate", size=3)
    with pytest.raises(UsageError, match="needs samples, rate, weights"):
        open_extractor("my_functions:make_nothing")


# --- sentence-transformers and mteb ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_a_sentence_transformers_model(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    transformers = pytest.importorskip("transformers")
    from tests.extractors.tiny_models import speech

    folder = speech("Wav2Vec2", tmp_path / "tiny")
    vocabulary = {mark: place for place, mark in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", "a"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    made = open_extractor(f"sentence-transformers:{folder}", local_files_only=True)
    assert (made.card.rate, made.card.dimension, made.card.frame_rate) == (16000, 32, None)
    clip = noise(4000)
    model = transformers.Wav2Vec2Model.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = model(torch.from_numpy(clip)[None]).last_hidden_state.mean(dim=1)
    np.testing.assert_allclose(made.extract([noise(9000, 2), clip])[1].values, expected.numpy(), atol=1e-5)
    passes(made)
    with pytest.raises(InputError, match="sentence-transformers cannot load"):
        open_extractor(f"sentence-transformers:{tmp_path / 'nothing'}", local_files_only=True)


MTEB = """
import torch
from mteb.models.abs_encoder import AbsEncoder

class Tiny(AbsEncoder):
    sampling_rate = 8000

    def __init__(self, model_name, revision, device=None, **given):
        self.network = torch.nn.Conv1d(1, 5, 80, stride=40, bias=False).requires_grad_(False)
        self.network.weight.copy_(torch.linspace(-1, 1, 400).reshape(5, 1, 80))

    def encode(self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **given):
        clips = [audio for batch in inputs for audio in batch["audio"]]
        assert all(audio["sampling_rate"] == 8000 for audio in clips)
        return torch.cat([self.network(torch.from_numpy(audio["array"])[None, None]).mean(-1) for audio in clips])
"""


@pytest.mark.filterwarnings("ignore")
def test_an_mteb_encoder(here: Path) -> None:
    pytest.importorskip("mteb", reason="mteb is not installed")
    (here / "tiny_mteb.py").write_text(MTEB)
    made = open_extractor("mteb:tiny_mteb:Tiny")
    assert (made.card.name, made.card.rate, made.card.frame_rate) == ("Tiny", 8000, None)
    clip = noise(800)
    kernels = np.linspace(-1, 1, 400).reshape(5, 80)
    expected = (np.lib.stride_tricks.sliding_window_view(clip, 80)[::40] @ kernels.T).mean(axis=0)
    np.testing.assert_allclose(made.extract([noise(2000, 2), clip])[1].values, expected[None], atol=1e-4)
    passes(made)


@pytest.mark.filterwarnings("ignore")
def test_what_mteb_cannot_load_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mteb", reason="mteb is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EarmarkError, match=r"^(mteb cannot load|laion/clap-htsat-fused needs a package)[^\n]*$"):
        open_extractor("mteb:laion/clap-htsat-fused")  # torchaudio, or the hub, is missing
