"""Log-mel spectrograms against librosa, on the same clips, in one run.

    pip install librosa && python benchmarks/logmel.py [--clips 100] [--seconds 5]

librosa is measured twice: as its users call it (it then builds the mel filters for every clip), and with filters
built once and clips spread over as many threads as ours. The ratio that counts is against the faster of the two.
The largest difference between the spectrograms is printed too: being fast at something else is no merit.
"""

from __future__ import annotations

import argparse

import librosa
import numpy as np
from timing import fastest as fastest_of

from earmark.extractors.logmel import LogMel
from earmark.workers import Workers, thread_count


def librosa_plain(waveform: np.ndarray) -> np.ndarray:
    power = librosa.feature.melspectrogram(
        y=waveform, sr=16000, n_fft=512, hop_length=256, n_mels=128, htk=True, norm=None, pad_mode="reflect"
    )
    return librosa.power_to_db(power, amin=1e-10, top_db=80).T


def librosa_prepared(waveform: np.ndarray, bank: np.ndarray) -> np.ndarray:
    spectrum = librosa.stft(waveform, n_fft=512, hop_length=256, pad_mode="reflect")
    return librosa.power_to_db(bank @ (np.abs(spectrum) ** 2), amin=1e-10, top_db=80).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=thread_count(None))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    samples = round(16000 * args.seconds)
    rise = np.hanning(samples).astype(np.float32)
    clips = [rise * random.standard_normal(samples, dtype=np.float32) for _ in range(args.clips)]
    bank = librosa.filters.mel(sr=16000, n_fft=512, n_mels=128, htk=True, norm=None)
    ours, single = LogMel(threads=args.threads), LogMel(threads=1)

    def threaded() -> None:
        with Workers(args.threads) as workers:  # one BLAS thread each, as for ours
            list(workers.map(lambda clip: librosa_prepared(clip, bank), clips))

    mine = f"earmark, {args.threads} threads"
    seconds = fastest_of(
        {
            "librosa, as called": lambda: [librosa_plain(clip) for clip in clips],
            "librosa, filters once": lambda: [librosa_prepared(clip, bank) for clip in clips],
            f"librosa, filters once, {args.threads} threads": threaded,
            "earmark, 1 thread": lambda: single.extract(clips),
            mine: lambda: ours.extract(clips),
        },
        args.rounds,
    )
    gap = max(np.abs(librosa_plain(clip) - ours.extract([clip])[0].values).max() for clip in clips[:5])
    print(f"{args.clips} clips of {args.seconds:g} s; largest difference {gap:.1e} dB")
    for name, value in seconds.items():
        print(f"{name:36} {1000 * value / args.clips:8.2f} ms per clip")
    fastest = min(value for name, value in seconds.items() if name.startswith("librosa"))
    print(f"ratio to librosa as called: {seconds['librosa, as called'] / seconds[mine]:.1f}")
    print(f"ratio to the fastest librosa: {fastest / seconds[mine]:.1f}")


if __name__ == "__main__":
    main()
