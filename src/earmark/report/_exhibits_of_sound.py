"""How figures of clips, generated sets and codecs are found in material and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from earmark.errors import InputError, MissingExtra
from earmark.report import excerpts as excerpt
from earmark.report._neighbours import nearest_rows
from earmark.report._projection import NEAR, project
from earmark.report.codecs._comparison import Comparison
from earmark.report.content import CloseUp
from earmark.report.figures._heatmaps import correlation_cells
from earmark.report.figures._planes import Plane, draw_planes, find_planes, plane_sentences
from earmark.report.figures._points import MOST_COLOURS, excerpts, maps
from earmark.report.figures.codecs import rate_distortion
from earmark.report.gallery import SYNTHETIC, Drawing, Exhibit, Material, exhibit, stem
from earmark.report.metric_text import facts
from earmark.report.rates import printed_comparisons, rate_sentences, signal_correlations, signal_sentences
from earmark.report.score_index import representation
from earmark.scores import Row
from earmark.wording import listed

MOST_MAPS = 4
"""Subsets that are drawn unless somebody chooses some."""


# --- clips ----------------------------------------------------------------------------------------------------------


def _rows_to_show(material: Material) -> list[Row]:
    """The best representation of each subset, or those that were wished for: as many as there is room for."""
    index, wishes = material.index, material.wishes
    turned = 1 if facts(index.headline).higher_is_better else -1
    shown: dict[Any, Row] = {}
    for place, rows in index.values(index.headline).items():
        usable = [row for row in rows.values() if row.correction == "none" and not row.distance.endswith("+dtw")]
        for row in sorted(usable, key=lambda row: -turned * (row.value or 0.0)):
            shown.setdefault((place, row.system if wishes.systems else ""), row)
    return list(shown.values())[: None if wishes.subsets or wishes.systems else MOST_MAPS]


def _clips(material: Material, what: str) -> Callable[[Row], CloseUp]:
    if material.close_up is None:
        raise InputError(f"{what} are drawn from the clips of a run: give the folder of an `earmark run`.")
    return material.close_up


def find_maps(material: Material) -> list[Exhibit]:
    """t-SNE and UMAP of the best representation of each subset, or of those wished for."""
    close_up = _clips(material, "Maps")

    def of(row: Row) -> Exhibit:
        title = f"Maps of {row.subset or row.suite}: {representation(row).label}"
        name = stem("maps", row.subset, row.system)
        return Exhibit(name, title, lambda: _draw_maps(material, close_up(row), name))

    made = [of(row) for row in _rows_to_show(material)]
    if not made:
        raise InputError("No representation has vectors that can be drawn: only corrected distances were measured.")
    return made


def _draw_maps(material: Material, item: CloseUp, name: str) -> Drawing:
    if item.vectors is None or len(item.vectors) < 3:
        raise InputError(f"{item.label} has fewer than three vectors: there is no map.")
    seed, missing = material.wishes.seed, ""
    found = [project(item.vectors, seed, distance=item.distance)]
    few = found[0].method == "PCA"
    if few:
        missing = "Too few clips, or clips too much alike, for t-SNE and UMAP: the two first principal components."
    else:
        try:
            found.append(project(item.vectors, seed, distance=item.distance, method="umap"))
        except MissingExtra as error:
            missing = f"UMAP is left out: {error}"
    rows = nearest_rows(item.nearest)
    wrong = [near >= 0 and not item.agree(place, int(near)) for place, near in enumerate(rows)]
    figure = maps(found, item.labels, wrong)
    kept = [f"{one.method} {100 * one.kept:.0f} %" for one in found if one.kept is not None]
    classes = len({label for label in item.labels if label})
    islands = (
        "Read who lies beside whom: sizes of islands and gaps between them mean little, and both methods find islands "
        "in noise."
    )
    sentences = [
        f"Maps of {len(found[0].rows)} clips of {item.label} ({material.name}), coloured by class; a red rim marks a "
        "clip whose nearest neighbour is of another class.",
        found[0].note and f"Drawn are {found[0].note}.",
        f"The {MOST_COLOURS} largest of {classes} classes have colours." if classes > MOST_COLOURS else "",
        "" if few else islands,
        f"True nearest neighbour among the {NEAR} nearest on the map: {listed(kept)} of the clips." if kept else "",
        missing,
        SYNTHETIC if material.synthetic else "",
    ]
    return Drawing(name, figure, " ".join(filter(None, sentences)))


def find_excerpts(material: Material) -> list[Exhibit]:
    """Spectrograms of clips of one class that differ most, for each subset."""
    close_up = _clips(material, "Spectrograms")

    def of(row: Row) -> Exhibit:
        name = stem("excerpts", row.subset)

        def drawn() -> Drawing:
            found = excerpt.find_excerpts(close_up(row), material.wishes.seed)
            sentences = [*excerpt.excerpt_sentences(found), SYNTHETIC if material.synthetic else ""]
            return Drawing(name, excerpts(found.pairs), " ".join(filter(None, sentences)))

        return Exhibit(name, f"How clips of {row.subset or row.suite} vary", drawn)

    made = [of(row) for row in {row.subset: row for row in _rows_to_show(material)}.values()]
    if not made:
        raise InputError("No subset has a representation to take clips from.")
    return made


# --- generated sets and codecs --------------------------------------------------------------------------------------


def find_generated(material: Material) -> list[Exhibit]:
    """A plane for each real set and distance."""
    planes = find_planes(material.table)
    several = len({plane.real for plane in planes}) > 1

    def of(plane: Plane) -> Exhibit:
        name = stem("plane", plane.real.label if several else "", plane.distance)
        return exhibit(
            material, name, "Generated sets by fidelity and coverage", lambda: draw_planes(plane),
            lambda: plane_sentences(plane), plane.rows,
        )  # fmt: skip

    return [of(plane) for plane in planes]


def find_rates(material: Material) -> list[Exhibit]:
    """What codecs keep against the rate: by category and application as printed, or by subset of a run."""
    printed = material.comparisons is None
    panels = _compared(material)

    def of(title: str, found: Sequence[Comparison]) -> Exhibit:
        drawn = {one.metric for one in found}
        repeated = sum(row.status == "repeated" and row.metric in drawn for row in material.table)
        left_out = f"{repeated} printed values are left out: they repeat another codec's (--with-repeats counts them)."
        return exhibit(
            material, stem("rate", title), f"Rate and quality: {title}",
            lambda: rate_distortion(found, printed=printed),
            lambda: [*rate_sentences(found, printed=printed), left_out if repeated else ""],
            lambda: [
                {"metric": one.metric, "where": one.subset, "system": point.system, "family": point.family,
                 "kbps": point.kbps, "value": point.value, "front": point in one.front}
                for one in found for point in one.points
            ],
        )  # fmt: skip

    return [of(title, found) for title, found in panels.items()]


def _compared(material: Material) -> dict[str, list[Comparison]]:
    if material.comparisons is None:
        return printed_comparisons(material.table, material.wishes.metrics)
    panels: dict[str, list[Comparison]] = {}
    for one in material.comparisons(material.wishes.metrics or None):
        if one.points and (not material.wishes.subsets or one.subset in material.wishes.subsets):
            panels.setdefault(one.subset, []).append(one)
    if not panels:
        raise InputError("No two codecs of the run have a rate and a value: there is nothing to compare.")
    return panels


def find_signals(material: Material) -> list[Exhibit]:
    """How each signal metric goes with the overall score."""
    found = signal_correlations(material.table, material.wishes.metrics)
    return [
        exhibit(
            material, "signals", "Signal metrics and the overall score",
            lambda: correlation_cells(found.spearman, found.metrics, found.subsets), lambda: signal_sentences(found),
            found.rows,
        )
    ]  # fmt: skip
