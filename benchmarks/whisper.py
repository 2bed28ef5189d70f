"""Clips per second through Whisper-large-v3's encoder: real architecture, random weights, the package's own path.

    python benchmarks/whisper.py --device cuda            2,000 clips of five seconds, bfloat16 and float32
    python benchmarks/whisper.py --device cuda --dtypes bfloat16
    python benchmarks/whisper.py --device cpu --tiny --clips 32

Sounds lie in memory, so the figures are of the front end, the encoder, the pooling and the way back, as `earmark embed`
does them. The peak of the card is measured beside it, as one large matrix product in the same precision, and as such
products for two seconds: a card that is busy for long is slower, because its power is limited. The products of the
encoder are counted by torch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers

import earmark
from earmark.corpora.clips import Clip
from earmark.embedding.embed import embed
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.cost import measure_cost

PAPER_CLIPS, PAPER_HOURS = 125_382, 72
LARGE = {"d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120}
TINY = {"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128}


def checkpoint(folder: Path, shape: dict[str, int], device: str) -> Path:
    """A folder as a download would be, with random weights in the encoder."""
    config = transformers.WhisperConfig(num_mel_bins=128, max_source_positions=1500, **shape)
    with torch.device(device):
        encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    state = {f"model.encoder.{name}": value.cpu() for name, value in encoder.state_dict().items()}
    from safetensors.torch import save_file

    save_file(state, folder / "model.safetensors")
    config.save_pretrained(folder)
    said = {"feature_size": 128, "sampling_rate": 16000, "hop_length": 160, "chunk_length": 30, "n_fft": 400}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return folder


def sounds(count: int, seconds: float, classes: int = 50) -> list[Clip]:
    """Chirps in noise: each class has its own sweep, each clip its own noise and start."""
    time_line = np.arange(round(16000 * seconds)) / 16000
    clips = []
    for number in range(count):
        random = np.random.default_rng(number)
        which = number % classes
        low, slope = 150 * 1.06**which, 40 * (which % 7 - 3)
        phase = 2 * np.pi * (low * time_line + slope * time_line**2 / 2) + random.uniform(0, 6)
        noise = random.standard_normal(len(time_line)) * random.uniform(0.05, 0.3)
        clips.append(
            Clip(str(number), label=str(which), samples=(np.sin(phase) + noise).astype(np.float32), rate=16000)
        )
    return clips


def peak(device: str, dtype: torch.dtype, size: int = 8192) -> float:
    """Operations per second of one large matrix product."""
    if device == "cpu":
        size = 1024
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        left @ right
    times = []
    for _ in range(10):
        _wait(device)
        started = time.perf_counter()
        left @ right
        _wait(device)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / float(np.median(times))


def sustained(device: str, dtype: torch.dtype, seconds: float = 2.0, size: int = 8192) -> float:
    """Operations per second of large matrix products one after another."""
    together = 20
    if device == "cpu":
        size, seconds, together = 1024, 0.2, 1
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    left @ right
    _wait(device)
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        for _ in range(together):
            left @ right
        _wait(device)
        done += together
    return 2 * size**3 * done / (time.perf_counter() - started)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dtypes", default="bfloat16,float32", help="precisions to measure (default: both)")
    parser.add_argument("--tiny", action="store_true", help="a small encoder, to try the script")
    args = parser.parse_args()
    name = torch.cuda.get_device_name() if args.device != "cpu" else "cpu"
    print(f"{name}, torch {torch.__version__}, transformers {transformers.__version__}, earmark {earmark.__version__}")
    clips = sounds(args.clips, args.seconds)
    labels = [clip.label for clip in clips]
    vectors = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = checkpoint(Path(scratch), TINY if args.tiny else LARGE, args.device)
        for dtype in args.dtypes.split(","):
            options = {"device": args.device, "dtype": dtype, "batch": args.batch}
            extractor = open_extractor(f"whisper:{folder}", **options)
            embed(clips[: args.batch], extractor, ["mean_time"], batch=args.batch)  # loads and warms
            started = time.perf_counter()
            found = embed(clips, extractor, ["mean_time", "masked_mean_time"], batch=args.batch)
            spent = time.perf_counter() - started
            vectors[dtype] = found.vectors["mean_time"]
            cost = measure_cost(lambda options=options: open_extractor(f"whisper:{folder}", **options), repeats=1)
            products = 2 * (cost.macs_per_second or 0.0)  # of one clip: any clip is 30 s to the encoder
            rate = args.clips / spent
            top, long = (measure(args.device, getattr(torch, dtype)) for measure in (peak, sustained))
            hours = PAPER_CLIPS / rate / 3600
            print(
                f"{dtype}: {rate:.1f} clips/s, {products / 1e12:.2f} TFLOP a clip,",
                f"{rate * products / 1e12:.0f} TFLOP/s",
                f"({100 * rate * products / top:.0f} % of the {top / 1e12:.0f} of one matrix product,",
                f"{100 * rate * products / long:.0f} % of the {long / 1e12:.0f} of products for 2 s),",
                f"{(cost.peak_memory or 0) / 1e9:.1f} GB for one clip;",
                f"{PAPER_CLIPS:,} clips in {hours:.2f} h (the paper's feature stage: {PAPER_HOURS} h, all models)",
                flush=True,
            )
    if len(vectors) < 2:
        return
    scores = {dtype: earmark.evaluate(found, labels, metrics=["P@1", "P@5", "GSR"]) for dtype, found in vectors.items()}
    worst = _least_cosine(vectors["bfloat16"], vectors["float32"])
    said = ", ".join(
        f"{metric} {scores['bfloat16'].value(metric):.4f} / {scores['float32'].value(metric):.4f}"
        for metric in ("P@1", "P@5", "GSR")
    )
    print(f"bfloat16 / float32 on {args.clips} clips of 50 synthetic classes: {said}; least cosine {worst:.6f}")


def _least_cosine(left: np.ndarray, right: np.ndarray) -> float:
    dots = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    return float((dots / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)).min())


if __name__ == "__main__":
    main()
