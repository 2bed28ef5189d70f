"""Bioacoustic models from the files that are published of them: windows of one length, an embedding among the outputs.

    perch        32 kHz, 5 s   Perch 2.0: EfficientNet-B3 -> 1536 numbers       .onnx, .tflite, a SavedModel folder
    birdnet_v3   32 kHz, 3 s   BirdNET+ V3.0 (developer preview) -> 1280        .onnx, .tflite, .pt (TorchScript)

The embedding is known by its name, or by its shape where a conversion lost the names. Every frame is valid. A clip
shorter than a window lies in the middle of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.torch_models import device_of
from earmark.extractors.windows import clip_by_clip, hop_samples, windows
from earmark.onnx_files import open_session
from earmark.wording import error_text
from earmark.workers import thread_count

Floats = NDArray[np.float32]
Hear = Callable[[Floats], Any]

_FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class WindowedFile:
    """A published file that hears windows of one length. A model says how long, and what its embedding is called.

    Args:
        file: the file or folder; empty where the hub has one.
        hop: seconds from window to window; side by side without it.
        threads: for the TFLite interpreter, or clips at once for onnxruntime; None is one for each core.
        device: where it runs; TFLite knows the CPU alone.
        local_files_only: never ask the hub.
    """

    name: ClassVar[str]
    seconds: ClassVar[float]
    output: ClassVar[str]
    where: ClassVar[str]  # where the file is published
    hub_file: ClassVar[str] = ""
    card: ExtractorCard

    def __init__(
        self, file: str = "", *, hop: float | None = None, threads: int | None = None, device: str = "cpu",
        local_files_only: bool = False,
    ) -> None:  # fmt: skip
        self.card = CARDS[self.name]
        self.size = round(self.seconds * self.card.rate)
        self.hop = self.size if hop is None else hop_samples(hop, self.seconds, self.card)
        path = self._path(file, local_files_only)
        self.files = [str(path)]
        self.threads = 1
        self._hear = self._opened(path, thread_count(threads), device)

    def _path(self, file: str, local_files_only: bool) -> Path:
        path = Path(file).expanduser()
        if file and path.exists():
            return path
        if file or not self.hub_file:
            lacking = f"{file} does not exist" if file else f"{self.name} has no weights of its own"
            raise InputError(f"{lacking}: {self.where} and give it as {self.name}:/path/to/file.")
        hub = require("huggingface_hub", "Models from the hub", "models")
        try:
            return Path(hub.hf_hub_download(self.card.checkpoint, self.hub_file, local_files_only=local_files_only))
        except Exception as error:
            raise InputError(
                f"{self.hub_file} of {self.card.checkpoint} is not on this machine and cannot be fetched "
                f"({type(error).__name__}): {self.where} and give it as {self.name}:/path/to/file."
            ) from error

    def _opened(self, path: Path, threads: int, device: str) -> Hear:
        """What makes a vector of a window, by the kind of file."""
        if path.is_dir():
            return self._saved_model(path)
        if path.suffix == ".onnx":
            self.threads = threads
            return self._onnx(path, device)
        if path.suffix == ".tflite":
            return self._tflite(path, threads)
        if path.suffix in (".pt", ".pth"):
            return self._torchscript(path, device)
        raise UsageError(f"{path} is none of .onnx, .tflite, .pt and a SavedModel folder: {self.where}.")

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms, self.threads)

    def _clip(self, waveform: Waveform) -> Floats:
        heard = [self._hear(self.prepare(window)) for window in windows(waveform, self.size, self.hop)]
        return np.stack([np.asarray(vector, np.float32).reshape(-1) for vector in heard])

    def prepare(self, window: Floats) -> Floats:
        """A window as the model wants it."""
        return np.array(window, np.float32)  # a copy: windows are read-only views

    # --- kinds of files ---

    def _chosen(self, shapes: Mapping[str, Sequence[Any]], path: Path) -> str:
        """The output that holds the embedding: the one of its name, or the only one of its shape."""
        if self.output in shapes:
            return self.output
        fitting = [name for name, shape in shapes.items() if len(shape) == 2 and shape[-1] == self.card.dimension]
        if len(fitting) != 1:
            listed = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            raise InputError(
                f"{path} has no embedding of {self.card.dimension} numbers but {listed}: it is not {self.card.title}, "
                "or a conversion without it."
            )
        return fitting[0]

    def _onnx(self, path: Path, device: str) -> Hear:
        session = open_session(path, self.card.title, "onnx", device=device)
        inputs = session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _FLOATS:
            raise InputError(f"{path} does not take one array of samples: it is not {self.card.title}.")
        (given,) = inputs
        length = given.shape[-1]
        if len(given.shape) != 2 or (isinstance(length, int) and length != self.size):
            raise InputError(f"{path} takes {given.shape}, not windows of {self.size} samples.")
        output = self._chosen({node.name: node.shape for node in session.get_outputs()}, path)
        return lambda window: session.run([output], {given.name: window[None].astype(_FLOATS[given.type])})[0]

    def _tflite(self, path: Path, threads: int) -> Hear:
        graph = open_interpreter(path, self.card.title, threads)
        given = graph.get_input_details()[0]
        if list(given["shape"]) != [1, self.size]:  # an input of any length is declared as 1
            graph.resize_tensor_input(given["index"], [1, self.size])
            graph.allocate_tensors()
        outputs = {str(output["name"]): output for output in graph.get_output_details()}
        chosen = outputs[self._chosen({name: list(output["shape"]) for name, output in outputs.items()}, path)]

        def hear(window: Floats) -> Any:
            # One window a call: an interpreter has one state and is not for several threads.
            graph.set_tensor(given["index"], window[None])
            graph.invoke()
            return graph.get_tensor(chosen["index"])

        return hear

    def _torchscript(self, path: Path, device: str) -> Hear:
        torch = require("torch", self.card.title, "torch")
        place = device_of(torch, device)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                network = torch.jit.load(str(path), map_location=place).eval()
        except Exception as error:
            raise InputError(f"{path} cannot be opened as a TorchScript file: {error_text(error)}.") from error

        def hear(window: Floats) -> Any:
            with torch.inference_mode():
                answer = network(torch.from_numpy(window[None]).to(place))
            parts = answer if isinstance(answer, tuple | list) else [answer]
            fitting = [part for part in parts if part.dim() == 2 and part.shape[-1] == self.card.dimension]
            if len(fitting) != 1:
                listed = ", ".join(str(list(part.shape)) for part in parts)
                raise InputError(f"{path} returns {listed}, and no embedding of {self.card.dimension} numbers.")
            return fitting[0].cpu().float().numpy()

        return hear

    def _saved_model(self, path: Path) -> Hear:
        if not (path / "saved_model.pb").is_file():
            raise InputError(f"{path} holds no saved_model.pb: {self.where}.")
        try:
            tensorflow = import_module("tensorflow")
        except ImportError as error:
            raise UsageError(
                f"{path} is a SavedModel of TensorFlow: `pip install tensorflow`, or give the ONNX form of "
                f"{self.card.title}, which needs earmark[onnx] alone."
            ) from error
        loaded = tensorflow.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
        (given,) = signature.structured_input_signature[1]
        shapes = {name: list(shape) for name, shape in signature.output_shapes.items()}
        output = self._chosen(shapes, path)

        def hear(window: Floats, kept: Any = loaded) -> Any:  # the signature alone does not keep the model's variables
            return signature(**{given: tensorflow.constant(window[None])})[output].numpy()

        return hear


class Perch(WindowedFile):
    """Perch 2.0: frames [T, 1536], one for each 5 s (or every `hop` seconds).

    Every window is brought to mean 0 and peak 0.25, as the Perch library does.
    """

    name, seconds, output = "perch", 5.0, "embedding"
    hub_file = "perch_v2.onnx"
    where = (
        "download perch_v2.onnx from justinchuby/Perch-onnx on the hub, or the SavedModel perch_v2 of "
        "google/bird-vocalization-classifier from Kaggle"
    )
    PEAK = 0.25

    def prepare(self, window: Floats) -> Floats:
        centred = window - window.mean()
        peak = np.abs(centred).max()
        return np.asarray(centred * (self.PEAK / peak) if peak > 0 else centred, np.float32)


class BirdNETV3(WindowedFile):
    """BirdNET+ V3.0, developer preview: frames [T, 1280], one for each 3 s (or every `hop` seconds)."""

    name, seconds, output = "birdnet_v3", 3.0, "embeddings"
    where = "download BirdNET+_V3.0-preview3.1_Global_11K_FP32.onnx from Zenodo (record 20703646)"


def open_interpreter(path: Path, thing: str, threads: int, *, keep_inner: bool = False) -> Any:
    """A TFLite interpreter with its tensors in place; `keep_inner` lets inner layers be read after a call."""
    require("ai_edge_litert.interpreter", thing, "encoders")
    from ai_edge_litert.interpreter import Interpreter  # an import statement: its version is part of the cache key

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # keeping inner layers is for debugging, it says; it is what we want
            graph: Any = Interpreter(str(path), num_threads=threads, experimental_preserve_all_tensors=keep_inner)
            graph.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise InputError(f"{path} cannot be opened as a TFLite model: {error_text(error)}.") from error
    return graph
