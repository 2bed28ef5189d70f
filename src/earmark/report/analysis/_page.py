"""An analysis as one HTML file that needs nothing else: sentences first, then figures, then every table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from earmark._version import __version__
from earmark.analysis.study import Study
from earmark.places import locate
from earmark.report.analysis import _check_figures as checks
from earmark.report.analysis import _figures as figures
from earmark.report.analysis import _sentences as sentences
from earmark.report.analysis._figures import SPELLED
from earmark.report.analysis._saving import MOST_MODELS
from earmark.report.figures.style import as_svg, library
from earmark.report.html._shell import footer, whole_page, write_page
from earmark.tables import MISSING, NumberFormat
from earmark.tables.html import Child, Html, bullets, drawing, folded, join, pairs, paragraph, section, table, tag

_MOST_ROWS = 200


def write_analysis(study: Study, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all."""
    write_page(render_analysis(study), locate(path))


def render_analysis(study: Study) -> str:
    """The page as HTML text: the same study gives the same text."""
    library()
    parts = [
        _answer(study), _redundancy(study), _representatives(study), _beams(study), _predictions(study), _checks(study),
        _lite(study), _ranks(study), _agreement(study), _method(study),
    ]  # fmt: skip
    name = f"Which benchmarks do I need? {sentences.title(study)}"
    head = tag("header", tag("h1", name), paragraph(f"{sentences.size(study)} · Earmark {__version__}", class_="meta"))
    return whole_page(name, __version__, head, parts, footer(__version__), sounds=False)


def _answer(study: Study) -> Html:
    """The first screen, for somebody who has never heard of the method."""
    remarks = [*study.warnings, *study.remarks]
    related = sentences.redundancy(study)
    answers = [
        ("Can the others be predicted from them? (pounce)", sentences.predictions(study)[:1]),
        ("Which datasets say the same? (stalk)", related[1:] or related),
        ("How sure is the ranking of the models?", sentences.ranks(study)),
        ("What do the blind subsets add?", sentences.blind(study)),
        ("Is there a small suite?", sentences.lite(study)),
    ]
    return section(
        "answer",
        "The answer",
        paragraph(
            f"One table of scores went in: {sentences.size(study)}, a row for each model. From these numbers alone "
            "this page says which few datasets to run first, how well those predict the rest, and which datasets "
            "repeat each other. The method is SimBA's; its own words stand in brackets."
        ),
        paragraph(
            " ".join(sentences.representatives(study)[:1]) or "The matrix is too small for an answer.", class_="lead"
        ),
        pairs([(question, " ".join(said)) for question, said in answers if said]),
        *([tag("h3", "Before you trust it"), bullets(remarks)] if remarks else []),
        folded("The words of this page, and SimBA's", pairs(_WORDS)),
    )


_WORDS = [
    ("win rate", "The share of the other models that a model beats on a dataset; its mean win rate is over datasets."),
    (
        "coverage (η)",
        "How far a few datasets rank the models as all do: Pearson's correlation of the mean win rates on the few and "
        "on all. 1 is the same ranking. 0.95, which SimBA asks for, still leaves some pairs of models swapped: the "
        "tables say how many.",
    ),
    ("mean coverage (SCAUC)", "Coverage averaged over the sizes 1, 2, … all: the area under its curve."),
    ("datasets needed (|S*|)", "The first size at which coverage reaches 0.95; S* are these datasets."),
    (
        "needed for good (stable |S*|)",
        "The size from which coverage never falls below 0.95 again: curves are not steady.",
    ),
    ("relation (stalk)", "How scores on two datasets, or of two models, follow from each other, and how closely (R²)."),
    ("order (prowl)", "Datasets in the order in which a search picks them: each is the least like those it has."),
    (
        "proxy coverage (δ)",
        "What the search raises: how like the datasets that are left out are to those that are in, by a measure of "
        "likeness. It is not coverage, and the two need not agree.",
    ),
    (
        "prediction (pounce)",
        "A model's scores on all other datasets from its scores on a few, learnt from other models.",
    ),
    (
        "prediction error (AUC-MSE)",
        "The mean squared error on models that were not learnt from, averaged over how many datasets are run: the area "
        "under its curve. Scores run from 0 (chance or the lowest) to 1 (the best), so an error of 0.01 is a "
        "tenth of the way. Compare it with the training mean, which looks at nothing the new model did.",
    ),
]


_DRAWINGS = {
    "redundant": (
        "Which datasets say the same? (stalk)",
        "datasets",
        "R² of every pair of datasets with a dendrogram",
        "R² of the best of three fits for each pair: L linear, E exponential, P power law; no letter: no relation. "
        "The tree joins datasets that tell the same; what joins late is a dataset of its own.",
    ),
    "first": (
        "Which datasets should be run first? (prowl)",
        "coverage",
        "Coverage of growing subsets by each similarity",
        "Coverage: how well the mean win rates on the first datasets of an order agree with those on all (Pearson). "
        "Grey: where 90 % of random orders lie. An order is worth having where its line is above it.",
    ),
    "predicted": (
        "What would the others say? (pounce)",
        "errors",
        "Prediction error by the number of datasets that are run",
        "Root of the mean squared error on the datasets that are not run. The dotted line knows nothing of the model: "
        "only what is below it was learnt from the measured datasets. Where it falls too, the datasets that are left "
        "are easier to guess, not better known.",
    ),
    "beams": (
        "Would a wider search find better subsets?",
        "beams",
        "Change of proxy coverage and of coverage by the width of the search",
        "A beam keeps that many subsets of each size instead of one. Left: what it looks for. Right: what counts, "
        "which it does not see; grey: one standard deviation of random orders.",
    ),
    "holds": (
        "Do the predictions hold?",
        "noise",
        "Prediction error without noise, with noise, and over folds",
        "Mean squared error on models that were not learnt from, on a logarithmic scale (SimBA's Figure 3). Noise is "
        "added to the scores that are learnt from. Bands: from the fold with the smallest error to that with the "
        "largest.",
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
        "number that are not surely behind; if these datasets are a sample of a larger collection, it holds the "
        "rank over the whole collection with at least 95 %.",
    ),
}
"""By the name of a section: its title, the name and the description of its figure, and what the figure shows."""


def _part(name: str, said: Sequence[str], figure: Any, *more: Child) -> Html:
    """A section: what was found in sentences, a figure, and tables."""
    title, key, description, caption = _DRAWINGS[name]
    words = bullets(said) if name == "holds" else paragraph(" ".join(said))
    made = drawing(
        as_svg(figure, key, description), caption, wide=name in ("redundant", "first", "beams", "holds", "lite")
    )
    return section(name, title, words, made, *more)


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
    figure = figures.relation_map(study)
    return _part("redundant", sentences.redundancy(study), figure, made, related)


def _models(study: Study) -> Html:
    counts = study.stalk.models.counts
    said = ", ".join(f"{kind} {number}" for kind, number in counts.items())
    if len(study.matrix.models) > MOST_MODELS:
        return paragraph(f"Pairs of models: {said}. They are too many to draw.")
    picture = as_svg(figures.relation_map(study, "models"), "models", "R² of every pair of models with a dendrogram")
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
    heads = [
        "order by", "mean coverage", "needed", "for good", "swapped", "beats random", "early", "datasets needed (S*)"
    ]  # fmt: skip
    caption = (
        "Mean coverage: over all sizes of the subset (SCAUC). Needed: datasets until coverage reaches 0.95 (|S*|); for "
        "good: from there on it never falls below. Swapped: pairs of models that these datasets rank the other way "
        "round than all. Beats random: the share of random orders that cover no better, over all sizes (AUC), and "
        "early, up to the datasets needed (Max2)."
    )
    made = table(heads, body, words=1, caption=caption)
    best = paragraph(f"The best of all subsets, by looking at each of them: {'; '.join(bounds)}.") if bounds else None
    return _part("first", sentences.representatives(study), figures.coverage_curves(study), made, best)


def order_cells(row: dict[str, Any]) -> list[str]:
    """An order of datasets: its name, the area under its curve, and the sizes that reach the threshold."""
    name = SPELLED.get(row["similarity"], row["similarity"])
    sizes = [f"{row['size']:.3g}", f"{row['stable_size']:.3g}"]
    return [name, f"{row['scauc']:.3f}", *sizes, _percent(row["swapped"])]


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
    caption = (
        "Mean squared error, averaged over how many datasets are run (AUC-MSE). The deviation over splits says how "
        "much hangs on which models are held out; splits share most of their models, so it is no interval."
    )
    made = table(["regressor", "error (AUC-MSE)", "deviation over splits"], rows, caption=caption)
    return _part("predicted", sentences.predictions(study), figures.error_curves(study), made, covered)


def _beams(study: Study) -> Html | None:
    said = sentences.beams(study)
    if not said:
        return None
    rows = [
        [SPELLED.get(f.similarity, f.similarity), str(f.beam), f"{f.proxy:.4f}", f"{f.scauc:.4f}", str(f.size),
         str(f.stable_size)]
        for f in study.beams
    ]  # fmt: skip
    heads = ["order by", "beam", "proxy coverage (δ)", "mean coverage (SCAUC)", "datasets needed", "needed for good"]
    return _part("beams", said, checks.beam_widths(study), folded("Every similarity and width", table(heads, rows)))


def _checks(study: Study) -> Html | None:
    """What noise and other splits of the models do to the predictions."""
    said = [*sentences.noise(study), *sentences.folds(study)]
    if not said:
        return None
    parts: list[Child] = []
    if study.noise:
        rows = [
            [f"{row['variance']:g}", SPELLED.get(row["regressor"], row["regressor"]), f"{row['auc_mse']:.4f}",
             NumberFormat(1, significant=True).text(row["error"]), str(row["draws"])]
            for row in study.noise_rows()
        ]  # fmt: skip
        heads = ["variance of the noise", "regressor", "error (AUC-MSE)", "Monte-Carlo standard error", "draws"]
        parts.append(folded("Noise: every regressor", table(heads, rows, left=2)))
    if study.folds is not None:
        rows = [
            [SPELLED.get(row["regressor"], row["regressor"]),
             *(f"{row[name]:.4f}" for name in ("auc_mse", "deviation", "lowest", "highest"))]
            for row in study.fold_rows()
        ]  # fmt: skip
        heads = ["regressor", "mean of the folds", "standard deviation", "smallest", "largest"]
        picture = as_svg(checks.fold_errors(study), "folds", "The error of each regressor in each fold")
        caption = "A dot for each fold. The spread is no interval: folds share most of the models they learn from."
        parts += [drawing(picture, caption), table(heads, rows, caption="Errors (AUC-MSE) over the folds.")]
    return _part("holds", said, checks.noise_curves(study), *parts)


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
    return _part("lite", sentences.lite(study), figures.trade_off(study), front)


_MEAN_WORDS = {"mean": "mean", "normalised_mean": "mean (0 lowest or chance, 1 best)", "win_rate": "mean win rate"}


def _ranks(study: Study) -> Html | None:
    if study.ranks is None:
        return None
    rows = []
    for row in study.ranks.rows[:_MOST_ROWS]:
        around = f"{row.low}–{row.high}" if row.low is not None else MISSING
        tier = str(row.tier or MISSING)
        rows.append([row.model, str(row.rank), around, tier, f"{row.score:.3f}", _percent(row.leads)])
    heads = ["model", "rank", "95 % interval", "tier", _MEAN_WORDS[study.ranks.by], "leads in"]
    every = folded("Every model", table(heads, rows))
    return _part("ranks", sentences.ranks(study), figures.rank_plot(study), every)


def _agreement(study: Study) -> Html | None:
    said = sentences.agreements(study)
    if not said:
        return None
    metric = study.source.metric
    parts: list[Child] = [paragraph(" ".join(said))]
    compared = [
        [entry.under, f"{entry.one} – {entry.other}", str(entry.n), f"{entry.rho:.2f}", f"{entry.tau:.2f}",
         _percent(entry.swapped), "same" if entry.same_top else "another"]
        for entry in (*[e for e in study.distances if e.under == metric], *study.metrics)
    ]  # fmt: skip
    if compared:
        heads = ["under", "pair", "systems", "Spearman", "Kendall", "pairs swapped", "best system"]
        parts.append(table(heads, compared, left=2, words=1))
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
    words = [
        "Scores are rescaled for each dataset so that 0 is chance (or, where nothing is chance, the lowest score there "
        "can be) and 1 the best value; what is below 0 counts as 0.",
        "A model's win rate on a dataset is the share of other models that it beats; coverage is the Pearson "
        "correlation of mean win rates on some datasets and on all.",
        "Every table of this page lies beside it as a CSV file.",
    ]
    if study.pounce is not None:
        families = f"{len(set(study.matrix.families))} families of {len(study.matrix.models)} models"
        words.insert(2, f"Predictions: {sentences.held_out(study)}; {families}.")
    return section("method", "How it was done", bullets(words))
