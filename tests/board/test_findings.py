"""What was found on the leaderboard of 0.1.0, asked over HTTP alone, as anybody could: each of these failed there.

Other tests look closer; these need no name of the code, so that they run against any version of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.board.hosted import Hosted, hosted

SUBSETS = ("s1", "s2", "s3", "s4", "s5", "s6")


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosted]:
    with hosted(tmp_path / "data") as made:
        yield made


def sent(
    values: Mapping[str, Mapping[str, float]], *, metric: str = "P@1", board: str = "birds", **of_all: Any
) -> bytes:
    """A document of systems with their values on subsets; a system may be "name+correction" or "name"."""
    cards = of_all.pop("cards", None) or [{"name": name} for name in dict.fromkeys(n.split("+")[0] for n in values)]
    rows = [
        {"system": name.split("+")[0], "subset": subset, "metric": metric, "value": value, "distance": "cosine",
         **({"correction": name.split("+")[1]} if "+" in name else {}), **of_all}
        for name, own in values.items() for subset, value in own.items()
    ]  # fmt: skip
    return json.dumps(
        {"format": "earmark-submission", "version": 1, "board": board, "systems": cards, "scores": rows}
    ).encode()


def accept(board: Hosted, document: bytes) -> None:
    made = board.send(document)
    assert made.status_code == 201, made.text
    done = board.client.post(
        f"/v1/submissions/{made.json()['id']}/decision", json={"accept": True}, headers=board.moderator
    )
    assert done.status_code == 200, done.text


def ranks(board: Hosted, name: str = "birds", query: str = "") -> dict[str, int]:
    """The rank of each system in the usual table; 0 is none."""
    items = board.client.get(f"/v1/boards/{name}/table{query}").json()["items"]
    return {line["system"]: line["rank"] for line in items}


def field(systems: int = 6, seed: int = 1) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    names = [f"m{number}" for number in range(systems)]
    return {name: {subset: round(float(rng.uniform(0.2, 0.8)), 4) for subset in SUBSETS} for name in names}


def test_one_submission_takes_nobodys_rank(board: Hosted) -> None:
    accept(board, sent(field()))
    before = ranks(board)
    assert all(before.values())
    accept(board, sent({f"new{number}": {"elsewhere": 0.9} for number in range(8)}))
    after = ranks(board)
    assert {name: after.get(name, 0) for name in before} == before


def test_sixty_settings_of_chance_do_not_lead(board: Hosted) -> None:
    accept(board, sent(field(20)))
    rng = np.random.default_rng(0)
    tried = {f"often+invented{number}": dict(zip(SUBSETS, rng.uniform(0, 1, 6).round(4).tolist(), strict=True))
             for number in range(60)}  # fmt: skip
    made = board.send(sent(tried))
    if made.status_code == 201:  # a version that takes free text for a correction
        board.client.post(
            f"/v1/submissions/{made.json()['id']}/decision", json={"accept": True}, headers=board.moderator
        )
    assert ranks(board).get("often", 0) != 1


def test_the_verdict_on_a_pair_does_not_depend_on_the_company(board: Hosted) -> None:
    accept(board, sent(field()))

    def verdict(others: str) -> tuple[float, float]:
        found = board.client.get(f"/v1/boards/birds/compare?{others}s=m0&s=m1").json()["differences"]
        pair = next(each for each in found if {each[side].split()[0][:2] for side in ("one", "other")} == {"m0", "m1"})
        ends = sorted(abs(pair[end]) for end in ("low", "high"))
        return ends[0], ends[1]

    assert verdict("") == pytest.approx(verdict("s=m2&s=m3&s=m4&"), abs=1e-12)


def test_a_host_defines_a_board(board: Hosted) -> None:
    accept(board, sent(field()))
    shown = board.client.get("/v1/boards/birds/definition", headers=board.moderator)
    assert shown.status_code == 200
    page = board.client.get("/b/birds/about", headers={"Accept": "text/html"})
    assert page.status_code == 200


def test_a_database_that_is_gone_takes_nothing(board: Hosted, tmp_path: Path) -> None:
    accept(board, sent(field()))
    files = list((tmp_path / "data").rglob("*.sqlite3*"))
    assert files
    for file in files:
        file.unlink()
    assert board.send(sent({"late": {"s1": 0.5}})).status_code == 503
    assert board.client.get("/readyz").status_code == 503


def test_visitors_find_feed_badge_preview_and_may_read_from_elsewhere(board: Hosted) -> None:
    accept(board, sent(field()))
    page = board.client.get("/b/birds", headers={"Accept": "text/html"}).text
    picture = re.search(r'<meta property="og:image" content="([^"]+)">', page)
    assert picture is not None
    assert board.client.get("/b/birds/preview.png").headers["content-type"] == "image/png"
    assert board.client.get("/b/birds/feed.atom").status_code == 200
    assert board.client.get("/b/birds/s/m0/badge.svg").status_code == 200
    assert board.client.get("/v1/boards").headers.get("access-control-allow-origin") == "*"
    assert "plotly" not in board.client.get("/b/birds/analysis", headers={"Accept": "text/html"}).text.lower()


def test_a_mean_over_subsets_of_ones_choice_and_who_is_level_with_the_best(board: Hosted) -> None:
    accept(board, sent(field()))
    answer = board.client.get("/v1/boards/birds/table?over=subsets:s1,s2,s3")
    assert answer.status_code == 200
    lines = answer.json()["items"]
    assert {line["tier"] for line in lines} >= {1}
    assert answer.json()["over"] == "subsets:s1,s2,s3"
