"""An analysis as one HTML file that needs nothing else: sentences first, then figures, then every table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from earmark._version import __version__
from earmark.analysis.study import Study
from earmark.places import locate
from earmark.report.analysis import _figures as figures
from earmark.report.analysis import _sentences as sentences
from earmark.report.analysis._figures import SPELLED
from earmark.report.figures.style import as_svg, library
from earmark.report.html._shell import footer, whole_page, write_page
from earmark.tables import MISSING, NumberFormat
from earmark.tables.html import Child, Html, bullets, drawing, folded, join, paragraph, section, table, tag

_MOST_ROWS = 200
_MOST_MODELS = 300
"""Models whose pairs are drawn; a tree of more is neither legible nor safe to walk."""


def write_analysis(study: Study, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    write_page(render_analysis(study), locate(path))


def render_analysis(study: Study) -> str:
    """The page as HTML text: the same study gives the same text."""
    library()
    parts = [
        _answer(study), _redundancy(study), _representatives(study), _predictions(study), _lite(study), _ranks(study),
        _agreement(study), _method(study),
    ]  # fmt: skip
    name = f"Which benchmarks do I need? {sentences.title(study)}"
    head = tag("header", tag("h1", name), paragraph(f"{sentences.size(study)} · Earmark {__version__}", class_="meta"))
    return whole_page(name, __version__, head, parts, footer(__version__), sounds=False)


def _answer(study: Study) -> Html:
    remarks = [*study.warnings, *study.remarks]
    lead = [*sentences.representatives(study)[:1], *sentences.predictions(study)[1:2], *sentences.lite(study)]
    return section(
        "answer",
        "The answer",
        paragraph(" ".join(lead) or "The matrix is too small for an answer.", class_="lead"),
        bullets([*sentences.redundancy(study), *sentences.ranks(study), *sentences.blind(study)]),
        *([tag("h3", "What a reader should know"), bullets(remarks)] if remarks else []),
    )


_DRAWINGS = {
    "redundant": (
        "Which datasets are redundant?",
        "datasets",
        "R² of every pair of datasets with a dendrogram",
        "R² of the best of three fits for each pair: L linear, E exponential, P power law; no letter: no relation. "
        "The tree joins datasets that tell the same; what joins late is a dataset of its own.",
    ),
    "first": (
        "Which datasets should be run first?",
        "coverage",
        "Coverage of growing subsets by each similarity",
        "Coverage: how well the mean win rates on the first datasets of an order agree with those on all (Pearson). "
        "Grey: where 90 % of random orders lie. An order is worth having where its line is above it.",
    ),
    "predicted": (
        "What would the others say?",
        "errors",
        "Prediction error by the number of datasets that are run",
        "Root of the mean squared error on the datasets that are not run. The dotted line knows nothing of the model: "
        "only what is below it was learnt from the measured datasets.",
    ),
    "lite": (
        "The lite suite",
        "tradeoff",
        "Minutes of sound against coverage and prediction error",
        "Each point is a combination of public subsets that nothing as cheap ranks better than. Above: coverage at its "
        "worst over metrics and left-out models. Below: the error of predicting everything else, as a share of the "
        "training mean's. Dashed: what is asked of the lite suite.",
    ),
    "ranks": (
        "How sure is the ranking?",
        "ranks",
        "Ranks of the best models with their intervals",
        "The models with the best means. The bar runs from one plus the number of models that are surely ahead to the "
        "number that are not surely behind; it holds the rank over all datasets that could have been taken with at "
        "least 95 %.",
    ),
}
"""By the name of a section: its title, the name and the description of its figure, and what the figure shows."""


def _part(name: str, said: Sequence[str], figure: Any, *more: Child) -> Html:
    """A section: what was found in sentences, a figure, and tables."""
    title, key, description, caption = _DRAWINGS[name]
    made = drawing(as_svg(figure, key, description), caption, wide=name in ("redundant", "first", "lite"))
    return section(name, title, paragraph(" ".join(said)), made, *more)


def _redundancy(study: Study) -> Html:
    body = [
        [v.dataset, v.verdict, f"{v.predictable:.2f}", v.closest, f"{v.closest_r2:.2f}", v.relation, f"{v.shift:.4f}"]
        for v in study.verdicts
    ]
    heads = ["dataset", "verdict", "predictable R²", "closest", "its R²", "relation", "shift of the ranking"]
    caption = (
        "Least predictable first. Predictable: R² of predicting the dataset from the others, families of models held "
        "out; 1 is known already, 0 or less is not to be had from them. Shift: how far the ranking of the models moves "
        "when the dataset is left out."
    )
    made = table(heads, body, left=2, caption=caption) if body else None
    related = folded("How the models are related", _models(study))
    figure = figures.relation_map(study.stalk.datasets)
    return _part("redundant", sentences.redundancy(study), figure, made, related)


def _models(study: Study) -> Html:
    counts = study.stalk.models.counts
    said = ", ".join(f"{kind} {number}" for kind, number in counts.items())
    if len(study.matrix.models) > _MOST_MODELS:
        return paragraph(f"Pairs of models: {said}. They are too many to draw.")
    picture = as_svg(figures.relation_map(study.stalk.models), "models", "R² of every pair of models with a dendrogram")
    return join(paragraph(f"Pairs of models: {said}."), drawing(picture, "R² of the best fit for each pair of models."))


def _representatives(study: Study) -> Html:
    body = []
    for row in study.prowl.rows():
        beats = [_percent(row[name]) for name in ("beats_random", "beats_random_early")]
        first = " → ".join(row["order"][: int(row["size"])]) if row["order"] else MISSING
        body.append([*order_cells(row), *beats, first])
    bounds = [
        f"{len(bound.members)}: {', '.join(study.prowl.datasets[j] for j in bound.members)} ({bound.value:.3f})"
        for bound in study.exact
    ]
    heads = ["order by", "SCAUC", "|S*|", "stable |S*|", "beats random", "beats random early", "S*"]
    caption = (
        "SCAUC: the area under the curve; |S*|: the first size that reaches 0.95; stable |S*|: the size from which it "
        "never falls below again; beats random: the share of random orders that cover no better."
    )
    made = table(heads, body, words=1, caption=caption)
    best = paragraph(f"The best of all subsets, by looking at each of them: {'; '.join(bounds)}.") if bounds else None
    return _part("first", sentences.representatives(study), figures.coverage_curves(study.prowl), made, best)


def order_cells(row: dict[str, Any]) -> list[str]:
    """An order of datasets: its name, the area under its curve, and the sizes that reach the threshold."""
    name = SPELLED.get(row["similarity"], row["similarity"])
    return [name, f"{row['scauc']:.3f}", f"{row['size']:.3g}", f"{row['stable_size']:.3g}"]


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.0f} %"


def _predictions(study: Study) -> Html | None:
    if study.pounce is None:
        return None
    rows = [
        [SPELLED.get(f.regressor, f.regressor), f"{f.auc_mse:.4f}", NumberFormat(4).text(f.deviation)]
        for f in study.pounce.forecasts
    ]
    covered = None
    if study.coverage is not None:
        lines = [[name, _percent(share)] for name, share in study.coverage.by_family.items()]
        by_family = table(["family held out", "cells inside their 90 % interval"], lines)
        covered = folded("Do the intervals hold? Family by family", by_family)
    made = table(["regressor", "AUC-MSE", "deviation over splits"], rows)
    return _part("predicted", sentences.predictions(study), figures.error_curves(study.pounce), made, covered)


def _lite(study: Study) -> Html | None:
    if study.lite is None:
        return None
    rows = [
        [", ".join(entry.members), f"{entry.seconds / 60:.0f}", f"{entry.coverage:.3f}", _percent(entry.error)]
        for entry in study.lite.front
        if entry.coverage >= 0.9
    ]
    made = table(["subsets", "minutes", "coverage at its worst", "prediction error"], rows)
    front = folded("The combinations on the curve", made)
    return _part("lite", sentences.lite(study), figures.trade_off(study.lite), front)


_MEAN_WORDS = {"mean": "mean", "normalised_mean": "mean (0 chance, 1 best)", "win_rate": "mean win rate"}


def _ranks(study: Study) -> Html | None:
    if study.ranks is None:
        return None
    rows = []
    for row in study.ranks.rows[:_MOST_ROWS]:
        around = f"{row.low}–{row.high}" if row.low is not None else MISSING
        rows.append([row.model, str(row.rank), around, f"{row.score:.3f}", _percent(row.leads)])
    heads = ["model", "rank", "95 % interval", _MEAN_WORDS[study.ranks.by], "leads in"]
    every = folded("Every model", table(heads, rows))
    return _part("ranks", sentences.ranks(study), figures.rank_plot(study.ranks), every)


def _agreement(study: Study) -> Html | None:
    said = sentences.agreements(study)
    if not said:
        return None
    metric = study.source.metric
    parts: list[Child] = [paragraph(" ".join(said))]
    pairs = [
        [entry.under, f"{entry.one} – {entry.other}", str(entry.n), f"{entry.rho:.2f}", f"{entry.tau:.2f}",
         _percent(entry.swapped), "same" if entry.same_top else "another"]
        for entry in (*[e for e in study.distances if e.under == metric], *study.metrics)
    ]  # fmt: skip
    if pairs:
        heads = ["under", "pair", "systems", "Spearman", "Kendall", "pairs swapped", "best system"]
        parts.append(table(heads, pairs, left=2, words=1))
    if study.printed_metrics:
        printed = ("printed", "all19", "public", "by_subset", "pooled")
        lines = [
            [f"{entry.one} – {entry.other}", *(f"{getattr(entry, name):.2f}" for name in printed)]
            for entry in study.printed_metrics
        ]
        caption = (
            "VocSim's Table 12 beside four ways to compute it from the printed full tables; CS and CSCF turned round, "
            "so that more is better."
        )
        heads = ["metrics", "printed", "19 subsets", "15 public", "by subset", "pooled"]
        parts.append(table(heads, lines, caption=caption))
    return section("agreement", "Do distances and metrics agree?", parts)


def _method(study: Study) -> Html:
    held = "whole families held out" if study.split == "grouped" else "a fifth of the models held out at random"
    words = [
        "Scores are rescaled for each dataset so that 0 is chance and 1 the best value; what is below chance counts as "
        "chance.",
        "A model's win rate on a dataset is the share of other models that it beats; coverage is the Pearson "
        "correlation of mean win rates on some datasets and on all.",
        f"Predictions: {held}; {len(set(study.matrix.families))} families of {len(study.matrix.models)} models.",
        "Every table of this page lies beside it as a CSV file.",
    ]
    return section("method", "How it was done", bullets(words))
