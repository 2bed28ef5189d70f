"""Running a frozen torch network: batches of one shape, layers from one pass, less at once when memory is short.

    waveforms -- prepare: cut to the context, pad --> arrays -- same shape --> batches -- network --> frames

A clip's frames do not depend on the clips beside it. Arrays of different shapes are never padded to one batch,
except by families whose network can be told the lengths (`pads`). Inference mode, no TF32 in float32, results in
float32 on the CPU. A batch that does not fit the device's memory is halved, and batches stay that small.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.pretrained import config_of, find, load_model, versioned

log = logging.getLogger("earmark.extractors")

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Settings:
    """Parameters that every torch family takes beside its checkpoint."""

    layer: int = -1  # 0: what enters the first block; -1: what leaves the last
    device: str = "auto"  # auto (cuda where there is one, else cpu), cpu, cuda, cuda:1, mps
    dtype: str = "float32"
    batch: int = 32  # clips at once, at most; whoever calls may give fewer
    local_files_only: bool = False
    allow_pickle: bool = False
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UsageError(f"There is no dtype {self.dtype!r}: choose from {', '.join(DTYPES)}.")
        if self.batch is not None and self.batch < 1:
            raise UsageError(f"A batch of {self.batch} clips is not possible: give at least 1.")

    @property
    def loading(self) -> dict[str, Any]:
        """What finding the checkpoint needs to know."""
        names = ("local_files_only", "allow_pickle", "revision")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Batch:
    """Arrays of one shape on the device, float32, and how many samples of each clip were heard."""

    sounds: Any
    samples: tuple[int, ...]
    lengths: tuple[int, ...]  # of each array before it was padded to the batch


class TorchExtractor:
    """What the families share: the checkpoint, the card, batches, layers.

    A family says how large its network is (`build`), how to `prepare` a clip, `load` weights, run (`forward`) and count
    (`valid`). `layers` is the number of blocks, or None when the model gives one answer and no hidden layers.
    """

    name: ClassVar[str]  # as it is registered
    packages: ClassVar[tuple[str, ...]] = ("torch",)  # whose versions decide the numbers
    card: ExtractorCard
    layers: int | None = None
    pads = False

    def __init__(self, checkpoint: str = "", *, find_options: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.settings = settings = Settings(**options)
        self._torch = require("torch", "These models", "torch")
        self._device = device_of(self._torch, settings.device)
        self._dtype = getattr(self._torch, settings.dtype)
        self._network: Any = None
        self._most = settings.batch or (64 if self._device.type == "cuda" else 8)
        self.card = CARDS[self.name]
        where = {**(find_options or {}), **settings.loading}
        self._checkpoint = find(checkpoint or self.card.checkpoint, self.card, **where)

    def complete_card(self, **facts: Any) -> None:
        """State on the card what the checkpoint says: these facts, the number of parameters, and the version."""
        parameters = sum(int(parameter.numel()) for parameter in self.empty().parameters())
        self.card = versioned(self.card, self._checkpoint, *self.packages, parameters=parameters, **facts)

    # --- what a family says ---

    def build(self) -> Any:
        """The network without its weights."""
        raise NotImplementedError

    def empty(self) -> Any:
        """The network without memory: to count its parameters, or to be filled."""
        with self._torch.device("meta"):
            return self.build()

    def load(self) -> Any:
        """The network with its weights, on the CPU."""
        raise NotImplementedError

    def prepare(self, waveform: Waveform) -> NDArray[np.float32]:
        """The waveform as the network's front end wants it."""
        return waveform

    def forward(self, network: Any, batch: Batch, layers: Sequence[int]) -> Mapping[int, Any]:
        """Tensors [B, T, D] of the layers asked for, which are counted from 0."""
        raise NotImplementedError

    def valid(self, samples: int, frames: int) -> int:
        """How many of the frames heard sound of a clip of so many samples."""
        return frames

    def frames_of(self, samples: int, frames: int) -> int:
        """How many of a batch's frames are a clip's own: all, unless clips were padded to one length."""
        return frames

    # --- what an extractor does ---

    def extract(self, waveforms: Sequence[Waveform], *, there: bool = False) -> list[Frames]:
        """Frames of every clip; `there` leaves them on the device, as tensors."""
        layer = self.counted(self.settings.layer)
        by_clip = {clip: frames[layer] for clip, frames in self._run(waveforms, [layer], there)}
        return [by_clip[clip] for clip in range(len(waveforms))]

    def extract_layers(
        self, waveforms: Sequence[Waveform], layers: Sequence[int], *, there: bool = False
    ) -> Iterator[tuple[int, Mapping[int, Frames]]]:
        """Frames of several layers from one pass, clip by clip as batches are done; keys are as they were asked."""
        counted = {layer: self.counted(layer) for layer in layers}
        for clip, frames in self._run(waveforms, sorted(set(counted.values())), there):
            yield clip, {layer: frames[number] for layer, number in counted.items()}

    def counted(self, layer: int) -> int:
        """A layer counted from 0; -1 is the last."""
        last = self.layers or 0
        number = layer if layer >= 0 else last + 1 + layer
        if not 0 <= number <= last or (self.layers is None and layer not in (0, -1)):
            known = "one answer and no hidden layers" if self.layers is None else f"layers 0 to {last}"
            raise UsageError(f"{self.card.name} has {known}: there is no layer {layer}.")
        return number

    @property
    def device(self) -> str:
        """Where the network runs: cpu, cuda, cuda:1."""
        return str(self._device)

    @property
    def clips_at_once(self) -> int:
        """How many clips a batch should have to keep the device busy, as far as memory has allowed."""
        return self._most

    @property
    def network(self) -> Any:
        """The network on its device, loaded when it is first needed."""
        if self._network is None:
            self._network = self.load().to(self._device, self._dtype)
            for module in self._network.modules():
                if hasattr(module, "flatten_parameters"):  # moving scattered the weights of an LSTM
                    module.flatten_parameters()
        return self._network

    def _run(
        self, waveforms: Sequence[Waveform], layers: Sequence[int], there: bool
    ) -> Iterator[tuple[int, dict[int, Frames]]]:
        context = self.card.context_seconds
        most = None if context is None else round(context * self.card.rate)
        heard = [waveform[:most] for waveform in waveforms]
        arrays = [self.prepare(waveform) for waveform in heard]
        waiting = list(_grouped(arrays, self.pads))
        while waiting:
            clips = waiting.pop(0)
            if len(clips) > self._most:
                waiting.insert(0, clips[self._most :])
                clips = clips[: self._most]
            chosen = [arrays[clip] for clip in clips]
            samples = tuple(len(heard[clip]) for clip in clips)
            try:
                answers = self._forward(chosen, samples, layers)
            except self._torch.OutOfMemoryError as error:
                self._less(len(clips), chosen[0], error)
                waiting.insert(0, clips)
                continue
            if len(layers) == 1 and not there:  # one way back for the batch; many layers would not fit at once
                answers = {layer: self._brought_back(answers[layer]) for layer in layers}
            for row, clip in enumerate(clips):
                yield clip, {layer: self._frames(answers[layer][row], samples[row], there) for layer in layers}

    def _forward(
        self, arrays: Sequence[NDArray[np.float32]], samples: tuple[int, ...], layers: Sequence[int]
    ) -> Mapping[int, Any]:
        torch = self._torch
        longest = max(len(array) for array in arrays)
        shape = (len(arrays), longest, *arrays[0].shape[1:])
        stacked = torch.empty(shape, dtype=torch.float32, pin_memory=self._device.type == "cuda")
        _stack(arrays, stacked.numpy())
        with torch.inference_mode(), exact(torch):
            sounds = stacked.to(self._device, non_blocking=True)
            batch = Batch(sounds, samples, tuple(len(array) for array in arrays))
            return self.forward(self.network, batch, layers)

    def _brought_back(self, values: Any) -> Any:
        """A tensor on the CPU; from a GPU by way of pinned memory, several times as fast, and as float32 already."""
        if self._device.type != "cuda" or not values.is_floating_point():
            return values.detach().cpu()
        pinned = self._torch.empty(values.shape, dtype=self._torch.float32, pin_memory=True)
        return pinned.copy_(values.detach().float())

    def _frames(self, values: Any, samples: int, there: bool) -> Frames:
        kept = values[: self.frames_of(samples, len(values))].detach()
        valid = max(1, min(self.valid(samples, len(kept)), len(kept)))
        if there:
            return Frames(kept, valid)
        kept = kept.cpu()
        return Frames(kept.float().numpy() if kept.is_floating_point() else kept.numpy(), valid)

    def _less(self, clips: int, array: NDArray[np.float32], error: BaseException) -> None:
        if clips == 1:
            raise InputError(
                f"{self.card.name} has not the memory for a single clip of {len(array)} samples on {self._device}: "
                f"cut clips shorter, or choose device=cpu or dtype=bfloat16."
            ) from error
        self._most = max(1, clips // 2)
        log.warning("%s: out of memory with %d clips at once, going on with %d", self.card.name, clips, self._most)
        if self._device.type != "cpu":
            getattr(self._torch, self._device.type).empty_cache()


class OnDevice:
    """A torch extractor whose frames stay on its device until they are pooled."""

    def __init__(self, extractor: TorchExtractor) -> None:
        self.extractor = extractor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.extractor, name)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return self.extractor.extract(waveforms, there=True)

    def extract_layers(
        self, waveforms: Sequence[Waveform], layers: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[int, Frames]]]:
        return self.extractor.extract_layers(waveforms, layers, there=True)


def on_device(extractor: Any) -> Any:
    """The extractor, with frames that stay on a GPU if it runs on one: for whoever pools them there."""
    if isinstance(extractor, TorchExtractor) and extractor.device.startswith("cuda"):
        return OnDevice(extractor)
    return extractor


class TransformersExtractor(TorchExtractor):
    """A family whose config and network are classes of transformers."""

    classes: ClassVar[tuple[str, str]]  # names of the config and of the network
    config_part: ClassVar[str] = ""  # the section of config.json that describes the network, where it has one
    packages = ("torch", "transformers")

    def __init__(self, checkpoint: str = "", **options: Any) -> None:
        super().__init__(checkpoint, **options)
        library = require("transformers", "These models", "models")
        config, self._kind = (getattr(library, name) for name in self.classes)
        self._config = self.read_config(config)

    def read_config(self, kind: Any) -> Any:
        """What describes the network, as that class of transformers: what lies beside the weights."""
        return config_of(kind, self._checkpoint, self.config_part)

    def build(self) -> Any:
        return self._kind(self._config)

    def load(self) -> Any:
        return load_model(self._kind, self._checkpoint)

    def hidden(self, network: Any, inputs: Any, layers: Sequence[int], **arguments: Any) -> dict[int, Any]:
        """Tensors of the layers, or of the last one alone where no other is asked for."""
        assert self.layers is not None
        only_last = list(layers) == [self.layers]
        answer = network(inputs, output_hidden_states=not only_last, **arguments)
        earlier = {} if only_last else dict(enumerate(answer.hidden_states[: self.layers]))
        return {**earlier, self.layers: answer.last_hidden_state}


def device_of(torch: Any, name: str) -> Any:
    """The device of a name, `auto` being a GPU of NVIDIA where there is one; one sentence when there is none such."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        known = device.type in ("cpu", "cuda", "mps")
    except RuntimeError:
        known = False
    if not known:
        raise UsageError(f"There is no device {name!r}: give auto, cpu, cuda, cuda:1 or mps.")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise UsageError("torch sees no CUDA device here: give device=cpu.")
        if (device.index or 0) >= torch.cuda.device_count():
            raise UsageError(f"There is no device {name}: torch sees {torch.cuda.device_count()}.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError("torch sees no GPU of Apple (mps) here: give device=cpu.")
    return device


def cards_of(device: str) -> list[str]:
    """The GPUs of this machine as CUDA_VISIBLE_DEVICES names them, where a device means more than one of them.

    None where no torch model has been opened, which imports it: runs without one do not wait seconds for torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or device not in ("auto", "cuda"):
        return []
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    seen = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return (seen or [str(number) for number in range(count)])[:count] if count > 1 else []


def _grouped(arrays: Sequence[NDArray[np.float32]], pads: bool) -> Iterator[list[int]]:
    """Numbers of arrays that may share a batch: those of one shape, or all in order of length."""
    if pads:
        if arrays:
            yield sorted(range(len(arrays)), key=lambda clip: len(arrays[clip]))
        return
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for clip, array in enumerate(arrays):
        by_shape.setdefault(array.shape, []).append(clip)
    yield from by_shape.values()


def _stack(arrays: Sequence[NDArray[np.float32]], stacked: NDArray[np.float32]) -> None:
    """Arrays in one, zeros behind those that are shorter."""
    for row, array in enumerate(arrays):
        stacked[row, : len(array)] = array
        stacked[row, len(array) :] = 0.0


@contextmanager
def exact(torch: Any) -> Iterator[None]:
    """float32 means float32, in front ends too: no TF32 in products and convolutions while this runs."""
    if not torch.cuda.is_available():
        yield
        return
    kept = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = kept
