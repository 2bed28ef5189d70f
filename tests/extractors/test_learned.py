"""The models that learn: tiny trainings, killed and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from earmark.corpora.clips import Clip  # noqa: E402
from earmark.errors import InputError, UsageError  # noqa: E402
from earmark.extractors.catalogue import open_extractor  # noqa: E402

NAMES = ("vae", "ae")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small are slower on several threads, much slower on a busy machine."""
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
    model = fitted(name, epochs=1)
    lengths = {"vae": [1, 1, 1, 4, 9], "ae": [1, 1, 4, 20, 40]}[name]
    samples = [1, 400, 16000, 80000, 160000]
    found = model.extract([np.ones(n, np.float32) for n in samples])
    assert [f.values.shape for f in found] == [(n, model.card.dimension) for n in lengths]
    assert all(f.values.dtype == np.float32 and f.valid == len(f.values) for f in found)


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


def test_training_stops_after_epochs_without_improvement(monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.extractors import training

    losses = iter([5.0, 4.0, 4.0, 4.5, 4.2, 3.0])
    monkeypatch.setattr(training, "_evaluate", lambda *_: next(losses))
    model: Any = open_extractor("vae", epochs=50, patience=3, device="cpu")
    model.fit(glides())
    assert [entry["held_out"] for entry in model.history] == [5.0, 4.0, 4.0, 4.5, 4.2]


def test_the_ae_halves_its_rate_on_a_plateau(monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.extractors import training

    monkeypatch.setattr(training, "_evaluate", lambda *_: 1.0)
    model = fitted("ae", epochs=9)
    rates = [entry["rate"] for entry in model.history]
    assert rates[0] == pytest.approx(3e-4)
    assert rates[-1] == pytest.approx(1.5e-4)


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
