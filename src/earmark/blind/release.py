"""From exact scores to what may be known of them: the only way out of the host's side.

    exact table --> the rows of the policy, nothing else --> grid --> Ladder --> rows of the board

The Ladder (Blum and Hardt, ICML 2015): a team is told a new figure of an entry only if it is better than the one it was
told before by more than a step. Otherwise the earlier figure stands, and that is all it is told. Guesses about labels
that are no better than noise then look the same as guesses that are worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from earmark._version import __version__
from earmark.blind.policy import Policy, SetTerms
from earmark.blind.steps import BASELINE_PARTS, around, on_grid, rises_above
from earmark.errors import InputError
from earmark.scores import Row, Scores, metric_facts
from earmark.scores.spelling import without_samples
from earmark.wording import counted

__all__ = ["Figure", "Release", "measured_figures", "release"]

Figure = tuple[str, str]
"""A set and a metric."""
NO_VALUE = "the metric is not defined for this system as it was submitted"
NO_INTERVAL = "no interval could be measured, and no figure leaves without one"
OUTWEIGHED = "one clip lies so far from all others that the figure would hang on its label"
_INTERVALS = ("jackknife",)
_UNITS = ("clip", "group")


@dataclass(frozen=True)
class Release:
    """The rows that may leave, and which of their figures are told for the first time."""

    rows: tuple[Row, ...]
    fresh: frozenset[Figure]

    @property
    def message(self) -> str:
        """What the participant is told: fixed words and the number of new figures."""
        standing = len(self.rows) - len(self.fresh)
        if not standing:
            return "Released: every figure is given for the first time."
        why = "not better than the figure before by more than a step, so that the figure before stands"
        if not self.fresh:
            return f"Released without a new figure: each is {why}."
        verb = "is" if len(self.fresh) == 1 else "are"
        others = "the other" if standing == 1 else "each of the others"
        return f"Released: {counted(len(self.fresh), 'figure')} {verb} new, {others} is {why}."


def release(policy: Policy, exact: Scores, history: Mapping[Figure, Row], *, board: str, entry: str) -> Release:
    """What a policy lets out of exact scores.

    Args:
        policy: The rules, with the step of each figure.
        exact: The measured table. Of its rows only those of the policy's sets and metrics are looked at.
        history: The row last released of each figure to the same team under the same entry; empty for a first release.
        board: The board, for the column `suite`.
        entry: The system's name on the board.

    Raises:
        InputError: A figure of the policy was not measured, or more than once. Then nothing leaves.
    """
    rows: list[Row] = []
    fresh: set[Figure] = set()
    for figure, measured in measured_figures(policy, exact).items():
        terms = policy.sets[figure[0]]
        step, earlier = terms.steps[figure[1]], history.get(figure)
        if earlier is not None and not _climbs(measured, earlier, step):
            rows.append(earlier)
            continue
        rows.append(replace(_released(measured, terms, step), suite=board, system=entry))
        fresh.add(figure)
    return Release(tuple(rows), frozenset(fresh))


def measured_figures(policy: Policy, exact: Scores) -> dict[Figure, Row]:
    """The measured row of every figure that the policy releases; InputError where one is missing or there twice."""
    figures = [(terms.name, metric) for terms in policy.sets.values() for metric in terms.steps]
    if not figures:
        raise InputError("The policy names no blind set; `earmark blind prepare` writes them into it.")
    return {figure: _measured(exact, figure) for figure in figures}


def _measured(exact: Scores, figure: Figure) -> Row:
    """The one row of a figure: over all clips, of the set as it is labelled."""
    subset, metric = figure
    found = [
        row
        for row in exact.rows
        if (row.subset, row.metric, row.protocol) == (subset, metric, "all")
        and not (without_samples(row.ablation) or row.aggregate or row.statistic or row.sampled)
    ]
    if len(found) != 1:
        told = "was not measured" if not found else "was measured more than once"
        raise InputError(f"{metric} of the blind set {subset} {told}; nothing is released.")
    return found[0]


def _climbs(measured: Row, earlier: Row, step: Decimal) -> bool:
    if not _releasable(measured) or measured.value is None:
        return False
    return earlier.value is None or rises_above(measured.value, earlier.value, step)


def _releasable(row: Row) -> bool:
    return row.status == "ok" and None not in (row.value, row.low, row.high) and row.interval in _INTERVALS


def _released(row: Row, terms: SetTerms, step: Decimal) -> Row:
    """A new row that takes from the measured one only what is on the grid, and words from short lists.

    Left behind: p-value, seconds, inputs, the number of clips that counted, the baseline's own interval and error, the
    number of units, the kind of shuffle, and every remark.
    """
    common = Row(
        subset=terms.name, distance=row.distance, correction=row.correction, metric=row.metric, n=terms.clips,
        version=__version__,
    )  # fmt: skip
    if not _releasable(row) or row.value is None or row.low is None or row.high is None:
        reason = NO_VALUE if row.status != "ok" or row.value is None else NO_INTERVAL
        reason = OUTWEIGHED if row.reason == OUTWEIGHED else reason
        return replace(common, status="not_applicable", reason=reason, n=None)
    value = on_grid(row.value, step)
    low, high = around(row.value, row.low, row.high, step, metric_facts(row.metric).range)
    unit = row.unit if row.unit in _UNITS else ""
    told = replace(common, value=value, low=low, high=high, interval=row.interval, unit=unit)
    if row.baseline is None:
        return told
    # Shuffled inside groups, labels keep what their groups tell of them: such a baseline is a figure like any other.
    baseline = on_grid(row.baseline, step / BASELINE_PARTS if row.shuffle == "clips" else step)
    lift = float(Decimal(str(value)) - Decimal(str(baseline)))
    return replace(told, baseline=baseline, lift=lift)
