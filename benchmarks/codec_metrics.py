"""Signal metrics of codecs: CPU milliseconds for each second of sound, and clips per second on one core and two.

    pip install "earmark[codecs,torch]" librosa && python benchmarks/codec_metrics.py [--clips 12] [--seconds 5]

The straightforward way is measured in the same run on the same clips: torch spectra and librosa's mel bank for each of
the two distances, the packages pesq (called twice, as in Codec-SUPERB's code), pystoi and parselmouth, librosa's time
warping. Everything runs on one thread; the two take turns. Largest differences are printed too, since being fast at
something else is no merit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import librosa
import numpy as np
import parselmouth
import pesq
import pystoi
import soxr
import torch
from threadpoolctl import threadpool_limits
from timing import Work, fastest

from earmark.codecs.alignment import aligned
from earmark.codecs.signal import CORE, Sound, measure

FIVE = ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr")
DELAY = 0.03453125  # seconds: 552.5 samples at 16 kHz, 1657.5 at 48 kHz


def voice(rate: int, seconds: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    at = np.arange(round(rate * seconds)) / rate
    pitch = 130 * 2 ** (0.4 * np.sin(2 * np.pi * 0.9 * at + seed))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tone = sum(np.sin(k * phase) / k for k in range(1, 26))
    syllables = np.clip(1.5 * np.sin(2 * np.pi * 2.0 * at - 0.5), 0.0, 1.0)
    return (0.2 * tone * syllables + 0.003 * rng.standard_normal(len(at))).astype(np.float32)


# --- the straightforward way ------------------------------------------------------------------------------------


def spectra(samples: np.ndarray) -> list[torch.Tensor]:
    made = torch.from_numpy(samples)
    return [
        torch.stft(made, window, window // 4, window=torch.hann_window(window), return_complex=True).abs()
        for window in (2048, 512)
    ]


def two_terms(a: torch.Tensor, b: torch.Tensor) -> float:
    logs = a.clamp(1e-5).pow(2).log10() - b.clamp(1e-5).pow(2).log10()
    return float(logs.abs().mean() + (a - b).abs().mean())


def plain_stft(clean: np.ndarray, heard: np.ndarray, rate: int) -> float:
    return sum(two_terms(a, b) for a, b in zip(spectra(clean), spectra(heard), strict=True))


def plain_mel(clean: np.ndarray, heard: np.ndarray, rate: int) -> float:
    banks = [
        torch.from_numpy(librosa.filters.mel(sr=rate, n_fft=window, n_mels=bands))
        for window, bands in ((2048, 150), (512, 80))
    ]
    return sum(two_terms(m @ a, m @ b) for m, a, b in zip(banks, spectra(clean), spectra(heard), strict=True))


def at_16k(samples: np.ndarray, rate: int) -> np.ndarray:
    return soxr.resample(samples, rate, 16000)


def plain_pesq(clean: np.ndarray, heard: np.ndarray, rate: int) -> float:
    for _ in range(2):  # under the names pesq and pesq-wb
        value = pesq.pesq(16000, at_16k(clean, rate), at_16k(heard, rate), "wb")
    return float(value)


def plain_stoi(clean: np.ndarray, heard: np.ndarray, rate: int) -> float:
    return float(pystoi.stoi(at_16k(clean, rate), at_16k(heard, rate), 16000))


def plain_f0(clean: np.ndarray, heard: np.ndarray, rate: int) -> float:
    cents = []
    for samples in (clean, heard):
        sound = parselmouth.Sound(at_16k(samples, rate).astype(np.float64), 22050.0)
        track = sound.to_pitch_ac(
            time_step=256 / 22050, pitch_floor=50.0, pitch_ceiling=1100.0, voicing_threshold=0.6
        ).selected_array["frequency"]
        found = 1200 * np.log2(track[track > 0] / 440)
        cents.append(found - np.median(found))
    _, path = librosa.sequence.dtw(cents[0][None], cents[1][None])
    return float(np.corrcoef(cents[0][path[:, 0]], cents[1][path[:, 1]])[0, 1])


PLAIN = dict(zip(FIVE, (plain_stft, plain_mel, plain_pesq, plain_stoi, plain_f0), strict=True))


# --- measuring --------------------------------------------------------------------------------------------------


def cpu_ms(works: dict[str, Work], rounds: int, seconds: float) -> dict[str, float]:
    """CPU milliseconds of each work's cheapest run for a second of sound."""
    return {name: 1000 * value / seconds for name, value in fastest(works, rounds, time.process_time).items()}


Pair = tuple[np.ndarray, np.ndarray]


def one_clip(pair: Pair, rate: int) -> int:
    """What a run does with a decoded clip: align it and measure the five metrics."""
    clean, heard = pair
    return len(measure(clean, aligned(heard, DELAY, rate, len(clean)), rate, FIVE))


def throughput(pool: Executor, work: Callable[[Pair], int], pairs: list[Pair], rounds: int) -> float:
    """Clips per second, the best of a few rounds."""
    list(pool.map(work, pairs[:4]))
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        list(pool.map(work, pairs))
        best = min(best, time.perf_counter() - started)
    return len(pairs) / best


def costs(rate: int, args: argparse.Namespace, pairs: list[Pair]) -> None:
    total = args.seconds * len(pairs)
    prepared = [Sound(clean, rate) for clean, _ in pairs]

    def over(work: Callable[[np.ndarray, np.ndarray], object]) -> Callable[[], object]:
        return lambda: [work(clean, heard) for clean, heard in pairs]

    works: dict[str, Callable[[], object]] = {}
    for name in FIVE:
        works[f"plain {name}"] = over(partial(PLAIN[name], rate=rate))
        works[f"earmark {name}"] = over(partial(measure, rate=rate, metrics=(name,)))
    works["align"] = over(lambda clean, heard: aligned(heard, DELAY, rate, len(clean)))
    works["plain five"] = over(lambda clean, heard: [PLAIN[name](clean, heard, rate) for name in FIVE])
    works["earmark five + alignment"] = lambda: [one_clip(pair, rate) for pair in pairs]
    works["earmark five + alignment, as defined by the reference"] = over(
        lambda clean, heard: measure(
            clean, aligned(heard, DELAY, rate, len(clean)), rate, FIVE, definitions="reference"
        )
    )
    works["earmark all seven, reference prepared"] = lambda: [
        measure(sound, heard, rate, CORE) for sound, (_, heard) in zip(prepared, pairs, strict=True)
    ]
    found = cpu_ms(works, args.rounds, total)
    print(f"\n{rate} Hz, {len(pairs)} clips of {args.seconds:g} s: CPU ms for a second of sound")
    print(f"{'':16} {'plain':>8} {'earmark':>8}")
    for name in FIVE:
        print(f"{name:16} {found[f'plain {name}']:8.2f} {found[f'earmark {name}']:8.2f}")
    print(f"{'alignment':16} {'':8} {found['align']:8.2f}")
    for name in list(works)[2 * len(FIVE) + 1 :]:
        print(f"{name:56} {found[name]:8.1f}")
    print(f"ratio {found['plain five'] / found['earmark five + alignment']:.2f}")
    clean, heard = pairs[0]
    mine = measure(clean, heard, rate, FIVE, definitions="reference")
    gaps = {name: abs(PLAIN[name](clean, heard, rate) - mine[name].value) for name in FIVE}
    print("differences:", ", ".join(f"{name} {gap:.0e}" for name, gap in gaps.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the processes that are started
    for rate in (16000, 48000):
        rng = np.random.default_rng(0)
        clips = [voice(rate, args.seconds, seed) for seed in range(args.clips)]
        pairs = [(clip, (clip + 0.01 * rng.standard_normal(len(clip))).astype(np.float32)) for clip in clips]
        costs(rate, args, pairs)
        if rate == 16000:
            work = partial(one_clip, rate=rate)
            print(f"\nclips of {args.seconds:g} s per second, five metrics and alignment")
            for name, make in (
                ("processes", partial(ProcessPoolExecutor, mp_context=get_context("spawn"))),
                ("threads", ThreadPoolExecutor),
            ):
                speeds = []
                for workers in (1, args.cores):
                    with make(workers) as pool:
                        speeds.append(throughput(pool, work, 2 * pairs, args.rounds))
                gain = speeds[1] / speeds[0]
                print(f"{name:10} 1: {speeds[0]:6.2f}   {args.cores}: {speeds[1]:6.2f}   {gain:.2f} times")


if __name__ == "__main__":
    main()
