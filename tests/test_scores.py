"""The score table: columns, files, validation, merging, aggregation."""

from __future__ import annotations

import csv
import json
import math
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fresh import run_fresh

from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError, did_you_mean, quoted, require
from earmark.scores import (
    COLUMNS,
    KEY,
    METRICS,
    RULES,
    VOCSIM_SUBSETS,
    Row,
    Rule,
    Scores,
    aggregate,
    find_rule,
    load_scores,
    merge,
    metric_facts,
    read_scores,
    validate,
)

NUMBERS = [name for name in COLUMNS if getattr(Row(), name) is None]
WHOLE = ("n", "units", "comparisons")
FLOATS = [name for name in NUMBERS if name not in WHOLE]
TEXTS = [name for name in COLUMNS if name not in NUMBERS]


def ok(metric: str = "P@1", value: float = 0.5, **cells: Any) -> Row:
    return Row(metric=metric, value=value, **cells)


@pytest.fixture
def scores() -> Scores:
    return Scores(
        (
            ok("P@1", 0.5, distance="cosine"),
            ok("P@1", 0.4, distance="euclidean"),
            ok("P@1", 0.3, distance="euclidean", protocol="across_groups"),
            ok("GSR", 0.6, distance="cosine"),
            Row(metric="CSR", distance="cosine", status="not_applicable", reason="a single class"),
        )
    )


# --- errors ---------------------------------------------------------------------------------------


def test_errors_carry_exit_codes() -> None:
    assert EarmarkError.exit_code == InputError.exit_code == MissingExtra.exit_code == 1
    assert UsageError.exit_code == 2
    assert issubclass(MissingExtra, EarmarkError)


def test_missing_extra_is_one_sentence_and_survives_pickling() -> None:
    error = MissingExtra("Parquet files", "parquet")
    assert str(error) == 'Parquet files need `pip install "earmark[parquet]"`.'
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_require_imports_or_names_the_extra() -> None:
    assert require("json", "JSON files", "json") is json
    with pytest.raises(MissingExtra, match=r"earmark\[dreams\]"):
        require("earmark_no_such_module", "Dreams", "dreams")


def test_a_message_is_one_printable_line() -> None:
    assert str(InputError("two\nlines \x1b[31m")) == r"two\nlines \x1b[31m"
    assert quoted("dog") == '"dog"'
    assert quoted("x" * 99) == '"' + "x" * 60 + '…"'


def test_did_you_mean_ignores_case_and_stays_silent_when_nothing_is_near() -> None:
    assert did_you_mean("p@1", ["P@1", "GSR"]) == ' Did you mean "P@1"?'
    assert did_you_mean("zzz", ["P@1", "GSR"]) == ""


# --- rows -----------------------------------------------------------------------------------------


def test_columns_are_these_in_this_order() -> None:
    assert ",".join(COLUMNS) == (
        "suite,subset,system,distance,correction,protocol,metric,value,low,high,baseline,lift,p_value,n,status,"
        "reason,seconds,version,inputs,baseline_low,baseline_high,"
        "interval,unit,units,comparisons,shuffle,baseline_error,"
        "ablation,aggregate,statistic"
    )
    assert KEY == ("suite", "subset", "system", "distance", "correction", "protocol", "metric")


def test_a_row_has_plain_defaults() -> None:
    row = Row()
    assert (row.correction, row.protocol, row.status) == ("none", "all", "ok")
    assert all(getattr(row, name) == "" for name in TEXTS if name not in ("correction", "protocol", "status"))
    assert all(getattr(row, name) is None for name in NUMBERS)


def test_numpy_scalars_become_python_numbers() -> None:
    cells: dict[str, Any] = {"value": np.float32(0.1), "low": np.float64(0.25), "high": 1, "n": np.int64(7)}
    row = Row(metric=np.str_("P@1"), **cells)
    assert type(row.metric) is str
    assert type(row.value) is float
    assert row.value == float(np.float32(0.1))
    assert type(row.low) is float
    assert type(row.high) is float
    assert type(row.n) is int
    assert Row(n=2**60 + 1).n == 2**60 + 1
    large: Any = np.int64(2**60 + 1)
    assert Row(n=large).n == 2**60 + 1


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("value", math.nan),
        ("low", math.inf),
        ("p_value", np.float64("-inf")),
        ("n", math.nan),
        ("n", 2.5),
        ("n", 2**63),
        ("units", 2.5),
        ("comparisons", 0.5),
        ("value", "0.5"),
        ("value", True),
        ("value", 10**400),
        ("value", [1]),
        ("value", np.array([0.5, 0.6])),
        ("system", None),
        ("system", 3),
    ],
)
def test_a_row_refuses_what_it_cannot_hold(name: str, cell: Any) -> None:
    with pytest.raises(InputError, match=f'Column "{name}"'):
        Row(**{"metric": "P@1", name: cell})


# --- facts about metrics --------------------------------------------------------------------------

SPELLINGS = [
    "label_P@1",
    "label_jaccard",
    "overall_unsaturated",
    "f0_voicing_error",
    "si_sdr",
    "visqol",
    "zimtohrli",
    "dnsmos",
    "dnsmos_p808",
    "dwer",
    "speaker_similarity",
    "bd_rate",
    "delay_ms",
    "encode_rtf",
    "decode_rtf",
    "token_usage",
    "token_entropy",
    "token_perplexity",
    "entropy_kbps",
    "header_kbps",
    "P@1",
    "P@5",
    "GSR",
    "CSR",
    "CSR_pointwise",
    "CS",
    "CSCF",
    "silhouette",
    "purity",
    "NMI",
    "ARI",
    "kmeans_purity",
    "hub_ratio",
    "antihub_rate",
    "hub_skew",
    "robin_hood",
    "precision",
    "recall",
    "density",
    "coverage",
    "clipped_density",
    "clipped_coverage",
    "clipped_density_literal",
    "clipped_coverage_literal",
    "clipped_density_unclipped_radii",
    "frechet_distance",
    "fad_inf",
    "kernel_distance",
    "kad",
    "accuracy",
    "top5_accuracy",
    "triplet_accuracy",
    "choice_accuracy",
    "choice_spearman",
    "choice_kendall",
    "agreement_between",
    "agreement_within",
    "agreement_repeats",
    "attainable_accuracy",
    "mean_average_precision",
    "transfer_spearman",
    "parameters_m",
    "macs_g",
    "peak_memory_gb",
    "sym_precision",
    "sym_recall",
    "p_precision",
    "p_recall",
    "precision_cover",
    "recall_cover",
    "alpha_precision",
    "beta_recall",
    "stft_distance",
    "mel_distance",
    "pesq",
    "stoi",
    "f0_corr",
    "overall",
    "wer",
    "eer",
    "min_dcf",
    "er_accuracy",
    "aec_map",
    "kbps",
]


def test_every_spelling_of_the_design_has_facts() -> None:
    # Other tests register metrics of their own in this process.
    assert run_fresh("from earmark.scores import METRICS; print(*sorted(METRICS))").split() == sorted(SPELLINGS)
    for name, facts in METRICS.items():
        assert facts.name == name
        assert facts.range[0] < facts.range[1]


@pytest.mark.parametrize(
    "name",
    [
        "P@1",
        "GSR",
        "CSR",
        "CSR_pointwise",
        "CS",
        "CSCF",
        "purity",
        "NMI",
        "kmeans_purity",
        "antihub_rate",
        "robin_hood",
        "coverage",
        "eer",
    ],
)
def test_fractions_lie_between_0_and_1(name: str) -> None:
    assert metric_facts(name).range == (0, 1)
    assert metric_facts(name).percent


def test_directions_and_other_ranges() -> None:
    lower = {name for name, facts in METRICS.items() if not facts.higher_is_better}
    assert lower == {
        "CS",
        "CSCF",
        "choice_spearman",
        "choice_kendall",
        "hub_ratio",
        "antihub_rate",
        "hub_skew",
        "robin_hood",
        "frechet_distance",
        "fad_inf",
        "kernel_distance",
        "kad",
        "parameters_m",
        "macs_g",
        "peak_memory_gb",
        "stft_distance",
        "mel_distance",
        "wer",
        "eer",
        "min_dcf",
        "kbps",
        "f0_voicing_error",
        "dwer",
        "bd_rate",
        "delay_ms",
        "encode_rtf",
        "decode_rtf",
        "entropy_kbps",
        "header_kbps",
    }
    assert metric_facts("silhouette").range == (-1, 1)
    assert metric_facts("ARI").range == (-0.5, 1)
    assert metric_facts("hub_ratio").range == (0, math.inf)
    assert metric_facts("hub_skew").range == (-math.inf, math.inf)


def test_any_k_and_any_difference_has_facts() -> None:
    assert metric_facts("P@137").name == "P@137"
    assert metric_facts("P@137").range == (0, 1)
    assert metric_facts("P@3:difference").range == (-1, 1)
    assert metric_facts("silhouette:difference").range == (-2, 2)
    assert metric_facts("ARI:difference").range == (-1.5, 1.5)
    assert metric_facts("hub_skew:difference").range == (-math.inf, math.inf)
    assert not metric_facts("CS:difference").higher_is_better


def test_the_worst_clips_have_the_range_and_direction_of_their_metric() -> None:
    assert metric_facts("pesq:p1").range == metric_facts("pesq").range
    assert not metric_facts("mel_distance:p1").higher_is_better
    with pytest.raises(InputError, match="no metric"):
        metric_facts("nothing:p1")


@pytest.mark.parametrize(
    ("protocol", "known"),
    [("tandem:3", True), ("loss:5", True), ("loss:2.5", True), ("loss:100", True), ("reference", True),
     ("tandem:0", False), ("loss:101", False), ("loss:", False), ("tandem", False)],
)  # fmt: skip
def test_protocols_of_codecs(protocol: str, known: bool) -> None:
    row = Row(system="opus@12", protocol=protocol, metric="pesq", value=3.0, n=5)
    assert bool(validate([row])) is not known


@pytest.mark.parametrize("name", ["P@0", "P@", "P@-1", "P@01", "P@1.5", "gsr", "", "GSR:difference:difference"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no metric"):
        metric_facts(name)


def test_a_misspelt_metric_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match='Did you mean "silhouette"'):
        metric_facts("silhouete")


# --- the table in memory --------------------------------------------------------------------------


def test_value_finds_the_one_row(scores: Scores) -> None:
    assert scores.value("GSR") == 0.6
    assert scores.value("P@1", distance="cosine") == 0.5
    assert scores.value("P@1", distance="euclidean", protocol="all") == 0.4
    assert scores.row(distance="cosine", metric="GSR").value == 0.6


def test_several_rows_say_what_they_differ_in(scores: Scores) -> None:
    with pytest.raises(UsageError) as caught:
        scores.value("P@1")
    message = str(caught.value)
    assert "3 rows" in message
    assert "distance (cosine, euclidean)" in message
    assert "protocol (all, across_groups)" in message
    with pytest.raises(UsageError, match="same key"):
        Scores((ok(value=0.1), ok(value=0.2))).value("P@1")


def test_no_row_says_what_there_is(scores: Scores) -> None:
    with pytest.raises(UsageError, match="the table has P@1, GSR, CSR"):
        scores.value("P@7")
    with pytest.raises(UsageError, match=r'No row has distance "cosin".*Did you mean "cosine"'):
        scores.value("P@1", distance="cosin")
    with pytest.raises(UsageError, match="empty"):
        Scores().value("P@1")


def test_a_row_without_a_value_gives_its_reason(scores: Scores) -> None:
    with pytest.raises(InputError, match=r"CSR has no value here: not applicable \(a single class\)"):
        scores.value("CSR")


def test_an_unknown_column_is_a_usage_error(scores: Scores) -> None:
    with pytest.raises(UsageError, match=r'no column "distanse".*"distance"'):
        scores.value("P@1", distanse="cosine")
    with pytest.raises(UsageError, match="no column"):
        Scores().select(distanse="cosine")


def test_select_filters_by_one_or_several_values(scores: Scores) -> None:
    assert len(scores.select(distance="euclidean")) == 2
    assert len(scores.select(metric=["P@1", "GSR"], protocol="all")) == 3
    assert len(scores.select(value=0.5)) == 1
    assert len(scores.select()) == len(scores)
    assert [row.metric for row in scores.select(distance="cosine")] == ["P@1", "GSR", "CSR"]


def test_tables_are_equal_when_their_rows_are(scores: Scores) -> None:
    assert scores == Scores(list(scores.rows), notes=["something else"])  # type: ignore[arg-type]
    assert hash(scores) == hash(Scores(scores.rows))
    assert scores != Scores(scores.rows[:-1])
    assert scores != "scores"


def test_per_point_values_follow_the_selection() -> None:
    key = ("cosine", "none", "all", "P@1")
    other = ("euclidean", "none", "all", "P@1")
    values = np.array([1.0, 0.0, np.nan])
    rows = (ok(distance="cosine"), ok(distance="euclidean"))
    table = Scores(rows, {key: values, other: values}, ("a", "b", "c"))
    assert list(table.select(distance="cosine").per_point) == [key]
    assert table.select(distance="cosine").point_ids == ("a", "b", "c")
    with pytest.raises(InputError, match="different lengths"):
        Scores(rows, {key: values, other: values[:2]})
    with pytest.raises(InputError, match="different lengths"):
        Scores(rows, {key: values}, ("a", "b"))


def test_to_json_is_an_array_of_rows_without_nan(scores: Scores) -> None:
    table = json.loads(scores.to_json())
    assert [list(record) for record in table] == [list(COLUMNS)] * len(scores)
    assert table[-1]["value"] is None
    assert "NaN" not in scores.to_json()
    assert json.loads(Scores().to_json()) == []


# --- merging --------------------------------------------------------------------------------------


def test_merge_keeps_order_and_collapses_repetitions(scores: Scores) -> None:
    extra = Scores((ok("NMI", 0.2), replace(scores.rows[0], seconds=9.0)), notes=("note",))
    both = scores + extra
    assert both.rows == (*scores.rows, extra.rows[0])
    assert both.notes == ("note",)
    assert merge().rows == ()
    assert merge(scores) == scores


def test_merge_refuses_or_replaces_a_conflict() -> None:
    first = Scores((ok(value=0.1, system="a"), ok("GSR", 0.2, system="a")))
    second = Scores((ok(value=0.3, system="a"),))
    with pytest.raises(InputError, match=r"system a.*metric P@1 differ in value \(0.1 and 0.3\)"):
        first + second
    assert [row.value for row in merge(first, second, on_conflict="last")] == [0.3, 0.2]
    with pytest.raises(UsageError, match="on_conflict"):
        merge(first, second, on_conflict="first")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        first + 1  # type: ignore[operator]


def test_merge_keeps_per_point_values_only_of_the_same_points() -> None:
    values = np.ones(2)
    a = Scores((ok(distance="cosine", system="m"),), {("cosine", "none", "all", "P@1"): values}, ("x", "y"))
    b = Scores((ok(distance="euclidean", system="m"),), {("euclidean", "none", "all", "P@1"): values}, ("x", "y"))
    assert len((a + b).per_point) == 2
    assert (a + b).point_ids == ("x", "y")
    other_system = replace(b, rows=(replace(b.rows[0], system="n"),))
    other_points = replace(b, point_ids=("x", "z"))
    for other in (other_system, other_points):
        merged = a + other
        assert merged.per_point == {}
        assert merged.point_ids is None
        assert "Per-point" in merged.notes[0]


# --- files ----------------------------------------------------------------------------------------

FORMATS = [".csv", ".jsonl", ".json", ".parquet"]


def needs(suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "a,b",
        'say "hi"',
        "two\nlines",
        "cr\ronly",
        "crlf\r\n",
        " spaced ",
        "naïve 鸟 🐦",
        "\u2028",
        "\x00",
        "NaN",
        "null",
        "0",
    ]
)
number = (
    st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 1e22, 123456789.123456789])
)
count = st.none() | st.integers(-(2**62), 2**62)
row_strategy = st.builds(
    Row, **dict.fromkeys(TEXTS, text), **dict.fromkeys(FLOATS, number), **dict.fromkeys(WHOLE, count)
)


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(row_strategy, min_size=1, max_size=4))
def test_every_cell_survives_every_format(tmp_path: Path, suffix: str, rows: list[Row]) -> None:
    needs(suffix)
    path = tmp_path / f"scores{suffix}"
    Scores(tuple(rows)).write(path)
    back = read_scores(path)
    assert back.rows == tuple(rows)
    for one, other in zip(back, rows, strict=True):
        assert [repr(getattr(one, name)) for name in COLUMNS] == [repr(getattr(other, name)) for name in COLUMNS]


@pytest.mark.parametrize("suffix", FORMATS)
def test_not_scored_survives_every_format(tmp_path: Path, suffix: str, scores: Scores) -> None:
    needs(suffix)
    path = tmp_path / f"scores{suffix.upper()}"
    scores.write(path)
    row = load_scores(str(path)).row("CSR")
    assert row.value is None
    assert row.n is None
    assert (row.status, row.reason) == ("not_applicable", "a single class")


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_an_empty_table_survives(tmp_path: Path, suffix: str) -> None:
    needs(suffix)
    path = tmp_path / f"scores{suffix}"
    Scores().write(path)
    assert read_scores(path) == Scores()


def test_an_empty_table_is_not_json_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without rows"):
        Scores().write(tmp_path / "scores.jsonl")


def test_a_csv_reads_the_same_with_the_standard_library(tmp_path: Path, scores: Scores) -> None:
    path = tmp_path / "scores.csv"
    tricky = replace(scores.rows[0], reason='commas, "quotes"\nand lines')
    Scores((tricky,)).write(path)
    with path.open(newline="") as stream:
        record = next(csv.DictReader(stream))
    assert record["reason"] == tricky.reason
    assert float(record["value"]) == tricky.value
    assert record["low"] == ""


def test_write_replaces_whole_files_and_leaves_nothing_behind(
    tmp_path: Path, scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.csv"
    scores.write(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        Scores((ok(value=0.9),)).write(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["scores.csv"]


def test_write_obeys_the_umask_and_follows_links(tmp_path: Path, scores: Scores) -> None:
    real = tmp_path / "real.csv"
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    old = os.umask(0o027)
    try:
        scores.write(link)
    finally:
        os.umask(old)
    assert link.is_symlink()
    assert read_scores(real) == scores
    assert real.stat().st_mode & 0o777 == 0o640


def test_write_says_why_it_cannot(tmp_path: Path, scores: Scores) -> None:
    with pytest.raises(UsageError, match=r"\.csv, \.jsonl, \.json, \.parquet"):
        scores.write(tmp_path / "scores.xlsx")
    with pytest.raises(InputError, match=r"folder .*nowhere does not exist"):
        scores.write(tmp_path / "nowhere" / "scores.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        scores.write(tmp_path / "folder.csv")


@pytest.mark.parametrize("suffix", FORMATS)
def test_text_that_is_no_unicode_cannot_be_written(tmp_path: Path, suffix: str) -> None:
    needs(suffix)
    with pytest.raises(InputError, match="cannot be written as UTF-8"):
        Scores((ok(system="\ud800"),)).write(tmp_path / f"scores{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"earmark\[parquet\]"):
        scores.write(tmp_path / "scores.parquet")
    (tmp_path / "scores.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtra, match=r"earmark\[parquet\]"):
        read_scores(tmp_path / "scores.parquet")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.csv", "", "is empty"),
        ("s.csv", "\n\n", "is empty"),
        ("s.jsonl", "", "is empty"),
        ("s.json", "", "is empty"),
        ("s.parquet", "", "is empty"),
        ("s.txt", "x", r"one of \.csv, \.jsonl, \.json, \.parquet"),
        ("s.csv", "metric,value,sistem\nP@1,0.5,a\n", 'unknown column "sistem".*Did you mean "system"'),
        ("s.csv", "metric,value,value\nP@1,0.5,1\n", "twice"),
        ("s.csv", "metric,n\nP@1,5\n", 'no column "value"'),
        ("s.csv", "value,n\n0.5,5\n", 'no column "metric"'),
        ("s.csv", "metric;value\nP@1;0.5\n", "not separated by commas"),
        ("s.csv", "metric,value\nP@1,0.5\nP@5,high\n", 's.csv, line 3, column "value" holds "high"'),
        ("s.csv", 'reason,metric,value\n"two\nlines",P@1,1\nx,P@5,?\n', r"line 4, column \"value\""),
        ("s.csv", "metric,value\nP@1,nan\n", 'line 2, column "value" holds nan'),
        ("s.csv", "metric,value\nP@1,-inf\n", 'line 2, column "value" holds -inf'),
        ("s.csv", "metric,value\nP@1,1e999\n", 'line 2, column "value" holds inf'),
        ("s.csv", "metric,value\nP@1,1_0\n", "not a number"),
        ("s.csv", "metric,value,n\nP@1,0.5,2.5\n", 'column "n" holds 2.5; a count is a whole number'),
        ("s.csv", "metric,value\nP@1\n", "line 2 has 1 cells, the header 2"),
        ("s.csv", 'metric,value\n"P@1,0.5\n', "not readable as CSV"),
        ("s.csv", b"metric,value\n\xff\xfe,1\n", "not UTF-8"),
        (
            "s.jsonl",
            '{"metric": "P@1"}\n{"metric": "P@1", "value": NaN}\n',
            r'line 2, column "value" holds nan',
        ),
        ("s.jsonl", '{"metric": "P@1", "value": Infinity}\n', 'line 1, column "value" holds inf'),
        (
            "s.jsonl",
            '{"metric": "P@1", "value": "0.5"}\n',
            "line 1, column \"value\" holds '0.5', which is not",
        ),
        ("s.jsonl", '{"metric": "P@1", "value": true}\n', "not a number"),
        ("s.jsonl", '{"metric": "P@1", "system": 3}\n', 'column "system" holds 3; it must be text'),
        ("s.jsonl", '{"metric": "P@1", "vlaue": 1}\n', 'line 1 has the unknown column "vlaue".*"value"'),
        ("s.jsonl", '{"value": 1}\n', 'has no "metric"'),
        ("s.jsonl", '\n{"metric": \n', "line 2 is not valid JSON"),
        ("s.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("s.json", '{"metric": "P@1"}', "not a JSON array"),
        ("s.json", "[3]", "row 1 is not a JSON object"),
        ("s.json", '[{"metric": "P@1", "value": 1}, {"metric": "P@1", "low": NaN}]', 'row 2, column "low"'),
        ("s.json", "[" * 100_000, "not a score table|not valid JSON"),
        (
            "s.json",
            '[{"metric": "P@1", "value": ' + "9" * 5000 + "}]",
            "not a score table|not a number|holds",
        ),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(InputError, match=message) as caught:
        read_scores(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_scores(tmp_path / "scores.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_scores(tmp_path)


def test_a_damaged_or_foreign_parquet_file_is_an_error(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    with pytest.raises(InputError, match="not readable as Parquet"):
        read_scores(write(tmp_path / "a.parquet", b"PAR1 and then nothing"))
    parquet.write_table(arrow.table({"metric": ["P@1"], "wert": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match='unknown column "wert"'):
        read_scores(tmp_path / "b.parquet")
    parquet.write_table(arrow.table({"metric": ["P@1", "P@1"], "value": [1.0, math.nan]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match='row 2, column "value" holds nan'):
        read_scores(tmp_path / "c.parquet")


def test_a_parquet_path_that_looks_like_a_partition_adds_no_column(tmp_path: Path, scores: Scores) -> None:
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    folder = tmp_path / "colour=red"
    folder.mkdir()
    scores.write(folder / "scores.parquet")
    assert read_scores(folder / "scores.parquet") == scores


def test_spreadsheet_habits_are_accepted(tmp_path: Path) -> None:
    text = "\ufeffmetric, value ,n\r\nP@1, 0.5 ,20.0\r\n\r\nGSR,1,\r\n"
    scores = read_scores(write(tmp_path / "scores.csv", text))
    assert [(row.metric, row.value, row.n) for row in scores] == [("P@1", 0.5, 20), ("GSR", 1.0, None)]


def test_null_text_in_json_takes_the_default(tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", '[{"metric": "P@1", "value": 1, "protocol": null, "system": null}]')
    assert read_scores(path).rows == (ok(value=1.0),)


# --- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ok("silhouete"), 'unknown metric.*Did you mean "silhouette"'),
        (ok(""), "metric is empty"),
        (ok(value=31.8), r"value 31.8 is outside \[0, 1\]; values are fractions, divide percent by 100"),
        (ok("GSR", -0.1), r"value -0.1 is outside \[0, 1\]"),
        (ok("silhouette", -1.5), r"outside \[-1, 1\]"),
        (ok("hub_ratio", -1.0), r"outside \[0, inf\]"),
        (ok("P@1:difference", 1.5), r"outside \[-1, 1\]"),
        (Row(metric="P@1"), "status is ok but there is no value"),
        (ok(status="failed", reason="x"), "status is failed but there is a value"),
        (Row(metric="P@1", status="not_applicable"), "without a reason"),
        (Row(metric="P@1", status="failed", reason="  "), "without a reason"),
        (ok(low=0.6, high=0.4), "low 0.6 is above high 0.4"),
        (ok(low=0.4), "one of low and high is missing"),
        (ok(low=-0.2, high=0.6), r"low -0.2 is outside"),
        (ok(low=0.2, high=1.6), r"high 1.6 is outside"),
        (ok(baseline=-1.0), "baseline -1 is outside"),
        (ok(baseline_low=0.3, baseline_high=0.2), "baseline_low 0.3 is above"),
        (ok(p_value=0.0), r"p_value 0 is outside \(0, 1\]"),
        (ok(p_value=1.1), r"p_value 1.1 is outside"),
        (ok(status="OK"), 'unknown status "OK".*Did you mean "ok"'),
        (ok(protocol="across"), 'unknown protocol "across"'),
        (ok(n=-1), "n -1 is negative"),
        (ok(seconds=-1.0), "seconds -1 is negative"),
    ],
)
def test_validate_names_the_row_and_the_problem(row: Row, problem: str) -> None:
    problems = validate([ok("GSR"), row])
    assert len(problems) >= 1
    assert problems[0].startswith("Row 2")
    assert any(re.search(problem, found) for found in problems), problems


def test_validate_accepts_what_is_right(scores: Scores) -> None:
    fine = [
        *scores.rows,
        ok("P@7", 0.5, low=0.6, high=0.7),  # an interval may miss its value
        ok("P@8", 1.0 + 1e-12),  # rounding
        ok("CSR:difference", -0.4, p_value=1.0),
        ok("hub_skew", -40.0, n=0),
        Row(metric="purity", status="failed", reason="HDBSCAN ran out of memory"),
    ]
    assert validate(fine) == []


def test_validate_finds_repeated_keys() -> None:
    rows = [ok(system="a"), ok(system="b"), ok(value=0.1, system="a")]
    (problem,) = validate(rows)
    assert problem.startswith("Row 3 (P@1): repeats row 1")


# --- aggregation ----------------------------------------------------------------------------------

PUBLIC = [subset.name for subset in VOCSIM_SUBSETS if subset.status == "public"]
BLIND = ["HU3", "HU4", "HW3", "HW4"]


def test_the_table_of_subsets_is_vocsims() -> None:
    assert len(VOCSIM_SUBSETS) == 19
    assert len(PUBLIC) == 15
    assert [subset.name for subset in VOCSIM_SUBSETS if subset.status == "blind"] == BLIND
    assert RULES["public"].required() == tuple(PUBLIC)
    assert RULES["blind"].required() == tuple(BLIND)
    assert RULES["mean"].required() == ()
    assert RULES["domain:birdsong"].required() == ("BC", "BS1", "BS2", "BS3", "BS4", "BS5")
    assert RULES["domain:animal_vocalizations"].required() == ("BC", "BS1", "BS2", "BS3", "BS4", "BS5", "OC1")
    assert RULES["domain:human_speech"].required() == ("HP", "HS1", "HS2", "HU1", "HU2", "HW1", "HW2")
    assert RULES["domain:environmental_sounds"].required() == ("ES1",)
    every_domain = {subset.domain for subset in VOCSIM_SUBSETS}
    assert {f"domain:{domain}" for domain in every_domain} <= set(RULES)


def test_rules_are_found_by_name() -> None:
    assert find_rule("domain:human speech") is RULES["domain:human_speech"]
    assert find_rule("Public") is RULES["public"]
    with pytest.raises(UsageError, match=r'no aggregation rule "publik".*Did you mean "public"'):
        find_rule("publik")


def test_public_is_the_plain_mean_over_its_subsets() -> None:
    rows = [ok(value=place / 100, subset=name, n=10, inputs=name) for place, name in enumerate(PUBLIC)]
    blind = [ok(value=1.0, subset=name, n=10) for name in BLIND]
    (row,) = aggregate(Scores((*rows, *blind)), "public")
    assert row.subset == "mean:public"
    assert row.value == pytest.approx(sum(range(15)) / 15 / 100, abs=1e-15)
    assert row.n == 150
    assert row.status == "ok"
    assert row.low is None
    assert len(row.inputs) == 64
    assert validate([row]) == []
    (again,) = aggregate(Scores((*reversed(rows), *blind)), "public")
    assert (again.value, again.inputs) == (row.value, row.inputs)


def test_a_missing_subset_makes_the_mean_not_applicable() -> None:
    rows = [ok(subset=name) for name in BLIND[:2]]
    failed = Row(metric="P@1", subset="HW3", status="failed", reason="out of memory")
    (row,) = aggregate(Scores((*rows, failed)), "blind")
    assert row.status == "not_applicable"
    assert row.value is None
    assert row.reason == "missing subsets: HW3 (failed), HW4"
    assert validate([row]) == []


def test_mean_takes_the_subsets_present_and_says_what_it_lacks() -> None:
    table = Scores(
        (
            ok(value=0.2, subset="a", system="x"),
            ok(value=0.4, subset="b", system="x"),
            ok(value=0.9, subset="a", system="y"),
            ok(value=0.5, subset="mean:public", system="y"),
        )
    )
    x, y = aggregate(table, "mean").rows
    assert (x.subset, x.system, x.reason) == ("mean", "x", "")
    assert x.value == pytest.approx(0.3)
    assert (y.value, y.status, y.reason) == (0.9, "ok", "1 of 2 subsets; missing: b")
    failed = Scores((Row(metric="P@1", subset="a", status="failed", reason="r"),))
    (nothing,) = aggregate(failed, "mean")
    assert (nothing.status, nothing.reason) == ("not_applicable", "missing subsets: a (failed)")
    assert aggregate(Scores(), "mean").rows == ()


def test_intervals_and_baselines_are_combined() -> None:
    common: dict[str, Any] = {"baseline": 0.1, "lift": 0.3, "seconds": 2.0, "p_value": 0.01, "version": "1"}
    a = ok(value=0.4, subset="a", low=0.37, high=0.41, baseline_low=0.07, baseline_high=0.1, **common)
    b = ok(value=0.6, subset="b", low=0.56, high=0.6, baseline_low=0.06, baseline_high=0.2, **common)
    (row,) = aggregate(Scores((a, b)), "mean")
    assert row.value == pytest.approx(0.5)
    assert row.low == pytest.approx(0.5 - math.hypot(0.03, 0.04) / 2)
    assert row.high == pytest.approx(0.5 + 0.01 / 2)
    assert row.baseline == pytest.approx(0.1)
    assert row.baseline_low == pytest.approx(0.1 - math.hypot(0.03, 0.04) / 2)
    assert row.baseline_high == pytest.approx(0.1 + 0.1 / 2)
    assert row.lift == pytest.approx(0.3)
    assert row.seconds == pytest.approx(4.0)
    assert row.p_value is None
    assert row.n is None
    assert row.version == "1"
    (partial,) = aggregate(Scores((a, replace(b, low=None, high=None, lift=None, version="2"))), "mean")
    assert (partial.low, partial.high, partial.lift, partial.version) == (None, None, None, "")


def test_groups_are_averaged_apart_and_own_rules_work() -> None:
    rows = tuple(
        ok(metric, value, subset=subset, distance=distance)
        for metric in ("P@1", "GSR")
        for distance, value in (("cosine", 0.25), ("euclidean", 0.75))
        for subset in ("a", "b", "c")
    )
    result = aggregate(Scores(rows), Rule("mine", "Two of three.", subsets=("a", "c")))
    assert [(row.metric, row.distance, row.value) for row in result] == [
        ("P@1", "cosine", 0.25),
        ("P@1", "euclidean", 0.75),
        ("GSR", "cosine", 0.25),
        ("GSR", "euclidean", 0.75),
    ]
    assert {row.subset for row in result} == {"mean:mine"}
    with pytest.raises(InputError, match="two rows"):
        aggregate(Scores((*rows, rows[0])), "mean")


# --- weight ---------------------------------------------------------------------------------------


def test_importing_the_table_imports_nothing_heavy() -> None:
    code = "import sys, earmark.scores, earmark.report; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "numba", "pyarrow", "torch", "pandas"} & set(loaded)
