"""VGGish and CNN14 against slow implementations of what their authors describe, and files as they are published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.extractors import tiny_models
from tests.extractors.tiny_models import save_file, sound, torch

from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.networks.vggish import CONVOLUTIONS, LINEARS

Floats = NDArray[np.float64]


def mels(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + np.asarray(hertz) / 700.0)


def slow_mel(samples: NDArray[np.float32]) -> Floats:
    """Frame by frame and band by band: a periodic Hann window, magnitudes, triangles that are straight in mels."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    corners = np.linspace(mels(125.0), mels(7500.0), 66)
    bins = mels(np.arange(257) * 16000 / 512)
    rows = []
    for start in range(0, len(samples) - 399, 160):
        spectrum = np.abs(np.fft.rfft(samples[start : start + 400] * window, 512))
        bands = []
        for low, peak, high in zip(corners, corners[1:], corners[2:], strict=False):
            weights = np.clip(np.minimum((bins - low) / (peak - low), (high - bins) / (high - peak)), 0, None)
            bands.append(spectrum @ weights)
        rows.append(np.log(np.array(bands) + 0.01))
    return np.array(rows)


def convolve(image: Floats, weights: Floats, biases: Floats) -> Floats:
    """[H, W, in] by [3, 3, in, out], edges filled with zeros, then a ReLU."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    height, width, _ = image.shape
    parts = [
        padded[row : row + height, column : column + width] @ weights[row, column]
        for row in range(3)
        for column in range(3)
    ]
    return np.maximum(np.sum(parts, axis=0) + biases, 0.0)


def halve(image: Floats) -> Floats:
    height, width, depth = image.shape
    return image.reshape(height // 2, 2, width // 2, 2, depth).max(axis=(1, 3))


def slow_vggish(mel: Floats, state: dict[str, Floats]) -> Floats:
    """The authors' graph in the authors' names and order of axes, without its last ReLU."""
    values = mel[:, :, None]
    for name in CONVOLUTIONS:
        values = convolve(values, state[f"vggish/{name}/weights"], state[f"vggish/{name}/biases"])
        values = values if name.endswith("_1") else halve(values)
    flat = values.ravel()
    for name in LINEARS:
        flat = flat @ state[f"vggish/{name}/weights"] + state[f"vggish/{name}/biases"]
        flat = flat if name == "fc2" else np.maximum(flat, 0.0)
    return flat


def authors_state(widths: list[int], hidden: int, dimension: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {}
    entering = 1
    for name, width in zip(CONVOLUTIONS, widths, strict=True):
        shapes[name], entering = (3, 3, entering, width), width
    flat = 6 * 4 * entering
    shapes |= dict(zip(LINEARS, [(flat, hidden), (hidden, hidden), (hidden, dimension)], strict=True))
    state = {}
    for name, shape in shapes.items():
        state[f"vggish/{name}/weights"] = rng.normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[:-1]))
        state[f"vggish/{name}/biases"] = 0.2 * rng.normal(size=shape[-1]).astype(np.float32)
    return state


@pytest.fixture
def authors_file(tmp_path: Path) -> Path:
    state = authors_state(**tiny_models.VGGISH)
    np.savez(tmp_path / "vggish.npz", **state)
    (tmp_path / "config.json").write_text(tiny_models.json.dumps(tiny_models.VGGISH))
    return tmp_path / "vggish.npz"


def test_vggish_is_its_authors_graph(authors_file: Path) -> None:
    clips = [0.3 * sound(16000, seconds, seed) for seed, seconds in enumerate((2.5, 0.975, 0.4))]
    with np.load(authors_file) as arrays:
        state = {name: np.asarray(arrays[name], np.float64) for name in arrays}
    found = open_extractor(f"vggish:{authors_file}").extract(clips)
    assert [len(frames.values) for frames in found] == [2, 1, 1]
    for clip, frames in zip(clips, found, strict=True):
        mel = slow_mel(np.pad(clip, (0, max(0, 15600 - len(clip)))))
        for place, vector in enumerate(frames.values):
            expected = slow_vggish(mel[96 * place : 96 * place + 96], state)
            np.testing.assert_allclose(vector, expected, rtol=2e-4, atol=2e-5)
    half = open_extractor(f"vggish:{authors_file}", hop=0.5).extract(clips[:1])[0].values
    assert len(half) == 4
    np.testing.assert_allclose(half[1], slow_vggish(slow_mel(clips[0])[50:146], state), rtol=2e-4, atol=2e-5)


def test_vggish_may_end_in_a_relu_and_in_bytes(authors_file: Path, tmp_path: Path) -> None:
    clip = [0.3 * sound(16000, 1.0)]
    plain = open_extractor(f"vggish:{authors_file}").extract(clip)[0].values
    active = open_extractor(f"vggish:{authors_file}?activation=true").extract(clip)[0].values
    assert (plain < 0).any()
    np.testing.assert_array_equal(active, np.maximum(plain, 0))
    rng = np.random.default_rng(1)
    vectors, means = rng.normal(size=(12, 12)), rng.normal(size=(12, 1))
    np.savez(tmp_path / "pca.npz", pca_eigen_vectors=vectors, pca_means=means)
    rounded = open_extractor(f"vggish:{authors_file}?pca={tmp_path / 'pca.npz'}").extract(clip)[0].values
    expected = np.round((np.clip(vectors @ (plain.T - means), -2, 2).T + 2) * 255 / 4)
    assert np.abs(rounded - expected).max() <= 1  # a number on the edge may fall to either side
    assert (rounded == expected).mean() > 0.9
    with pytest.raises(InputError, match=r"give vggish_pca_params\.npz"):
        open_extractor(f"vggish:{authors_file}?pca={authors_file}")


def test_files_that_do_not_fit_are_told(tmp_path: Path, authors_file: Path) -> None:
    with pytest.raises(InputError, match=r"vggish has no weights of its own: download vggish-10086976.pth"):
        open_extractor("vggish")
    with pytest.raises(UsageError, match=r"A hop of 0.333 s is not possible"):
        open_extractor(f"vggish:{authors_file}", hop=0.333)
    state = authors_state(**tiny_models.VGGISH)
    del state["vggish/fc2/weights"]
    np.savez(authors_file, **state)
    with pytest.raises(InputError, match="lacks 1 of the tensors that vggish needs"):
        open_extractor(f"vggish:{authors_file}").extract([sound(16000, 1.0)])
    place = tiny_models.panns(tmp_path / "panns")
    with pytest.raises(InputError, match="none of 32000 Hz: give its rate"):
        open_extractor(f"panns:{place}", rate=32000, allow_pickle=True).extract([sound(32000, 1.0)])
    with pytest.raises(UsageError, match="PANNs hear 8000, 16000 or 32000 Hz, not 44100"):
        open_extractor(f"panns:{place}", rate=44100, allow_pickle=True)
    config = tiny_models.mert(tmp_path / "mert") / "config.json"
    config.write_text(config.read_text().replace('"feature_extractor_cqt": false', '"feature_extractor_cqt": true'))
    with pytest.raises(UsageError, match="has a constant-Q front end, which is not known here"):
        open_extractor(f"mert:{tmp_path / 'mert'}")


def test_cnn14_is_its_authors_description(tmp_path: Path) -> None:
    """Layer by layer on the tensors of the file: decibels, a norm per band, blocks, the greatest and mean in time."""
    place = tiny_models.panns(tmp_path / "panns")
    state = torch.load(place, weights_only=True)["model"]
    clip = 0.4 * sound(16000, 1.1)
    found = open_extractor(f"panns:{place}?allow_pickle=true").extract([clip])[0].values
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
    padded = np.pad(clip, 256, mode="reflect")
    frames = [padded[start : start + 512] * window for start in range(0, len(clip) + 1, 160)]
    powers = np.abs(np.fft.rfft(np.array(frames))) ** 2
    decibels = 10 * np.log10(np.maximum(powers @ state["logmel_extractor.melW"].numpy().astype(float), 1e-10))

    def norm(values: Any, name: str) -> Any:
        part = {key: state[f"{name}.{key}"].double() for key in ("running_mean", "running_var", "weight", "bias")}
        shape = (1, -1) if values.dim() == 2 else (-1, 1, 1)
        scaled = (values - part["running_mean"].reshape(shape)) / (part["running_var"].reshape(shape) + 1e-5).sqrt()
        return scaled * part["weight"].reshape(shape) + part["bias"].reshape(shape)

    values = norm(torch.from_numpy(decibels), "bn0")[None]
    for block in range(1, 7):
        for half in (1, 2):
            weights = state[f"conv_block{block}.conv{half}.weight"].double().permute(2, 3, 1, 0).numpy()
            padded = np.pad(values.permute(1, 2, 0).numpy(), ((1, 1), (1, 1), (0, 0)))
            height, width = values.shape[1:]
            parts = [padded[r : r + height, c : c + width] @ weights[r, c] for r in range(3) for c in range(3)]
            summed = torch.from_numpy(np.sum(parts, axis=0)).permute(2, 0, 1)
            values = norm(summed, f"conv_block{block}.bn{half}").clamp(min=0)
        if block < 6:
            depth, height, width = values.shape
            cut = values[:, : height // 2 * 2, : width // 2 * 2]
            values = cut.reshape(depth, height // 2, 2, width // 2, 2).mean(dim=(2, 4))
    over_bands = values.mean(dim=2)
    pooled = over_bands.max(dim=1).values + over_bands.mean(dim=1)
    expected = (state["fc1.weight"].double() @ pooled + state["fc1.bias"].double()).clamp(min=0)
    np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-3, atol=1e-4)


def test_laions_own_file_opens_as_the_checkpoint_of_the_hub(tmp_path: Path) -> None:
    """Names and the joined matrices of the authors' file, made back from a checkpoint of transformers."""
    torch.manual_seed(0)
    place = tiny_models.clap(tmp_path / "clap")
    clip = [sound(48000, 10.0)]
    expected = open_extractor(f"clap:{place}").extract(clip)[0].values
    state = tiny_models.load_file(place / "model.safetensors")
    found = tiny_models.published_htsat(state, "audio_model.audio_encoder.", "audio_branch.")
    for ours, theirs in (("linear1", "0"), ("linear2", "2")):
        found |= {f"audio_projection.{theirs}.{k}": state[f"audio_projection.{ours}.{k}"] for k in ("weight", "bias")}
    found["text_branch.embeddings.position_ids"] = torch.zeros(1)
    found = {f"module.{name}": value.clone() for name, value in found.items()}
    torch.save({"epoch": 1, "state_dict": found}, tmp_path / "best.pt")
    model = open_extractor(f"clap:{tmp_path / 'best.pt'}?allow_pickle=true")
    np.testing.assert_allclose(model.extract(clip)[0].values, expected, atol=1e-6)
    save_file({"other": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="is no file of LAION's CLAP without fusion"):
        open_extractor(f"clap:{tmp_path / 'other.safetensors'}")
