"""An encoder of X-ARES as an extractor: `xares:my_encoder.py:MyEncoder`, `xares:mypackage.my_encoder:MyEncoder`.

X-ARES (https://github.com/jimbozhang/xares) asks for a torch.nn.Module whose class is called ...Encoder and that has

    sampling_rate      samples a second that it wants
    output_dim         features of a frame
    hop_size_in_ms     milliseconds from frame to frame
    forward(audio [B, T]) -> [B, T', output_dim]

The rules of its own checker are applied when the encoder is opened, with one sentence for each that is broken; xares
itself is not needed. Further parameters are given to the class. Clips are given one by one, so that padding cannot
leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, require, strangers_code
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.torch_models import device_of, exact
from earmark.extractors.windows import SHORTEST, clip_by_clip, cover
from earmark.registry import load_path
from earmark.wording import error_text

CHECKED = (2, 50000)
"""What the checker lets an encoder hear: two clips of so many samples."""


class XaresEncoder:
    """Frames [T, D] of an X-ARES encoder. Every frame is valid.

    Args:
        path: module:Class or file.py:Class.
        shortest: seconds; a shorter clip lies in the middle of so much silence.
        device: where it runs.
        given: keywords of the class.
    """

    def __init__(self, path: str, *, shortest: float = SHORTEST, device: str = "cpu", **given: Any) -> None:
        torch = self._torch = require("torch", "Encoders of X-ARES", "torch")
        self._device = device_of(torch, device)
        if ":" not in path:
            raise UsageError(f"xares:{path} names no class: write xares:{path}:MyEncoder.")
        thing: Any = load_path(path, "X-ARES encoder")
        self.name = path.rpartition(":")[2]
        self.model: Any = self._made(thing, given) if isinstance(thing, type) else thing
        self._refuse_others()
        self.model = self.model.to(self._device).eval()
        rate = int(self.model.sampling_rate)
        self.shortest = max(1, round(shortest * rate))
        self.card = ExtractorCard(
            name=self.name,
            title=f"X-ARES encoder {self.name}",
            rate=rate,
            dimension=int(self.model.output_dim),
            frame_rate=1000.0 / float(self.model.hop_size_in_ms),
            parameters=sum(int(weights.numel()) for weights in self.model.parameters()),
        )
        self._check_answer()

    def _made(self, kind: Any, given: dict[str, Any]) -> Any:
        with strangers_code(f"{self.name} cannot be made"):
            try:
                return kind(**given)
            except TypeError as error:
                raise UsageError(f"{self.name} cannot be made with {given}: {error_text(error)}.") from error

    def _refuse_others(self) -> None:
        """The checker's rules on what an encoder is."""
        kind = type(self.model).__name__
        if not kind.endswith("Encoder"):
            raise UsageError(f"The class {kind} is not called ...Encoder, as X-ARES asks: rename it.")
        if not isinstance(self.model, self._torch.nn.Module):
            raise UsageError(f"{kind} is no torch.nn.Module: X-ARES asks for one.")
        for name in ("sampling_rate", "output_dim", "hop_size_in_ms"):
            value = getattr(self.model, name, None)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise UsageError(f"{kind} has no positive {name}: X-ARES asks for it as an attribute.")

    def _check_answer(self) -> None:
        """The checker's rules on what an encoder says of two clips of noise."""
        noise = np.random.default_rng(0).standard_normal(CHECKED).astype(np.float32)
        with strangers_code(f"{self.name} fails on two clips of {CHECKED[1]} samples"):
            answer = self._answer(noise)
        if answer.shape[0] != CHECKED[0] or answer.shape[2] != self.card.dimension:
            raise InputError(
                f"{self.name} answers {CHECKED[0]} clips with {list(answer.shape)}, not [{CHECKED[0]}, T, "
                f"{self.card.dimension}] as its output_dim says."
            )
        promised = CHECKED[1] / self.card.rate * float(self.card.frame_rate or 0.0)
        if not 0.5 < answer.shape[1] / promised < 2.0:
            raise InputError(
                f"{self.name} gives {answer.shape[1]} frames for {CHECKED[1] / self.card.rate:g} s; its hop_size_in_ms "
                f"of {self.model.hop_size_in_ms:g} promises {promised:.0f}."
            )

    def _answer(self, audio: NDArray[np.float32]) -> Any:
        torch = self._torch
        with torch.inference_mode(), exact(torch):
            answer = self.model(torch.from_numpy(np.ascontiguousarray(audio)).to(self._device))
        if not isinstance(answer, torch.Tensor) or answer.dim() != 3:
            shape = list(answer.shape) if isinstance(answer, torch.Tensor) else type(answer).__name__
            raise InputError(f"{self.name} returns {shape}, not a tensor [batch, time, feature].")
        return answer

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> NDArray[np.float32]:
        samples = cover(waveform, self.shortest, 1)
        values: NDArray[np.float32] = self._answer(samples[None, :])[0].cpu().float().numpy()
        return values
