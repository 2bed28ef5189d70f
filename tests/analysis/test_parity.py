"""The paper's printed tables beside ours, and the page that shows them.

HELM and MMLU come from a folder of data beside the repository; VocSim and Codec-SUPERB are package data.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path

import numpy as np
import pytest

from earmark import published
from earmark.analysis.cautions import average_columns
from earmark.analysis.matrix import Matrix, from_scores, from_table
from earmark.analysis.pounce import pounce, random_split
from earmark.analysis.prowl import Prowl, prowl
from earmark.analysis.stalk import Stalk, stalk

ROOT = Path(__file__).resolve().parents[2]
SIMBA = ROOT.parent / "shared" / "data" / "simba"
PAGE = ROOT / "docs" / "simba-parity.md"
HALVES, QUARTERS = ("BoolQ", "IMDB", "CivilComments", "RAFT"), ("MMLU", "HellaSwag", "OpenbookQA", "TruthfulQA")
NAMES = {
    "RANDOM (n = 1000)": "random",
    "GREEDY MINIMUM": "greedy_min",
    "GREEDY MAXIMUM": "greedy_max",
    "KENDALL-TAU": "kendall",
    "MANHATTAN (L1)": "manhattan",
    "MINKOWSKI (P=3)": "minkowski",
    "MINKOWSKI (L3)": "minkowski",
    "JENSEN-SHANNON": "jensen_shannon",
}

needs_data = pytest.mark.skipif(not SIMBA.is_dir(), reason=f"no SimBA matrices at {SIMBA}")


def ours(printed: str) -> str:
    return NAMES.get(printed, printed.lower())


def read(name: str, without: tuple[str, ...] = ()) -> tuple[np.ndarray, list[str], list[str]]:
    with (SIMBA / name).open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    columns = [j for j, title in enumerate(header) if j and title not in without]
    values = np.array([[float(row[j]) if row[j] else np.nan for j in columns] for row in rows])
    return values, [row[0] for row in rows], [header[j] for j in columns]


@functools.cache
def benchmark(name: str) -> Matrix:
    if name == "MMLU":
        values, models, datasets = read("helm_mmlu_79x58.csv")
        return from_table(values, models, datasets, chance=0.25)
    values, models, datasets = read("helm_core_29x16.csv", without=("Mean win rate",))
    chance = {d: 0.5 if d.startswith(HALVES) else 0.25 if d.startswith(QUARTERS) else 0.0 for d in datasets}
    return from_table(values, models, datasets, chance=chance)


@functools.cache
def found(name: str) -> Prowl:
    """Table 3 was made on the 80 % of the models that train."""
    matrix = benchmark(name)
    return prowl(matrix.take(random_split(len(matrix.models))[0].train), orders=1000)


def table3(name: str) -> list[tuple[str, float, float, float, float]]:
    """For each row of the paper's Table 3: its name, SCAUC printed and found, size printed and found."""
    rows = {row["similarity"]: row for row in found(name).rows()}
    return [
        (
            printed["similarity"],
            float(printed[f"{name}_SCAUC"]),
            rows[ours(printed["similarity"])]["scauc"],
            float(printed[f"{name}_Sstar"]),
            rows[ours(printed["similarity"])]["size"],
        )
        for printed in published.read("simba_table3")
    ]


@needs_data
def test_table_3_of_mmlu() -> None:
    rows = table3("MMLU")
    assert len(rows) == 12
    for _, scauc, mine, size, own_size in rows:
        assert mine == pytest.approx(scauc, abs=0.003)
        assert own_size == pytest.approx(size, abs=0.05 if size != int(size) else 0)


@needs_data
def test_table_3_of_helm() -> None:
    rows = table3("HELM")
    near = [name for name, scauc, mine, _, _ in rows if abs(mine - scauc) <= 0.003]
    assert len(near) == 11
    assert "MANHATTAN" not in near
    assert {name for name, _, _, size, mine in rows if abs(mine - size) > 0.1} == {
        "EUCLIDEAN",
        "MINKOWSKI (P=3)",
        "WASSERSTEIN",
    }


@needs_data
def test_another_chance_for_raft_gives_every_size_of_helm() -> None:
    helm = benchmark("HELM")
    third = from_table(
        helm.values,
        helm.models,
        helm.datasets,
        chance={d: 1 / 3 if d.startswith("RAFT") else c for d, c in zip(helm.datasets, helm.chance, strict=True)},
    )
    rows = {row["similarity"]: row for row in prowl(third.take(random_split(29)[0].train), orders=0).rows()}
    for printed in published.read("simba_table3")[1:]:
        row = rows[ours(printed["similarity"])]
        assert row["size"] == int(printed["HELM_Sstar"])
        assert row["scauc"] == pytest.approx(float(printed["HELM_SCAUC"]), abs=0.0032)


@needs_data
@pytest.mark.parametrize("name", ["HELM", "MMLU"])
def test_ridge_and_knn_of_table_4(name: str) -> None:
    printed = {row["regressor"]: row[name] for row in published.read("simba_tables4_5") if row["table"] == "4"}
    mine = pounce(benchmark(name), ("ridge", "knn", "mean"), split="random")
    assert f"{mine.forecast('ridge').auc_mse:.3f}" == printed["RIDGE"]
    assert f"{mine.forecast('knn').auc_mse:.3f}" == printed["KNN"]
    assert mine.forecast("mean").auc_mse == pytest.approx({"HELM": 0.0110, "MMLU": 0.0115}[name], abs=5e-5)


@needs_data
def test_networks_that_have_converged_are_not_the_worst() -> None:
    """The paper prints .081 and .031; what it saw looks like training that was stopped early."""
    networks = pounce(benchmark("HELM"), ("mlp12",), split="random")
    assert networks.forecast("mlp12").auc_mse < 0.005


@needs_data
@pytest.mark.parametrize("name", ["HELM", "MMLU"])
def test_noise_of_table_5_is_given_as_a_variance(name: str) -> None:
    for row in published.read("simba_tables4_5"):
        if row["table"] != "5" or row["regressor"] not in ("RIDGE", "KNN"):
            continue
        by = {
            what: pounce(benchmark(name), (row["regressor"].lower(),), split="random", noise=variance, draws=10)
            for what, variance in (("variance", float(row["noise_sigma"])), ("sigma", float(row["noise_sigma"]) ** 2))
        }
        error = {what: abs(run.forecasts[0].auc_mse / float(row[name]) - 1) for what, run in by.items()}
        assert error["variance"] < 0.25 < error["sigma"]


@needs_data
@pytest.mark.parametrize(
    ("name", "datasets", "models"),
    [("HELM", (1, 22, 45, 52), (105, 102, 193, 6)), ("MMLU", (66, 565, 829, 193), (469, 646, 1742, 224))],
)
def test_relations_of_tables_1_and_2(name: str, datasets: tuple[int, ...], models: tuple[int, ...]) -> None:
    counts = stalk(benchmark(name))
    assert tuple(counts.datasets.counts.values()) == datasets
    assert tuple(counts.models.counts.values()) == models


@needs_data
def test_five_of_nine_similarities_begin_with_the_average_of_all() -> None:
    first = [
        row["order"][0]
        for row in found("MMLU").rows()
        if row["similarity"] not in ("random", "greedy_min", "greedy_max")
    ]
    assert first.count("MMLU All Subjects - EM") == 5
    assert average_columns(benchmark("MMLU").normalised(clip=False)) == [0]


@needs_data
def test_proportions_of_table_6() -> None:
    """Medians of differences: the proportions hang on single orders, so not each of them can agree."""
    gaps = []
    for row in published.read("simba_table6"):
        for name in ("HELM", "MMLU"):
            mine = found(name).selection(ours(row["similarity"]))
            gaps += [
                abs(float(row[f"{name}_AUC"]) - (mine.beats_random or 0)),
                abs(float(row[f"{name}_Max2"]) - (mine.beats_random_early or 0)),
            ]
    assert np.median(gaps) < 0.05


def _size(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


@needs_data
def test_the_page_shows_these_numbers() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for helm, mmlu in zip(table3("HELM"), table3("MMLU"), strict=True):
        cells = [f"{a:.3f} | {b:.3f} | {_size(c)} | {_size(d)}" for _, a, b, c, d in (helm, mmlu)]
        assert f"| {helm[0]} | {cells[0]} | {cells[1]} |" in page
    for row in published.read("simba_table6"):
        cells = []
        for name in ("HELM", "MMLU"):
            mine = found(name).selection(ours(row["similarity"]))
            cells += [row[f"{name}_AUC"], f"{mine.beats_random:.3f}", row[f"{name}_Max2"]]
            cells += [f"{mine.beats_random_early:.3f}"]
        assert f"| {row['similarity']} | {' | '.join(cells)} |" in page
    for place, side in enumerate(("datasets", "models")):
        counts = [getattr(stalk(benchmark(name)), side).counts for name in ("HELM", "MMLU")]
        for printed in published.read("simba_tables1_2")[4 * place : 4 * place + 4]:
            kind = printed["relationship"]
            assert f"| {kind} | {printed['HELM']} | {counts[0][kind]} | {printed['MMLU']} | {counts[1][kind]} |" in page


# --- this project's own matrices -----------------------------------------------------------------------------


@functools.cache
def vocsim(level: str = "method") -> Matrix:
    scores = published.load("vocsim", with_repeats=True)  # the figures of 0.1.0 are of the table as printed
    chance = {row["subset"]: 1 / int(row["n_classes"]) for row in published.read("vocsim_table1_subsets")}
    families = published.families("vocsim", {row.system for row in scores.rows}, level)
    return from_scores(scores, "P@1", chance=chance, families=families).complete()


@functools.cache
def codecs() -> Matrix:
    scores = published.load("codec-superb")
    families = published.families("codec-superb", {row.system for row in scores.rows})
    return from_scores(scores, "overall", families=families).complete()


@functools.cache
def own(name: str) -> tuple[Stalk, Prowl]:
    matrix = {"vocsim": vocsim, "codecs": codecs}[name]()
    return stalk(matrix), prowl(matrix, orders=1000)


def test_the_vocsim_matrix() -> None:
    assert vocsim().values.shape == (127, 19)
    related, selected = own("vocsim")
    assert related.datasets.counts["NONE"] == 117
    rows = {row["similarity"]: row for row in selected.rows()}
    assert rows["random"]["size"] == pytest.approx(4.5, abs=0.1)
    assert rows["manhattan"]["size"] == 2
    assert rows["manhattan"]["order"][:2] == ["HW3", "BS4"]
    assert rows["manhattan"]["scauc"] == pytest.approx(0.984, abs=0.001)
    rest = set(rows) - {"random", "greedy_min", "greedy_max", "manhattan"}
    assert {rows[name]["size"] for name in rest} == {3, 4}


@pytest.mark.parametrize(
    ("split", "level", "expected"),
    [
        ("random", "method", {"ridge": 0.0033, "knn": 0.0025, "mean": 0.0089}),
        ("grouped", "method", {"ridge": 0.0067, "knn": 0.0079, "mean": 0.0100}),
        ("grouped", "model", {"ridge": 0.0086, "knn": 0.0111, "mean": 0.0143}),
    ],
)
def test_predictions_on_vocsim(split: str, level: str, expected: dict[str, float]) -> None:
    rows = pounce(vocsim(level), split=split).rows()  # type: ignore[arg-type]
    assert {row["regressor"]: row["auc_mse"] for row in rows} == pytest.approx(expected, abs=6e-5)


def test_the_codec_superb_matrix() -> None:
    assert codecs().values.shape == (19, 19)
    rows = [row for row in own("codecs")[1].rows() if row["similarity"] not in ("random", "greedy_min", "greedy_max")]
    assert {row["size"] for row in rows} == {1}
    stable = {row["similarity"]: row["stable_size"] for row in rows}
    assert {stable.pop("spearman"), stable.pop("kendall")} == {10}
    assert set(stable.values()) == {3}
    errors = {row["regressor"]: row["auc_mse"] for row in pounce(codecs()).rows()}
    assert errors == pytest.approx({"ridge": 0.0035, "knn": 0.0021, "mean": 0.0056}, abs=6e-5)
