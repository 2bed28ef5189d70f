"""The training loop of models that learn from a subset's sounds: seeded, early stopping, killed and resumed.

    epoch:  shuffle --> batches --> step        every random number comes from one generator
            held-out loss                       no noise, no gradient; a tenth of the examples
            best so far? keep the weights       stop after `patience` epochs without improvement
            checkpoint                          written beside, then renamed: whole or not at all

A checkpoint holds everything the next epoch depends on, so a run that is killed and started again ends with the
same weights, bit for bit on the same CPU. It also holds a fingerprint of data and recipe; one of something else
is not resumed from.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from earmark.atomic import replacing
from earmark.errors import InputError, require


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. `plateau` halves the rate after 5 epochs without improvement."""

    epochs: int
    batch: int
    rate: float
    optimiser: str = "Adam"
    weight_decay: float = 0.0
    plateau: bool = False
    patience: int = 10
    held_out: float = 0.1
    seed: int = 0


class Trained(NamedTuple):
    """One dictionary per epoch (epoch, train, held_out, rate), and whether training came to its end."""

    history: list[dict[str, float]]
    finished: bool


def torch_of() -> Any:
    """torch, or one sentence that says how to install it."""
    return require("torch", "The VAE and the AE", "torch")


def resume(checkpoint: Path | None, fingerprint: str) -> dict[str, Any] | None:
    """The saved state, or None when there is none or it belongs to other data or another recipe."""
    if checkpoint is None or not checkpoint.exists():
        return None
    try:
        state = torch_of().load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(f"{checkpoint} is not a readable checkpoint ({error}): delete it to train anew.") from error
    return state if isinstance(state, dict) and state.get("fingerprint") == fingerprint else None


def train(
    network: Any,
    loss: Callable[[Any, Any], Any],
    load: Callable[[list[int]], Any],
    examples: int,
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    extras: dict[str, Any] | None = None,
    tell: Callable[[int], None] | None = None,
) -> Trained:
    """Train `network` (a torch module, left with its best weights).

    `load(indices)` makes a batch; `loss(batch, generator)` is its mean loss, without noise when the generator is
    None. `extras` are kept in the checkpoint. `tell(epoch)` is called after every epoch.
    """
    torch = torch_of()
    optimiser = getattr(torch.optim, recipe.optimiser)(
        network.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=5)
    generator = torch.Generator().manual_seed(recipe.seed)
    shuffled = torch.randperm(examples, generator=generator).tolist()
    aside = int(examples * recipe.held_out)
    held_out, kept = shuffled[:aside], shuffled[aside:]
    state: dict[str, Any] = {"epoch": 0, "stale": 0, "best_loss": float("inf"), "history": [], "finished": False}
    saved = resume(checkpoint, fingerprint)
    if saved is not None:
        state = saved
        network.load_state_dict(saved["network"])
        optimiser.load_state_dict(saved["optimiser"])
        schedule.load_state_dict(saved["schedule"])
        generator.set_state(saved["generator"])
    while not state["finished"]:
        learned = _epoch(network, optimiser, loss, load, kept, recipe.batch, generator)
        watched = _evaluate(network, loss, load, held_out, recipe.batch) if held_out else learned
        if not watched < float("inf"):
            raise InputError(f"Training diverged in epoch {state['epoch'] + 1} (the loss is {watched}).")
        rate = float(optimiser.param_groups[0]["lr"])
        if recipe.plateau:
            schedule.step(watched)
        better = watched < state["best_loss"]
        epoch = int(state["epoch"]) + 1
        stale = 0 if better else int(state["stale"]) + 1
        entry = {"epoch": float(epoch), "train": learned, "held_out": watched, "rate": rate}
        state = {
            "fingerprint": fingerprint,
            "epoch": epoch,
            "stale": stale,
            "best_loss": watched if better else state["best_loss"],
            "best": deepcopy(network.state_dict()) if better else state["best"],
            "history": [*state["history"], entry],
            "finished": epoch >= recipe.epochs or stale >= recipe.patience,
            "network": network.state_dict(),
            "optimiser": optimiser.state_dict(),
            "schedule": schedule.state_dict(),
            "generator": generator.get_state(),
            "extras": extras or {},
        }
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            with replacing(checkpoint) as part, part.open("wb") as handle:
                torch.save(state, handle)
        if tell is not None:
            tell(epoch)
    network.load_state_dict(state["best"])
    network.eval()
    return Trained(state["history"], True)


def _epoch(network: Any, optimiser: Any, loss: Any, load: Any, indices: list[int], batch: int, generator: Any) -> float:
    """One pass in random order; the mean loss over examples."""
    torch = torch_of()
    network.train()
    order = [indices[number] for number in torch.randperm(len(indices), generator=generator).tolist()]
    total = 0.0
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        value = loss(load(chosen), generator)
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        optimiser.step()
        total += float(value.detach()) * len(chosen)
    return total / len(order)


def _evaluate(network: Any, loss: Any, load: Any, indices: list[int], batch: int) -> float:
    torch = torch_of()
    network.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(indices), batch):
            chosen = indices[start : start + batch]
            total += float(loss(load(chosen), None)) * len(chosen)
    return total / len(indices)
