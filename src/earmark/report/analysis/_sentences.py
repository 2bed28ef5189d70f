"""What an analysis says, in sentences made from its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from earmark.analysis.beams import beam_changes
from earmark.analysis.prowl import THRESHOLD, Selection
from earmark.analysis.ranks import FEWEST_DATASETS, RankRow
from earmark.analysis.similarities import NINE
from earmark.analysis.study import KNOWN, Study
from earmark.report.analysis._figures import SPELLED
from earmark.scores import VOCSIM_SUBSETS
from earmark.wording import counted, first_of, listed

_MOST_NAMED = 6
_PREDICTED_BY = {"knn": "the mean of the 5 models with the most similar scores", "ridge": "ridge regression"}
_BLIND = frozenset(subset.name for subset in VOCSIM_SUBSETS if subset.status == "blind")


def title(study: Study) -> str:
    metric = f", {study.source.metric}" if study.source.metric else ""
    return f"{study.source.name}{metric}"


def size(study: Study) -> str:
    return f"{counted(len(study.matrix.models), 'model')} × {counted(len(study.matrix.datasets), 'dataset')}"


def best_selection(study: Study) -> Selection | None:
    """The similarity whose order covers the whole best: the largest SCAUC, the smaller subset of equals."""
    found = [selection for selection in study.prowl.selections if selection.name in NINE]
    return max(found, key=lambda one: (round(one.scauc, 6), -one.size), default=None)


def subset_names(study: Study, selection: Selection) -> list[str]:
    return [study.prowl.datasets[place] for place in selection.order[: selection.size]]


def redundancy(study: Study) -> list[str]:
    """How the datasets are related."""
    counts = study.stalk.datasets.counts
    total = sum(counts.values())
    if not total:
        return []
    unrelated = counts["NONE"]
    related = ", ".join(f"{number} {kind.lower()}" for kind, number in counts.items() if kind != "NONE" and number)
    sentences = [
        f"Of {counted(total, 'pair')} of datasets, {unrelated} {'has' if unrelated == 1 else 'have'} no relation "
        "(R² under 0.5: scores on one tell less than half of the differences on the other)"
        + (f"; the others are {related}." if related else ".")
    ]
    redundant = [verdict.dataset for verdict in reversed(study.verdicts) if verdict.verdict == "redundant"]
    new = [verdict.dataset for verdict in study.verdicts if verdict.verdict == "new"]
    if redundant:
        verb, left = (
            ("is", "it can be left out")
            if len(redundant) == 1
            else ("are", "any one of them (not all at once) can be left out")
        )
        sentences.append(
            f"{listed(redundant)} {verb} redundant: {left} if all other datasets are run, because the "
            "others predict at least 90 % of the differences between models there, also of models not seen before."
        )
    if new:
        verb = "says" if len(new) == 1 else "say"
        sentences.append(
            f"{listed(new)} {verb} what no other dataset does (or {'is' if len(new) == 1 else 'are'} noisy)."
        )
    return sentences


def representatives(study: Study) -> list[str]:
    """Which datasets to run first."""
    best = best_selection(study)
    if best is None:
        return []
    names = subset_names(study, best)
    total = len(study.prowl.datasets)
    run = "this 1" if len(names) == 1 else f"these {len(names)}"
    of = "" if study.covered == "all" else ", on the 80 % of the models that train"
    if len(names) == total:
        return [
            f"No few datasets do: the models come out in the order that all {total} give (a correlation of "
            f"{THRESHOLD} or more; 1 is the same ranking) only with all of them."
        ]
    sentences = [
        f"Run {listed(names)} first: with {run} of {total} datasets the models come out nearly in the order that all "
        f"datasets give{of}. The two rankings correlate at {best.coverage[best.size - 1]:.3f} (SimBA's coverage: 1 is "
        f"the same ranking, {THRESHOLD} was asked for), and {_share(best.swapped)} of the pairs of models change "
        f"places.{_cautions(study, best)}",
        f"Of {counted(len(study.prowl.selections) - 2, 'measure')} of likeness, {SPELLED[best.name]} found the best "
        f"order: averaged over all sizes, its coverage is {best.scauc:.3f} (SCAUC).",
    ]
    hidden = [name for name in names if name in _BLIND and study.lite is not None]
    if hidden:
        verb, whose = ("is", "its") if len(hidden) == 1 else ("are", "their")
        sentences.append(
            f"{listed(hidden)} {verb} blind and run only by {whose} host; the lite suite is of public subsets."
        )
    sizes = study.prowl.random.size
    if sizes.size:
        share = f"{100 * (1.0 - (best.beats_random or 0.0)):.0f}"
        better = "none of them covers" if share == "0" else f"{share} % of them cover"
        sentences.append(f"Random orders need {sizes.mean():.1f} datasets on average, and {better} better.")
    return sentences


def _cautions(study: Study, best: Selection) -> str:
    """What an answer of few datasets has against it: it may not last, and others may do better."""
    said = ""
    if best.stable_size > best.size:
        between = best.coverage[best.size : best.stable_size - 1]
        lowest = int(between.argmin())
        steady = [study.prowl.datasets[place] for place in best.order[: best.stable_size]]
        said += (
            f" But that is not steady: with the first {best.size + 1 + lowest} datasets of this order the correlation "
            f"falls to {between[lowest]:.3f}; it stays at {THRESHOLD} or more only from {best.stable_size} datasets on"
            + (f" ({listed(steady)})." if len(steady) <= _MOST_NAMED else ".")
        )
    exact = next((bound for bound in study.exact if len(bound.members) == best.size), None)
    if exact is not None and exact.value > best.coverage[best.size - 1] + 1e-9:
        names = listed([study.prowl.datasets[place] for place in exact.members])
        choice = "single dataset" if best.size == 1 else f"choice of {best.size} datasets"
        said += (
            f" The best {choice}, found by trying them all, is {names} ({exact.value:.3f}, {_share(exact.swapped)} "
            f"swapped){_votes(study, best)}."
        )
    return said


def _votes(study: Study, best: Selection) -> str:
    """What most measures of likeness choose, where it is something else."""
    chosen = [tuple(sorted(one.order[: one.size])) for one in study.prowl.selections if one.name in NINE]
    most, votes = Counter(chosen).most_common(1)[0]
    if votes < 2 or set(most) == set(best.order[: best.size]):
        return ""
    return f"; {votes} of {len(chosen)} measures of likeness choose {listed(study.prowl.datasets[j] for j in most)}"


def predictions(study: Study) -> list[str]:
    """What the datasets that are not run would say."""
    if study.pounce is None:
        return []
    errors = {forecast.regressor: forecast.auc_mse for forecast in study.pounce.forecasts}
    learnt = {name: value for name, value in errors.items() if name != "mean"}
    sentences = []
    if learnt and "mean" in errors:
        name, value = min(learnt.items(), key=lambda item: item[1])
        if value < errors["mean"]:
            sentences.append(
                f"From the datasets that are run, {_PREDICTED_BY.get(name, SPELLED.get(name, name))} predicts a "
                f"new model's scores on the others with a typical error of {math.sqrt(value):.3f}, on a scale from 0 "
                "(chance, or the lowest score there can be) to 1 (the best there can be); guessing the mean of the "
                f"known models errs by {math.sqrt(errors['mean']):.3f}. That leaves "
                f"{100 * value / errors['mean']:.0f} % of the mean's squared error."
            )
        else:
            sentences.append("No regressor is better than the training mean: the measured datasets do not help.")
    said = ", ".join(f"{SPELLED.get(name, name)} {value:.4f}" for name, value in errors.items())
    sentences.append(
        f"Mean squared errors, averaged over how many datasets are run (AUC-MSE; {held_out(study)}): {said}."
    )
    if study.coverage is not None:
        found = study.coverage
        sentences.append(
            f"Predicted from {KNOWN} datasets, {100 * found.coverage:.0f} % of {found.cells} held-out cells lie in "
            f"their 90 % intervals, which are {found.width:.2f} wide on the scale from 0 to 1."
        )
    return sentences


def held_out(study: Study) -> str:
    """Who was predicted."""
    if study.split == "grouped":
        return "whole families of models held out"
    return "a fifth of the models held out at random"


def noise(study: Study) -> list[str]:
    """What noise on the scores that are learnt from does to the predictions."""
    if study.pounce is None:
        return []
    clean = {forecast.regressor: forecast.auc_mse for forecast in study.pounce.forecasts}
    sentences = []
    for found in study.noise:
        said = []
        for forecast in found.forecasts:
            before = clean[forecast.regressor]
            times = f"{forecast.auc_mse / before:.1f} times" if before > 0 else "more than"
            error = f" ± {max(forecast.error, 0.0001):.4f}" if forecast.error is not None else ""
            said.append(f"{SPELLED.get(forecast.regressor, forecast.regressor)} {forecast.auc_mse:.4f}{error}, {times}")
        sentences.append(
            f"With noise of variance {found.noise:g} (σ {math.sqrt(found.noise):.2f}) on the scores that are learnt "
            f"from, the error (AUC-MSE) becomes: {'; '.join(said)} that without noise."
        )
        bar = next((forecast.auc_mse for forecast in found.forecasts if forecast.regressor == "mean"), math.inf)
        lost = [f.regressor for f in found.forecasts if f.regressor != "mean" and f.auc_mse >= bar]
        if lost:
            sentences[-1] += f" No better than the training mean: {listed(SPELLED.get(name, name) for name in lost)}."
    if any(forecast.error is not None for found in study.noise for forecast in found.forecasts):
        sentences.append(
            "± is the Monte-Carlo standard error of the draws of noise (at least 0.0001 is shown): more draws make "
            "it smaller."
        )
    return sentences


def folds(study: Study) -> list[str]:
    """How much hangs on which models are held out."""
    if study.folds is None:
        return []
    forecasts = study.folds.forecasts
    number = len(forecasts[0].by_split)
    whole = "whole families of " if study.split == "grouped" else "the training "
    said = [
        f"{SPELLED.get(f.regressor, f.regressor)} from {min(f.by_split.values()):.4f} to "
        f"{max(f.by_split.values()):.4f} (mean {f.auc_mse:.4f}, standard deviation {f.deviation or 0.0:.4f})"
        for f in forecasts
    ]
    return [
        f"In {number} folds of {whole}models, each held out once, the error (AUC-MSE) goes: {'; '.join(said)}.",
        "This spread says how much hangs on who is held out. It is no interval for the error: any two folds share most "
        "of the models they learn from.",
    ]


def beams(study: Study) -> list[str]:
    """Whether a wider search finds better subsets."""
    changes = beam_changes(study.beams)
    if not changes:
        return []
    narrow = min(found.beam for found in study.beams)
    said = [
        f"{change.beam} subsets: {change.proxy:+.4f} and {change.scauc:+.4f} (better for {change.better}, worse for "
        f"{change.worse} of {change.similarities})"
        for change in changes
    ]
    spread = float(study.prowl.random.scauc.std()) if study.prowl.random.scauc.size > 1 else None
    return [
        "The search keeps the best subset of each size and adds to it; a beam keeps several. Mean change, against a "
        f"beam of {narrow}, of what the search raises (proxy coverage δ) and of what counts (SCAUC): "
        f"{'; '.join(said)}.",
        *([f"For scale: the SCAUC of random orders varies by {spread:.4f} (standard deviation)."] if spread else []),
    ]


def _share(share: float) -> str:
    """A share in percent; none is none, and some is never 0 %."""
    return "none" if share == 0 else "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def ranks(study: Study) -> list[str]:
    """How sure the ranking is."""
    if study.ranks is None or len(study.ranks.rows) < 2:
        return []
    first = study.ranks.rows[0]
    if first.low is None or first.high is None:
        return [f"{first.model} leads; fewer than {FEWEST_DATASETS} datasets say nothing of its rank on others."]
    rank = f"{first.low} to {first.high}" if first.high > first.low else f"{first.low}"
    return [
        f"{first.model} leads; if these datasets are a sample of a larger collection, its rank over the whole "
        f"collection is {rank} (95 % interval).",
        _first_tier(study.ranks.rows),
        f"Of all pairs of models, {100 * study.ranks.told_apart:.0f} % are told apart (paired t-tests over the "
        "datasets, Holm's correction for the number of models).",
    ]


def _first_tier(rows: Sequence[RankRow]) -> str:
    """Who else could be the best."""
    others = [row.model for row in rows[1:] if row.tier == 1]
    if not others:
        return "It is surely ahead of every other model."
    verb = "is" if len(others) == 1 else "are"
    return (
        f"{counted(len(others), 'other model')} {verb} not told apart from the best, with nobody surely ahead: "
        f"{first_of(others, _MOST_NAMED)}."
    )


def blind(study: Study) -> list[str]:
    """What VocSim's blind subsets add."""
    found = study.blind
    if found is None:
        return []
    low, high = min(found.predictable.values()), max(found.predictable.values())
    sentences = [
        f"The blind subsets ({listed(found.group)}) follow the public ones with Kendall's tau {found.agreement:.2f}; "
        f"from the public ones, {100 * low:.0f} to {100 * high:.0f} % of the differences between unseen models on them "
        "can be predicted.",
        f"Leaving them out keeps a coverage of {found.coverage:.3f}.",
    ]
    if found.best_rest == found.best_group:
        sentences.append(f"{found.best_rest} is best on both.")
    else:
        sentences.append(
            f"{found.best_group}, best on the blind ones, is number {found.best_group_place} on the public ones; "
            f"{found.best_rest}, best there, is number {found.best_rest_place} of {found.models} on the blind ones."
        )
    return sentences


def agreements(study: Study) -> list[str]:
    """Whether distances and metrics order the models alike."""
    sentences = []
    metric = study.source.metric
    mine = [entry for entry in study.distances if entry.under == metric] or list(study.distances)
    if mine:
        worst = min(mine, key=lambda entry: entry.rho)
        best = max(mine, key=lambda entry: entry.rho)
        sentences.append(
            f"Under {worst.under}, {worst.one} and {worst.other} agree least on the order of the systems (Spearman "
            f"{worst.rho:.2f}; {100 * worst.swapped:.0f} % of pairs swapped)"
            + (f", {best.one} and {best.other} most ({best.rho:.2f})." if best is not worst else ".")
        )
    with_metric = [entry for entry in study.metrics if metric in (entry.one, entry.other)]
    if with_metric:
        worst = min(with_metric, key=lambda entry: entry.rho)
        best = max(with_metric, key=lambda entry: entry.rho)
        other = {entry: entry.other if entry.one == metric else entry.one for entry in (worst, best)}
        sentences.append(
            f"{other[best]} agrees most with {metric} (Spearman {best.rho:.2f})"
            + (f", {other[worst]} least ({worst.rho:.2f})." if best is not worst else ".")
        )
    if study.printed_metrics:
        off = [entry for entry in study.printed_metrics if abs(entry.printed - entry.all19) > 0.1]
        gap = max(study.printed_metrics, key=lambda entry: abs(entry.printed - entry.all19))
        sentences.append(
            f"The printed Table 12 does not follow from the printed full tables: {len(off)} of "
            f"{len(study.printed_metrics)} correlations differ by more than 0.1, most {gap.one} with {gap.other} "
            f"({gap.printed:.2f} printed, {gap.all19:.2f} recomputed)."
        )
    return sentences


def lite(study: Study) -> list[str]:
    """The lite suite and what it costs."""
    if study.lite is None:
        return []
    chosen, whole = study.lite.chosen, study.lite.whole
    return [
        f"VocSim's lite suite is {listed(chosen.members)}: {chosen.seconds / 60:.0f} minutes of sound instead of "
        f"{whole.seconds / 3600:.1f} hours ({100 * chosen.seconds / whole.seconds:.0f} %). At its worst, over P@1, P@5 "
        f"and GSR and over leaving out any model, it ranks with a coverage of {chosen.coverage:.3f}, and predictions "
        f"from it make {100 * chosen.error:.0f} % of the training mean's error."
    ]
