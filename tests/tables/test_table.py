"""One table in every format, numbers in one form, text in aligned columns."""

from __future__ import annotations

import io

import pytest

from earmark.tables import MINUS, Cell, Column, NumberFormat, Table, aligned, p_value_text, plain

PERCENT = NumberFormat(1, percent=True, unit=" %")
TABLE = Table(
    [Column("system", "left"), Column("P@1", unit="%", format=PERCENT), Column("n")],
    [["a_b", 0.5, 3], ["c|d", Cell("~61.2", bold=True, note=1, rest=" [-1.0, 2.0]"), None]],
    title="Both *systems*",
    footnotes=["predicted & not measured"],
)


def test_text() -> None:
    assert TABLE.to_text().splitlines() == [
        "Both *systems*",
        "",
        "system             P@1 (%)  n",
        "──────  ──────────────────  ─",
        "a_b                   50.0  3",
        "c|d     ~61.2¹ [-1.0, 2.0]",
        "",
        "¹ predicted & not measured",
    ]


def test_markdown() -> None:
    assert TABLE.to_markdown().splitlines() == [
        r"Both \*systems\*",
        "",
        "| system | P@1 (%) | n |",
        "| :-- | --: | --: |",
        "| a_b | 50.0 | 3 |",
        r"| c\|d | **~61.2**¹ [-1.0, 2.0] |  |",
        "",
        "¹ predicted & not measured",
    ]


def test_latex() -> None:
    assert TABLE.to_latex(label="tab:x").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Both {*}systems{*}}",
        r"\label{tab:x}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & P@1 (\%) & n \\",
        r"\midrule",
        r"a\_b & 50.0 & 3 \\",
        r"c\textbar{}d & \textbf{$\sim$61.2}\textsuperscript{1} [$-$1.0, 2.0] &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"{\footnotesize \textsuperscript{1} predicted \& not measured}",
        r"\end{table}",
    ]


def test_html_escapes_and_aligns() -> None:
    page = TABLE.to_html()
    assert '<p class="caption">Both *systems*</p>' in page
    assert '<th scope="row">a_b</th><td class="n">50.0</td><td class="n">3</td>' in page
    assert '<td class="n"><b>~61.2</b><sup>1</sup> [-1.0, 2.0]</td>' in page
    assert "<li>predicted &amp; not measured</li>" in page


def test_csv_and_parquet_hold_every_digit() -> None:
    table = Table([Column("system", "left"), Column("P@1", format=PERCENT)], [["a\rb", 1 / 3], ["c", None]])
    assert table.to_csv() == 'system,P@1\n"a\rb",0.3333333333333333\nc,\n'
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(io.BytesIO(table.to_parquet())).to_pydict()
    assert found == {"system": ["a\rb", "c"], "P@1": [1 / 3, None]}


@pytest.mark.parametrize(
    ("form", "value", "options", "text"),
    [
        (NumberFormat(), 0.0521, {}, "0.052"),
        (NumberFormat(), -0.0521, {}, f"{MINUS}0.052"),
        (NumberFormat(minus="-"), -0.0521, {}, "-0.052"),
        (NumberFormat(), -0.0001, {}, "0.000"),
        (NumberFormat(), -0.0001, {"sign": True}, "+0.000"),
        (PERCENT, 0.318, {}, "31.8"),
        (PERCENT, 0.318, {"unit": True}, "31.8 %"),
        (PERCENT, 0.318, {"sign": True}, "+31.8"),
        (NumberFormat(0, percent=True), -0.001, {}, "0"),
        (NumberFormat(3, significant=True), 12345.6, {}, "1.23e+04"),
        (NumberFormat(3, significant=True), 7.0, {}, "7"),
        (PERCENT, None, {}, "–"),
        (PERCENT, float("nan"), {"unit": True}, "–"),
    ],
)
def test_numbers(form: NumberFormat, value: float | None, options: dict[str, bool], text: str) -> None:
    assert form.text(value, **options) == text


def test_intervals_and_p_values() -> None:
    assert PERCENT.interval(0.296, 0.338) == "[29.6, 33.8]"
    assert PERCENT.interval(None, 0.338) == ""
    assert p_value_text(0.0123) == "p = 0.012"
    assert p_value_text(0.001) == "p ≤ 0.001"


def test_columns_stand_left_or_right_and_headings_take_no_room() -> None:
    lines = [["name", "n", "words"], ["a heading between the lines"], ["鸟", "12", "x"]]
    assert aligned(lines, left=1, words=1) == ["name   n  words", "a heading between the lines", "鸟    12  x"]
    assert aligned([["a", "b"], ["cc", "d"]], indent="  ", gap="   ", least=[4]) == ["  a      b", "  cc     d"]
    assert aligned([]) == []


def test_plain_text_is_one_printable_line() -> None:
    assert plain("a\n\x1b[31m  b") == "a ?[31m b"
    assert plain("abcdefghij", 7) == "abcd…ij"
