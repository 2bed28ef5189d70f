"""A whole analysis: figures of the papers' own matrices, the shape of its JSON, what small tables still give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import earmark
from earmark.analysis._settings import PAPER
from earmark.analysis.pounce import random_split
from earmark.analysis.prowl import prowl
from earmark.analysis.study import Study, analyze
from earmark.errors import InputError, UsageError
from earmark.scores import Row, Scores


@pytest.fixture(scope="module")
def vocsim() -> Study:
    return analyze("published:vocsim", metric="P@1", with_repeats=True)


def test_the_figures_of_vocsims_own_matrix(vocsim: Study) -> None:
    assert vocsim.matrix.values.shape == (127, 19)
    assert vocsim.stalk.datasets.counts["NONE"] == 117
    assert sum(vocsim.stalk.datasets.counts.values()) == 171
    rows = {row["similarity"]: row for row in vocsim.as_dict()["prowl"]}
    assert rows["manhattan"]["size"] == 2
    assert rows["manhattan"]["order"][:2] == ["HW3", "BS4"]
    assert rows["manhattan"]["scauc"] == pytest.approx(0.984, abs=0.0005)
    assert {rows[name]["size"] for name in rows if name not in ("random", "manhattan", "greedy_min", "greedy_max")} == {
        3,
        4,
    }
    assert rows["random"]["size"] == pytest.approx(4.5, abs=0.1)
    errors = {row["regressor"]: row["auc_mse"] for row in vocsim.as_dict()["pounce"]}
    assert vocsim.split == "grouped"
    for name, figure in (("ridge", 0.0067), ("knn", 0.0079), ("mean", 0.0100)):
        assert errors[name] == pytest.approx(figure, abs=0.00006)


def test_a_random_split_looks_better_than_it_is() -> None:
    errors = {
        row["regressor"]: row["auc_mse"]
        for row in _core("published:vocsim", "P@1", split="random", with_repeats=True)["pounce"]
    }
    for name, figure in (("ridge", 0.0033), ("knn", 0.0025), ("mean", 0.0089)):
        assert errors[name] == pytest.approx(figure, abs=0.00006)


def test_the_figures_of_codec_superbs_matrix() -> None:
    found = _core("published:codec-superb", "overall")
    rows = {row["similarity"]: row for row in found["prowl"]}
    nine = [name for name in rows if name not in ("random", "greedy_min", "greedy_max")]
    assert len(nine) == 9
    assert {rows[name]["size"] for name in nine} == {1}
    assert {name: rows[name]["stable_size"] for name in nine} == {
        name: 10 if name in ("spearman", "kendall") else 3 for name in nine
    }
    errors = {row["regressor"]: row["auc_mse"] for row in found["pounce"]}
    for name, figure in (("ridge", 0.0035), ("knn", 0.0021), ("mean", 0.0056)):
        assert errors[name] == pytest.approx(figure, abs=0.00006)


def _core(source: str, metric: str, **options: object) -> dict:  # type: ignore[type-arg]
    return analyze(source, metric=metric, random_orders=20, core=True, **options).as_dict()  # type: ignore[arg-type]


def test_the_dictionary_has_the_designs_shape(vocsim: Study) -> None:
    found = json.loads(json.dumps(vocsim.as_dict(), allow_nan=False))
    assert list(found) == ["stalk", "prowl", "pounce", "novelty", "ranks", "warnings", "noise", "folds", "beams"]
    assert found["noise"] == found["folds"] == found["beams"] == []  # nobody asked
    assert {row["dataset"] for row in found["novelty"]} == set(vocsim.matrix.datasets)
    assert found["ranks"][0]["model"] == "EWMTF D100 / spearman"
    assert found["warnings"] == list(vocsim.warnings)
    assert set(found["stalk"]) == {"datasets", "models"}
    assert set(found["stalk"]["datasets"]) == {"LINEAR", "EXPONENTIAL", "POWER-LAW", "NONE"}
    for row in found["prowl"]:
        assert list(row)[:5] == ["similarity", "scauc", "size", "stable_size", "order"]
        assert row["similarity"] == "random" or sorted(row["order"]) == sorted(vocsim.matrix.datasets)
    assert [list(row)[:2] for row in found["pounce"]] == [["regressor", "auc_mse"]] * 3


def test_what_else_it_tells(vocsim: Study) -> None:
    assert vocsim.blind is not None
    assert set(vocsim.blind.group) == {"HU3", "HU4", "HW3", "HW4"}
    assert vocsim.coverage is not None
    assert 0.85 <= vocsim.coverage.coverage <= 0.95
    assert vocsim.ranks is not None
    assert vocsim.ranks.rows[0].model == "EWMTF D100 / spearman"
    assert len(vocsim.printed_metrics) == 15
    assert vocsim.lite is not None
    assert {entry.under for entry in vocsim.distances} >= {"P@1", "GSR"}
    assert any("of 127 models have a near-duplicate" in sentence for sentence in vocsim.warnings)
    assert any("Chance is known for 19 datasets" in sentence for sentence in vocsim.remarks)
    assert not any("Chance is known" in sentence for sentence in vocsim.warnings)
    for name, table in vocsim.tables().items():
        assert all(len(row) == len(table.header) for row in table.rows), name


def test_the_public_name_is_lazy() -> None:
    assert earmark.analyze is analyze


# --- small and broken matrices --------------------------------------------------------------------------------------


def table(folder: Path, values: np.ndarray, names: str = "abcdef") -> Path:
    lines = [",".join(["model", *names[: values.shape[1]]])]
    lines += [
        ",".join([f"m{i}", *("" if np.isnan(v) else repr(float(v)) for v in row)]) for i, row in enumerate(values)
    ]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def skilled(models: int = 12, datasets: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(np.linspace(0.2, 0.8, models)[:, None] + 0.05 * rng.normal(size=(models, datasets)), 0, 1)


def test_a_plain_table_with_gaps(tmp_path: Path) -> None:
    values = skilled()
    values[np.random.default_rng(1).random(values.shape) < 0.15] = np.nan
    found = analyze(table(tmp_path, values), random_orders=10)
    assert found.matrix.values.shape == (12, 5)
    assert any("part without gaps" in sentence for sentence in found.warnings)
    assert found.split == "random"


def test_a_grouped_split_without_families_is_remarked(tmp_path: Path) -> None:
    found = analyze(table(tmp_path, skilled()), split="grouped", random_orders=0, core=True)
    assert any("no families of several models" in sentence for sentence in found.remarks)


def test_few_gaps_cost_their_models_and_say_so(tmp_path: Path) -> None:
    values = skilled()
    values[3, 2] = np.nan
    found = analyze(table(tmp_path, values), random_orders=0)
    assert "m3" not in found.matrix.models
    assert any("left out: m3" in sentence for sentence in found.warnings)


def test_too_small_for_some_parts_is_a_note_not_an_end(tmp_path: Path) -> None:
    found = analyze(table(tmp_path, skilled(4, 3)), random_orders=5)
    assert found.pounce is None
    assert found.verdicts == ()
    assert found.as_dict()["pounce"] == []
    assert len(found.as_dict()["prowl"]) == 12
    assert any(sentence.startswith("No predictions: 4 models") for sentence in found.warnings)
    assert any(sentence.startswith("No verdicts on datasets") for sentence in found.warnings)


def test_constant_columns_and_mixed_scales_are_said(tmp_path: Path) -> None:
    values = skilled()
    values[:, 1] = 0.5
    values[:, 2] *= 100
    found = analyze(table(tmp_path, values), random_orders=5)
    said = " ".join(found.warnings)
    assert 'The dataset "b" gives every model the same score' in said
    assert 'The dataset "c" is not on the scale of fractions' in said
    flat = json.dumps(found.as_dict(), allow_nan=False)
    assert "NaN" not in flat


@pytest.mark.parametrize(("models", "datasets"), [(2, 4), (5, 1)])
def test_two_models_or_one_dataset_are_refused(models: int, datasets: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs at least"):
        analyze(table(tmp_path, skilled(models, datasets)))


def test_models_that_are_all_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No model beats another"):
        analyze(table(tmp_path, np.full((5, 3), 0.5)))


def test_bad_options_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path, skilled())
    with pytest.raises(UsageError, match="split"):
        analyze(path, split="half")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="random_orders"):
        analyze(path, random_orders=-1)
    with pytest.raises(UsageError, match="seed cannot be negative"):
        analyze(path, seed=-1)
    for noise in (-0.1, np.nan, [0.05, np.inf]):
        with pytest.raises(UsageError, match="noise is a finite number"):
            analyze(path, noise=noise)
    with pytest.raises(UsageError, match="noise_unit"):
        analyze(path, noise=0.1, noise_unit="std")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="draws must be"):
        analyze(path, noise=0.1, draws=0)
    for folds in (0, 1, 10):
        with pytest.raises(UsageError, match="There are 9 models that train: choose from 2 to 9 folds"):
            analyze(path, folds=folds, core=True)
    with pytest.raises(UsageError, match="beam must be at least 1"):
        analyze(path, beam=[1, 0])
    with pytest.raises(UsageError, match="no regressor"):
        analyze(path, regressors=["rigde"])


# --- noise, folds, beams --------------------------------------------------------------------------------------------


def test_noise_folds_and_beams_stand_beside_the_rest(tmp_path: Path) -> None:
    path = table(tmp_path, skilled())
    plain = analyze(path, random_orders=20, core=True).as_dict()
    shares: dict[str, float] = {}

    def tick(stage: str, share: float) -> None:
        shares[stage] = shares.get(stage, 0.0) + share

    found = analyze(path, random_orders=20, core=True, noise=(0.0, 0.05), draws=4, folds=3, beam=(1, 4, 99), tick=tick)
    said = found.as_dict()
    assert {key: said[key] for key in ("stalk", "prowl", "pounce")} == {
        key: plain[key] for key in ("stalk", "prowl", "pounce")
    }
    clean, noisy = said["noise"][:3], said["noise"][3:]
    assert [row["auc_mse"] for row in clean] == [row["auc_mse"] for row in plain["pounce"]]  # no noise is no noise
    assert {row["draws"] for row in clean} == {1}
    assert {(row["variance"], round(row["sigma"], 9), row["draws"]) for row in noisy} == {(0.05, 0.223606798, 4)}
    assert [row["folds"] for row in said["folds"]] == [3, 3, 3]
    for row in said["folds"]:
        assert row["lowest"] <= row["auc_mse"] <= row["highest"]
    assert [row["beam"] for row in said["beams"]] == [1, 4, 99] * 9
    assert [row["order"] for row in said["beams"][::3]] == [row["order"] for row in plain["prowl"][3:]]
    assert shares == pytest.approx(
        {"reading": 1, "stalk": 1, "prowl": 1, "pounce": 1, "noise": 2, "folds": 1, "beams": 1}
    )
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    tables = found.tables()
    assert {"prediction_noise", "prediction_folds", "fold_errors", "beam_widths", "beam_changes"} <= set(tables)
    assert tables["prediction_curves"].header == (
        "size", "ridge", "knn", "mean", "ridge, noise 0", "knn, noise 0", "mean, noise 0", "ridge, noise 0.05",
        "knn, noise 0.05", "mean, noise 0.05",
    )  # fmt: skip


def test_sigma_is_the_root_of_the_variance(tmp_path: Path) -> None:
    path = table(tmp_path, skilled())
    by = [
        analyze(path, random_orders=0, core=True, noise=size, noise_unit=unit, draws=2).noise_rows()  # type: ignore[arg-type]
        for size, unit in ((0.04, "variance"), (0.2, "sigma"))
    ]
    assert [row["auc_mse"] for row in by[0]] == pytest.approx([row["auc_mse"] for row in by[1]])


def test_folds_keep_families_together_unless_the_split_is_random(tmp_path: Path) -> None:
    families = {f"m{i}": f"f{i // 3}" for i in range(12)}
    path = table(tmp_path, skilled())
    whole = analyze(path, families=families, folds=4, random_orders=0, core=True)
    apart = analyze(path, families=families, split="random", folds=4, random_orders=0, core=True)
    assert whole.folds is not None
    assert apart.folds is not None
    by_family = {round(v, 12) for v in whole.pounce.forecast("ridge").by_split.values()}  # type: ignore[union-attr]
    assert {round(v, 12) for v in whole.folds.forecast("ridge").by_split.values()} == by_family  # 4 folds, 4 families
    assert whole.folds.forecast("ridge").auc_mse != apart.folds.forecast("ridge").auc_mse


def test_the_papers_settings(tmp_path: Path) -> None:
    path = table(tmp_path, skilled(12, 4))
    found = analyze(path, paper=True, regressors=["ridge", "mean"], random_orders=10, core=True, draws=2)
    assert (found.split, found.covered) == ("random", "train")
    assert [one.noise for one in found.noise] == [0.05, 0.1]
    assert sorted({one.beam for one in found.beams}) == [1, 5, 10, 20]
    assert found.folds is not None
    assert len(found.folds.forecasts[0].by_split) == 5
    train = random_split(12)[0].train
    expected = prowl(found.matrix.take(train), orders=0)
    assert [one.scauc for one in found.prowl.selections] == [one.scauc for one in expected.selections]
    assert found.stalk.models.counts == analyze(path, random_orders=0, core=True).stalk.models.counts  # of all models
    assert PAPER.regressors == ("ridge", "knn", "mlp12", "mlp12_12", "mean")
    assert [PAPER.folds(models) for models in (29, 45, 79)] == [5, 10, 10]


@pytest.mark.parametrize("models", [3, 4])
def test_a_matrix_too_small_for_the_papers_settings_still_says_what_it_can(models: int, tmp_path: Path) -> None:
    found = analyze(table(tmp_path, skilled(models, 2)), paper=True, random_orders=5)
    assert found.covered == "all"
    assert (found.pounce, found.noise, found.folds) == (None, (), None)
    assert any(sentence.startswith("No predictions") for sentence in found.warnings)
    assert len(found.beams) == 4 * 9


def test_the_papers_settings_with_gaps_and_a_constant_column(tmp_path: Path) -> None:
    values = skilled(14, 6)
    values[:, 1] = 0.5
    values[np.random.default_rng(2).random(values.shape) < 0.15] = np.nan
    found = analyze(table(tmp_path, values), paper=True, regressors=["ridge", "mean"], random_orders=5, draws=2)
    assert found.covered == "train"
    assert len(found.noise) == 2
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_score_table_in_memory() -> None:
    values = skilled(6, 4)
    rows = [
        Row(suite="s", subset=f"d{j}", system=f"m{i}", metric="P@1", value=float(values[i, j]))
        for i in range(6)
        for j in range(4)
    ]
    found = analyze(Scores(tuple(rows)), random_orders=5)
    assert np.allclose(found.matrix.values, values)


def test_rows_that_repeat_others_are_left_out_unless_asked_for(vocsim: Study) -> None:
    found = analyze("published:vocsim", metric="P@1", core=True, random_orders=0)
    whole = int(np.isfinite(vocsim.matrix.values).sum())
    assert 0.6 * whole < int(np.isfinite(found.matrix.values).sum()) < 0.8 * whole
    assert any("repeat other systems'" in remark for remark in found.remarks)
    for model in found.matrix.models:
        row = found.matrix.values[found.matrix.models.index(model)]
        blind = row[[found.matrix.datasets.index(name) for name in ("HU3", "HU4", "HW3", "HW4")]]
        assert np.isfinite(blind).any() == (model.partition(" ")[0] not in WITH_PCA or " D" in model), model


WITH_PCA = ("CLP", "E", "EF", "EMTF", "ET", "ETF", "EW", "EWF", "EWMTF", "EWT", "EWTF", "MAE", "W2V", "WLM")
