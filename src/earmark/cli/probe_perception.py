"""Do distances agree with listeners? Choices between two sounds (2AFC) and triplets against vectors or distances.

JUDGEMENTS: a .csv, .tsv, .jsonl or .parquet table with a line for each judgement. 2AFC has columns X, A, B and the
choice (is A or B more like X?), triplets have anchor, positive and negative. Columns are known by common names; flags
name others. Names of sounds fit the ids of vectors, of a run or of a matrix where one leaves out folders or the ending.

A choice is agreed with when the chosen sound is the nearer one, a triplet when the positive is nearer than the
negative; a tie agrees with nobody. Rank correlations are those of d(X,A) - d(X,B) with the choice (+1 for A, -1 for
B): agreement is a negative number.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from earmark import vectors
from earmark.cli import flags, options
from earmark.errors import InputError, UsageError, absent
from earmark.evaluation.options import GIVEN, Options
from earmark.probes.perception import LISTENERS, UNITS, Judgements, known_sounds, perception, read_judgements
from earmark.scores import STATUS_MARKS, Row, Scores
from earmark.tables import MISSING, Column, NumberFormat, Table
from earmark.tables.numbers import HYPHEN
from earmark.vectors.distances import read_ids
from earmark.wording import counted, counted_units, listed

EXAMPLES = """examples:
  earmark probe perception triplets.csv --vectors wavlm.npz --where Margin_Type=high --ceiling 0.8,0.9
  earmark probe perception probes.csv --vectors wavlm.npz,logmel.npz --distance cosine,spearman --listener bird
  earmark probe perception choices.csv --x probe --a first --b second --choice answer --vectors wavlm.npz
  earmark probe perception probes.csv --distances luscinia.csv --min-agreement 0.8 --min-repeats 3
  earmark probe perception triplets.csv --run my-run --reference logmel --figure agreement.svg
"""

_PERCENT = NumberFormat(1, percent=True, minus=HYPHEN)
_PLAIN = NumberFormat(3, minus=HYPHEN)
_ROLES = (
    ("--x", "the sound that the others are compared with (2AFC)"),
    ("--a", "the first sound to choose from (2AFC)"),
    ("--b", "the second sound to choose from (2AFC)"),
    (
        "--choice",
        "the choice (2AFC): A/B, Left/Right, 1/2, a sound's name; an empty cell, NA or none is no choice",
    ),
    ("--anchor", "the sound that the others are compared with (triplets)"),
    ("--positive", "the sound that was judged nearer (triplets)"),
    ("--negative", "the sound that was judged farther (triplets)"),
    ("--listener", "who judged; `none` where a column would be taken for it by its name"),
)
_BOUNDS = {
    "agreement_between": "two listeners agree",
    "agreement_within": "a listener agrees with the same listener's other judgements",
    "agreement_repeats": "repeated judgements agree (of whichever listeners)",
    "attainable_accuracy": "the most that any distance can agree with",
}
_SHARE_OF = {
    "agreement_between": "of two listeners",
    "agreement_within": "of a listener again",
    "agreement_repeats": "of repeats",
    "attainable_accuracy": "of attainable",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("judgements", metavar="JUDGEMENTS", help="table of judgements")
    group = parser.add_argument_group("where distances come from")
    group.add_argument(
        "--vectors", type=options.names, action="extend", metavar="LIST",
        help="files of vectors with ids, separated by commas, or the flag again: a system each",
    )  # fmt: skip
    group.add_argument(
        "--run", dest="folder", metavar="RUN", help="a run folder: all its systems, or those of --system"
    )
    flags.add_distances(
        parser,
        distances="distances computed elsewhere, separated by commas: a square or condensed .npy or .npz; or a .csv, "
        ".tsv or .parquet of pairs (a,b,distance), of which some may be missing, or of a square with names",
        ids="file of the sounds of the rows, where vectors or a matrix do not name them: .txt, or a table with a "
        "column id",
    )
    group = parser.add_argument_group("columns of the judgements")
    options.add(group, ("--kind", "KIND", "2afc or triplets (default: what the columns say)"))
    options.add(group, *((flag, "COLUMN", text) for flag, text in _ROLES))
    options.add(
        group,
        ("--chose-a", "TEXT", "how a choice of A is spelled, where that is none of the usual words"),
        ("--chose-b", "TEXT", "how a choice of B is spelled"),
    )
    group = parser.add_argument_group("which judgements")
    group.add_argument(
        "--where", action="append", default=[], metavar="FILTER",
        help="rows of their own for the judgements that fulfil COLUMN=VALUE, 'COLUMN>=0.8' or several joined by &; may "
        "be given more than once. Also known: agreement (share of an item's presentations with its more frequent "
        "choice) and repeats (their number)",
    )  # fmt: skip
    options.add(
        group,
        ("--min-agreement", float, "rows of their own for items whose presentations agree to at least this share"),
        ("--min-repeats", int, "and for items that were presented at least so often"),
        ("--majority", True, "one judgement for each item, its more frequent choice, in place of all presentations"),
    )
    group = parser.add_argument_group("intervals, ceilings and comparisons")
    group.add_argument(
        "--unit", choices=UNITS, default=None,
        help="what varies: judgement (exact binomial), listener, anchor (X), pair (A, B), or two of them at once "
        "(jackknife); default: listeners where known, together with the pairs, or anchors, that several of them "
        "judged; else pairs, or anchors, that several judgements share",
    )  # fmt: skip
    options.add(
        group,
        ("--ceiling", list, "agreement of listeners that is known from elsewhere, such as 0.8,0.9"),
        ("--reference", "NAME", "compare every other system with this one (default: all pairs, of up to 5 systems)"),
        ("--no-compare", True, "do not compare systems"),
        ("--figure", "FILE", "draw agreement with intervals, chance and ceilings: .png, .svg or .pdf"),
    )
    group = parser.add_argument_group("distances and names")
    flags.add_flags(group, Options, ("distance", "ties", "threads"))
    texts = {
        "system": "names of the systems, with commas; of a run: these systems alone",
        "subset": "name of the data; of a run: this subset",
    }
    flags.add_flags(group, flags.VectorFiles, ("key", "dimensions", "system", "subset", "suite"), texts)
    parser.set_defaults(dimensions=[], system="", subset="", suite="")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "figure")
    judgements = read_judgements(
        args.judgements, kind=args.kind, x=args.x, a=args.a, b=args.b, choice=args.choice, anchor=args.anchor,
        positive=args.positive, negative=args.negative, listener=args.listener, chose_a=args.chose_a,
        chose_b=args.chose_b,
    )  # fmt: skip
    levels = _levels(args.ceiling)
    sources = _sources(args, judgements)
    scores = perception(
        judgements, sources, where=args.where, min_agreement=args.min_agreement, min_repeats=args.min_repeats,
        majority=args.majority, unit=args.unit, ceiling=levels, reference=args.reference,
        compare=False if args.no_compare else None, distance_name=args.distance_name or GIVEN, subset=args.subset,
        suite=args.suite, progress=not args.quiet,
        **flags.given(argparse.Namespace(distance=args.distance, ties=args.ties, threads=args.threads), Options),
    )  # fmt: skip
    if not args.quiet:
        print(judgements.summary, file=sys.stderr)
    options.deliver(args, scores, lambda table: as_text(table, levels))
    for note in scores.notes:
        if not args.quiet or note.startswith("WARNING"):
            print(note if note.startswith("WARNING") else f"note: {note}", file=sys.stderr)
    drawn = options.write_files(args, {"figure": lambda path: _draw(scores, levels, path)})
    return 0 if drawn and any(row.value is not None and row.system != LISTENERS for row in scores) else 1


def _draw(scores: Scores, levels: Sequence[float], path: str) -> None:
    from earmark.report.figures import save
    from earmark.report.figures.listeners import agreement

    save(agreement(scores, levels), path)


def _levels(texts: Sequence[str] | None) -> list[float]:
    try:
        return [float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0) for text in texts or ()]
    except ValueError:
        raise UsageError(f"--ceiling {','.join(texts or ())} is no list of shares such as 0.8,0.9.") from None


# --- sources ----------------------------------------------------------------------------------------------------------


def _sources(args: argparse.Namespace, judgements: Judgements) -> dict[str, Any]:
    """What has distances, by the name of the system."""
    matrices = flags.settle_distances(
        args, beside_vectors=True, of_files=("pair_columns", "symmetrise", "distance_name")
    )
    files = [*(args.vectors or ()), *matrices]
    if args.folder and files:
        raise UsageError("Give files or a run folder, not both: --run has its own vectors.")
    if args.folder:
        return _run_vectors(args, judgements)
    if not files:
        raise UsageError("Nothing has distances: give --vectors, --distances or --run.")
    if len(set(files)) < len(files):
        raise UsageError("The same file was given twice: give each system once.")
    names = options.system_names(files, args.system)
    ids = read_ids(args.ids) if args.ids else None
    sources: dict[str, Any] = {}
    for name, path in zip(names, args.vectors or (), strict=False):
        read = vectors.read_vectors(path, key=args.key, dimensions=args.dimensions)
        options.tell_columns(args, read)
        sources[name] = read if ids is None else replace(read, ids=tuple(ids))
    for name, path in zip(names[len(args.vectors or ()) :], matrices, strict=True):
        sources[name] = flags.read_given(args, path, complete=False)
        for note in () if args.quiet else sources[name].notes:
            print(f"note: {note}", file=sys.stderr)
    return sources


def _run_vectors(args: argparse.Namespace, judgements: Judgements) -> dict[str, Any]:
    """The vectors of a run's systems over the one subset that holds the sounds; names the subset and the suite."""
    from earmark.representations import load_vectors
    from earmark.runs.folder import read_clips, read_record

    entries = read_record(args.folder)["vectors"]
    names = options.names(args.system)
    known = list(dict.fromkeys(entry["system"] for entry in entries))
    for name in names:
        if name not in known:
            raise UsageError(absent(name, known, "system", args.folder))
    subsets: dict[tuple[str, str], list[str]] = {}
    for line in read_clips(args.folder):
        subsets.setdefault((line["suite"], line["subset"]), []).append(line["id"])
    if args.subset:
        chosen = [place for place in subsets if place[1] == args.subset]
        if not chosen:
            raise UsageError(f"{args.folder} has no subset {args.subset!r}; it has {_subset_names(subsets)}.")
    else:
        chosen = [place for place, ids in subsets.items() if known_sounds(judgements, ids, args.folder)]
        if not chosen:
            raise InputError(
                f"{args.folder} holds none of the {counted(len(judgements.sounds), 'sound')} of {judgements.source}, "
                f"such as {judgements.sounds[0]}: judge a run over these sounds."
            )
    if len(chosen) > 1:
        raise UsageError(f"{_subset_names(chosen)} hold sounds that were judged: choose one with --subset.")
    (args.suite, args.subset) = (args.suite or chosen[0][0], chosen[0][1])
    return {
        entry["system"]: load_vectors(args.folder, entry["subset"], entry["system"], entry["suite"])
        for entry in entries
        if (entry["suite"], entry["subset"]) == chosen[0] and (not names or entry["system"] in names)
    }


def _subset_names(places: Sequence[tuple[str, str]] | Mapping[tuple[str, str], Any]) -> str:
    return listed([subset or suite for suite, subset in places])


# --- text -------------------------------------------------------------------------------------------------------------


def as_text(scores: Scores, levels: Sequence[float] = ()) -> str:
    """Agreement, correlations, ceilings and differences as tables, with the reasons as footnotes."""
    notes: dict[str, int] = {}
    rows = [row for row in scores if row.system != LISTENERS]
    plain = [row for row in rows if not row.statistic]
    blocks = [
        _agreement([row for row in plain if row.metric.endswith("_accuracy")], scores, levels, notes),
        _correlations([row for row in plain if row.metric.startswith("choice_") and row.value is not None
                       and not row.metric.endswith("_accuracy")]),
        _differences([row for row in rows if row.statistic], notes),
        _ceilings([row for row in scores if row.system == LISTENERS and row.value is not None]),
        _units(rows),
        "\n".join(f"({number}) {note}" for note, number in notes.items()),
    ]  # fmt: skip
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def _agreement(rows: Sequence[Row], scores: Scores, levels: Sequence[float], notes: dict[str, int]) -> str:
    bounds = {
        (row.protocol, row.metric): row.value for row in scores if row.system == LISTENERS and row.value is not None
    }
    measured = next((name for name in _BOUNDS if any(name == metric for _, metric in bounds)), None)
    if measured == "attainable_accuracy" and all(value == 1.0 for value in bounds.values()):
        measured = None
    columns = [Column(name, "left") for name in ("system", "distance", "judgements")]
    columns += [Column("agreement (%)"), Column("95% interval"), Column("p"), Column("n")]
    columns += [Column(f"of {100 * level:g} %") for level in levels]
    columns += [Column(_SHARE_OF[measured])] if measured else []
    body = []
    for row in rows:
        limits = [*levels, *([bounds.get((row.protocol, measured))] if measured else [])]
        shares = [
            f"{100 * row.value / limit:.0f} %" if row.value is not None and limit else MISSING for limit in limits
        ]
        body.append([
            row.system, row.distance, row.protocol, _value(row, _PERCENT, notes),
            _PERCENT.interval(row.low, row.high), _p(row), str(row.n or 0), *shares,
        ])  # fmt: skip
    return Table(columns, body).to_text() if body else ""


def _correlations(rows: Sequence[Row]) -> str:
    columns = [Column(name, "left") for name in ("system", "distance", "judgements", "correlation")]
    columns += [Column("value"), Column("95% interval"), Column("p"), Column("perfect")]
    body = [
        [row.system, row.distance, row.protocol, row.metric.removeprefix("choice_"), _PLAIN.text(row.value),
         _PLAIN.interval(row.low, row.high), _p(row), _perfect(row)]
        for row in rows
    ]  # fmt: skip
    title = "d(X,A) - d(X,B) with the choice, +1 for A: below 0 agrees with the listeners"
    return Table(columns, body, title=title).to_text() if body else ""


def _perfect(row: Row) -> str:
    """What a perfect system would have, as the reason of a correlation says it."""
    found = re.search(r"a perfect system has (-[0-9.]+)", row.reason)
    return found[1] if found else ""


def _differences(rows: Sequence[Row], notes: dict[str, int]) -> str:
    columns = [Column(name, "left") for name in ("one minus another", "distance", "judgements")]
    columns += [Column("points"), Column("95% interval"), Column("p"), Column("n")]
    body = [
        [row.system, row.distance, row.protocol, _value(row, _PERCENT, notes, sign=True),
         _PERCENT.interval(row.low, row.high, sign=True), _p(row), str(row.n or 0)]
        for row in rows
    ]  # fmt: skip
    most = max((row.comparisons or 1 for row in rows), default=1)
    title = f"interval and p corrected for {most} comparisons" if most > 1 else ""
    return Table(columns, body, title=title).to_text() if body else ""


def _ceilings(rows: Sequence[Row]) -> str:
    """What listeners themselves reach, a line for each."""
    lines = []
    for row in rows:
        if row.metric == "attainable_accuracy" and row.value == 1.0:
            continue  # nothing contradicts itself
        interval = _PERCENT.interval(row.low, row.high)
        words = f"{row.protocol}: {_BOUNDS[row.metric]}: {_PERCENT.text(row.value)} % {interval}".rstrip()
        lines.append(f"{words} (n = {row.n}{f'; {row.reason}' if row.reason else ''})")
    return "\n".join(lines)


def _units(rows: Sequence[Row]) -> str:
    """What the intervals rest on."""
    kinds: dict[tuple[str, str, int], list[str]] = {}
    for row in rows:
        if row.interval and row.metric.endswith("_accuracy"):
            kinds.setdefault((row.interval, row.unit, row.units or 0), []).append(row.protocol)
    parts = [
        f"{kind} over {counted_units(units, unit)}"
        + (f" ({listed(dict.fromkeys(protocols))})" if len(kinds) > 1 else "")
        for (kind, unit, units), protocols in kinds.items()
    ]
    return f"intervals: {'; '.join(parts)}; p: two-sided, against 50 %" if parts else ""


def _value(row: Row, form: NumberFormat, notes: dict[str, int], *, sign: bool = False) -> str:
    parts = [part for part in row.reason.split("; ") if part]
    numbers = ",".join(str(notes.setdefault(part, len(notes) + 1)) for part in parts)
    return STATUS_MARKS.get(row.status, "") + form.text(row.value, sign=sign) + (f" ({numbers})" if parts else "")


def _p(row: Row) -> str:
    return "" if row.p_value is None else f"{row.p_value:.2g}"
