"""The pages about the subsets of a benchmark: all of them, and one by itself."""

from __future__ import annotations

import numpy as np

from earmark.board.boards.subsets import leading_values, metrics_on, saturation, summarise
from earmark.board.pages import files
from earmark.board.pages.assets import subset_address
from earmark.board.pages.boards import Items, Reader, as_query, records_file
from earmark.board.pages.figures import histogram
from earmark.board.web.caching import Page, packed
from earmark.report.metric_text import number

_MOST_STANDINGS = 25
_MOST_SUBSETS = 500


def subsets_page(reader: Reader, board: str) -> Page:
    """Every subset of the leading metric, in a line."""
    snapshot = reader.source.boards.current(board)
    metric = snapshot.metrics[0] if snapshot.metrics else ""
    analysis = reader.source.analysis(board)
    lines = []
    if metric:
        columns, best = snapshot.panel(metric).column_of, leading_values(snapshot, metric).value
        known = snapshot.definition.facts(metric)
        turn = 1.0 if known.higher_is_better else -1.0
        for name in snapshot.subsets(metric)[:_MOST_SUBSETS]:
            values = best[:, columns[name]]
            values = turn * np.sort(-values[np.isfinite(values)]) * -1.0
            if not values.size:
                continue
            verdict = analysis.verdict(name) if analysis else None
            lines.append(
                {
                    "subset": name, "systems": len(values), "best": number(float(values[0]), known),
                    "median": number(float(np.median(values)), known), "verdict": saturation(known, values)[1],
                    "adds": verdict["verdict"] if verdict else "—",
                }
            )  # fmt: skip
    others = [name for name in snapshot.metrics if name != metric]
    note = f"Other metrics ({', '.join(others[:8])}{' …' if len(others) > 8 else ''}) are on the pages of the subsets."
    more = len(snapshot.subsets(metric)) - _MOST_SUBSETS if metric else 0
    note = f"Here are the first {_MOST_SUBSETS}; {more} more are in the files of the table." if more > 0 else note
    note = note if others or more > 0 else ""
    return packed(reader.page("subsets.html", board=board, metric=metric, lines=lines, note=note))


def subset_page(reader: Reader, board: str, subset: str, items: Items = ()) -> Page:
    """What is known of one subset, and who is best on it."""
    snapshot = reader.source.boards.current(board)
    summary = summarise(snapshot, subset, metric=dict(items).get("metric", ""), most=_MOST_STANDINGS)
    analysis = reader.source.analysis(board)
    verdict = analysis.verdict(subset) if analysis else None
    adds = "It is not part of the analysis: only subsets of the board's leading metric are."
    if analysis is None or analysis.error:
        adds = "The analysis of this board is not there yet." if analysis is None else analysis.error
    metric = summary.metric
    known = snapshot.definition.facts(metric)
    low, high = summary.quartiles
    statistics = [
        ("Systems", str(len(summary.values))),
        (f"Best {metric}", number(summary.best, known, unit=True)),
        ("Median", number(summary.median, known, unit=True)),
        ("Middle half", f"{number(low, known)} to {number(high, known, unit=True)}"),
    ]
    return packed(
        reader.page(
            "subset.html", board=board, subset=subset, summary=summary, metrics=metrics_on(snapshot, subset),
            statistics=statistics, standings=summary.standings,
            adds=verdict["sentence"] if verdict else adds,
            drawn=histogram(summary, snapshot.definition.facts(metric).higher_is_better),
            address=subset_address(board, subset), query=as_query(items),
        )
    )  # fmt: skip


def subset_file(reader: Reader, board: str, subset: str, items: Items, kind: str) -> Page:
    """Every system on one subset as a file."""
    snapshot = reader.source.boards.current(board)
    summary = summarise(snapshot, subset, metric=dict(items).get("metric", ""))
    about = {"board": board, "generation": snapshot.generation, "subset": subset, "metric": summary.metric}
    return records_file(files.subset_records(summary), about, kind, f"{board}-{subset}", metric=summary.metric)
