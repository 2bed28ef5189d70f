"""Any extractor as a module with the HEAR API: what a benchmark that asks for `load_model` can import.

    from earmark.extractors.hear_api import hear_functions

    load_model, get_timestamp_embeddings, get_scene_embeddings = hear_functions("wavlm?layer=9")

    load_model(path="")                       a torch.nn.Module with sample_rate and the two embedding sizes
    get_timestamp_embeddings(audio, model)    [n, T, D] float32, and the centres of the frames [n, T] in milliseconds
    get_scene_embeddings(audio, model)        [n, D], the mean over frames, or another `pooling`

`path` names another checkpoint: `load_model("/models/wavlm")` opens `wavlm:/models/wavlm`. Frames that heard padding
alone are left out. Sound is given as it comes: HEAR normalises nothing, and neither does this.

Centres: an extractor that knows where its first frame lies says so (`first_centre`, in seconds). Of the others the
frames are taken to lie evenly about the middle of the clip, which is exact where a clip lies in the middle of its
windows, and within half a frame where frames begin with the clip. A clip-level extractor has one frame in the middle,
or, with `window` and `hop`, one for each window of so many seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, require
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import Extractor, Waveform
from earmark.extractors.windows import trial_noise
from earmark.specs import parse_spec

Floats = NDArray[np.float32]
Pool = Callable[[Floats], Floats]

POOLINGS: dict[str, Pool] = {
    "mean_time": lambda frames: frames.mean(axis=0),
    "max_time": lambda frames: frames.max(axis=0),
    "first_time": lambda frames: frames[0],
    "last_time": lambda frames: frames[-1],
}
"""From frames that heard sound to one vector. Of the poolings of a run those whose size is the same for every clip."""


class HearFunctions(NamedTuple):
    """The three functions of the API."""

    load_model: Callable[..., Any]
    get_timestamp_embeddings: Callable[[Any, Any], tuple[Any, Any]]
    get_scene_embeddings: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Framing:
    """How a clip is heard for its timestamps: whole, or in windows of so many seconds."""

    window: float | None = None
    hop: float | None = None

    def __post_init__(self) -> None:
        lengths = [length for length in (self.window, self.hop) if length is not None]
        if any(isinstance(length, bool) or not length > 0 for length in lengths):
            raise UsageError("window and hop are seconds above 0.")
        if self.hop is not None and self.window is None:
            raise UsageError("A hop needs a window too.")


def hear_functions(
    spec: str, *, pooling: str = "", window: float | None = None, hop: float | None = None, **parameters: Any
) -> HearFunctions:
    """The HEAR API of an extractor.

    Args:
        spec: the extractor's spelling, as everywhere.
        pooling: from frames to a scene's vector (mean_time, max_time, first_time, last_time); empty: mean_time.
        window: let the extractor hear windows of so many seconds for its timestamps, each as a clip of its own.
        hop: seconds from window to window; 0.05 without it.
        parameters: of the extractor.
    """
    if pooling and pooling not in POOLINGS:
        raise UsageError(f"There is no pooling {pooling!r} for a scene: choose from {', '.join(POOLINGS)}.")
    framing = Framing(window, hop)
    torch = require("torch", "HEAR modules", "torch")

    def load_model(model_file_path: str = "") -> Any:
        return _module_of(torch, open_extractor(_with_checkpoint(spec, model_file_path), **parameters))

    def get_timestamp_embeddings(audio: Any, model: Any) -> tuple[Any, Any]:
        heard = [timed_frames(model.extractor, clip, framing) for clip in _clips(torch, audio, model)]
        values = torch.from_numpy(np.stack([frames for frames, _ in heard])).to(audio.device)
        stamps = torch.from_numpy(np.stack([1000.0 * centres for _, centres in heard])).float().to(audio.device)
        return values, stamps

    def get_scene_embeddings(audio: Any, model: Any) -> Any:
        pool = POOLINGS[pooling or "mean_time"]
        vectors = [pool(_frames(model.extractor, clip)) for clip in _clips(torch, audio, model)]
        return torch.from_numpy(np.stack(vectors).astype(np.float32)).to(audio.device)

    return HearFunctions(load_model, get_timestamp_embeddings, get_scene_embeddings)


def module_text(spec: str, *, pooling: str = "", window: float | None = None, hop: float | None = None) -> str:
    """The source of a module with the HEAR API of an extractor."""
    Framing(window, hop)
    given = {"pooling": pooling or None, "window": window, "hop": hop}
    options = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
    return f'''"""The HEAR API of Earmark's extractor {spec}, written by `earmark extractors hear`."""

from earmark.extractors.hear_api import hear_functions

load_model, get_timestamp_embeddings, get_scene_embeddings = hear_functions({spec!r}{options})
'''


def timed_frames(extractor: Extractor, clip: Waveform, framing: Framing) -> tuple[Floats, NDArray[np.float64]]:
    """Frames [T, D] of a clip and the centres of them in seconds."""
    if framing.window is None:
        frames = _frames(extractor, clip)
        return frames, frame_centres(extractor, len(clip), len(frames))
    rate = extractor.card.rate
    size, step = max(1, round(framing.window * rate)), max(1, round((framing.hop or 0.05) * rate))
    middles = np.arange(step // 2, max(len(clip), step // 2 + 1), step)
    padded = np.pad(clip, (size, size))
    pieces = [padded[middle + size - size // 2 :][:size] for middle in middles]
    vectors = [frames.values[: frames.valid].mean(axis=0) for frames in extractor.extract(pieces)]
    return np.stack(vectors).astype(np.float32), np.asarray(middles / rate, np.float64)


def frame_centres(extractor: Extractor, samples: int, frames: int) -> NDArray[np.float64]:
    """Where the frames of a clip of so many samples have their centres, in seconds."""
    card = extractor.card
    step = 1.0 / card.frame_rate if card.frame_rate else 0.0
    first = getattr(extractor, "first_centre", None)
    if first is None:
        first = (samples / card.rate - (frames - 1) * step) / 2
    return np.asarray(float(first) + step * np.arange(frames), np.float64)


def _frames(extractor: Extractor, clip: Waveform) -> Floats:
    """The frames of a clip that heard sound."""
    (frames,) = extractor.extract([clip])
    return np.asarray(frames.values[: frames.valid], np.float32)


def _with_checkpoint(spec: str, path: str) -> str:
    if not path:
        return spec
    parsed = parse_spec(spec)
    return f"{parsed.name}:{path}{f'?{parsed.query}' if parsed.query else ''}"


def _clips(torch: Any, audio: Any, model: Any) -> list[Waveform]:
    """Waveforms of a batch [n, samples]."""
    if not isinstance(audio, torch.Tensor) or audio.dim() != 2 or not audio.numel():
        raise InputError("HEAR gives audio as a tensor [sounds, samples]; this is none.")
    if not hasattr(model, "extractor"):
        raise InputError("The model is not one that load_model of this module made.")
    return list(np.ascontiguousarray(audio.detach().cpu().float().numpy()))


def _module_of(torch: Any, extractor: Extractor) -> Any:
    """An extractor as the torch.nn.Module that HEAR asks for; its size is found out where the card does not say it."""
    module = torch.nn.Module()
    module.extractor = extractor
    module.sample_rate = int(extractor.card.rate)
    size = int(_frames(extractor, trial_noise(module.sample_rate)).shape[1])
    module.timestamp_embedding_size = module.scene_embedding_size = size
    return module.eval()
