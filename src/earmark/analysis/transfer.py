"""Does the geometry predict usefulness? Rank correlations of training-free measures with probes, across systems.

    predictor   P@1, P@5, GSR, their lift over chance, hubness: of the same clips, or averaged over other subsets
    outcome     what a probe, a listener or a printed table says of the same systems

Systems that share a model (poolings, PCA sizes, layers, distances of it) score alike and are no independent witnesses:
they are one unit. The interval is of Spearman's rho on Fisher's scale:

    every unit one system      se^2 = (1 + rho^2 / 2) / (n - 3), normal quantiles (Bonett and Wright)
    units of several systems   the delete-one-unit jackknife, but no less than the se above; Student's t

A rho of 1 in few systems is taken half-way to the next lower value that n ranks can have: what was seen to agree fully
may not agree fully. The p-value is read off the same curve as the interval. `docs/transfer.md` has their coverage by
simulation.

Bonett & Wright, Psychometrika 65(1), 2000.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.analysis._naming import families_of
from earmark.analysis.similarities import kendall, rank_correlations
from earmark.calibrate.jackknife import standard_error
from earmark.errors import InputError
from earmark.published.families import Level
from earmark.scores import Row, Scores, aggregate, metric_facts
from earmark.scores.spelling import without_samples
from earmark.wording import counted, first_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PREDICTORS = ("P@1", "P@5", "GSR", "P@1 lift", "GSR lift", "hub_ratio", "hub_skew")
"""What is asked to predict, where a table has it. `lift` is the value above chance."""
OUTCOMES = ("accuracy", "top5_accuracy", "mean_average_precision", "choice_accuracy", "triplet_accuracy")
"""What is predicted."""
FEWEST = 5
"""Systems below which ranks agree or disagree by chance."""
FEWEST_UNITS = 6
"""Units of several systems that the jackknife needs."""
SAME = "same clips"
_PRINTED_SIZE = re.compile(r"\s*\(D=(\d+)\)\Z")
_FILE = re.compile(r"(?P<folder>(?:.*[/\\])?)(?P<stem>[^/\\]+)\.(npz|npy|csv|parquet)", re.IGNORECASE)
_COMMON_FILES = frozenset("vectors vector embeddings embedding features distances data out output".split())
_PRINTED_CODES = {"CLAP": "CLP"}
_QUANTILE = 1.959963984540054
_DIGITS = 12  # values that differ by rounding alone are equal


@dataclass(frozen=True)
class Witness:
    """A system that has both values; those of one `unit` share a model."""

    system: str
    distance: str
    unit: str
    predictor: float
    outcome: float


@dataclass(frozen=True)
class Relation:
    """How a predictor and an outcome go together across systems; `reason` says what is missing."""

    predictor: str
    distance: str
    protocol: str
    over: str
    suite: str
    subset: str
    outcome: str
    task: str
    witnesses: tuple[Witness, ...]
    units: int
    rho: float | None = None
    tau: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    interval: str = ""
    reason: str = ""

    @property
    def expected(self) -> int:
        """The sign of the correlation if the predictor is worth something."""
        rises = (
            metric_facts(self.predictor.removesuffix(" lift")).higher_is_better
            == metric_facts(self.outcome).higher_is_better
        )
        return 1 if rises else -1

    @property
    def title(self) -> str:
        """The predictor with its distance and what it was measured on."""
        return f"{self.predictor} under {self.distance}" if self.distance else self.predictor

    @property
    def target(self) -> str:
        """The outcome in words: data, measure, how it was had."""
        name = self.subset if self.suite in ("", self.subset) else f"{self.suite}/{self.subset}"
        return ", ".join(filter(None, [name, self.outcome, "" if self.task == "all" else self.task]))


def transfer(
    geometry: Scores, outcomes: Scores | None = None, *, predictors: Sequence[str] = PREDICTORS,
    over: Sequence[str] = (), families: Mapping[str, str] | None = None, level: Level = "model",
) -> tuple[Relation, ...]:  # fmt: skip
    """Every relation between a predictor and an outcome that some systems have both of, best-known pairs first.

    Args:
        geometry: Score table with the predictors.
        outcomes: Score table with what is to be predicted; None: the rows of probes in `geometry`.
        predictors: Metrics, and `<metric> lift`.
        over: Rules that average a predictor over subsets, such as public or domain:birdsong; none: the subset that the
            outcome was measured on, or the mean of all where that subset has no predictor.
        families: The model of each system; None: read from their names; an empty one: each system by itself.
        level: Of names of the papers: whether poolings of one model are one unit ("model") or not ("method").

    Raises InputError where there is nothing to predict, or nothing to predict it by.
    """
    observed = outcomes_of(geometry if outcomes is None else outcomes)
    if not observed:
        raise InputError(
            "There is nothing to predict: no row of a probe with a value. Add probes to the run (`earmark run --probe "
            "linear`), or give a table that has them."
        )
    columns = _predictor_columns(geometry, predictors)
    if not columns:
        raise InputError(f"The table has none of {', '.join(predictors)}: there is nothing to predict by.")
    units = _units_of((row for rows in observed.values() for row in rows), families, level)
    relations = [
        _relation(column, where, remark, key, witnesses)
        for key, rows in observed.items()
        for rule in over or ("",)
        for column, where, remark in _averaged(columns, key[:2], rule)
        for witnesses in _witnesses(column, rows, units)
    ]
    if not relations:
        sides = [column.rows for column in columns], list(observed.values())
        systems = (list(dict.fromkeys(spelled(row.system) for rows in side for row in rows)) for side in sides)
        known, asked = (first_of(names, 3) for names in systems)
        raise InputError(
            f"No system has both a predictor and an outcome: predictors are of {known}, outcomes of {asked}; name "
            "systems alike with --system NAME where they are measured."
        )
    return tuple(relations)


def outcomes_of(scores: Scores) -> dict[tuple[str, str, str, str], list[Row]]:
    """The rows that external validation gave, by (suite, subset, metric, protocol)."""
    observed: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in scores:
        if row.metric in OUTCOMES and row.single and row.status == "ok" and row.value is not None:
            observed.setdefault((row.suite, row.subset, row.metric, row.protocol), []).append(row)
    return observed


def relation_rows(relations: Iterable[Relation]) -> Scores:
    """Relations as rows of a score table: metric `transfer_spearman`, the predictor as system."""
    rows = []
    for item in relations:
        status = "ok" if item.rho is not None else "not_applicable"
        rows.append(
            Row(
                suite=item.suite, subset=item.subset, system=f"{item.predictor} ({item.over})", distance=item.distance,
                protocol=f"{item.protocol} -> {item.outcome} {item.task}".strip(), metric="transfer_spearman",
                value=item.rho, low=item.low, high=item.high, p_value=item.p_value, n=len(item.witnesses),
                interval=item.interval, unit="model" if item.interval else "", units=item.units or None,
                status=status, reason=item.reason, version=__version__,
            )
        )  # fmt: skip
    return Scores(tuple(rows))


def verdict(relations: Sequence[Relation]) -> list[str]:
    """What the numbers say about the claim that geometry predicts usefulness, a plain sentence each."""
    known = [item for item in relations if item.p_value is not None]
    sentences = []
    level = 0.05 / max(len(known), 1)
    if known:
        beyond = [(item.rho or 0.0) * item.expected > 0 for item in known if (item.p_value or 0.0) < level]
        against = f", {beyond.count(False)} the other way" if False in beyond else ""
        sentences.append(
            f"Of {counted(len(known), 'relation')} that can be judged, {beyond.count(True)} point the expected way "
            f"beyond chance{against} (p < .05, corrected for their number)."
        )
    for target in dict.fromkeys(item.target for item in known):
        own = [item for item in known if item.target == target]
        lead = next((item for item in own if item.predictor == "P@1"), own[0])
        sentences.append(_sentence(lead, level))
        best = max(own, key=lambda item: (item.rho or 0.0) * item.expected)
        if best is not lead:
            sentences.append(
                f"The closest of {counted(len(own), 'predictor')} is {best.title} ({best.over}) with "
                f"{best.rho:+.2f}; chosen afterwards, it promises more than it will keep."
            )
    judged = {item.target for item in known}
    for suite in dict.fromkeys(item.suite for item in relations):
        own = [item for item in relations if item.suite == suite and item.target not in judged]
        if own:
            sentences.append(_open_sentence(suite, own))
    return sentences


def _open_sentence(suite: str, relations: Sequence[Relation]) -> str:
    """Why nothing can be said of the outcomes of a suite, and what was seen all the same."""
    targets = counted(len({item.target for item in relations}), "outcome")
    most = max(relations, key=lambda item: (item.rho is not None, len(item.witnesses)))
    seen = [item.rho for item in relations if item.rho is not None]
    values = f"; Spearman lies between {min(seen):+.2f} and {max(seen):+.2f}" if seen else ""
    return f"Nothing certain can be said of {targets} of {suite or 'the table'}: {most.reason}{values}."


def _sentence(item: Relation, level: float) -> str:
    rho = (item.rho or 0.0) * item.expected
    seen = f"Spearman {item.rho:+.2f} [{item.low:+.2f}, {item.high:+.2f}]"
    among = f"{counted(len(item.witnesses), 'system')} of {counted(item.units, 'model')}"
    if not (item.p_value or 0.0) < level:
        strength = "says nothing certain about"
        if (item.p_value or 0.0) < 0.05:
            among += ", not beyond what so many relations give by chance"
    elif rho < 0:
        strength = "runs against"
    else:
        strength = "goes closely with" if rho >= 0.8 else "goes with" if rho >= 0.5 else "goes a little with"
    return f"{item.title} ({item.over}) {strength} {item.target}: {seen} across {among}."


# --- columns of values -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """One predictor under one protocol: rows of subsets, or their means."""

    predictor: str
    protocol: str
    rows: tuple[Row, ...]


def _predictor_columns(geometry: Scores, predictors: Sequence[str]) -> list[_Column]:
    columns: dict[tuple[str, str], list[Row]] = {}
    for name in predictors:
        metric = name.removesuffix(" lift")
        for row in geometry:
            value = row.value if name == metric else row.lift
            usable = row.metric == metric and row.status == "ok" and row.single and not without_samples(row.ablation)
            if usable and value is not None and not row.statistic:
                columns.setdefault((name, row.protocol), []).append(_of_key(row, value))
    return [_Column(*key, tuple(rows)) for key, rows in columns.items()]


def _of_key(row: Row, value: float) -> Row:
    """The row with nothing but its names and this value."""
    return Row(
        suite=row.suite, subset=row.subset, system=row.system, distance=row.distance, correction=row.correction,
        protocol=row.protocol, metric=row.metric, value=value,
    )  # fmt: skip


def _averaged(columns: Sequence[_Column], subset: tuple[str, ...], rule: str) -> Iterator[tuple[_Column, str, str]]:
    """Each predictor on the subset of the outcome, or averaged; what it was measured on, and who is left out."""
    for column in columns:
        own = tuple(row for row in column.rows if (row.suite, row.subset) == subset)
        if own and not rule:
            yield replace(column, rows=own), SAME, ""
            continue
        rows, remark = list(column.rows), ""
        if not rule:
            rows, remark = _on_all_subsets(rows)
        means = tuple(aggregate(Scores(tuple(rows)), rule or "mean"))
        where = f"mean of {rule or counted(len({row.subset for row in rows}), 'subset')}"
        yield replace(column, rows=means), where, remark


def _on_all_subsets(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows of the systems that have every subset: means over different subsets say nothing of systems."""
    subsets = {(row.suite, row.subset) for row in rows}
    owned: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in rows:
        owned.setdefault((row.system, _measure(row)), set()).add((row.suite, row.subset))
    short = {key for key, own in owned.items() if own != subsets}
    remark = f"{counted(len(short), 'system')} without a value on every subset left out" if short else ""
    return [row for row in rows if (row.system, _measure(row)) not in short], remark


def spelled(system: str) -> str:
    """One spelling of a configuration that tables print in several: `EF (D=100)` is `EF D100`, and the file
    `out/mfcc.npz` is `mfcc`. A folder stays before a name that every system's file may have (`mfcc/vectors.npz`)."""
    name = _PRINTED_SIZE.sub(r" D\1", system.strip())
    file = _FILE.fullmatch(name)
    if file:
        name = file["stem"] if file["stem"].lower() not in _COMMON_FILES else f"{file['folder']}{file['stem']}"
    return _PRINTED_CODES.get(name, name)


def _measure(row: Row) -> str:
    """Distance and correction in a word or two."""
    return row.distance if row.correction == "none" else f"{row.distance} {row.correction}"


def _witnesses(
    column: _Column, outcomes: Sequence[Row], units: Mapping[str, str]
) -> Iterator[tuple[str, tuple[Witness, ...]]]:
    """The distance and the systems that have both values: an outcome that has a distance meets the predictor under
    that distance; one without, the predictor under each distance in turn."""
    known = _by_system(column.rows, column.predictor)
    observed = _by_system(outcomes, outcomes[0].metric)
    distances = [""] if any(row.distance for row in outcomes) else dict.fromkeys(distance for _, distance in known)
    for distance in distances:
        found = tuple(
            Witness(system, distance or way, units[system], known[system, distance or way], value)
            for (system, way), value in observed.items()
            if (system, distance or way) in known
        )
        if found:
            yield distance, found


def _by_system(rows: Iterable[Row], what: str) -> dict[tuple[str, str], float]:
    """Values by system and distance; two for one of them are refused."""
    values: dict[tuple[str, str], float] = {}
    for row in rows:
        key = spelled(row.system), _measure(row)
        if row.value is None:
            continue
        if key in values:
            raise InputError(f"{' '.join(key).strip()} has two values of {what}: merge the tables first.")
        values[key] = row.value
    return values


def _units_of(rows: Iterable[Row], families: Mapping[str, str] | None, level: Level) -> dict[str, str]:
    """The model of each system; every system of a given mapping must be named, unless it is empty: each by itself."""
    systems = list(dict.fromkeys(spelled(row.system) for row in rows))
    if families is None:
        return families_of("vocsim", systems, level)
    if not families:
        return {name: name for name in systems}
    given = {spelled(name): family for name, family in families.items()}
    unknown = [name for name in systems if name not in given]
    if unknown:
        raise InputError(
            f"The families do not name {counted(len(unknown), 'system')} (first: {unknown[0]}): give each one a family."
        )
    return {name: given[name] for name in systems}


# --- one relation ----------------------------------------------------------------------------------------------------


def _relation(
    column: _Column, where: str, remark: str, key: tuple[str, str, str, str], found: tuple[str, tuple[Witness, ...]]
) -> Relation:
    distance, witnesses = found
    suite, subset, outcome, task = key
    x = np.round([item.predictor for item in witnesses], _DIGITS)
    y = np.round([item.outcome for item in witnesses], _DIGITS)
    labels = np.unique([item.unit for item in witnesses], return_inverse=True)[1]
    units = int(labels.max()) + 1
    names = column.predictor, distance, column.protocol, where, suite, subset, outcome, task, witnesses, units
    if len(x) < FEWEST:
        reason = f"{counted(len(x), 'system')} with both values, and {FEWEST} are needed"
        return Relation(*names, reason="; ".join(filter(None, [reason, remark])))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = f"the {'predictor' if np.ptp(x) == 0 else 'outcome'} is the same for all systems"
        return Relation(*names, reason=reason)
    rho, tau = float(rank_correlations(x[:, None], y[:, None])[0, 0]), float(kendall(x[:, None], y[:, None])[0, 0])
    low, high, p_value, interval, reason = rho_interval(x, y, labels)
    return Relation(*names, rho, tau, low, high, p_value, interval, "; ".join(filter(None, [reason, remark])))


def rho_interval(x: Floats, y: Floats, units: Ints) -> tuple[float | None, float | None, float | None, str, str]:
    """Interval and p-value of Spearman's rho, how they were made, or why there are none; units are numbered."""
    from scipy.special import ndtr, stdtr, stdtrit

    n, count = len(x), int(units.max()) + 1
    middle = _on_fisher_scale(x, y)
    error = math.sqrt((1.0 + math.tanh(middle) ** 2 / 2.0) / (n - 3))
    if count == n:
        reach, p_value, interval = _QUANTILE * error, 2.0 * float(ndtr(-abs(middle) / error)), "fisher"
    elif count < FEWEST_UNITS:
        few = "all systems are versions of one model" if count == 1 else f"{count} models are too few"
        return None, None, None, "", f"no interval: {few}, and {FEWEST_UNITS} are needed"
    else:
        kept = [units != unit for unit in range(count)]
        if any(np.ptp(x[rows]) == 0 or np.ptp(y[rows]) == 0 for rows in kept):
            return None, None, None, "", "no interval: without one of the models nothing differs"
        error = max(error, standard_error(np.array([_on_fisher_scale(x[rows], y[rows]) for rows in kept])))
        reach, interval = float(stdtrit(count - 1, 0.975)) * error, "jackknife"
        p_value = 2.0 * float(stdtr(count - 1, -abs(middle) / error))
    return math.tanh(middle - reach), math.tanh(middle + reach), p_value, interval, ""


def _on_fisher_scale(x: Floats, y: Floats) -> float:
    n = len(x)
    most = 1.0 - 6.0 / (n * (n * n - 1.0))
    rho = float(rank_correlations(x[:, None], y[:, None])[0, 0])
    return math.atanh(min(max(rho, -most), most))
