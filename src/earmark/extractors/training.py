"""The training loop of models that learn from a subset's sounds: seeded, early stopping, killed and resumed.

    epoch:  shuffle --> batches --> step        every random number comes from one generator
            held-out loss                       no noise, no gradient; where some examples are held out
            the loss that is watched            held-out where there is one, else that of training
            checkpoint, after SAVE_SECONDS      written beside, then renamed: whole or not at all

A checkpoint holds everything the next epoch depends on, so a run that is killed and started again ends with the
same weights, bit for bit on the same CPU. It also holds a fingerprint of data and recipe; one of something else
is not resumed from. When training ends the weights that are kept remain of it, and its history.

Losses are summed where the network is and read once an epoch. NumPy and torch suffice for this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from earmark.atomic import replacing
from earmark.errors import InputError, require


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. `plateau` halves the rate after 5 epochs without improvement.

    `patience` epochs without improvement end the training (0: never); `clip` is a gradient's largest norm (0: any);
    `mixed` is mixed precision (float16) on a GPU and nothing on a CPU; `drop_last` leaves out what fills no batch, if
    there is a full one.
    """

    epochs: int
    batch: int
    rate: float
    optimiser: str = "Adam"
    weight_decay: float = 0.0
    plateau: bool = False
    patience: int = 10
    held_out: float = 0.0
    keep: Literal["last", "best"] = "last"
    clip: float = 0.0
    mixed: bool = False
    drop_last: bool = True
    seed: int = 0


class Trained(NamedTuple):
    """One dictionary per epoch (epoch, train, rate; held_out where some are), and whether training came to its end."""

    history: list[dict[str, float]]
    finished: bool


VERSION = 2

SAVE_SECONDS = 10.0
"""Training that a kill may cost: epochs can be shorter than writing a checkpoint."""

Batches = Callable[[Sequence[int]], list[list[int]]]


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
    device: str = "cpu",
    batches: Batches | None = None,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    extras: dict[str, Any] | None = None,
    tell: Callable[[int], None] | None = None,
) -> Trained:
    """Train `network` (a torch module, left with the weights that are kept).

    `load(indices)` makes a batch, a tensor; `loss(batch, generator)` is its mean loss, without noise when the generator
    is None. `batches` cuts an order into batches, by default of `recipe.batch` examples. `extras` are kept in the
    checkpoint. `tell(epoch)` is called after every epoch.
    """
    torch = torch_of()
    run = _Run(network, loss, load, recipe, device, batches or (lambda order: _cut(order, recipe.batch)))
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(run.optimiser, factor=0.5, patience=5)
    generator = torch.Generator().manual_seed(recipe.seed)
    shuffled = torch.randperm(examples, generator=generator).tolist()
    aside = int(examples * recipe.held_out)
    held_out, kept = shuffled[:aside], shuffled[aside:]
    state: dict[str, Any] = {"epoch": 0, "stale": 0, "best_loss": float("inf"), "history": [], "finished": False}
    saved = resume(checkpoint, fingerprint)
    if saved is not None:
        state = saved
    if saved is not None and not saved["finished"]:
        network.load_state_dict(saved["network"])
        run.optimiser.load_state_dict(saved["optimiser"])
        run.scaler.load_state_dict(saved["scaler"])
        schedule.load_state_dict(saved["schedule"])
        generator.set_state(saved["generator"])
    saved_at = time.monotonic()
    while not state["finished"]:
        with _deterministic(torch):
            learned = run.epoch(kept, generator)
            watched = run.evaluate(held_out) if held_out else learned
        if not watched < float("inf"):
            raise InputError(f"Training diverged in epoch {state['epoch'] + 1} (the loss is {watched}).")
        rate = float(run.optimiser.param_groups[0]["lr"])
        if recipe.plateau:
            schedule.step(watched)
        better = watched < state["best_loss"]
        epoch = int(state["epoch"]) + 1
        stale = 0 if better else int(state["stale"]) + 1
        entry = {"epoch": float(epoch), "train": learned, "rate": rate} | ({"held_out": watched} if held_out else {})
        state = {
            "fingerprint": fingerprint,
            "epoch": epoch,
            "stale": stale,
            "best_loss": watched if better else state["best_loss"],
            "best": _kept(network, state, better, recipe.keep),
            "history": [*state["history"], entry],
            "finished": epoch >= recipe.epochs or 0 < recipe.patience <= stale,
            "network": network.state_dict(),
            "optimiser": run.optimiser.state_dict(),
            "scaler": run.scaler.state_dict(),
            "schedule": schedule.state_dict(),
            "generator": generator.get_state(),
            "extras": extras or {},
        }
        if state["finished"]:
            state = {name: state[name] for name in ("fingerprint", "best", "history", "finished", "extras")}
        if checkpoint is not None and (state["finished"] or time.monotonic() - saved_at >= SAVE_SECONDS):
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            with replacing(checkpoint) as part, part.open("wb") as handle:
                torch.save(state, handle)
            saved_at = time.monotonic()
        if tell is not None:
            tell(epoch)
    network.load_state_dict(state["best"])
    network.eval()
    return Trained(state["history"], True)


def _kept(network: Any, state: dict[str, Any], better: bool, keep: str) -> Any:
    """The weights that would be kept if this epoch were the last."""
    if keep == "last":
        return network.state_dict()
    return deepcopy(network.state_dict()) if better else state["best"]


class _Run:
    """What an epoch needs: the network with its optimiser, and batches."""

    def __init__(self, network: Any, loss: Any, load: Any, recipe: Recipe, device: str, batches: Batches) -> None:
        torch = torch_of()
        self.network, self.loss, self.load, self.recipe, self.batches = network, loss, load, recipe, batches
        self.device = device
        self.mixed = recipe.mixed and device.startswith("cuda")
        kind = getattr(torch.optim, recipe.optimiser)
        self.optimiser = kind(network.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.mixed)

    def epoch(self, indices: Sequence[int], generator: Any) -> float:
        """One pass in random order; the mean loss over what was seen."""
        torch = torch_of()
        self.network.train()
        order = [indices[number] for number in torch.randperm(len(indices), generator=generator).tolist()]
        cut = self.batches(order)
        if self.recipe.drop_last and len(cut) > 1 and len(cut[-1]) < self.recipe.batch:
            cut = cut[:-1]
        total, seen = torch.zeros((), device=self.device), 0
        for chosen in cut:
            batch = self.load(chosen)
            with self._precision():
                value = self.loss(batch, generator)
            self.optimiser.zero_grad(set_to_none=True)
            self.scaler.scale(value).backward()
            if self.recipe.clip:
                self.scaler.unscale_(self.optimiser)
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
            self.scaler.step(self.optimiser)
            self.scaler.update()
            total += value.detach() * len(batch)
            seen += len(batch)
        return float(total) / seen

    def evaluate(self, indices: Sequence[int]) -> float:
        torch = torch_of()
        self.network.eval()
        total, seen = torch.zeros((), device=self.device), 0
        with torch.no_grad():
            for chosen in self.batches(indices):
                batch = self.load(chosen)
                with self._precision():
                    total += self.loss(batch, None) * len(batch)
                seen += len(batch)
        return float(total) / seen

    def _precision(self) -> AbstractContextManager[Any]:
        torch = torch_of()
        return torch.autocast("cuda", dtype=torch.float16) if self.mixed else nullcontext()


def _cut(order: Sequence[int], batch: int) -> list[list[int]]:
    return [list(order[start : start + batch]) for start in range(0, len(order), batch)]


@contextmanager
def _deterministic(torch: Any) -> Iterator[None]:
    """The same card, the same seed, the same weights: no convolution whose sums depend on the order of threads."""
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before
