"""Distances that were computed elsewhere: reading them, and refusing what are none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from earmark.errors import InputError, UsageError
from earmark.vectors import _distance_checks
from earmark.vectors.distances import Distances, given_distances, read_distances, read_ids

N = 7
POINTS = np.random.default_rng(0).normal(size=(N, 3))
CONDENSED = pdist(POINTS)
D = squareform(CONDENSED)
NAMES = [f"clip {i}" for i in range(N)]


def save(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def text(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_text(end.join(lines) + end, encoding="utf-8")
    return path


def pair_lines(matrix: Any, names: list[str] = NAMES, both: bool = False, mark: str = ",") -> list[str]:
    order = [(i, j) for i in range(len(names)) for j in range(len(names)) if i < j or (both and i > j)]
    return [mark.join([names[i], names[j], repr(float(matrix[i, j]))]) for i, j in order]


def same(found: Distances, wanted: Any = D, names: list[str] | None = None) -> None:
    everything = np.arange(len(wanted))
    assert found.n == len(wanted)
    assert found.ids == (None if names is None else tuple(names))
    np.testing.assert_array_equal(found.block(everything, everything), wanted)
    np.testing.assert_array_equal(found.block(slice(1, 3), slice(0, None)), wanted[1:3])
    np.testing.assert_array_equal(found.pairs(everything[:, None], everything[None, :]), wanted)
    assert found.digest() == given_distances(wanted).digest()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8, np.float16])
def test_square_npy_of_any_type(tmp_path: Path, dtype: Any) -> None:
    values = np.round(D * 10).astype(dtype)
    found = read_distances(save(tmp_path / "d.npy", values))
    same(found, values.astype(float))
    assert found.notes == ()


def test_square_npy_stays_on_disk(tmp_path: Path) -> None:
    assert isinstance(read_distances(save(tmp_path / "d.npy", D)).values, np.memmap)
    columnwise = read_distances(save(tmp_path / "f.npy", np.asfortranarray(D)))
    same(columnwise)


def test_condensed_and_archives(tmp_path: Path) -> None:
    same(read_distances(save(tmp_path / "c.npy", CONDENSED)))
    np.savez(tmp_path / "c.npz", distances=CONDENSED, ids=NAMES)
    same(read_distances(tmp_path / "c.npz"), names=NAMES)
    np.savez_compressed(tmp_path / "s.npz", first=D, second=D + 1 - np.eye(N))
    with pytest.raises(InputError, match="name the distances `distances`"):
        read_distances(tmp_path / "s.npz")
    same(read_distances(tmp_path / "s.npz", key="first"))
    with pytest.raises(InputError, match='no array "thrid"'):
        read_distances(tmp_path / "s.npz", key="thrid")


HEADINGS = ["a,b,distance", "id1,id2,dtw", "sound_x,sound_y,d", "from,to,Euclidean distance", "Clip A,Clip B,value"]


@pytest.mark.parametrize("heading", HEADINGS)
def test_pairs_by_their_columns(tmp_path: Path, heading: str) -> None:
    same(read_distances(text(tmp_path / "p.csv", [heading, *pair_lines(D)])), names=NAMES)


def test_pairs_in_other_shapes(tmp_path: Path) -> None:
    same(read_distances(text(tmp_path / "bare.csv", pair_lines(D))), names=NAMES)
    tabs = [line.replace(",", "\t") for line in ["a,b,distance", *pair_lines(D)]]
    same(read_distances(text(tmp_path / "p.tsv", tabs, end="\r\n")), names=NAMES)
    both = ["a,b,distance", *pair_lines(D, both=True), "clip 0,clip 0,0"]
    same(read_distances(text(tmp_path / "both.csv", both)), names=NAMES)
    wide = [f"{i},{line},x" for i, line in enumerate(["a,b,distance", *pair_lines(D)])]
    wide[0] = ",a,b,distance,judge"
    same(read_distances(text(tmp_path / "wide.csv", wide)), names=NAMES)
    odd = ["who,whom,how,far", *[line.replace(",", ",x,", 1) for line in pair_lines(D)]]
    odd = ["who,how,whom,far", *odd[1:]]
    with pytest.raises(InputError, match="--pair-columns"):
        read_distances(text(tmp_path / "odd.csv", odd))
    same(read_distances(tmp_path / "odd.csv", columns="who,whom,far"), names=NAMES)
    with pytest.raises(InputError, match=r'no column "fra".*Did you mean "far"'):
        read_distances(tmp_path / "odd.csv", columns="who,whom,fra")


def test_squares_in_tables(tmp_path: Path) -> None:
    rows = [[repr(float(value)) for value in row] for row in D]
    named = [",".join([name, *row]) for name, row in zip(NAMES, rows, strict=True)]
    same(read_distances(text(tmp_path / "a.csv", [",".join(["", *NAMES]), *named])), names=NAMES)
    same(read_distances(text(tmp_path / "r.csv", [",".join(NAMES), *named])), names=NAMES)
    spelled = [",".join(["", *(name.replace(" ", ".") for name in NAMES)]), *named]
    same(read_distances(text(tmp_path / "frame.csv", spelled)), names=NAMES)
    same(read_distances(text(tmp_path / "bare.csv", [",".join(row) for row in rows])))
    same(read_distances(text(tmp_path / "above.csv", [",".join(NAMES), *(",".join(row) for row in rows)])), names=NAMES)
    numbered = [",".join(["", *map(str, range(N))]), *(",".join([str(i), *row]) for i, row in enumerate(rows))]
    same(read_distances(text(tmp_path / "n.csv", numbered)), names=[str(i) for i in range(N)])
    for name, half in (("lower", np.tril(D)), ("upper", np.triu(D))):
        cells = [["" if v == 0 else repr(float(v)) for v in row] for row in half]
        table = [",".join(["", *NAMES]), *(",".join([n, *row]) for n, row in zip(NAMES, cells, strict=True))]
        same(read_distances(text(tmp_path / f"{name}.csv", table)), names=NAMES)
    np.savetxt(tmp_path / "blanks.txt", D, fmt="%.17g")
    same(read_distances(tmp_path / "blanks.txt"))
    order = [3, 0, 1, 2, 6, 5, 4]
    turned = [",".join([NAMES[i], *(rows[i][j] for j in order)]) for i in range(N)]
    same(read_distances(text(tmp_path / "t.csv", [",".join(["", *(NAMES[j] for j in order)]), *turned])), names=NAMES)
    with pytest.raises(InputError, match='row 1 is named "clip 0" and column 1 "bird 0"'):
        read_distances(text(tmp_path / "x.csv", [",".join(["", *(f"bird {i}" for i in range(N))]), *named]))
    with pytest.raises(InputError, match="neither pairs"):
        read_distances(text(tmp_path / "y.csv", [",".join(["", *NAMES]), *named[:-1]]))


def test_two_items_and_pairs_of_numbers(tmp_path: Path) -> None:
    two = np.array([[0, 3.0], [3.0, 0]])
    same(read_distances(text(tmp_path / "square.csv", [",p,q", "p,0,3", "q,3,0"])), two, ["p", "q"])
    same(read_distances(text(tmp_path / "pair.csv", ["a,b,distance", "p,q,3"])), two, ["p", "q"])
    same(read_distances(text(tmp_path / "numbers.csv", ["i,j,d", "1,2,3"])), two, ["1", "2"])
    with pytest.raises(InputError, match="at least two"):
        given_distances(np.zeros((1, 1)))


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    files = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    i, j = np.triu_indices(N, 1)
    columns = {"id_a": [NAMES[k] for k in i], "id_b": [NAMES[k] for k in j], "distance": CONDENSED}
    files.write_table(arrow.table(columns), tmp_path / "p.parquet")
    same(read_distances(tmp_path / "p.parquet"), names=NAMES)
    square = {"__index_level_0__": NAMES, **{name: D[:, k] for k, name in enumerate(NAMES)}}
    files.write_table(arrow.table(square), tmp_path / "s.parquet")
    same(read_distances(tmp_path / "s.parquet"), names=NAMES)


def test_ids_from_lists_and_files(tmp_path: Path) -> None:
    matrix = save(tmp_path / "d.npy", D)
    same(read_distances(matrix, ids=NAMES), names=NAMES)
    same(read_distances(matrix, ids=text(tmp_path / "i.txt", NAMES)), names=NAMES)
    same(read_distances(matrix, ids=text(tmp_path / "i.csv", ["label,ID", *(f"x,{n}" for n in NAMES)])), names=NAMES)
    with pytest.raises(InputError, match="name the one with the ids `id`"):
        read_ids(text(tmp_path / "j.csv", ["label,bird", "x,y"]))
    with pytest.raises(InputError, match="distances of 7 items but there are 6 ids"):
        read_distances(matrix, ids=NAMES[1:])
    with pytest.raises(InputError, match='id "clip 0" more than once'):
        read_distances(matrix, ids=[NAMES[0], *NAMES[:-1]])
    pairs = text(tmp_path / "p.csv", ["a,b,distance", *pair_lines(D)])
    found = read_distances(pairs, ids=NAMES[::-1])
    same(found, D[::-1, ::-1], NAMES[::-1])
    with pytest.raises(InputError, match=r'names item "clip 6" not among the 6 ids'):
        read_distances(pairs, ids=NAMES[:-1])
    with pytest.raises(InputError, match=r'lacks 7 pairs of the 28 of its 8 items \("clip 0" and "lost"'):
        read_distances(pairs, ids=[*NAMES, "lost"])
    partial = read_distances(pairs, ids=[*NAMES, "lost"], complete=False)
    np.testing.assert_array_equal(partial.pairs([0, 0, 7], [1, 7, 7]), [D[0, 1], np.nan, 0.0])


# --- what is refused, and what is said ---------------------------------------------------------------------------


def changed(*places: tuple[int, int], value: float, mirrored: bool = True) -> Any:
    out = D.copy()
    for i, j in places:
        out[i, j] = value
        if mirrored:
            out[j, i] = value
    return out


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_values_are_refused_with_count_and_first_pair(tmp_path: Path, value: float) -> None:
    matrix = changed((2, 4), (5, 6), value=value)
    with pytest.raises(InputError, match="4 values missing or infinite, first of rows 3 and 5"):
        given_distances(matrix)
    with pytest.raises(InputError, match='2 values missing or infinite, first of "clip 2" and "clip 4"'):
        given_distances(matrix[np.triu_indices(N, 1)], ids=NAMES)
    with pytest.raises(InputError, match='2 values missing or infinite, first of "clip 2" and "clip 4"'):
        read_distances(text(tmp_path / "p.csv", ["a,b,distance", *pair_lines(matrix)]))


def test_negative_values_are_refused_and_rounding_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"2 values below 0 \(down to -0.3\), first of rows 2 and 4; are these simila"):
        given_distances(changed((1, 3), value=-0.3))
    with pytest.raises(InputError, match=r"1 value below 0 .*first of rows 2 and 4; are these similarities"):
        given_distances(changed((1, 3), value=-0.3)[np.triu_indices(N, 1)])
    found = given_distances(changed((1, 3), value=-1e-9))
    assert re.search(r"2 values below 0 by rounding \(at most 1e-09\) taken as 0", found.notes[0])
    assert found.pairs(1, 3) == 0.0
    assert found.block(slice(1, 2), slice(3, 4)) == 0.0
    far = D.copy()  # one far item must not make a real fault of the others look like rounding
    far[0, 1:] = far[1:, 0] = 1e9
    far[1, 3] = far[3, 1] = -0.3
    with pytest.raises(InputError, match="2 values below 0"):
        given_distances(far)


def test_directions_that_differ(tmp_path: Path) -> None:
    uneven = changed((1, 3), value=9.0, mirrored=False)
    wanted = (
        rf"not symmetric: 1 pair of 21, first rows 2 and 4 \(9 and {D[1, 3]:.6g}\); say what counts with --symmetrise"
    )
    with pytest.raises(InputError, match=wanted):
        given_distances(uneven)
    pairs = text(tmp_path / "p.csv", ["a,b,distance", *pair_lines(uneven, both=True)])
    with pytest.raises(InputError, match='not symmetric: 1 pair, first "clip 1" and "clip 3"'):
        read_distances(pairs)
    for how, value in (("mean", (9 + D[1, 3]) / 2), ("min", D[1, 3]), ("max", 9.0)):
        same(given_distances(uneven, symmetrise=how), changed((1, 3), value=value))
        found = read_distances(pairs, symmetrise=how)
        same(found, changed((1, 3), value=value), NAMES)
        assert "not symmetric" in found.notes[0]
    rounded = given_distances(changed((1, 3), value=D[1, 3] * (1 + 1e-9), mirrored=False))
    assert "1 pair differ by rounding" in rounded.notes[0]
    assert rounded.symmetrise == "mean"
    with pytest.raises(UsageError, match="choose mean, min, max"):
        given_distances(D, symmetrise="median")


def test_the_diagonal() -> None:
    own = D + 0.1 * np.eye(N)
    found = given_distances(own)
    assert "7 of 7 items are not at distance 0 from themselves" in found.notes[0]
    same(found)
    same(given_distances(np.where(np.eye(N, dtype=bool), np.nan, D)))
    with pytest.raises(InputError, match=r"7 of 7 items have their largest value with themselves.*give 1 - similarity"):
        given_distances(1.0 / (1.0 + D))
    with pytest.raises(InputError, match="similarities"):
        given_distances(np.corrcoef(POINTS))


def test_similarities_with_copies() -> None:
    points = np.vstack([POINTS, POINTS])  # every item has an exact copy
    likeness = np.exp(-np.abs(points[:, None] - points[None]).sum(axis=2))
    with pytest.raises(InputError, match=r"14 of 14 items have their largest value with themselves.*give 1 - similar"):
        given_distances(likeness)
    given_distances(1 - likeness)
    given_distances(np.zeros((3, 3)))  # copies alone


def test_what_the_third_column_says(tmp_path: Path) -> None:
    lines = pair_lines(D)
    for name in ("score", "cosine similarity", "trial", "count", "Match"):
        path = text(tmp_path / "p.csv", [f"a,b,{name}", *lines])
        with pytest.raises(InputError, match=f'the column "{name}" and none of distances.*--pair-columns "a,b,{name}"'):
            read_distances(path)
        same(read_distances(path, columns=["a", "b", name]), names=NAMES)
    beside = [f"{first},{second},7,{value}" for first, second, value in (line.split(",") for line in lines)]
    assert read_distances(text(tmp_path / "s.csv", ["a,b,score,distance", *beside])).notes == ()
    found = read_distances(text(tmp_path / "v.csv", ["a,b,value", *lines]))
    assert found.notes == (f'{tmp_path / "v.csv"}: the column "value" is taken as the distance',)
    assert read_distances(text(tmp_path / "d.csv", ["a,b,Dissimilarity", *lines])).notes == ()


def test_distances_are_made_even_anew_or_refused(tmp_path: Path) -> None:
    uneven = changed((1, 3), value=9.0, mirrored=False)
    first = given_distances(uneven, symmetrise="mean", ids=NAMES)
    same(given_distances(first, symmetrise="max"), changed((1, 3), value=9.0), NAMES)
    assert given_distances(first, symmetrise="mean") is first
    assert given_distances(first) is first
    pairs = read_distances(
        text(tmp_path / "p.csv", ["a,b,distance", *pair_lines(uneven, both=True)]), symmetrise="mean"
    )
    with pytest.raises(UsageError, match=r"one already, by their mean; read the file with symmetrise='max'"):
        given_distances(pairs, symmetrise="max")


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_distances_out_of_range_are_refused(factor: float) -> None:
    with pytest.raises(InputError, match=r"too (small|large) to compute with"):
        given_distances(D * factor)
    with pytest.raises(InputError, match=r"too (small|large) to compute with"):
        given_distances(CONDENSED * factor)


def test_pairs_that_contradict_each_other_or_are_missing(tmp_path: Path) -> None:
    lines = pair_lines(D)
    again = text(tmp_path / "a.csv", ["a,b,distance", *lines, "clip 1,clip 3,9"])
    with pytest.raises(InputError, match='1 pair more than once with different distances, first "clip 1" and "clip 3"'):
        read_distances(again)
    same(read_distances(text(tmp_path / "b.csv", ["a,b,distance", *lines, lines[3]])), names=NAMES)
    with pytest.raises(InputError, match=r'lacks 2 pairs of the 21 of its 7 items \("clip 0" and "clip 1"; "clip 0"'):
        read_distances(text(tmp_path / "c.csv", ["a,b,distance", *lines[2:]]))
    with pytest.raises(InputError, match='"far" where a distance belongs'):
        read_distances(text(tmp_path / "d.csv", ["a,b,distance", *lines, "clip 1,clip 3,far"]))
    with pytest.raises(InputError, match="lacks one of its two names"):
        read_distances(text(tmp_path / "e.csv", ["a,b,distance", *lines, ",clip 3,1"]))
    with pytest.raises(InputError, match="are these similarities"):
        read_distances(text(tmp_path / "f.csv", ["a,b,similarity", *lines]))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 4)), "not square"),
        (np.zeros(4), r"n \(n - 1\) / 2 for no whole n"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.array(["a", "b"]), "not numbers"),
        (np.zeros((0, 0)), "at least two"),
        (np.zeros(0), "at least two"),
    ],
)
def test_arrays_of_other_shapes(array: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        given_distances(array)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_distances(tmp_path / "no.npy")
    with pytest.raises(InputError, match="distances are read from"):
        read_distances(text(tmp_path / "d.pdf", ["x"]))
    with pytest.raises(InputError, match="not separated by commas"):
        read_distances(text(tmp_path / "d.csv", ["a;b;distance", "x;y;1"]))
    with pytest.raises(InputError, match="not a NumPy array"):
        read_distances(text(tmp_path / "d.npy", ["a,b"]))
    with pytest.raises(UsageError, match="three columns"):
        read_distances(save(tmp_path / "e.npy", D), columns="a,b")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8])
def test_tiles_of_any_size_find_the_same(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(_distance_checks, "TILE", size)
    monkeypatch.setattr(_distance_checks, "CHUNK", size)
    same(given_distances(D))
    same(given_distances(CONDENSED), D)
    bad = changed((6, 2), (5, 1), value=np.nan, mirrored=False)
    with pytest.raises(InputError, match="2 values missing or infinite, first of rows 6 and 2"):
        given_distances(bad)
    uneven = changed((1, 3), (4, 6), value=9.0, mirrored=False)
    with pytest.raises(InputError, match=r"2 pairs of 21, first rows 2 and 4"):
        given_distances(uneven)
    with pytest.raises(InputError, match="7 of 7 items have their largest value with themselves"):
        given_distances(1.0 / (1.0 + D))
    half = CONDENSED.copy()
    half[11] = np.inf
    i, j = (int(k[11]) + 1 for k in np.triu_indices(N, 1))
    with pytest.raises(InputError, match=f"first of rows {i} and {j}"):
        given_distances(half)
