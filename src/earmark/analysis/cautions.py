"""What a reader of an analysis should know about its matrix, as sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import MIXED_SCALE, Matrix
from earmark.errors import quoted
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]

TWIN = 0.01
"""Two models whose scores differ by less than this (root mean square, normalised units) are near-duplicates."""
FEWEST_SHARED = 3
"""Columns that two rows share before they can be near-duplicates; half of all columns where that is more."""
AVERAGE = 0.005
"""A column this near (root mean square) to the mean of the others is that mean."""
FEW_MODELS = 10
BELOW_CHANCE = 0.1
ABOVE_BEST = 1.05
"""Normalised scores may pass 1 by this much: overall scores of codecs reach 1.03."""
AGAINST = -0.7
"""A column that correlates with the mean of the others below this runs against them."""
FEW_ODD = 0.25
"""The largest share of a column's cells that can be slips of scale and not the scale itself."""

_MEANS = re.compile(r"\b(average|avg|mean|overall|all subjects|total|aggregate|macro|micro)\b", re.IGNORECASE)
_ERRORS = re.compile(
    r"(?<![a-z])(wer|cer|eer|fad|mcd|mse|rmse|errors?|loss|losses|distances?|perplexity|kbps)(?![a-z])", re.IGNORECASE
)
"""Words in the names of measures of which less is better."""


def warnings(matrix: Matrix, analysed: Matrix | None = None, *, directions: bool = True) -> list[str]:
    """One sentence for each thing that changes how the results should be read; an empty list when there is none.

    Args:
        matrix: The scores as they were given.
        analysed: The part of the matrix that the results are of, if it is not all of it.
        directions: Whether the caller chose which columns are better low, so that one may have been forgotten.
    """
    known = np.isfinite(matrix.values)
    sentences = [
        _empty(matrix.models, np.asarray(known.any(axis=1)), "model"),
        _empty(matrix.datasets, np.asarray(known.any(axis=0)), "dataset"),
    ]
    present = matrix.present()
    left = present if analysed is None else analysed
    if left.models and left.datasets:
        values = left.normalised()
        missing = int((~np.isfinite(present.values)).sum())
        if missing:
            sentences.append(
                f"{missing} of {counted(present.values.size, 'value')} {'is' if missing == 1 else 'are'} missing: "
                "similarities use the models that both datasets have, and predictions only the complete part of the "
                "matrix."
            )
        sentences += [_odd_scales(left), _mixed_scales(left), _directions(left) if directions else ""]
        sentences += [_above_best(left), _constant(left), _below_chance(left)]
        sentences += [_averages(left, values), _twin_datasets(left, values), _leaks(left, values)]
        if len(left.models) < FEW_MODELS:
            sentences.append(
                f"Only {counted(len(left.models), 'model')}: correlations over so few models are large by accident; "
                "treat every subset found here as a guess."
            )
    return [sentence for sentence in sentences if sentence]


def near_duplicates(values: Floats, limit: float = TWIN) -> list[tuple[int, int]]:
    """Pairs of rows whose root mean square difference, over the columns that both have, is under the limit.

    Rows that share few columns are no pair: at least half of all have to be shared, and three where there are so many.
    """
    known = np.isfinite(values).astype(np.float64)
    filled = np.where(known > 0, values, 0.0)
    shared = known @ known.T
    squares = filled**2 @ known.T
    apart = np.maximum(squares + squares.T - 2 * filled @ filled.T, 0.0)
    columns = values.shape[1]
    enough = max(columns / 2, min(FEWEST_SHARED, columns), 1)
    close = (shared >= enough) & (apart < limit**2 * shared)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(close, 1))]


def average_columns(values: Floats, limit: float = AVERAGE) -> list[int]:
    """The columns of normalised values that are the mean of the others (three datasets or more)."""
    if values.shape[1] < 3:
        return []
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    count = known.sum(axis=1, keepdims=True) - known
    others = np.divide(filled.sum(axis=1, keepdims=True) - filled, count, out=np.zeros(values.shape), where=count > 0)
    both = known & (count > 0)
    gap = np.where(both, filled - others, 0.0)
    n = both.sum(axis=0)
    rms = np.sqrt((gap**2).sum(axis=0) / np.maximum(n, 1))
    spread = np.array([np.ptp(filled[known[:, j], j]) if known[:, j].any() else 0.0 for j in range(values.shape[1])])
    # Where all models are alike every column is near the mean.
    return [int(j) for j in np.flatnonzero((n > 2) & (rms < limit) & (spread > 10 * limit))]


def _empty(names: Sequence[str], filled: NDArray[np.bool_], kind: str) -> str:
    lost = [name for name, some in zip(names, filled, strict=True) if not some]
    if not lost:
        return ""
    have, are = _verb(lost, "has", "have"), _verb(lost, "is", "are")
    return f"{_subject(kind, lost)} {have} no value at all and {are} left out."


def odd_cells(matrix: Matrix) -> list[tuple[int, int]]:
    """Cells that look like percentages in a column of fractions: few, and five times anything else in it."""
    found = []
    for j, column in enumerate(matrix.values.T):
        wide = np.flatnonzero(column > MIXED_SCALE)
        fractions = column[column <= MIXED_SCALE]
        if not 0 < wide.size <= FEW_ODD * np.isfinite(column).sum() or fractions.min() < 0:
            continue
        if column[wide].max() <= 100 and column[wide].min() >= 5 * fractions.max():
            found += [(int(i), j) for i in wide]
    return found


def _odd_scales(matrix: Matrix) -> str:
    cells = [
        f"{quoted(matrix.models[i])} has {matrix.values[i, j]:g} on {quoted(matrix.datasets[j])}"
        for i, j in odd_cells(matrix)
    ]
    if not cells:
        return ""
    more = f" and {counted(len(cells) - 4, 'more cell')}" if len(cells) > 4 else ""
    return (
        f"{', '.join(cells[:4])}{more}, where the other models have fractions: divide a percentage by 100. As it "
        "stands it stretches the scale, and all others seem to be at chance."
    )


def _mixed_scales(matrix: Matrix) -> str:
    values = matrix.values.copy()
    for cell in odd_cells(matrix):
        values[cell] = np.nan
    wide = np.flatnonzero(np.nanmax(np.abs(values), axis=0) > MIXED_SCALE).tolist()
    if not wide or len(wide) == len(matrix.datasets):
        return ""
    ends = np.maximum(matrix.best, matrix.chance)
    scaled = first_of([f"{quoted(matrix.datasets[j])} ({ends[j]:g})" for j in wide], 6)
    return (
        f"{_subject('dataset', [matrix.datasets[j] for j in wide])} {_verb(wide, 'is', 'are')} not on the scale of "
        f"fractions that the others have (percentages?); the end of the scale was taken to be: {scaled}. Give the best "
        "value of each if it is another."
    )


def _directions(matrix: Matrix) -> str:
    """Columns that are read as better high and are perhaps better low, by their names or by their values."""
    upward = np.array(matrix.higher_is_better)
    named = [j for j, name in enumerate(matrix.datasets) if upward[j] and _ERRORS.search(name)]
    against = [j for j in _against(matrix, named) if upward[j] and j not in named]
    if not named and not against:
        return ""
    sentences = []
    if named:
        names = [matrix.datasets[j] for j in named]
        sentences.append(
            f"{_subject('dataset', names)} {_verb(names, 'sounds like an error', 'sound like errors')}, of which less "
            f"is better, and {_verb(names, 'is', 'are')} read as better high."
        )
    if against:
        names = [matrix.datasets[j] for j in against]
        sentences.append(
            f"{_subject('dataset', names)} {_verb(names, 'runs', 'run')} against the others: what is high there is low "
            "elsewhere."
        )
    option = ",".join(matrix.datasets[j] for j in sorted([*named, *against]))
    option = f'"{option}"' if " " in option else option
    return " ".join([*sentences, f"If less is better, say so: --lower-is-better {option}."])


def _against(matrix: Matrix, turned: Sequence[int]) -> list[int]:
    """The columns that correlate negatively with the mean of the others, once some are turned round."""
    values = matrix.oriented()
    values[:, list(turned)] *= -1
    spread = np.nanstd(values, axis=0)
    standard = (values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0)
    found = []
    for j in range(values.shape[1]):
        others = np.delete(standard, j, axis=1)
        known = np.isfinite(standard[:, j]) & np.isfinite(others).any(axis=1)
        if known.sum() < 5 or others.shape[1] < 2:  # of two that disagree, neither is the one that is turned round
            continue
        mean = np.nanmean(others[known], axis=1)
        mine = standard[known, j]
        if mine.std() > 0 and mean.std() > 0 and np.corrcoef(mine, mean)[0, 1] < AGAINST:
            found.append(j)
    return found


def _above_best(matrix: Matrix) -> str:
    best = np.nanmax(matrix.normalised(clip=False), axis=0)
    shown = []
    for j in np.flatnonzero(best > ABOVE_BEST):
        column = matrix.values[:, j]
        reached = np.nanmax(column) if matrix.best[j] > matrix.chance[j] else np.nanmin(column)
        shown.append(f"{quoted(matrix.datasets[j])} (best {matrix.best[j]:g}, reached {reached:g})")
    if not shown:
        return ""
    return f"Scores pass the best possible value of {first_of(shown, 6)}: correct it with --best, or the scores."


def _constant(matrix: Matrix) -> str:
    flat = [
        name
        for name, column in zip(matrix.datasets, matrix.values.T, strict=True)
        if np.nanmax(column) - np.nanmin(column) <= 1e-12 * max(1.0, float(np.nanmax(np.abs(column))))
    ]
    if not flat:
        return ""
    return (
        f"{_subject('dataset', flat)} {_verb(flat, 'gives', 'give')} every model the same score: similar to nothing, "
        "related to nothing, and no help in ranking models."
    )


def _below_chance(matrix: Matrix) -> str:
    raw = matrix.normalised(clip=False)
    below = np.nanmean(np.where(np.isfinite(raw), raw < 0, np.nan), axis=0)
    low = [name for name, share in zip(matrix.datasets, below, strict=True) if share > BELOW_CHANCE]
    if not low:
        return ""
    return (
        f"{_subject('dataset', low)} {_verb(low, 'has', 'have')} more than {BELOW_CHANCE:.0%} of the scores below "
        "chance; they count as chance, so these models tie there: check the chance level and the direction."
    )


def _averages(matrix: Matrix, values: Floats) -> str:
    by_value = [matrix.datasets[j] for j in average_columns(values)]
    by_name = [name for name in matrix.datasets if _MEANS.search(name) and name not in by_value]
    sentences = []
    if by_value:
        sentences.append(
            f"{_subject('dataset', by_value)} {_verb(by_value, 'is', 'are')} the average of the others: it represents "
            "them by construction, so leave it out before you look for a representative subset."
        )
    if by_name:
        sentences.append(
            f"{_subject('dataset', by_name)} {_verb(by_name, 'sounds', 'sound')} like a summary of others and not like "
            "a dataset; leave it out if it is one."
        )
    return " ".join(sentences)


def _twin_datasets(matrix: Matrix, values: Floats) -> str:
    pairs = [
        f"{quoted(matrix.datasets[i])} and {quoted(matrix.datasets[j])}"
        for i, j in near_duplicates(values.T, 1e-9)
        if np.ptp(values[np.isfinite(values[:, i]), i]) > 0
    ]
    if not pairs:
        return ""
    more = f" (and {counted(len(pairs) - 3, 'more pair')})" if len(pairs) > 3 else ""
    return f"The datasets {'; '.join(pairs[:3])}{more} have the same scores; one of them is redundant."


def _leaks(matrix: Matrix, values: Floats) -> str:
    pairs = near_duplicates(values)
    if not pairs:
        return ""
    models = {place for pair in pairs for place in pair}
    across = {place for pair in pairs if matrix.families[pair[0]] != matrix.families[pair[1]] for place in pair}
    i, j = pairs[0]
    sentence = (
        f"{len(models)} of {counted(len(matrix.models), 'model')} have a near-duplicate (scores within {TWIN:g}, for "
        f"example {quoted(matrix.models[i])} and {quoted(matrix.models[j])}): a random split of the models leaks their "
        "answers, so hold out whole families."
    )
    if across and matrix.grouped:
        sentence += (
            f" {counted(len(across), 'model')} have one in another family, so grouped results are still too optimistic."
        )
    elif across:
        sentence += " No families are given."
    return sentence


def _subject(kind: str, names: Sequence[str]) -> str:
    return f"The {_verb(names, kind, kind + 's')} {first_of([quoted(name) for name in names], 6)}"


def _verb(subjects: Sequence[object], one: str, many: str) -> str:
    return one if len(subjects) == 1 else many
