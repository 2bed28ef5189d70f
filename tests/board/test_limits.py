"""How often somebody may ask: buckets by a clock that the test turns, and what an app answers when one is empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.board.hosted import document, hosted

from earmark.board.settings import Rate, Settings, Throttle
from earmark.board.web.security import address_of_asker
from earmark.errors import UsageError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_a_steady_drip() -> None:
    clock = Clock()
    throttle = Throttle(Rate(per_minute=60, burst=3), clock=clock)
    assert [throttle.take("a") for _ in range(3)] == [0, 0, 0]
    assert throttle.take("a") == pytest.approx(1.0)
    assert throttle.take("b") == 0  # another asker has a bucket of their own
    clock.now += 0.6
    assert throttle.take("a") == pytest.approx(0.4)
    clock.now += 0.4
    assert throttle.take("a") == 0
    assert throttle.take("a") > 0
    clock.now += 3600
    assert [throttle.take("a") for _ in range(4)] == [0, 0, 0, pytest.approx(1.0)]  # never more than the burst


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 120), st.integers(1, 10))
def test_no_window_lets_more_through_than_burst_and_rate(pauses: list[float], per_minute: int, burst: int) -> None:
    clock = Clock()
    throttle = Throttle(Rate(per_minute, burst), clock=clock)
    passed = []
    for pause in pauses:
        clock.now += pause
        if throttle.take("a") == 0:
            passed.append(clock.now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            allowed = burst + (passed[last] - passed[first]) * per_minute / 60
            assert last - first + 1 <= allowed + 1e-6


def test_memory_stays_within_the_most_askers() -> None:
    throttle = Throttle(Rate(1, 1), most=10, clock=Clock())
    for number in range(1000):
        throttle.take(str(number))
    assert len(throttle._buckets) == 10


def test_a_rate_of_nothing_sets_no_limit() -> None:
    throttle = Throttle(Rate(0, 1), clock=Clock())
    assert {throttle.take("a") for _ in range(1000)} == {0}


def test_an_app_says_when_to_come_back(tmp_path: Path) -> None:
    with hosted(tmp_path, reads=Rate(1, 6), writes=Rate(1, 2)) as board:
        assert board.client.get("/v1/me", headers=board.author).status_code == 200
        answers = [board.client.get("/v1/boards") for _ in range(7)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
        assert answers[-1].headers["content-type"] == "application/problem+json"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 61
        assert board.client.get("/v1/boards", headers=board.author).status_code == 200  # a token counts for itself
        for number in range(3):  # once it proved to be somebody's: what an asker makes up is no new asker
            made_up = {"Authorization": f"Bearer em_{number}"}
            assert board.client.get("/v1/boards", headers=made_up).status_code == 429
        assert board.client.get("/healthz").status_code == 200  # and whoever watches over the board always gets through
        sent = [board.send(document(f"model {number}")).status_code for number in range(3)]
        assert sent == [201, 201, 429]
        assert len(board.store.submissions()) == 2
        assert 'earmark_board_refused_total{why="rate"} 6.0' in board.client.get("/metrics").text


def test_registrations_are_counted_for_their_address(tmp_path: Path) -> None:
    with hosted(tmp_path, registration="open", sign_ins=Rate(1, 2)) as board:
        made = [board.client.post("/v1/users", json={"name": f"user {number}"}).status_code for number in range(3)]
        assert made == [201, 201, 429]
        assert len(board.store.users()) == 4  # with the two that the board came with


@pytest.mark.parametrize(
    ("host", "asker"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("a:b", "a:b"),
    ],
)
def test_an_asker_is_an_address_or_a_network(host: str, asker: str) -> None:
    assert address_of_asker({"type": "http", "client": (host, 1)}) == asker


# --- settings -------------------------------------------------------------------------------------


def test_settings_go_through_the_environment_unchanged() -> None:
    plain = Settings.from_environment({})
    assert plain == Settings()
    other = {
        "EARMARK_BOARD": "/var/lib/board",
        "EARMARK_DATABASE_URL": "postgresql://board@localhost/board",
        "EARMARK_BOARD_TITLE": "Ours",
        "EARMARK_BOARD_URL": "https://board.example.org/",
        "EARMARK_BOARD_REGISTRATION": "open",
        "EARMARK_BOARD_MAX_BODY": "1000000",
        "EARMARK_BOARD_READS_PER_MINUTE": "30",
        "EARMARK_BOARD_WRITES_PER_MINUTE": "0",
        "EARMARK_BOARD_SECURE_COOKIES": "1",
        "EARMARK_BOARD_WORKERS": "4",
        "PATH": "/bin",
    }
    settings = Settings.from_environment(other)
    assert Settings.from_environment(settings.to_environment()) == settings
    assert (settings.base_url, settings.workers, settings.limits.max_body) == (
        "https://board.example.org",
        4,
        1_000_000,
    )
    assert settings.reads == Rate(30, 30)
    assert settings.database == "postgresql://board@localhost/board"
    assert Settings(data=Path("/x")).database == "sqlite:////x/earmark-board.sqlite3"


@pytest.mark.parametrize(
    "line",
    """\
WORKERS=none: number of at least 1
WORKERS=0: number of at least 1
READS_PER_MINUTE=-3: number of at least 0
MAX_BODY=nan: number of at least 1
REGISTRATION=ajar: open or closed
URL=board.example.org: https://
TITEL=Ours: Did you mean "EARMARK_BOARD_TITLE"
""".splitlines(),
)
def test_a_wrong_setting_is_named(line: str) -> None:
    setting, sentence = line.split(": ", 1)
    name, text = setting.split("=")
    with pytest.raises(UsageError, match=f"EARMARK_BOARD_{name}") as caught:
        Settings.from_environment({f"EARMARK_BOARD_{name}": text})
    assert sentence in str(caught.value)
