"""The page of the analysis of a board: a map of its systems, and what the scores say about the benchmark itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from earmark.analysis.stalk import WEAKEST
from earmark.board.boards.analyses import Analysis
from earmark.board.boards.maps import SystemMap, system_map
from earmark.board.boards.snapshot import Snapshot
from earmark.board.pages.analysis_figures import additions, few_subsets, map_figure, relation_heat, score_heat
from earmark.board.pages.assets import board_address, system_address
from earmark.board.pages.boards import Reader, as_file
from earmark.board.refusals import NotFound
from earmark.board.web.caching import Page, packed
from earmark.wording import counted, listed

_PREDICTORS = {
    "mean": "the mean of the known systems", "ridge": "ridge regression on the measured subsets",
    "knn": "the mean of the 5 systems with the most similar scores",
}  # fmt: skip
_ORDERS = {
    "random": "random orders, on average", "greedy_min": "hardest subset first", "greedy_max": "easiest subset first",
    "jensen_shannon": "Jensen–Shannon", "minkowski": "Minkowski (p = 3)",
}  # fmt: skip


def analysis_page(reader: Reader, board: str) -> Page:
    """What the last finished analysis found, and whether a newer one is being made; with a map of the systems now."""
    snapshot = reader.source.boards.current(board)
    analysis = reader.source.analysis(board)
    words = partial(reader.subset_title, board)
    values: dict[str, Any] = {
        "board": board, "analysis": analysis, "current": reader.source.analysis_current(board),
        "address": f"{board_address(board)}/analysis", "systems": system_address(board, "*"), "map": None,
        "heat": None, "orders": _ORDERS, "predictors": _PREDICTORS,
    }  # fmt: skip
    if snapshot.metrics:
        values |= _of_scores(snapshot, analysis, words)
    values |= _of_analysis(board, analysis.found if analysis else {}, words)
    return packed(reader.page("analysis.html", **values))


def analysis_file(reader: Reader, board: str) -> Page:
    """The last finished analysis as JSON."""
    reader.source.boards.current(board)
    found = reader.source.analysis(board)
    if found is None:
        raise NotFound("The analysis of this board is not there yet; it is being computed.")
    text = json.dumps(asdict(found), ensure_ascii=False, allow_nan=False, indent=1)
    return as_file(text + "\n", "json", f"{board}-analysis")


def _of_scores(snapshot: Snapshot, analysis: Analysis | None, words: Callable[[str], str]) -> dict[str, Any]:
    """The map and the heat map of the scores as they are now."""
    made = system_map(snapshot)
    relations = analysis.found.get("drawn", {}).get("relations", {}) if analysis else {}
    heat = score_heat(snapshot, relations.get("subsets", ()), words)
    return {
        "metric": snapshot.metrics[0], "heat": heat, "map": map_figure(made) if made else None,
        "map_caption": _map_words(made) if made else "",
    }  # fmt: skip


def _map_words(found: SystemMap) -> str:
    """How a map is to be read, and how much it shows."""
    both = 100 * sum(found.shares)
    sentences = [
        f"Systems with similar {found.metric} on the {len(found.group.subsets)} subsets stand close together. The two "
        f"directions show {both:.0f} % of the differences between their profiles; what is left is not on the map."
    ]
    if found.level > 0.9:
        sentences.append("Further to the right is a better mean.")
    parts = [
        f"better on {listed(found.more)}" if found.more else "",
        f"worse on {listed(found.less)}" if found.less else "",
    ]
    told = " and ".join(part for part in parts if part)
    if told:
        sentences.append(f"Systems higher up are {told} than others with the same mean.")
    if found.left_out:
        lack, are = ("lacks", "is") if found.left_out == 1 else ("lack", "are")
        sentences.append(f"{counted(found.left_out, 'system')} that {lack} some of the subsets {are} left out.")
    return " ".join(sentences)


def _of_analysis(board: str, found: Mapping[str, Any], words: Callable[[str], str]) -> dict[str, Any]:
    drawn = found.get("drawn", {})
    relations, coverage = drawn.get("relations"), drawn.get("coverage")
    return {
        "adds": additions(found["novelty"], words) if found.get("novelty") else None,
        "relations": relation_heat(board, relations, words) if relations else None,
        "related": _related_words(found.get("stalk", {}).get("datasets", {})),
        "few": few_subsets(coverage) if coverage else None, "few_words": _few_words(coverage) if coverage else "",
        "predicted": _predicted_words(found.get("pounce", ())),
    }  # fmt: skip


def _related_words(counts: Mapping[str, int]) -> str:
    """How many pairs of subsets tell the same."""
    total = sum(counts.values())
    if not total:
        return ""
    related = total - counts.get("NONE", 0)
    return (
        f"Of {counted(total, 'pair')} of subsets, {related} {'is' if related == 1 else 'are'} related: scores on one "
        f"tell at least {100 * WEAKEST:.0f} % of the differences between systems on the other, by a straight line or a "
        "simple curve."
    )


def _few_words(coverage: Mapping[str, Any]) -> str:
    size, order = int(coverage["size"]), list(coverage["order"])
    if size == len(order):
        return f"No few subsets do: only all {len(order)} rank the systems nearly as all do."
    chosen = listed([name or "all clips" for name in order[:size]])
    return (
        f"{chosen} rank{'s' if size == 1 else ''} the systems nearly as all {len(order)} subsets do (the agreement of "
        f"mean win rates is {coverage['curve'][size - 1]:.3f}, where 1 is the same ranking)."
    )


def _predicted_words(rows: Any) -> str:
    """How well what was not measured can be predicted, against guessing the mean."""
    errors = {str(row["regressor"]): float(row["auc_mse"]) for row in rows}
    learnt = {name: error for name, error in errors.items() if name != "mean"}
    if not learnt or not errors.get("mean"):
        return ""
    name, error = min(learnt.items(), key=lambda item: item[1])
    if error >= errors["mean"]:
        return "Nothing predicts the missing scores better than the mean of the known systems."
    predictor = _PREDICTORS.get(name, name)
    return (
        f"{predictor[:1].upper()}{predictor[1:]} predicts a new system's scores on the subsets that were not measured "
        f"with a typical error of {math.sqrt(error):.3f}, on a scale from 0 (chance) to 1 (the best possible); "
        f"guessing the mean errs by {math.sqrt(errors['mean']):.3f}."
    )
