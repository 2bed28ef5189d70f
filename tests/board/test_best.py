"""The best of each system's settings: against a slow definition, in simulation, and where gaps tempt."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from earmark.analysis.ranks import rank_intervals
from earmark.board.boards import BoardView, Snapshot, table
from earmark.board.boards.best import Strata, _chosen
from earmark.board.boards.lines import TableRow, heads_at
from earmark.board.boards.table import TablePage
from earmark.definitions.settings import DISTANCES, is_correction, is_distance
from earmark.scores import Row, Scores

HONEST = ("cosine", "euclidean", "spearman")


def board(values: dict[str, dict[str, list[float | None]]], metric: str = "P@1") -> Snapshot:
    """Systems by name, each with settings and their values on the subsets s00, s01, ...; None is a gap."""
    rows = tuple(
        Row(suite="mine", subset=f"s{place:02d}", system=system, distance=setting.partition("+")[0], metric=metric,
            correction=setting.partition("+")[2] or "none", value=value)
        for system, settings in values.items()
        for setting, given in settings.items()
        for place, value in enumerate(given)
        if value is not None
    )  # fmt: skip
    return Snapshot.of_scores("mine", Scores(rows))


def shown(whole: Snapshot, **query: str) -> TablePage:
    return table(whole, BoardView.parse(whole, [("show", "subsets"), *query.items()]))


def line_of(whole: Snapshot, system: str, **query: str) -> TableRow:
    return next(row for row in shown(whole, **query).rows if row.system.card.name == system)


def line_values(whole: Snapshot, system: str, **query: str) -> list[float | None]:
    return [cell.value for cell in line_of(whole, system, **query).cells[1:]]


def slow_line(settings: dict[str, list[float]], higher: bool = True) -> list[float]:
    """On each subset the value of the setting whose mean on all others is best; of equals the first one."""
    names, line = list(settings), []
    for place in range(len(settings[names[0]])):
        means = [np.mean([v for at, v in enumerate(settings[name]) if at != place]) for name in names]
        line.append(settings[names[int(np.argmax(means) if higher else np.argmin(means))]][place])
    return line


@pytest.mark.parametrize("metric", ["P@1", "CS"])
def test_each_subset_has_the_setting_that_is_best_on_the_others(metric: str) -> None:
    rng = np.random.default_rng(2)
    values = {f"m{n}": {name: rng.uniform(size=6).round(3).tolist() for name in HONEST} for n in range(7)}
    whole = board(values, metric)
    for name, settings in values.items():
        assert line_values(whole, name) == slow_line(settings, higher=metric == "P@1")
        row = line_of(whole, name)
        assert row.tried == 3
        assert sum(count for _, count in row.chosen) == 6
        shown = table(whole, BoardView.parse(whole, [("per", "all")]))
        assert {head.key for head in heads_at(whole, shown.field, shown.places)} == set(values)


def test_a_setting_that_is_best_everywhere_keeps_its_values_and_one_subset_has_a_fixed_order() -> None:
    settings = {"spearman": [0.8, 0.7, 0.9], "cosine": [0.5, 0.6, 0.7]}
    whole = board({"a": settings, "b": {"cosine": [0.1, 0.1, 0.1]}})
    assert line_values(whole, "a") == settings["spearman"]
    row = line_of(whole, "a")
    assert (row.setting, row.tried, row.chosen) == ("spearman", 2, (("spearman", 3),))
    single = board({"a": {"spearman": [0.9], "cosine": [0.5], "cosine+csls": [0.95]}, "b": {"cosine": [0.2]}})
    assert line_of(single, "a").cells[0].value == 0.5


def test_gaps_are_no_way_to_choose() -> None:
    best_of = {"cosine": [0.9, None, None, 0.2], "euclidean": [None, 0.9, 0.9, None], "spearman": [0.1, 0.1, 0.1, None]}
    whole = board({"a": best_of, "b": {"cosine": [0.5] * 4}, "c": {"cosine": [0.4] * 4}})
    # No setting has all four: the one with the most is the line, and its gap costs the rank.
    assert line_values(whole, "a") == [0.1, 0.1, 0.1, None]
    assert line_of(whole, "a").rank == 0
    failing = {"cosine": [0.9, 0.9, 0.9, None], "euclidean": [0.5, 0.5, 0.5, 0.5]}
    assert line_values(board({"a": failing, "b": failing}), "a") == [0.5] * 4


def test_blind_and_public_subsets_are_chosen_apart() -> None:
    rows = [Row(suite="vocsim", subset=subset, system=system, distance=distance, metric="P@1", value=value)
            for system in "ab" for subset, distance, value in [
                ("BC", "cosine", 0.3), ("BS1", "cosine", 0.3), ("BC", "spearman", 0.6), ("BS1", "spearman", 0.6),
                ("HU3", "cosine", 0.2)]]  # fmt: skip
    whole = Snapshot.of_scores("vocsim", Scores(tuple(rows)), provenance="blind")
    panel = whole.field("P@1").panel
    assert panel.value[0, panel.columns(["BC", "BS1", "HU3"])].tolist() == [0.6, 0.6, 0.2]


def _field(rng: np.random.Generator, systems: int, subsets: int) -> np.ndarray:
    return (
        rng.uniform(0.2, 0.8, (systems, 1))
        + 0.1 * rng.normal(size=subsets)
        + 0.05 * rng.normal(size=(systems, subsets))
    )


def _derived(values: np.ndarray) -> np.ndarray:
    """The line of one system from [settings, subsets], by the board's own function."""
    subsets = values.shape[1]
    strata = Strata((np.arange(subsets),), np.ones(subsets, bool))
    return values[_chosen(values[None], strata)[0], np.arange(subsets)]


@pytest.mark.parametrize("subsets", [2, 4, 15])
def test_sixty_settings_of_chance_rank_as_one_of_them(subsets: int) -> None:
    """The finding: sixty invented corrections gave rank 12 of 46. Now the mean rank is that of one of them."""
    rng = np.random.default_rng(5)
    places: dict[str, list[int]] = {"sixty": [], "one": [], "most": []}
    for _ in range(300):
        honest = _field(rng, 45, subsets)
        tried = rng.uniform(size=(60, subsets))
        for name, line in (
            ("sixty", _derived(tried)), ("one", tried[0]), ("most", tried[tried.mean(axis=1).argmax()])
        ):  # fmt: skip
            places[name].append(int(rank_intervals(np.vstack([honest, line]), level=0.5).rank[-1]))
    sixty, one, most = (np.mean(places[name]) for name in ("sixty", "one", "most"))
    error = np.hypot(*(np.std(places[name]) / np.sqrt(300) for name in ("sixty", "one")))
    assert abs(sixty - one) < 3 * error
    assert most < one - 6 * error  # what it was


def test_three_honest_settings_lose_and_gain_next_to_nothing() -> None:
    rng = np.random.default_rng(6)
    gains, losses = [], []
    for _ in range(400):
        true = 0.5 + 0.02 * rng.normal(size=3)
        common = 0.1 * rng.normal(size=15)
        values = true[:, None] + common + 0.02 * rng.normal(size=(3, 15))
        gains.append(_derived(values).mean() - (true.max() + common.mean()))
        losses.append(values[values.mean(axis=1).argmax()].mean() - (true.max() + common.mean()))
    noise = 0.02 / np.sqrt(15)  # of a mean
    assert -0.5 * noise < np.mean(gains) <= 0.05 * noise
    assert np.mean(gains) < np.mean(losses)


@pytest.mark.parametrize("settings", [3, 20])
def test_intervals_of_ranks_hold_with_chosen_settings(settings: int) -> None:
    rng = np.random.default_rng(8)
    held = []
    for _ in range(120):
        skill = rng.normal(0, 0.03, 12)
        values = (
            skill[:, None, None] + 0.2 * rng.normal(size=15) + 0.03 * rng.normal(size=(12, 1, 15))
            + 0.03 * rng.normal(size=(12, settings, 15))
        )  # fmt: skip
        found = rank_intervals(np.array([_derived(each) for each in values]))
        true = stats.rankdata(-skill, method="min")
        held.append((found.low <= true) & (true <= found.high))
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("seed", range(6))
def test_failing_or_leaving_out_is_never_rewarded(seed: int) -> None:
    """Of systems with one setting: whatever cells one of them lacks, nobody it was behind comes behind it."""
    rng = np.random.default_rng(seed)
    values = {f"m{n}": {"cosine": rng.uniform(size=5).tolist()} for n in range(6)}
    before = {row.system.slug: row.rank for row in shown(board(values)).rows}
    for _ in range(6):
        victim = f"m{rng.integers(6)}"
        line = list(values[victim]["cosine"])
        for at in rng.choice(5, size=rng.integers(1, 4), replace=False).tolist():
            line[at] = None  # type: ignore[call-overload]
        after = {row.system.slug: row.rank for row in shown(board({**values, victim: {"cosine": line}})).rows}
        assert after[victim] == 0
        others = sorted((name for name in before if name != victim), key=lambda name: before[name])
        assert sorted(others, key=lambda name: after[name]) == others


def test_names_are_known_and_others_are_shown_without_a_rank() -> None:
    whole = board({"a": {"cosine": [0.5] * 3}, "odd": {"my own": [0.9] * 3}, "both": {
        "my own": [0.95] * 3, "euclidean": [0.4, 0.3, 0.5]}})  # fmt: skip
    rows = {row.system.card.name: row for row in shown(whole).rows}
    assert (rows["a"].rank, rows["both"].rank, rows["odd"].rank) == (1, 2, 0)
    assert "my own is no distance" in rows["odd"].unranked
    assert (rows["both"].setting, rows["both"].tried) == ("euclidean", 1)
    assert is_distance("spearman+dtw")
    assert is_correction("icdm:k=20,iterations=5")
    assert not is_correction("icdm:z=1")
    assert not is_correction("magic")
    assert is_correction("magic", ["magic"])


def test_distances_are_those_of_geometry() -> None:
    from earmark.geometry import spaces

    assert set(DISTANCES) - {""} == set(spaces.DISTANCES)


def test_many_settings_on_lines_of_their_own_gain_no_rank() -> None:
    """Sixty settings of chance: the view that shows them all ranks none of them, or the host's own setting alone."""
    from dataclasses import replace

    rng = np.random.default_rng(0)
    many = {"+".join((distance, correction)): rng.uniform(0, 1, 4).tolist()
            for distance in ("cosine", "euclidean", "spearman") for correction in ("none", "csls", "ls")}  # fmt: skip
    whole = board(
        {"often": many, "once": {"cosine": [0.5] * 4}, "twice": {"cosine": [0.4] * 4, "euclidean": [0.6] * 4}}
    )
    rows = shown(whole, setting="each").rows
    assert len(rows) == 12
    assert {(row.rank, row.tier, row.rank_low) for row in rows} == {(0, 0, 0)}
    assert {row.unranked for row in rows} == {
        "no rank: a system is ranked once, under its best setting or one that is chosen for all"
    }
    means = [row.cells[0].value for row in rows]
    assert means == sorted(means, reverse=True)  # what was tried is still seen
    defined = replace(whole.definition, setting="cosine")
    fixed = replace(whole, definition=defined, _made={}, _passing={}, _few={}, _locks={})
    ranked = [(row.setting, row.rank) for row in shown(fixed, setting="each").rows if row.rank]
    assert [setting for setting, _ in ranked] == ["cosine"] * 3
    assert [rank for _, rank in ranked] == [1, 2, 3]
    other = next(row for row in shown(fixed, setting="each").rows if row.setting == "euclidean")
    assert other.unranked == "no rank: systems are ranked under cosine"


def test_a_host_may_fix_the_setting() -> None:
    from dataclasses import replace

    whole = board({"a": {"cosine": [0.5] * 3, "spearman": [0.9] * 3}, "b": {"cosine": [0.6] * 3}})
    fixed = replace(whole, definition=replace(whole.definition, setting="cosine"), _made={}, _passing={}, _locks={})
    assert [row.system.slug for row in shown(whole).rows] == ["a", "b"]
    assert [(row.system.slug, row.setting) for row in shown(fixed).rows] == [("b", "cosine"), ("a", "cosine")]
    assert BoardView.parse(fixed, []).query() == ""
    assert BoardView.parse(fixed, [("setting", "best")]).query() == "setting=best"
