"""Fréchet and kernel audio distances against the packages that people use: largest gaps, ratios of time, what is left.

    pip install --no-deps --target packages frechet-audio-distance fadtk kadtk audioldm-eval hypy-utils
    python benchmarks/frechet.py --packages packages            gaps and ratios, some minutes
    python benchmarks/frechet.py --packages packages --quick    smaller sizes, to see that it runs
    python benchmarks/frechet.py --excess                       what extrapolations leave of the excess, by simulation
    python benchmarks/frechet.py --intervals                    how often 95 % intervals hold, by simulation

The packages' own functions are called on the same arrays, in float64 unless they do not offer it. What their modules
import for their models is not needed for that: an empty module stands in. Times are the fastest of a few, all in one
run and on one thread, so that a busy machine hits all alike.
"""

from __future__ import annotations

import argparse
import sys
import types
import warnings
from collections.abc import Callable
from importlib import import_module, metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import fastest, peak_growth

import earmark
from earmark.generated import _distributions as distributions
from earmark.generated._excess import fad_inf

Sets = tuple[np.ndarray, np.ndarray]
BESIDE = ("encodec", "kadtk.models", "laion_clap", "librosa", "resampy", "torchaudio", "torchlibrosa",
          "torchlibrosa.augmentation", "torchlibrosa.stft", "turtle")  # fmt: skip
SEEN = ("frechet-audio-distance", "fadtk", "kadtk", "audioldm-eval")


class _Empty(types.ModuleType):
    """A module of which everything can be imported, and nothing works."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Empty(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Empty("nothing")


def import_beside(name: str) -> Any:
    """A module of a package, with empty ones in place of what it imports for its models."""
    for beside in BESIDE:
        sys.modules.setdefault(beside, _Empty(beside))
    return import_module(name)


def import_file(package: str, file: str) -> Any:
    """A module of a package by itself, without the package."""
    folder = find_spec(package)
    assert folder is not None
    assert folder.submodule_search_locations is not None
    spec = spec_from_file_location(f"{package}_{Path(file).stem}", Path(folder.submodule_search_locations[0]) / file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sets(n: int, m: int, dims: int, seed: int = 0) -> Sets:
    """Two Gaussian clouds whose variances fall over the dimensions, one shifted and wider; float32, as from models."""
    rng = np.random.default_rng(seed)
    spread = 3.0 / np.sqrt(1.0 + np.arange(dims))
    x, y = rng.normal(size=(n, dims)) * spread, 1.2 * rng.normal(size=(m, dims)) * spread + 0.2
    return x.astype(np.float32), y.astype(np.float32)


def frechet_of_packages() -> dict[str, Callable[[np.ndarray, np.ndarray], float]]:
    """The Fréchet distances of two arrays."""
    import torch

    gudgud = import_beside("frechet_audio_distance.fad").FrechetAudioDistance
    fadtk, kadtk = import_beside("fadtk.fad"), import_beside("kadtk.fad")
    audioldm = import_file("audioldm_eval", "metrics/fid.py")

    def of_gudgud(x: np.ndarray, y: np.ndarray) -> float:
        seen = [gudgud.calculate_embd_statistics(None, points.astype(np.float64)) for points in (x, y)]
        return float(gudgud.calculate_frechet_distance(None, *seen[0], *seen[1]))

    def of_fadtk(x: np.ndarray, y: np.ndarray) -> float:
        seen = [fadtk.calc_embd_statistics(points.astype(np.float64)) for points in (x, y)]
        return float(fadtk.calc_frechet_distance(*seen[0], *seen[1]))

    def of_kadtk(x: np.ndarray, y: np.ndarray) -> float:
        pair = torch.tensor(x), torch.tensor(y)
        return float(kadtk.calc_frechet_distance(*pair, (None, None), "cpu", precision=torch.float64))

    def of_audioldm(x: np.ndarray, y: np.ndarray) -> float:
        features = [{"2048": torch.tensor(points, dtype=torch.float64)} for points in (x, y)]
        return float(audioldm.calculate_fid(*features, "2048")["frechet_distance"])

    return {"frechet-audio-distance": of_gudgud, "fadtk": of_fadtk, "kadtk": of_kadtk, "audioldm-eval": of_audioldm}


def kad_of_package(precision: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """kadtk's distance with the median of the real set: 1.1.0 takes that of its second argument."""
    import torch

    kadtk = import_beside("kadtk.kad")

    def of_kadtk(x: np.ndarray, y: np.ndarray) -> float:
        pair = torch.tensor(y), torch.tensor(x)
        return float(kadtk.calc_kernel_audio_distance(*pair, (None, None), "cpu", precision=getattr(torch, precision)))

    return of_kadtk


def compare(title: str, ours: Callable[..., float], theirs: dict[str, Callable[..., float]], cases: list[Any]) -> None:
    """Gaps on the same arrays, and how many times as long each takes."""
    print(f"\n{title:26} {'case':22} {'value':>12} {'gap':>10} {'seconds':>9} {'ratio':>7}")
    for case in cases:
        pair = sets(*case)
        value = ours(*pair)
        shown = f"{case[0]} x {case[1]}, D {case[2]}"
        works = {"earmark": lambda pair=pair: ours(*pair)}
        works |= {name: lambda work=work, pair=pair: work(*pair) for name, work in theirs.items()}
        seconds = fastest(works, 2, warm=False)
        print(f"{'earmark':26} {shown:22} {value:12.6g} {'':>10} {seconds['earmark']:9.3f} {1:7.1f}", flush=True)
        for name, work in theirs.items():
            gap = abs(work(*pair) - value) / abs(value)
            ratio = seconds[name] / seconds["earmark"]
            print(f"{name:26} {shown:22} {'':>12} {gap:10.1e} {seconds[name]:9.3f} {ratio:7.1f}", flush=True)


def excess_left(repeats: int) -> None:
    """What each extrapolation leaves of the excess, in per cent: Gaussians of known distance."""
    heads = f"{'D':>4} {'n':>5} {'differ':>7} {'true':>8} {'measured':>9}"
    print(f"\n{heads} {'fad_inf':>9} {'left %':>7} {'fadtk':>9} {'left %':>7}")
    for dims, n in ((16, 100), (16, 400), (64, 96), (64, 128), (64, 256), (64, 1000), (128, 1000)):
        for scale in (1.0, 1.3):
            true = dims * (scale - 1.0) ** 2
            found = []
            for repeat in range(repeats):
                rng = np.random.default_rng([repeat, dims, n])
                x, y = rng.normal(size=(n, dims)), scale * rng.normal(size=(n, dims))
                line = fad_inf(x, y, (np.arange(n), n + np.arange(n)), seed=repeat)
                found.append((line.whole, line.value, with_replacement(x, y, rng)))
            whole, ours, theirs = np.mean(found, axis=0)
            left = [100 * (value - true) / (whole - true) for value in (ours, theirs)]
            told = f"{dims:4} {n:5} {scale:7} {true:8.2f} {whole:9.2f}"
            print(f"{told} {ours:9.2f} {left[0]:7.0f} {theirs:9.2f} {left[1]:7.0f}", flush=True)


def with_replacement(x: np.ndarray, y: np.ndarray, rng: np.random.Generator, steps: int = 25) -> float:
    """FAD-inf as fadtk and kadtk compute it: generated points drawn with replacement, 25 sizes, a line in 1/n."""
    seen = distributions.gaussian(x)
    sizes = np.linspace(min(500, len(y) // 2), len(y), steps).astype(int)
    values = [distributions.frechet_distance(seen, y[rng.choice(len(y), size)]) for size in sizes]
    return float(np.polyfit(1 / sizes, values, 1)[1])


def intervals_hold(repeats: int) -> None:
    """How often 95 % intervals hold the mean over sets of this size, and how wide they are."""
    print(f"\n{'D':>4} {'n':>5} {'shift':>6} {'scale':>6} {'metric':18} {'mean':>9} {'held %':>7} {'width':>6}")
    for dims, n, shift, scale in ((8, 100, 0, 1), (8, 100, 0.7, 1.2), (8, 400, 0.7, 1.2), (32, 100, 0.7, 1.2),
                                  (32, 400, 0, 1), (32, 400, 0.7, 1.2), (32, 400, 2, 1)):  # fmt: skip
        spread = 1.0 / np.sqrt(np.sqrt(1.0 + np.arange(dims)))
        names = ("frechet_distance", "fad_inf", "kad")
        rows = []
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, dims, n, int(10 * shift)])
            x, y = rng.normal(size=(n, dims)) * spread, scale * rng.normal(size=(n, dims)) * spread
            y[:, 0] += shift
            scores = earmark.fidelity(x, y, metrics=names, correct="none", seed=repeat, threads=1)
            rows.append({name: scores.row(name) for name in names})
        for name in names:
            values = np.array([row[name].value for row in rows])
            ends = np.array([(row[name].low, row[name].high) for row in rows])
            true = float((spread**2 * (scale - 1) ** 2).sum() + shift**2) if name == "fad_inf" else values.mean()
            held = 100 * np.mean((ends[:, 0] <= true) & (true <= ends[:, 1]))
            width = np.mean(ends[:, 1] - ends[:, 0]) / (3.92 * values.std())
            print(
                f"{dims:4} {n:5} {shift:6} {scale:6} {name:18} {values.mean():9.3f} {held:7.0f} {width:6.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", help="folder that the packages were installed into")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--excess", action="store_true", help="what extrapolations leave of the excess")
    parser.add_argument("--intervals", action="store_true", help="how often intervals hold")
    parser.add_argument("--repeats", type=int, default=40, help="of simulations")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if args.packages:
        sys.path.append(args.packages)
        print(", ".join(f"{name} {metadata.version(name)}" for name in (*SEEN, "numpy", "scipy", "torch")))
        import torch

        torch.set_num_threads(1)
        cases = [(400, 300, 64), (300, 200, 256)] if args.quick else [
            (2000, 2000, 128), (50000, 20000, 128), (2000, 1500, 512), (5000, 5000, 512), (3000, 3000, 1024),
        ]  # fmt: skip
        with threadpool_limits(1):
            compare("Fréchet", distributions.frechet_distance, frechet_of_packages(), cases)
        kernels = {f"kadtk ({name})": kad_of_package(name) for name in ("float64", "float32")}
        cases = cases[:1] if args.quick else [(2000, 2000, 128), (5000, 5000, 512), (10000, 10000, 512)]
        with threadpool_limits(1):
            compare("KAD", lambda x, y: distributions.kad(x, y).value, kernels, cases)
        n = 1000 if args.quick else 10000
        start = f"sys.path.append({args.packages!r})\nimport frechet as bench\npair = bench.sets({n}, {n}, 128)"
        for name, work in (
            ("earmark", "bench.distributions.kad(*pair)"),
            ("kadtk (float32)", "bench.kad_of_package('float32')(*pair)"),
        ):
            print(f"memory of KAD, {n} x {n}, D 128: {name:18} {peak_growth(start, work):8.0f} MB", flush=True)
    if args.excess:
        excess_left(args.repeats)
    if args.intervals:
        intervals_hold(args.repeats)


if __name__ == "__main__":
    main()
