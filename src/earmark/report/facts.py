"""What is known of subsets: of a run from its record, VocSim's as its paper prints them, and those of a file.

A file is what `earmark corpus describe --out` writes, .csv or .json, or any table with the columns subset, clips and
classes; seconds, dri (dB), domain and suite count where they are there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from earmark.corpora.vocsim import PUBLISHED
from earmark.errors import InputError
from earmark.places import locate
from earmark.report.content import Durations, SubsetFacts
from earmark.report.score_index import Subset
from earmark.scores import VOCSIM_SUBSETS
from earmark.tables import read_csv_records, read_text

_KINDS = {
    "BC": "bird calls", "BS": "bird syllables", "ES": "environment", "HP": "phones", "HS": "human sounds",
    "HU": "utterances", "HW": "words", "OC": "otter calls",
}  # fmt: skip
"""The letters of VocSim's names, in words."""


def printed_facts(subsets: Iterable[Subset]) -> list[SubsetFacts]:
    """Table 1 of VocSim's paper, for those of the subsets that are its own."""
    titles = {item.name: item for item in VOCSIM_SUBSETS}
    found = []
    for place in subsets:
        printed = PUBLISHED.get(place.name) if place.suite == "vocsim" else None
        if printed is None:
            continue
        seconds = Durations(
            printed.shortest, math.nan, printed.seconds, printed.longest, printed.seconds * printed.clips
        )
        found.append(
            SubsetFacts(
                subset=place.name, suite=place.suite, title=titles[place.name].title, domain=_KINDS[place.name[:2]],
                status=titles[place.name].status, clips=printed.clips, classes=printed.classes,
                per_class=(printed.smallest, printed.largest), durations=seconds, dri=float(printed.dri),
            )
        )  # fmt: skip
    return found


def recorded_facts(record: Mapping[str, Any]) -> list[SubsetFacts]:
    """The subsets of a run, from its record."""
    return [_recorded(subset) for subset in record.get("subsets", ())]


def _recorded(subset: Mapping[str, Any]) -> SubsetFacts:
    seconds = subset.get("seconds")
    names = ("min", "median", "mean", "max", "total")
    return SubsetFacts(
        subset=subset["subset"],
        suite=subset["suite"],
        title=subset.get("title", ""),
        domain=subset["domain"],
        status=subset["status"],
        clips=subset["clips"],
        classes=subset["classes"],
        per_class=tuple(subset["clips_per_class"]) if subset["clips_per_class"] else None,
        groups=subset["groups"] or None,
        durations=Durations(*(seconds[name] for name in names)) if seconds else None,
    )


def read_facts(path: str | os.PathLike[str]) -> list[SubsetFacts]:
    """The subsets of a file; InputError names the line and what it lacks."""
    file = locate(path)
    text = read_text(file)
    if file.suffix.lower() == ".json":
        try:
            given = json.loads(text)
        except ValueError as error:
            raise InputError(f"{file} is not JSON ({error}); write it with `earmark corpus describe --out`.") from error
        lines = given.get("subsets", given) if isinstance(given, dict) else given
    else:
        lines = list(read_csv_records(text, file))
    if not isinstance(lines, list) or not lines or not all(isinstance(line, dict) for line in lines):
        raise InputError(f"{file} has no subsets; write it with `earmark corpus describe --out`.")
    return [_facts(line, f"{file}, line {number}") for number, line in enumerate(lines, start=2)]


def match_facts(subsets: Iterable[Subset], *sources: Iterable[SubsetFacts]) -> list[SubsetFacts]:
    """What is known of each subset: the first source that has it, filled up from the later ones.

    Facts without a suite fit a subset of any.
    """
    found = []
    for place in subsets:
        known: SubsetFacts | None = None
        for source in map(list, sources):
            own = next((one for one in source if one.subset == place.name and one.suite in ("", place.suite)), None)
            if own is not None and known is not None:
                own = replace(
                    known, dri=own.dri if known.dri is None else known.dri, domain=known.domain or own.domain,
                    durations=known.durations or own.durations,
                )  # fmt: skip
            known = own or known
        if known is not None:
            found.append(replace(known, suite=place.suite))
    return found


def _facts(line: Mapping[str, Any], where: str) -> SubsetFacts:
    name = str(line.get("subset") or "").strip()
    counts = {key: _number(line, key, where) for key in ("clips", "classes")}
    if not name or None in counts.values():
        raise InputError(f"{where} needs subset, clips and classes; `earmark corpus describe --out` writes them.")
    seconds, total = _number(line, "seconds", where), _number(line, "total_seconds", where)
    ends = _number(line, "shortest", where), _number(line, "longest", where)
    durations = None
    if seconds is not None:
        low, high = (math.nan if end is None else end for end in ends)
        durations = Durations(low, math.nan, seconds, high, math.nan if total is None else total)
    fewest, most = (_number(line, key, where) for key in ("smallest", "largest"))
    return SubsetFacts(
        subset=name, suite=str(line.get("suite") or ""), domain=str(line.get("domain") or ""),
        clips=int(counts["clips"] or 0), classes=int(counts["classes"] or 0), durations=durations,
        per_class=None if fewest is None or most is None else (int(fewest), int(most)),
        dri=_number(line, "dri", where),
    )  # fmt: skip


def _number(line: Mapping[str, Any], key: str, where: str) -> float | None:
    cell = line.get(key)
    if cell is None or str(cell).strip() == "":
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{where}: {key} is {cell!r}, which is no number of at least 0; correct it, or leave it out.")
    return value
