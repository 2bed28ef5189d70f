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
from typing import TYPE_CHECKING

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.evaluation.options import Options
from earmark.fidelity.api import READINGS, Fidelity, fidelity
from earmark.vectors import Vectors
from earmark.vectors.roles import shortened
from earmark.vectors.tables import take_columns
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

TEXTS = {
    "metrics": "metrics to compute, or `all` (default: all but alpha_precision and beta_recall, which train a network)",
    "correct": "none, gicdm or both with a comma (default: both)",
    "intervals": "95 % intervals: jackknife (both sets lose half of their points, 24 times), bootstrap (balls are held "
    "fixed: too narrow), none (default: jackknife, or bootstrap where --bootstrap is given)",
    "bootstrap": "resamples of the points for --intervals bootstrap, which it chooses; 0 for no intervals (300)",
    "seed": "seed of smaller sets, resamples and the network",
    "distance": "euclidean, cosine, spearman; several separated by commas (default: euclidean)",
    "device": "where neighbours are searched: auto, cpu, cuda, cuda:1 (default: auto)",
    "system": "name of the generator, for the system column",
}

ARRAYS = (".npy", ".npz", ".pt")  # vectors whatever else is said; tables may also be manifests of audio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("real", metavar="REAL", help="vectors, or audio with --extractor")
    parser.add_argument("generated", metavar="GENERATED", help="vectors, or audio with --extractor")
    group = parser.add_argument_group("audio")
    group.add_argument("--extractor", metavar="NAME", help="turn sounds into vectors with this model")
    group.add_argument(
        "--pool", metavar="P",
        help="pooling of frames (default: the extractor's own, or mean_time where that grows with the longest clip)",
    )  # fmt: skip
    group = parser.add_argument_group("metrics and intervals")
    flags.add_flags(group, Options, ("metrics",), TEXTS)
    group.add_argument(
        "--k", type=_neighbours, default=5, metavar="K",
        help="neighbours that make a ball, or metric=k pairs with commas (default: 5; the cover pair keeps its 3, "
        "which only precision_cover=2,recall_cover=2 changes)",
    )  # fmt: skip
    flags.add_flags(group, Options, ("correct",), TEXTS)
    group.add_argument(
        "--reading", choices=READINGS, default="both",
        help="the clipped pair under GICDM: corrected so that good data reaches 1, literal, or both (default: both)",
    )  # fmt: skip
    group.add_argument("--uncapped", action="store_true", help="let clipped_density pass 1")
    flags.add_flags(group, Options, ("intervals", "bootstrap", "seed"), TEXTS)
    group = parser.add_argument_group("distances and resources")
    flags.add_flags(group, Options, ("distance", "ties", "device", "memory", "threads"), TEXTS)
    flags.add_flags(group, flags.VectorFiles, ("key", "dimensions", "system", "subset", "suite"), TEXTS)
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
    options.check_out(args, "per_sample", "per_real", "figure", "html")
    if args.figure or args.html:
        from earmark.report.figures.style import library

        library()  # a missing one is told before the work, not after it
    real, generated = _read(args)
    scores = fidelity(
        real.values, generated.values, k=args.k, reading=args.reading, cap=not args.uncapped, groups=generated.groups,
        real_groups=real.groups, ids=generated.ids, real_ids=real.ids, system=args.system or str(args.generated),
        subset=args.subset or str(args.real), suite=args.suite, progress=not args.quiet,
        **{name: value for name, value in flags.given(args, Options).items() if name != "k"},
    )  # fmt: skip
    title = f"{args.generated} against {args.real}"
    sizes = f"{counted(len(generated.values), 'generated point')}, {len(real.values)} real"
    from earmark.report.fidelity import to_text

    options.tell_columns(args, real, generated)
    options.deliver(args, scores, lambda found: to_text(scores, f"{title} · {sizes}", args.worst))
    written = _write(args, scores, title)
    return 0 if written and any(row.status == "ok" for row in scores) else 1


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
    return replace(generated, values=take_columns(generated.values, places), columns=wanted)


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
