"""What an extractor costs: parameters, multiplications, memory and time, measured on this machine.

    parameters        counted in the torch modules it holds; else what its card says
    MACs              multiply-accumulates of one clip, counted by torch while it runs (matrix products, convolutions,
                      attention); recurrent layers and models that are not torch cannot be counted
    peak memory       CPU: growth of the process since before the model was opened; GPU: allocated by torch
    real-time factor  seconds of computing for a second of sound, the middle of several runs; below 1 is faster than
                      it plays

A model that learns from the sounds it is measured with is measured untrained, and without its decoder.
A model with a fixed context (Whisper: 30 s) does the same work for a short clip, so the figures depend on `seconds`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from earmark.errors import InputError, UsageError, strangers_code
from earmark.extractors.contract import Extractor, Waveform


@dataclass(frozen=True)
class Cost:
    """Figures of one extractor; None where something cannot be known, and `notes` says why."""

    name: str
    device: str
    seconds: float
    batch: int
    parameters: int | None
    macs_per_second: float | None
    peak_memory: int | None
    real_time_factor: float
    notes: tuple[str, ...] = ()


def measure_cost(open_it: Callable[[], Extractor], *, seconds: float = 1.0, batch: int = 1, repeats: int = 5) -> Cost:
    """Open an extractor and measure it on clips of noise.

    Args:
        open_it: opens the model, so that its own memory is counted.
        seconds: how long a clip is.
        batch: clips at once.
        repeats: timed runs, of which the middle counts.
    """
    if not seconds > 0 or batch < 1 or repeats < 1:
        raise UsageError("A cost needs a positive number of seconds, at least one clip and one repeat.")
    before = _resident()
    extractor = open_it()
    name = extractor.card.name
    said: tuple[str, ...] = ()
    if hasattr(extractor, "fit"):
        if not hasattr(extractor, "as_untrained"):
            raise UsageError(f"{name} learns from a subset before it hears: its cost is measured in a run, not alone.")
        said = extractor.as_untrained()
    noise = np.random.default_rng(0).standard_normal((batch, max(1, round(extractor.card.rate * seconds))))
    clips = list((0.1 * noise).astype(np.float32))
    on_gpu = str(getattr(extractor, "device", "cpu")).startswith("cuda") and "torch" in sys.modules
    gpu: Any = sys.modules["torch"].cuda if on_gpu else None
    if gpu is not None:
        gpu.reset_peak_memory_stats()
    _answers(extractor, clips)  # loads what is loaded late, compiles what is compiled
    modules = list(_modules(extractor))
    timed = []
    for _ in range(repeats):
        started = time.perf_counter()
        _answers(extractor, clips)
        timed.append(time.perf_counter() - started)
    peak = gpu.max_memory_allocated() if gpu is not None else _peak(before)
    unique = {id(weights): weights.numel() for module in modules for weights in module.parameters()}
    held = sum(unique.values()) if modules and not said else extractor.card.parameters  # a decoder hears nothing
    macs, notes = _macs(extractor, clips[:1], modules)
    return Cost(
        name=name,
        device=gpu.get_device_name() if gpu is not None else str(getattr(extractor, "device", "cpu")),
        seconds=seconds,
        batch=batch,
        parameters=held,
        macs_per_second=None if macs is None else macs / seconds,
        peak_memory=peak,
        real_time_factor=statistics.median(timed) / (seconds * batch),
        notes=said + notes,
    )


def _answers(extractor: Extractor, clips: list[Waveform]) -> None:
    with strangers_code(f"{extractor.card.name} failed on noise"):
        answers = extractor.extract(clips)
    if len(answers) != len(clips):
        raise InputError(f"{extractor.card.name} returned {len(answers)} answers for {len(clips)} clips.")


# --- what torch knows ----------------------------------------------------------------------------------------


def _modules(thing: Any, depth: int = 3, seen: set[int] | None = None) -> Iterator[Any]:
    """The torch modules that an object holds in its attributes, outermost ones only."""
    torch = sys.modules.get("torch")  # a torch model has imported it by now
    seen = set() if seen is None else seen
    if torch is None or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.nn.Module):
        yield thing
    elif depth and type(thing).__module__ != "builtins":
        for value in list(getattr(thing, "__dict__", {}).values()):
            yield from _modules(value, depth - 1, seen)


def _macs(extractor: Extractor, clips: list[Waveform], modules: list[Any]) -> tuple[float | None, tuple[str, ...]]:
    if not modules:
        if extractor.card.parameters == 0:
            return 0.0, ("no multiplications by learnt weights",)
        return None, ("MACs are counted for torch models only",)
    counting = import_module("torch.utils.flop_counter")
    with counting.FlopCounterMode(display=False) as counter:
        _answers(extractor, clips)
    recurrent = any(
        isinstance(part, sys.modules["torch"].nn.RNNBase) for module in modules for part in module.modules()
    )
    notes = ("recurrent layers are not in the MACs",) if recurrent else ()
    return counter.get_total_flops() / 2, notes


# --- memory of the process -----------------------------------------------------------------------------------


def _resident() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 - a path of the kernel, not a file
            import resource

            return int(stream.read().split()[1]) * resource.getpagesize()
    except (OSError, ImportError):
        return None


def _peak(before: int | None) -> int | None:
    """The most memory the process held, less what it held before; None where the system does not tell."""
    if before is None:
        return None
    try:
        import resource
    except ImportError:
        return None
    scale = 1 if sys.platform == "darwin" else 1024
    return max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale - before)
