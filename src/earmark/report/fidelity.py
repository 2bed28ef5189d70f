"""Real against generated, for people: a table before and after GICDM, one plain sentence, a file of samples, a page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import UsageError
from earmark.generated.api import HEADLINES, Fidelity
from earmark.generated.metrics import DISTANCES, LITERAL
from earmark.generated.metrics import facts as fidelity_facts
from earmark.places import locate
from earmark.report.figures import fidelity as figures
from earmark.report.figures.distances import CAPTION, distances_drawn
from earmark.report.figures.style import as_svg
from earmark.report.html import _shell as shell
from earmark.report.metric_text import facts, interval, number
from earmark.scores import PointKey, Row
from earmark.tables import MISSING, NumberFormat, aligned, write_columns
from earmark.tables.html import Html, bullets, drawing, paragraph, section, table, tag
from earmark.wording import counted

QUESTIONS = {
    "fidelity": "Are the generated points like the real ones?",
    "coverage": "Are all the real points met?",
    "distance": "How far apart are the two distributions?",
}
TITLES = {"none": "without GICDM", "gicdm": "with GICDM"}
HIGH, LOW = 0.8, 0.5  # where the sentence changes its words
COPIED = 0.1  # from this share of copies on, the sentence speaks of them

Point = Mapping[tuple[str, str, str, str], NDArray[np.float64]]


# --- the terminal -------------------------------------------------------------------------------------------------


def to_text(scores: Fidelity, heading: str = "", worst: int = 5) -> str:
    """A table for each distance: a line for a metric, a column without and one with GICDM, then what it says."""
    blocks = []
    for distance in dict.fromkeys(row.distance for row in scores):
        titles, answers = _answers(scores, distance)
        lines = [["", *titles]]
        for question, body in answers.items():
            lines += [[question], *([f"  {name}", *cells] for name, *cells in body)]
        about = " · ".join(filter(None, [heading, distance]))
        blocks.append("\n".join([about, *aligned(lines, indent="  ", gap="   ")]))
        if said := verdict(scores, distance):
            blocks.append("\n".join(said))
        named = worst_named(scores, worst, distance)
        if named:
            blocks.append(f"{_order_of(scores, distance)}: {', '.join(named)}")
    reasons = _reasons(scores)
    blocks += ["\n".join(f"note: {note}" for note in [*scores.notes, *reasons])] if [*scores.notes, *reasons] else []
    return "\n\n".join(blocks) + "\n"


def _answers(scores: Fidelity, distance: str) -> tuple[list[str], dict[str, list[list[str]]]]:
    """The titles of the corrections, and for each question its metrics with their values under each correction."""
    rows = {(row.metric, row.correction): row for row in scores if row.distance == distance}
    plain = all(metric in DISTANCES for metric, _ in rows)  # which know no GICDM
    corrections = [name for name in TITLES if any(correction == name for _, correction in rows)]
    corrections = corrections[:1] if plain else corrections
    answers: dict[str, list[list[str]]] = {}
    for metric in dict.fromkeys(metric for metric, _ in rows):
        name = metric.removesuffix(LITERAL) + ", read literally" if metric.endswith(LITERAL) else metric
        line = [name, *(cell_text(rows.get((metric, which))) for which in corrections)]
        answers.setdefault(QUESTIONS.get(fidelity_facts(metric).asks, ""), []).append(line)
    order = [question for question in QUESTIONS.values() if question in answers]
    titles = ["value" if plain else TITLES[name] for name in corrections]
    return titles, {question: answers[question] for question in order}


def cell_text(row: Row | None) -> str:
    if row is None:
        return ""
    if row.value is None:
        return MISSING
    if row.metric in DISTANCES:  # of any size: four digits that count
        size = math.floor(math.log10(abs(row.value))) if row.value else 0
        four = NumberFormat(min(max(3 - size, 0), 12))
        return f"{four.text(row.value)} {four.interval(row.low, row.high)}".rstrip()
    shown = number(row.value, row.metric) + ("%" if facts(row.metric).percent else "")
    return f"{shown} {interval(row)}".rstrip()


def _reasons(scores: Fidelity) -> list[str]:
    """What a reader must know about single rows, a line for each reason, with one k that fits all of a column.

    Not that a metric has no corrected form, which a dash says.
    """
    undefined = {name for name in {row.metric for row in scores} if not fidelity_facts(name).gicdm}
    told = [row for row in scores if row.reason and not (row.correction == "gicdm" and row.metric in undefined)]
    fits: dict[str, int] = {}
    for (_, correction, _), lacking in scores.too_few.items():
        fits[correction] = min(lacking.largest, fits.get(correction, lacking.largest))
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for row in told:
        few = scores.too_few.get((row.distance, row.correction, row.metric))
        reason = f"{few.problem}: k = {fits[row.correction]} fits" if few else row.reason
        groups.setdefault((row.correction, reason), {})[fidelity_facts(row.metric).name] = None
    return [
        f"{', '.join(metrics)}{' with GICDM' if correction == 'gicdm' else ''}: {reason}"
        for (correction, reason), metrics in groups.items()
    ]


def verdict(scores: Fidelity, distance: str) -> list[str]:
    """One sentence from the clipped pair, corrected where that was measured; nothing when it was not asked for."""
    for correction in ("gicdm", "none"):
        found = {row.metric: row for row in scores.select(distance=distance, correction=correction)}
        values = {name: row.value for name, row in found.items() if row.value is not None}
        if {"clipped_density", "clipped_coverage"} <= values.keys():
            like, cover = values["clipped_density"], values["clipped_coverage"]
            by = "clipped_density and clipped_coverage " + TITLES[correction]
            said = f"Fidelity {like:.2f}, coverage {cover:.2f} of 1 ({by}): "
            if copies := _copies(scores, distance, correction):
                return [said + copies]
            first = "look real" if like >= HIGH else "are partly unlike the real ones"
            first = first if like >= LOW else "do not look real"
            second, covered = _covering(scores, distance, cover, found)
            link = "and" if (like >= HIGH) == covered else "but"
            return [f"{said}the samples {first} {link} {second}."]
    return []


def _covering(scores: Fidelity, distance: str, cover: float, found: Mapping[str, Row]) -> tuple[str, bool]:
    """What the samples do to the real points, and whether that is good.

    clipped_coverage is relative to what so many samples can cover: few samples may reach 1 and leave most points out.
    """
    if cover < LOW:
        return "leave most of them out", False
    met = [
        (row.value, TITLES[row.correction])
        for row in scores.select(distance=distance)
        if row.metric == "coverage" and row.value is not None
    ]
    least, where = min(met, default=(1.0, ""))
    if least < LOW:
        return f"meet only {100 * least:.0f} % of the real points (coverage {where})", False
    if cover < HIGH:
        return "miss a part of them", False
    samples, reals = found["clipped_density"].n or 0, found["clipped_coverage"].n or 0
    if not met and 2 * samples < reals:
        return f"cover as much of them as {counted(samples, 'sample')} can", True
    return "cover them", True


def _copies(scores: Fidelity, distance: str, correction: str) -> str:
    """The end of the sentence when many samples are copies: neither real nor unlike the real, but the same."""
    copies = scores.per_sample.get((distance, "none", "all", "copy"))
    if copies is None or copies.mean() < COPIED:
        return ""
    said = f"{int(copies.sum())} of {len(copies)} samples are (near) copies of real points"
    if correction == "none":
        return f"{said}, which these scores take for perfect."
    kept = scores.per_sample.get((distance, "gicdm", "all", "kept"), np.ones(len(copies)))
    plain = {row.metric: row.value for row in scores.select(distance=distance, correction="none")}
    like, cover = plain.get("clipped_density"), plain.get("clipped_coverage")
    known = like is not None and cover is not None
    beside = f"; without it fidelity is {like:.2f} and coverage {cover:.2f}" if known else ""
    return f"{said}, and GICDM drops {int((copies * (kept == 0.0)).sum())} of these{beside}."


def _order_of(scores: Fidelity, distance: str) -> str:
    """What the worst samples are the worst in."""
    key = scores.leading(distance)
    if key[3] in DISTANCES:
        return f"samples that raise {key[3]} most"
    then = f", then {_second(key)[3]}" if _second(key) in scores.per_sample else ""
    return f"worst samples, by {key[3]}{' with GICDM' if key[1] == 'gicdm' else ''}{then}"


def worst_named(scores: Fidelity, count: int, distance: str | None = None) -> list[str]:
    """The least real samples by name, each with what orders them: its score, then its misfit (GICDM) or its reach.

    Of distances alone: those that raise the first of them most, each with how much.
    """
    of_points = [key[3] for key in scores.per_sample if distance in (None, key[0])]
    if count < 1 or not any(metric in (*HEADLINES, *DISTANCES) for metric in of_points):
        return []
    key = scores.leading(distance)
    if key[3] in DISTANCES:
        raised = scores.per_sample[key]
        rows = scores.worst(count, distance=distance).tolist()
        return [f"{sample_name(scores, row)} ({raised[row]:+.2g})" for row in rows]
    columns = [scores.per_sample[key], scores.per_sample.get(_second(key))]
    rows = scores.worst(count, distance=distance).tolist()
    return [
        f"{sample_name(scores, row)} ({', '.join(f'{values[row]:.2f}' for values in columns if values is not None)})"
        for row in rows
    ]


def _second(key: PointKey) -> PointKey:
    """What orders samples of equal score."""
    return (*key[:3], "misfit" if key[1] == "gicdm" else "reach")


def sample_name(scores: Fidelity, row: int) -> str:
    return scores.sample_ids[row] if scores.sample_ids else f"row {row}"


# --- every point in a file ------------------------------------------------------------------------------------------


def write_samples(scores: Fidelity, path: str | os.PathLike[str]) -> None:
    """Every generated point, worst first, as .csv or .parquet: row, id, scores, reach and its nearest real point."""
    order = scores.worst()
    columns = _columns(scores.per_sample, scores.sample_ids, order)
    for title in [title for title in columns if title.endswith("nearest_row")]:
        rows = [int(value) for value in columns[title]]
        columns[title] = rows
        if scores.real_ids is not None:
            columns[title.replace("nearest_row", "nearest_id")] = [scores.real_ids[row] for row in rows]
    write_columns(locate(path), columns, "single points", errors="surrogatepass")


def write_reals(scores: Fidelity, path: str | os.PathLike[str]) -> None:
    """Every real point, the least covered first, as .csv or .parquet: row, id and its scores."""
    if not scores.per_real:
        raise UsageError("No score of single real points was measured: ask for coverage, recall or clipped_coverage.")
    # A point that raises a distance is as bad as one that no sample covers; where both are known, coverage decides.
    covered = [values for key, values in scores.per_real.items() if key[3] not in DISTANCES]
    found = np.stack(covered or [-values for values in scores.per_real.values()])
    order = np.lexsort((np.arange(found.shape[1]), found.mean(axis=0)))
    columns = _columns(scores.per_real, scores.real_ids, order)
    write_columns(locate(path), columns, "single points", errors="surrogatepass")


def _columns(points: Point, ids: Sequence[str] | None, order: NDArray[np.int64]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"row": [int(row) for row in order]}
    if ids is not None:
        columns["id"] = [ids[row] for row in order]
    for (distance, correction, _, metric), values in points.items():
        title = " ".join([distance, *([] if correction == "none" else [correction]), metric])
        columns[title] = [None if np.isnan(values[row]) else float(values[row]) for row in order]
    return columns


# --- the page ---------------------------------------------------------------------------------------------------------


def write_page(scores: Fidelity, title: str, path: str | os.PathLike[str], worst: int = 20) -> None:
    """One HTML file that needs nothing else: the sentence, the table, the plane, the samples."""
    parts: list[Html] = []
    for distance in dict.fromkeys(row.distance for row in scores):
        parts.append(section(f"scores-{distance}", f"Scores under {distance}", *_scores(scores, distance)))
        parts.append(section(f"samples-{distance}", "The samples", *_samples(scores, distance, worst)))
    notes = [*scores.notes, *_reasons(scores)]
    parts += [section("notes", "Notes", bullets(notes))] if notes else []
    parts.append(section("reading", "How to read it", _explained()))
    header = tag("header", tag("h1", title), paragraph(f"Earmark {__version__}", class_="meta"))
    shell.write_page(shell.whole_page(title, __version__, header, parts, shell.footer(__version__)), locate(path))


def _scores(scores: Fidelity, distance: str) -> list[Html]:
    titles, answers = _answers(scores, distance)
    made = [paragraph(sentence) for sentence in verdict(scores, distance)]
    if figures.drawable(scores, distance):
        picture = as_svg(
            figures.plane(scores, distance), f"plane {distance}", "Fidelity against coverage, each metric pair"
        )
        made.append(drawing(picture, figures.PLANE_CAPTION))
    made += [table(["metric", *titles], body, caption=question, sortable=False) for question, body in answers.items()]
    return made


def _samples(scores: Fidelity, distance: str, worst: int) -> list[Html]:
    if not any(key[0] == distance and key[3] == "reach" for key in scores.per_sample):
        return _raising(scores, distance, worst)
    picture = as_svg(figures.histogram(scores, distance), f"samples {distance}", "Scores of single samples")
    made = [drawing(picture, figures.HISTOGRAM_CAPTION)]
    metric, order = scores.leading(distance)[3], scores.worst(worst, distance=distance)
    wanted = [("none", metric), ("gicdm", metric), ("none", "reach"), ("gicdm", "misfit")]
    keys = [key for which, name in wanted if (key := (distance, which, "all", name)) in scores.per_sample]
    near = scores.per_sample[distance, "none", "all", "nearest_row"].astype(int)
    lines = [
        [
            sample_name(scores, row),
            *(f"{scores.per_sample[key][row]:.2f}" for key in keys),
            scores.real_ids[near[row]] if scores.real_ids else f"row {near[row]}",
        ]
        for row in order.tolist()
    ]
    heads = [
        "sample",
        *(key[3] + (" with GICDM" if key[1:4:2] == ("gicdm", metric) else "") for key in keys),
        "nearest real",
    ]
    made.append(table(heads, lines, words=1, caption="The worst samples, worst first", sortable=False))
    return made


def _raising(scores: Fidelity, distance: str, worst: int) -> list[Html]:
    """The samples that raise distances most, where no ball was asked for."""
    keys = [key for key in scores.per_sample if key[0] == distance]
    if not any(key[3] in DISTANCES for key in keys):
        return [paragraph("No metric of single samples was asked for.")]
    picture = as_svg(distances_drawn(scores), f"distances {distance}", "Values of smaller sets, and the worst samples")
    lines = [
        [sample_name(scores, row), *(f"{scores.per_sample[key][row]:+.3g}" for key in keys)]
        for row in scores.worst(worst, distance=distance).tolist()
    ]
    heads = ["sample", *(key[3] for key in keys)]
    caption = "By how much a sample raises each distance, the worst first"
    return [drawing(picture, CAPTION), table(heads, lines, words=1, caption=caption, sortable=False)]


def _explained() -> Html:
    return bullets([
        "A ball reaches from a real point to its k-th neighbour. A sample inside one is near something real.",
        "In many dimensions some points are near to everything, and a sample that is like nothing real can lie in many "
        "balls. GICDM evens neighbourhoods out and drops samples that do not fit in: believe it where it lowers "
        "fidelity. Where it raises fidelity by much, listen: it also takes in some samples just outside of all balls.",
        "reach is the distance of a sample to a real point in radii of that point's ball, the smallest of all: over 1 "
        "is outside of every ball.",
        "frechet_distance grows as sets get smaller; fad_inf is what is left of it for endless ones. kad and "
        "kernel_distance do not depend on the number of samples.",
        "A 95 % interval says where the value would lie with other real points and other samples of the same "
        "generator, as many as here; it comes from smaller sets, unless a bootstrap was asked for, which holds the "
        "balls fixed and is too narrow.",
    ])  # fmt: skip
