"""Draw a map to listen through: one HTML file with every clip as a point to click.

SOURCE: the folder of `earmark run`, or a file of vectors (.npy, .npz, .parquet, .csv, .pt), with LABELS in a file of
their own or none. A click on a point plays its sound and shows its nearest neighbours, which are the true ones, in all
dimensions; colours show labels, groups, errors, hubs and durations; search, loops and a table find and save clips. The
page needs no network and no other file, unless --sounds link plays recordings from where they lie.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from earmark import vectors
from earmark.cli import flags, options
from earmark.codecs.runs.folder import is_codec_run
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, UsageError
from earmark.evaluation.options import Options
from earmark.places import is_remote, locate
from earmark.report.maps import BUDGET, ClipMap, map_clips
from earmark.report.maps._building import MOST, NEIGHBOURS, PROJECTIONS
from earmark.report.maps._sounds import parse_sounds
from earmark.representations.maps import map_run
from earmark.vectors.birdnet_files import birdnet_files
from earmark.wording import counted

EXAMPLES = """examples:
  earmark map my-run --out map.html
  earmark map my-run --subset birds --system all --out birds.html
  earmark map my-run --sounds link --out my-run/map.html
  earmark map vectors.npz --audio recordings/ --out map.html
  earmark map vectors.npy clips.csv --label-column species --groups recording --across-groups --out map.html
  earmark map vectors.npz labels.csv --distance cosine,euclidean --projection umap,pca --out map.html
"""

_OF_FILES = ("label_column", "groups", "key", "dimensions", "across_groups", "min_class_size", "ties", "audio",
             "label_separator", "background")  # fmt: skip
_TEXTS = {
    "distance": "cosine, euclidean, spearman; several with commas (default: of a run that of the highest P@1, else "
    "cosine)",
    "correct": "hubness correction, as in `earmark evaluate`; several with commas (default: none)",
    "across_groups": "also show neighbours without those of a clip's own group",
    "min_class_size": "clips of smaller classes are nobody's neighbours (default: 2)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="run folder, or file of vectors")
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="file of labels, where the vectors have none")
    options.add(
        parser.add_argument_group("what is shown"),
        ("--subset", "NAME", "of a run: which subset (default: the first)"),
        ("--system", list, "of a run: which systems, or all (default: that of the highest P@1); of a file: a name"),
        ("--k", NEIGHBOURS, "neighbours of each clip"),
        ("--projection", list, f"how clips get their places: {', '.join(PROJECTIONS)} (default: auto, t-SNE of 30 to "
         "10000 clips; PCA is always there)"),
        ("--most", MOST, "draw so many clips at random where there are more"),
        ("--title", "TEXT", "heading of the page"),
        ("--seed", int, "seed of projection and draw (default: that of the run, or 0)"),
    )  # fmt: skip
    options.add(
        parser.add_argument_group("sounds"),
        ("--audio", "SOUNDS", "of a file of vectors: folder or manifest whose clips have the ids of the vectors"),
        ("--sounds", "SIZE", f"room for excerpts inside the page (default: {BUDGET}); link: play the recordings from "
         "where they lie; none"),
    )  # fmt: skip
    group = parser.add_argument_group("distances and labels")
    measured = (
        "distance", "correct", "across_groups", "min_class_size", "label_separator", "background", "ties", "threads",
    )  # fmt: skip
    flags.add_flags(group, Options, measured, _TEXTS)
    flags.add_flags(group, flags.VectorFiles, ("label_column", "groups", "key", "dimensions"))
    parser.set_defaults(dimensions=[])
    options.add(
        parser.add_argument_group("output"),
        ("--out", "FILE", "the page: .html (default: map.html)"),
        ("--quiet", True, "no progress bars and no remarks"),
    )


def run(args: argparse.Namespace) -> int:
    args.html = args.out = args.out or "map.html"
    options.check_out(args, "html")
    args.sounds = args.sounds or BUDGET
    parse_sounds(args.sounds)
    source = locate(args.source)
    if not source.exists():
        raise InputError(f"{args.source} does not exist; check the path.")
    if _is_run(source) and is_codec_run(source):
        raise InputError(
            f"{args.source} is a codec run, which has no vectors to map: give the folder of `earmark run`."
        )
    if source.is_dir() and not _is_run(source) and (is_remote(source) or not birdnet_files(source)):
        raise InputError(
            f"{args.source} is a folder and holds no run: give that of `earmark run`, or a file of vectors."
        )
    made = _of_run(args) if _is_run(source) else _of_file(args)
    target = made.save(args.out)
    if not args.quiet:
        for note in made.notes:
            print(f"note: {note}", file=sys.stderr)
    size = "" if is_remote(target) else f", {target.stat().st_size / 1e6:.1f} MB"
    views = made.content.views
    shown = views[0].title if len(views) == 1 else counted(len(views), "view")
    print(f"{args.out}: {counted(len(made.content.clips), 'clip')}, {shown}{size}")
    return 0


def _is_run(source: Path) -> bool:
    return (source / "run.json").exists()


def _shared(args: argparse.Namespace) -> dict[str, Any]:
    chosen = {"k": args.k, "sounds": args.sounds, "most": args.most, "title": args.title or "", "threads": args.threads}
    return {**chosen, "projection": args.projection or "auto", "progress": not args.quiet}


def _of_run(args: argparse.Namespace) -> ClipMap:
    if args.labels:
        raise UsageError(f"{args.source} is a run, which knows its labels: leave {args.labels} out.")
    for name in _OF_FILES:
        if getattr(args, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for files of vectors: a run folder knows its clips and how it measured them.")
    return map_run(
        args.source, subset=args.subset, system=args.system, distance=args.distance, correct=args.correct,
        seed=args.seed, **_shared(args),
    )  # fmt: skip


def _of_file(args: argparse.Namespace) -> ClipMap:
    if args.subset:
        raise UsageError(f"--subset is for run folders, and {args.source} is none: leave it out.")
    joined = _read(args)
    options.tell_columns(args, joined)
    audio = None if args.audio is None else open_corpus(args.audio, needs_labels=False)
    given = flags.given(args, Options)
    for name, told in (("label_separator", joined.separator), ("background", getattr(joined, "background", ""))):
        if told:
            given.setdefault(name, told)
    given.pop("k", None)
    given.pop("seed", None)
    given.pop("threads", None)
    name = ", ".join(args.system or []) or Path(args.source).stem
    return map_clips(
        joined.values, joined.labels, groups=joined.groups, ids=joined.ids, audio=audio, system=name,
        seed=args.seed or 0, **given, **_shared(args),
    )  # fmt: skip


def _read(args: argparse.Namespace) -> vectors.Joined | vectors.Vectors:
    """Vectors with labels, or without where neither file has any."""
    asked: dict[str, Any] = {"key": args.key, "label_column": args.label_column, "groups": args.groups}
    if args.labels:
        asked["label_separator"] = args.label_separator or ""
        return vectors.read_labelled(args.source, args.labels, dimensions=args.dimensions, **asked)
    return vectors.read_vectors(args.source, dimensions=args.dimensions, **asked)
