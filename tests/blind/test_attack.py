"""What the score itself tells: an attacker after labels, with and without the policy. The full table: benchmarks/."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from benchmarks.blind_attack import ATTACKS, Board, Leak, Terms, attack, draw_labels, hits, honest, policy_for, variants
from tests.blind.ledgers import NOON, job_of, policy_of

from earmark import evaluate
from earmark.blind.ledger import Ledger
from earmark.blind.policy import Policy

CLIPS, CLASSES = 1001, 80  # as HU4
VARIANTS = {terms.name.partition(" (")[0]: terms for terms in variants(Policy())}
EXACT, WHOLE = VARIANTS["no policy: exact figures"], VARIANTS["the whole policy"]


def _leaks(terms: Terms, name: str, attackers: int) -> list[Leak]:
    return [attack(CLIPS, CLASSES, terms, name, seed) for seed in range(attackers)]


def test_vectors_can_be_made_that_ask_which_clips_share_a_label() -> None:
    """His guesses are vectors like any other: evaluated, they give the count of the right ones."""
    random = np.random.default_rng(3)
    clips, anchors = 120, 6
    labels = draw_labels(clips, 10, random)
    pointers = np.concatenate([np.arange(anchors, 2 * anchors), random.integers(0, anchors, clips - anchors)])
    pointers[anchors : 2 * anchors] = np.arange(anchors)  # an anchor and its first follower are each other's nearest
    vectors = np.zeros((clips, anchors + clips))
    follows = np.where(np.arange(clips) < anchors, np.arange(clips), pointers)
    vectors[np.arange(clips), follows] = 100.0
    vectors[np.arange(anchors, clips), anchors + np.arange(anchors, clips)] = 1.0  # each in a direction of its own
    vectors[anchors : 2 * anchors] *= 1.0 - 1e-3 * np.eye(1, anchors + clips, anchors)[0]
    vectors[np.arange(anchors, 2 * anchors), 2 * anchors + np.arange(anchors)] = 0.9
    scores = evaluate(vectors, labels, distance="euclidean", metrics="P@1", intervals="none")
    assert scores.value("P@1") == pytest.approx(hits(labels, pointers), abs=1e-12)


@pytest.mark.parametrize(("name", "gain", "bits"), [("sizes", 0.3, 2500), ("pooled, K=10", 0.08, 150)])
def test_without_a_policy_a_thousand_scores_give_labels_away(name: str, gain: float, bits: float) -> None:
    for leak in _leaks(EXACT, name, 2):
        assert leak.p1 - leak.shuffled > gain
        assert leak.auc > 0.55
        assert leak.bits > bits
        assert leak.fresh < leak.shuffled + 0.02  # it is knowledge of clips, and no model


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "pooled, K=30"])
def test_under_the_policy_a_thousand_scores_tell_no_more_than_chance(name: str) -> None:
    leaks = _leaks(WHOLE, name, 3)
    gains = np.array([leak.p1 - leak.shuffled for leak in leaks])
    assert abs(gains.mean()) < 0.012  # 12 of 1001 clips: what three attackers gain and lose by luck
    assert abs(np.mean([leak.auc for leak in leaks]) - 0.5) < 0.015
    assert np.mean([leak.bits for leak in leaks]) < 60  # of 6,000; and what is estimated where there is nothing
    assert max(leak.told for leak in leaks) < 60  # new answers among 1,000


def test_rounding_alone_and_quota_alone_are_not_enough() -> None:
    """Why the policy has several parts."""
    for name in ("rounding only", "quota only"):
        (leak,) = _leaks(VARIANTS[name], "sizes", 1)
        assert leak.p1 - leak.shuffled > 0.05


def test_a_team_that_submits_for_500_days_begins_as_many_entries_as_the_simulation_says(tmp_path: Path) -> None:
    ledger, policy, begun = Ledger(str(tmp_path / "ledger.sqlite3")), policy_of(), 0
    for day in range(0, 500, 5):
        when = NOON + timedelta(days=day)
        job = job_of(day, entry=f"e{day}", now=when, policy=policy)
        asked = {name: job[name] for name in ("job", "board", "team", "entry", "policy", "now")}
        if not ledger.admit(**asked, distance="cosine", correction="none"):
            ledger.decide(**job)
            begun += 1
        # Five on the first days of a period, and then none until the first of them is 90 days old.
    ledger.close()
    assert begun == WHOLE.entries == 30


def test_the_board_of_the_simulation_answers_as_the_policy_does() -> None:
    board = Board(policy_for(CLIPS, CLASSES, WHOLE), WHOLE)
    assert board.step == 0.02
    assert board.most == 100
    assert [board.submit(value) for value in (0.131, 0.149, 0.119, 0.161, 0.179)] == [0.14, 0.14, 0.14, 0.16, 0.16]
    while not board.begins:
        board.submit(0.0)
    assert board.submit(0.05) in (0.04, 0.06)


def test_what_the_policy_costs_an_honest_participant() -> None:
    prices = {price.improvement: price for price in honest((0.4, 1.0, 1.6), repeats=300)}
    assert prices[0.4].seen == 0
    assert 0.4 < prices[1.0].seen < 0.6
    assert prices[1.6].seen == 1
    assert prices[1.6].error < 0.31  # a figure that is new is off by its rounding alone
