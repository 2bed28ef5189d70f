"""Signal metrics of codecs: CPU milliseconds for each second of sound, and clips per second on one core and two.

    pip install "earmark[codecs,torch]" librosa && python benchmarks/codec_metrics.py [--clips 12] [--seconds 5]

Beside Earmark, in the same run on the same clips, does what Codec-SUPERB's code does (SoundCodec/metrics.py), step by
step with the same libraries: spectra by torch for each of the two distances, magnitudes taken anew for each term; the
resampler julius with its taps made at every call; PESQ twice, under two names; STOI segment by segment; parselmouth and
librosa's time warping. Everything runs on one thread; the two take turns. Differences to `definitions="reference"` are
printed too, since being fast at something else is no merit. "As in a run": a clip with its six decoded versions, per
version, since a run measures six codecs on a clip in one go.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from multiprocessing import get_context

import librosa
import numpy as np
import parselmouth
import pesq
import scipy.linalg
import scipy.signal
import torch
from threadpoolctl import threadpool_limits
from timing import Work, fastest

from earmark.codecs.alignment import aligned
from earmark.codecs.clip_work import TOGETHER
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


# --- what Codec-SUPERB's code does ------------------------------------------------------------------------------


class Clip:
    """A waveform that is resampled in place, as there."""

    def __init__(self, samples: np.ndarray, rate: int) -> None:
        self.samples, self.rate = torch.from_numpy(samples), rate

    def resample(self, rate: int) -> np.ndarray:
        if rate != self.rate:
            self.samples, self.rate = by_julius(self.samples, self.rate, rate), rate
        return self.samples.numpy()

    def spectrum(self, window: int) -> torch.Tensor:
        return torch.stft(self.samples, window, window // 4, window=hann(window), center=True, return_complex=True)

    def mels(self, window: int, bands: int) -> torch.Tensor:
        bank = torch.from_numpy(mel_bank(self.rate, window, bands))
        return (self.spectrum(window).abs().T @ bank.T).T


@cache
def hann(window: int) -> torch.Tensor:
    return torch.from_numpy(scipy.signal.get_window("hann", window)).float()


@cache
def mel_bank(rate: int, window: int, bands: int) -> np.ndarray:
    return librosa.filters.mel(sr=rate, n_fft=window, n_mels=bands)


def by_julius(samples: torch.Tensor, rate: int, wanted: int) -> torch.Tensor:
    divisor = math.gcd(rate, wanted)
    old, new = rate // divisor, wanted // divisor
    cutoff = 0.945 * min(old, new)
    width = math.ceil(24 * old / cutoff)
    index = torch.arange(-width, width + old).float()
    filters = []
    for phase in range(new):
        t = ((-phase / new + index / old) * cutoff).clamp_(-24, 24) * math.pi
        taps = torch.where(t == 0, torch.tensor(1.0), torch.sin(t) / t) * torch.cos(t / 24 / 2) ** 2
        filters.append(taps / taps.sum())
    padded = torch.nn.functional.pad(samples[None, None], (width, width + old), mode="replicate")
    made = torch.nn.functional.conv1d(padded, torch.stack(filters)[:, None], stride=old)
    return made.transpose(1, 2).reshape(-1)[: int(torch.floor(torch.as_tensor(new * len(samples) / old)))]


def l1(a: torch.Tensor, b: torch.Tensor) -> float:
    return torch.nn.functional.l1_loss(a, b).item()


def logarithm(a: torch.Tensor) -> torch.Tensor:
    return a.clamp(1e-5).pow(2).log10()


def plain_stft(clean: Clip, heard: Clip) -> float:
    total = 0.0
    for window in (2048, 512):
        a, b = clean.spectrum(window), heard.spectrum(window)
        total += l1(logarithm(a.abs()), logarithm(b.abs())) + l1(a.abs(), b.abs())
    return total


def plain_mel(clean: Clip, heard: Clip) -> float:
    total = 0.0
    for scale in ((2048, 150), (512, 80)):
        a, b = clean.mels(*scale), heard.mels(*scale)
        total += l1(logarithm(a), logarithm(b)) + l1(a, b)
    return total


def plain_pesq(clean: Clip, heard: Clip) -> float:
    for _ in range(2):  # under the names pesq and pesq-wb
        value = pesq.pesq(16000, clean.resample(16000), heard.resample(16000), "wb")
    return float(value)


def plain_stoi(clean: Clip, heard: Clip) -> float:
    x, y = (scipy.signal.resample_poly(clip.resample(16000), 10000, 16000) for clip in (clean, heard))
    x, y = without_silence(x, y)
    x, y = (np.sqrt(third_octaves() @ np.square(np.abs(short_time(c)))) for c in (x, y))
    values = np.zeros(max(0, x.shape[1] - 29))
    for start in range(len(values)):
        a, b = x[:, start : start + 30], y[:, start : start + 30]
        energy_a, energy_b = (np.sum(np.square(c), axis=1, keepdims=True) for c in (a, b))
        b = np.minimum(b * np.sqrt(energy_a / (energy_b + 1e-10)), a + a * 10 ** (15 / 20))
        values[start] = np.trace(standard(a) @ standard(b).T) / 15
    return float(np.clip(values.mean(), 0, 1))


def without_silence(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    window = scipy.signal.windows.hann(258)[1:257]
    starts = np.arange(0, len(x) - 256, 128)
    early = np.empty((len(starts), 256), int)
    for row, start in enumerate(starts):
        early[row] = np.arange(start - 1, start + 255)
    level = 20 * np.log10(scipy.linalg.norm(x[early] * window, axis=1) / 16 + 1e-10)
    loud = level - level.max() + 40 > 0
    joined = np.zeros((2, len(x)))
    end = place = 0
    for start in starts[loud]:
        taken, put = np.arange(start, start + 256), np.arange(starts[place], starts[place] + 256)
        joined[0, put] = joined[0, put] + x[taken] * window
        joined[1, put] = joined[1, put] + y[taken] * window
        end, place = put[-1] + 1, place + 1
    return joined[0, :end], joined[1, :end]


def short_time(samples: np.ndarray) -> np.ndarray:
    made = scipy.signal.stft(
        samples, window=scipy.signal.windows.hann(258)[1:257], nperseg=256, noverlap=128, nfft=512,
        return_onesided=False, boundary=None,
    )[2]  # fmt: skip
    return made[:257, : (len(samples) - 256) // 128]


def third_octaves() -> np.ndarray:
    """The bank, made at every call."""
    edges = 150 * 2 ** ((2 * np.arange(15)[:, None] + [-1, 1]) / 6)
    bins = np.abs(np.arange(257) * 10000 / 512 - edges[..., None]).argmin(axis=-1)
    bank = np.zeros((15, 257))
    for row, (low, high) in enumerate(bins):
        bank[row, low:high] = 1
    return bank


def standard(rows: np.ndarray) -> np.ndarray:
    rows = rows - np.mean(rows, axis=1, keepdims=True)
    return rows / (scipy.linalg.norm(rows, axis=1, keepdims=True) + 1e-10)


def plain_f0(clean: Clip, heard: Clip) -> float:
    cents = []
    for clip in (clean, heard):
        track = (
            parselmouth.Sound(clip.resample(16000).astype(np.float64), 22050.0)
            .to_pitch_ac(time_step=256 / 22050, pitch_floor=50.0, pitch_ceiling=1100.0, voicing_threshold=0.6)
            .selected_array["frequency"]
        )
        found = 1200 * np.log2(track[track > 0] / 440)
        cents.append(found - np.median(found))
    _, path = librosa.sequence.dtw(cents[0], cents[1], backtrack=True)
    along = [
        torch.from_numpy(np.array([row[step] for step in path[:, side]])).float() for side, row in enumerate(cents)
    ]
    return float(torch.corrcoef(torch.stack(along))[0, 1])


PLAIN = dict(zip(FIVE, (plain_stft, plain_mel, plain_pesq, plain_stoi, plain_f0), strict=True))


def plain(clean: np.ndarray, heard: np.ndarray, rate: int, metrics: Sequence[str] = FIVE) -> dict[str, float]:
    pair = Clip(clean, rate), Clip(heard, rate)
    return {name: PLAIN[name](*pair) for name in metrics}


# --- measuring --------------------------------------------------------------------------------------------------


def cpu_ms(works: dict[str, Work], rounds: int, seconds: float) -> dict[str, float]:
    """CPU milliseconds of each work's cheapest run for a second of sound."""
    return {name: 1000 * value / seconds for name, value in fastest(works, rounds, time.process_time).items()}


Pair = tuple[np.ndarray, np.ndarray]


def one_clip(pair: Pair, rate: int) -> int:
    """What a run does with a decoded clip: align it and measure the five metrics."""
    clean, heard = pair
    return len(measure(clean, aligned(heard, DELAY, rate, len(clean)), rate, FIVE))


def as_in_a_run(clean: np.ndarray, heard: np.ndarray, rate: int) -> None:
    """What a run does with a clip and a few decoded versions of it: the reference's share is computed once."""
    sound = Sound(clean, rate)
    for _ in range(TOGETHER):
        measure(sound, aligned(heard, DELAY, rate, len(clean)), rate, FIVE)


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
        works[f"plain {name}"] = over(partial(plain, rate=rate, metrics=(name,)))
        works[f"earmark {name}"] = over(partial(measure, rate=rate, metrics=(name,)))
    works["align"] = over(lambda clean, heard: aligned(heard, DELAY, rate, len(clean)))
    works["plain five"] = over(partial(plain, rate=rate))
    works["earmark five + alignment"] = lambda: [one_clip(pair, rate) for pair in pairs]
    works["earmark five + alignment, as defined by the reference"] = over(
        lambda clean, heard: measure(
            clean, aligned(heard, DELAY, rate, len(clean)), rate, FIVE, definitions="reference"
        )
    )
    works["earmark five + alignment, as in a run"] = lambda: [as_in_a_run(clean, heard, rate) for clean, heard in pairs]
    at_16k = [[sound.at(16000) for sound in (Sound(clean, rate), Sound(heard, rate))] for clean, heard in pairs]
    works["pesq alone"] = lambda: [pesq.pesq(16000, *pair, "wb") for pair in at_16k]
    works["earmark all seven, reference prepared"] = lambda: [
        measure(sound, heard, rate, CORE) for sound, (_, heard) in zip(prepared, pairs, strict=True)
    ]
    found = cpu_ms(works, args.rounds, total)
    found["earmark five + alignment, as in a run"] /= TOGETHER
    print(f"\n{rate} Hz, {len(pairs)} clips of {args.seconds:g} s: CPU ms for a second of sound")
    print(f"{'':16} {'plain':>8} {'earmark':>8}")
    for name in FIVE:
        print(f"{name:16} {found[f'plain {name}']:8.2f} {found[f'earmark {name}']:8.2f}")
    print(f"{'alignment':16} {'':8} {found['align']:8.2f}")
    for name in list(works)[2 * len(FIVE) + 1 :]:
        print(f"{name:56} {found[name]:8.1f}")
    five = found["plain five"]
    for name in ("earmark five + alignment", "earmark five + alignment, as in a run", "pesq alone"):
        print(f"{name}: {found[name] / five:.3f} of the plain five")
    clean, heard = pairs[0]
    mine = measure(clean, heard, rate, FIVE, definitions="reference")
    theirs = plain(clean, heard, rate)
    gaps = {name: abs(theirs[name] - mine[name].value) for name in FIVE}
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
