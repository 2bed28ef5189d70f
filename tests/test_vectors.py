"""Reading vectors and labels, and joining them."""

from __future__ import annotations

import builtins
import io
import math
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earmark.errors import InputError, MissingExtra, UsageError
from earmark.vectors import Labels, Vectors, join, read_labelled, read_labels, read_vectors

X = np.array([[1.5, -2.0, 3.25], [0.1, 1e-300, 1e300]])


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def save(path: Path, array: Any) -> Path:
    np.save(path, array, allow_pickle=True)
    return path


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    files = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    files.write_table(arrow.table(columns), path)
    return path


def refusal(read: Callable[..., object], path: Path, **options: Any) -> str:
    """The message with which a file is refused: one line, with the name of the file."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


# --- .npy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("f4", "f4"),
        ("f8", "f8"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("f2", "f4"),
        ("g", "f8"),
        ("i1", "f8"),
        ("u8", "f8"),
        ("?", "f8"),
    ],
)
def test_npy_keeps_floats_and_widens_the_rest(tmp_path: Path, stored: str, read: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(stored)
    vectors = read_vectors(save(tmp_path / "x.npy", array))
    assert vectors.values.dtype == np.dtype(read)
    assert vectors.values.dtype.isnative
    assert vectors.values.flags.c_contiguous
    np.testing.assert_array_equal(vectors.values, array.astype(float))
    assert (vectors.ids, vectors.labels, vectors.groups) == (None, None, None)


def test_npy_in_fortran_order_and_upper_case(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    (tmp_path / "x.npy").rename(tmp_path / "X.NPY")
    np.testing.assert_array_equal(read_vectors(str(tmp_path / "X.NPY")).values, X)


def test_nan_and_inf_pass(tmp_path: Path) -> None:
    array = np.array([[np.nan, np.inf], [1, 2]])
    np.testing.assert_array_equal(read_vectors(save(tmp_path / "x.npy", array)).values, array)
    np.testing.assert_array_equal(read_vectors(write(tmp_path / "x.csv", "nan,inf\n1,2\n")).values, array)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape (3,); save one vector a row"),
        (np.float64(3), r"shape ()"),
        (np.zeros((2, 3, 4)), "3 dimensions (2, 3, 4); pool"),
        (np.zeros((0, 3)), "no rows (0, 3)"),
        (np.zeros((3, 0)), "no columns (3, 0)"),
        (np.zeros((2, 2), complex), "complex numbers"),
        (np.array([["a", "b"]]), "holds text"),
        (np.array([[b"a", b"b"]]), "holds text"),
        (np.array([[None, 1]], object), "Python objects"),
        (np.zeros((2, 2), "M8[s]"), "datetime64"),
        (np.zeros((2, 2), "V2"), "values of type |V2"),
    ],
)
def test_npy_that_is_no_matrix_of_numbers(tmp_path: Path, array: Any, message: str) -> None:
    assert message in refusal(read_vectors, save(tmp_path / "x.npy", array))


def test_damaged_npy(tmp_path: Path) -> None:
    whole = save(tmp_path / "x.npy", X).read_bytes()
    for length in (4, 8, 40, len(whole) - 1):
        message = refusal(read_vectors, write(tmp_path / "cut.npy", whole[:length]))
        assert "damaged" in message or "not a NumPy array" in message
    assert "not a NumPy array" in refusal(read_vectors, write(tmp_path / "csv.npy", "1,2\n3,4\n"))
    np.savez(tmp_path / "z.npz", X)
    zipped = write(tmp_path / "z.npy", (tmp_path / "z.npz").read_bytes())
    assert "a .npz file" in refusal(read_vectors, zipped)
    header = whole.replace(b"(2, 3)", b"(2, ((")
    assert "damaged" in refusal(read_vectors, write(tmp_path / "h.npy", header))


# --- .npz -----------------------------------------------------------------------------------------


def test_npz_by_name_or_as_the_only_matrix(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, vectors=X, other=X + 1)
    np.testing.assert_array_equal(read_vectors(path).values, X)
    np.testing.assert_array_equal(read_vectors(path, key="other").values, X + 1)
    np.savez_compressed(path, embedding=np.ones((2, 3), np.float32), ids=np.array(["a", "b"]), extra=np.zeros(5))
    vectors = read_vectors(path)
    assert vectors.values.dtype == np.float32
    assert vectors.ids == ("a", "b")


def test_npz_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, vectors=X, ids=np.array([7, 8]), labels=np.array([1.0, np.nan]), groups=np.array([b"x", b""]))
    vectors = read_vectors(path)
    assert vectors.ids == ("7", "8")
    assert vectors.labels == ("1", None)
    assert vectors.groups == ("x", None)


def test_npz_refusals(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=X, b=X)
    assert "2 2-D arrays among its arrays (a, b); name the matrix `vectors`" in refusal(read_vectors, path)
    np.savez(path, first=X, second=X)
    assert 'no array "frist"; it has first, second. Did you mean "first"?' in refusal(read_vectors, path, key="frist")
    np.savez(path, a=np.zeros(3))
    assert "no 2-D array among its arrays (a)" in refusal(read_vectors, path)
    np.savez(path, vectors=np.zeros((2, 3, 4)))
    assert "pool" in refusal(read_vectors, path)
    np.savez(path, vectors=X, ids=np.array(["a", "b"], object))
    assert "array `ids` holds Python objects" in refusal(read_vectors, path)
    np.savez(path, vectors=X, ids=np.array(["a", "b", "c"]))
    assert "2 vectors but 3 ids" in refusal(read_vectors, path)
    np.savez(path, vectors=X, ids=np.array(["a", ""]))
    assert "row 2 has no id" in refusal(read_vectors, path)
    np.savez(path, vectors=X, id=np.array(["a", "b"]), ids=np.array(["a", "b"]))
    assert "both `id` and `ids`" in refusal(read_vectors, path)
    np.savez(path, vectors=X)
    whole = path.read_bytes()
    assert "damaged or not a .npz" in refusal(read_vectors, write(path, whole[: len(whole) // 2]))
    assert "damaged or not a .npz" in refusal(read_vectors, write(path, b"nothing"))
    flipped = bytearray(whole)
    flipped[200] ^= 0xFF
    assert "damaged" in refusal(read_vectors, write(path, bytes(flipped)))
    buffer = io.BytesIO()
    np.savez(buffer)
    assert "its arrays (none)" in refusal(read_vectors, write(path, buffer.getvalue()))


# --- .csv -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1.5,-2,3.25\n0.1,1e-300,1e300\n",
        "x,y,z\n1.5,-2,3.25\n0.1,1e-300,1e300",
        "0,1,2\n1.5,-2.0,3.25\n0.1,1e-300,1e300\n",
        "\ufeffx,y,z\r\n1.5,-2,3.25\r\n\r\n0.1,1e-300,1e300\r\n",
        '"x","y","z"\n"1.5","-2"," 3.25 "\n0.1,1e-300,1e300\n\n\n',
    ],
)
def test_csv_with_and_without_a_header(tmp_path: Path, text: str) -> None:
    vectors = read_vectors(write(tmp_path / "x.csv", text))
    assert vectors.values.dtype == np.float64
    np.testing.assert_array_equal(vectors.values, X)


def test_csv_with_text_columns(tmp_path: Path) -> None:
    text = 'ID,x,Label,y,groups\n"a, ""b""",1,dog,2,g1\n"two\nlines",3,,4,NaN\n  c ,5,nan,6,g1\n'
    vectors = read_vectors(write(tmp_path / "x.csv", text))
    np.testing.assert_array_equal(vectors.values, [[1, 2], [3, 4], [5, 6]])
    assert vectors.ids == ('a, "b"', "two\nlines", "c")
    assert vectors.labels == ("dog", None, "nan")
    assert vectors.groups == ("g1", None, "g1")


def test_csv_of_one_column_or_one_row(tmp_path: Path) -> None:
    assert read_vectors(write(tmp_path / "x.csv", "1\n2\n3\n")).values.shape == (3, 1)
    assert read_vectors(write(tmp_path / "x.csv", "1,2,3\n")).values.shape == (1, 3)
    assert read_vectors(write(tmp_path / "x.csv", "id,x\na,1\n")).values.shape == (1, 1)
    assert read_vectors(write(tmp_path / "x.csv", "0,1\n1,0\n")).values.shape == (2, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", 'line 2, column 2 holds "x", which is not a number'),
        ("a,b\n1,2\n3,x\n", 'line 3, column "b" holds "x"'),
        ("id,b\nq,1\nr,high\n", 'line 3, column "b" holds "high"'),
        ("a,b\n1,\n", 'line 2, column "b" is empty'),
        ("1,abc\n2,3\n", 'line 1, column 2 holds "abc"'),
        ("clip1,0.1,0.2\nclip2,0.3,0.4\n", 'line 1, column 1 holds "clip1"'),
        ("1,1_000\n", 'column 2 holds "1_000"'),
        ("1,0x1F\n", 'column 2 holds "0x1F"'),
        ('1,"2,5"\n3,"4,5"\n', 'column 2 holds "2,5"'),
        ('a\n""\n1\n', 'line 2, column "a" is empty'),
        ('id,a\n"x\ny",1\nz,?\n', 'line 4, column "a"'),
        ("1,2\n3\n", "line 2 has 1 cells, not 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, not 2"),
        ("a,b\n", "a heading but no rows"),
        ("\n\n", "is empty"),
        ("id,label\na,b\n", "no number columns (id, label)"),
        ("a;b\n1;2\n", "not separated by commas"),
        ("1\t2\n", "not separated by commas"),
        ('a,b\n1,"2\n', "line 2 is not readable as CSV"),
        ("id,ids,x\na,b,1\n", "both `id` and `ids`"),
        ("id,x\n,1\n", "row 1 has no id"),
        (b"a,b\n\xff,1\n", "not UTF-8"),
    ],
)
def test_csv_refusals(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in refusal(read_vectors, write(tmp_path / "x.csv", text))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=width, max_size=width),
            min_size=1,
            max_size=5,
        )
    )
)
def test_csv_numbers_are_exact(tmp_path: Path, values: list[list[float]]) -> None:
    lines = [",".join(f"c{place}" for place in range(len(values[0])))]
    lines += [",".join(map(repr, line)) for line in values]
    found = read_vectors(write(tmp_path / "x.csv", "\n".join(lines))).values
    assert found.tolist() == values


# --- .parquet -------------------------------------------------------------------------------------


def test_parquet_of_number_columns(tmp_path: Path) -> None:
    single = np.array([1, 2], np.float32)
    path = parquet(tmp_path / "x.parquet", {"id": ["a", "b"], "x": single, "y": single + 1, "label": ["u", None]})
    vectors = read_vectors(path)
    assert vectors.values.dtype == np.float32
    np.testing.assert_array_equal(vectors.values, [[1, 2], [2, 3]])
    assert vectors.ids == ("a", "b")
    assert vectors.labels == ("u", None)
    mixed = read_vectors(parquet(path, {"x": single, "y": np.array([3, 4]), "__index_level_0__": [9, 9]}))
    assert mixed.values.dtype == np.float64
    np.testing.assert_array_equal(mixed.values, [[1, 3], [2, 4]])


@pytest.mark.parametrize("name", ["vector", "vectors", "embedding"])
@pytest.mark.parametrize("fixed", [False, True])
def test_parquet_of_a_list_column(tmp_path: Path, name: str, fixed: bool) -> None:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    kind = arrow.list_(arrow.float32(), 3) if fixed else arrow.list_(arrow.float64())
    column = arrow.array([[1, 2, 3], [4, 5, 6]], type=kind)
    vectors = read_vectors(parquet(tmp_path / "x.parquet", {"ids": [1, 2], "seconds": [0.5, 0.6], name: column}))
    assert vectors.values.dtype == (np.float32 if fixed else np.float64)
    np.testing.assert_array_equal(vectors.values, [[1, 2, 3], [4, 5, 6]])
    assert vectors.ids == ("1", "2")
    again = read_vectors(parquet(tmp_path / "y.parquet", {"a": column, "b": column}), key="b")
    np.testing.assert_array_equal(again.values, [[1, 2, 3], [4, 5, 6]])


def test_parquet_of_many_row_groups(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    files = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    table = arrow.table({"vector": np.arange(12.0).reshape(6, 2).tolist()})
    files.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.parquet").values, np.arange(12.0).reshape(6, 2))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0, 2.0], "name": ["a", "b"]}, 'column "name" holds string, not numbers'),
        ({"x": [1.0, None]}, 'row 2 of column "x" is empty'),
        ({"vector": [[1.0], None]}, 'row 2 of column "vector" is empty'),
        ({"vector": [[1.0, 2.0], [1.0, None]]}, 'row 2 of column "vector" has an empty number'),
        ({"vector": [[1.0, 2.0], [1.0]]}, "2 numbers in row 1 but 1 in row 2"),
        ({"vector": [["a"], ["b"]]}, "not real numbers"),
        ({"vector": [[1.0]], "embedding": [[1.0]]}, "the vector columns vector, embedding"),
        ({"id": ["a"]}, "no number columns and no column `vector`"),
        ({"id": ["a"], "ids": ["b"], "x": [1.0]}, "both `id` and `ids`"),
    ],
)
def test_parquet_refusals(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    assert message in refusal(read_vectors, parquet(tmp_path / "x.parquet", columns))


def test_damaged_parquet_and_wrong_keys(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", {"x": [1.0], "name": ["a"]})
    assert 'no column "nam"; it has x, name. Did you mean "name"?' in refusal(read_vectors, path, key="nam")
    assert 'column "x" does not hold lists' in refusal(read_vectors, path, key="x")
    assert "damaged or not a .parquet" in refusal(read_vectors, write(path, path.read_bytes()[:-20]))
    assert "no rows" in refusal(read_vectors, parquet(tmp_path / "e.parquet", {"x": np.zeros(0)}))
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    nothing = arrow.array([], type=arrow.list_(arrow.float32()))
    assert "no rows" in refusal(read_vectors, parquet(tmp_path / "e.parquet", {"vector": nothing}))


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.parquet", b"PAR1")
    for name in ("pyarrow", "pyarrow.parquet", "pyarrow.types"):
        monkeypatch.setitem(sys.modules, name, None)
    for read in (read_vectors, read_labels):
        with pytest.raises(MissingExtra, match=r'^Parquet files need `pip install "earmark\[parquet\]"`\.$'):
            read(path)


# --- .pt ------------------------------------------------------------------------------------------


class FakeTensor:
    """As much of a tensor as the reader touches, so that its logic is tested where torch is not installed."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: str = "float32", layout: str = "strided") -> None:
        self.array, self.dtype, self.layout, self.ndim = array, dtype, layout, array.ndim

    def float(self) -> FakeTensor:
        return FakeTensor(self.array.astype(np.float32))

    def detach(self) -> FakeTensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        assert self.dtype != "bfloat16", "NumPy cannot hold bfloat16"
        return self.array

    def tolist(self) -> Any:
        return self.array.tolist()


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Path]:
    """A .pt file that a stand-in for torch reads as the given object."""
    torch = types.ModuleType("torch")
    path = write(tmp_path / "x.pt", b"PK")

    def holding(content: Any) -> Path:
        def load(source: Path, *, map_location: str, weights_only: bool) -> Any:
            assert (source, map_location, weights_only) == (path, "cpu", True)
            if isinstance(content, Exception):
                raise content
            return content

        torch.__dict__.update(
            load=load,
            is_tensor=lambda item: isinstance(item, FakeTensor),
            strided="strided",
            bfloat16="bfloat16",
        )
        return path

    monkeypatch.setitem(sys.modules, "torch", torch)
    return holding


def test_pt_tensors_and_dictionaries(hold: Callable[[Any], Path]) -> None:
    np.testing.assert_array_equal(read_vectors(hold(FakeTensor(X))).values, X)
    half = read_vectors(hold(FakeTensor(np.ones((2, 2)), dtype="bfloat16")))
    assert half.values.dtype == np.float32
    held = {
        "vectors": FakeTensor(X),
        "ids": ["a", "b"],
        "labels": FakeTensor(np.array([0, 1])),
        "rate": 16000,
    }
    vectors = read_vectors(hold(held))
    assert vectors.ids == ("a", "b")
    assert vectors.labels == ("0", "1")
    np.testing.assert_array_equal(read_vectors(hold({"h": FakeTensor(X), "n": 3})).values, X)


def test_pt_refusals(hold: Callable[[Any], Path]) -> None:
    assert "holds a list, not a tensor" in refusal(read_vectors, hold([1, 2]))
    assert "sparse" in refusal(read_vectors, hold(FakeTensor(X, layout="sparse_coo")))
    assert "pool" in refusal(read_vectors, hold(FakeTensor(np.zeros((2, 2, 2)))))
    assert "leave the key out" in refusal(read_vectors, hold(FakeTensor(X)), key="a")
    assert "no 2-D array" in refusal(read_vectors, hold({"a": 3}))
    assert "`labels` is not a list" in refusal(read_vectors, hold({"vectors": FakeTensor(X), "labels": 3}))
    advice = RuntimeError("Weights only load failed.\nUse weights_only=False")
    message = refusal(read_vectors, hold(advice))
    assert "damaged or holds more than tensors" in message
    assert "weights_only" not in message


def test_pt_with_torch_itself(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=".pt files need torch")
    torch.save({"vectors": torch.tensor(X), "ids": ["a", "b"]}, tmp_path / "x.pt")
    vectors = read_vectors(tmp_path / "x.pt")
    np.testing.assert_array_equal(vectors.values, X)
    assert vectors.ids == ("a", "b")
    torch.save(torch.tensor(X).bfloat16(), tmp_path / "x.pt")
    assert read_vectors(tmp_path / "x.pt").values.dtype == np.float32


def test_pt_without_torch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"earmark\[torch\]"):
        read_vectors(write(tmp_path / "x.pt", b"PK"))


# --- any file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_vectors, read_labels])
def test_files_that_are_no_files(tmp_path: Path, read: Callable[..., object]) -> None:
    assert "does not exist" in refusal(read, tmp_path / "x.npy")
    folder = tmp_path / "x.csv"
    folder.mkdir()
    assert "is a folder" in refusal(read, folder)
    for suffix in (".npy", ".npz", ".csv", ".parquet"):
        assert "is empty" in refusal(read, write(tmp_path / f"e{suffix}", ""))


def test_unknown_suffixes_list_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "x.wav", "RIFF")
    assert ".npy, .npz, .csv, .parquet, .pt files" in refusal(read_vectors, path)
    assert ".csv, .txt, .npy, .npz, .parquet files" in refusal(read_labels, path)
    assert 'not from ""' in refusal(read_labels, write(tmp_path / "labels", "a\n"))


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.txt"])
def test_a_file_that_may_not_be_opened(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / name, "1\n")
    opened = io.open

    def deny(file: Any, *args: Any, **options: Any) -> Any:
        if str(file) == str(path):
            raise PermissionError(13, "Permission denied")
        return opened(file, *args, **options)

    # The tests may run as root, whom no file mode keeps out.
    monkeypatch.setattr(io, "open", deny)
    monkeypatch.setattr(builtins, "open", deny)
    for read in (read_labels,) if name == "x.txt" else (read_vectors, read_labels):
        assert "permission denied" in refusal(read, path)


@pytest.mark.parametrize("name", ["x.npy", "x.csv"])
def test_a_key_means_nothing_where_there_is_one_matrix(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="holds one matrix"):
        read_vectors(write(tmp_path / name, "1,2\n"), key="vectors")


# --- labels ---------------------------------------------------------------------------------------


def test_txt_labels_keep_their_lines(tmp_path: Path) -> None:
    assert read_labels(write(tmp_path / "y.txt", "dog\ncat \n\nbird")).values == ["dog", "cat", None, "bird"]
    assert read_labels(write(tmp_path / "y.txt", "\ufeffdog\r\ncat\r\n")).values == ["dog", "cat"]
    assert read_labels(write(tmp_path / "y.txt", "one\u2028label\nnan\nNaN\n")).values == [
        "one\u2028label",
        "nan",
        None,
    ]
    assert read_labels(write(tmp_path / "y.txt", "1\nnan\n2\n")).values == ["1", None, "2"]


def test_csv_labels_by_column(tmp_path: Path) -> None:
    text = "id,label,species,speaker\na,1,dog,x\nb,2,,y\n"
    path = write(tmp_path / "y.csv", text)
    labels = read_labels(path)
    assert labels.values == ["1", "2"]
    assert labels.ids == ("a", "b")
    assert labels.groups is None
    assert labels.header is None
    species = read_labels(path, column="species", groups="speaker")
    assert species.values == ["dog", None]
    assert species.groups == ["x", "y"]
    assert species.header == "species"


def test_csv_labels_without_a_label_column(tmp_path: Path) -> None:
    only = read_labels(write(tmp_path / "y.csv", "species\ndog\ncat\n"))
    assert (only.values, only.header) == (["dog", "cat"], "species")
    beside = read_labels(write(tmp_path / "y.csv", "id,species,group\na,dog,g\nb,cat,\n"))
    assert (beside.values, beside.ids, beside.groups) == (["dog", "cat"], ("a", "b"), ["g", None])
    assert read_labels(write(tmp_path / "y.csv", "3\n1\n3\n")).values == ["3", "1", "3"]
    assert read_labels(write(tmp_path / "y.csv", "group\nx\n"), column="group").values == ["x"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", {}, "the columns a, b; name the one with the labels `label`"),
        ("a,b\n1,2\n", {"column": "c"}, 'no column "c"; it has a, b'),
        ("species,b\n1,2\n", {"column": "specis"}, 'Did you mean "species"?'),
        ("label,b\n1,2\n", {"groups": "g"}, 'no column "g"'),
        ("label,b\n1,2\n3\n", {}, "line 3 has 1 cells, not 2"),
        ("label,label\n1,2\n", {}, 'column "label" more than once'),
        ("label\n", {}, "holds no labels"),
        ("id,label\n,x\n", {}, "row 1 has no id"),
        ("\n", {}, "is empty"),
        ('label\n"x\n', {}, "line 2 is not readable as CSV"),
        (b"label\n\xe9\n", {}, "not UTF-8"),
    ],
)
def test_csv_label_refusals(tmp_path: Path, text: str | bytes, options: dict[str, str], message: str) -> None:
    assert message in refusal(read_labels, write(tmp_path / "y.csv", text), **options)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array(["dog", "", " cat "]), ["dog", None, "cat"]),
        (np.array([3, 1, 3]), ["3", "1", "3"]),
        (np.array([3.0, np.nan, 0.5]), ["3", None, "0.5"]),
        (np.array([b"dog", b""]), ["dog", None]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([[1], [2]]), ["1", "2"]),
        (np.array([1, 2], ">i2"), ["1", "2"]),
    ],
)
def test_npy_labels(tmp_path: Path, array: Any, expected: list[str | None]) -> None:
    assert read_labels(save(tmp_path / "y.npy", array)).values == expected


def test_array_label_refusals(tmp_path: Path) -> None:
    assert "Python objects" in refusal(read_labels, save(tmp_path / "y.npy", np.array(["a", None], object)))
    assert "one dimension" in refusal(read_labels, save(tmp_path / "y.npy", np.zeros((2, 2))))
    assert "holds complex128" in refusal(read_labels, save(tmp_path / "y.npy", np.zeros(2, complex)))
    assert "holds no labels" in refusal(read_labels, save(tmp_path / "y.npy", np.zeros(0)))
    assert "no named columns" in refusal(read_labels, save(tmp_path / "y.npy", np.zeros(2)), column="label")
    assert "no named columns" in refusal(read_labels, write(tmp_path / "y.txt", "a\n"), groups="g")
    np.savez(tmp_path / "y.npz", vectors=X)
    assert "no 1-D array; its arrays are vectors" in refusal(read_labels, tmp_path / "y.npz")
    np.savez(tmp_path / "y.npz", labels=np.array(["a"]), ids=np.array(["a", "b"]))
    assert "1 labels but 2 ids" in refusal(read_labels, tmp_path / "y.npz")


def test_npz_labels(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    np.savez(path, vectors=X, labels=np.array(["a", "b"]), ids=np.array([1, 2]), speaker=np.array([5, 6]))
    labels = read_labels(path, groups="speaker")
    assert (labels.values, labels.ids, labels.groups) == (["a", "b"], ("1", "2"), ["5", "6"])
    assert read_labels(path, column="speaker").values == ["5", "6"]
    np.savez(path, vectors=X, species=np.array(["a", "b"]))
    assert read_labels(path).values == ["a", "b"]


def test_parquet_labels(tmp_path: Path) -> None:
    columns = {"id": ["a", "b", "c"], "label": ["x", "", None], "group": [1, 2, 2], "vector": [[1.0]] * 3}
    labels = read_labels(parquet(tmp_path / "y.parquet", columns))
    assert labels.values == ["x", None, None]
    assert labels.ids == ("a", "b", "c")
    assert labels.groups == ["1", "2", "2"]
    columns = {"species": [1.0, math.nan, 2.0], "__index_level_0__": [4, 5, 6]}
    numbers = read_labels(parquet(tmp_path / "z.parquet", columns))
    assert numbers.values == ["1", None, "2"]


# --- joining --------------------------------------------------------------------------------------


def test_join_by_id_in_any_order() -> None:
    vectors = Vectors(("a", "b"), X, source="x.npz")
    labels = Labels(["cat", None, "dog"], ("b", "c", "a"), ["g2", "g3", "g1"], source="y.csv")
    joined = join(vectors, labels)
    assert joined.values is X
    assert joined.labels == ["dog", "cat"]
    assert joined.groups == ["g1", "g2"]
    assert joined.ids == ("a", "b")
    assert joined.notes == ("y.csv: 1 row has no vector and was left out.",)


def test_join_by_position() -> None:
    joined = join(Vectors(None, X), Labels(["dog", None]))
    assert (joined.labels, joined.groups, joined.ids, joined.notes) == (["dog", None], None, None, ())
    one_side = join(Vectors(("a", "b"), X, groups=("g", None)), Labels(["dog", "cat"], source="y.txt"))
    assert one_side.ids == ("a", "b")
    assert one_side.groups == ["g", None]
    assert one_side.notes == ("y.txt has no ids; vectors and labels were joined by position.",)
    other_side = join(Vectors(None, X, source="x.npy"), Labels(["dog", "cat"], ("a", "b")))
    assert other_side.ids == ("a", "b")
    assert other_side.notes == ("x.npy has no ids; vectors and labels were joined by position.",)


PATHS = ("wav/a.wav", "wav/b.wav")


@pytest.mark.parametrize(
    ("names", "exactly"),
    [
        (["wav/b.wav", "wav/a.wav"], True),
        (["/data/wav/b.wav", "/data/wav/a.wav"], False),
        (["C:\\data\\b.wav", "C:\\data\\a.wav"], False),
        (["b", "a"], False),
        (["mp3/b.mp3", "mp3/a.mp3"], False),
    ],
)
@pytest.mark.parametrize("heading", ["path", "File Name", "clipId", "remark"])
def test_join_by_a_column_that_holds_the_ids(tmp_path: Path, names: list[str], exactly: bool, heading: str) -> None:
    np.savez(tmp_path / "x.npz", vectors=X, ids=PATHS)
    table = tmp_path / "y.csv"
    lines = [f"{heading},species,bird,part", f"{names[0]},cat,g2,p2", f"{names[1]},dog,g1,p1"]
    table.write_text("\n".join(lines))
    joined = read_labelled(tmp_path / "x.npz", table, label_column="species", groups="bird")
    assert (joined.labels, joined.groups, joined.ids, joined.doubts) == (["dog", "cat"], ["g1", "g2"], PATHS, ())
    assert f'by the column "{heading}"' in joined.notes[0]
    assert joined.notes[0].endswith("file name.") is not exactly
    assert f"id: {heading} of" in joined.summary
    folds = read_labelled(tmp_path / "x.npz", table, label_column="species", groups="part")
    assert folds.groups == ["p1", "p2"]


def test_two_tables_are_joined_by_their_file_names(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("filename,f0,f1\na.wav,0.5,1.5\nb.wav,2.5,3.5\n")
    (tmp_path / "y.csv").write_text("path,label\nb.wav,cat\na.wav,dog\nc.wav,cow\n")
    joined = read_labelled(tmp_path / "x.csv", tmp_path / "y.csv")
    assert (joined.labels, joined.ids) == (["dog", "cat"], ("a.wav", "b.wav"))
    assert "1 row has no vector" in joined.notes[-1]
    (tmp_path / "z.csv").write_text("id,label\nb,cat\na,dog\n")
    assert read_labelled(tmp_path / "x.csv", tmp_path / "z.csv").labels == ["dog", "cat"]


def test_numbers_and_names_of_two_files_are_no_ids() -> None:
    """A permutation in a column of numbers is no name, and `a.wav` in two folders is two clips."""
    numbers = Labels(["dog", "cat"], beside={"rank": ["1", "0"]}, source="y.csv")
    assert join(Vectors(("0", "1"), X), numbers).labels == ["dog", "cat"]
    named = Labels(["dog", "cat"], beside={"clip": ["1", "0"]}, source="y.csv")
    assert join(Vectors(("0", "1"), X), named).labels == ["cat", "dog"]
    folders = Labels(["dog", "cat"], beside={"path": ["d/2/a.wav", "d/1/a.wav"]}, source="y.csv")
    assert join(Vectors(("1/a.wav", "2/a.wav"), X), folders).labels == ["cat", "dog"]
    twice = Labels(["dog", "cat", "cow"], beside={"path": ["e/a.wav", "f/a.wav", "b.wav"]}, source="y.csv")
    with pytest.raises(InputError, match=r"lacks|has 2 rows"):
        join(Vectors(("a", "b"), X), twice)


def test_names_that_contradict_the_order_are_refused_and_others_remarked() -> None:
    vectors = Vectors(("a.wav", "b.wav", "c.wav"), np.zeros((3, 2)), source="x.npz")
    moved = Labels(["1", "2", "3"], beside={"path": ["b.wav", "a.wav", "d.wav"]}, source="y.csv")
    with pytest.raises(InputError, match=r'y\.csv: the column "path" names 2 of the 3 vectors .* lacks name "c\.wav"'):
        join(vectors, moved)
    strange = Labels(["1", "2", "3"], beside={"path": ["p", "q", "r"]}, source="y.csv")
    joined = join(vectors, strange)
    assert joined.labels == ["1", "2", "3"]
    assert joined.doubts == joined.notes
    assert "none of them in path; vectors and labels were joined by position" in joined.doubts[0]


def test_groups_none_leaves_out_what_the_files_hold(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", vectors=X, ids=("a", "b"), labels=("p", "q"), groups=("g", "h"))
    inside = read_labelled(tmp_path / "x.npz", groups="none")
    assert (inside.groups, "; group:" in inside.summary) == (None, False)
    (tmp_path / "y.csv").write_text("id,label,group\nb,cat,s\na,dog,t\n")
    both = read_labelled(tmp_path / "x.npz", tmp_path / "y.csv", groups="none")
    assert (both.labels, both.groups) == (["dog", "cat"], None)
    (tmp_path / "z.csv").write_text("id,label,none\nb,cat,s\na,dog,t\n")
    assert read_labelled(tmp_path / "x.npz", tmp_path / "z.csv", groups="none").groups == ["t", "s"]
    (tmp_path / "y.txt").write_text("cat\ndog\n")
    assert read_labelled(tmp_path / "x.npz", tmp_path / "y.txt", groups="none").groups is None
    with pytest.raises(InputError, match='no column "species"'):
        read_labelled(tmp_path / "x.npz", tmp_path / "y.csv", groups="none", label_column="species")


def test_join_with_labels_inside_the_vectors() -> None:
    vectors = Vectors(("a", "b"), X, ("dog", None), ("g", "g"), source="x.npz")
    joined = join(vectors)
    assert (joined.labels, joined.groups, joined.ids) == (["dog", None], ["g", "g"], ("a", "b"))
    assert join(vectors, Labels(["cat", "cow"], source="y.txt")).notes[0] == (
        "Labels come from y.txt; those in x.npz are not used."
    )
    with pytest.raises(InputError, match=r"x\.npy holds no labels"):
        join(Vectors(None, X, source="x.npy"))


def test_join_refuses_missing_ids() -> None:
    ids = tuple(f"clip{place}" for place in range(8))
    vectors = Vectors(ids, np.zeros((8, 2)), source="x.npz")
    with pytest.raises(InputError) as caught:
        join(vectors, Labels(["dog"], ("clip0",), source="y.csv"))
    assert str(caught.value).startswith('y.csv lacks 7 ids ("clip1", "clip2", "clip3", …) of 8 in x.npz; add the rows')
    with pytest.raises(InputError, match=r'lacks id "clip7" of 8'):
        join(vectors, Labels(["dog"] * 7, ids[:7]))


def test_join_refuses_repeated_ids() -> None:
    with pytest.raises(InputError, match=r'x\.npz has id "a" more than once'):
        join(Vectors(("a", "a"), X, source="x.npz"), Labels(["dog"], ("a",)))
    with pytest.raises(InputError, match=r'y\.csv has 2 ids \("a", "b"\) more than once'):
        join(Vectors(("a", "b"), X), Labels(["dog"] * 4, ("a", "a", "b", "b"), source="y.csv"))


def test_join_refuses_unequal_lengths() -> None:
    with pytest.raises(InputError, match=r"x\.npy has 2 rows but y\.txt has 3 labels; give one label"):
        join(Vectors(None, X, source="x.npy"), Labels(["a", "b", "c"], source="y.txt"))


def test_a_list_without_a_heading_is_explained(tmp_path: Path) -> None:
    vectors = read_vectors(save(tmp_path / "x.npy", X))
    labels = read_labels(write(tmp_path / "y.csv", "dog\ncat\n"))
    with pytest.raises(InputError, match='first line "dog" was read as the heading: put `label` above it'):
        join(vectors, labels)


def test_one_file_may_hold_both(tmp_path: Path) -> None:
    path = write(tmp_path / "both.csv", "id,label,x,y\na,dog,1,2\nb,cat,3,4\n")
    joined = join(read_vectors(path), read_labels(path))
    assert joined.labels == ["dog", "cat"]
    assert joined.notes == ()


@pytest.mark.parametrize("mark", [";", "\t"])
def test_labels_separated_otherwise_are_refused(tmp_path: Path, mark: str) -> None:
    source = tmp_path / "labels.csv"
    source.write_text(f"label{mark}tape\nbark{mark}one\nhum{mark}two\n")
    with pytest.raises(InputError, match="not separated by commas"):
        read_labels(source)
