"""`earmark fidelity sanity --real`: the checks of Appendix F of the GICDM paper on embeddings of real clips."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from earmark.cli import options
from earmark.errors import UsageError
from earmark.generated.sanity.on_real import TESTS, RealCell, RealSanity, RealSet, sanity_on_real
from earmark.places import locate
from earmark.tables import aligned
from earmark.vectors import read_vectors

LIMITS = (
    "T: the mean curve stays within 0.05 of its ideal (replacing: 0.1). The number is its largest departure; ? marks "
    "what other halves of these clips could turn, and brackets hold the published letter where it is another."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add(
        parser.add_argument_group("on real embeddings"),
        ("--real", list, "instead of synthetic sets: files of vectors of real clips with their labels, one for each "
         "model; or with --extractor a folder, manifest or corpus of sounds. --checks are then dropping, outliers and "
         "replacing"),
        ("--bad", list, "bad samples: files of vectors, one for each of --real; with --extractor one source of sounds "
         "(default: with --extractor noise as long and as loud as the clips, else clips moved away from the mean)"),
        ("--extractor", list, "models that turn the sounds of --real into vectors"),
        ("--pool", "P", "pooling of frames (default: mean_time)"),
        ("--modes", int, "modes that labels make in dropping (default: as many as leave 200 clips, at most 10)"),
        ("--k", 5, "neighbours that make a ball, with --real"),
        ("--distance", ("euclidean", "cosine", "spearman"), "with --real"),
        ("--label-column", "NAME", "column that holds the label (default: label)"),
        ("--groups", "COLUMN", "column that holds the recording or speaker, which lies in one half (default: group)"),
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Put metrics to the checks, print the table, draw the curves."""
    for name in ("shard", "scheduler", "merge", "original", "study", "minutes", "n"):
        if getattr(args, name):
            raise UsageError(f"--{name} is for synthetic sets: leave it out with --real.")
    sets = _embed(args) if args.extractor else _read(args)
    result = sanity_on_real(
        sets, metrics=args.metrics, correct=args.correct, tests=args.checks, own_kind=args.judge, k=args.k,
        distance=args.distance, repeats=args.repeats, modes=args.modes, seed=args.seed, into=args.into,
        threads=args.jobs, device=args.device, progress=not args.quiet,
    )  # fmt: skip
    if args.figure:
        from earmark.report.figures.real_sanity import curves
        from earmark.report.figures.style import save

        save(curves(result), args.figure)
    rows = json.dumps([cell.row() for cell in result.cells], indent=1, ensure_ascii=False) + "\n"
    options.deliver_text(args, rows, result.to_csv, text(result))
    if not args.quiet:
        for note in result.notes:
            print(f"note: {note}", file=sys.stderr)
    return 0 if any(cell.outcome for cell in result.cells) else 1


def _read(args: argparse.Namespace) -> dict[str, RealSet]:
    if args.pool:
        raise UsageError("--pool belongs to audio: name models with --extractor too.")
    for source in args.real:
        if locate(source).is_dir():
            raise UsageError(f"{source} is a folder: name models with --extractor to turn its sounds into vectors.")
    bad = args.bad or [None] * len(args.real)
    if len(bad) != len(args.real):
        raise UsageError(
            f"--bad names {len(bad)} files and --real {len(args.real)}: give bad samples for each of them."
        )
    names = options.short_names(args.real)
    if len(set(names)) < len(names):
        raise UsageError("The same file was given twice in --real: name each model's vectors once.")
    sets = {}
    for name, source, worse in zip(names, args.real, bad, strict=True):
        found = read_vectors(source, label_column=args.label_column, groups=args.groups)
        options.tell_columns(args, found)
        noise = None if worse is None else read_vectors(worse).values
        sets[name] = RealSet(found.values, found.labels, found.groups, noise)
    return sets


def _embed(args: argparse.Namespace) -> dict[str, RealSet]:
    """The same clips through every model, and bad ones: those given, or noise as long and as loud as half of them."""
    from earmark.corpora.noise import noise_like
    from earmark.corpora.source import open_corpus
    from earmark.embedding.embed import embed_audio
    from earmark.extractors.catalogue import open_on

    if len(args.real) > 1:
        raise UsageError(f"{', '.join(args.real)}: with --extractor give one folder, manifest or corpus of sounds.")
    if args.bad and len(args.bad) > 1:
        raise UsageError(f"{', '.join(args.bad)}: with --extractor give one source of bad sounds.")
    for source in (*args.real, *(args.bad or ())):
        if locate(source).suffix.lower() in (".npy", ".npz", ".pt"):
            raise UsageError(f"{source} holds vectors: leave --extractor out.")
    corpus = open_corpus(args.real[0])
    worse = list(open_corpus(args.bad[0]).clips) if args.bad else noise_like(corpus.clips[::2], args.seed)
    sets = {}
    for spec in args.extractor:
        model = open_on(args.device or "auto", spec)
        how = {"pool": args.pool or "mean_time", "threads": args.jobs, "progress": not args.quiet}
        found = embed_audio(corpus, model, **how)
        bad = embed_audio(worse, model, **how)
        for what, embedded in ((spec, found), (f"{spec}, bad samples", bad)):
            for note in embedded.notes[: bool(embedded.failures) if args.quiet else None]:
                print(f"note: {what}: {note}", file=sys.stderr)
        sets[spec] = RealSet(found.vectors, found.labels, found.groups, bad.vectors)
    return sets


# --- text -----------------------------------------------------------------------------------------------------------


def text(result: RealSanity) -> str:
    """A block for each set and question: metrics by lines, checks by columns."""
    blocks = []
    for system in result.systems:
        for kind in ("fidelity", "coverage"):
            cells = [cell for cell in result.cells if cell.system == system and cell.column.kind == kind]
            tests = [test for test in TESTS if any(cell.test == test for cell in cells)]
            if not tests:
                continue
            head = [" · ".join(filter(None, [system, kind])), "at the start", *tests]
            columns = list(dict.fromkeys(cell.column.name for cell in cells))
            body = [_line(column, [cell for cell in cells if cell.column.name == column], tests) for column in columns]
            blocks.append("\n".join(aligned([head, *body], indent="", gap="   ")))
    lacking = dict.fromkeys(f"{cell.column.name}, {cell.test}: {cell.reason}" for cell in result.cells if cell.reason)
    blocks.append("\n".join([*_wrapped(LIMITS), *(f"note: {reason}" for reason in lacking)]))
    return "\n\n".join(blocks) + "\n"


def _wrapped(sentence: str) -> list[str]:
    import textwrap

    return textwrap.wrap(sentence, 118)


def _line(column: str, cells: Sequence[RealCell], tests: Sequence[str]) -> list[str]:
    by_test = {cell.test: cell for cell in cells}
    # Sets of `dropping` are smaller than halves: the start of another check is that of the halves.
    starts = [cell.start for test in reversed(tests) if (cell := by_test.get(test)) and cell.start is not None]
    return [f"  {column}", f"{starts[0]:.3f}" if starts else "–", *(_letter(by_test.get(test)) for test in tests)]


def _letter(cell: RealCell | None) -> str:
    if cell is None or cell.outcome is None:
        return "–"
    letter = cell.outcome + ("" if cell.decided else "?")
    printed = f" ({cell.published})" if cell.agrees is False else ""
    return f"{letter:2} {cell.departure:.2f}{printed}"
