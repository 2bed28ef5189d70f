"""Turn audio into vectors: every clip through a frozen model, pooled, with PCA if asked.

AUDIO: a file, a folder of folders (folder name = label), a manifest (.csv, .parquet), a URL of one of them, or a corpus
by name. The result is an .npz file with `vectors`, `ids` and, where known, `labels` and `groups`, ready for `earmark
evaluate`. Of several poolings each matrix has its pooling's name. Clips that cannot be read are left out and named; the
rest goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from earmark.atomic import replacing
from earmark.cli import flags, options
from earmark.cli.columns import add_columns, columns_of
from earmark.embedding import pooling
from earmark.embedding.embed import Embedded, embed, settle_reduction
from earmark.embedding.pca import reduce
from earmark.errors import UsageError
from earmark.evaluation.options import Options
from earmark.extractors.catalogue import open_on
from earmark.places import locate
from earmark.wording import counted

EXAMPLES = """examples:
  earmark embed recordings/ --out vectors.npz
  earmark embed clips.csv --extractor mfcc --out vectors.npz && earmark evaluate vectors.npz
  earmark embed clips.csv --label-column species --group-column bird --out vectors.npz
  earmark embed digits/ --labels-from "{label}_{group}_{take}.wav" --out vectors.npz
  earmark embed clips.csv --extractor mypackage.mymodule:MyModel --pool MTF --pca 100 --out vectors.npz
  earmark embed mice/ --extractor whisper --speed 0.1 --out vectors.npz
  earmark embed clips.csv --extractor "whisper?dtype=bfloat16" --device cuda --batch 64 --out vectors.npz
  earmark embed mice/ --extractor "logmel?rate=native&fmin=30000" --out vectors.npz
"""

SHOWN = 10  # failures named on stderr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("audio", metavar="AUDIO", help="file, folder, manifest or corpus")
    parser.add_argument(
        "--extractor", default="logmel", metavar="NAME", help="name or import path; see `earmark extractors` (logmel)"
    )
    parser.add_argument(
        "--pool", type=options.names, metavar="LIST",
        help=f"{', '.join(pooling.POOLINGS)}; a+b concatenates (default: the extractor's own)",
    )  # fmt: skip
    add_columns(parser)
    flags.add_flags(parser, Options, ("label_separator",))
    parser.add_argument("--groups", metavar="COLUMN", help="the same as --group-column")
    parser.add_argument(
        "--pca", metavar="N", help="keep N principal components, fitted on these clips; 100w scales each to variance 1"
    )
    parser.add_argument("--whiten", action="store_true", help="the same for a number without w")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="S",
        help="play sounds at this speed: 0.1 is ten times as slow and as low, so that ultrasound is heard (default: 1)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="FILE", required=True, help="where to write the vectors: .npz, also a URL")
    parser.add_argument(
        "--batch", type=int, default=16, metavar="N", help="clips given to the extractor at once (default: 16)"
    )
    parser.add_argument(
        "--device", default="auto", metavar="NAME",
        help="where the model runs, if it takes one: auto (a GPU if there is one), cpu, cuda, cuda:1, mps",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="N", help="worker threads (default: every core)")
    parser.add_argument("--checkpoint", metavar="FILE", help="where an extractor that learns saves its training")
    parser.add_argument("--json", action="store_true", help="print a summary on stdout as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    if locate(args.out).suffix.lower() != ".npz":
        raise UsageError(f"{args.out}: vectors are written as .npz; give a name that ends so.")
    from earmark.corpora.source import open_corpus

    extractor = open_on(args.device, args.extractor)
    variants = [pooling.parse(text) for text in args.pool or [extractor.card.pooling]]
    reductions = {of.pooling: settle_reduction(of, args.pca, whiten=args.whiten) for of in variants}
    corpus = open_corpus(args.audio, **columns_of(args), label_separator=args.label_separator, needs_labels=False)
    clips = corpus.at_speed(args.speed).clips
    found = embed(
        clips,
        extractor,
        [variant.pooling for variant in variants],
        batch=args.batch,
        threads=args.threads,
        progress=not args.quiet,
        checkpoint=args.checkpoint,
    )
    notes = [*corpus.notes, *found.notes()]
    if not any(found.labels):
        notes.append(f"{args.audio} gives no labels: {args.out} has none (a column of them: --label-column NAME)")
    matrices: dict[str, Any] = {}
    for variant in variants:
        reduction, vectors = reductions[variant.pooling], found.vectors[variant.pooling]
        if reduction is not None:
            vectors, fitted = reduce(vectors, reduction.components, whiten=reduction.whiten, threads=args.threads)
            notes += [fitted.note] if fitted.note else []
        matrices[variant.pooling] = vectors
    _write(locate(args.out), matrices, found)
    _report(args, matrices, found, notes)
    return 0


def _write(target: Path, matrices: dict[str, Any], found: Embedded) -> None:
    """The file appears whole or not at all, and is written without a second copy in memory."""
    arrays: dict[str, Any] = {"ids": np.array(found.ids)}
    if any(found.labels):
        arrays["labels"] = np.array([label or "" for label in found.labels])
    if found.groups is not None:
        arrays["groups"] = np.array([group or "" for group in found.groups])
    arrays |= {"vectors": next(iter(matrices.values()))} if len(matrices) == 1 else matrices
    with replacing(target) as part, part.open("wb") as handle:
        np.savez(handle, **arrays)


def _report(args: argparse.Namespace, matrices: dict[str, Any], found: Embedded, notes: list[str]) -> None:
    shapes = {name: list(matrix.shape) for name, matrix in matrices.items()}
    if args.json:
        summary = {
            "out": args.out, "extractor": args.extractor, "vectors": shapes, "seconds_of_sound": found.seconds,
            "failures": [failure._asdict() for failure in found.failures], "truncated": found.truncated, "notes": notes,
        }  # fmt: skip
        sys.stdout.write(json.dumps(summary, indent=1) + "\n")
    else:
        for name, (rows, columns) in shapes.items():
            lost = f"; {counted(len(found.failures), 'clip')} failed" if found.failures else ""
            said = f"{args.out}: {counted(rows, 'vector')} of {columns} ({args.extractor}, {name}){lost}"
            sys.stdout.write(said + "\n")
    if args.quiet:
        return
    for failure in found.failures[:SHOWN]:
        print(f"failed: {failure.id}: {failure.reason}", file=sys.stderr)
    if len(found.failures) > SHOWN:
        print(f"failed: {len(found.failures) - SHOWN} more; --json lists all", file=sys.stderr)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
