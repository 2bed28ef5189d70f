"""Poolings where the frames are: a GPU pools what it has computed, and only vectors come back.

    frames (a tensor for each clip) -- those of one shape stacked -- poolings of `earmark.embedding.pooling` --> vectors
                                                                    |  all of a batch laid end to end
                                                                    v
                                        one copy into pinned memory, while the next batch runs

The values are those of the CPU: sums in float64, vectors in float32. A sum may be added up in another order, so a
float32 may rarely differ in its last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import require
from earmark.extractors.contract import Frames

Tensor = Any
Floats = NDArray[np.float32]


class Stack(NamedTuple):
    """Frames of clips with one shape, [B, T, D], and how many of each clip are valid, [B]."""

    values: Tensor
    valid: Tensor

    def heard(self, other: float) -> Tensor:
        """The frames, with `other` in the place of those that are not valid."""
        times = self.valid.new_ones(self.values.shape[1]).cumsum(0)
        return self.values.masked_fill((times > self.valid[:, None])[:, :, None], other)


def _mean(values: Tensor, axis: int) -> Tensor:
    return _sum(values, axis) / values.shape[axis]


def _sum(values: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    return values.sum(axis, dtype=_torch().float64)


def _masked_mean(stack: Stack) -> Tensor:
    return _sum(stack.heard(0), 1) / stack.valid[:, None]


def _largest(stack: Stack) -> Tensor:
    whole = not stack.values.is_floating_point()
    return stack.heard(_torch().iinfo(stack.values.dtype).min if whole else -float("inf")).amax(1)


def _last(stack: Stack) -> Tensor:
    return stack.values[stack.valid.new_ones(len(stack.valid)).cumsum(0) - 1, stack.valid - 1]


def _attention(stack: Stack) -> Tensor:
    rows = []
    for clip in stack.heard(0):  # one by one: float64 frames of a batch are large
        wide = clip.double()
        norms = (wide * wide).sum(1).sqrt()
        rows.append(norms @ wide / norms.sum())
    weighted = _torch().stack(rows)
    return weighted.where(~weighted.isnan(), 0.0)  # without weights: the mean of frames that are all zero


POOLINGS: dict[str, Callable[[Stack], Tensor]] = {
    "mean_time": lambda stack: _mean(stack.values, 1),
    "masked_mean_time": _masked_mean,
    "max_time": _largest,
    "first_time": lambda stack: stack.values[:, 0],
    "last_time": _last,
    "attention_time": _attention,
    "mean_feature": lambda stack: _mean(stack.values, 2),
    "first_feature": lambda stack: stack.values[:, :, 0],
    "flatten": lambda stack: stack.values.transpose(1, 2).reshape(len(stack.values), -1),
}


def is_tensor(values: Any) -> bool:
    return hasattr(values, "detach")


def are_finite(values: Tensor) -> Tensor:
    """Whether all frames of each clip [B, T, D] are numbers. A float64 sum of smaller types is finite only then."""
    if values.element_size() >= 8 or not values.is_floating_point():
        return values.isfinite().all(2).all(1)
    return _sum(values, (1, 2)).isfinite()


class Parcel:
    """Tensors on their way back to the CPU as float32: all that is put in is sent in one copy, which nobody waits for.

    `put` gives a function that returns the array once the parcel was sent and has arrived.
    """

    def __init__(self) -> None:
        self._parts: list[Tensor] = []
        self._length = 0
        self._there: Tensor = None
        self._event: Any = None

    def put(self, values: Tensor) -> Callable[[], Floats]:
        start, shape = self._length, tuple(values.shape)
        self._parts.append(values.detach().reshape(-1).float())
        self._length = stop = start + values.numel()
        return lambda: self._arrived()[start:stop].reshape(shape)

    def send(self) -> None:
        torch = _torch()
        joined = torch.cat(self._parts)
        self._parts = []
        if not joined.is_cuda:
            self._there = joined.cpu()
            return
        self._there = torch.empty(joined.shape, dtype=joined.dtype, pin_memory=True)
        self._there.copy_(joined, non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(joined.device))

    def _arrived(self) -> Floats:
        if self._event is not None:
            self._event.synchronize()
            self._event = None
        array: Floats = self._there.numpy()
        return array


def start_pooling(wanted: Sequence[tuple[Frames, Sequence[str]]]) -> list[Callable[[], list[Floats] | None]]:
    """Functions that give, for each of some frames, one vector for each of its poolings; None where not all is finite.

    The frames are tensors whose shapes have been checked.
    """
    torch = _torch()
    parcel = Parcel()
    alike: dict[Any, list[int]] = {}
    for number, (frames, names) in enumerate(wanted):
        values = frames.values
        alike.setdefault((values.shape, values.dtype, values.device, tuple(names)), []).append(number)
    started: dict[int, Callable[[], list[Floats] | None]] = {}
    with torch.inference_mode():
        for (_, _, device, names), numbers in alike.items():
            valid = torch.tensor([wanted[number][0].valid for number in numbers])
            values = torch.stack([wanted[number][0].values for number in numbers])
            if device.type == "cuda":
                valid = valid.pin_memory().to(device, non_blocking=True)
            stack = Stack(values.cpu() if device.type == "mps" else values, valid)  # that knows no float64
            finite = parcel.put(are_finite(stack.values))
            vectors = [parcel.put(POOLINGS[name](stack)) for name in names]
            for row, number in enumerate(numbers):
                started[number] = _row(row, finite, vectors)
        parcel.send()
    return [started[number] for number in range(len(wanted))]


def _row(
    row: int, finite: Callable[[], Floats], vectors: Sequence[Callable[[], Floats]]
) -> Callable[[], list[Floats] | None]:
    # Copies: a view would keep what came back of the whole batch.
    return lambda: [vector()[row].copy() for vector in vectors] if finite()[row] else None


def _torch() -> Any:
    return require("torch", "Pooling on a device", "torch")
