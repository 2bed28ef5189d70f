"""How each kind of figure is found in material and drawn: `ENTRIES`, in the order of the list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from earmark.errors import InputError, MissingExtra
from earmark.metrics.catalogue import HEADLINES
from earmark.report import figures
from earmark.report._neighbours import nearest_rows
from earmark.report._projection import NEAR, project
from earmark.report.content import CloseUp
from earmark.report.correlations import metric_correlations
from earmark.report.effects import effect_sentences, find_effects
from earmark.report.excerpts import excerpt_sentences, find_excerpts
from earmark.report.figures._effects import MOST_LINES, effects, lines_of
from earmark.report.figures._heatmaps import correlation_cells, heat_columns
from earmark.report.figures._layers import layer_curves, layer_maps
from earmark.report.figures._noise import noise_curves
from earmark.report.figures._planes import Plane, draw_planes, find_planes, plane_sentences
from earmark.report.figures._points import MOST_COLOURS, excerpts, maps
from earmark.report.figures._properties import composition, trend_forest
from earmark.report.figures.codecs import rate_distortion
from earmark.report.figures.hubness import MOST_LINES as MOST_HUBS
from earmark.report.figures.hubness import before_after, before_after_lines
from earmark.report.gallery import Drawing, Entry, Exhibit, Material
from earmark.report.layers import layer_sentences, layers_by_metric, summary_rows
from earmark.report.metric_text import facts, heading
from earmark.report.noise import find_noise, noise_sentences
from earmark.report.rates import printed_comparisons, rate_sentences, signal_correlations, signal_sentences
from earmark.report.score_index import ScoreIndex, protocol_name, representation
from earmark.report.trends import Trends, find_trends, trend_sentences
from earmark.runs.folder import file_stem
from earmark.scores import Row, Scores
from earmark.wording import counted, listed

MOST_SYSTEMS = 40
MOST_MAPS = 4
_SYNTHETIC = "SYNTHETIC DATA: the sounds were computed, not recorded."
Sentences = Sequence[str]


def _exhibit(
    material: Material, name: str, title: str, draw: Callable[[], Any], said: Callable[[], Sentences],
    rows: Callable[[], Sequence[Mapping[str, Any]]] = list,
) -> Exhibit:  # fmt: skip
    def drawn() -> Drawing:
        figure = draw()
        sentences = [title + f" ({material.name}).", *said(), *([_SYNTHETIC] if material.synthetic else [])]
        return Drawing(name, figure, " ".join(sentences), rows())

    return Exhibit(name, title, drawn)


def _named(kind: str, *parts: str) -> str:
    """The stem of a file: the kind of figure and what it is of."""
    return "-".join([kind, *(file_stem(part) for part in parts if part)])


# --- the table ------------------------------------------------------------------------------------------------------


def _scores(material: Material) -> list[Exhibit]:
    made = []
    for metric in material.wishes.metrics or (_leading(material.index),):
        index, dropped = _best_systems(material.index, metric)
        asked = metric if len(index.values(metric)) > 1 or material.wishes.metrics else None
        heat_columns(index, asked, None)  # says what is missing
        cut = f"The {MOST_SYSTEMS} best of {MOST_SYSTEMS + dropped} by their mean are drawn." if dropped else ""
        said = [f"{heading(metric)} ({protocol_name(index.values(metric))}); the best of a column is framed.", cut]
        title = "Scores of every system on every subset"
        made.append(
            _exhibit(
                material, _named("scores", metric), title,
                lambda index=index, asked=asked: figures.score_heatmap(index, asked),
                lambda said=said: list(filter(None, said)),
            )
        )  # fmt: skip
    return made


def _leading(index: ScoreIndex) -> str:
    """The metric that leads; where none of the usual ones was measured, the one that most subsets have."""
    if index.headline in HEADLINES:
        return index.headline
    return max(index.metrics, key=lambda name: (len(index.values(name)), name == "overall"), default=index.headline)


def _best_systems(index: ScoreIndex, metric: str) -> tuple[ScoreIndex, int]:
    """The rows of the representations with the best means over the subsets they have, and how many are left out."""
    found = index.values(metric)
    turned = 1 if facts(metric).higher_is_better else -1
    ranks: dict[Any, list[float]] = {}
    for rows in found.values():
        order = sorted(rows, key=lambda line: -turned * (rows[line].value or 0.0))
        for place, line in enumerate(order):
            ranks.setdefault(line, []).append(place / max(len(order) - 1, 1))
    if len(ranks) <= MOST_SYSTEMS:
        return index, 0
    best = set(sorted(ranks, key=lambda line: float(np.mean(ranks[line])))[:MOST_SYSTEMS])
    kept = Scores(tuple(row for row in index.rows if representation(row) in best))
    return ScoreIndex(kept), len(ranks) - len(best)


def _lift(material: Material) -> list[Exhibit]:
    index = material.index
    made = []
    for metric in material.wishes.metrics or (_leading(index),):
        if not any(row.metric == metric and row.status == "ok" and row.lift is not None for row in index.rows):
            raise InputError(
                f"No row has {metric} above chance: shuffle the labels with `earmark run --permutations 1000`."
            )
        systems = {line.system for rows in index.values(metric).values() for line in rows}
        shown = figures.lift_systems(index, metric)
        cut = f"The {len(shown)} best of {len(systems)} systems are drawn." if len(shown) < len(systems) else ""
        said = [
            f"{metric} minus what shuffled labels give; lines are 95 % intervals, the pale bar at zero is where 95 % "
            "of shuffled labelings fall. Whether two systems differ is not read from their lines.", cut,
        ]  # fmt: skip
        made.append(
            _exhibit(
                material, _named("lift", metric), "Scores above chance",
                lambda metric=metric: figures.lift_plot(index, metric), lambda said=said: list(filter(None, said)),
            )
        )  # fmt: skip
    return made


def _correlations(material: Material) -> list[Exhibit]:
    found = metric_correlations(material.index)
    said = [
        f"Spearman's rank correlation of each pair of metrics across {len(found.configurations)} configurations (system"
        " and distance), of their means over subsets. Versions of one model are not independent.", found.caution(),
    ]  # fmt: skip
    rows = [dict(zip(("metric", *found.metrics), line, strict=True)) for line in found.lines()]
    draw = lambda: figures.correlation_map(found)  # noqa: E731
    return [_exhibit(material, "correlations", "Correlations of metrics", draw, lambda: said, lambda: rows)]


# --- what scores follow from ----------------------------------------------------------------------------------------


def _find_trends(material: Material) -> list[Trends]:
    """One for each share of the configurations that chooses others than the shares before it."""
    found: dict[Any, Trends] = {}
    for top in material.wishes.top:
        trends = find_trends(material.index, material.facts, material.wishes.metrics, top)
        found.setdefault(tuple(choice.chosen for choice in trends.choices.values()), trends)
    return list(found.values())


def _trends(material: Material) -> list[Exhibit]:
    made = []
    for found in _find_trends(material):
        title = f"Trends of {'all' if found.top == 100 else f'the best {found.top:g} % of'} configurations"
        made.append(
            _exhibit(
                material, _named("trends", f"top{found.top:g}"), title, lambda found=found: figures.trends(found),
                lambda found=found: [
                    *trend_sentences(found),
                    "A star and a line mark what holds after the correction; thin lines span the chosen "
                    "configurations, or their middle half where there are many.",
                ],
                found.rows,
            )
        )  # fmt: skip
    return made


def _trend_correlations(material: Material) -> list[Exhibit]:
    found = _find_trends(material)
    if all(item.rho is None for one in found for item in one.trends):
        raise InputError(f"There is no rank correlation to draw: {found[0].trends[0].reason}.")
    said = [
        f"Spearman's rank correlation of each metric with each property over {len(found[0].subsets)} subsets, with 95 %"
        f" intervals; filled where p < .05 after a correction for the {found[0].comparisons} of one share of the"
        " configurations. The shares hold the same best configurations and do not confirm each other."
    ]
    return [
        _exhibit(
            material, "trend-correlations", "Rank correlations of scores with properties of the subsets",
            lambda: trend_forest(found), lambda: said, lambda: [row for one in found for row in one.rows()],
        )
    ]  # fmt: skip


def _composition(material: Material) -> list[Exhibit]:
    known = [item for item in material.facts if item.durations is not None]
    wished = material.wishes.subsets
    known = [item for item in known if not wished or item.subset in wished]
    if not known:
        raise InputError(
            "Nothing is known of the subsets: give clips, classes and seconds of each as a file that `earmark corpus "
            "describe --out` writes (--facts)."
        )
    said = [
        f"{counted(len(known), 'subset')} with {sum(item.clips for item in known):,} clips by mean duration and number "
        "of classes; the area of a dot is the number of clips."
        + (" A dark rim marks blind subsets." if any(item.status == "blind" for item in known) else "")
    ]
    rows = [
        {"subset": item.subset, "domain": item.domain, "clips": item.clips, "classes": item.classes,
         "seconds": item.durations.mean if item.durations else None, "dri": item.dri}
        for item in known
    ]  # fmt: skip
    draw = lambda: composition(known)  # noqa: E731
    return [_exhibit(material, "composition", "What the subsets are", draw, lambda: said, lambda: rows)]


# --- ablations ------------------------------------------------------------------------------------------------------


def _noise(material: Material) -> list[Exhibit]:
    found = find_noise(material.table, material.wishes.metrics, most=len(material.wishes.systems) or 4)
    return [
        _exhibit(
            material, "label-noise", "What is left under label noise", lambda: noise_curves(found),
            lambda: noise_sentences(found), found.rows,
        )
    ]  # fmt: skip


def _effect_figures(aspect: str, title: str) -> Callable[[Material], list[Exhibit]]:
    def made(material: Material) -> list[Exhibit]:
        found = find_effects(material.index, aspect, material.wishes.metrics, table=material.table)

        def said() -> list[str]:
            cut = lines_of(found) > MOST_LINES
            return [*effect_sentences(found), *([f"The first {MOST_LINES} lines are drawn."] if cut else [])]

        return [_exhibit(material, aspect, title, lambda: effects(found), said, found.rows)]

    return made


def _layers(material: Material) -> list[Exhibit]:
    made = []
    for label, found in _layered(material).items():
        title = f"Layers of {label}"
        said = [
            "How far each layer lies behind the best layer of the subset, which is framed; it was picked on the clips "
            "it is scored on."
        ]
        made.append(
            _exhibit(
                material, _named("layers", label), title, lambda found=found: layer_maps(found),
                lambda found=found, said=said: [*said, *layer_sentences(found)],
                lambda found=found: summary_rows(found),
            )
        )  # fmt: skip
    return made


def _layer_ranks(material: Material) -> list[Exhibit]:
    made = []
    for label, found in _layered(material).items():
        made.append(
            _exhibit(
                material, _named("layer-ranks", label), f"Ranks of the layers of {label}",
                lambda found=found: layer_maps(found, ranks=True),
                lambda: ["The rank of each layer in each subset, 1 is the best, which is framed."],
            )
        )  # fmt: skip
        if any(one.complete for one in found.values()):
            made.append(
                _exhibit(
                    material, _named("layer-differences", label), f"Layers of {label} on average",
                    lambda found=found: layer_curves(found),
                    lambda found=found: [
                        "Above, the mean rank over subsets; below, the difference to the last layer; bars are 95 % "
                        "intervals.", *layer_sentences(found),
                    ],
                    lambda found=found: summary_rows(found),
                )
            )  # fmt: skip
    return made


def _layered(material: Material) -> dict[str, Any]:
    found = layers_by_metric(material.index, material.wishes.metrics)
    if not found:
        raise InputError("No model was measured at two layers: make some with `earmark run --layers all`.")
    return found


def _hubness(material: Material) -> list[Exhibit]:
    index = material.index
    made = []
    for protocol in index.protocols:
        lines, corrections, names = before_after_lines(index, list(material.wishes.metrics) or None, protocol)
        if not lines or not names:
            continue
        cut = f" The first {MOST_HUBS} of {len(lines)} lines are drawn." if len(lines) > MOST_HUBS else ""
        said = (
            f"{listed(names)} without correction (grey) and with {listed(corrections[1:])}. Fewer hubs do not have to "
            f"mean better neighbours.{cut}"
        )
        made.append(
            _exhibit(
                material, _named("hubness", "" if protocol == "all" else protocol), "Before and after correction",
                lambda protocol=protocol: before_after(index, list(material.wishes.metrics) or None, protocol),
                lambda said=said: [said],
            )
        )  # fmt: skip
    if not made:
        raise InputError(
            "No representation was measured with and without a hubness correction: make some with `earmark run "
            "--correct none,icdm`."
        )
    return made


# --- clips ----------------------------------------------------------------------------------------------------------


def _rows_to_show(material: Material) -> list[Row]:
    """The best representation of each subset, or those that were wished for: as many as there is room for."""
    index = material.index
    shown: dict[Any, Row] = {}
    for place, rows in index.values(index.headline).items():
        usable = [row for row in rows.values() if row.correction == "none" and not row.distance.endswith("+dtw")]
        turned = 1 if facts(index.headline).higher_is_better else -1
        for row in sorted(usable, key=lambda row: -turned * (row.value or 0.0)):
            shown.setdefault((place, row.system if material.wishes.systems else ""), row)
    most = MOST_MAPS if not (material.wishes.subsets or material.wishes.systems) else len(shown)
    return list(shown.values())[:most]


def _clips(material: Material, what: str) -> Callable[[Row], CloseUp]:
    if material.close_up is None:
        raise InputError(f"{what} are drawn from the clips of a run: give the folder of an `earmark run`.")
    return material.close_up


def _maps(material: Material) -> list[Exhibit]:
    close_up = _clips(material, "Maps")
    rows = _rows_to_show(material)
    if not rows:
        raise InputError("No representation has vectors that can be drawn: only corrected distances were measured.")
    return [
        Exhibit(
            _named("maps", row.subset, row.system),
            f"Maps of {row.subset or row.suite}: {representation(row).label}",
            lambda row=row: _draw_maps(material, close_up(row), row),
        )
        for row in rows
    ]  # fmt: skip


def _draw_maps(material: Material, item: CloseUp, row: Row) -> Drawing:
    if item.vectors is None or len(item.vectors) < 3:
        raise InputError(f"{item.label} has fewer than three vectors: there is no map.")
    seed, missing = material.wishes.seed, ""
    found = [project(item.vectors, seed, distance=item.distance, method="tsne")]
    try:
        found.append(project(item.vectors, seed, distance=item.distance, method="umap"))
    except MissingExtra as error:
        missing = f"UMAP is left out: {error}"
    rows = nearest_rows(item.nearest)
    wrong = [near >= 0 and item.labels[place] != item.labels[near] for place, near in enumerate(rows)]
    figure = maps(found, item.labels, wrong)
    kept = [f"{one.method} {100 * one.kept:.0f} %" for one in found if one.kept is not None]
    classes = len({label for label in item.labels if label})
    sentences = [
        f"Maps of {len(found[0].rows)} clips of {item.label} ({material.name}), coloured by class; a red rim marks a "
        f"clip whose nearest neighbour is of another class.",
        found[0].note and f"Drawn are {found[0].note}.",
        f"The {MOST_COLOURS} largest of {classes} classes have colours." if classes > MOST_COLOURS else "",
        "Read who lies beside whom: sizes of islands and gaps between them mean little, and both methods find islands "
        "in noise.",
        f"True nearest neighbour among the {NEAR} nearest on the map: {listed(kept)} of the clips." if kept else "",
        missing,
        _SYNTHETIC if material.synthetic else "",
    ]
    return Drawing(_named("maps", row.subset, row.system), figure, " ".join(filter(None, sentences)))


def _excerpts(material: Material) -> list[Exhibit]:
    close_up = _clips(material, "Spectrograms")
    rows = {row.subset: row for row in _rows_to_show(material)}
    if not rows:
        raise InputError("No subset has a representation to take clips from.")

    def drawn(row: Row) -> Drawing:
        found = find_excerpts(close_up(row), material.wishes.seed)
        sentences = [*excerpt_sentences(found), *([_SYNTHETIC] if material.synthetic else [])]
        return Drawing(_named("excerpts", row.subset), excerpts(found.pairs), " ".join(sentences))

    return [
        Exhibit(_named("excerpts", row.subset), f"How clips of {row.subset} vary", lambda row=row: drawn(row))
        for row in rows.values()
    ]


# --- generated sets and codecs --------------------------------------------------------------------------------------


def _planes(material: Material) -> list[Exhibit]:
    found: Iterable[Plane] = find_planes(material.table)
    several = len({plane.real for plane in found}) > 1
    return [
        _exhibit(
            material, _named("plane", plane.real.label if several else "", plane.distance),
            "Generated sets by fidelity and coverage", lambda plane=plane: draw_planes(plane),
            lambda plane=plane: plane_sentences(plane), plane.rows,
        )
        for plane in found
    ]  # fmt: skip


def _rate(material: Material) -> list[Exhibit]:
    printed = material.comparisons is None
    if material.comparisons is None:
        panels = printed_comparisons(material.table, material.wishes.metrics)
    else:
        panels = {}
        for one in material.comparisons(material.wishes.metrics or None):
            if one.points and (not material.wishes.subsets or one.subset in material.wishes.subsets):
                panels.setdefault(one.subset, []).append(one)
        if not panels:
            raise InputError("No two codecs of the run have a rate and a value: there is nothing to compare.")
    repeated = sum(row.status == "repeated" for row in material.table)
    left_out = f"{repeated} printed values are left out: they repeat another codec's (--with-repeats counts them)."
    return [
        _exhibit(
            material, _named("rate", title), f"Rate and quality: {title}",
            lambda found=found: rate_distortion(found, printed=printed),
            lambda found=found: [*rate_sentences(found, printed=printed), *([left_out] if repeated else [])],
            lambda found=found: [
                {"metric": one.metric, "where": one.subset, "system": point.system, "family": point.family,
                 "kbps": point.kbps, "value": point.value, "front": point in one.front}
                for one in found for point in one.points
            ],
        )
        for title, found in panels.items()
    ]  # fmt: skip


def _signals(material: Material) -> list[Exhibit]:
    found = signal_correlations(material.table, material.wishes.metrics)
    return [
        _exhibit(
            material, "signals", "Signal metrics and the overall score",
            lambda: correlation_cells(found.spearman, found.metrics, found.subsets), lambda: signal_sentences(found),
            found.rows,
        )
    ]  # fmt: skip


ENTRIES = (
    Entry("trends", "scores of the best configurations against clips, classes, duration, range, domain",
          "VocSim Fig. 2, 5, 6 (later version: 2, 8, 9)", _trends),
    Entry("trend-correlations", "the rank correlations of all those trends with their intervals",
          "what VocSim's text says of Fig. 2", _trend_correlations),
    Entry("label-noise", "what is left of each metric when labels are exchanged", "VocSim Fig. 5 (later version)",
          _noise),
    Entry("layers", "how far each layer lies behind the best", "VocSim Fig. 6 (later version)", _layers),
    Entry("layer-ranks", "ranks of layers, mean ranks, differences to the last layer", "VocSim Fig. 7 (later version)",
          _layer_ranks),
    Entry("pooling", "what the pooling does, all else equal", "VocSim Table 13",
          _effect_figures("pooling", "What the pooling does")),
    Entry("pca", "what PCA does, all else equal", "VocSim Table 2 and its text",
          _effect_figures("pca", "What PCA does")),
    Entry("dtw", "what re-ranking by DTW does, all else equal", "VocSim Tables 14 and 15",
          _effect_figures("dtw", "What re-ranking by DTW does")),
    Entry("hubness", "hubs before and after corrections", "GICDM Tables 5 and 9 to 11", _hubness),
    Entry("maps", "t-SNE beside UMAP, coloured by class", "VocSim Fig. 1d (later version)", _maps),
    Entry("excerpts", "spectrograms of one class: soft and loud, noisy and clean, short and long", "VocSim Fig. 1b",
          _excerpts),
    Entry("composition", "subsets by duration, classes and clips", "VocSim Fig. 1a", _composition),
    Entry("plane", "generated sets by fidelity and coverage", "GICDM, fidelity and coverage", _planes),
    Entry("scores", "heat map of systems and subsets", "VocSim Tables 19 to 25, Codec-SUPERB Tables 6 to 8", _scores),
    Entry("lift", "scores above chance with their intervals", "VocSim Tables 9 to 11", _lift),
    Entry("correlations", "which metrics say the same", "VocSim Table 12", _correlations),
    Entry("rate", "codecs: quality and applications against the rate", "Codec-SUPERB Fig. 3 and 4", _rate),
    Entry("signals", "codecs: which signal metrics go with the overall score", "Codec-SUPERB Fig. 5 to 7, Table 4",
          _signals),
)  # fmt: skip
