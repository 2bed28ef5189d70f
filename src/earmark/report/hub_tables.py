"""Hubness of several sets of vectors as text: before and after corrections, the best K of a grid, mean ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earmark.evaluation.hub_grid import BestSize, HubGrid, MeanRank, spelled
from earmark.geometry.corrections import parse_all
from earmark.published import read
from earmark.scores import Row, Scores
from earmark.tables import MISSING, aligned, plain
from earmark.wording import counted

GRID_COLUMNS = BestSize._fields
SELECTED = (
    "K is the one with the lowest hub ratio on that very set: the number is chosen by itself, and too good. The column "
    "K of others has the K that the other sets would have chosen, and its hub ratio here."
)
_MOST = 30  # marks of a name


def sets_text(scores: Scores) -> str:
    """A line for each set: hub ratio and antihub rate under every distance and correction."""
    found: dict[tuple[str, str, str, str], Row] = {
        (row.system, row.distance, row.correction, row.metric): row for row in scores
    }
    settings = list(dict.fromkeys((row.distance, row.correction) for row in scores))
    systems = list(dict.fromkeys(row.system for row in scores))
    blocks = []
    for metric, title in (("hub_ratio", "hub ratio"), ("antihub_rate", "antihub rate, %")):
        head = [title, *(f"{distance}{'' if which == 'none' else f', {which}'}" for distance, which in settings)]
        body = [
            [plain(system, _MOST), *(_cell(found.get((system, *setting, metric))) for setting in settings)]
            for system in systems
        ]
        blocks.append("\n".join(aligned([head, *body], left=1, gap="   ")))
    return "\n\n".join([*blocks, *_notes(scores)]) + "\n"


def _cell(row: Row | None) -> str:
    if row is None or row.value is None:
        return MISSING
    return f"{100 * row.value:.1f}" if row.metric == "antihub_rate" else f"{row.value:.1f}"


def _notes(scores: Scores) -> list[str]:
    reasons = dict.fromkeys(
        f"note: {row.system}, {row.distance}, {row.correction}: {row.reason}" for row in scores if row.value is None
    )
    return ["\n".join(reasons)] if reasons else []


def grid_text(grid: HubGrid, *, printed: bool = False) -> str:
    """The best of each correction on each set, then mean ranks over the sets; beside the printed ones where asked."""
    blocks = []
    for distance in grid.distances:
        for dataset in grid.datasets:
            lines = [line for line in grid.best if (line.dataset, line.distance) == (dataset, distance)]
            blocks.append(_best_text(f"{plain(dataset, _MOST)} · {distance}", lines))
        if ranks := grid.mean_ranks(distance):
            whole = grid.whole_sets(distance)
            blocks.append(_ranks_text(ranks, len(whole), printed))
            if lacking := [name for name in grid.datasets if name not in whole]:
                blocks.append(f"Not in the means: {', '.join(lacking)}, where a correction could not be measured.")
    known = any(line.hub_ratio_elsewhere is not None for line in grid.best)
    blocks.append(SELECTED if known else SELECTED.partition(" The column")[0])
    reasons = dict.fromkeys(
        f"note: {line.dataset}, {line.correction}: {line.reason}" for line in grid.best if line.reason
    )
    reasons |= dict.fromkeys(f"note: {name}: too few points for K = {sizes}" for name, sizes in _unfit(grid).items())
    blocks += ["\n".join(reasons)] if reasons else []
    return "\n\n".join(blocks) + "\n"


def _unfit(grid: HubGrid) -> dict[str, str]:
    """By data set, the sizes of the grid that it has too few points for while others fit."""
    tried: dict[str, dict[int, bool]] = {}
    for row in grid.scores:
        if row.metric == "hub_ratio" and (one := parse_all(row.correction)[0]).local:
            sizes = tried.setdefault(row.subset, {})
            sizes[one.k] = sizes.get(one.k, False) or row.value is not None
    return {
        name: ", ".join(str(size) for size, fits in sizes.items() if not fits)
        for name, sizes in tried.items()
        if any(sizes.values()) and not all(sizes.values())
    }


def _best_text(title: str, lines: Sequence[BestSize]) -> str:
    elsewhere = any(line.hub_ratio_elsewhere is not None for line in lines)
    head = [title, "K", "hub ratio", "antihub rate", *(["K of others", "hub ratio"] if elsewhere else [])]
    body = []
    for line in sorted(lines, key=lambda line: (line.hub_ratio is None, -(line.hub_ratio or 0.0))):
        cells = [f"  {line.correction}", _whole(line.k), _number(line.hub_ratio, 2), _number(line.antihub_rate, 3)]
        body.append([*cells, *([_whole(line.k_elsewhere), _number(line.hub_ratio_elsewhere, 2)] if elsewhere else [])])
    return "\n".join(aligned([head, *body], left=1, gap="   "))


def _ranks_text(ranks: Sequence[MeanRank], sets: int, printed: bool) -> str:
    known = _printed() if printed else {}
    head = [f"mean over {counted(sets, 'set')}", "rank", "hub ratio", "rank", "antihub rate"]
    head += ["printed: rank", "hub ratio", "rank", "antihub rate"] if printed else []
    body = [
        [f"  {line.correction}", f"{line.hub_rank:.1f}", f"{line.hub_ratio:.1f}", f"{line.antihub_rank:.1f}",
         f"{line.antihub_rate:.2f}", *known.get(line.correction, [])]
        for line in reversed(ranks)
    ]  # fmt: skip
    return "\n".join(aligned([head, *body], left=1, gap="   "))


def _printed() -> Mapping[str, list[str]]:
    """Table 5 of the GICDM paper by correction, as printed."""
    return {
        spelled(row["method"]): [row["hub_rank"], row["hub_ratio"], row["antihub_rank"], row["antihub_rate"]]
        for row in read("gicdm_hubness_tables") if row["table"] == "5"
    }  # fmt: skip


def _whole(value: int | None) -> str:
    return MISSING if value is None else str(value)


def _number(value: float | None, digits: int) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def grid_records(grid: HubGrid) -> list[dict[str, Any]]:
    """Every line of the table as a record."""
    return [dict(zip(GRID_COLUMNS, line, strict=True)) for line in grid.best]
