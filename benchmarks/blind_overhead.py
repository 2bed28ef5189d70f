"""What a sealed cell costs: the same model inside and outside, clip by clip.

    python benchmarks/blind_overhead.py

Three models: one that keeps the processor busy for 10 ms whatever the clip, Earmark's log-mel spectrogram, and a small
ONNX network of samples. Clips of 1, 5 and 30 s at 16 kHz. Inside and outside take turns; the lower decile of each is
shown, because others may use the machine meanwhile. The share is of the time outside, and of 10 ms at least.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

from earmark.isolation import Cell, Limits, Message, array_of, arrays_message, sealed  # noqa: E402

RATE = 16_000
SECONDS = (1, 5, 30)
CLIPS = 100

Clip = NDArray[np.float32]


def spin(clip: Clip, file: str) -> Clip:
    """Ten milliseconds, and an answer of 50 frames a second."""
    end = time.perf_counter() + 0.010
    while time.perf_counter() < end:
        pass
    return np.full((len(clip) // 320 + 1, 64), clip[0], np.float32)


def spectrogram(clip: Clip, file: str) -> Clip:
    return np.asarray(_opened("logmel").extract([clip])[0].values, np.float32)


def network(clip: Clip, file: str) -> Clip:
    return np.asarray(_opened(f"onnx:{file}").extract([clip])[0].values, np.float32)


@cache
def _opened(spec: str) -> Any:
    from earmark.extractors.catalogue import open_extractor

    return open_extractor(spec)


MODELS: dict[str, Callable[[Clip, str], Clip]] = {"10 ms": spin, "log-mel": spectrogram, "ONNX": network}


def answer(message: Message) -> Message:
    """What runs inside."""
    return arrays_message({}, [MODELS[message.head["model"]](array_of(message), message.head["file"])])


def write_network(path: Path) -> Path:
    """Two layers of 64 channels, a frame every 10 ms."""
    from tests.extractors import tiny_onnx as onnx

    numbers = np.random.default_rng(0)
    nodes = [
        onnx.node("Reshape", ["audio", "flat"], ["x"]),
        onnx.node("Conv", ["x", "first"], ["y"], strides=[160]),
        onnx.node("Relu", ["y"], ["z"]),
        onnx.node("Conv", ["z", "second"], ["w"]),
        onnx.node("Transpose", ["w"], ["frames"], perm=[0, 2, 1]),
    ]
    weights = {
        "flat": np.array([1, 1, -1]),
        "first": numbers.standard_normal((64, 1, 400)).astype(np.float32),
        "second": numbers.standard_normal((64, 64, 3)).astype(np.float32),
    }
    return onnx.write(path, nodes, {"audio": [1, "samples"]}, {"frames": [1, "time", 64]}, weights)


def main() -> None:
    noise = np.random.default_rng(0)
    print("model     clip     outside      inside           overhead  clips/s  times real time")
    with tempfile.TemporaryDirectory() as folder:
        file = str(write_network(Path(folder, "small.onnx")))
        with sealed(
            "blind_overhead:answer", readable=[Path(__file__).parent, folder], limits=Limits(), allowed={"not-root"}
        ) as cell:
            for name, model in MODELS.items():
                for seconds in SECONDS:
                    clip = noise.standard_normal(RATE * seconds).astype(np.float32)
                    question = arrays_message({"model": name, "file": file}, [clip])
                    outside, inside = compare(partial(model, clip, file), partial(ask, cell, question))
                    more = inside - outside
                    print(
                        f"{name:8} {seconds:3} s {1e3 * outside:8.2f} ms {1e3 * inside:8.2f} ms {1e3 * more:7.2f} ms "
                        f"{100 * more / max(outside, 0.010):6.1f} % {1 / inside:8.1f} {seconds / inside:16.0f}"
                    )


def ask(cell: Cell, question: Message) -> Clip:
    return array_of(cell.call(question, 60.0))


def compare(outside: Callable[[], Clip], inside: Callable[[], Clip]) -> tuple[float, float]:
    """Seconds for a clip, outside and inside by turns: the lower decile of each."""
    np.testing.assert_array_equal(outside(), inside())
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(CLIPS):
        for work, found in zip((outside, inside), times, strict=True):
            started = time.perf_counter()
            work()
            found.append(time.perf_counter() - started)
    return float(np.quantile(times[0], 0.1)), float(np.quantile(times[1], 0.1))


if __name__ == "__main__":
    main()
