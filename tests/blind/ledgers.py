"""Policies, exact tables and ledgers for tests. A test that asks for `ledger_url` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.board.conftest import POSTGRES, _database, _postgres_database

from earmark.blind.duplicates import pack
from earmark.blind.policy import Policy, SetTerms
from earmark.scores import Row, Scores

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STEPS = {"P@1": "0.02", "P@5": "0.01", "GSR": "0.005"}
SIZES = {"HU4": (1001, 80), "HW3": (4540, 368)}


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
        return
    if not POSTGRES:
        pytest.skip("EARMARK_TEST_POSTGRES names no server: scripts/services starts one")
    with _postgres_database() as name:
        yield _database(name)


def policy_of(**more: Any) -> Policy:
    sets = {name: SetTerms(name, *sizes, steps=STEPS) for name, sizes in SIZES.items()}
    return Policy(**{"sets": sets, "sign_off": "after", "owners": "the speakers", "clips_per_step": 5, **more})


def exact_scores(shift: float = 0.0, **more: Any) -> Scores:
    """A table as the host measures it, with everything that must not leave."""
    rows = []
    for place, subset in enumerate(SIZES):
        for metric, value, margin in (("P@1", 0.1337, 0.0213), ("P@5", 0.0911, 0.0127), ("GSR", 0.3942, 0.0061)):
            value += place * 0.011 + shift
            cells = {
                "suite": "vocsim", "subset": subset, "system": "x", "distance": "cosine", "metric": metric,
                "value": value, "low": value - margin, "high": value + 1.1 * margin, "baseline": 0.0163,
                "lift": value - 0.0163, "p_value": 0.001998, "n": 997, "reason": "4 points excluded",
                "seconds": 12.25, "version": "0.0", "inputs": "ab" * 16, "baseline_low": 0.0101, "baseline_high": 0.02,
                "interval": "jackknife", "unit": "clip", "units": 997, "shuffle": "clips", "baseline_error": 0.00013,
            }  # fmt: skip
            rows.append(Row(**{**cells, **more}))
    return Scores(tuple(rows))


def fingerprints_of(seed: int, changed: float = 0.0) -> dict[str, bytes]:
    """Neighbour lists of a model; `changed` is the share of them that another model has otherwise."""
    fingerprints = {}
    for subset, (clips, _) in SIZES.items():
        lists = np.random.default_rng(seed).integers(0, clips, (200, 5))
        lists[: round(200 * changed)] = clips + np.arange(5)
        fingerprints[subset] = pack(lists)
    return fingerprints


def job_of(number: int, **more: Any) -> dict[str, Any]:
    """The arguments of `decide` for a job whose model is like no other's."""
    return {
        "job": f"job{number}", "board": "vocsim", "team": "analysts", "entry": "bat", "digest": f"{number:064x}",
        "exact": exact_scores(), "fingerprints": fingerprints_of(number), "policy": policy_of(), "now": NOON,
    } | more  # fmt: skip
