"""No submission changes who is ranked on what: not by its protocol, setting, metric, group of subsets or clips."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from earmark.board.boards.snapshots import Snapshots
from earmark.board.boards.subsets import metrics_on, summarise
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.records import User
from earmark.board.storage import Store
from earmark.definitions import read_definition
from earmark.errors import EarmarkError
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard

SUBSETS = ("a", "b", "c", "d")


@pytest.fixture
def host(sqlite_store: Store) -> User:
    return sqlite_store.create_user("grace", role="host")


def rows(system: str, value: float, subsets: Sequence[str] = SUBSETS, **more: object) -> list[Row]:
    given = {"distance": "cosine", "metric": "P@1", **more}
    return [
        Row(suite="mine", system=system, subset=name, value=value + 0.01 * place, **given)  # type: ignore[arg-type]
        for place, name in enumerate(subsets)
    ]


def accept(store: Store, host: User, given: Sequence[Row], kind: str = "") -> None:
    names = dict.fromkeys(row.system for row in given)
    cards = [SystemCard(name, kind=kind) if kind else SystemCard(name) for name in names]  # type: ignore[arg-type]
    document = Document.of(Scores(tuple(given)), board="mine", cards=cards)
    store.decide(store.submit(document, host).id, host, accept=True)


def ranks(store: Store, metric: str = "") -> dict[str, int]:
    """The ranks of the plain view."""
    board = Snapshots(store).current("mine")
    page = table(board, BoardView.parse(board, [("metric", metric)] if metric else []))
    return {row.system.card.name: row.rank for row in page.rows}


def test_another_protocol_takes_nobodys_place(sqlite_store: Store, host: User) -> None:
    accept(sqlite_store, host, [row for name, value in (("one", 0.8), ("two", 0.7))
                                for row in rows(name, value, protocol="across_groups")])  # fmt: skip
    assert ranks(sqlite_store) == {"one": 1, "two": 2}
    accept(sqlite_store, host, rows("evil", 0.1))
    accept(sqlite_store, host, rows("evil too", 0.1, ["a"]))
    assert {name: rank for name, rank in ranks(sqlite_store).items() if rank} == {"one": 1, "two": 2}


def test_a_fixed_setting_that_nobody_had_takes_nobodys_place(sqlite_store: Store, host: User) -> None:
    accept(sqlite_store, host, [*rows("one", 0.8), *rows("two", 0.7)])
    text = "name: mine\nsetting: spearman\nmetrics: [P@1]\nsubsets: [a, b, c, d]\n"
    sqlite_store.define(read_definition(text), host)
    before = ranks(sqlite_store)
    accept(sqlite_store, host, rows("evil", 0.1, ["a"], distance="spearman"))
    after = ranks(sqlite_store)
    assert {name: after[name] for name in before} == before == {"one": 1, "two": 2}


def test_another_metric_does_not_become_the_plain_view(sqlite_store: Store, host: User) -> None:
    accept(sqlite_store, host, [*rows("one", 0.8, metric="GSR"), *rows("two", 0.7, metric="GSR")])
    sqlite_store.define(read_definition("name: mine\nmetrics: [P@1, GSR]\nsubsets: [a, b, c, d]\n"), host)
    accept(sqlite_store, host, rows("evil", 0.1, ["a"]))
    assert Snapshots(sqlite_store).current("mine").metrics[0] == "GSR"
    assert {name: rank for name, rank in ranks(sqlite_store).items() if rank} == {"one": 1, "two": 2}


def test_a_group_that_the_first_submission_lacks_does_not_begin_to_lead(sqlite_store: Store, host: User) -> None:
    text = (
        "name: mine\nmetrics: [P@1]\nsubsets: [a, b, c, d]\nrank_by: [hard, easy]\n"
        "groups:\n- {key: hard, subsets: [c, d]}\n- {key: easy, subsets: [a, b]}\n"
    )
    sqlite_store.define(read_definition(text), host)
    accept(sqlite_store, host, [*rows("one", 0.8, ["a", "b"]), *rows("two", 0.7, ["a", "b"])])
    assert ranks(sqlite_store) == {"one": 1, "two": 2}
    accept(sqlite_store, host, rows("evil", 0.1, ["c"]))
    assert {name: rank for name, rank in ranks(sqlite_store).items() if rank} == {"one": 1, "two": 2}


def codecs(values: dict[str, float], n: int) -> list[Row]:
    return [
        row
        for name, value in values.items()
        for metric, of in (("stoi", value), ("kbps", 6.0))
        for row in rows(name, of, metric=metric, distance="", n=n)
    ]


def test_more_codecs_on_fewer_clips_take_nobodys_rank(sqlite_store: Store, host: User) -> None:
    accept(sqlite_store, host, codecs({"good": 0.8, "fair": 0.7}, 100), "codec")
    accept(sqlite_store, host, codecs({"ev1": 0.1, "ev2": 0.2, "ev3": 0.3}, 50), "codec")
    accept(sqlite_store, host, codecs({"ev4": 0.95}, 101), "codec")
    after = ranks(sqlite_store, "stoi")
    assert {name: rank for name, rank in after.items() if rank} == {"good": 1, "fair": 2}


def test_few_clips_of_a_stated_number_have_no_rank(sqlite_store: Store, host: User) -> None:
    text = "name: mine\nmetrics: [P@1]\nsubsets:\n" + "".join(f"- {{name: {name}, clips: 100}}\n" for name in SUBSETS)
    sqlite_store.define(read_definition(text), host)
    accept(sqlite_store, host, [*rows("one", 0.8, n=98), *rows("two", 0.7, n=100), *rows("cherry", 0.95, n=2)])
    assert ranks(sqlite_store) == {"one": 1, "two": 2, "cherry": 0}


def test_pages_of_subsets_show_the_metrics_that_are_ranked_there(sqlite_store: Store, host: User) -> None:
    accept(sqlite_store, host, rows("one", 0.8, ["a", "b"]))
    accept(sqlite_store, host, rows("two", 0.7, ["a", "b", "z"], protocol="across_groups"))
    board = Snapshots(sqlite_store).current("mine")
    assert metrics_on(board, "a") == ("P@1",)
    assert metrics_on(board, "z") == ()
    assert summarise(board, "a").standings


def test_a_group_is_called_blind_only_if_its_subsets_are() -> None:
    with pytest.raises(EarmarkError, match="blind"):
        read_definition("name: mine\nmetrics: [P@1]\nsubsets: [a, b]\ngroups:\n- {key: blind, subsets: [a, b]}\n")
