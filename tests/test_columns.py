"""Columns of tables: which become dimensions, which never do, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark.cli import main
from earmark.errors import InputError, UsageError
from earmark.vectors import read_labelled, read_labels, read_vectors

pandas: Any = pytest.importorskip("pandas", reason="writes tables as users do")

ROWS, WIDTH = 90, 12
CLASSES = np.repeat(np.arange(6), ROWS // 6)
SINGERS = np.tile(np.arange(9), ROWS // 9)


def noise(seed: int = 5) -> Any:
    """A frame of pure noise, sorted by a class that has nothing to do with it."""
    values = np.random.default_rng(seed).normal(size=(ROWS, WIDTH))
    return pandas.DataFrame(values, columns=[f"f{place}" for place in range(WIDTH)])


def as_csv(frame: Any, path: Path, **options: Any) -> Path:
    target = path / "t.csv"
    frame.to_csv(target, **options)
    return target


def as_parquet(frame: Any, path: Path, **options: Any) -> Path:
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    target = path / "t.parquet"
    frame.to_parquet(target, **options)
    return target


WRITERS = [as_csv, as_parquet]


def p_at_1(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[float, str]:
    """P@1 of `earmark evaluate`, and what it says on stderr."""
    assert main(["evaluate", *map(str, words), "--metrics", "P@1", "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out)[0]["value"], captured.err


def refusal(read: Callable[..., object], *given: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(*given, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


# --- labels, groups and an index in the file of the vectors --------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("twice", [True, False])
def test_noise_with_its_labels_beside_it_stays_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Callable[..., Path], twice: bool
) -> None:
    frame = noise().assign(kind=CLASSES, singer=SINGERS * 100).reset_index()
    table = write(frame, tmp_path, index=False)
    np.save(tmp_path / "x.npy", noise().to_numpy())
    np.savetxt(tmp_path / "y.txt", CLASSES, fmt="%d")
    alone, _ = p_at_1(capsys, tmp_path / "x.npy", tmp_path / "y.txt")
    files = [table, table] if twice else [table]
    value, told = p_at_1(capsys, *files, "--label-column", "kind", "--groups", "singer")
    assert value == alone < 0.35
    assert f"{table}: 12 columns f0 … f11; label: kind; group: singer; left out: index" in told


@pytest.mark.parametrize("write", WRITERS)
def test_columns_are_named_in_python_too(tmp_path: Path, write: Callable[..., Path]) -> None:
    frame = noise().assign(kind=CLASSES, fold=SINGERS % 3, speaker_id=SINGERS)
    joined = read_labelled(write(frame, tmp_path), label_column="kind", groups="speaker_id")
    assert joined.columns == tuple(f"f{place}" for place in range(WIDTH))
    assert joined.values.shape == (ROWS, WIDTH)
    assert joined.labels == [str(number) for number in CLASSES]
    assert joined.groups == [str(number) for number in SINGERS]
    vectors = read_vectors(tmp_path / ("t.csv" if write is as_csv else "t.parquet"), label_column="kind")
    assert vectors.roles["label"] == "kind"
    assert {"fold", "speaker_id"} <= set(vectors.left_out)


def test_a_label_column_of_another_file_is_no_dimension_here(tmp_path: Path) -> None:
    table = as_csv(noise().assign(mood=CLASSES), tmp_path, index=False)
    pandas.DataFrame({"mood": CLASSES}).to_csv(tmp_path / "y.csv", index=False)
    joined = read_labelled(table, tmp_path / "y.csv")
    assert joined.values.shape[1] == WIDTH
    assert joined.summary.endswith(f"label: mood of {tmp_path / 'y.csv'}; left out: mood")


@pytest.mark.parametrize("name", [None, "number", "index"])
@pytest.mark.parametrize("write", WRITERS)
def test_an_index_of_pandas_is_left_out(tmp_path: Path, write: Callable[..., Path], name: str | None) -> None:
    shuffled = noise().sample(frac=1, random_state=0)
    shuffled.index.name = name
    vectors = read_vectors(write(shuffled, tmp_path))
    assert vectors.columns == tuple(shuffled.columns)
    np.testing.assert_allclose(vectors.values, shuffled.to_numpy())
    assert len(vectors.left_out) == 1


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["csv", "headless", "parquet", "npy", "npz"])
def test_a_column_that_counts_the_rows_is_left_out_under_any_name(tmp_path: Path, kind: str, first: int) -> None:
    counted = noise().assign(weight=np.arange(ROWS) + first)
    if kind == "npy":
        np.save(tmp_path / "t.npy", counted.to_numpy())
    elif kind == "npz":
        np.savez(tmp_path / "t.npz", vectors=counted.to_numpy())
    elif kind == "headless":
        counted.astype(float).to_csv(tmp_path / "t.csv", header=False, index=False)
    else:
        {"csv": as_csv, "parquet": as_parquet}[kind](counted, tmp_path, index=False)
    vectors = read_vectors(tmp_path / f"t.{'csv' if kind == 'headless' else kind}")
    np.testing.assert_array_equal(vectors.values, noise().to_numpy())
    assert vectors.left_out == (("weight",) if kind in ("csv", "parquet") else ("column 13",))


def test_ranks_and_short_tables_are_no_index(tmp_path: Path) -> None:
    ranks = np.argsort(np.random.default_rng(0).normal(size=(20, 3)), axis=0)
    np.save(tmp_path / "ranks.npy", ranks)
    assert read_vectors(tmp_path / "ranks.npy").values.shape == (20, 3)
    np.save(tmp_path / "short.npy", np.column_stack([np.arange(4), np.ones(4)]))
    assert read_vectors(tmp_path / "short.npy").values.shape == (4, 2)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("labels", ["y.csv", "y.parquet"])
def test_an_index_of_names_joins_as_ids(tmp_path: Path, write: Callable[..., Path], labels: str) -> None:
    frame = noise()
    frame.index = [f"clip{row:03d}" for row in range(ROWS)]
    table = write(frame, tmp_path)
    turned = pandas.DataFrame({"kind": CLASSES}, index=frame.index).iloc[::-1]
    if labels == "y.csv":
        turned.to_csv(tmp_path / labels)
    else:
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
        turned.to_parquet(tmp_path / labels)
    joined = read_labelled(table, tmp_path / labels)
    assert joined.labels == [str(number) for number in CLASSES]
    assert joined.ids is not None
    assert joined.ids[3] == "clip003"


# --- columns that may be labels -------------------------------------------------------------------------------------


def test_whole_numbers_among_named_dimensions_are_refused_until_somebody_decides(tmp_path: Path) -> None:
    table = as_csv(noise().assign(valence=CLASSES % 4), tmp_path, index=False)
    text = refusal(read_vectors, table)
    assert '"valence" holds whole numbers' in text
    assert '--dimensions "f*"' in text
    assert read_vectors(table, dimensions="f*").values.shape[1] == WIDTH
    assert read_vectors(table, dimensions=["f*", "valence"]).values.shape[1] == WIDTH + 1
    assert read_vectors(table, label_column="valence").values.shape[1] == WIDTH
    assert "has no column" in refusal(read_vectors, table, dimensions="g*")
    with pytest.raises(UsageError, match="no dimension"):
        read_vectors(table, label_column="valence", dimensions="valence")


def test_fractions_under_other_names_are_dimensions(tmp_path: Path) -> None:
    table = as_csv(noise().assign(energy=np.linspace(0.1, 0.9, ROWS), zeros=0), tmp_path, index=False)
    vectors = read_vectors(table)
    assert vectors.summary.endswith("14 columns f0 … f11, energy, zeros")
    assert vectors.notes == ()


def test_whole_numbers_in_a_nameless_matrix_are_noted_and_refused_where_they_are_the_label(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.column_stack([noise().to_numpy(), CLASSES]))
    np.savetxt(tmp_path / "y.txt", [f"kind {number}" for number in CLASSES], fmt="%s")
    assert "column 13 holds whole numbers" in read_vectors(tmp_path / "x.npy").notes[0]
    assert "numbers the labels" in refusal(read_labelled, tmp_path / "x.npy", tmp_path / "y.txt")
    np.savetxt(tmp_path / "other.txt", [f"kind {number % 2}" for number in CLASSES], fmt="%s")
    assert read_labelled(tmp_path / "x.npy", tmp_path / "other.txt").notes


@pytest.mark.parametrize(
    "name",
    [
        *("class", "Class", "target", "speaker", "speaker_id", "speakerId", "fold", "cv_fold", "split", "clip_id"),
        *("uuid", "file_name", "class_name", "start", "end_time", "session", "row number", "true_label"),
    ],
)
def test_names_that_tell_rows_apart(tmp_path: Path, name: str) -> None:
    frame = noise()
    frame.columns = [f"loudness {place} dB" for place in range(WIDTH)]  # arbitrary names: nothing is uniform
    frame[name] = CLASSES
    assert read_vectors(as_csv(frame, tmp_path, index=False)).left_out == (name,)


@pytest.mark.parametrize("name", ["x", "energy", "class0", "bioacoustic_index", "reynolds_number", "pitch", "ident"])
def test_names_that_do_not(tmp_path: Path, name: str) -> None:
    frame = noise().assign(**{name: np.linspace(0.05, 0.95, ROWS)})
    assert read_vectors(as_csv(frame, tmp_path, index=False)).left_out == ()


def test_fidelity_takes_columns_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise(1).assign(fold=SINGERS).to_csv(tmp_path / "real.csv", index=False)
    noise(1)[[f"f{place}" for place in reversed(range(WIDTH))]].to_csv(tmp_path / "same.csv", index=False)
    words = ["--metrics", "precision", "--correct", "none", "--bootstrap", "0", "--json"]
    assert main(["fidelity", str(tmp_path / "real.csv"), str(tmp_path / "same.csv"), *words]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["value"] == 1.0
    assert "left out: fold" in captured.err
    noise(1).rename(columns={"f0": "z"}).to_csv(tmp_path / "other.csv", index=False)
    assert main(["fidelity", str(tmp_path / "real.csv"), str(tmp_path / "other.csv"), *words]) == 1
    assert "have other columns" in capsys.readouterr().err


def test_a_data_frame_with_labels_is_refused() -> None:
    import earmark

    with pytest.raises(InputError, match="column 'class', which is no dimension"):
        earmark.evaluate(noise().assign(**{"class": CLASSES}), CLASSES)
    assert earmark.evaluate(noise(), CLASSES, metrics="P@1").row("P@1").n == ROWS


# --- asked for by name ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["npz", "csv", "parquet", "pt"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that holds vectors with `species` and `bird` beside them."""
    target = tmp_path / f"all.{request.param}"
    if request.param == "npz":
        np.savez(target, vectors=noise().to_numpy(), species=CLASSES, bird=SINGERS)
    elif request.param == "pt":
        torch: Any = pytest.importorskip("torch", reason=".pt files need torch")
        arrays = {"vectors": noise().to_numpy(), "species": CLASSES, "bird": SINGERS}
        torch.save({name: torch.tensor(array) for name, array in arrays.items()}, target)
    elif request.param == "csv":
        noise().assign(species=CLASSES, bird=SINGERS).to_csv(target, index=False)
    else:
        as_parquet(noise().assign(species=CLASSES, bird=SINGERS), tmp_path).rename(target)
    return target


def test_labels_and_groups_by_name_in_the_file_of_the_vectors(held: Path) -> None:
    joined = read_labelled(held, label_column="species", groups="bird")
    assert joined.values.shape == (ROWS, WIDTH)
    assert joined.labels == [str(number) for number in CLASSES]
    assert joined.groups == [str(number) for number in SINGERS]
    assert "label: species; group: bird" in joined.summary


@pytest.mark.parametrize("option", ["--label-column", "--groups"])
def test_a_name_that_is_not_there_is_an_error(held: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--label-column", "species"] if option == "--groups" else []
    assert main(["evaluate", str(held), *given, option, "nonsense"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert 'has no column "nonsense"; it has' in captured.err
    assert "species, bird" in captured.err


def test_groups_may_lie_with_the_vectors_and_labels_elsewhere(held: Path, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "y.txt", CLASSES, fmt="%d")
    assert read_labelled(held, tmp_path / "y.txt", groups="bird").groups == [str(number) for number in SINGERS]
    pandas.DataFrame({"label": CLASSES, "room": 1}).to_csv(tmp_path / "y.csv", index=False)
    assert read_labelled(held, tmp_path / "y.csv", groups="bird").groups == [str(number) for number in SINGERS]
    text = refusal(read_labelled, held, tmp_path / "y.csv", groups="nest")
    assert text == f'{tmp_path / "y.csv"} has no column "nest"; it has label, room.'


def test_other_commands_read_columns_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = tmp_path / "one.csv"
    two = tmp_path / "two.csv"
    noise(1).assign(mood=CLASSES).to_csv(one, index=False)
    noise(2).assign(mood=CLASSES).to_csv(two, index=False)
    assert main(["compare", str(one), str(two), str(one), "--label-column", "mood", "--json"]) == 0
    assert f"{two}: 12 columns f0 … f11" in capsys.readouterr().err
    assert main(["hubness", str(one), "--label-column", "mood", "--correct", "none", "--top", "0"]) == 0
    assert "12 columns f0 … f11; label: mood" in capsys.readouterr().err
    assert main(["hubness", str(one), "--label-column", "mode"]) == 1
    assert 'has no column "mode"; it has f0 … f11, mood.' in capsys.readouterr().err


# --- headings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("width", [4, 5, 30])
def test_numbers_that_pandas_puts_above_columns_are_a_heading(
    tmp_path: Path, scale: float, index: bool, width: int
) -> None:
    values = np.random.default_rng(2).normal(size=(30, width)) * scale
    frame = pandas.DataFrame(values.astype(int) if scale > 1 else values)
    vectors = read_vectors(as_csv(frame, tmp_path, index=index))
    np.testing.assert_allclose(vectors.values, frame.to_numpy())
    assert vectors.columns == tuple(str(place) for place in range(width))


def test_numbers_above_some_of_the_columns(tmp_path: Path) -> None:
    chosen = pandas.DataFrame(np.random.default_rng(2).normal(size=(30, 9)))[[0, 3, 5, 7, 8]]
    np.testing.assert_allclose(read_vectors(as_csv(chosen, tmp_path, index=False)).values, chosen.to_numpy())
    labelled = pandas.DataFrame(np.arange(60).reshape(20, 3) % 7).assign(mood=CLASSES[:20])
    vectors = read_vectors(as_csv(labelled, tmp_path, index=False), label_column="mood")
    assert vectors.values.shape == (20, 3)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("0,1\n1,0\n", (2, 2)),
        ("0,1\n1,1\n0,0\n", (3, 2)),
        ("5,3,1\n2,2,2\n", (2, 3)),
        ("3,4\n0.5,0.25\n", (2, 2)),
        ("1,2,3,4\n0.5,2,3.5,1\n", (2, 4)),
        ("0,1,2,4\n1,1,1,1\n", (2, 4)),
    ],
)
def test_a_genuine_first_row_is_kept(tmp_path: Path, text: str, shape: tuple[int, int]) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert read_vectors(tmp_path / "x.csv").values.shape == shape


@pytest.mark.parametrize("text", ["0,1,2\n5,3,1\n2,2,2\n", "0,1,2,3\n3,2,1,0\n1,0,2,3\n"])
def test_what_may_be_either_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert "may be a heading or a vector" in refusal(read_vectors, tmp_path / "x.csv")


def test_labels_written_with_an_index(tmp_path: Path) -> None:
    pandas.DataFrame({"species": CLASSES}).to_csv(tmp_path / "y.csv")
    assert read_labels(tmp_path / "y.csv").values == [str(number) for number in CLASSES]
