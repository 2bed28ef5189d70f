"""What each departure of the mended metrics from Codec-SUPERB's code is worth, on recorded speech through codecs.

    apt-get download ktuberling-data asterisk-core-sounds-en-wav pocketsphinx-testdata codec2-examples
    for file in *.deb; do dpkg -x $file recordings; done
    pip install "earmark[codecs]" && python benchmarks/codec_departures.py recordings/usr/share [--codecs 6]

Every row changes one step of the reference's definition into the mended one and leaves the others. A pair counts where
both values exist. Clips are at 8, 16, 22.05 and 44.1 kHz; every recording goes through a few of the codecs, so that
all codecs are met equally often. Prints a table in Markdown, which docs/codec-metrics.md holds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pesq

from earmark import audio
from earmark.codecs.alignment import aligned
from earmark.codecs.catalogue import open_codec
from earmark.codecs.harness import round_trip
from earmark.codecs.kernels import warping_path
from earmark.codecs.signal import Sound, _intelligibility, _published, measure
from earmark.codecs.signal._julius import resampled
from earmark.codecs.signal._pitch import FEWEST, cents, pitch_track
from earmark.progress import tracked

FIVE = ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr")
CODECS = (
    "opus@6", "opus@24", "mp3@32", "aac@32", "codec2@1.2", "codec2@3.2", "amr_nb@4.75", "amr_wb@12.65", "g722@64",
    "mulaw@64", "speex@8", "g723_1@6.3",
)  # fmt: skip
LONG = ("codec2/wav/ve9qrp.wav", 35.0)
Departure = tuple[str, str]  # metric, what is changed
WORDS = {
    ("stft_distance", "float32"): "spectra in float32",
    ("mel_distance", "float32"): "spectra in float32",
    ("pesq", "soxr"): "to 16 kHz by soxr, not by julius",
    ("pesq", "parts"): "clips over 20 s in parts, not whole",
    ("stoi", "rate"): "from the clip's rate to 10 kHz at once, by Octave's filter",
    ("stoi", "mask"): "silence judged on the frame itself, not one sample early",
    ("stoi", "epsilon"): "no 1e-10 in denominators",
    ("stoi", "cut"): "not cut to [0, 1]",
    ("f0_corr", "soxr"): "to 16 kHz by soxr, not by julius",
    ("f0_corr", "label"): "16 kHz labelled 16 kHz, not 22,050",
    ("f0_corr", "frames"): "frame by frame, not warped",
    **{(metric, "delay"): "the codec's delay taken out first" for metric in FIVE},
    **{(metric, "all"): "all of these" for metric in FIVE},
}


def recordings(share: Path) -> list[tuple[Path, float | None]]:
    """Files with the seconds to take of each; a few of every package, in a fixed order."""
    groups = {
        "pocketsphinx/test/data": ("librivox/*.wav", "cards/*.wav"),
        "codec2/wav": tuple(f"{name}.wav" for name in ("hts1a", "hts2a", "vk5qi", "mmt1", "morig", "forig", "cross")),
        "asterisk/sounds": ("**/*.wav",),
        "ktuberling/sounds": ("*/*.wav",),
    }
    chosen: list[tuple[Path, float | None]] = []
    for folder, patterns in groups.items():
        files = sorted(file for pattern in patterns for file in (share / folder).glob(pattern))
        if not files:
            raise SystemExit(f"{share / folder} holds no recordings: see the first lines of this script.")
        chosen += [(file, None) for file in files[:: max(1, len(files) // 30)]]
    return [*chosen, (share / LONG[0], LONG[1])]


def changes(clean: Sound, heard: np.ndarray, delay: float) -> Iterator[tuple[Departure, float]]:
    """By how much every departure changes a metric of this pair."""
    rate, length = clean.rate, len(clean.samples)
    reference = measure(clean, heard, rate, FIVE, definitions="reference")
    values = {name: one.value for name, one in reference.items()}
    size = max(length, len(heard))
    padded = [np.pad(samples, (0, size - len(samples))) for samples in (clean.samples, heard)]
    at_16 = [resampled(samples, rate, 16000) for samples in padded]
    by_soxr = [audio.resample(samples, rate, 16000) for samples in padded]
    changed: dict[Departure, float | None] = {}
    distances = measure(*padded, rate, FIVE[:2])
    changed |= {(name, "float32"): one.value for name, one in distances.items()}
    if values["pesq"] is not None:
        changed["pesq", "soxr"] = wide_band(*by_soxr)
        parts = -(-len(at_16[0]) // 320_000)
        if parts > 1:
            split = zip(*(np.array_split(samples, parts) for samples in at_16), strict=True)
            changed["pesq", "parts"] = float(np.mean([wide_band(*part) for part in split]))
    if values["stoi"] is not None:
        at_10 = [resample_default(samples) for samples in at_16]
        straight = [_intelligibility._at_10_khz(samples, rate) for samples in padded]
        changed["stoi", "rate"] = stoi(*straight)
        changed["stoi", "mask"] = stoi(*at_10, early=False)
        changed["stoi", "epsilon"] = stoi(*at_10, tiny=float(np.finfo(float).eps))
        changed["stoi", "cut"] = stoi(*at_10, cut=False)
    if values["f0_corr"] is not None:
        changed["f0_corr", "soxr"] = warped(*(pitch_track(samples, 22050) for samples in by_soxr))
        changed["f0_corr", "label"] = warped(*(pitch_track(samples, 16000) for samples in at_16))
        changed["f0_corr", "frames"] = frame_by_frame(*(pitch_track(samples, 22050) for samples in at_16))
    moved = aligned(heard, delay, rate, length)
    if delay:
        in_time = measure(clean, moved, rate, FIVE, definitions="reference")
        changed |= {(name, "delay"): one.value for name, one in in_time.items()}
    changed |= {(name, "all"): one.value for name, one in measure(clean, moved, rate, FIVE).items()}
    for departure, value in changed.items():
        before = values[departure[0]]
        if value is not None and before is not None:
            yield departure, abs(value - before)


def wide_band(clean: np.ndarray, heard: np.ndarray) -> float | None:
    try:
        return float(pesq.pesq(16000, clean, heard, "wb"))
    except pesq.PesqError:
        return None


def resample_default(samples: np.ndarray) -> np.ndarray:
    from scipy.signal import resample_poly

    return resample_poly(samples, 10000, 16000)


def stoi(x: np.ndarray, y: np.ndarray, *, early: bool = True, tiny: float = 1e-10, cut: bool = True) -> float | None:
    """STOI of clips at 10 kHz as the reference computes it, but for what is changed."""
    window = _intelligibility.window()
    starts = np.arange(0, len(x) - 256, 128)
    if not len(starts):
        return None
    shifted = np.concatenate([x[-1:], x]) if early else x
    frames = [np.lib.stride_tricks.sliding_window_view(c, 256)[starts] * window for c in (x, y, shifted)]
    level = 20 * np.log10(np.linalg.norm(frames[2], axis=1) / 16 + tiny)
    loud = level > level.max() - 40
    if np.count_nonzero(loud) <= 30:
        return None
    envelopes = [_intelligibility.envelopes(part[loud]) / window.sum() for part in frames[:2]]
    kept, _published.TINY = _published.TINY, tiny
    value = _published._mean_correlation(*envelopes)
    _published.TINY = kept
    return min(max(value, 0.0), 1.0) if cut else value


def warped(clean: np.ndarray, heard: np.ndarray) -> float | None:
    a, b = (cents(track[track > 0]) for track in (clean, heard))
    if min(len(a), len(b)) < 2:
        return None
    a, b = a - np.median(a), b - np.median(b)
    path = warping_path(a, b)
    value = np.corrcoef(a[path[:, 0]], b[path[:, 1]])[0, 1]
    return float(value) if np.isfinite(value) else None


def frame_by_frame(clean: np.ndarray, heard: np.ndarray) -> float | None:
    both = (clean > 0) & (heard > 0)
    if np.count_nonzero(both) < FEWEST:
        return None
    value = np.corrcoef(cents(clean[both]), cents(heard[both]))[0, 1]
    return float(value) if np.isfinite(value) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("share", type=Path, nargs="?", default=Path("/usr/share"), help="holds the packages' folders")
    parser.add_argument("--codecs", type=int, default=4, help="codecs for each recording")
    args = parser.parse_args()
    files = recordings(args.share)
    codecs = [open_codec(name) for name in CODECS]
    found: dict[Departure, list[float]] = defaultdict(list)
    pairs = 0
    rates: dict[int, int] = defaultdict(int)
    np.seterr(all="ignore")
    for number, (file, seconds) in enumerate(tracked(files, "measuring", "recordings", progress=True)):
        samples, rate = audio.read(file, end=seconds)
        rates[rate] += 1
        clean = Sound(samples, rate)
        for step in range(args.codecs):
            codec = codecs[(number * args.codecs + step) % len(codecs)]
            heard = round_trip(codec, samples, rate).samples
            pairs += 1
            delay = (codec.card.delay or 0) / codec.card.rate
            for departure, change in changes(clean, heard, delay):
                found[departure].append(change)
    print(f"{pairs} pairs of {len(files)} recordings ({', '.join(f'{n} at {r} Hz' for r, n in sorted(rates.items()))})")
    print("\n| Metric | Departure | largest | mean | pairs |\n|---|---|---|---|---|")
    for departure, words in WORDS.items():
        if values := found.get(departure):
            print(f"| `{departure[0]}` | {words} | {max(values):.2g} | {np.mean(values):.2g} | {len(values)} |")


if __name__ == "__main__":
    main()
