"""Missing labels and groups, in the ways of pandas, NumPy, torch and text: never a class, never one common group."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import earmark
from earmark.corpora.clips import Clip
from earmark.corpora.manifest import read_manifest
from earmark.errors import InputError
from earmark.vectors import read_labels
from earmark.vectors.texts import as_text, column_texts

pandas: Any = pytest.importorskip("pandas", reason="has missing values of its own")

N = 60
CODES = np.arange(N) % 4
GONE = np.arange(N) % 5 == 0  # 12 of 60


@pytest.fixture(scope="module")
def vectors() -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(N, 6)) + 3 * rng.normal(size=(4, 6))[CODES]


def holed(missing: object) -> list[Any]:
    return [missing if gone else int(code) for code, gone in zip(CODES, GONE, strict=True)]


def masked(kind: Any) -> Any:
    return np.ma.masked_array(CODES.astype(kind), mask=GONE)


def nullable() -> Any:
    labels = pandas.array(CODES, dtype="Int64")
    labels[GONE] = pandas.NA
    return labels


def days() -> Any:
    return pandas.Series(pandas.to_datetime("2020-01-01") + pandas.to_timedelta(CODES, unit="D")).mask(GONE)


HOLED: dict[str, Any] = {
    "None": lambda: holed(None),
    "float nan": lambda: holed(float("nan")),
    "numpy nan": lambda: holed(np.float32("nan")),
    "pandas.NA": lambda: holed(pandas.NA),
    "NaT": lambda: holed(pandas.NaT),
    "Decimal": lambda: holed(Decimal("NaN")),
    "empty": lambda: holed(" "),
    "masked entry": lambda: holed(np.ma.masked),
    "masked whole numbers": lambda: masked(int),
    "masked floats": lambda: masked(float),
    "masked text": lambda: masked("U3"),
    "masked objects": lambda: masked(object),
    "nullable series": nullable,
    "float series": lambda: pandas.Series(holed(np.nan)),
    "text series": lambda: pandas.Series([str(code) for code in CODES]).mask(GONE),
    "categories": lambda: pandas.Series([str(code) for code in CODES]).mask(GONE).astype("category"),
    "days": days,
    "numpy days": lambda: days().to_numpy(),
    "printed": lambda: ["<NA>" if text is None else str(text) for text in holed(None)],
}


@pytest.mark.parametrize("kind", HOLED)
def test_missing_labels_are_dropped_and_counted(kind: str, vectors: Any) -> None:
    row = earmark.evaluate(vectors, HOLED[kind](), metrics="P@1").row("P@1")
    plain = earmark.evaluate(vectors[~GONE], CODES[~GONE], metrics="P@1").row("P@1")
    assert (row.value, row.n) == (plain.value, 48)
    assert "12 unlabelled rows dropped" in row.reason


@pytest.mark.parametrize("kind", HOLED)
def test_missing_groups_are_left_out_across_groups(kind: str, vectors: Any) -> None:
    labels = np.arange(N) // 15
    options: dict[str, Any] = {"metrics": "P@1", "across_groups": True}
    row = earmark.evaluate(vectors, labels, groups=HOLED[kind](), **options).row("P@1", protocol="across_groups")
    plain = earmark.evaluate(vectors[~GONE], labels[~GONE], groups=CODES[~GONE], **options)
    assert (row.value, row.n) == (plain.value("P@1", protocol="across_groups"), 48)
    assert "12 rows without a group dropped" in row.reason


def test_missing_groups_are_groups_of_their_own_elsewhere(vectors: Any) -> None:
    labels = np.arange(N) // 15
    row = earmark.evaluate(vectors, labels, groups=holed(pandas.NA), metrics="P@1").row("P@1")
    assert row.n == N
    assert "12 rows without a group counted as groups of their own" in row.reason
    with pytest.raises(InputError, match="No labelled row has a group"):
        earmark.evaluate(vectors, labels, groups=[np.nan] * N, across_groups=True)


def test_tensors(vectors: Any) -> None:
    torch: Any = pytest.importorskip("torch", reason="makes tensors")
    floats = torch.tensor(holed(float("nan")))
    for labels in (floats, list(floats), floats.bfloat16(), floats.requires_grad_()):
        row = earmark.evaluate(torch.tensor(vectors, requires_grad=True), labels, metrics="P@1").row("P@1")
        assert row.n == 48
    half = earmark.evaluate(torch.tensor(vectors).bfloat16(), torch.tensor(CODES), metrics="P@1").row("P@1")
    assert half.n == N


def test_masked_vectors_are_not_read_through_the_mask(vectors: Any) -> None:
    values = np.ma.masked_array(vectors, mask=np.zeros(vectors.shape, bool))
    assert earmark.evaluate(values, CODES, metrics="P@1").row("P@1").n == N
    values[7, 2] = np.ma.masked
    with pytest.raises(InputError, match=r"hold masked entries, NaN or infinity in 1 of 60 rows \(first: 7"):
        earmark.evaluate(values, CODES)
    with pytest.raises(InputError, match="masked entries"):
        earmark.hubness(values)


def test_labels_of_two_dimensions_are_refused(vectors: Any) -> None:
    for labels in (np.full((N, 2), 2.0), np.ma.ones((N, 2)) * 3, pandas.DataFrame({"a": CODES, "b": CODES})):
        with pytest.raises(InputError, match="Labels have 2 dimensions"):
            earmark.evaluate(vectors, labels)


def test_a_table_of_labels_in_which_nobody_has_one_is_refused(vectors: Any) -> None:
    for labels in (np.zeros((N, 2)), np.ma.zeros((N, 2))):
        with pytest.raises(InputError, match="there are no pairs that share one"):
            earmark.evaluate(vectors, labels)


@pytest.mark.parametrize(
    ("entries", "texts"),
    [
        ([3, 3.0, np.float32(3), Decimal("3.0"), "3", "3.0", np.int8(3)], ["3"] * 7),
        (["3", "3.0", "3.", "2.50"], ["3", "3", "3", "2.50"]),
        (["3.0", "dog"], ["3.0", "dog"]),
        (["007", "7"], ["007", "7"]),
        (["1", "None", "2.0", "null"], ["1", None, "2", None]),
        (["None", "dog", "nan"], ["None", "dog", "nan"]),
        ([True, False, None], ["True", "False", None]),
        ([b"dog", " cat ", ""], ["dog", "cat", None]),
        (["u\u0308ber", "\u00fcber", "e\u0301".encode()], ["\u00fcber", "\u00fcber", "\u00e9"]),
        ([float("inf"), 1e20], ["inf", "100000000000000000000"]),
    ],
)
def test_one_spelling_for_one_class(entries: list[Any], texts: list[str | None]) -> None:
    assert column_texts(entries) == texts


def test_a_column_of_arrow_and_of_polars() -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="makes a column")
    assert column_texts(arrow.array([1.0, None, 2.0])) == ["1", None, "2"]
    assert as_text(arrow.scalar(3.0)) == "3"
    polars: Any = pytest.importorskip("polars", reason="makes a column")
    assert column_texts(polars.Series(["a", None])) == ["a", None]


def test_the_word_nan_is_remarked(vectors: Any) -> None:
    texts = np.array(["dog" if code else "cat" for code in CODES], dtype=object)
    texts[GONE] = np.nan
    row = earmark.evaluate(vectors, texts.astype(str), metrics="P@1").row("P@1")
    assert row.n == N
    assert "12 rows with the word nan or None for a label" in row.reason


def test_accents_have_one_spelling_in_labels_and_groups(vectors: Any) -> None:
    spelled = ["\u00e9", "e\u0301"]
    labels = [f"{'cat' if code else 'dog'} {spelled[row % 2]}" for row, code in enumerate(CODES)]
    groups = [spelled[row % 2] + str(row // 2 % 3) for row in range(N)]
    table = earmark.evaluate(vectors, labels, groups=groups, metrics="P@1")
    plain = earmark.evaluate(vectors, CODES != 0, groups=[str(row // 2 % 3) for row in range(N)], metrics="P@1")
    assert (table.row("P@1").value, table.row("P@1").n) == (plain.row("P@1").value, plain.row("P@1").n)
    assert "case" not in table.row("P@1").reason
    alike = earmark.evaluate(vectors, labels, groups=["Owl", "owl", "jay"] * (N // 3), metrics="P@1")
    assert "groups that differ only in case or spaces are taken for different ones (Owl and owl)" in (
        alike.row("P@1").reason
    )


def write_frame(frame: pandas.DataFrame, target: Path) -> Path:
    if target.suffix == ".csv":
        frame.to_csv(target, index=False)
    else:
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
        frame.to_parquet(target)
    return target


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_in_files(tmp_path: Path, kind: str) -> None:
    frame = pandas.DataFrame({"label": pandas.Series([1, 2, None, 1]), "group": ["3", "3.0", "<NA>", None]})
    target = write_frame(frame, tmp_path / f"y.{kind}")
    labels = read_labels(target)
    assert labels.values == ["1", "2", None, "1"]
    assert labels.groups == ["3", "3", None, None]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_manifests(tmp_path: Path, kind: str) -> None:
    frame = pandas.DataFrame(
        {
            "path": [f"{row}.wav" for row in range(4)],
            "label": pandas.array([1, 2, pandas.NA, 1], dtype="Int64"),
            "group": ["b1", "NaN", None, "<NA>"],
        }
    )
    for row in range(4):
        (tmp_path / f"{row}.wav").write_bytes(b"x")
    target = write_frame(frame, tmp_path / f"m.{kind}")
    corpus = read_manifest(target)
    assert [clip.label for clip in corpus] == ["1", "2", None, "1"]
    assert [clip.group for clip in corpus] == ["b1", None, None, None]


def test_clips_made_from_a_table() -> None:
    clips = [Clip(id="a", label=label, group=label, path="a.wav") for label in (pandas.NA, np.nan, 3.0, "owl")]
    assert [clip.label for clip in clips] == [None, None, "3", "owl"]
    assert [clip.group for clip in clips] == [None, None, "3", "owl"]
    spelled = Clip(id="a", label="e\u0301", group="e\u0301", fold="e\u0301", path="e\u0301.wav")
    assert (spelled.label, spelled.group, spelled.fold) == ("\u00e9",) * 3
    assert spelled.path == "e\u0301.wav"  # the name of a file stays as it is
