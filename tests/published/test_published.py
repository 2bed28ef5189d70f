"""The papers' printed results: complete, unchanged, in the score schema, and recomputed wherever that is possible."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from earmark import published
from earmark.errors import UsageError
from earmark.scores import METRICS, VOCSIM_SUBSETS, aggregate, validate
from earmark.scores.rows import distinct

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "published"


def test_every_table_is_there_with_all_its_rows() -> None:
    for card in published.tables():
        assert len(published.read(card.name)) == card.lines, card.name
        assert card.paper in published.PAPERS
    assert len({card.name for card in published.tables()}) == len(published.tables()) == 28


@pytest.mark.skipif(not SHARED.is_dir(), reason="the extracted tables are not beside this checkout")
def test_the_files_are_the_extracted_ones_byte_for_byte() -> None:
    folder = Path(published.__file__).parent / "data"
    own = {"vocsim_table5_overlap.csv", "gicdm_appendix_f.csv"}  # read from the texts here
    assert {path.name for path in folder.iterdir()} == {path.name for path in SHARED.glob("*.csv")} | own
    for path in folder.iterdir():
        assert path.name in own or path.read_bytes() == (SHARED / path.name).read_bytes(), path.name


def test_a_name_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(UsageError, match=r'no published set "vocsin".*Did you mean "vocsim"'):
        published.load("vocsin")
    with pytest.raises(UsageError, match='no published table "simba_table33"'):
        published.read("simba_table33")


# --- VocSim in the score schema -------------------------------------------------------------------------------------


def test_vocsim_has_seven_metrics_of_all_configurations_on_19_subsets() -> None:
    scores = published.load("vocsim")
    assert len(scores) == 16_758
    assert validate(scores.rows) == []
    counts = Counter(row.metric for row in scores)
    assert {metric: count // 19 for metric, count in counts.items()} == {
        "P@1": 129, "P@5": 129, "GSR": 128, "CSR": 124, "CS": 124, "CSCF": 124, "purity": 124,
    }  # fmt: skip
    assert set(distinct(scores.rows, "subset")) == {subset.name for subset in VOCSIM_SUBSETS}
    assert set(distinct(scores.rows, "distance")) == {"cosine", "euclidean", "spearman"}


def test_a_printed_percentage_is_the_nearest_fraction_with_its_provenance() -> None:
    row = published.load("vocsim").row("P@1", system="EWMTF D100", distance="spearman", subset="BC")
    assert row.value == 0.762
    assert row.version == "published, VocSim, Table 19"
    assert row.inputs == "vocsim_full_results:2 both versions agree"
    cells = list(csv.DictReader((Path(published.__file__).parent / "data" / "vocsim_full_results.csv").open()))
    assert cells[0]["value_pct"] == "76.2"  # line 2 of the file


def test_a_dash_is_not_applicable_and_a_sentinel_is_failed_with_what_was_printed() -> None:
    scores = published.load("vocsim")
    dash = scores.row("P@1", system="MAE D100", distance="spearman", subset="HU2")
    assert (dash.status, dash.value) == ("not_applicable", None)
    failed = [row for row in scores if row.status == "failed"]
    assert len(failed) == 20
    assert Counter(row.metric for row in failed) == {"purity": 19, "CS": 1}
    sentinel = scores.row("purity", system="CC", distance="cosine", subset="ES1")
    assert "printed as 1.0 %" in sentinel.reason
    assert Counter(row.status for row in scores) == {
        "ok": 11_353, "repeated": 5_099, "not_applicable": 286, "failed": 20,
    }  # fmt: skip


def test_doubtful_cells_keep_their_value_and_say_so() -> None:
    scores = published.load("vocsim")
    run = scores.row("P@1", system="E", distance="cosine", subset="BS2")
    assert run.value == 0.034
    assert "failed run" in run.reason
    repaired = scores.select(metric="P@5", system="BEATs", subset="BS4").rows
    assert [row.value for row in repaired] == [0.886, 0.886]
    assert all("838.6" in row.reason for row in repaired)
    wrong = published.load("vocsim-main").row("P@5", system="WLM D100", subset="mean:public")
    assert wrong.value == 0.544
    assert "52.7" in wrong.reason


def test_printed_averages_follow_with_the_packages_own_rules() -> None:
    scores = published.load("vocsim").select(metric="P@1", system="EWMTF D100", distance="spearman")
    assert aggregate(scores, "public").value("P@1") == pytest.approx(0.668, abs=0.001)
    assert aggregate(scores, "blind").value("P@1") == pytest.approx(0.115, abs=0.001)


def test_the_other_sets_are_score_tables_too() -> None:
    known = {name for name in published.SETS if not name.startswith(("vocsim-", "gicdm"))}
    for name in published.SETS:
        scores = published.load(name)
        assert scores.rows, name
        assert all(row.version.startswith("published, ") and row.inputs for row in scores)
        assert len({row.key for row in scores}) == len(scores), name
        problems = [problem for problem in validate(scores.rows) if "unknown metric" not in problem]
        assert problems == [], name
    assert known == {"vocsim", "codec-superb"}
    codecs = published.load("codec-superb")
    overall = [row for row in codecs.select(metric="overall") if not row.subset.startswith("mean")]
    assert len(overall) == 361
    assert {row.metric for row in codecs} <= set(METRICS)
    assert codecs.value("wer", system="no codec") == 0.0296
    assert "repeats E3" in codecs.row("er_accuracy", system="F2").reason
    permuted = published.load("vocsim-permutations").row("GSR", subset="mean:blind")
    assert (permuted.value, permuted.baseline, permuted.baseline_low) == (0.3952, 0.3374, 0.3369)


# --- families -------------------------------------------------------------------------------------------------------


def test_families_by_method_and_by_model() -> None:
    systems = distinct(published.load("vocsim").rows, "system")
    methods = published.families("vocsim", systems)
    assert len(set(methods.values())) == 20
    assert (methods["EWMTF D100"], methods["CLP"]) == ("EWMTF", "CLP")
    models = published.families("vocsim", systems, level="model")
    assert len(set(models.values())) == 12
    assert models["EWMTF D100"] == models["EW"] == "Whisper" != models["EMTF D100"]
    assert published.families("vocsim", ["my model"]) == {"my model": "my model"}
    codecs = published.read("codec_superb_table3")[1:]
    assert published.families("codec-superb", [row["codec"] for row in codecs]) == {
        row["codec"]: row["family"] for row in codecs
    }


# --- the checker ----------------------------------------------------------------------------------------------------


def test_every_printed_average_is_recomputed() -> None:
    found = {(finding.paper, finding.name): finding for finding in published.check()}
    assert all(finding.as_known for finding in found.values())
    counts = {name: (finding.reproduced, finding.total) for (_, name), finding in found.items()}
    assert counts["Tables 19–25: Avg"] == (882, 882)
    assert counts["Tables 19–25: Avg (Blind)"] == (882, 882)
    assert counts["Table 2: equal to the full tables"] == (59, 60)
    assert counts["Table 15: differences"] == (15, 15)
    assert counts["Tables 6–8: Overall equals Table 3"] == (57, 57)
    assert counts["Tables 6–7: Overall is the harmonic mean"] == (38, 38)
    assert counts["Table 8: Overall is the harmonic mean"] == (2, 19)
    assert "7 of them only without the cells of failed runs" in found["VocSim", "Tables 19–25: Avg"].remark


def test_a_changed_digit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.published import _checks as checks

    rows = published.read("vocsim_table15_dtw_per_subset")
    rows[0]["delta_P@1"] = "-7.7"
    real = checks.read
    monkeypatch.setattr(checks, "read", lambda name: rows if name == "vocsim_table15_dtw_per_subset" else real(name))
    changed = [finding.name for finding in published.check() if not finding.as_known]
    assert changed == ["Table 15: differences"]


def test_brute_force_averages_agree_with_the_checker() -> None:
    """Ten lines with NumPy instead of the checker's loops, on one metric of each scope."""
    cells = published.read("vocsim_full_results")
    for metric, splits in (("GSR", ("public",)), ("CSCF", ("public", "blind"))):
        printed = [row for row in published.read("vocsim_full_results_averages") if row["metric"] == metric]
        for row in printed[::7]:
            mine = [
                float(cell["value_pct"])
                for cell in cells
                if (cell["metric"], cell["method"], cell["distance"]) == (metric, row["method"], row["distance"])
                and cell["split"] in splits
                and cell["value_pct"]
            ]
            assert np.mean(mine) == pytest.approx(float(row["avg_printed"]), abs=0.1001)


def test_reading_needs_nothing_heavy() -> None:
    code = (
        "import sys, earmark.published as p; p.read('simba_table3');"
        "print([name for name in ('scipy', 'torch', 'sklearn', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_printed_ablations_are_shares_of_whole_classes() -> None:
    """The digits of Tables 13 and 15 tell their n: classes with enough clips, times clips of each."""
    classes = {row["subset"]: int(row["n_classes"]) for row in published.read("vocsim_table1_subsets")}

    def fits(values: list[float], n: int, digit: float) -> bool:
        return all(abs(100 * round(value * n / 100) / n - value) <= digit / 2 + 1e-9 for value in values)

    for row in published.read("vocsim_table15_dtw_per_subset"):
        most = min(50, classes[row["subset"]])
        found = [
            n for n in range(most, 1, -1) if fits([float(row[f"{name}_P@1"]) for name in ("pooled", "dtw")], 5 * n, 0.1)
        ]
        assert found[0] == {"BS3": 45}.get(row["subset"], most)  # of its 46 classes one has 2 clips
    poolings = [row for row in published.read("vocsim_table13_pooling_ablation") if "incl. pad" not in row["pooling"]]
    for subset in ("HP", "BC", "BS1"):
        values = [float(row["P@1_pct"]) for row in poolings if row["subset"] == subset]
        assert fits(values, 6 * classes[subset], 0.01)
    rows = published.load("vocsim-pooling")
    assert {row.subset for row in rows if "incl. pad" in row.system} == {"HP", "BC", "BS1"}
    assert {row.ablation for row in rows} == {"", "sample100x6"}
