"""Train VocSim's VAE and AE on one corpus, seed after seed, and keep their vectors: for a machine with a GPU.

    python benchmarks/baselines.py --audio ESC/audio --manifest ESC/manifest.csv --device cuda --minutes 3 --out results

Needs NumPy, torch and soundfile alone; networks, front ends, losses and the loop are those of the package (`src` beside
this folder is found). Sounds of 16 kHz are decoded once and lie on the card. Trainings that would not end within
--minutes are not begun; results are written after each.

    vectors.npz     ids in the order of the manifest; NAME_SEED: one vector a clip
    sequence.npz    the AE of the first seed, its code over time [clips, T, 256], float16
    history.json    losses, times, settings, the card
    ae_0.pt         weights of the first seed; vae_0.1.npz to vae_0.3.npz likewise

Models: vae and ae are the authors' recipes. Variants say what a choice matters:
    vae-text        128 mel bands, 64 patches a batch, ends after 10 epochs without gain
    vae-patches     the released recipe with 64 patches a batch in place of 64 clips
    vae-mixed       mixed precision; ae-float32 without it
    vae-long        200 epochs; ae-long likewise, whatever the loss does
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np
import torch

from earmark.extractors.baselines import BASELINES, Baseline
from earmark.extractors.training_sounds import Sounds

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "vae": ("vae", {}),
    "ae": ("ae", {}),
    "vae-text": ("vae", {"recipe": "text"}),
    "vae-patches": ("vae", {"batch_of": "patches"}),
    "vae-mixed": ("vae", {"mixed": True}),
    "ae-float32": ("ae", {"mixed": False}),
    "vae-long": ("vae", {"epochs": 200}),
    "ae-long": ("ae", {"epochs": 200, "patience": 0}),
}
LONGER = {"vae-text": 4, "vae-patches": 4, "vae-long": 4, "ae-long": 4}  # times as many steps, on clips of 5 s
Learnt = tuple[dict[str, Any], dict[str, Any], Baseline]
RATE = 16000
LARGE = ("fc1.weight", "fc8.weight")
AT_ONCE = 100  # clips that are encoded together


def main() -> None:
    args = arguments()
    began = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    card = torch.cuda.get_device_name() if args.device.startswith("cuda") else "cpu"
    ids, waveforms = decode(args)
    seconds = sum(map(len, waveforms)) / RATE
    print(f"{card}, torch {torch.__version__}: {len(ids)} clips, {seconds:.0f} s of sound, "
          f"decoded in {time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
    sounds = store(waveforms, args.device)
    work = [(name, seed) for seed in args.seeds for name in args.models] + [
        (name, args.seeds[0]) for name in args.extra
    ]
    history: dict[str, Any] = {
        "card": card, "torch": torch.__version__, "clips": len(ids), "seconds": seconds, "epochs": args.epochs,
        "decode_s": time.perf_counter() - began, "runs": {},
    }  # fmt: skip
    vectors: dict[str, Any] = {"ids": np.array(ids)}
    took: dict[str, float] = {}
    for name, seed in work:
        spent = time.perf_counter() - began
        kind = VARIANTS[name][0]
        expected = took.get(name, LONGER.get(name, 1) * took.get(kind, max(took.values(), default=0.0)))
        if spent + 1.1 * expected > 60 * args.minutes:
            print(
                f"{name} seed {seed}: not begun, {spent:.0f} s are spent and it would take {expected:.0f}", flush=True
            )
            continue
        started = time.perf_counter()
        learnt = attempt(name, seed, sounds, args)
        if isinstance(learnt, str):
            history["runs"][f"{name}_{seed}"] = {"error": learnt}
            write_history(args.out, history)
            continue
        run, found, model = learnt
        took[name] = time.perf_counter() - started
        history["runs"][f"{name}_{seed}"] = run
        vectors[f"{name}_{seed}"] = found.pop("vectors")
        np.savez_compressed(args.out / "vectors.npz", **vectors)
        write_history(args.out, history)
        if seed == args.seeds[0] and name in ("vae", "ae"):
            keep_weights(args.out, name, seed, model, found)
        print_run(name, seed, run)
    print(f"all in {time.perf_counter() - began:.0f} s", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audio", required=True, help="folder of the files, or several, separated by commas")
    parser.add_argument("--manifest", type=Path, required=True, help="CSV with a column `path`")
    parser.add_argument("--models", default="vae,ae")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--extra", default="", help="variants that are trained afterwards, with the first seed")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--clips", type=int, default=0, help="the first so many alone")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.models = [name for name in args.models.split(",") if name]
    args.extra = [name for name in args.extra.split(",") if name]
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    unknown = {*args.models, *args.extra} - set(VARIANTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(VARIANTS)}")
    return args


def decode(args: argparse.Namespace) -> tuple[list[str], list[np.ndarray]]:
    """Ids and waveforms in the order of the manifest."""
    import soundfile

    with args.manifest.open(newline="", encoding="utf-8-sig") as stream:
        ids = [row["path"] for row in csv.DictReader(stream)]
    ids = ids[: args.clips or None]
    folders = [Path(folder) for folder in args.audio.split(",")]
    there = {path.name: path for folder in folders for path in folder.iterdir()}
    lacking = [name for name in ids if Path(name).name not in there]
    if lacking:
        raise SystemExit(f"{len(lacking)} of {len(ids)} files are not there, the first is {lacking[0]}")

    def read(name: str) -> np.ndarray:
        samples, rate = soundfile.read(str(there[Path(name).name]), dtype="float32", always_2d=True)
        if rate != RATE:
            raise SystemExit(f"{name} has {rate} samples a second, not {RATE}")
        return np.ascontiguousarray(samples.mean(axis=1, dtype=np.float32))

    with ThreadPoolExecutor(16) as pool:
        return ids, list(pool.map(read, ids))


def store(waveforms: Sequence[np.ndarray], device: str) -> Sounds:
    """Sounds at their largest, as every extractor is given them."""
    sounds = Sounds(in_memory=1 << 34)
    for samples in waveforms:
        peak = float(np.abs(samples).max(initial=0.0))
        sounds.add(samples / np.float32(peak) if peak > 0 else samples)
    sounds.settle(device)
    return sounds


def attempt(name: str, seed: int, sounds: Sounds, args: argparse.Namespace) -> Learnt | str:
    """What was learnt; in float32 where mixed precision fails, or why it failed: the next one may do."""
    errors = []
    for changes in ({}, {"mixed": False}):
        try:
            run, found, model = learn(name, seed, sounds, args, changes)
            return {**run, "errors": errors}, found, model
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
            print(f"{name} seed {seed}: {errors[-1]}", flush=True)
            if args.device.startswith("cuda"):
                torch.cuda.empty_cache()
    return "; ".join(errors)


def learn(name: str, seed: int, sounds: Sounds, args: argparse.Namespace, changes: dict[str, Any]) -> Learnt:
    kind, options = VARIANTS[name]
    options = {"epochs": args.epochs, **options, **changes}
    on_card = args.device.startswith("cuda")
    if on_card:
        torch.cuda.reset_peak_memory_stats()
    model = BASELINES[kind](seed=seed, device=args.device, **options)
    ends = [time.perf_counter()]
    model.fit(sounds, tell=lambda _: ends.append(time.perf_counter()))
    trained = time.perf_counter()
    found = encode(model, sounds)
    encoded = time.perf_counter()
    epochs = np.diff(ends)
    clips = len(sounds)
    run = {
        "recipe": dict(vars(model.recipe)), "options": options, "history": model.history,
        "epochs": len(model.history), "train_s": trained - ends[0], "first_epoch_s": float(epochs[0]),
        "epoch_s": float(np.median(epochs)), "train_clips_per_s": clips / float(np.median(epochs)),
        "encode_s": encoded - trained, "encode_clips_per_s": clips / (encoded - trained),
        "peak_bytes": torch.cuda.max_memory_allocated() if on_card else None,
        "sounds_bytes": 4 * sum(sounds.lengths),
        "parameters": sum(weights.numel() for weights in model.network.parameters()),
    }  # fmt: skip
    return run, found, model


def encode(model: Baseline, sounds: Sounds) -> dict[str, Any]:
    """Vectors of all clips in float32, and their codes over time where all have as many."""
    vectors, sequences = [], []
    tf32 = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        with torch.no_grad():
            for low in range(0, len(sounds), AT_ONCE):
                clips = range(low, min(low + AT_ONCE, len(sounds)))
                spans = [[(clip, start) for start in model.starts(sounds.lengths[clip])] for clip in clips]
                codes = model.codes(model.load(sounds, [span for own in spans for span in own]))
                for own in codes.split([len(own) for own in spans]):
                    sequence = own.flatten(0, 1)
                    vectors.append(sequence.mean(0))
                    sequences.append(sequence)
            found = {"vectors": torch.stack(vectors).float().cpu().numpy()}
            if model.name == "ae":
                most = max(-(-(1 + length // 256) // 32) for length in sounds.lengths)
                found["sequence"] = torch.stack([sequence[:most] for sequence in sequences]).half().cpu().numpy()
    finally:
        torch.backends.cudnn.allow_tf32 = tf32
    return found


def keep_weights(out: Path, name: str, seed: int, model: Baseline, found: dict[str, Any]) -> None:
    """All weights; of the VAE the two large matrices in float16, over three files."""
    weights = {key: value.cpu() for key, value in model.network.state_dict().items()}
    if name == "ae":
        torch.save(weights, out / f"ae_{seed}.pt")
        np.savez_compressed(out / "sequence.npz", sequence=found["sequence"])
        return
    large = np.concatenate([weights.pop(key).half().numpy().ravel() for key in LARGE])
    parts = np.array_split(large, 3)
    np.savez(out / f"vae_{seed}.1.npz", large=parts[0], **{key: value.numpy() for key, value in weights.items()})
    for number in (1, 2):
        np.savez(out / f"vae_{seed}.{number + 1}.npz", large=parts[number])


def write_history(out: Path, history: dict[str, Any]) -> None:
    (out / "history.json").write_text(json.dumps(history, indent=1) + "\n", encoding="utf-8")


def print_run(name: str, seed: int, run: dict[str, Any]) -> None:
    losses = [entry["train"] for entry in run["history"]]
    memory = (
        ""
        if run["peak_bytes"] is None
        else f", peak {run['peak_bytes'] / 1e9:.2f} GB (sounds {run['sounds_bytes'] / 1e9:.2f})"
    )
    print(
        f"{name} seed {seed}: {run['epochs']} epochs in {run['train_s']:.1f} s (first {run['first_epoch_s']:.2f} s, "
        f"median {run['epoch_s']:.3f} s, {run['train_clips_per_s']:.0f} clips/s), loss {losses[0]:.4g} to "
        f"{losses[-1]:.4g} (least {min(losses):.4g}), encoded at {run['encode_clips_per_s']:.0f} clips/s{memory}",
        flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
