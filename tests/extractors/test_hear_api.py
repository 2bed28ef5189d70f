"""Any extractor as a module with the HEAR API: what the validator of HEAR asks for, where frames lie, the way back.

The checks are those of the package hearvalidator, which needs TensorFlow to be imported.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.cli.verbs import runner

from earmark.cli import extractors
from earmark.errors import InputError, UsageError
from earmark.extractors.catalogue import installed, is_ready, open_extractor
from earmark.extractors.hear_api import frame_centres, hear_functions, module_text
from earmark.extractors.model_cards import CARDS

torch = pytest.importorskip("torch", reason="torch is not installed")


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, samples).astype(np.float32)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What writes a module by the command line and imports it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    run = runner("extractors", extractors, capsys)
    made: list[str] = []

    def write(spec: str, *flags: str) -> ModuleType:
        name = f"hear_{len(made)}_{abs(hash(tmp_path)) % 10**9}"
        code, stdout, stderr = run("hear", spec, "--into", f"{name}.py", *flags)
        assert (code, stderr) == (0, "")
        assert stdout.startswith(f"{name}.py: load_model, ")
        made.append(name)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in made:
        sys.modules.pop(name, None)


def validate(module: ModuleType) -> None:
    """HEAR's own checks, as its validator makes them."""
    model = module.load_model()
    assert isinstance(model, torch.nn.Module)
    assert model.sample_rate in (16000, 22050, 44100, 48000)
    assert isinstance(model.scene_embedding_size, int)
    assert isinstance(model.timestamp_embedding_size, int)
    audio = 2 * torch.rand(4, 2 * model.sample_rate) - 1
    embeddings, stamps = module.get_timestamp_embeddings(audio, model.to("cpu"))
    assert embeddings.dtype == torch.float32
    assert embeddings.shape[:2] == stamps.shape
    assert (embeddings.shape[0], embeddings.shape[2]) == (4, model.timestamp_embedding_size)
    steps = torch.diff(stamps)
    assert bool(torch.all((steps - steps.mean()).abs() < 1e-3 * stamps.abs().max().clamp(min=1)))
    scenes = module.get_scene_embeddings(2 * torch.rand(3, int(3.74 * model.sample_rate)) - 1, model)
    assert scenes.dtype == torch.float32
    assert scenes.shape == (3, model.scene_embedding_size)


@pytest.mark.parametrize("flags", [(), ("--pooling", "max_time"), ("--window", "0.25", "--hop", "0.1")])
@pytest.mark.parametrize("spec", ["logmel", "mfcc", "logmel?hop=160"])
def test_a_written_module_follows_the_api_and_comes_back_as_the_extractor(
    module: Any, spec: str, flags: tuple[str, ...]
) -> None:
    made = module(spec, *flags)
    validate(made)
    back, own = open_extractor(f"hear:{made.__name__}"), open_extractor(spec)
    clip = noise(20000)
    if "--window" not in flags:
        np.testing.assert_array_equal(back.extract([clip])[0].values, own.extract([clip])[0].values)
        assert back.card.dimension == own.card.dimension
        assert back.card.frame_rate == pytest.approx(own.card.frame_rate or 0.5, rel=1e-3)
    scene = open_extractor(f"hear:{made.__name__}", kind="scene").extract([clip])[0].values
    frames = own.extract([clip])[0].values
    expected = frames.max(axis=0) if "max_time" in flags else frames.mean(axis=0)
    np.testing.assert_allclose(scene[0], expected, rtol=1e-5)


def test_a_packaged_encoder_validates_too(module: Any) -> None:
    if not is_ready(CARDS["speech_embedding"]):
        pytest.skip("speech_embedding is not here")
    made = module("speech_embedding")
    validate(made)
    clip = noise(30000)
    back, own = open_extractor(f"hear:{made.__name__}"), open_extractor("speech_embedding")
    np.testing.assert_array_equal(back.extract([clip])[0].values, own.extract([clip])[0].values)


def loudest(spec: str, at: float, seconds: float) -> tuple[float, float]:
    """The timestamp of the frame that a click at a time changes most, and the distance between frames; seconds."""
    load_model, get_timestamps, _ = hear_functions(spec)
    model = load_model()
    quiet = 0.05 * noise(round(seconds * model.sample_rate))
    click = quiet.copy()
    click[round(at * model.sample_rate)] += 1.0
    (before, stamps), (after, _) = (get_timestamps(torch.from_numpy(each)[None], model) for each in (quiet, click))
    changes = (after - before).abs().sum(2)[0]
    return float(stamps[0, int(changes.argmax())]) / 1000, float(stamps[0, 1] - stamps[0, 0]) / 1000


@pytest.mark.parametrize("at", [0.4, 0.613, 1.1])
@pytest.mark.parametrize("seconds", [1.5, 1.534])
def test_timestamps_are_where_a_click_is_heard(at: float, seconds: float) -> None:
    heard, step = loudest("logmel", at, seconds)
    assert abs(heard - at) <= step / 2 + 1e-3


def test_a_first_centre_that_is_stated_and_frames_about_the_middle() -> None:
    logmel = open_extractor("logmel")
    np.testing.assert_allclose(frame_centres(logmel, 16000, 3), [0, 0.016, 0.032])
    mfcc = open_extractor("mfcc")
    np.testing.assert_allclose(frame_centres(mfcc, 16000, 1), [0.5])

    class Windows:
        """Windows of a second side by side; a clip lies in the middle of them."""

        card = CARDS["logmel"].__class__("windows", rate=100, frame_rate=1.0)

    np.testing.assert_allclose(frame_centres(Windows(), 250, 3), [0.25, 1.25, 2.25])  # type: ignore[arg-type]


def test_windows_of_a_clip_level_extractor_are_centred_on_their_timestamps() -> None:
    load_model, get_timestamps, _ = hear_functions("mfcc", window=0.2, hop=0.1)
    model = load_model()
    clip = noise(16000)
    values, stamps = get_timestamps(torch.from_numpy(clip)[None], model)
    np.testing.assert_allclose(stamps[0], 50 + 100 * np.arange(10), atol=0.1)
    piece = clip[round(0.45 * 16000) - 1600 :][:3200]
    np.testing.assert_allclose(values[0, 4], open_extractor("mfcc").extract([piece])[0].values[0], rtol=1e-5)


def test_another_checkpoint_comes_in_by_the_path(tmp_path: Path) -> None:
    if not installed(CARDS["hubert"]):
        pytest.skip("earmark[models] is not installed")
    from tests.extractors import tiny_models

    place = tiny_models.speech("Hubert", tmp_path / "hubert")
    load_model, get_timestamps, _ = hear_functions("hubert?device=cpu&layer=2")
    model = load_model(str(place))
    clip = noise(16000)
    values, stamps = get_timestamps(torch.from_numpy(clip)[None], model)
    own = open_extractor(f"hubert:{place}?device=cpu&layer=2").extract([clip])[0].values
    np.testing.assert_array_equal(values[0].numpy(), own)
    np.testing.assert_allclose(stamps[0, :2], [12.5, 32.5])


def test_what_cannot_be_a_hear_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = runner("extractors", extractors, capsys)
    (tmp_path / "there.py").write_text("")
    for flags, words in {
        ("logmel", "--into", "there.py"): "is there already",
        ("logmel", "--into", "not-a-name.py"): "cannot be imported: give a name such as my_model.py",
        ("logmel", "--into", "none/new.py"): "The folder none does not exist",
        ("logmell", "--into", "new.py"): 'Did you mean "logmel"',
        ("logmel", "--into", "new.py", "--pooling", "flatten"): "There is no pooling 'flatten' for a scene",
        ("logmel", "--into", "new.py", "--hop", "0.1"): "A hop needs a window too",
        ("logmel", "--into", "new.py", "--window", "0"): "window and hop are seconds above 0",
    }.items():
        code, stdout, stderr = run("hear", *flags)
        assert (code, stdout) == (2, "")
        assert words in stderr
    assert not (tmp_path / "new.py").exists()
    _, get_timestamps, _ = hear_functions("logmel")
    with pytest.raises(InputError, match="HEAR gives audio as a tensor"):
        get_timestamps(np.zeros((1, 100)), None)
    with pytest.raises(InputError, match="not one that load_model of this module made"):
        get_timestamps(torch.zeros(1, 100), torch.nn.Module())
    with pytest.raises(UsageError, match="window and hop"):
        module_text("logmel", window=-1.0)
