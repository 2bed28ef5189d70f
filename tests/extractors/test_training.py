"""The training loop on a network of a few numbers, and the sounds it learns from, in memory and on disk."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from earmark.errors import InputError  # noqa: E402
from earmark.extractors import training  # noqa: E402
from earmark.extractors.baselines import MOST_PATCHES, ClipAe, PatchVae  # noqa: E402
from earmark.extractors.training import Recipe, train  # noqa: E402
from earmark.extractors.training_sounds import Sounds  # noqa: E402


class Level(torch.nn.Module):  # type: ignore[misc,name-defined]
    """One number, which is to be that of the examples."""

    def __init__(self) -> None:
        super().__init__()
        self.level = torch.nn.Parameter(torch.zeros(1))


def trained(targets: list[float], recipe: Recipe, **options: Any) -> tuple[Level, training.Trained, list[list[int]]]:
    network, asked = Level(), []

    def load(indices: list[int]) -> Any:
        asked.append(indices)
        return torch.tensor([targets[index] for index in indices])[:, None]

    def loss(batch: Any, generator: Any) -> Any:
        return (network.level - batch).square().mean()

    return network, train(network, loss, load, len(targets), recipe, **options), asked


def plain(**changes: Any) -> Recipe:
    return Recipe(**{"epochs": 3, "batch": 4, "rate": 0.1, "optimiser": "SGD", "patience": 0, **changes})


def test_each_epoch_sees_every_example_once_in_another_order() -> None:
    _, found, asked = trained(list(range(8)), plain())
    epochs = [sorted(asked[2 * epoch] + asked[2 * epoch + 1]) for epoch in range(3)]
    assert epochs == [list(range(8))] * 3
    assert asked[0] + asked[1] != asked[2] + asked[3]
    assert [entry["epoch"] for entry in found.history] == [1, 2, 3]
    assert all("held_out" not in entry for entry in found.history)


def test_what_fills_no_batch_is_left_out_unless_it_is_all_there_is() -> None:
    assert [len(batch) for batch in trained([1.0] * 10, plain(epochs=1))[2]] == [4, 4]
    assert [len(batch) for batch in trained([1.0] * 10, plain(epochs=1, drop_last=False))[2]] == [4, 4, 2]
    assert [len(batch) for batch in trained([1.0] * 3, plain(epochs=1))[2]] == [3]


def test_a_step_is_gradient_descent_and_the_loss_is_the_mean() -> None:
    network, found, _ = trained([1.0] * 4, plain(epochs=2))
    assert [entry["train"] for entry in found.history] == pytest.approx([1.0, 0.8**2])
    assert network.level.item() == pytest.approx(1 - 0.8**2)


def test_gradients_are_clipped() -> None:
    network, _, _ = trained([1.0] * 4, plain(epochs=1, clip=0.5))
    assert network.level.item() == pytest.approx(0.1 * 0.5, rel=1e-4)


@pytest.mark.parametrize(("keep", "level"), [("last", 2.2 + 2.2 * (1 - 2.2)), ("best", 2.2)])
def test_the_last_or_the_best_weights_remain(keep: Any, level: float) -> None:
    """A rate of 1.1 overshoots: the loss grows with every epoch."""
    network, found, _ = trained([1.0] * 4, plain(epochs=2, rate=1.1, keep=keep))
    assert len(found.history) == 2
    assert network.level.item() == pytest.approx(level, rel=1e-5)


def test_training_ends_after_epochs_without_a_smaller_loss() -> None:
    _, found, _ = trained([1.0] * 4, plain(epochs=20, rate=1.1, patience=3))
    assert len(found.history) == 4
    assert len(trained([1.0] * 4, plain(epochs=20, rate=1.1, patience=0))[1].history) == 20


def test_the_rate_halves_on_a_plateau() -> None:
    _, found, _ = trained([1.0] * 4, plain(epochs=9, rate=1.0, plateau=True))  # jumps from 0 to 2 and back
    assert [entry["rate"] for entry in found.history] == [1.0] * 7 + [0.5] * 2


def test_held_out_examples_are_watched_and_not_learnt_from() -> None:
    _, found, asked = trained([1.0] * 20, plain(epochs=2, held_out=0.2))
    assert [entry["held_out"] for entry in found.history] == pytest.approx([0.8**8, 0.8**16])
    learnt = {index for batch in asked[:4] for index in batch}
    watched = set(asked[4])
    assert len(learnt) == 16
    assert len(watched) == 4
    assert not learnt & watched


def test_a_loss_that_is_no_number_ends_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"diverged in epoch 1 \(the loss is nan\)"):
        trained([math.nan] * 4, plain())


def test_mixed_precision_is_for_a_gpu() -> None:
    both = [trained([1.0] * 4, plain(mixed=mixed))[1].history for mixed in (False, True)]
    assert both[0] == both[1]


def test_checkpoints_are_not_written_more_often_than_that_and_shrink_at_the_end(tmp_path: Path) -> None:
    place = tmp_path / "c.pt"
    sizes: list[int] = []
    trained([1.0] * 4, plain(), checkpoint=place, tell=lambda _: sizes.append(place.exists()))
    assert sizes == [False, False, True]
    assert set(torch.load(place, weights_only=True)) == {"fingerprint", "best", "history", "finished", "extras"}
    network, found, asked = trained([1.0] * 4, plain(), checkpoint=place)
    assert not asked
    assert len(found.history) == 3
    assert network.level.item() == pytest.approx(1 - 0.8**3)


# --- recipes -------------------------------------------------------------------------------------------------


def test_the_authors_recipes() -> None:
    released, text, ae = PatchVae.recipes["released"], PatchVae.recipes["text"], ClipAe.recipes["released"]
    assert (released.optimiser, released.rate, released.batch, released.epochs) == ("Adam", 1e-3, 64, 50)
    assert (released.patience, released.keep, released.mixed) == (0, "last", False)
    assert (text.patience, text.keep) == (10, "best")
    assert (ae.optimiser, ae.rate, ae.weight_decay, ae.batch, ae.clip) == ("AdamW", 3e-4, 1e-2, 128, 1.0)
    assert (ae.plateau, ae.patience, ae.epochs, ae.mixed) == (True, 10, 50, True)


def test_a_batch_of_the_vae_is_of_clips_or_of_patches_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatchVae, "widths", {"channels": (1,) * 7, "hidden": (2, 2, 2)})
    sounds = Sounds()
    for seconds in [5] * 70 + [60] * 10:
        sounds.lengths.append(16000 * seconds)
    for kind, most in (("released", 64), ("text", 64)):
        model = PatchVae(kind)
        units = model.examples(sounds)
        assert sum(map(len, units)) == 70 * 4 + 10 * 59
        assert len(units) == (80 if kind == "released" else 70 * 4 + 10 * 59)
        cut = model.batches(units)(range(len(units)))
        assert [index for batch in cut for index in batch] == list(range(len(units)))
        assert max(map(len, cut)) == most
        assert max(sum(len(units[index]) for index in batch) for batch in cut) <= MOST_PATCHES


# --- sounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [1 << 30, 1000])
def test_spans_of_sounds_in_memory_and_on_disk(in_memory: int, tmp_path: Path) -> None:
    waves = [np.random.default_rng(n).standard_normal(n).astype(np.float32) for n in (1, 30, 500, 2000, 7)]
    sounds = Sounds(in_memory=in_memory, folder=tmp_path)
    for wave in waves:
        sounds.add(wave)
    sounds.settle("cpu")
    assert (sounds._file is not None) == (in_memory == 1000)
    clips, starts = [0, 1, 2, 3, 3, 4], [0, 20, 0, 1500, 1999, 3]
    expected = np.zeros((6, 600), np.float32)
    for row, (clip, start) in enumerate(zip(clips, starts, strict=True)):
        own = waves[clip][start : start + 600]
        expected[row, : len(own)] = own
    np.testing.assert_array_equal(sounds.spans(clips, starts, 600, "cpu").numpy(), expected)
    sounds.move("cpu")  # as on a GPU
    np.testing.assert_array_equal(sounds.spans(clips, starts, 600, "cpu").numpy(), expected)
    sounds.close()
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_is_one_sentence(tmp_path: Path) -> None:
    sounds = Sounds(in_memory=0, folder=tmp_path / "missing")
    with pytest.raises(InputError, match=r"missing has no room for the sounds to learn from \(No such file"):
        sounds.add(np.zeros(5, np.float32))
