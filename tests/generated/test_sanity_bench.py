"""Runs of the bench: whole, resumed, in several processes, with wrong and with a user's own metrics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from earmark.errors import EarmarkError, InputError, UsageError
from earmark.generated.sanity import CHECKS, draw_pair, sanity
from earmark.generated.sanity._scoring import batches, score
from earmark.generated.sanity.bench import Setup, tasks
from earmark.generated.sanity.columns import choose, expected_coverage_k, neighbours_of
from earmark.generated.sanity.table import Sanity
from earmark.runs.journal import Journal, Trial, TrialScore
from earmark.runs.journal import read_journal as read


def always_one(real: np.ndarray, generated: np.ndarray) -> float:
    return 1.0


def mean_gap(real: np.ndarray, generated: np.ndarray) -> tuple[float, float]:
    """1 when the means agree, falling with their distance; the same for both questions."""
    value = float(np.exp(-np.linalg.norm(real.mean(axis=0) - generated.mean(axis=0))))
    real[:] = 0.0  # a user's metric may write into what it is given
    return value, value


def letters(result: Sanity, column: str) -> dict[tuple[str, str], str | None]:
    return {(cell.desideratum, cell.check): cell.outcome for cell in result.of(column)}


def test_a_constant_metric_fails_what_it_must_and_passes_what_is_flat() -> None:
    result = sanity([always_one], repeats=1, n=20, checks=[name for name in CHECKS if not CHECKS[name].sized])
    found = letters(result, "always_one")
    purpose = {check: letter for (desideratum, check), letter in found.items() if desideratum == "Purpose"}
    assert purpose == {
        "discrete": "T", "mean": "F", "mean_outlier": "F", "mean_pareto": "F", "std": "F", "sphere": "F",
        "mode_collapse": "F", "invention": "F", "one_disjoint": "T", "modes_one_by_one": "T", "modes_together": "T",
    }  # fmt: skip
    assert found["Bounds", "mean"] == found["Bounds", "scaling"] == "F"
    assert found["Bounds", "modes_one_by_one"] == found["Invariance", "scaling"] == "T"
    assert result.agreement("always_one").of == 0
    assert result.passed("always_one", "Purpose") == (4, 11)


def test_a_constant_coverage_is_told_apart_from_fidelity() -> None:
    result = sanity([always_one], repeats=1, n=20, checks=["mode_collapse", "modes_one_by_one"], own_kind="coverage")
    found = letters(result, "always_one")
    assert found["Purpose", "mode_collapse"] == "H"
    assert found["Purpose", "modes_one_by_one"] == "F"


def test_a_pair_is_two_columns_and_every_call_gets_its_own_copy() -> None:
    result = sanity([mean_gap], repeats=1, n=200, checks=["mean"])
    assert [column.name for column in result.columns] == ["mean_gap.fidelity", "mean_gap.coverage"]
    curves = [result.curves[column.name, "mean", "d=8"].curve for column in result.columns]
    assert (curves[0].values == curves[1].values).all()
    check = CHECKS["mean"]
    pair = draw_pair(check, check.subcase("d=8"), -3.0, 0, n=200)
    assert curves[0].values[0] == mean_gap(*pair)[0]
    assert letters(result, "mean_gap.fidelity")["Purpose", "mean"] == "T"


def dense_precision(real: np.ndarray, generated: np.ndarray, k: int) -> float:
    among = cdist(real, real)
    np.fill_diagonal(among, np.inf)
    return float((cdist(real, generated) <= np.sort(among, axis=1)[:, k - 1 : k]).any(axis=0).mean())


def test_means_over_repeats_are_judged_with_the_benchmarks_k() -> None:
    result = sanity(["precision"], correct=["none"], repeats=2, n=60, checks=["mean"])
    check = CHECKS["mean"]
    case = check.subcase("d=8")
    wanted = [
        np.mean([dense_precision(*draw_pair(check, case, value, repeat, n=60), 3) for repeat in range(2)])
        for value in check.grid(case, "thin")
    ]
    assert result.curves["precision", "mean", "d=8"].curve.values == pytest.approx(wanted, abs=1e-12)


def test_gicdm_turns_the_sphere_check() -> None:
    """The heart of the paper at a small size: points inside a sphere of 128 dimensions look real without it."""
    result = sanity(["clipped_density"], repeats=1, n=200, checks=["sphere"], grid="thin")
    inside = [result.curves[column.name, "sphere", "d=128"].curve.values[0] for column in result.columns]
    assert inside[0] > 0.9
    assert inside[1] < 0.05
    assert letters(result, "clipped_density")["Purpose", "sphere"] == "F"
    assert letters(result, "clipped_density+gicdm")["Purpose", "sphere"] == "T"


def test_the_benchmarks_neighbourhoods() -> None:
    assert [expected_coverage_k(n) for n in (100, 200, 1000, 10_000)] == [5, 5, 5, 5]
    # Expected coverage by counting: 1 - chance that none of n others is among the k nearest of 2n - 1.
    n, k = 30, 3
    chance = 1 - np.prod([(n - i) / (2 * n - i) for i in range(1, k + 1)])
    assert expected_coverage_k(n, target=chance - 1e-9) == k
    assert expected_coverage_k(n, target=chance + 1e-9) == k + 1
    assert [neighbours_of("recall_cover", n) for n in (100, 1000, 10_000)] == [4, 5, 6]
    assert [neighbours_of(name, 1000) for name in ("recall", "sym_recall", "p_recall", "clipped_density")] == [
        3,
        5,
        4,
        5,
    ]


# --- killed and resumed -----------------------------------------------------------------------------------

OWN = """
import time
from pathlib import Path
import numpy as np

def metric(real, generated):
    with Path("calls").open("a") as stream:
        stream.write("x")
    time.sleep({pause})
    return float(np.exp(-abs(real.mean() - generated.mean())))
"""


@pytest.fixture
def own_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module `ownly` whose metric takes its time and leaves a mark for each call."""
    (tmp_path / "ownly.py").write_text(OWN.format(pause=0.01))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ownly", raising=False)
    return tmp_path


def test_a_killed_run_continues_and_gives_the_same_table(own_metric: Path) -> None:
    code = textwrap.dedent(
        """
        from earmark.generated.sanity import sanity
        sanity(["ownly:metric"], checks=["mean", "scaling"], repeats=2, n=30, into="kept")
        """
    )
    killed = subprocess.Popen([sys.executable, "-c", code], cwd=own_metric, env=dict(os.environ, PYTHONPATH="."))
    scores = own_metric / "kept" / "scores.csv"
    while not (scores.exists() and scores.read_text().count("\n") > 20):
        assert killed.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    done = read(scores)
    assert 20 <= len(done) < 86
    with scores.open("a") as stream:
        stream.write("ownly:metric@0,mean,d=1,0")  # a line that was cut
    resumed = sanity(["ownly:metric"], checks=["mean", "scaling"], repeats=2, n=30, into=own_metric / "kept")
    whole = sanity(["ownly:metric"], checks=["mean", "scaling"], repeats=2, n=30)
    assert resumed.to_csv() == whole.to_csv()
    after = read(scores)
    assert len(after) == 86
    assert all(after[place] == found for place, found in done.items())


@pytest.mark.usefixtures("several_threads")
def test_processes_give_what_one_does_and_a_second_run_costs_nothing(own_metric: Path) -> None:
    def run(jobs: int = 1, into: str | None = None) -> str:
        metrics = ["ownly:metric", "density"]
        done = sanity(metrics, correct=["none"], checks=["invention"], repeats=2, n=40, jobs=jobs, into=into)
        return done.to_csv()

    one = run()
    assert run(jobs=2, into="kept") == one
    before, calls = Path("kept/scores.csv").read_bytes(), Path("calls").read_text()
    assert len(calls) == 2 * (1 + 2 * 10)  # in each run, once to see what it returns and once for every pair
    assert run(into="kept") == one
    assert Path("kept/scores.csv").read_bytes() == before
    assert Path("calls").read_text() == calls + "x"


def test_a_changed_metric_is_scored_anew(own_metric: Path) -> None:
    first = choose(["ownly:metric"])[0].key
    (own_metric / "ownly.py").write_text(OWN.format(pause=0))
    del sys.modules["ownly"]
    assert choose(["ownly:metric"])[0].key != first


def test_a_folder_keeps_to_its_settings(tmp_path: Path) -> None:
    sanity([always_one], checks=["scaling"], repeats=1, n=20, into=tmp_path / "kept")
    with pytest.raises(UsageError, match="holds scores with n 20, not 30: give --into another folder, or n 20"):
        sanity([always_one], checks=["scaling"], repeats=1, n=30, into=tmp_path / "kept")
    (tmp_path / "kept" / "scores.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is not a file of sanity scores"):
        sanity([always_one], checks=["scaling"], repeats=1, n=20, into=tmp_path / "kept")


def test_time_that_is_up_leaves_cells_empty() -> None:
    result = sanity([always_one], checks=["mean"], repeats=1, n=20, minutes=1e-9)
    assert letters(result, "always_one") == {("Purpose", "mean"): None, ("Bounds", "mean"): None}
    assert result.passed("always_one", "Purpose") == (0, 0)


# --- the order of work --------------------------------------------------------------------------------------


def test_work_is_ordered_by_repeat_and_large_sets_come_last() -> None:
    columns = choose(["density", "alpha_precision"])
    order = tasks(Setup(("mean", "torus"), grid="thin", repeats=2), columns)
    groups = [tuple(column.name for column in task.columns) for task in order]
    assert list(dict.fromkeys(groups)) == [("density",), ("density+gicdm",), ("alpha_precision",)]
    plain = [task for task, names in zip(order, groups, strict=True) if names == ("density",)]
    assert [task.repeat for task in plain] == sorted(task.repeat for task in plain)
    first = [task for task in plain if task.repeat == 0]
    assert [task.check for task in first] == ["mean"] * 33 + ["torus"] * 20
    assert [task.value for task in first[33:]] == sorted(task.value for task in first[33:])
    assert sum(map(len, batches(order))) == len(order)
    assert all(len({(task.check, task.subcase, task.repeat) for task in batch}) == 1 for batch in batches(order))


def test_scores_do_not_depend_on_what_was_scored_before() -> None:
    columns = tuple(choose(["recall", "clipped_coverage"], ["gicdm"]))
    order = tasks(Setup(("mean",), grid="thin", repeats=1, n=120), columns)
    chosen = [order[place] for place in (0, 1, 12)]
    assert [score(task) for task in chosen] == [score(task) for task in reversed(chosen)][::-1]


def test_small_sets_shrink_gicdms_neighbourhoods_instead_of_failing() -> None:
    columns = tuple(choose(["recall"], ["gicdm"]))
    smallest = tasks(Setup(("cube_size",), grid="thin", repeats=1), columns)[0]
    assert smallest.value == 100
    assert 0 <= score(smallest)[0].score <= 1


def test_a_pair_beyond_one_metric_leaves_the_others_their_score() -> None:
    columns = tuple(choose(["p_precision", "density"], ["none"]))
    first = tasks(Setup(("discrete",), grid="thin", repeats=1), columns)[0]
    found = {item.trial.metric: item for item in score(first._replace(n=30, value=1e-9))}
    assert not np.isnan(found["density+none"].score) or found["density+none"].reason
    assert np.isnan(found["p_precision+none"].score)
    assert found["p_precision+none"].reason


# --- wrong input --------------------------------------------------------------------------------------------


def returns_text(real: np.ndarray, generated: np.ndarray) -> object:
    return "high"


def returns_three(real: np.ndarray, generated: np.ndarray) -> object:
    return 1, 2, 3


def raises(real: np.ndarray, generated: np.ndarray) -> float:
    raise RuntimeError("no\nsuch thing")


def returns_nan_far_out(real: np.ndarray, generated: np.ndarray) -> float:
    return float("nan") if abs(generated.mean()) > 2 else 1.0


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (returns_text, "returned str: return one number or"),
        (returns_three, "returned tuple: return one number or"),
        (raises, "failed with RuntimeError: no such thing"),
        ("nowhere:metric", "cannot be imported"),
        ("math:pi", "is not a function"),
        ("densty", 'There is no fidelity or coverage metric .* Did you mean "density"'),
        ("frechet_distance", "There is no fidelity or coverage metric"),
    ],
)
def test_a_metric_that_cannot_be_used_is_told_before_the_work(metric: object, message: str) -> None:
    with pytest.raises(EarmarkError, match=message):
        sanity([metric], checks=["mean"], repeats=1, n=20)  # type: ignore[list-item]


def test_no_score_is_a_failure_where_it_is_looked_at() -> None:
    result = sanity([returns_nan_far_out], checks=["mean"], repeats=1, n=50)
    cells = {cell.desideratum: cell for cell in result.cells}
    assert cells["Purpose"].outcome == cells["Bounds"].outcome == "F"
    assert cells["Purpose"].slack is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checks": ["maen"]}, 'There is no check .maen.. Did you mean "mean"'),
        ({"checks": []}, "No check is left"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"n": 19}, "n must be at least 20"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"minutes": 0.0}, "minutes must be above 0"),
        ({"grid": "thick"}, "grid is full or thin"),
        ({"edition": "new"}, "edition is amended or original"),
        ({"correct": ["icdm"]}, "Unknown correction"),
        ({"jobs": 2}, "runs with jobs=1"),
        ({"metrics": [], "n": 1000}, "No metric is left"),
        ({"metrics": ["recall_cover"], "correct": ["gicdm"], "n": 1000}, "has no form with GICDM"),
        ({"metrics": ["recall"], "n": 100}, "n must be at least 101"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sanity(**({"metrics": [always_one], "checks": ["mean"], "repeats": 1, "n": 20} | options))  # type: ignore[arg-type]


def test_a_damaged_store_is_told(tmp_path: Path) -> None:
    with Journal(tmp_path, {"n": 1}):
        pass
    with (tmp_path / "scores.csv").open("a") as stream:
        stream.write("precision+none,mean,d=1,0,x,0.5,\n")
    with pytest.raises(InputError, match="damaged: delete it"):
        read(tmp_path / "scores.csv")
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        Journal(tmp_path, {"n": 1})


def test_no_number_survives_the_store_as_no_number(tmp_path: Path) -> None:
    place = Trial("m", "mean", "d=1", "0.1", 3)
    with Journal(tmp_path, {}) as store:
        store.add(
            [TrialScore(place, float("nan"), "all, balls\nempty"), TrialScore(place._replace(repeat=4), 0.1 + 0.2)]
        )
    back = read(tmp_path / "scores.csv")
    assert np.isnan(back[place].score)
    assert back[place].reason == "all, balls\nempty"
    assert back[place._replace(repeat=4)].score == 0.1 + 0.2


@pytest.mark.usefixtures("several_threads")
def test_shares_that_are_merged_give_the_scores_of_one_process(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"checks": [next(iter(CHECKS))], "correct": ["none"], "repeats": 2, "n": 30}
    metrics = ["density", "recall"]
    whole = sanity(metrics, **asked, into=tmp_path / "whole")
    for share in ("2/3", "1/3"):
        sanity(metrics, **asked, into=tmp_path / "shared", shard=share)
    merged = sanity(metrics, **asked, into=tmp_path / "shared", merge=True)  # and scores the third itself
    assert merged.to_csv() == whole.to_csv()
    lines = sorted((tmp_path / "shared" / "scores.csv").read_text().splitlines())
    assert lines == sorted((tmp_path / "whole" / "scores.csv").read_text().splitlines())
    with pytest.raises(UsageError, match="give --into"):
        sanity(metrics, **asked, shard="1/2")
    with pytest.raises(UsageError, match="give --into"):
        sanity(metrics, **asked, scheduler="tcp://127.0.0.1:9")
