"""Judge generated sounds, or any vectors, against real ones: are they like the real, and do they cover them?

REAL and GENERATED: files of vectors (.npy, .npz, .parquet, .csv, .pt), one row for each clip, or with --extractor
audio: folders, manifests or corpora. Every metric is printed as it is and with hubness corrected (GICDM); where the two
differ, trust the second. `earmark fidelity sanity` puts the metrics themselves to the test.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earmark import vectors
from earmark.cli import options
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.fidelity.api import CORRECTIONS, INTERVALS, READINGS, Fidelity, fidelity
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
  earmark fidelity sanity --list
"""

ARRAYS = (".npy", ".npz", ".pt")  # vectors whatever else is said; tables may also be manifests of audio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _hand_over_sanity(parser)
    parser.add_argument("real", metavar="REAL", help="vectors, or audio with --extractor")
    parser.add_argument("generated", metavar="GENERATED", help="vectors, or audio with --extractor")
    group = parser.add_argument_group("audio")
    group.add_argument("--extractor", metavar="NAME", help="turn sounds into vectors with this model")
    group.add_argument(
        "--pool", metavar="P",
        help="pooling of frames (default: the extractor's own, or mean_time where that grows with the longest clip)",
    )  # fmt: skip
    group = parser.add_argument_group("metrics and intervals")
    group.add_argument(
        "--metrics", type=options.names, metavar="LIST",
        help="metrics to compute, or `all` (default: all but alpha_precision and beta_recall, which train a network)",
    )  # fmt: skip
    group.add_argument(
        "--k", type=_neighbours, default=5, metavar="K",
        help="neighbours that make a ball, or metric=k pairs with commas (default: 5; the cover pair keeps its 3, "
        "which only precision_cover=2,recall_cover=2 changes)",
    )  # fmt: skip
    group.add_argument(
        "--correct", type=options.names, default=list(CORRECTIONS), metavar="LIST",
        help="none, gicdm or both with a comma (default: both)",
    )  # fmt: skip
    group.add_argument(
        "--reading", choices=READINGS, default="both",
        help="the clipped pair under GICDM: corrected so that good data reaches 1, literal, or both (default: both)",
    )  # fmt: skip
    group.add_argument("--uncapped", action="store_true", help="let clipped_density pass 1")
    group.add_argument(
        "--intervals", choices=INTERVALS, default=None,
        help="95 %% intervals: jackknife (both sets lose half of their points, 24 times), bootstrap (balls are held "
        "fixed: too narrow), none (default: jackknife, or bootstrap where --bootstrap is given)",
    )  # fmt: skip
    group.add_argument(
        "--bootstrap", type=int, default=None, metavar="N",
        help="resamples of the points for --intervals bootstrap, which it chooses; 0 for no intervals (default: 300)",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=int, default=0, help="seed of smaller sets, resamples and the network (default: 0)"
    )
    _add_resources(parser)
    group = parser.add_argument_group("single points and figures")
    group.add_argument(
        "--per-sample", metavar="FILE", help="write every generated point, worst first: .csv or .parquet"
    )
    group.add_argument(
        "--per-real", metavar="FILE", help="write every real point, least covered first: .csv or .parquet"
    )
    group.add_argument("--worst", type=int, default=5, metavar="N", help="how many samples to name (default: 5)")
    group.add_argument("--figure", metavar="FILE", help="draw it all: .png, .svg or .pdf")
    group.add_argument("--html", metavar="FILE", help="write a page with table, figures and the worst samples")
    options.add_output(parser)


def _hand_over_sanity(parser: argparse.ArgumentParser) -> None:
    """Let `fidelity sanity ...` be parsed by its own module: it has no REAL and GENERATED, and options of its own.

    argparse cannot choose between a subcommand and two positional words, so the first word is looked at before it does.
    A file that is called sanity is given as ./sanity.
    """
    ordinary = parser.parse_args

    def parse(words: Any = None, namespace: Any = None) -> Any:
        if not words or words[0] != "sanity":
            return ordinary(words, namespace)
        from earmark.cli import fidelity_sanity

        own = argparse.ArgumentParser(
            prog=f"{parser.prog} sanity",
            description=fidelity_sanity.__doc__,
            epilog=fidelity_sanity.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        fidelity_sanity.add_arguments(own)
        own.set_defaults(instead=fidelity_sanity.run)
        return own.parse_args(words[1:], namespace)

    parser.set_defaults(instead=None)
    parser.parse_args = parse  # type: ignore[assignment, method-assign]


def _add_resources(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("distances and resources")
    group.add_argument(
        "--distance", type=options.names, default=["euclidean"], metavar="LIST",
        help="euclidean, cosine, spearman; several separated by commas (default: euclidean)",
    )  # fmt: skip
    group.add_argument(
        "--ties", choices=("average", "ordinal"), default="average",
        help="ranks of equal values under spearman (default: average)",
    )  # fmt: skip
    group.add_argument("--device", default="auto", help="where neighbours are searched: auto, cpu, cuda, cuda:1")
    group.add_argument("--memory", default="2GB", help="budget for tiles, beside the vectors (default: 2GB)")
    group.add_argument("--threads", type=int, metavar="N", help="worker threads (default: every core)")
    group.add_argument("--key", metavar="NAME", help="the array to take from .npz, .parquet or .pt files")
    options.add_dimensions(group)
    group.add_argument("--system", default="", metavar="NAME", help="name of the generator, for the system column")
    group.add_argument("--subset", default="", metavar="NAME", help="name of the data, for the subset column")
    group.add_argument("--suite", default="", metavar="NAME", help="name of the suite, for the suite column")


def _neighbours(text: str) -> int | dict[str, int]:
    """5, or precision=3,recall=3."""
    try:
        if "=" not in text:
            return int(text)
        return {name.strip(): int(number) for name, number in (part.split("=") for part in options.names(text))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 5, or precision=3,recall=3") from None


def run(args: argparse.Namespace) -> int:
    if args.instead is not None:
        return int(args.instead(args) or 0)
    options.check_out(args)
    _check_targets(args)
    if args.figure or args.html:
        from earmark.report.figures.style import library

        library()  # a missing one is told before the work, not after it
    real, generated = _read(args)
    scores = fidelity(
        real.values,
        generated.values,
        metrics=args.metrics,
        k=args.k,
        correct=args.correct,
        reading=args.reading,
        distance=args.distance,
        intervals=args.intervals,
        bootstrap=args.bootstrap,
        groups=generated.groups,
        real_groups=real.groups,
        seed=args.seed,
        cap=not args.uncapped,
        ids=generated.ids,
        real_ids=real.ids,
        ties=args.ties,
        device=args.device,
        memory=args.memory,
        threads=args.threads,
        system=args.system or str(args.generated),
        subset=args.subset or str(args.real),
        suite=args.suite,
        progress=not args.quiet,
    )
    title = f"{args.generated} against {args.real}"
    sizes = f"{counted(len(generated.values), 'generated point')}, {len(real.values)} real"
    from earmark.report.fidelity import to_text

    options.tell_columns(args, real, generated)
    options.deliver(args, scores, lambda found: to_text(scores, f"{title} · {sizes}", args.worst))
    written = _write(args, scores, title)
    return 0 if written and any(row.status == "ok" for row in scores) else 1


def _check_targets(args: argparse.Namespace) -> None:
    """Refuse an impossible file before the work, not after it."""
    for target, endings in (
        (args.per_sample, (".csv", ".parquet")), (args.per_real, (".csv", ".parquet")),
        (args.figure, (".png", ".svg", ".pdf")), (args.html, (".html", ".htm")),
    ):  # fmt: skip
        if target is None:
            continue
        if Path(target).suffix.lower() not in endings:
            raise UsageError(f"{target}: choose a name that ends in {' or '.join(endings)}.")
        folder = Path(target).resolve().parent
        if not folder.is_dir():
            raise InputError(f"{target}: the folder {folder} does not exist; create it first.")


def _read(args: argparse.Namespace) -> tuple[Vectors, Vectors]:
    if args.pool is not None and args.extractor is None:
        raise UsageError("--pool belongs to audio: name the model with --extractor too.")
    # One model for both sets: one that learns from sounds learns from the real ones alone, which come first.
    model = None
    if args.extractor is not None:
        from earmark.extractors.catalogue import open_extractor

        model = open_extractor(args.extractor)
    places = (args.real, args.generated)
    pool = args.pool if model is None else _pooling(args, model, places)
    found = []
    for place in places:
        if model is None and Path(place).is_dir():
            raise UsageError(f"{place} is a folder: name a model with --extractor to turn its sounds into vectors.")
        if model is None or _holds_vectors(place):
            found.append(vectors.read_vectors(place, key=args.key, dimensions=args.dimensions))
            continue
        from earmark.embed.embedding import embed_audio

        heard = embed_audio(place, model, pool, threads=args.threads, progress=not args.quiet)
        found.append(Vectors(heard.ids, heard.vectors, source=str(place)))
        # A clip that failed is missing from the scores: that is no remark, and is said even with --quiet.
        for note in heard.notes[: bool(heard.failures) if args.quiet else None]:
            print(f"note: {place}: {note}", file=sys.stderr)
    if model is not None and found[0].values.shape[1] != found[1].values.shape[1]:
        widths = " and ".join(str(one.values.shape[1]) for one in found)
        raise InputError(
            f"{args.real} and {args.generated} have vectors of {widths} numbers with the pooling "
            f"{pool or model.card.pooling}: a pooling that follows time is as long as the longest clip of its set; use "
            "--pool mean_time."
        )
    return found[0], _in_order(found[1], found[0])


def _in_order(generated: Vectors, real: Vectors) -> Vectors:
    """The generated vectors with their columns in the order of the real ones, where both have the same names.

    Names that have nothing in common say nothing about each other: the columns are then taken as they stand.
    """
    there, wanted = generated.columns, real.columns
    if there is None or wanted is None or there == wanted or not set(there) & set(wanted):
        return generated
    if len(set(there)) < len(there) or sorted(there) != sorted(wanted):
        raise InputError(
            f"{real.source} and {generated.source} have other columns ({shortened(wanted)}; {shortened(there)}): "
            "choose those that they share with --dimensions."
        )
    places = [there.index(name) for name in wanted]
    return replace(generated, values=generated.values.take(list(places), axis=1), columns=wanted)


def _holds_vectors(place: str) -> bool:
    return Path(place).suffix.lower() in ARRAYS


def _pooling(args: argparse.Namespace, model: Extractor, places: tuple[str, str]) -> str | None:
    """The pooling asked for, or one whose length is the same for both sets of sounds; None is the extractor's own."""
    from earmark.embed import pooling

    if args.pool is not None:
        if pooling.parse(args.pool).pca is not None:
            raise UsageError(f"--pool {args.pool!r} would fit principal components to each set by itself: leave D out.")
        return str(args.pool)
    own = pooling.parse(model.card.pooling).pooling
    follows = model.card.frame_rate is not None and any(pooling.POOLINGS[one].follows_time for one in own.split("+"))
    if not follows or any(map(_holds_vectors, places)):
        return None
    if not args.quiet:
        print(f"note: pooling mean_time, since {own} is as long as the longest clip of each set", file=sys.stderr)
    return "mean_time"


def _write(args: argparse.Namespace, scores: Fidelity, title: str) -> bool:
    """The files asked for beside the score table; what cannot be written is told, and the others are."""
    from earmark.report import fidelity as report

    def draw(target: str) -> None:
        from earmark.report.figures import save
        from earmark.report.figures.fidelity import overview

        save(overview(scores, title=title), target)

    failed = False
    for target, write in (
        (args.per_sample, lambda target: report.write_samples(scores, target)),
        (args.per_real, lambda target: report.write_reals(scores, target)),
        (args.figure, draw),
        (args.html, lambda target: report.write_page(scores, title, target)),
    ):
        if not target:
            continue
        try:
            write(target)
        except EarmarkError as error:
            failed = True
            print(f"not written: {target}: {error}", file=sys.stderr)
        else:
            if not args.quiet:
                print(f"written: {target}", file=sys.stderr)
    return not failed
