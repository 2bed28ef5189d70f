"""Judge generated sounds, or any vectors, against real ones: are they like the real, and do they cover them?

REAL and GENERATED: files of vectors (.npy, .npz, .parquet, .csv, .pt), one row for each clip, or with --extractor
audio: folders, manifests or corpora. Every metric is printed as it is and with hubness corrected (GICDM); where that
lowers fidelity, believe it, and where it raises fidelity by much, listen to the samples. Several GENERATED sets are
ranked, each rank with its interval, and told apart where other draws would show the difference again; with --human each
metric is correlated with what people said of the generators.
`earmark fidelity sanity` puts the metrics themselves to the test. With --recipe, Fréchet and kernel distances are
measured as a tool does it; `earmark fidelity recipes` lists them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import InputError, UsageError
from earmark.evaluation.options import Options
from earmark.generated.api import READINGS, Fidelity, fidelity
from earmark.places import locate
from earmark.vectors import Vectors
from earmark.vectors.columns import shortened
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.extractors.contract import Extractor

EXAMPLES = """examples:
  earmark fidelity real.npy generated.npy
  earmark fidelity real.npz generated.npz --metrics clipped_density,clipped_coverage --per-sample samples.csv
  earmark fidelity recordings/ synthesised/ --extractor logmel --html fidelity.html
  earmark fidelity real.npy generated.npy --k 3 --correct none --intervals none --out scores.csv
  earmark fidelity recordings/ synthesised/ --recipe earmark-mfcc
  earmark fidelity recordings/ synthesised/ --recipe fadtk-vggish --extractor 'vggish:vggish.pth?allow_pickle=true'
  earmark fidelity recipes
  earmark fidelity real.npz gan.npz flow.npz diffusion.npz --ranks ranks.csv --figure plane.png --html generators.html
  earmark fidelity real.npz a.npz b.npz c.npz d.npz e.npz --human fooled.csv --metrics clipped_density,density
  earmark fidelity sanity --list
"""

TEXTS = {
    "metrics": "metrics to compute, or `all` (default: all but alpha_precision and beta_recall, which train a network, "
    "and fad_inf and kad; with --recipe: the recipe's)",
    "correct": "none, gicdm or both with a comma (default: both)",
    "intervals": "95 % intervals: jackknife (both sets lose half of their points, 24 times), bootstrap (balls are held "
    "fixed: too narrow), none (default: jackknife, or bootstrap where --bootstrap is given)",
    "bootstrap": "resamples of the points for --intervals bootstrap, which it chooses; 0 for no intervals (300)",
    "seed": "seed of smaller sets, resamples and the network",
    "distance": "euclidean, cosine, spearman; several separated by commas (default: euclidean)",
    "system": "name of the generator, for the system column; of several sets, names with commas (default: the files')",
}

ARRAYS = (".npy", ".npz", ".pt")  # vectors whatever else is said; tables may also be manifests of audio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("real", metavar="REAL", help="vectors, or audio with --extractor")
    parser.add_argument(
        "generated", metavar="GENERATED", nargs="+", help="vectors, or audio with --extractor; several sets are ranked"
    )
    pooled = "the extractor's own, or mean_time where that grows with the longest clip"
    options.add(
        parser.add_argument_group("audio"),
        ("--extractor", "NAME", "turn sounds into vectors with this model"),
        ("--pool", "P", f"pooling of frames (default: {pooled})"),
        ("--recipe", "NAME", "distances as a tool measures them, with its model, windows and points"),
    )
    group = parser.add_argument_group("metrics and intervals")
    flags.add_flags(group, Options, ("metrics", "correct", "intervals", "bootstrap", "seed"), TEXTS)
    options.add(group, ("--bandwidth", "W", "of kad: real or generated (whose median distance), or a number (real)"))
    group.add_argument(
        "--k", type=_neighbours, default=5, metavar="K",
        help="neighbours that make a ball, or metric=k pairs with commas (default: 5; the cover pair keeps its 3, "
        "which only precision_cover=2,recall_cover=2 changes)",
    )  # fmt: skip
    reading = "the clipped pair under GICDM: corrected so that good data reaches 1, literal, or both"
    options.add(group, ("--reading", READINGS, reading), ("--uncapped", True, "let clipped_density pass 1"))
    group = parser.add_argument_group("distances and resources")
    flags.add_flags(group, Options, ("distance", "ties", "device", "memory", "threads"), TEXTS)
    flags.add_flags(group, flags.VectorFiles, ("key", "dimensions", "system", "subset", "suite"), TEXTS)
    options.add(
        parser.add_argument_group("several generated sets"),
        ("--ranks", "FILE", "write every set's rank by every metric, with its interval: .csv or .json"),
        ("--pairs", "FILE", "write the difference of every two sets, as score rows"),
        ("--human", "FILE", "a .csv with the columns system and value (or one other column of numbers): what people "
         "said of each generator, such as how often they took it for real; correlated with every metric"),
        ("--human-better", ("higher", "lower"), "whether a higher value in --human is a better generator"),
        ("--correlations", "FILE", "write the correlations with --human: .csv or .json"),
    )  # fmt: skip
    options.add(
        parser.add_argument_group("single points and figures"),
        ("--per-sample", "FILE", "write every generated point, worst first: .csv or .parquet"),
        ("--per-real", "FILE", "write every real point, least covered first: .csv or .parquet"),
        ("--worst", 5, "how many samples to name"),
        ("--figure", "FILE", "draw it all: .png, .svg or .pdf"),
        ("--html", "FILE", "write a page with table, figures and the worst samples"),
    )
    options.add_output(parser)
    parser.set_defaults(dimensions=[], system="", subset="", suite="")


def _neighbours(text: str) -> int | dict[str, int]:
    """5, or precision=3,recall=3."""
    try:
        if "=" not in text:
            return int(text)
        return {name.strip(): int(number) for name, number in (part.split("=") for part in options.names(text))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 5, or precision=3,recall=3") from None


def run(args: argparse.Namespace) -> int:
    from earmark.report import fidelity as report

    options.check_out(args, "per_sample", "per_real", "figure", "html", "ranks", "correlations")
    if args.figure or args.html:
        from earmark.report.figures.style import library

        library()  # a missing one is told before the work, not after it
    if args.recipe:
        from earmark.cli.fidelity_recipes import refuse_others

        refuse_others(args)
    if len(args.generated) > 1:
        from earmark.cli.fidelity_several import run_several

        if args.recipe:
            from earmark.cli.fidelity_recipes import read_points

            return run_several(args, *read_points(args, choices(args)))
        return run_several(args, read_sets, choices(args))
    for name in ("ranks", "pairs", "human", "correlations"):
        if getattr(args, name):
            raise UsageError(f"--{name} is for several generated sets: {args.generated[0]} is one.")
    if args.recipe:
        from earmark.cli.fidelity_recipes import run_recipe

        return run_recipe(args)
    real, (generated,) = read_sets(args)
    name = str(args.generated[0])
    scores = fidelity(
        real.values, generated.values, groups=generated.groups, real_groups=real.groups, ids=generated.ids,
        real_ids=real.ids, system=args.system or name, **choices(args),
    )  # fmt: skip
    title = f"{name} against {args.real}"
    sizes = f"{counted(len(generated.values), 'generated point')}, {len(real.values)} real"
    options.tell_columns(args, real, generated)
    options.deliver(args, scores, lambda _: report.to_text(scores, f"{title} · {sizes}", args.worst))
    writers = {
        "per_sample": lambda path: report.write_samples(scores, path),
        "per_real": lambda path: report.write_reals(scores, path),
        "figure": lambda path: _draw(scores, title, path),
        "html": lambda path: report.write_page(scores, title, path),
    }
    return finish(args, scores, writers)


def finish(args: argparse.Namespace, scores: Fidelity, writers: Mapping[str, Callable[[str], object]]) -> int:
    """Write the files asked for; the exit status."""
    written = options.write_files(args, writers)
    return 0 if written and any(row.status == "ok" for row in scores) else 1


def choices(args: argparse.Namespace) -> dict[str, Any]:
    """What is asked of the sets, by the names of the function that judges them."""
    return {
        "k": args.k, "reading": args.reading, "cap": not args.uncapped, "subset": args.subset or str(args.real),
        "suite": args.suite, "progress": not args.quiet, "bandwidth": args.bandwidth or "real",
        **{name: value for name, value in flags.given(args, Options).items() if name != "k"},
    }  # fmt: skip


def _draw(scores: Fidelity, title: str, path: str) -> None:
    from earmark.report.figures import save
    from earmark.report.figures.fidelity import overview

    save(overview(scores, title=title), path)


def read_sets(args: argparse.Namespace) -> tuple[Vectors, list[Vectors]]:
    """The real set and the others as vectors, with equal columns. A model that learns does so from the real ones."""
    if args.pool is not None and args.extractor is None:
        raise UsageError("--pool belongs to audio: name the model with --extractor too.")
    sources = [args.real, *args.generated]
    if args.extractor is None:
        for source in sources:
            if locate(source).is_dir():
                raise UsageError(
                    f"{source} is a folder: name a model with --extractor to turn its sounds into vectors."
                )
        real, *sets = [_read_file(args, source) for source in sources]
        return real, [_same_columns(real, one) for one in sets]
    from earmark.extractors.catalogue import open_on

    model = open_on(args.device or "auto", args.extractor)
    pool = _pooling(args, model)
    real, *sets = [_embed(args, source, model, pool) for source in sources]
    for source, one in zip(args.generated, sets, strict=True):
        if real.values.shape[1] != one.values.shape[1]:
            raise InputError(
                f"{args.real} and {source} have vectors of {real.values.shape[1]} and {one.values.shape[1]} numbers "
                f"with the pooling {pool or model.card.pooling}: a pooling that follows time is as long as the longest "
                "clip of its set; use --pool mean_time."
            )
    return real, [_same_columns(real, one) for one in sets]


def _read_file(args: argparse.Namespace, source: str) -> Vectors:
    return vectors.read_vectors(source, key=args.key, dimensions=args.dimensions)


def _embed(args: argparse.Namespace, source: str, model: Extractor, pool: str | None) -> Vectors:
    from earmark.embedding.embed import embed_audio

    if _holds_vectors(source):
        return _read_file(args, source)
    embedding = embed_audio(source, model, pool, threads=args.threads, progress=not args.quiet)
    # A clip that failed is missing from the scores: that is no remark, and is said even with --quiet.
    for note in embedding.notes[: bool(embedding.failures) if args.quiet else None]:
        print(f"note: {source}: {note}", file=sys.stderr)
    return Vectors(embedding.ids, embedding.vectors, source=str(source))


def _same_columns(real: Vectors, generated: Vectors) -> Vectors:
    """The generated set with its columns in the order of the real one, where both have the same names.

    Names that have nothing in common say nothing about each other: the columns are then taken as they stand.
    """
    columns, wanted = generated.columns, real.columns
    if columns is None or wanted is None or columns == wanted or not set(columns) & set(wanted):
        return generated
    if len(set(columns)) < len(columns) or sorted(columns) != sorted(wanted):
        raise InputError(
            f"{real.source} and {generated.source} have other columns ({shortened(wanted)}; {shortened(columns)}): "
            "choose those that they share with --dimensions."
        )
    order = [columns.index(name) for name in wanted]
    return replace(generated, values=generated.values.take(order, axis=1), columns=wanted)


def _holds_vectors(source: str) -> bool:
    return locate(source).suffix.lower() in ARRAYS


def _pooling(args: argparse.Namespace, model: Extractor) -> str | None:
    """The pooling asked for, or one whose length is the same for both sets of sounds; None is the extractor's own."""
    from earmark.embedding import pooling

    if args.pool is not None:
        if pooling.parse(args.pool).pca is not None:
            raise UsageError(f"--pool {args.pool!r} would fit principal components to each set by itself: leave D out.")
        return str(args.pool)
    own = pooling.parse(model.card.pooling).pooling
    follows = any(pooling.POOLINGS[part].follows_time for part in own.split("+"))
    if model.card.frame_rate is None or not follows or any(map(_holds_vectors, (args.real, *args.generated))):
        return None
    if not args.quiet:
        print(f"note: pooling mean_time, since {own} is as long as the longest clip of each set", file=sys.stderr)
    return "mean_time"
