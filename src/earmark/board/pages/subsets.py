"""The pages about the benchmark itself: its subsets, one subset, and the analysis of the whole matrix."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from earmark.board.boards.subsets import bests, leading, metrics_on, saturation, summarise
from earmark.board.pages import files
from earmark.board.pages.assets import board_address, subset_address
from earmark.board.pages.boards import Items, Reader, as_file, as_query, records_file
from earmark.board.pages.figures import histogram
from earmark.board.refusals import NotFound
from earmark.board.web.caching import Page, packed
from earmark.report.metric_text import facts, number

_MOST_STANDINGS = 25


def subsets_page(reader: Reader, board: str) -> Page:
    """Every subset of the leading metric, in a line."""
    snapshot = reader.source.boards.current(board)
    metric = snapshot.metrics[0] if snapshot.metrics else ""
    analysis = reader.source.analysis(board)
    lines = []
    if metric:
        panel, best = snapshot.panel(metric), leading(snapshot, bests(snapshot, metric))
        turn = 1.0 if facts(metric).higher_is_better else -1.0
        for name in snapshot.subsets(metric):
            values = best.value[:, panel.subsets.index(name)]
            values = turn * np.sort(-values[np.isfinite(values)]) * -1.0
            if not values.size:
                continue
            verdict = analysis.verdict(name) if analysis else None
            lines.append(
                {
                    "subset": name, "systems": len(values), "best": number(float(values[0]), metric),
                    "median": number(float(np.median(values)), metric), "verdict": saturation(metric, values)[1],
                    "adds": verdict["verdict"] if verdict else "—",
                }
            )  # fmt: skip
    others = [name for name in snapshot.metrics if name != metric]
    note = f"Other metrics ({', '.join(others[:8])}{' …' if len(others) > 8 else ''}) are on the pages of the subsets."
    return packed(reader.page("subsets.html", board=board, metric=metric, lines=lines, note=note if others else ""))


def subset_page(reader: Reader, board: str, subset: str, items: Items = ()) -> Page:
    """What is known of one subset, and who is best on it."""
    snapshot = reader.source.boards.current(board)
    summary = summarise(snapshot, subset, metric=dict(items).get("metric", ""))
    analysis = reader.source.analysis(board)
    verdict = analysis.verdict(subset) if analysis else None
    adds = "It is not part of the analysis: only subsets of the board's leading metric are."
    if analysis is None or analysis.error:
        adds = "The analysis of this board is not there yet." if analysis is None else analysis.error
    metric = summary.metric
    low, high = summary.quartiles
    statistics = [
        ("Systems", str(len(summary.compared))),
        (f"Best {metric}", number(summary.best, metric, unit=True)),
        ("Median", number(summary.median, metric, unit=True)),
        ("Middle half", f"{number(low, metric)} to {number(high, metric, unit=True)}"),
    ]
    return packed(
        reader.page(
            "subset.html", board=board, subset=subset, summary=summary, metrics=metrics_on(snapshot, subset),
            statistics=statistics, standings=summary.standings[:_MOST_STANDINGS],
            adds=verdict["sentence"] if verdict else adds,
            drawn=histogram(summary), address=subset_address(board, subset), query=as_query(items),
        )
    )  # fmt: skip


def subset_file(reader: Reader, board: str, subset: str, items: Items, kind: str) -> Page:
    """Every system on one subset as a file."""
    snapshot = reader.source.boards.current(board)
    summary = summarise(snapshot, subset, metric=dict(items).get("metric", ""))
    about = {"board": board, "generation": snapshot.generation, "subset": subset, "metric": summary.metric}
    return records_file(files.subset_records(summary), about, kind, f"{board}-{subset}", metric=summary.metric)


def analysis_page(reader: Reader, board: str) -> Page:
    """What the last finished analysis found, and whether a newer one is being made."""
    reader.source.boards.current(board)  # there must be such a board
    return packed(
        reader.page(
            "analysis.html", board=board, analysis=reader.source.analysis(board),
            current=reader.source.analysis_current(board), address=f"{board_address(board)}/analysis",
        )
    )  # fmt: skip


def analysis_file(reader: Reader, board: str) -> Page:
    """The last finished analysis as JSON."""
    reader.source.boards.current(board)
    found = reader.source.analysis(board)
    if found is None:
        raise NotFound("The analysis of this board is not there yet; it is being computed.")
    text = json.dumps(asdict(found), ensure_ascii=False, allow_nan=False, indent=1)
    return as_file(text + "\n", "json", f"{board}-analysis")
