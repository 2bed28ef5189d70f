"""Moonshine as a recogniser: a transformer of 2024 for English, int8, whose weights `earmark extractors fetch` gets.

    asr, asr:moonshine               tiny, 27 million parameters
    asr:moonshine:base               base, 61 million; `asr:moonshine-base` is the same

Greedy decoding, one clip at a time: the int8 graphs share one scale over whatever they are given, so that a clip's
words would depend on the clips in its batch. A text has at most 6.5 tokens for each second of sound, as its authors
allow, or 8 where that is less, so that a model that repeats itself ends. A clip over 30 s, the longest that it was
trained on, is heard in parts of 20 to 30 s, cut where it is quietest.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.extractors.contract import Waveform
from earmark.extractors.moonshine import LONGEST, RATE, SHORTEST, SIZES, Size, encoder_of, size_of
from earmark.extractors.wheel_weights import WEIGHTS, paths_of
from earmark.extractors.windows import cover
from earmark.onnx_files import open_session
from earmark.probes._contract import Responses
from earmark.probes._transcribing import transcribe_clips
from earmark.progress import Progress
from earmark.runs.identity import version_of
from earmark.workers import thread_count

TOKENS_PER_SECOND, FEWEST_TOKENS = 6.5, 8
START, END = 1, 2
HEADS = 8
EARLIEST = 2 * LONGEST // 3
"""Where the search for a quiet place to cut a long clip begins."""
QUIET = RATE // 10

Floats = NDArray[np.float32]


class MoonshineRecogniser:
    """`processes` is how many clips are written down at once; None is one for each core."""

    def __init__(self, model: str = "tiny", *, processes: int | None = None) -> None:
        size = size_of(model)
        paths_of(size.spelling)  # all there and right, before the work begins
        self.size, self.processes = size, thread_count(processes)
        self.name = size.spelling
        digests = [file.sha256[:12] for file in WEIGHTS[size.spelling]]
        self.version = " ".join(["1", *digests, f"onnxruntime {version_of('onnxruntime')}"])

    def transcribe(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        recognise = functools.partial(recognised, self.size)
        return transcribe_clips(clips, recognise, name=self.name, processes=self.processes, progress=progress)


def open_base(**options: Any) -> MoonshineRecogniser:
    """`moonshine-base`."""
    return MoonshineRecogniser("base", **options)


def recognised(size: Size, waveform: Waveform) -> str:
    """What is said in a waveform at 16 kHz."""
    return _network(size)(waveform)


@functools.lru_cache(maxsize=len(SIZES))
def _network(size: Size) -> Network:
    return Network(size)


class Network:
    """Encoder, decoder and words of one size."""

    def __init__(self, size: Size) -> None:
        _, decoder, words = paths_of(size.spelling)
        self._encoder, self._decoder = encoder_of(size), open_session(decoder, "Recognition by Moonshine")
        self._words = Words(words)
        self._past = [node.name for node in self._decoder.get_inputs() if node.name.startswith("past_key_values")]
        self._empty = np.zeros((0, HEADS, 1, size.head), np.float32)

    def __call__(self, waveform: Waveform) -> str:
        texts = [self._words.text(self.tokens(part)) for part in quiet_parts(cover(waveform, SHORTEST, 1))]
        return " ".join(text for text in texts if text)

    def tokens(self, samples: Floats) -> list[int]:
        """The most likely token after those before it, again and again, up to the end or the limit."""
        (hidden,) = self._encoder.run(None, {"input_values": samples[None]})
        most = max(FEWEST_TOKENS, math.ceil(TOKENS_PER_SECOND * len(samples) / RATE))
        tokens: list[int] = []
        last, past = START, dict.fromkeys(self._past, self._empty)
        while len(tokens) < most:
            first = not tokens
            logits, *present = self._decoder.run(
                None,
                {
                    "input_ids": np.array([[last]], np.int64),
                    "encoder_hidden_states": hidden,
                    "use_cache_branch": np.array([not first]),
                    **past,
                },
            )
            last = int(logits[0, -1].argmax())
            if last == END:
                break
            tokens.append(last)
            for name, value in zip(self._past, present, strict=True):
                if first or ".decoder." in name:  # what the decoder asks of the encoder is the same at every step
                    past[name] = value
        return tokens


def quiet_parts(samples: Floats) -> Iterator[Floats]:
    """A clip in parts of at most LONGEST, each cut in the middle of the quietest 0.1 s of its last third."""
    while len(samples) > LONGEST:
        energy = np.cumsum(np.square(samples[EARLIEST:LONGEST], dtype=np.float64))
        cut = EARLIEST + QUIET // 2 + int(np.argmin(energy[QUIET:] - energy[:-QUIET]))
        yield samples[:cut]
        samples = samples[cut:]
    yield cover(samples, SHORTEST, 1)


class Words:
    """The pieces of words that tokens stand for, from `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text("utf-8"))
        self._pieces: dict[int, str] = {token: piece for piece, token in content["model"]["vocab"].items()}
        self._special = {entry["id"] for entry in content["added_tokens"] if entry["special"]}

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens: a piece begins a word where it has a low line, and <0x41> is a byte of UTF-8."""
        data = bytearray()
        for token in tokens:
            piece = "" if token in self._special else self._pieces.get(token, "")
            is_byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
            data += bytes([int(piece[3:5], 16)]) if is_byte else piece.replace("\u2581", " ").encode()
        return data.decode("utf-8", "replace").strip()
