"""How figures of a score table are found and drawn, and `ENTRIES`: every kind of figure, in the order of the list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.metrics.catalogue import HEADLINES
from earmark.report import figures
from earmark.report._exhibits_of_sound import find_excerpts, find_generated, find_maps, find_rates, find_signals
from earmark.report.correlations import metric_correlations
from earmark.report.effects import effect_sentences, find_effects
from earmark.report.figures._effects import MOST_LINES, effects, lines_of
from earmark.report.figures._heatmaps import heat_columns
from earmark.report.figures._layers import layer_curves, layer_maps
from earmark.report.figures._noise import noise_curves
from earmark.report.figures._properties import composition, trend_forest
from earmark.report.figures.hubness import MOST_LINES as MOST_HUBS
from earmark.report.figures.hubness import before_after, before_after_lines
from earmark.report.gallery import Entry, Exhibit, Material, exhibit, stem
from earmark.report.layers import Layers, layer_sentences, layers_by_metric, summary_rows
from earmark.report.metric_text import facts, heading
from earmark.report.noise import MOST_SYSTEMS as MOST_CURVES
from earmark.report.noise import find_noise, noise_sentences
from earmark.report.score_index import Representation, ScoreIndex, protocol_name, representation
from earmark.report.trends import Trends, find_trends, trend_sentences
from earmark.scores import Row, Scores
from earmark.wording import counted, listed

MOST_SYSTEMS = 40
"""Lines of a heat map."""


# --- the table ------------------------------------------------------------------------------------------------------


def leading_metric(index: ScoreIndex) -> str:
    """The metric that leads; where none of the usual ones was measured, the one that most subsets have."""
    if index.headline in HEADLINES:
        return index.headline
    return max(index.metrics, key=lambda name: (len(index.values(name)), name == "overall"), default=index.headline)


_BEHIND = (
    "suite", "subset", "system", "distance", "correction", "protocol", "metric", "value", "low", "high", "baseline",
    "baseline_low", "baseline_high", "lift", "p_value", "n",
)  # fmt: skip


def _numbers(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows behind a figure of scores, in their own unit and without what names their making."""
    return [{name: value for name, value in row.as_dict().items() if name in _BEHIND} for row in rows]


def _scores(material: Material) -> list[Exhibit]:
    def of(metric: str) -> Exhibit:
        index, dropped = _best_systems(material.index, metric)
        asked = metric if len(index.values(metric)) > 1 or material.wishes.metrics else None
        columns = heat_columns(index, asked, None)  # says what is missing
        cut = f"The {MOST_SYSTEMS} best of {MOST_SYSTEMS + dropped} by their mean rank are drawn." if dropped else ""
        said = [f"{heading(metric)} ({protocol_name(index.values(metric))}); the best of a column is framed.", cut]
        title = "Scores of every system on every subset"
        return exhibit(
            material, stem("scores", metric), title, lambda: figures.score_heatmap(index, asked), lambda: said,
            lambda: _numbers(row for _, rows in columns for row in rows.values()),
        )  # fmt: skip

    return [of(metric) for metric in material.wishes.metrics or (leading_metric(material.index),)]


def _best_systems(index: ScoreIndex, metric: str) -> tuple[ScoreIndex, int]:
    """The rows of the representations with the best mean ranks, and how many representations are left out."""
    turned = 1 if facts(metric).higher_is_better else -1
    ranks: dict[Representation, list[float]] = {}
    for rows in index.values(metric).values():
        values = {line: turned * (row.value or 0.0) for line, row in rows.items()}
        for place, line in enumerate(sorted(values, key=lambda line: -values[line])):
            ranks.setdefault(line, []).append(place / max(len(values) - 1, 1))
    if len(ranks) <= MOST_SYSTEMS:
        return index, 0
    half = max(map(len, ranks.values())) / 2  # a rank on few subsets says little
    best = set(sorted(ranks, key=lambda line: (len(ranks[line]) < half, float(np.mean(ranks[line]))))[:MOST_SYSTEMS])
    kept = Scores(tuple(row for row in index.rows if representation(row) in best))
    return ScoreIndex(kept), len(ranks) - len(best)


def _lift(material: Material) -> list[Exhibit]:
    index = material.index

    def of(metric: str) -> Exhibit:
        if not any(row.metric == metric and row.status == "ok" and row.lift is not None for row in index.rows):
            raise InputError(
                f"No row has {metric} above chance: shuffle the labels with `earmark run --permutations 1000`."
            )
        systems = {line.system for rows in index.values(metric).values() for line in rows}
        shown = figures.lift_systems(index, metric)
        said = [
            f"{metric} minus what shuffled labels give; lines are 95 % intervals, the pale bar at zero is where 95 % of"
            " shuffled labelings fall. Whether two systems differ is not read from their lines.",
            f"The {len(shown)} best of {len(systems)} systems are drawn." if len(shown) < len(systems) else "",
        ]
        return exhibit(
            material, stem("lift", metric), "Scores above chance", lambda: figures.lift_plot(index, metric),
            lambda: said,
            lambda: _numbers(
                row for row in index.rows
                if row.metric == metric and row.status == "ok" and row.lift is not None and row.system in shown
            ),
        )  # fmt: skip

    return [of(metric) for metric in material.wishes.metrics or (leading_metric(index),)]


def _correlations(material: Material) -> list[Exhibit]:
    found = metric_correlations(material.index)
    said = [
        f"Spearman's rank correlation of each pair of metrics across {len(found.configurations)} configurations (system"
        " and distance), of their means over subsets. Versions of one model are not independent.",
        found.caution(),
    ]
    rows = [dict(zip(("metric", *found.metrics), line, strict=True)) for line in found.lines()]
    return [
        exhibit(
            material, "correlations", "Correlations of metrics", lambda: figures.correlation_map(found), lambda: said,
            lambda: rows,
        )
    ]  # fmt: skip


# --- what scores follow from ----------------------------------------------------------------------------------------


def _find_trends(material: Material) -> list[Trends]:
    """One for each share of the configurations that chooses others than the shares before it."""
    found: dict[Any, Trends] = {}
    for top in material.wishes.top:
        trends = find_trends(material.index, material.facts, material.wishes.metrics, top)
        found.setdefault(tuple(choice.chosen for choice in trends.choices.values()), trends)
    return list(found.values())


def _trends(material: Material) -> list[Exhibit]:
    marks = (
        "A star (*) behind a ρ, and a sloping line, mark what holds after the correction for many looks; the upright "
        "thin lines span the chosen configurations, or their middle half where there are many. In the panel of domains "
        "a box is the middle half of the chosen configurations on all subsets of the domain, its bar the median, its "
        "whiskers reach at most 1.5 times the box, and dots are the subsets."
    )

    def of(found: Trends) -> Exhibit:
        title = f"Trends of {'all' if found.top == 100 else f'the best {found.top:g} % of'} configurations"
        return exhibit(
            material, stem("trends", f"top{found.top:g}"), title, lambda: figures.trends(found),
            lambda: [*trend_sentences(found), marks], found.rows,
        )  # fmt: skip

    return [of(found) for found in _find_trends(material)]


def _trend_correlations(material: Material) -> list[Exhibit]:
    found = _find_trends(material)
    if all(item.rho is None for one in found for item in one.trends):
        raise InputError(f"There is no rank correlation to draw: {found[0].trends[0].reason}.")
    said = (
        f"Spearman's rank correlation of each metric with each property over {len(found[0].subsets)} subsets, with 95 %"
        f" intervals; filled where p < .05 after a correction for the {found[0].comparisons} of one share of the"
        " configurations. The shares hold the same best configurations and do not confirm each other."
    )
    return [
        exhibit(
            material, "trend-correlations", "Rank correlations of scores with properties of the subsets",
            lambda: trend_forest(found), lambda: [said], lambda: [row for one in found for row in one.rows()],
        )
    ]  # fmt: skip


def _composition(material: Material) -> list[Exhibit]:
    wished = material.wishes.subsets
    known = [item for item in material.facts if item.durations and (not wished or item.subset in wished)]
    if not known:
        raise InputError(
            "Nothing is known of the subsets: give clips, classes and seconds of each as a file that `earmark corpus "
            "describe --out` writes (--facts)."
        )
    said = [
        f"{counted(len(known), 'subset')} with {sum(item.clips for item in known):,} clips by mean duration and number "
        "of classes; the area of a dot is the number of clips.",
        "A dark rim marks blind subsets." if any(item.status == "blind" for item in known) else "",
    ]
    rows = [
        {"subset": item.subset, "domain": item.domain, "clips": item.clips, "classes": item.classes,
         "seconds": item.durations.mean if item.durations else None, "dri": item.dri}
        for item in known
    ]  # fmt: skip
    return [
        exhibit(material, "composition", "What the subsets are", lambda: composition(known), lambda: said, lambda: rows)
    ]


# --- ablations ------------------------------------------------------------------------------------------------------


def _noise(material: Material) -> list[Exhibit]:
    most = len(material.wishes.systems) or MOST_CURVES
    found = find_noise(material.table, material.wishes.metrics, most=most)
    return [
        exhibit(
            material, "label-noise", "What is left under label noise", lambda: noise_curves(found),
            lambda: noise_sentences(found), found.rows,
        )
    ]  # fmt: skip


def _effect_figures(aspect: str, title: str) -> Callable[[Material], list[Exhibit]]:
    def made(material: Material) -> list[Exhibit]:
        found = find_effects(material.index, aspect, material.wishes.metrics, table=material.table)
        cut = f"The first {MOST_LINES} lines are drawn." if lines_of(found) > MOST_LINES else ""
        return [
            exhibit(
                material, aspect, title, lambda: effects(found), lambda: [*effect_sentences(found), cut], found.rows
            )
        ]

    return made


def _layered(material: Material) -> dict[str, dict[str, Layers]]:
    found = layers_by_metric(material.index, material.wishes.metrics)
    if not found:
        raise InputError("No model was measured at two layers: make some with `earmark run --layers all`.")
    return found


def _layers(material: Material) -> list[Exhibit]:
    behind = (
        "How far each layer lies behind the best layer of the subset, which is framed; it was picked on the clips it "
        "is scored on."
    )

    def of(label: str, found: Mapping[str, Layers]) -> Exhibit:
        return exhibit(
            material, stem("layers", label), f"Layers of {label}", lambda: layer_maps(found),
            lambda: [behind, *layer_sentences(found)], lambda: summary_rows(found),
        )  # fmt: skip

    return [of(label, found) for label, found in _layered(material).items()]


def _layer_ranks(material: Material) -> list[Exhibit]:
    def of(label: str, found: Mapping[str, Layers]) -> list[Exhibit]:
        framed = "The rank of each layer in each subset, 1 is the best, which is framed."
        ranks = exhibit(
            material, stem("layer-ranks", label), f"Ranks of the layers of {label}",
            lambda: layer_maps(found, ranks=True), lambda: [framed],
        )  # fmt: skip
        panels = "Above, the mean rank over subsets; below, the difference to the last layer; bars are 95 % intervals."
        curves = exhibit(
            material, stem("layer-differences", label), f"Layers of {label} on average", lambda: layer_curves(found),
            lambda: [panels, *layer_sentences(found)], lambda: summary_rows(found),
        )  # fmt: skip
        return [ranks, curves] if any(one.complete for one in found.values()) else [ranks]

    return [made for label, found in _layered(material).items() for made in of(label, found)]


def _named(metric: str) -> str:
    """A metric by its spelling and what it says: a caption may be all that somebody has."""
    words = facts(metric).words
    return f"{metric} ({words})" if words else metric


def _hubness(material: Material) -> list[Exhibit]:
    index, wished = material.index, list(material.wishes.metrics) or None

    def of(protocol: str) -> list[Exhibit]:
        lines, corrections, names = before_after_lines(index, wished, protocol)
        if not lines or not names:
            return []
        said = [
            f"{listed(map(_named, names))} without correction (grey) and with {listed(corrections[1:])}. Fewer hubs do "
            "not have to mean better neighbours.",
            f"The first {MOST_HUBS} of {len(lines)} lines are drawn." if len(lines) > MOST_HUBS else "",
        ]
        name = stem("hubness", "" if protocol == "all" else protocol)
        draw = before_after
        return [
            exhibit(material, name, "Before and after correction", lambda: draw(index, wished, protocol), lambda: said)
        ]

    made = [one for protocol in index.protocols for one in of(protocol)]
    if not made:
        raise InputError(
            "No representation was measured with and without a hubness correction: make some with `earmark run "
            "--correct none,icdm`."
        )
    return made


ENTRIES = (
    Entry("trends", "scores of the best configurations against clips, classes, duration, range, domain",
          "VocSim Fig. 2, 8, 9 (earlier version: 2, 5, 6)", _trends),
    Entry("trend-correlations", "the rank correlations of all those trends with their intervals",
          "what VocSim's text says of Fig. 2", _trend_correlations),
    Entry("label-noise", "what is left of each metric when labels are exchanged", "VocSim Fig. 5",
          _noise),
    Entry("layers", "how far each layer lies behind the best", "VocSim Fig. 6", _layers),
    Entry("layer-ranks", "ranks of layers, mean ranks, differences to the last layer", "VocSim Fig. 7",
          _layer_ranks),
    Entry("pooling", "what the pooling does, all else equal", "VocSim Table 13",
          _effect_figures("pooling", "What the pooling does")),
    Entry("pca", "what PCA does, all else equal", "VocSim Table 2 and its text",
          _effect_figures("pca", "What PCA does")),
    Entry("dtw", "what re-ranking by DTW does, all else equal", "VocSim Tables 14 and 15",
          _effect_figures("dtw", "What re-ranking by DTW does")),
    Entry("hubness", "hubs before and after corrections", "GICDM Tables 5 and 9 to 11", _hubness),
    Entry("maps", "t-SNE beside UMAP, coloured by class", "VocSim Fig. 1d", find_maps),
    Entry("excerpts", "spectrograms of one class: soft and loud, noisy and clean, short and long", "VocSim Fig. 1b",
          find_excerpts),
    Entry("composition", "subsets by duration, classes and clips", "VocSim Fig. 1a", _composition),
    Entry("plane", "generated sets by fidelity and coverage", "GICDM, fidelity and coverage", find_generated),
    Entry("scores", "heat map of systems and subsets", "VocSim Tables 19 to 25, Codec-SUPERB Tables 6 to 8", _scores),
    Entry("lift", "scores above chance with their intervals", "VocSim Tables 9 to 11", _lift),
    Entry("correlations", "which metrics say the same", "VocSim Table 12", _correlations),
    Entry("rate", "codecs: quality and applications against the rate", "Codec-SUPERB Fig. 3 and 4", find_rates),
    Entry("signals", "codecs: which signal metrics go with the overall score", "Codec-SUPERB Fig. 5 to 7, Table 4",
          find_signals),
)  # fmt: skip
