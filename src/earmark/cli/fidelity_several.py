"""`earmark fidelity` with several generated sets: ranks, differences, correlations with judgements."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from earmark.analysis.human import HumanAgreement, human_agreement
from earmark.cli import options
from earmark.errors import InputError, UsageError
from earmark.generated.several import RankedGenerators, rank_generators
from earmark.places import locate
from earmark.report import generators as report
from earmark.report.judgements import write_correlations
from earmark.tables import read_csv_records, read_text
from earmark.vectors import Vectors
from earmark.wording import counted, first_of

Read = Callable[[argparse.Namespace], tuple[Vectors, list[Vectors]]]


def run_several(args: argparse.Namespace, read: Read, choices: dict[str, Any]) -> int:
    """Judge and rank the sets, and deliver what was asked for."""
    for name in ("per_sample", "per_real"):
        if getattr(args, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is a file of one generated set: give them one by one for that.")
    if args.correlations and not args.human:
        raise UsageError("--correlations needs judgements to correlate with: give --human FILE.")
    names = options.system_names(args.generated, args.system, "generated set")
    judgements = read_judgements(args.human) if args.human else None
    real, sets = read(args)
    ranked = rank_generators(
        real.values, {name: one.values for name, one in zip(names, sets, strict=True)}, real_groups=real.groups,
        groups={name: one.groups for name, one in zip(names, sets, strict=True)}, real_ids=real.ids,
        ids={name: one.ids for name, one in zip(names, sets, strict=True)}, **choices,
    )  # fmt: skip
    human = None
    if judgements is not None:
        human = human_agreement(ranked.scores, judgements, higher_is_better=args.human_better == "higher")
    title = f"{len(sets)} generated sets against {args.real}"
    sizes = ", ".join(str(size) for size in dict.fromkeys(ranked.sizes.values()))
    heading = f"{title} · {sizes} generated points each" if len(set(ranked.sizes.values())) == 1 else title
    heading += f" · {counted(len(real.values), 'real point')}"
    options.tell_columns(args, real, *sets)
    options.deliver(args, ranked.scores, lambda _: report.to_text(ranked, heading, human))
    writers = {
        "ranks": lambda path: report.write_ranks(ranked, path),
        "pairs": lambda path: ranked.pairs.write(path),
        "correlations": lambda path: write_correlations(_given(human), path),
        "figure": lambda path: _draw(ranked, path, judgements, human),
        "html": lambda path: report.write_page(ranked, title, path, human, judgements),
    }
    written = options.write_files(args, writers)
    return 0 if written and any(row.status == "ok" for row in ranked.scores) else 1


def read_judgements(path: str) -> dict[str, float]:
    """A number for each system, from the columns system and value, or system and the only other column of numbers."""
    records = list(read_csv_records(read_text(locate(path)), path))
    columns = list(records[0]) if records else []
    known = {column.strip().lower(): column for column in columns}
    if "system" not in known:
        there = first_of(columns, 5) or "no columns"
        raise InputError(f"{path} has no column system (there are {there}): give the columns system and value.")
    others = [column for column in columns if column != known["system"]]
    numeric = [column for column in others if all(_number(record[column]) is not None for record in records)]
    column = known.get("value") or (numeric[0] if len(numeric) == 1 else None)
    if column is None:
        raise InputError(f"{path} has {counted(len(numeric), 'other column')} of numbers: call the one to use value.")
    found: dict[str, float] = {}
    for record in records:
        name, value = record[known["system"]].strip(), _number(record[column])
        if value is None:
            raise InputError(f"{path}: {name or 'a line'} has the {column} {record[column]!r}: give a number.")
        if name in found:
            raise InputError(f"{path} names {name} twice: give one line for each system.")
        found[name] = value
    return found


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _given(human: HumanAgreement | None) -> HumanAgreement:
    assert human is not None
    return human


def _draw(
    ranked: RankedGenerators, path: str, judgements: dict[str, float] | None, human: HumanAgreement | None
) -> None:
    """The plane; with judgements also the leading metric against them."""
    from earmark.report.figures import save
    from earmark.report.figures.fidelity import plane
    from earmark.report.figures.judgements import against_judgements

    if human is None or judgements is None:
        save(plane(ranked.scores), path)
        return
    distance = next(iter(dict.fromkeys(row.distance for row in ranked.scores)))
    save(against_judgements(ranked.scores, judgements, human, distance, plane=True), path)
