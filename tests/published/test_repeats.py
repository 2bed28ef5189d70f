"""Rows that repeat others are found by counting equal cells, keep their value, and count nowhere unless asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from earmark import published
from earmark.analysis.predict import predict
from earmark.analysis.sources import open_matrix
from earmark.cli import main
from earmark.errors import InputError
from earmark.published._repeats import find_repeats, flagged
from earmark.scores import Row, Scores, aggregate, load_scores, validate

METRICS = ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF")
SUBSETS = ("forest", "street", "sea", "office")


def table(seed: int = 0, systems: tuple[str, ...] = ("a", "b", "c", "d")) -> dict[tuple[str, str, str], float]:
    """Values of systems that were measured apart, rounded as a paper prints them."""
    rng = np.random.default_rng(seed)
    return {
        (system, subset, metric): round(float(rng.uniform(0.2, 0.6)), 3)
        for system in systems
        for subset in SUBSETS
        for metric in METRICS
    }


def rows_of(cells: dict[tuple[str, str, str], float]) -> list[Row]:
    return [Row(system=one, subset=two, metric=three, value=value) for (one, two, three), value in cells.items()]


def test_systems_that_were_measured_apart_repeat_nothing() -> None:
    for seed in range(20):
        assert find_repeats(rows_of(table(seed))) == []


def test_a_copied_block_is_found_with_its_subset_and_its_counts() -> None:
    cells = table()
    for metric in METRICS:
        cells["c", "sea", metric] = cells["b", "sea", metric]
        cells["c", "street", metric] = cells["a", "street", metric]
    cells["c", "forest", "GSR"] = cells["b", "forest", "GSR"]  # one equal cell is chance
    found = find_repeats(rows_of(cells))
    assert {(one.system, one.other, one.subset, one.equal, one.certain) for one in found} == {
        ("c", "b", "sea", 6, True),
        ("c", "a", "street", 6, True),
    }
    marked = [row for row in flagged(rows_of(cells)) if row.status != "ok"]
    assert {row.status for row in marked} == {"repeated"}
    assert Counter((row.system, row.subset) for row in marked) == {("c", "sea"): 6, ("c", "street"): 6}
    assert "repeats b on sea in 6 of 6 cells" in next(row.reason for row in marked if row.subset == "sea")
    assert validate(flagged(rows_of(cells))) == []


def test_a_block_may_differ_in_one_cell_of_ten_and_values_that_do_not_vary_show_nothing() -> None:
    cells = table(systems=("a", "b"))
    for subset in SUBSETS:
        for metric in METRICS:
            cells["b", subset, metric] = cells["a", subset, metric]
    cells["b", "sea", "GSR"] = 0.999
    (found,) = find_repeats(rows_of(cells))
    assert (found.subset, found.equal, len(found.cells), found.certain) == ("", 23, 24, False)
    flat = dict.fromkeys(table(systems=("a", "b")), 1.0)
    assert find_repeats(rows_of(flat)) == []


def test_a_run_down_a_column_is_found() -> None:
    values = [0.11, 0.12, 0.13, 0.14, 0.15, 0.12, 0.13, 0.14, 0.15, 0.9]
    rows = [Row(system=f"s{place}", subset="x", metric="P@1", value=value) for place, value in enumerate(values)]
    assert [(one.system, one.other) for one in find_repeats(rows)] == [
        ("s5", "s1"), ("s6", "s2"), ("s7", "s3"), ("s8", "s4"),
    ]  # fmt: skip
    assert find_repeats(rows[:8]) == []


def test_vocsims_rows_without_pca_repeat_its_pca_rows() -> None:
    scores = published.load("vocsim")
    assert validate(scores.rows) == []
    repeated = [row for row in scores if row.status == "repeated"]
    kinds = Counter(published.vocsim_kind(row.system) for row in repeated)
    assert kinds["D100"] == 0
    assert kinds["raw"] > 0.95 * len(repeated)
    blind = {"HU3", "HU4", "HW3", "HW4"}
    with_pca = {published.vocsim_family(row.system) for row in scores if row.system.endswith(" D100")}
    raw = [row for row in scores if row.subset in blind and row.system in with_pca and row.value is not None]
    assert raw
    assert {row.status for row in raw} == {"repeated"}
    row = scores.row("GSR", system="WLM", distance="spearman", subset="HU3")
    assert row.value == scores.value("GSR", system="WLM D100", distance="spearman", subset="HU3")
    assert row.reason == "repeats WLM D100 on HU3 in 21 of 21 cells, although the two should differ"


def test_the_pca_rows_are_the_measured_ones() -> None:
    """D100 - D30 is the same where raw equals D100 and where raw equals D30: neither of the two can be raw."""
    scores = published.load("vocsim", with_repeats=True).select(metric="GSR", distance="spearman")
    value = {(row.system, row.subset): row.value for row in scores if row.value is not None}

    def step(subsets: list[str]) -> float:
        pairs = [(method.replace(" D100", ""), method, subset) for method, subset in value if method.endswith(" D100")]
        return float(
            np.mean(
                [
                    value[method, subset] - value[f"{family} D30", subset]
                    for family, method, subset in pairs
                    if subset in subsets and (f"{family} D30", subset) in value
                ]
            )
        )

    assert step(["BS4", "ES1", "HU1", "HW2", "OC1"]) == pytest.approx(step(["BC", "BS3", "HP", "HS1"]), abs=0.02)


def test_the_counts_of_the_check_are_found_and_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {finding.name: (finding.reproduced, finding.total) for finding in published.check()}
    assert found["raw equals D100 on HU3, HU4, HW3, HW4 (blind)"] == (1005, 1007)
    assert found["raw equals D100 on BS4, ES1, HU1, HW2, OC1 (public)"] == (1257, 1259)
    assert found["raw equals D30 on BC, BS3, HP, HS1, HS2, HW1 (public)"] == (1439, 1462)
    from earmark.published import _checks as checks

    real = checks.read
    mended = [
        {**cell, "value_pct": str(place % 89)}
        if cell["subset"] == "HU4" and published.vocsim_kind(cell["method"]) == "raw"
        else cell
        for place, cell in enumerate(real("vocsim_full_results"))
    ]
    monkeypatch.setattr(checks, "read", lambda name: mended if name == "vocsim_full_results" else real(name))
    assert "raw equals D100 on HU3, HW3, HW4 (blind)" in {finding.name for finding in published.check()}


def test_repeats_count_in_no_mean_value_matrix_or_history_unless_asked_for(tmp_path: Path) -> None:
    scores = published.load("vocsim")
    mine = scores.select(system="EWMTF", distance="spearman", metric="P@1")
    assert aggregate(mine, "blind").rows[0].status == "not_applicable"
    with pytest.raises(InputError, match=r"repeated \(repeats EWMTF D100"):
        scores.value("P@1", system="EWMTF", distance="spearman", subset="HU4")
    asked = published.load("vocsim", with_repeats=True)
    assert asked.value("P@1", system="EWMTF", distance="spearman", subset="HU4") == pytest.approx(0.10, abs=0.05)

    def measured(**options: bool) -> int:
        return int(np.isfinite(open_matrix("published:vocsim", metric="P@1", **options).matrix.values).sum())

    assert measured() < measured(with_repeats=True)
    written = tmp_path / "vocsim.csv"
    scores.write(written)
    assert load_scores(written) == scores
    from_file = open_matrix(written, metric="P@1")
    assert int(np.isfinite(from_file.matrix.values).sum()) == measured()
    assert any("repeat other systems'" in remark for remark in from_file.remarks)
    partial = Scores(tuple(Row(suite="vocsim", subset=s, system="x", distance="cosine", metric="P@1", value=0.5)
                           for s in ("BS4", "HS1", "HW2")))  # fmt: skip
    assert _configurations(predict(partial)) < _configurations(predict(partial, with_repeats=True)) == 129


def _configurations(filled: Scores) -> int:
    reason = next(row.reason for row in filled if row.status == "predicted")
    return int(reason.split(" configurations")[0].rsplit(" ", 1)[1])


def test_show_marks_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "show", "vocsim-mouse-strain"]) == 0
    plain = capsys.readouterr().out
    assert " =" in plain
    assert main(["published", "show", "vocsim-mouse-strain", "--with-repeats"]) == 0
    assert " =" not in capsys.readouterr().out
