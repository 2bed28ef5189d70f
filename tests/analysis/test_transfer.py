"""Whether geometry predicts probes: joining tables, Spearman's rho with an interval that holds, and plain sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from earmark import published
from earmark.analysis.transfer import relation_rows, rho_interval, spelled, transfer, verdict
from earmark.errors import InputError
from earmark.scores import Row, Scores


def table(count: int, noise: float = 0.0, *, versions: int = 1, seed: int = 0) -> Scores:
    """Systems whose probe accuracy follows their P@1 and runs against their hubness, with noise."""
    generator = np.random.default_rng(seed)
    rows = []
    for model in range(count):
        for version in range(versions):
            level = 0.3 + 0.5 * model / count + 0.001 * version
            name = f"model{model} mean_time" + (f" D{10 + version}" if version else "")
            named = {"suite": "s", "subset": "one", "system": name}
            rows.append(Row(**named, distance="cosine", metric="P@1", value=level, lift=level - 0.1))
            rows.append(Row(**named, distance="cosine", metric="hub_ratio", value=5.0 - 4.0 * level))
            accuracy = float(np.clip(level + noise * generator.standard_normal(), 0, 1))
            rows.append(Row(**named, metric="accuracy", protocol="linear given:5", value=accuracy))
    return Scores(tuple(rows))


def test_a_perfect_relation_and_its_sign() -> None:
    relations = {item.predictor: item for item in transfer(table(8))}
    assert list(relations) == ["P@1", "P@1 lift", "hub_ratio"]
    assert relations["P@1"].rho == pytest.approx(1.0)
    assert relations["hub_ratio"].rho == pytest.approx(-1.0)
    assert (relations["P@1"].expected, relations["hub_ratio"].expected) == (1, -1)
    assert all(item.units == len(item.witnesses) == 8 for item in relations.values())
    said = " ".join(verdict(list(relations.values())))
    assert "3 point the expected way" in said
    assert "goes closely with" in said


def test_values_are_scipys() -> None:
    (relation, *_) = transfer(table(12, 0.2), predictors=["P@1"])
    x = [item.predictor for item in relation.witnesses]
    y = [item.outcome for item in relation.witnesses]
    assert relation.rho == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert relation.tau == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_versions_of_a_model_are_one_unit() -> None:
    (alone, *_) = transfer(table(7, 0.1), predictors=["P@1"])
    (many, *_) = transfer(table(7, 0.1, versions=5), predictors=["P@1"])
    assert (alone.units, alone.interval, many.units, many.interval) == (7, "fisher", 7, "jackknife")
    (few, *_) = transfer(table(3, 0.1, versions=5), predictors=["P@1"])
    assert few.rho is not None
    assert few.low is None
    assert "3 models are too few" in few.reason
    assert "Nothing certain" in " ".join(verdict([few]))


@pytest.mark.parametrize(
    ("models", "versions", "rho"), [(5, 1, 0.9), (6, 1, 0.0), (12, 1, 0.6), (7, 5, 0.0), (10, 4, 0.6)]
)
def test_intervals_of_rho_cover(models: int, versions: int, rho: float) -> None:
    """Systems of a model share 70 % of their variance; the truth is the population's rho."""
    generator = np.random.default_rng(models)
    mixing = np.linalg.cholesky(np.array([[1.0, rho], [rho, 1.0]]))
    truth = 6.0 / np.pi * np.arcsin(rho / 2.0)
    units = np.repeat(np.arange(models), versions)
    covered = rejected = 0
    sets = 100
    for _ in range(sets):
        shared = generator.standard_normal((models, 2))[units]
        own = generator.standard_normal((len(units), 2))
        x, y = ((np.sqrt(0.7) * shared + np.sqrt(0.3) * own if versions > 1 else own) @ mixing.T).T
        low, high, p_value, *_ = rho_interval(x, y, units)
        assert low is not None
        assert high is not None
        assert p_value is not None
        covered += low <= truth <= high
        rejected += p_value < 0.05
        assert (p_value < 0.05) == (not low <= 0.0 <= high)
    assert covered / sets > 0.88
    if rho == 0.0:
        assert rejected / sets < 0.12


def test_what_the_printed_tables_say_of_finches() -> None:
    """66 of 73 printed rows meet a configuration of the full tables; the relation is weaker than the paper says."""
    full, avian = (published.load(name, with_repeats=True) for name in ("vocsim", "vocsim-avian"))
    relations = {
        (item.predictor, item.over): item for item in transfer(full, avian, over=["public", "domain:birdsong"])
    }
    birds = relations["P@1", "mean of domain:birdsong"]
    assert len(birds.witnesses) == 66
    assert birds.rho == pytest.approx(0.39, abs=0.005)
    assert relations["GSR", "mean of domain:birdsong"].rho == pytest.approx(0.43, abs=0.005)
    assert relations["P@1", "mean of public"].rho == pytest.approx(0.17, abs=0.005)
    assert birds.low is not None
    assert birds.low < 0.0 < birds.rho
    assert "0 point the expected way" in verdict(list(relations.values()))[0]


def test_two_systems_of_hear_say_nothing() -> None:
    relations = transfer(published.load("vocsim"), published.load("vocsim-hear"), over=["public"])
    assert all(item.rho is None and "2 systems" in item.reason for item in relations)


def test_spellings_of_one_configuration() -> None:
    assert (spelled("EF (D=100)"), spelled("CLAP"), spelled("EWTF D30")) == ("EF D100", "CLP", "EWTF D30")
    files = [spelled(name) for name in ("mfcc.npz", "out/mfcc.npy", "C:\\out\\mfcc.CSV", "mfcc.parquet", "mfcc")]
    assert set(files) == {"mfcc"}
    assert spelled("facebook/wavlm") == "facebook/wavlm"
    assert [spelled(f"{name}/vectors.npz") for name in "ab"] == ["a/vectors", "b/vectors"]


def test_files_and_names_of_systems_meet() -> None:
    both = table(8)
    probes = [replace(row, system=f"out/{row.system}.npz") for row in both if row.metric == "accuracy"]
    found = transfer(Scores(tuple(row for row in both if row.metric != "accuracy")), Scores(tuple(probes)))
    assert {len(item.witnesses) for item in found} == {8}


def test_relations_are_rows_of_a_score_table() -> None:
    rows = relation_rows(transfer(table(8, 0.1)))
    assert {row.metric for row in rows} == {"transfer_spearman"}
    assert all(row.low is not None and row.unit == "model" and row.units == 8 for row in rows)


def test_nothing_to_predict_or_to_predict_by_is_said() -> None:
    both = table(6)
    with pytest.raises(InputError, match="nothing to predict: no row of a probe"):
        transfer(Scores(tuple(row for row in both if row.metric != "accuracy")))
    with pytest.raises(InputError, match="nothing to predict by"):
        transfer(Scores(tuple(row for row in both if row.metric == "accuracy")))
    strangers = Scores((Row(system="nobody", metric="accuracy", protocol="linear given:5", value=0.5),))
    wanted = r"predictors are of model0 mean_time, .* and 3 more, outcomes of nobody; name systems alike with --system"
    with pytest.raises(InputError, match=wanted):
        transfer(both, strangers)


def test_a_constant_outcome_has_no_rank() -> None:
    rows = [row if row.metric != "accuracy" else Row(**{**row.as_dict(), "value": 1.0}) for row in table(6)]
    (relation, *_) = transfer(Scores(tuple(rows)), predictors=["P@1"])
    assert relation.rho is None
    assert "outcome is the same" in relation.reason


def test_means_are_over_the_same_subsets() -> None:
    """Half of the systems also have a hard subset: their means are not put beside those of the others."""
    easy = table(8, 0.1)
    hard = [
        Row(suite="s", subset="hard", system=row.system, distance="cosine", metric="P@1", value=0.1)
        for row in easy
        if row.metric == "P@1"
    ][:6]
    outcomes = Scores(tuple(Row(**{**row.as_dict(), "subset": "else"}) for row in easy if row.metric == "accuracy"))
    (relation,) = transfer(Scores((*easy.rows, *hard)), outcomes, predictors=["P@1"])
    assert relation.over == "mean of 2 subsets"
    assert len(relation.witnesses) == 6
    assert "2 systems without a value on every subset left out" in relation.reason


def test_the_verdict_keeps_to_its_correction() -> None:
    """One of several predictors is nominally significant: no sentence calls that a relation."""
    relations = [item for seed in range(12) for item in transfer(table(8, 0.35, seed=seed))]
    nominal = [item for item in relations if 0.05 / len(relations) < (item.p_value or 1.0) < 0.05]
    assert nominal
    said = " ".join(verdict(relations))
    assert "not beyond what so many relations give by chance" in said or "says nothing certain" in said
    assert "goes with" not in said.replace("goes closely with", "")


def test_families_of_ones_own_meet_every_spelling_and_every_system() -> None:
    rows = [
        Row(suite="s", subset="one", system=f"Z{i // 2} (D={100 if i % 2 else 30})", distance="cosine", metric="P@1",
            value=0.1 + 0.05 * i)
        for i in range(12)
    ]  # fmt: skip
    rows += [
        Row(
            suite="s",
            subset="one",
            system=row.system,
            metric="accuracy",
            protocol="linear given:5",
            value=0.5 + 0.02 * i,
        )
        for i, row in enumerate(rows)
    ]
    named = {row.system: row.system.split()[0] for row in rows}
    (relation,) = transfer(Scores(tuple(rows)), families=named)
    assert (relation.units, relation.interval) == (6, "jackknife")
    named.pop("Z0 (D=30)")
    with pytest.raises(InputError, match="do not name 1 system"):
        transfer(Scores(tuple(rows)), families=named)
    with pytest.raises(InputError, match="two values of accuracy"):
        transfer(Scores((*rows, rows[-1])))
