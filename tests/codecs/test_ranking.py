"""Who is ranked with whom, on the report and on the board; and that nobody gains by failing or by leaving clips out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from earmark.board.boards.snapshot import Snapshot
from earmark.codecs.aggregate import summarise
from earmark.codecs.contract import CodecCard, Measured
from earmark.codecs.ranking import KINDS, kind_of, leading_kind, standing_of, why_apart
from earmark.codecs.standing import Promise, Standing
from earmark.report.codecs._comparison import apart, best_below, compare_settings
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard

FULL = Standing("full", "", "passed")
STATE = Promise("state", "broken", "clip 3 changed; so did clip 4")
STANDINGS = {
    "isolated": [FULL, Standing("full"), Standing("full", promises=(Promise("delay", "broken", "7 ms"),))],
    "unknown": [Standing()],
    "unisolated": [Standing("none", "one process"), Standing("partial", "no bubblewrap", "passed")],
    "faulty": [
        Standing("full", "", "failed", "it is silent"),
        Standing("full", promises=(STATE,)),
        Standing("none", "", "failed"),
    ],
}


@pytest.mark.parametrize(("kind", "standing"), [(kind, each) for kind, some in STANDINGS.items() for each in some])
def test_a_standing_has_a_kind_which_the_card_of_a_submission_keeps(kind: str, standing: Standing) -> None:
    assert kind_of(standing) == kind
    assert standing_of(standing.details) == standing
    assert bool(why_apart(standing)) == (kind != "isolated")


def test_what_a_card_misspells_or_leaves_open_is_unknown() -> None:
    for details in ({}, {"isolation": "total"}, {"isolation": 1}, {"isolation": ["full"]}, {"promises_broken": "x"}):
        assert kind_of(standing_of(details)) == "unknown"
    assert leading_kind(["faulty", "unknown"]) == "unknown"
    assert leading_kind([]) == KINDS[0]


# --- nobody gains by failing -----------------------------------------------------------------------------------------

NAMES = tuple(f"c{number}@{4 * (number + 1)}" for number in range(5))
CARDS = {name: CodecCard(name=name, family=name.partition("@")[0]) for name in NAMES}
DETAILS = {name: SystemCard(name, kind="codec", details=FULL.details) for name in NAMES}
FAILED = Measured.failed("too hard")


def rows_of(name: str, place: int, values: np.ndarray, failed: np.ndarray) -> list[Row]:
    """PESQ and the rate of one codec, as a run would aggregate them."""
    measured = [FAILED if lost else Measured(float(value)) for value, lost in zip(values, failed, strict=True)]
    found = summarise(measured, resamples=20)
    cells: dict[str, Any] = {"suite": "codec", "subset": "birds", "system": name, "version": "1", "inputs": "ab"}
    status = found.status if failed.any() else "ok"
    reason = "some clips were not coded" if failed.any() else ""
    kbps = None if failed.all() else 4.0 * (place + 1)
    return [
        Row(metric="kbps", value=kbps, n=int((~failed).sum()), status=status, reason=reason, **cells),
        Row(metric="pesq", value=found.value, low=found.low, high=found.high, n=found.n, status=found.status,
            reason=found.reason, **cells),
    ]  # fmt: skip


def table(values: np.ndarray, failed: np.ndarray) -> Scores:
    return Scores(tuple(row for place, name in enumerate(NAMES)
                        for row in rows_of(name, place, values[place], failed[place])))  # fmt: skip


def board_ranks(scores: Scores) -> dict[str, int]:
    snapshot = Snapshot.of_scores("codec", scores, DETAILS)
    field = snapshot.field("pesq")
    lines = snapshot.panel("pesq").lines[field.rows].tolist()
    names = [snapshot.systems[snapshot.lines[number].system].card.name for number in lines]
    return {**dict.fromkeys(NAMES, 0), **dict(zip(names, field.ranks.rank.tolist(), strict=True))}


def best_rates(scores: Scores) -> dict[str, set[float]]:
    """At which of many rates each codec wins."""
    compared = compare_settings(scores, CARDS, "birds", "pesq")
    winners = {float(rate): best_below(compared, rate) for rate in range(1, 25)}
    return {name: {rate for rate, point in winners.items() if point and point.system == name} for name in NAMES}


def patterns(count: int) -> Any:
    """Random values with failures of the first codec: at random, and on the clips where it does worst."""
    rng = np.random.default_rng(7)
    for draw in range(count):
        clips = int(rng.integers(2, 30))
        hardness = rng.normal(0, 0.7, clips)
        values = np.clip(3 + hardness + rng.normal(0, 0.4, (5, 1)) + rng.normal(0, 0.5, (5, clips)), 1.05, 4.6)
        lost = int(rng.integers(1, clips))
        behind = np.argsort(values[0] - values[1:].max(axis=0))
        chosen = behind[:lost] if draw % 2 else rng.permutation(clips)[:lost]
        failed = np.zeros((5, clips), bool)
        failed[0, chosen] = True
        yield values, failed


def test_failing_never_improves_a_rank_nor_wins_a_rate() -> None:
    gained_by_common_clips = 0
    for values, failed in patterns(120):
        whole, holes = table(values, np.zeros_like(failed)), table(values, failed)
        before, after = board_ranks(whole), board_ranks(holes)
        assert sorted(before.values()) == [1, 2, 3, 4, 5]
        assert after[NAMES[0]] == 0  # no rank at all
        others = sorted(NAMES[1:], key=before.__getitem__)
        assert sorted(others, key=after.__getitem__) == others  # and nobody else changes places
        assert best_rates(holes)[NAMES[0]] == set() <= best_rates(whole)[NAMES[0]]
        (left_out,) = compare_settings(holes, CARDS, "birds", "pesq").left_out
        assert left_out == NAMES[0]
        common = ~failed.any(axis=0)
        position = [int((some.mean(axis=1) > some[0].mean()).sum()) for some in (values, values[:, common])]
        gained_by_common_clips += position[1] < position[0]
    assert gained_by_common_clips > 10  # which is why values on common clips are not ranked


def test_leaving_clips_out_before_the_run_gains_nothing_on_a_board() -> None:
    """The rows say `ok` and rest on the easy clips alone: fewer than others have, or as many and easier ones added."""
    for values, failed in patterns(40):
        rest = {place: rows_of(name, place, values[place], failed[1]) for place, name in enumerate(NAMES) if place}
        kept = values[0][~failed[0]]
        fewer = rows_of(NAMES[0], 0, kept, np.zeros(len(kept), bool))
        more = np.concatenate([values[0], np.full(5, 4.6)])
        added = rows_of(NAMES[0], 0, more, np.zeros(len(more), bool))
        for own in (fewer, added):
            assert {row.status for row in own} == {"ok"}
            ranks = board_ranks(Scores((*own, *(row for rows in rest.values() for row in rows))))
            assert ranks[NAMES[0]] == 0
            assert sorted(ranks.values()) == [0, 1, 2, 3, 4]


def test_codecs_are_ranked_among_their_own_kind_and_anchors_never() -> None:
    rng = np.random.default_rng(3)
    values = 3 + rng.normal(0, 0.3, (5, 12))
    scores = table(values, np.zeros_like(values, bool))
    standings = dict(zip(NAMES, [FULL, FULL, STANDINGS["unisolated"][0], Standing(), FULL], strict=True))
    cards = {name: SystemCard(name, kind="codec", details=standings[name].details) for name in NAMES}
    anchor = {"lossless": True, **FULL.details}
    cards[NAMES[4]] = SystemCard(NAMES[4], kind="codec", details=anchor)
    snapshot = Snapshot.of_scores("codec", scores, cards)
    assert snapshot.kinds == ("", "", "unisolated", "unknown", "anchor")
    field = snapshot.field("pesq")
    assert field.ranks.rank.tolist()[2:] == [1, 1, 0]
    assert sorted(field.ranks.rank.tolist()[:2]) == [1, 2]
    assert [field.among(place) for place in range(5)] == [2, 2, 1, 1, 0]
    printed = Snapshot.of_scores("codec", scores, {}, provenance="printed")
    assert set(printed.kinds) == {""}  # a paper says how it was measured
    codec_cards = {**CARDS, NAMES[4]: CodecCard(name=NAMES[4], family="pcm", lossless=True)}
    left_out = apart(standings, codec_cards)
    assert {name: why.mark for name, why in left_out.items()} == {
        NAMES[2]: "not isolated", NAMES[3]: "isolation unknown",
    }  # fmt: skip
    compared = compare_settings(scores, codec_cards, "birds", "pesq", left_out=left_out)
    assert {point.system for point in compared.ranked} == set(NAMES[:2])
    assert {point.system for point in compared.front} <= set(NAMES[:2])
    assert compared.anchors == {NAMES[4]}
    assert apart(dict.fromkeys(NAMES, STANDINGS["unisolated"][0]), codec_cards) == {}  # all of one kind: ranked
