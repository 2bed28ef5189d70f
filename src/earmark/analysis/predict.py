"""From scores on a few subsets to what the others will probably say, each with an interval.

The history is what is printed in the papers and whatever tables the caller has. Every row of it that is the system
asked about, or another configuration of the model behind it, is left out: nothing is predicted from itself.

A mean over subsets takes the measured ones as they are; its interval is that of the mean of the others.

A predicted row has the status `predicted`, its interval in `low` and `high`, and says in `reason` what it rests on. No
mean, rank or `Scores.value` takes it for a measurement.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import published
from earmark._version import __version__
from earmark.analysis._chance import known_chance
from earmark.analysis._naming import families_of
from earmark.analysis.intervals import LEVEL, predict_rows
from earmark.analysis.matrix import Matrix, from_scores
from earmark.analysis.sources import open_scores
from earmark.errors import InputError, UsageError, absent, quoted
from earmark.scores import VOCSIM_SUBSETS, Row, Scores, merge, metric_facts
from earmark.scores.rows import distinct
from earmark.scores.spelling import refuse_shared
from earmark.wording import counted, listed

MEANS: dict[str, tuple[str, ...]] = {
    "mean:public": tuple(subset.name for subset in VOCSIM_SUBSETS if subset.status == "public"),
    "mean:blind": tuple(subset.name for subset in VOCSIM_SUBSETS if subset.status == "blind"),
}
"""Means of VocSim that are predicted beside its subsets, and what they are means of."""

Floats = NDArray[np.float64]
Table = Scores | str | os.PathLike[str]
"""A score table, or the file of one; a file may also be a plain table of models and datasets."""

_PRINTED = ("vocsim", "codec-superb")
FEWEST_FAMILIES = 4


class _Setting(NamedTuple):
    """What is predicted together: one metric of one suite, under one correction and protocol."""

    suite: str
    correction: str
    protocol: str
    metric: str


class _Note(NamedTuple):
    """Something to say, and whom it is about ("" for everybody)."""

    who: str
    text: str


def predict(
    partial: Table,
    history: Iterable[Table] = (),
    *,
    metric: str | Iterable[str] | None = None,
    level: float = LEVEL,
    regressor: str = "ridge",
    printed: bool = True,
    with_repeats: bool = False,
    families: Mapping[str, str] | None = None,
) -> Scores:
    """The measured rows of a table, and predicted rows for the subsets of its suite that are missing.

    Predictions that are already in `partial` are made anew. What could not be predicted is said in the notes.

    Args:
        partial: A score table, or a plain table of models and datasets, with the subsets that were run.
        history: Tables of other systems on the same suite; other systems of `partial` count as history too.
        metric: Only these; a plain table needs one, which is what it measures.
        level: Share of the truth that the intervals are to hold.
        regressor: What predicts: one of those of `analyze`.
        printed: Whether the papers' results are part of the history (VocSim and Codec-SUPERB).
        with_repeats: Whether rows that repeat another system's are part of the history.
        families: By system; those of one family are never predicted from each other.

    Returns:
        The measured rows, and predicted ones with intervals.

    >>> earmark.predict("lite/scores.csv", metric="P@1").to_pandas()
    """
    chosen = [metric] if isinstance(metric, str) else list(metric or ())
    tables = [history] if isinstance(history, Scores | str | os.PathLike) else list(history)
    known_as = chosen[0] if len(chosen) == 1 else None
    (asked, kin), *others = (open_scores(table, known_as, with_repeats=with_repeats) for table in (partial, *tables))
    kin = {system: family for _, found in others for system, family in found.items()} | kin | dict(families or {})
    present = distinct(asked.rows, "metric")
    for name in chosen:
        if name not in present:
            table = "The table" if isinstance(partial, Scores) else os.fspath(partial)
            raise UsageError(absent(name, present, "metric", table))
    asked = asked.select(metric=chosen) if chosen else asked
    measured = Scores(tuple(row for row in asked if row.status != "predicted"), notes=asked.notes)
    if not any(_usable(row) for row in measured):
        raise InputError("The table has no measured value of a subset to predict from.")
    notes: list[_Note] = []
    mine, *theirs = (_with_known_suites(table, notes) for table in (measured, *(table for table, _ in others)))
    suites = dict.fromkeys(row.suite for row in mine if _usable(row)) if printed else ()
    papers = [published.load(suite, with_repeats=with_repeats) for suite in suites if suite in _PRINTED]
    past = merge(mine, *theirs, *papers, on_conflict="last")
    for suite in {row.suite for row in past}:
        refuse_shared((row.subset for row in past if row.suite == suite and _usable(row)), "datasets")
    # The model behind each system: as the caller says, as the papers know it, or by the system's name.
    suite_of: dict[str, str] = {}
    for row in past:
        suite_of.setdefault(row.system, row.suite)
    kinship = {system: kin.get(system, families_of(suite, [system])[system]) for system, suite in suite_of.items()}
    added: list[Row] = []
    for setting in dict.fromkeys(_setting(row) for row in mine if _usable(row)):
        added += _of_setting(setting, mine, past, kinship, level, regressor, notes)
    filled = {row.key for row in mine if row.value is not None}
    fresh = [row for row in added if row.key not in filled]
    replaced = {row.key for row in fresh}
    if not fresh and not notes:
        notes.append(_Note("", "Nothing was predicted: every subset that the history knows is measured."))
    kept = [row for row in mine if row.key not in replaced]
    return Scores((*kept, *fresh), notes=(*asked.notes, *_grouped(notes)))


def _grouped(notes: Sequence[_Note]) -> list[str]:
    """One sentence for each thing that is said, with everybody whom it is about in front."""
    about: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        about.setdefault(note.text, []).append(note.who)
    sentences = []
    for text, whom in about.items():
        names = [name for name in whom if name]
        shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
        sentences.append(f"{'; '.join(shown)}: {text}" if shown else text)
    return sentences


def _usable(row: Row) -> bool:
    return row.status == "ok" and row.value is not None and row.single and not row.statistic


def _setting(row: Row) -> _Setting:
    return _Setting(row.suite, row.correction, row.protocol, row.metric)


def _with_known_suites(table: Scores, notes: list[_Note]) -> Scores:
    """The rows under the suite's own name: `vocsim:BS1` is `vocsim`, and so is a copy whose subsets are VocSim's."""
    by_suite: dict[str, set[str]] = {}
    for row in table:
        if _usable(row):
            by_suite.setdefault(row.suite, set()).add(row.subset)
    names = {}
    for suite, subsets in by_suite.items():
        short = suite.partition(":")[0]
        if short in _PRINTED:
            names[suite] = short
        elif subsets <= {subset.name for subset in VOCSIM_SUBSETS}:
            names[suite] = "vocsim"
            what = f"The suite {quoted(suite)}" if suite else "A table without a suite"
            notes.append(_Note("", f"{what} has only subsets of VocSim and is taken for it."))
    rows = (replace(row, suite=names.get(row.suite, row.suite)) for row in table if row.status != "predicted")
    return Scores(tuple(rows))


# --- one metric of one suite ------------------------------------------------------------------------------------


def _of_setting(
    setting: _Setting,
    measured: Scores,
    past: Scores,
    families: Mapping[str, str],
    level: float,
    regressor: str,
    notes: list[_Note],
) -> Iterator[Row]:
    """Predicted rows of every system of a setting, under each of its distances."""
    rows = [row for row in past if _usable(row) and _setting(row) == setting]
    chance = known_chance(dict.fromkeys(row.subset for row in rows), setting.metric)
    matrix = from_scores(Scores(tuple(rows)), setting.metric, families=families, chance=chance or None)
    mine: dict[tuple[str, str], dict[str, float]] = {}
    for row in measured:
        if _usable(row) and _setting(row) == setting and row.value is not None:
            mine.setdefault((row.system, row.distance), {})[row.subset] = row.value
    for (system, distance), values in mine.items():
        others = np.flatnonzero(np.array(matrix.families) != families[system])
        history = _with_missing(matrix.take(models=others).present(), setting, values)
        row = Row(
            suite=setting.suite, system=system, distance=distance, correction=setting.correction,
            protocol=setting.protocol, metric=setting.metric, status="predicted", version=__version__,
        )  # fmt: skip
        yield from _predicted(row, history, values, level, regressor, notes)


def _with_missing(matrix: Matrix, setting: _Setting, values: Mapping[str, float]) -> Matrix:
    """The history with a further column for each mean of VocSim: the mean of those of its subsets that were not
    measured, which is all of it that has to be predicted. It is missing where one of them is."""
    for name, members in MEANS.items() if setting.suite == "vocsim" else ():
        missing = [member for member in members if member not in values]
        if missing and set(missing) <= set(matrix.datasets):
            places = [matrix.datasets.index(member) for member in missing]
            matrix = replace(
                matrix,
                values=np.column_stack([matrix.values, matrix.values[:, places].mean(axis=1)]),
                datasets=(*matrix.datasets, name),
                higher_is_better=(*matrix.higher_is_better, matrix.higher_is_better[0]),
                chance=np.append(matrix.chance, matrix.chance[places].mean()),
                best=np.append(matrix.best, matrix.best[places].mean()),
            )
    return matrix


def _predicted(
    row: Row, past: Matrix, values: Mapping[str, float], level: float, regressor: str, notes: list[_Note]
) -> Iterator[Row]:
    """Predicted rows of one system under one distance: `row` with the subset, value and interval of each."""
    who = f"{row.system or 'the system'}{f' under {row.distance}' if row.distance else ''}, {row.metric}"
    features = _features(past, values)
    known = np.isfinite(features)
    past = past.take(models=np.flatnonzero(np.isfinite(past.values[:, known]).all(axis=1)))
    count = len(set(past.families)) if known.any() else 0
    if count < FEWEST_FAMILIES:
        text = (
            f"the history has {counted(count, 'other model')} with these subsets of "
            f"{row.suite or 'this suite'}, and {FEWEST_FAMILIES} are needed; give tables with --history."
        )
        notes.append(_Note(who, text))
        return
    found = predict_rows(past, features[None], regressor=regressor, level=level)
    used = [name for name, value in zip(past.datasets, features, strict=True) if np.isfinite(value)]
    about = (
        f"predicted from {listed(used)} by {regressor} regression over "
        f"{counted(len(past.models), 'configuration')} of {counted(count, 'other model')}"
    )
    row = replace(row, inputs=_fingerprint(past, features, level, regressor))
    ends = metric_facts(row.metric).range
    places = [j for j, name in enumerate(past.datasets) if name not in values and np.isfinite(found.value[0, j])]
    for place in places:
        name = past.datasets[place]
        held = f"{100 * float(found.supported[0, place]):.0f} % interval, whole models held out"
        value, low, high = (float(np.clip(part[0, place], *ends)) for part in (found.value, found.low, found.high))
        if name in MEANS and (here := [values[member] for member in MEANS[name] if member in values]):
            # What was measured counts as it is: only the mean of the rest is predicted, and only it is in doubt.
            wanted = len(MEANS[name])
            value, low, high = ((sum(here) + (wanted - len(here)) * part) / wanted for part in (value, low, high))
            held = f"{len(here)} of its {wanted} subsets as measured, the others predicted; {held}"
        yield replace(row, subset=name, value=value, low=low, high=high, reason=f"{about}; {held}")
    if places:
        _note_strangers(who, values, past, used, notes)


def _features(past: Matrix, values: Mapping[str, float]) -> Floats:
    """The measured subsets to predict from, NaN elsewhere.

    A subset that few of the history's models have would cost all the others: it is left out if at most half as many
    have it as have the best known one. So is a mean of subsets, which is no further measurement.
    """
    if not past.models:
        return np.full(len(past.datasets), np.nan)
    known = np.isfinite(past.values).mean(axis=0)
    given = [name in values and name not in MEANS for name in past.datasets]
    enough = 0.5 * float(known[given].max()) if any(given) else 0.0
    return np.array(
        [
            values[name] if mine and share >= enough else np.nan
            for name, mine, share in zip(past.datasets, given, known, strict=True)
        ]
    )


def _note_strangers(
    who: str, values: Mapping[str, float], past: Matrix, used: Sequence[str], notes: list[_Note]
) -> None:
    unknown = [name for name in values if name not in used]
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        notes.append(_Note(who, f"{listed(unknown)} {verb} in too little of the history and not used."))
    beyond = []
    for name in used:
        column = past.values[:, past.datasets.index(name)]
        low, high = np.nanmin(column), np.nanmax(column)
        if not low - 1e-9 <= values[name] <= high + 1e-9:
            beyond.append(f"{values[name]:.3f} on {name}, where the history has {low:.3f} to {high:.3f}")
    if beyond:
        text = "outside everything in the history, so predictions are extrapolated, and the intervals do not know it."
        notes.append(_Note(f"{who} ({'; '.join(beyond)})", text))


def _fingerprint(past: Matrix, features: Floats, level: float, regressor: str) -> str:
    """A hash of everything the predictions depend on."""
    digest = hashlib.sha256(f"predict {__version__} {level!r} {regressor}\n".encode())
    for names in (past.models, past.datasets, past.families):
        digest.update("\0".join(names).encode() + b"\n")
    for array in (past.values, past.chance, past.best, features):
        digest.update(np.ascontiguousarray(array, np.float64).tobytes())
    return digest.hexdigest()
