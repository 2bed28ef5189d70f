"""What figures are drawn from in the folder of a representation run: its scores, its subsets, and its clips."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from earmark.analysis.sources import open_scores
from earmark.report.content import CloseUp, SubsetFacts
from earmark.report.facts import match_facts, recorded_facts
from earmark.report.gallery import Material, Wishes
from earmark.report.score_index import ScoreIndex
from earmark.representations import comparisons
from earmark.representations._folder import clips_to_hear
from earmark.representations.config import RunConfig
from earmark.representations.report import close_up_of
from earmark.runs.folder import read_record
from earmark.scores import Row


def material_of_run(place: Path, name: str, wishes: Wishes, given: Sequence[SubsetFacts]) -> Material:
    """The scores of a run, with its systems on the same clips; clips are opened when a figure shows some."""
    scores, _ = open_scores(place)
    record = read_record(place)
    ranking = comparisons.ranking_of(record, scores, comparisons.read_comparisons(place))
    known = recorded_facts(record)
    clips = cache(lambda: clips_to_hear(place))

    def close_up(row: Row) -> CloseUp:
        return close_up_of(place, row, clips(), RunConfig.load(place / "config.yaml"))

    return Material(
        name=name, scores=scores, ranked=ranking.scores, wishes=wishes, close_up=close_up,
        facts=match_facts(ScoreIndex(scores).subsets, known, given),
        synthetic=any(item.status == "synthetic" for item in known),
    )  # fmt: skip
