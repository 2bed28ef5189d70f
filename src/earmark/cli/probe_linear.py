"""How much of the labels does a linear classifier read from vectors? The protocol of the HEAR benchmark.

VECTORS and LABELS are as in `earmark evaluate`; a column of folds, or of train, valid and test, says how clips are
split. Each fold is tested once with the next one for validation and the others for training: vectors are z-scored by
the training part, a multinomial logistic regression is fitted for each C from 1e-4 to 1e4, and the C with most right
answers on the validation part answers for the test part (of equal ones, the smallest). Accuracy is the mean over folds;
its interval is about a probe that learns from as many clips, on new clips (new groups, with --groups). Chance is the
share of the most frequent class. Clips with several labels, separated by ";" in a cell, have a regression for each
label and mean average precision in place of accuracy.

A task of HEAR is read from its folder with --hear, beside vectors whose ids are names of its sound files, or with an
extractor that embeds them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import UsageError
from earmark.evaluation.options import Options
from earmark.places import locate
from earmark.probes.folds import KINDS
from earmark.probes.linear import STRENGTHS, FoldChoice, Study, study_linear
from earmark.report import long_text
from earmark.scores import Scores
from earmark.tables import Column, NumberFormat, Table, write_columns
from earmark.wording import counted, first_of

EXAMPLES = """examples:
  earmark probe linear vectors.npz clips.csv --fold-column fold
  earmark probe linear vectors.npy clips.csv --label-column species --folds 5 --groups recording
  earmark probe linear vectors.npz clips.csv --split part --per-point answers.csv --out scores.csv
  earmark probe linear --hear tasks/beijing_opera-v1.0-hear2021-full --vectors vectors.npz
  earmark probe linear --hear tasks/esc50-v2.0.0-full --extractor whisper --pool MTF
"""

SEVERAL = ";"


class _Clips(NamedTuple):
    """What is probed, one entry for each row."""

    values: Any
    labels: Any
    groups: Any
    given: Any
    ids: tuple[str, ...] | None
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    joined: vectors.Joined | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", nargs="?", help="file of vectors")
    parser.add_argument("labels", metavar="LABELS", nargs="?", help="file of labels")
    group = parser.add_argument_group("a task of HEAR")
    options.add(
        group,
        ("--hear", "FOLDER", "a task's folder, which has its labels and folds"),
        ("--extractor", "NAME", "embed its sounds with this extractor in place of reading vectors"),
        ("--pool", "NAME", "pooling of the extractor (default: its own)"),
    )
    group.add_argument(
        "--vectors", dest="task_vectors", metavar="FILE",
        help="vectors of its sounds, joined by file name; the same as VECTORS",
    )  # fmt: skip
    group = parser.add_argument_group("folds, labels and groups")
    group.add_argument(
        "--folds", default="5", metavar="N",
        help="how many folds to make, or the column that holds the fold of each clip (default: 5)",
    )  # fmt: skip
    group.add_argument(
        "--fold-column", "--split", metavar="COLUMN",
        help="column whose values are the folds, or train, valid and test",
    )  # fmt: skip
    group.add_argument(
        "--kind", choices=[kind for kind in KINDS if kind != "given"],
        help="how folds are made (default: group-stratified with --groups, else stratified)",
    )  # fmt: skip
    options.add(group, ("--allow-leaks", True, "measure although groups are trained on and tested on; the rows say so"))
    texts = {
        "label_column": 'column that holds the label, or several separated by ";" (default: label)',
        "groups": "column that holds the speaker or recording: kept whole in folds, and the unit of intervals; none "
        "leaves out those that the files hold",
        "seed": "seed of folds that are made (default: 0)",
        "threads": "folds at work at a time (default: one for each core)",
    }
    flags.add_flags(group, flags.VectorFiles, ("label_column", "groups"), texts)
    flags.add_flags(group, Options, ("seed",), texts)
    group = parser.add_argument_group("the probe")
    options.add(
        group,
        ("--C", list, f"strengths to choose from (default: {', '.join(f'{C:g}' for C in STRENGTHS)})"),
        ("--tolerance", float, "stop at this gradient, as scikit-learn does at 1e-4 (default: solve to the optimum)"),
        ("--refit", True, "learn again from training and validation clips together once C is chosen"),
    )
    group = parser.add_argument_group("files, names and resources")
    flags.add_flags(group, flags.VectorFiles, ("key", "dimensions", "system", "subset", "suite"))
    flags.add_flags(group, Options, ("threads",), texts)
    options.add(group, ("--per-point", "FILE", "write every clip's fold and answer: .csv or .parquet"))
    parser.set_defaults(dimensions=[], system="", subset="", suite="")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    if args.task_vectors:
        if args.vectors is not None:
            raise UsageError("Give vectors once: as VECTORS, or with --vectors.")
        args.vectors = args.task_vectors
    clips = _task_clips(args) if args.hear else _file_clips(args)
    study = study_linear(
        clips.values, clips.labels, given=clips.given, groups=clips.groups, ids=clips.ids, kind=args.kind,
        folds=int(args.folds) if args.folds.isdecimal() else 5, strengths=args.C or STRENGTHS, refit=args.refit,
        tolerance=args.tolerance,
        allow_leaks=args.allow_leaks, seed=args.seed or 0, threads=args.threads, suite=args.suite, subset=args.subset,
        system=args.system or str(args.extractor or args.vectors), progress=not args.quiet,
    )  # fmt: skip
    if clips.missing:
        study = study._replace(scores=_incomplete(study.scores, clips))
    if clips.joined is not None:
        study = study._replace(scores=options.with_doubts(study.scores, clips.joined))
    if args.per_point:
        write_columns(locate(args.per_point), _answers(study, clips), "answers")
    if not args.quiet:
        for note in clips.notes:
            print(f"note: {note}", file=sys.stderr)
    options.deliver(args, study.scores, lambda scores: f"{long_text(scores)}\n{fold_table(study.choices)}")
    return 0 if any(row.value is not None for row in study.scores) else 1


def fold_table(choices: tuple[FoldChoice, ...]) -> str:
    """Each fold's clips, the C that was chosen, and its scores in percent."""
    percent = NumberFormat(1, percent=True)
    columns = [
        Column("fold", "left"), Column("train"), Column("valid"), Column("test"), Column("C"),
        Column("validation", unit="%", format=percent), Column("test", unit="%", format=percent),
    ]  # fmt: skip
    rows = [
        (fold.fold, fold.train_clips, fold.valid_clips, fold.test_clips, f"{fold.C:g}",
         fold.valid if fold.valid_clips else None, fold.test)
        for fold in choices
    ]  # fmt: skip
    return Table(columns, rows).to_text()


def _file_clips(args: argparse.Namespace) -> _Clips:
    if args.extractor or args.pool:
        raise UsageError("--extractor and --pool embed the sounds of a task: give its folder with --hear.")
    if args.vectors is None:
        raise UsageError("Nothing says what to probe: give VECTORS, or a task of HEAR with --hear FOLDER.")
    files = {"key": args.key, "label_column": args.label_column, "dimensions": args.dimensions}
    joined = vectors.read_labelled(args.vectors, args.labels, groups=args.groups, **files)
    column = args.fold_column or (None if args.folds.isdecimal() else args.folds)
    given = None
    if column:  # the same rows, with the column of folds in the place of the groups
        given = vectors.read_labelled(args.vectors, args.labels, groups=column, **files).groups
    options.tell_columns(args, joined)
    labels: Any = joined.labels
    notes: tuple[str, ...] = ()
    if any(SEVERAL in (label or "") for label in labels):
        labels = [
            None if label is None else [text for text in label.split(SEVERAL) if text.strip()] for label in labels
        ]
        notes = (f'some cells hold several labels, separated by "{SEVERAL}": each label has a regression of its own',)
    return _Clips(joined.values, labels, joined.groups, given, joined.ids, notes, joined=joined)


def _task_clips(args: argparse.Namespace) -> _Clips:
    from earmark.corpora.hear_tasks import open_hear, read_task

    if args.labels or args.fold_column or args.label_column or args.groups or not args.folds.isdecimal():
        raise UsageError("--hear brings labels and folds of its own: leave out LABELS, --split and columns.")
    task = read_task(args.hear)
    args.subset = args.subset or task.name
    notes: tuple[str, ...] = ()
    values: Any
    if args.extractor:
        if args.vectors:
            raise UsageError("Give vectors or an extractor, not both.")
        from earmark.embedding.embed import embed_audio

        found = embed_audio(
            open_hear(args.hear), args.extractor, args.pool, threads=args.threads, progress=not args.quiet
        )
        values, ids, notes = found.vectors, found.ids, found.notes
    else:
        if args.vectors is None:
            raise UsageError(f"Nothing says what {task.name} sounds like: give --vectors FILE or --extractor NAME.")
        loaded = vectors.read_vectors(args.vectors, key=args.key, dimensions=args.dimensions)
        if loaded.ids is None:
            raise UsageError(f"{args.vectors} has no ids: give names of sound files, to join vectors and clips.")
        values, ids = loaded.values, loaded.ids
    rows, missing = task.rows_of(ids, str(args.extractor or args.vectors))
    kept = [place for place, row in enumerate(rows) if row >= 0]
    targets, parts = task.targets, task.parts
    return _Clips(
        np.asarray(values)[[rows[place] for place in kept]], [targets[place] for place in kept], None,
        [parts[place] for place in kept], tuple(task.clips[place].id for place in kept), notes, tuple(missing),
    )  # fmt: skip


def _incomplete(scores: Scores, clips: _Clips) -> Scores:
    """Scores of a task some of whose clips have no vector: they would win by failing."""
    total = len(clips.missing) + len(clips.labels)
    why = f"{len(clips.missing)} of {counted(total, 'clip')} without a vector ({first_of(clips.missing, 3)})"
    rows = tuple(replace(row, status="incomplete", reason=f"{why}; {row.reason}") for row in scores)
    return replace(scores, rows=rows)


def _answers(study: Study, clips: _Clips) -> dict[str, list[Any]]:
    """Row, id, label, group and fold of each clip, the answer, and its score."""
    columns: dict[str, list[Any]] = {"row": list(range(len(clips.labels)))}
    if clips.ids is not None:
        columns["id"] = list(clips.ids)
    columns["label"] = [SEVERAL.join(label) if isinstance(label, list) else label for label in clips.labels]
    if clips.groups is not None:
        columns["group"] = list(clips.groups)
    columns |= {"fold": list(study.fold_of), "answer": list(study.answers)}
    for (_, _, _, metric), values in study.scores.per_point.items():
        columns[metric] = [None if np.isnan(value) else float(value) for value in values]
    return columns
