"""Fréchet and kernel audio distances against the packages that people use: largest gaps, ratios of time, what is left.

    pip install --no-deps --target packages frechet-audio-distance fadtk kadtk audioldm-eval hypy-utils
    python benchmarks/frechet.py --packages packages            gaps and ratios, some minutes
    python benchmarks/frechet.py --packages packages --quick    smaller sizes, to see that it runs
    python benchmarks/frechet.py --excess                       what extrapolations leave of the excess, by simulation
    python benchmarks/frechet.py --spread esc50/manifest.csv    the same sounds under many recipes; needs weights
    python benchmarks/frechet.py --spread esc50/manifest.csv --figure sizes.png

The packages' own functions are called on the same arrays, in float64 unless they do not offer it. What their modules
import for their models is not needed for that: an empty module stands in. Times are the fastest of a few, all in one
run and on one thread, so that a busy machine hits all alike.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import fastest, peak_growth

from earmark import audio
from earmark.generated import _distributions as distributions
from earmark.generated._excess import fad_inf
from earmark.generated.by_recipe import Sources, measure_points
from earmark.generated.measure import measure
from earmark.generated.recipes import Recipe, find_recipe

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


def spread(manifest: str, figure: str | None) -> None:
    """The same two sets of sounds under recipes that differ in one thing: 400 clips, and 400 others in noise."""
    rng = np.random.default_rng(0)
    folder = Path(manifest).parent
    with Path(manifest).open() as file:
        paths = [folder / row["path"] for row in csv.DictReader(file)]
    chosen = [paths[place] for place in rng.permutation(len(paths))[:1200]]
    with tempfile.TemporaryDirectory() as there:
        for name, files, noise in (
            ("real", chosen[:400], 0.0),
            ("noisy", chosen[400:800], 0.1),
            ("other", chosen[800:], 0),
        ):
            (Path(there) / name).mkdir()
            for path in files:
                samples, rate = audio.read(path)
                level = noise * float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
                audio.write(
                    Path(there) / name / f"{path.stem}.wav", samples + level * rng.normal(size=len(samples)), rate
                )
        if figure:
            sizes_drawn(there, figure)
            return
        print(f"{'recipe':34} {'D':>5} {'points':>7} {'FAD':>10} {'FAD-inf':>10} {'KAD':>8}  {'FAD, no noise':>13}")
        for shown, recipe, unit in variants():
            sources = Sources(recipe)
            points = {name: sources.points(str(Path(there) / name)) for name in ("real", "noisy", "other")}
            if unit:
                points = {name: replace(each, values=_length_one(each.values)) for name, each in points.items()}
            found = measure_points(points["real"], points["noisy"], recipe, metrics="fad,fad_inf,kad", intervals="none")
            alike = distributions.frechet_distance(points["real"].values, points["other"].values)
            cells = [_cell(found.row(name).value) for name in ("frechet_distance", "fad_inf", "kad")]
            counts = f"{points['real'].values.shape[1]:5} {len(points['real'].values):7}"
            print(f"{shown:34} {counts} {cells[0]:>10} {cells[1]:>10} {cells[2]:>8}  {_cell(alike):>13}", flush=True)


def _length_one(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def variants() -> list[tuple[str, Recipe, bool]]:
    """Recipes by what they change, and whether vectors are brought to length 1."""
    speech, birds = find_recipe("earmark-speech"), find_recipe("earmark-birdnet")
    return [
        ("earmark-mfcc", find_recipe("earmark-mfcc"), False),
        ("earmark-speech (seconds)", speech, False),
        ("  every frame of 80 ms", replace(speech, point="frame"), False),
        ("  mean of a clip", replace(speech, point="clip"), False),
        ("  level as it is in the file", replace(speech, level="as it is"), False),
        ("  vectors of length 1", speech, True),
        ("earmark-speaker", find_recipe("earmark-speaker"), False),
        ("earmark-birdnet (3 s windows)", birds, False),
        ("  mean of a clip", replace(birds, point="clip"), False),
        ("  vectors of length 1", birds, True),
    ]


def sizes_drawn(there: str, path: str) -> None:
    """Distances of sets of one distribution and of noisy ones, by the number of clips."""
    from earmark.report.figures import save
    from earmark.report.figures.style import COLOURS, MARKERS, grid, look, new_figure

    recipe = replace(find_recipe("earmark-speech"), point="clip")
    sources = Sources(recipe)
    sets_of = {name: sources.points(str(Path(there) / name)).values for name in ("real", "noisy", "other")}
    sizes = (100, 150, 200, 300, 400)
    with look():
        figure = new_figure(8.4, 3.2)
        panels = figure.subplots(1, 3)
        for panel, metric in zip(panels, ("frechet_distance", "fad_inf", "kad"), strict=True):
            for place, (name, shown) in enumerate((("noisy", "other clips, in noise"), ("other", "other clips"))):
                means, spreads = [], []
                for size in sizes:
                    rng = np.random.default_rng(size)
                    values = []
                    for _ in range(12):
                        x, y = (sets_of[which][rng.permutation(400)[:size]] for which in ("real", name))
                        values.append(measure(x, y, metrics=metric)[metric])
                    means.append(np.mean(values))
                    spreads.append(np.std(values))
                style = {"color": COLOURS[place], "marker": MARKERS[place], "label": shown, "capsize": 2}
                panel.errorbar(sizes, means, spreads, **style)
            panel.axhline(0.0, linewidth=0.8, color="#5f6c78")
            panel.set(title=metric, xlabel="clips in each set")
            grid(panel)
        panels[0].legend(loc="upper right")
        save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", help="folder that the packages were installed into")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--excess", action="store_true", help="what extrapolations leave of the excess")
    parser.add_argument("--spread", metavar="MANIFEST", help="the same sounds under many recipes")
    parser.add_argument("--figure", metavar="FILE", help="with --spread: draw distances by the number of clips instead")
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
    if args.spread:
        spread(args.spread, args.figure)
    if args.excess:
        excess_left(args.repeats)


if __name__ == "__main__":
    main()
