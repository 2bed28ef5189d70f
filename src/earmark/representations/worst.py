"""The clips that a system places worst, as spans of their recordings: what a person should look at and listen to.

A clip whose nearest neighbour is of another class comes before one whose is not, and among these the one with the lower
GSR; where clips have several labels there is no GSR, and they stay in their order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from earmark import audio
from earmark.errors import EarmarkError, InputError, UsageError, absent
from earmark.exchange.selection_tables import Span, left_out_note, write_selections
from earmark.places import is_remote, locate
from earmark.representations._folder import load_points, load_vectors
from earmark.runs import read_record
from earmark.runs.folder import clips_of_subset
from earmark.wording import seconds_text


class Worst(NamedTuple):
    """The files that were written, and remarks."""

    files: list[Path]
    remarks: list[str]


def write_worst(
    folder: str | Path, into: str | Path, program: str = "raven", *, worst: int = 50, system: str | None = None,
    subset: str | None = None, distance: str | None = None, correction: str | None = None, protocol: str | None = None,
) -> Worst:  # fmt: skip
    """Write the worst clips of a run as selection tables of Raven, or as tracks of labels of Audacity.

    Args:
        folder: The run folder.
        into: The folder to write into.
        program: "raven" or "audacity".
        worst: How many clips.
        system: The system, as the scores name it; may be left out where there is one.
        subset: The subset, likewise.
        distance: The distance; the first of the system, where it is left out.
        correction: The hubness correction, likewise.
        protocol: "all" or "across_groups", which is taken where it was measured.
    """
    if worst < 1:
        raise UsageError(f"worst must be at least 1, not {worst}.")
    job = _chosen(read_record(folder)["evaluations"], system=system, subset=subset, distance=distance,
                  correction=correction)  # fmt: skip
    key = job["subset"], job["system"]
    points = load_points(folder, *key, job["distance"], job["suite"], job.get("correction", "none"))
    measured = list(dict.fromkeys(name for name, _ in points))
    chosen = protocol or ("across_groups" if ("across_groups", "nearest_row") in points else "all")
    if (chosen, "nearest_row") not in points:
        known = ", ".join(measured) or "nothing"
        raise UsageError(f"{folder} has no neighbours under the protocol {chosen!r} (there is {known}).")
    ids = load_vectors(folder, *key, job["suite"]).ids
    lines = clips_of_subset(folder, job["suite"], job["subset"])
    spans: list[Span] = []
    lost = 0
    for row in _order(points, chosen):
        if len(spans) == worst:
            break
        span = _span(row, ids, lines, points, chosen, job)
        lost += span is None
        spans += [] if span is None else [span]
    what = f"{job['system']}, {job['distance']}, {job['subset']}, {chosen}: {len(spans)} of {len(ids)} clips"
    return Worst(write_selections(spans, program, Path(into)), [what, *left_out_note(lost)])


def _chosen(jobs: list[dict[str, Any]], **asked: str | None) -> dict[str, Any]:
    """The measurement that is meant; where several systems or subsets are there, one has to be named."""
    for name, value in asked.items():
        known = list(dict.fromkeys(job.get(name, "none") for job in jobs))
        if value is not None and value not in known:
            raise UsageError(absent(value, known, name, "The run"))
        if value is None and name in ("system", "subset") and len(known) > 1:
            flag = {"system": "--systems", "subset": "--subset"}[name]
            raise UsageError(f"The run has several {name}s: name one with {flag} ({', '.join(known)}).")
        jobs = [job for job in jobs if value is None or job.get(name, "none") == value]
    if not jobs:
        raise InputError("The run has no such measurement.")
    return jobs[0]


def _order(points: dict[tuple[str, str], Any], protocol: str) -> list[int]:
    """Rows from the worst on; those without a neighbour or a value are none."""
    nearest = points[protocol, "nearest_row"]
    hit = points.get((protocol, "P@1"), np.full(len(nearest), np.nan))
    score = points.get((protocol, "GSR"), np.full(len(nearest), np.nan))
    if not (np.isfinite(hit).any() or np.isfinite(score).any()):
        raise InputError("The run measured neither P@1 nor GSR, by which clips are ordered: run it with one of them.")
    asked = np.isfinite(nearest) & (np.isfinite(hit) | np.isfinite(score))
    order = np.lexsort([np.arange(len(hit)), np.nan_to_num(score), np.nan_to_num(hit)])
    return [int(row) for row in order if asked[row]]


def _span(
    row: int, ids: list[str], lines: dict[str, Any], points: dict[tuple[str, str], Any], protocol: str,
    job: dict[str, Any],
) -> Span | None:  # fmt: skip
    line, near = lines[ids[row]], lines[ids[int(points[protocol, "nearest_row"][row])]]
    if not line["path"] or is_remote(locate(line["path"])):
        return None
    try:
        about = audio.probe(line["path"])
    except EarmarkError:
        return None
    values = {
        metric: points[protocol, metric][row]
        for metric in ("P@1", "GSR")
        if (protocol, metric) in points and np.isfinite(points[protocol, metric][row])
    }
    start = float(line["start"] or 0.0)
    end = min(float(line["end"]), about.duration) if line["end"] else about.duration
    cells = {
        "Nearest Label": near["label"], "Nearest File": near["path"],
        "Nearest Begin (s)": seconds_text(float(near["start"] or 0)),
        "Nearest End (s)": seconds_text(float(near["end"])) if near["end"] else "",
        **{name: f"{value:.4f}" for name, value in values.items()},
        "Group": line["group"], "System": job["system"], "Clip": line["id"],
    }  # fmt: skip
    comment = "; ".join([f"nearest: {near['label']}", *(f"{name} {value:.2f}" for name, value in values.items())])
    return Span(line["path"], start, end, line["label"], about.rate, about.duration, comment, cells)
