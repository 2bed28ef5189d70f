"""CSV and Parquet: what is written is read back, whatever stands in a cell."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earmark.errors import InputError, UsageError
from earmark.tables import csv_text, parquet_bytes, read_csv, read_csv_records, read_text, write_columns, write_csv

AWKWARD = ["a\rb", "a\nb", "a\r\nb", 'say "x"', "a,b", " padded ", "", "ü 鸟", "\ufeffx"]


@pytest.mark.parametrize("cell", AWKWARD)
def test_a_cell_with_any_mark_is_read_back(cell: str) -> None:
    text = csv_text(["id", "label"], [["1", cell], ["2", "plain"]])
    assert [line.cells for line in read_csv(text, "x.csv")] == [["id", "label"], ["1", cell], ["2", "plain"]]


@given(st.lists(st.lists(st.text('a\r\n", é', max_size=4), min_size=2, max_size=2), max_size=3))
def test_any_text_is_read_back(rows: list[list[str]]) -> None:
    text = csv_text(["a", "b"], rows)
    assert [line.cells for line in read_csv(text, "x.csv")][1:] == rows


def test_ordinary_cells_are_written_as_pythons_own_writer_writes_them() -> None:
    rows = [["x", 0.1, None, 3, True, 'quo"te', "com,ma", "li\nne"], ["", 1e-20, float("nan"), -0.0, False, "", "", ""]]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow("abcdefgh")
    writer.writerows(rows)
    assert csv_text("abcdefgh", rows) == stream.getvalue()


def test_records_are_written_in_the_order_of_the_header() -> None:
    assert csv_text(["b", "a"], [{"a": 1, "b": 2}, [3, 4]]) == "b,a\n2,1\n3,4\n"
    assert csv_text(None, [[1, 2]]) == "1,2\n"


def test_lines_are_counted_past_line_breaks_in_cells() -> None:
    assert [line.number for line in read_csv('a,b\n"x\ny",1\n\n2,3\n', "x.csv")] == [1, 2, 5]


def test_what_cannot_be_read_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.csv, line 2 is not readable as CSV .*; check its quotes"):
        list(read_csv('a,b\n"x" y,1\n', "x.csv"))
    with pytest.raises(InputError, match=r"x\.csv, line 3 has 1 cells, the header 2; check its commas"):
        list(read_csv_records("a,b\n1,2\n3\n", "x.csv"))
    with pytest.raises(InputError, match="does not exist; check the path"):
        read_text(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder; give the score file inside it"):
        read_text(tmp_path, "score file")
    (tmp_path / "latin.csv").write_bytes(b"a\xff")
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 1\)"):
        read_text(tmp_path / "latin.csv")


def test_a_file_is_read_back_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_csv(path, ["label"], [["a\rb"]])
    assert list(read_csv_records(read_text(path), path)) == [{"label": "a\rb"}]
    path.write_text("label\nx\n", encoding="utf-8-sig")
    assert list(read_csv_records(read_text(path), path)) == [{"label": "x"}]


def test_columns_are_written_by_suffix(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"name": ["a", "b"], "value": [0.1, None]}
    write_columns(tmp_path / "x.csv", columns, "values")
    assert (tmp_path / "x.csv").read_text() == "name,value\na,0.1\nb,\n"
    parquet = pytest.importorskip("pyarrow.parquet")
    write_columns(tmp_path / "x.parquet", columns, "values")
    assert parquet.read_table(tmp_path / "x.parquet").to_pydict() == columns
    typed = parquet.read_table(io.BytesIO(parquet_bytes({"n": [None]}, {"n": "int64"})))
    assert str(typed.schema.field("n").type) == "int64"
    with pytest.raises(UsageError, match=r"values are written as \.csv or \.parquet"):
        write_columns(tmp_path / "x.txt", columns, "values")
