"""From vectors to the content of a map: who takes part, true neighbours, places on the plane, values of each clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import InputError, UsageError
from earmark.evaluation import evaluate
from earmark.evaluation.data import check_vectors
from earmark.evaluation.options import Options, as_names
from earmark.geometry.corrections import Correction, parse_all
from earmark.progress import progress_bar
from earmark.report._projection import ENOUGH_FOR_TSNE, Method, project
from earmark.report.maps._lists import neighbour_lists, ranked_rows
from earmark.report.maps.content import ClipTable, Fetch, MapContent, MapLayout, MapView
from earmark.wording import counted

Floats = NDArray[np.float64]

NEIGHBOURS = 10
MOST = 50_000
MOST_FOR_TSNE = 10_000
"""Clips that t-SNE places unasked: more would take longer than a person waits."""
PROJECTIONS = ("auto", "pca", "tsne", "umap")
METRICS = ("P@1", "GSR")


@dataclass(frozen=True, kw_only=True, eq=False)
class Representation:
    """Vectors of every clip and how they were measured; `values` of each clip by (protocol, metric), where known."""

    vectors: Any
    distance: str
    correction: str = "none"
    system: str = ""
    values: Mapping[tuple[str, str], Floats] = field(default_factory=dict)


def projections_of(given: str | Sequence[str]) -> tuple[Method, ...]:
    """Names of projections, checked."""
    names = as_names(given, "projection")
    for name in names:
        if name not in PROJECTIONS:
            raise UsageError(f"Unknown projection {name!r}: choose from {', '.join(PROJECTIONS)}.")
    return cast(tuple[Method, ...], names) or ("auto",)


def build_map(
    clips: ClipTable, given: Sequence[Representation], options: Options, *, title: str, k: int = NEIGHBOURS,
    projection: tuple[Method, ...] = ("auto",), most: int = MOST, fetch: Fetch | None = None, notes: Sequence[str] = (),
    synthetic: bool = False,
) -> MapContent:  # fmt: skip
    """Everything a map shows; more than `most` clips are drawn at random, and a note says so."""
    if most < 1 or k < 1:
        raise UsageError(f"A map needs at least one clip and one neighbour, not {most} and {k}.")
    matrices = [check_vectors(item.vectors) for item in given]
    count = len(clips)
    for item, matrix in zip(given, matrices, strict=True):
        if len(matrix) != count:
            of = f" of {item.system}" if item.system else ""
            raise InputError(f"There are {len(matrix)} vectors{of} and {count} clips: they must pair up one to one.")
    remarks = list(notes)
    rows = None
    if count > most:
        rows = np.sort(np.random.default_rng(options.seed).choice(count, most, replace=False))
        clips, matrices = clips.at(rows), [matrix[rows] for matrix in matrices]
        fetch = _fetch_of(fetch, rows)
        remarks.append(
            f"{most} of {counted(count, 'clip')}, drawn at random: neighbours and values are those among them."
        )
    layouts: list[MapLayout] = []
    views: list[MapView] = []
    placed: dict[tuple[int, str], tuple[int, ...]] = {}
    # Representations of one system share their vectors, and one place on the plane serves all its corrections.
    for item, matrix in zip(given, matrices, strict=True):
        key = id(item.vectors), item.distance
        if key not in placed:
            made = _layouts(matrix, item.distance, projection, options)
            placed[key] = tuple(range(len(layouts), len(layouts) + len(made)))
            layouts += made
        known = item.values if rows is None else {}
        views += _views(clips, item, matrix, known, options, k, placed[key])
    return MapContent(
        title=title, clips=clips, layouts=layouts, views=views, notes=remarks, synthetic=synthetic, fetch=fetch,
        version=__version__, separator=options.label_separator, background=options.background,
    )  # fmt: skip


def _fetch_of(fetch: Fetch | None, rows: NDArray[np.int64]) -> Fetch | None:
    return None if fetch is None else lambda row: fetch(int(rows[row]))


def _layouts(vectors: NDArray[Any], distance: str, wanted: tuple[Method, ...], options: Options) -> list[MapLayout]:
    """The projections that were asked for and, always, the principal components."""
    names: list[Method] = [name for name in wanted if name != "auto"]
    if "auto" in wanted and ENOUGH_FOR_TSNE <= len(vectors) <= MOST_FOR_TSNE:
        names.insert(0, "tsne")
    made: list[MapLayout] = []
    with progress_bar(options.progress, len({*names, "pca"}), f"places of {len(vectors)} clips", "map") as tick:
        for name in dict.fromkeys([*names, "pca"]):
            found = project(vectors, options.seed, distance=distance, method=name, most=len(vectors))
            tick(1)
            # Few clips get their components, whatever is asked for.
            if found.method not in {layout.method for layout in made}:
                told = {part: getattr(found, part) for part in ("points", "method", "kept", "shared", "trust", "share")}
                made.append(MapLayout(**told))
    return made


def _views(
    clips: ClipTable, item: Representation, vectors: NDArray[Any], known: Mapping[tuple[str, str], Floats],
    options: Options, k: int, layouts: tuple[int, ...],
) -> list[MapView]:  # fmt: skip
    """A view for each protocol; across groups first, for it is the stricter one."""
    (correction,) = parse_all(item.correction)
    evaluated = ranked_rows(vectors, clips.labels, clips.groups, options)
    ranked = np.arange(len(clips)) if evaluated is None else evaluated
    if correction.too_few(len(ranked)):
        raise UsageError(correction.too_few(len(ranked)) + ".")
    depth = min(k, max(1, len(clips) - 1))
    lists = neighbour_lists(vectors, ranked, clips.groups, item.distance, correction, depth, options)
    values = known
    if not known and evaluated is not None:
        values = _measured(clips, vectors, item.distance, correction, options)
    return [
        MapView(
            system=item.system,
            distance=item.distance,
            correction=item.correction,
            protocol=protocol,
            layouts=layouts,
            lists=lists[protocol],
            values={metric: found for (own, metric), found in values.items() if own == protocol and metric in METRICS},
        )
        for protocol in sorted(lists, key=lambda name: name != "across_groups")
    ]


def _measured(
    clips: ClipTable, vectors: NDArray[Any], distance: str, correction: Correction, options: Options
) -> dict[tuple[str, str], Floats]:
    """Each clip's own P@1 and GSR."""
    scores = evaluate(
        vectors, clips.labels, distance=distance, correct=str(correction), metrics=METRICS, k=1, intervals="none",
        groups=clips.groups, across_groups=options.across_groups and clips.groups is not None, per_point=True,
        min_class_size=options.min_class_size, label_separator=options.label_separator, background=options.background,
        ties=options.ties, device=options.device, memory=options.memory,
        threads=options.threads, progress=options.progress,
    )  # fmt: skip
    return {(protocol, metric): values for (_, _, protocol, metric), values in scores.per_point.items()}
