"""The models that learn: tiny trainings of narrow networks, killed and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from earmark.corpora.clips import Clip  # noqa: E402
from earmark.errors import InputError, UsageError  # noqa: E402
from earmark.extractors import baselines, training  # noqa: E402
from earmark.extractors.catalogue import open_extractor  # noqa: E402

NAMES = ("vae", "ae")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Narrow layers, every epoch saved, one thread: more are slower on a busy machine."""
    monkeypatch.setattr(baselines.PatchVae, "widths", {"channels": (2,) * 7, "hidden": (16, 8, 8)})
    monkeypatch.setattr(baselines.ClipAe, "widths", {"channels": (2, 2, 4, 4)})
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def glides(count: int = 12, seconds: float = 1.0) -> list[np.ndarray]:
    time = np.arange(int(16000 * seconds)) / 16000
    rise = np.hanning(len(time))
    return [(rise * np.sin(2 * np.pi * (300 + 200 * k + 500 * time) * time)).astype(np.float32) for k in range(count)]


class Killed(Exception):
    pass


def fitted(name: str, **options: Any) -> Any:
    model = open_extractor(name, **{"epochs": 2, "device": "cpu", **options})
    model.fit(glides())
    return model


@pytest.mark.parametrize("name", NAMES)
def test_shapes_follow_the_clip(name: str) -> None:
    """Patches of 2 s every second; 16 steps of half a second, of which some heard sound."""
    model = fitted(name, epochs=1)
    samples = [1, 400, 16000, 80000, 160000]
    found = model.extract([np.ones(n, np.float32) for n in samples])
    frames = {"vae": [1, 1, 1, 4, 9], "ae": [16] * 5}[name]
    valid = {"vae": frames, "ae": [1, 1, 2, 10, 16]}[name]
    assert [f.values.shape for f in found] == [(n, model.card.dimension) for n in frames]
    assert [f.valid for f in found] == valid
    assert all(f.values.dtype == np.float32 for f in found)


def test_the_vector_is_the_mean_of_the_codes_and_the_sequence_is_a_choice() -> None:
    """As the released code averages: latent means over patches; the code over frequency and time, padding included."""
    from earmark.embedding import embed_audio
    from earmark.networks import autoencoder_inputs as inputs

    wave = glides(1, 4.0)[0]
    clips = [Clip(str(k), samples=sound, rate=16000) for k, sound in enumerate([*glides(4), wave])]
    peak = torch.from_numpy(wave / np.abs(wave).max())
    vae, ae = fitted("vae"), fitted("ae")
    with torch.no_grad():
        patches = torch.stack([peak[start : start + inputs.PATCH] for start in inputs.patch_starts(len(peak))])
        means = vae.network.encode(inputs.patch_spectrograms(patches))[0]
        whole = torch.nn.functional.pad(peak, (0, 511 * 256 - len(peak)))[None]
        code = ae.network.encoder(inputs.clip_spectrograms(whole))[0]
    assert embed_audio(clips, vae).vectors[-1] == pytest.approx(means.mean(0).numpy(), abs=1e-5)
    assert embed_audio(clips, ae).vectors[-1] == pytest.approx(code.mean((1, 2)).numpy(), abs=1e-5)
    sequence = embed_audio(clips, ae, "flatten").vectors[-1].reshape(256, 16)
    assert sequence == pytest.approx(code.mean(1).numpy(), abs=1e-5)


def test_a_longer_window_of_the_ae() -> None:
    model = fitted("ae", frames=64, epochs=1)
    assert model.card.context_seconds == pytest.approx(63 * 256 / 16000)
    assert model.extract(glides(1, 3.0))[0].values.shape == (2, 256)
    with pytest.raises(UsageError, match="multiple of 32 frames, not 100"):
        open_extractor("ae", frames=100)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_and_is_deterministic(name: str) -> None:
    first, second = fitted(name, epochs=4), fitted(name, epochs=4)
    losses = [entry["train"] for entry in first.history]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    clip = glides(1)
    np.testing.assert_array_equal(first.extract(clip)[0].values, second.extract(clip)[0].values)
    third = fitted(name, epochs=4, seed=1)
    assert (first.extract(clip)[0].values != third.extract(clip)[0].values).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("killed_after", [1, 3])
def test_killed_and_resumed_is_the_same_training(name: str, killed_after: int, tmp_path: Path) -> None:
    whole = fitted(name, epochs=4)

    def kill(done: int, total: int) -> None:
        if done == killed_after:
            raise Killed

    place = tmp_path / "model.pt"
    with pytest.raises(Killed):
        open_extractor(name, epochs=4, device="cpu").fit(glides(), progress=kill, checkpoint=place)  # type: ignore[attr-defined]
    epochs: list[int] = []
    resumed: Any = open_extractor(name, epochs=4, device="cpu")
    resumed.fit(glides(), progress=lambda done, total: epochs.append(done), checkpoint=place)
    assert epochs == list(range(killed_after + 1, 5))
    assert resumed.history == whole.history
    for key, weights in whole.network.state_dict().items():
        assert torch.equal(weights, resumed.network.state_dict()[key]), key


def test_a_finished_checkpoint_is_loaded_and_another_subsets_is_not(tmp_path: Path) -> None:
    place = tmp_path / "model.pt"
    calls: list[int] = []
    for sounds in (glides(), glides(), glides(11)):
        model: Any = open_extractor("vae", epochs=2, device="cpu")
        model.fit(sounds, progress=lambda done, total: calls.append(done), checkpoint=place)
        assert model.fitted
        assert len(model.history) == 2
    assert calls == [1, 2, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "model.pt"
    place.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match=r"model\.pt is not a readable checkpoint"):
        open_extractor("ae", epochs=1).fit(glides(), checkpoint=place)  # type: ignore[attr-defined]


def test_the_text_s_recipe_and_others() -> None:
    text, released = fitted("vae", recipe="text"), fitted("vae", held_out=0.25)
    assert (text.model.kind, text.model.batch_of, text.model.recipe.patience) == ("text", "patches", 10)
    assert (released.model.batch_of, released.model.recipe.patience) == ("clips", 0)
    assert [sorted(entry) for entry in released.history] == [["epoch", "held_out", "rate", "train"]] * 2
    wave = glides(1)
    assert (text.extract(wave)[0].values != released.extract(wave)[0].values).any()
    with pytest.raises(UsageError, match=r"no recipe 'texts'.*Did you mean \"text\""):
        open_extractor("vae", recipe="texts")
    with pytest.raises(UsageError, match="clips or of patches, not of songs"):
        open_extractor("vae", batch_of="songs")
    with pytest.raises(UsageError, match=r"ae has no option 'frame'\. Did you mean .frames"):
        open_extractor("ae", frame=64)
    with pytest.raises(UsageError, match="at least one epoch"):
        open_extractor("vae", epochs=0)


def test_sounds_on_disk_teach_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.extractors import learned
    from earmark.extractors.training_sounds import Sounds

    kept = fitted("vae").history
    made: list[Sounds] = []

    def small(**options: Any) -> Sounds:
        made.append(Sounds(in_memory=1000, **options))
        return made[-1]

    monkeypatch.setattr(learned, "Sounds", small)
    assert fitted("vae").history == kept
    assert made[0]._file is not None


def test_it_learns_from_the_subsets_that_are_named() -> None:
    from earmark.embedding import embed_audio

    clips = [Clip(str(k), samples=wave, rate=16000, subset="AB"[k % 2]) for k, wave in enumerate(glides(8))]
    named: Any = open_extractor("ae", epochs=1, device="cpu", trained_on="A")
    assert named.trained_on == ("A",)
    assert named.card.title.endswith("trained on A")
    embed_audio(clips, named)
    alone: Any = open_extractor("ae", epochs=1, device="cpu")
    alone.fit(clips[::2])
    assert named.history == alone.history
    with pytest.raises(UsageError, match="learn from 'C', and the subsets here are A, B"):
        embed_audio(clips, open_extractor("ae", trained_on=["A", "C"]))
    with pytest.raises(UsageError, match="names of subsets"):
        open_extractor("ae", trained_on="A++B")
    with pytest.raises(UsageError, match="names of subsets"):
        open_extractor("ae?trained_on=")


def test_company_changes_nothing() -> None:
    batch = [glides(1, seconds)[0] for seconds in (0.3, 2.0, 1.0)]
    for name in NAMES:
        model = fitted(name)
        for alone, beside in zip((model.extract([w])[0] for w in batch), model.extract(batch), strict=True):
            np.testing.assert_array_equal(alone.values, beside.values)


def test_clips_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    clips = [Clip(str(k), samples=wave, rate=16000) for k, wave in enumerate(glides(4))]
    bad = Clip("bad", path=str(tmp_path / "missing.wav"))
    with_bad: Any = open_extractor("vae", epochs=1, device="cpu")
    with_bad.fit([*clips, bad])
    assert with_bad.fitted
    with pytest.raises(InputError, match="no readable clip"):
        open_extractor("vae", epochs=1).fit([bad])  # type: ignore[attr-defined]


def test_it_must_learn_before_it_is_used(tmp_path: Path) -> None:
    model: Any = open_extractor("vae")
    with pytest.raises(UsageError, match="call fit"):
        model.extract(glides(1))
    with pytest.raises(UsageError, match="nothing to show"):
        model.reconstruction_figure(tmp_path / "figure.png")


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_drawn_also_after_loading(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for _ in range(2):
        model: Any = open_extractor(name, epochs=1, device="cpu")
        model.fit(glides(3), checkpoint=tmp_path / "model.pt")
        model.reconstruction_figure(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5000
