"""SimBA's Tables 1 to 6 for any matrix, in the layout in which the paper prints them.

One study gives a table of one benchmark; several, by name, stand side by side as in the paper. What the paper does not
have and a reader needs, the training mean, is a line of its own with a footnote that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from earmark.analysis.pounce import Pounce
from earmark.analysis.sources import PREFIX
from earmark.analysis.stalk import KINDS
from earmark.analysis.study import WITHOUT_GAPS, Study
from earmark.report.analysis._sentences import size
from earmark.tables import MISSING, Cell, Column, NumberFormat, Table

Studies = Study | Mapping[str, Study]

TABLES = ("text", "markdown", "latex", "csv")
"""How the tables can be written."""

_ORDERS = {
    "random": "RANDOM",
    "greedy_min": "GREEDY MINIMUM",
    "greedy_max": "GREEDY MAXIMUM",
    "pearson": "PEARSON",
    "spearman": "SPEARMAN",
    "kendall": "KENDALL-TAU",
    "cosine": "COSINE",
    "manhattan": "MANHATTAN",
    "euclidean": "EUCLIDEAN",
    "minkowski": "MINKOWSKI (P=3)",
    "wasserstein": "WASSERSTEIN",
    "jensen_shannon": "JENSEN-SHANNON",
}
_REGRESSORS = {
    "ridge": "RIDGE",
    "knn": "KNN",
    "mlp12": "MLP (1 layer)",
    "mlp12_12": "MLP (2 layer)",
    "mean": "TRAINING MEAN",
}
_TITLES = {
    "simba_table1": "Table 1. Pairs of datasets by how their scores relate (stalk)",
    "simba_table2": "Table 2. Pairs of models by how their scores relate (stalk)",
    "simba_table3": "Table 3. Growing subsets of the datasets (prowl): SCAUC is the area under the coverage curve, "
    "|S*| the first size with a coverage of 0.95",
    "simba_table4": "Table 4. Predicting the datasets that are not run (pounce): AUC-MSE is the area under the curve "
    "of mean squared errors",
    "simba_table5": "Table 5. The same with noise on the training scores",
    "simba_table6": "Table 6. Share of random orders that cover no better, over the whole curve (AUC) and up to "
    "max(2, |S*|) datasets (Max2)",
}
_THREE = NumberFormat(3)
_NO_MEAN = "The training mean looks at nothing the new model did; the paper does not print it."


def paper_tables(studies: Studies, *, exact: bool = False) -> dict[str, Table]:
    """Those of the six tables that the studies have the numbers for, by name: `simba_table1` ... `simba_table6`.

    Args:
        studies: One study, or several by the names of their benchmarks.
        exact: Numbers with every digit, for CSV; otherwise as they are printed, the best of a column bold.
    """
    by_name = _by_name(studies)
    missing = missing_tables(studies)
    made: dict[str, Callable[[Mapping[str, Study]], tuple[list[Column], list[list[Any]], list[str]]]] = {
        "simba_table1": lambda all_: _relations(all_, "datasets"),
        "simba_table2": lambda all_: _relations(all_, "models"),
        "simba_table3": _orders,
        "simba_table4": _errors,
        "simba_table5": _noise,
        "simba_table6": _beaten,
    }
    tables = {}
    for name, make in made.items():
        if name not in missing:
            columns, rows, notes = make(by_name)
            lines = rows if exact else _printed(columns, rows)
            sources = " beside ".join(f"{label} ({size(study)})" for label, study in by_name.items())
            tables[name] = Table(columns, lines, f"{_TITLES[name]}. {sources}", notes)
    return tables


def missing_tables(studies: Studies) -> dict[str, str]:
    """Why a table is not there, by its name."""
    every = list(_by_name(studies).values())
    reasons: dict[str, str] = {}
    if any(study.pounce is None for study in every):
        why = next((w for study in every for w in study.warnings if w.startswith("No predictions")), "no predictions.")
        reasons |= {"simba_table4": why, "simba_table5": why}
    elif not all(study.noise for study in every):
        reasons["simba_table5"] = "no noise was asked for: add --noise 0.05,0.1 or --paper."
    if not all(study.prowl.random.scauc.size for study in every):
        reasons["simba_table6"] = "there are no random orders to compare with: leave out --random-orders 0."
    return reasons


def tables_text(studies: Studies, form: str = "text") -> list[str]:
    """Every table that is there, as text, markdown, latex or csv."""
    tables = paper_tables(studies, exact=form == "csv")
    if form == "latex":
        return [table.to_latex(label=f"tab:{name}") for name, table in tables.items()]
    writers: dict[str, Callable[[Table], str]] = {
        "text": Table.to_text,
        "markdown": Table.to_markdown,
        "csv": Table.to_csv,
    }
    return [writers[form](table) for table in tables.values()]


# --- the six --------------------------------------------------------------------------------------------------------


def _relations(studies: Mapping[str, Study], side: str) -> tuple[list[Column], list[list[Any]], list[str]]:
    counts = [getattr(study.stalk, side).counts for study in studies.values()]
    rows: list[list[Any]] = [[kind, *(count[kind] for count in counts)] for kind in KINDS]
    rows.append(["Total", *(sum(count.values()) for count in counts)])
    return [Column("Relationships", "left"), *(Column(name) for name in studies)], rows, []


def _orders(studies: Mapping[str, Study]) -> tuple[list[Column], list[list[Any]], list[str]]:
    drawn = {len(study.prowl.random.scauc) for study in studies.values()}
    rows = _by_order(studies, ("scauc", "size"))
    for row in rows:
        if row[0] == "RANDOM" and len(drawn) == 1:
            row[0] = f"RANDOM (n = {drawn.pop()})"
    return _columns(studies, ("SCAUC (↑)", "|S*| (↓)"), "Similarity Methods"), rows, _covered(studies)


def _errors(studies: Mapping[str, Study]) -> tuple[list[Column], list[list[Any]], list[str]]:
    found = [study.pounce for study in studies.values()]
    return _columns(studies, ("AUC-MSE (↓)",), "Regressor"), _by_regressor(found), _notes(studies, found)


def _noise(studies: Mapping[str, Study]) -> tuple[list[Column], list[list[Any]], list[str]]:
    levels = list(dict.fromkeys(found.noise for study in studies.values() for found in study.noise))
    rows: list[list[Any]] = []
    most, draws = 0.0, set()
    for level in levels:
        found = [next((one for one in study.noise if one.noise == level), None) for study in studies.values()]
        rows += [[f"σ² = {level:g}", *row] for row in _by_regressor(found)]
        for forecast in (forecast for one in found if one for forecast in one.forecasts):
            most = max(most, forecast.error or 0.0)
            draws.add(forecast.draws)
    columns = [Column("Noise", "left"), *_columns(studies, ("AUC-MSE (↓)",), "Regressor")]
    times = f"{min(draws)} to {max(draws)}" if len(draws) > 1 else f"{max(draws, default=1)}"
    note = f"Means of {times} draws of noise" + (
        f"; Monte-Carlo standard errors are up to {most:.1g}." if most else "."
    )
    return columns, rows, [*_notes(studies, [one for study in studies.values() for one in study.noise]), note]


def _beaten(studies: Mapping[str, Study]) -> tuple[list[Column], list[list[Any]], list[str]]:
    rows = [row for row in _by_order(studies, ("beats_random", "beats_random_early")) if row[0] != "RANDOM"]
    return _columns(studies, ("AUC (↑)", "Max2 (↑)"), "Similarity Methods"), rows, _covered(studies)


# --- parts ----------------------------------------------------------------------------------------------------------


def _by_name(studies: Studies) -> dict[str, Study]:
    if not isinstance(studies, Study):
        return dict(studies)
    name = studies.source.name
    return {name if name.startswith(PREFIX) else PurePath(name).name: studies}


def _columns(studies: Mapping[str, Study], titles: Sequence[str], first: str) -> list[Column]:
    """The first column, and for each study the others, with its name where there are several."""
    named = [f"{name} {title}" if len(studies) > 1 else title for name in studies for title in titles]
    return [Column(first, "left"), *(Column(title, format=_THREE) for title in named)]


def _by_order(studies: Mapping[str, Study], fields: Sequence[str]) -> list[list[Any]]:
    found = [{row["similarity"]: row for row in study.prowl.rows()} for study in studies.values()]
    names = [name for name in _ORDERS if any(name in rows for rows in found)]
    return [
        [_ORDERS[name], *(rows[name][field] if name in rows else None for rows in found for field in fields)]
        for name in names
    ]


def _by_regressor(found: Sequence[Pounce | None]) -> list[list[Any]]:
    by_name = [{forecast.regressor: forecast.auc_mse for forecast in one.forecasts} if one else {} for one in found]
    names = [name for name in _REGRESSORS if any(name in one for one in by_name)]
    return [[_REGRESSORS[name], *(one.get(name) for one in by_name)] for name in names]


def _covered(studies: Mapping[str, Study]) -> list[str]:
    trained = [name for name, study in studies.items() if study.covered == "train"]
    if not trained:
        return ["Subsets are found on all models and judged by them."]
    return ["Subsets are found on the 80 % of the models that train and judged by them, as in the paper."]


def _notes(studies: Mapping[str, Study], found: Iterable[Pounce | None]) -> list[str]:
    """How models were held out, and what the training mean is."""
    grouped = {study.split for study in studies.values()} == {"grouped"}
    held = "Each family of models is held out once" if grouped else "A fifth of the models is held out at random"
    has_mean = any(forecast.regressor == "mean" for one in found if one for forecast in one.forecasts)
    parts = [warning for study in studies.values() for warning in study.warnings if warning.startswith(WITHOUT_GAPS)]
    return [f"{held}; errors are on the scale from chance (0) to best (1).", *([_NO_MEAN] if has_mean else []), *parts]


def _printed(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Numbers as the paper prints them, the best of each column bold: the largest for ↑, the smallest for ↓."""
    lines = [list(row) for row in rows]
    for place, column in enumerate(columns):
        upward = "↑" in column.title
        if not upward and "↓" not in column.title:
            continue
        groups = {row[0] for row in rows} if columns[0].title == "Noise" else {None}
        for group in groups:
            mine = [n for n, row in enumerate(rows) if group is None or row[0] == group]
            texts = {n: _text(rows[n][place], column) for n in mine}
            ranked = [float(texts[n]) * (1 if upward else -1) for n in mine if rows[n][place] is not None]
            best = max(ranked, default=None)
            for n in mine:
                value = rows[n][place]
                bold = value is not None and float(texts[n]) * (1 if upward else -1) == best
                lines[n][place] = Cell(texts[n], bold)
    return lines


def _text(value: Any, column: Column) -> str:
    if value is None:
        return MISSING
    if "|S*|" in column.title:
        return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"
    return column.format.text(float(value))
