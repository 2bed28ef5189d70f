"""Databases of Perch Hoplite and tables of BirdNET-Analyzer, as the real packages wrote them.

golden/make_hoplite.py made them.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earmark import EarmarkError, read_labelled, read_vectors
from earmark.cli import main
from earmark.vectors import hoplite_files
from earmark.vectors.usearch_files import read_index

GOLDEN = Path(__file__).parent / "golden" / "hoplite"
VERSIONS = ("perch_hoplite-1.0.2", "perch_hoplite-0.1.3")
BIRDNET = GOLDEN / "birdnet_analyzer-2.4.0"


def expected(version: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((GOLDEN / version / "expected.json").read_text())
    return rows


def copied(version: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / version, tmp_path / "database"))


@pytest.mark.parametrize("version", VERSIONS)
def test_windows_have_the_vectors_and_labels_that_the_package_itself_gives(version: str) -> None:
    found = read_vectors(GOLDEN / version)
    rows = expected(version)
    assert found.values.dtype == np.float32
    assert found.values == pytest.approx(np.array([row["vector"] for row in rows]), abs=0)
    assert found.labels is not None
    labels = [label.split(found.separator) if label else [] for label in found.labels]
    assert labels == [row["labels"] for row in rows]
    assert found.ids is not None
    times = [tuple(map(float, name.rpartition("#")[2].split("-"))) for name in found.ids]
    assert times == [tuple(row["offsets"]) for row in rows]


def test_recordings_are_the_groups_and_deployments_can_be(tmp_path: Path) -> None:
    database = copied(VERSIONS[0], tmp_path)
    found = read_vectors(database)
    # Two recordings are called dawn.wav, one of each deployment.
    assert found.groups is not None
    assert sorted(set(map(str, found.groups))) == [
        "north/dawn.wav",
        "north/dusk.wav",
        "south/dawn.wav",
        "south/dusk.wav",
    ]
    by_site = read_vectors(database / "hoplite.sqlite", groups="deployment")
    assert by_site.groups == tuple(row["deployment"] for row in expected(VERSIONS[0]))
    with pytest.raises(EarmarkError, match="deployment"):
        read_vectors(database, groups="deploymen")
    assert read_labelled(database, groups="none").groups is None


def test_paths_of_another_machine_are_shortened_to_what_differs() -> None:
    groups = read_vectors(GOLDEN / VERSIONS[1]).groups
    assert groups is not None
    assert set(groups) == {"dawn.wav", "site 2/dusk.wav"}


def test_a_database_is_evaluated_by_its_labels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(GOLDEN / VERSIONS[1]), "--metrics", "P@1,GSR,label_jaccard", "--json", "--quiet"]) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["P@1"]["n"] == 8
    assert rows["label_jaccard"]["status"] == "ok"
    assert rows["GSR"]["status"] == "not_applicable"
    assert "4 unlabelled rows dropped" in rows["P@1"]["reason"]


def test_labels_of_a_table_take_the_place_of_annotations(tmp_path: Path) -> None:
    names = read_vectors(GOLDEN / VERSIONS[0]).ids or ()
    table = tmp_path / "labels.csv"
    table.write_text(
        "id,label\n" + "".join(f"{name},{'a' if number % 2 else 'b'}\n" for number, name in enumerate(names))
    )
    joined = read_labelled(GOLDEN / VERSIONS[0], table)
    assert set(joined.labels) == {"a", "b"}


def test_vectors_in_the_database_itself_are_read_as_the_first_versions_wrote_them(tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite"
    vectors = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float16)
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE hoplite_embeddings (id INTEGER PRIMARY KEY, embedding BLOB, source STRING)")
        connection.execute("CREATE TABLE hoplite_labels (id INTEGER PRIMARY KEY, embedding_id, label, type, source)")
        for number, vector in enumerate(vectors):
            connection.execute("INSERT INTO hoplite_embeddings VALUES (?, ?, ?)", (number, vector.tobytes(), "dawn"))
            connection.execute(
                "INSERT INTO hoplite_labels VALUES (?, ?, ?, 1, 'ada')", (number, number, f"l{number % 2}")
            )
    connection.close()
    found = read_vectors(file)
    assert found.values == pytest.approx(vectors.astype(np.float32), abs=0)
    assert found.labels == ("l0", "l1", "l0", "l1")
    assert found.groups == ("dawn",) * 4


def test_a_window_does_not_get_the_labels_of_its_neighbours_by_rounding(tmp_path: Path) -> None:
    """Windows beside each other every 0.1 s, and annotations with the same times in single precision."""
    times = [(0.1 * place, 0.1 * (place + 1)) for place in range(20)]
    file = tmp_path / "hoplite.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE deployments (id INTEGER PRIMARY KEY, name, project)")
        connection.execute("CREATE TABLE recordings (id INTEGER PRIMARY KEY, filename, deployment_id)")
        connection.execute("CREATE TABLE windows (id INTEGER PRIMARY KEY, recording_id, offsets)")
        connection.execute("CREATE TABLE annotations (id INTEGER, recording_id, offsets, label, label_type)")
        connection.execute("INSERT INTO recordings VALUES (1, 'dawn.wav', NULL)")
        for place, span in enumerate(times):
            single = np.array(span, np.float32).astype("<f8").tobytes()
            connection.execute("INSERT INTO windows VALUES (?, 1, ?)", (place, np.array(span, "<f8").tobytes()))
            connection.execute("INSERT INTO annotations VALUES (?, 1, ?, ?, 1)", (place, single, f"label {place}"))
        held = hoplite_files._read_windows(connection)
    connection.close()
    assert held.labels == {place: [f"label {place}"] for place in range(20)}


def _no_index(database: Path) -> None:
    (database / "usearch.index").unlink()


def _half_an_index(database: Path) -> None:
    data = (database / "usearch.index").read_bytes()
    (database / "usearch.index").write_bytes(data[: len(data) // 2])


def _another_kind_of_number(database: Path) -> None:
    data = bytearray((database / "usearch.index").read_bytes())
    rows, width = struct.unpack_from("<2I", data)
    data[8 + rows * width + 14] = 23  # int8
    (database / "usearch.index").write_bytes(data)


def _no_database(database: Path) -> None:
    (database / "hoplite.sqlite").write_bytes(b"SQLite format 3\x00 and nothing else")


def _another_database(database: Path) -> None:
    (database / "hoplite.sqlite").unlink()
    connection = sqlite3.connect(database / "hoplite.sqlite")
    connection.execute("CREATE TABLE birds (id)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_no_index, "copy its whole folder"),
        (_half_an_index, "is damaged or no index of USearch"),
        (_another_kind_of_number, "write an index of float16 or float32"),
        (_no_database, "cannot be read as a database"),
        (_another_database, "no tables of Perch Hoplite"),
    ],
)
def test_a_damaged_database_is_told_in_a_sentence(damage: Any, words: str, tmp_path: Path) -> None:
    database = copied(VERSIONS[0], tmp_path)
    damage(database)
    with pytest.raises(EarmarkError, match=words):
        read_vectors(database)


def test_a_window_without_a_vector_is_left_out_and_told(tmp_path: Path) -> None:
    database = copied(VERSIONS[0], tmp_path)
    connection = sqlite3.connect(database / "hoplite.sqlite")
    connection.execute("INSERT INTO windows (recording_id, offsets) VALUES (1, ?)", (struct.pack("<2d", 90, 95),))
    connection.commit()
    connection.close()
    found = read_vectors(database)
    assert len(found.values) == len(expected(VERSIONS[0]))
    assert any("1 window without a vector" in note for note in found.notes)


def test_removed_vectors_stay_out_of_an_index() -> None:
    keys, vectors = read_index(GOLDEN / VERSIONS[0] / "usearch.index")
    assert len(keys) == len(vectors) == 23  # one of 24 was removed
    assert len(set(keys.tolist())) == 23


# --- what BirdNET-Analyzer makes of its database ------------------------------------------------------------------


def test_its_table_and_its_files_hold_the_same_windows_as_its_database() -> None:
    database = read_vectors(GOLDEN / VERSIONS[1])
    table = read_vectors(BIRDNET / "embeddings.csv")
    assert (table.ids, table.groups) == (database.ids, database.groups)
    assert table.values == pytest.approx(database.values, abs=0)
    files = read_vectors(BIRDNET / "files")
    row_of = {name.replace(".wav", ""): row for row, name in enumerate(database.ids or ())}
    assert files.values == pytest.approx(database.values[[row_of[name] for name in files.ids or ()]], abs=0)
    assert set(files.groups or ()) == {"dawn", "site 2/dusk"}


def test_a_broken_row_of_the_table_is_named(tmp_path: Path) -> None:
    file = tmp_path / "embeddings.csv"
    file.write_text('file_path,start,end,embedding\ndawn.wav,0.0,3.0,"0.1,0.2"\ndawn.wav,3.0,6.0,"0.1,wren"\n')
    with pytest.raises(EarmarkError, match="line 3 is no window of BirdNET-Analyzer"):
        read_vectors(file)


# --- several labels in files --------------------------------------------------------------------------------------


@pytest.fixture
def windows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "v.npz", vectors=rng.normal(size=(6, 4)), ids=[f"w{number}" for number in range(6)])
    return tmp_path


def test_a_row_for_each_label_a_cell_with_a_separator_and_columns_of_0_and_1_say_the_same(windows: Path) -> None:
    sets = ["wren", "wren;owl", "owl", "owl;tit;wren", "tit", "tit"]
    (windows / "rows.csv").write_text(
        "id,label\n" + "".join(f"w{row},{label}\n" for row, text in enumerate(sets) for label in text.split(";"))
    )
    (windows / "cells.csv").write_text("id,label\n" + "".join(f"w{row},{text}\n" for row, text in enumerate(sets)))
    (windows / "wide.csv").write_text(
        "id,sp_wren,sp_owl,sp_tit\n"
        + "".join(
            f"w{row},{','.join(str(int(x in text)) for x in ('wren', 'owl', 'tit'))}\n" for row, text in enumerate(sets)
        )
    )
    by_rows = read_labelled(windows / "v.npz", windows / "rows.csv", label_separator=";")
    cells = read_labelled(windows / "v.npz", windows / "cells.csv", label_separator=";")
    wide = read_labelled(windows / "v.npz", windows / "wide.csv", label_column="sp_*")
    named = read_labelled(windows / "v.npz", windows / "wide.csv", label_column="sp_wren,sp_owl,sp_tit")
    as_sets = [[set(str(text).split(";")) for text in joined.labels] for joined in (by_rows, cells)]
    assert as_sets[0] == as_sets[1]
    assert [{f"sp_{name}" for name in held} for held in as_sets[0]] == [set(str(t).split(";")) for t in wide.labels]
    assert named.labels == wide.labels
    assert wide.separator == ";"


def test_repeated_ids_are_refused_unless_they_are_said_to_be_labels(windows: Path) -> None:
    (windows / "rows.csv").write_text("id,label\n" + "".join(f"w{row},a\nw{row},b\n" for row in range(6)))
    with pytest.raises(EarmarkError, match="--label-separator"):
        read_labelled(windows / "v.npz", windows / "rows.csv")


def test_a_row_of_zeros_is_background_and_columns_beside_vectors_are_no_dimensions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    lines = ["id,rec,f0,f1,f2,wren,owl"]
    for row in range(30):
        wren, owl = ((1, 0), (0, 1), (1, 1), (0, 0))[row % 4]
        x = rng.normal(size=3) + np.array([3 * wren, 3 * owl, 0])
        lines.append(f"w{row},r{row % 6},{x[0]},{x[1]},{x[2]},{wren},{owl}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    joined = read_labelled(tmp_path / "t.csv", label_column="wren,owl", groups="rec")
    assert joined.values.shape == (30, 3)
    assert joined.background == "background"
    arguments = [
        "evaluate",
        str(tmp_path / "t.csv"),
        "--label-column",
        "wren,owl",
        "--groups",
        "rec",
        "--json",
        "--quiet",
    ]
    assert main(arguments) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["P@1"]["n"] == 23
    assert "7 rows of background" in rows["P@1"]["reason"]
    assert rows["silhouette"]["status"] == "not_applicable"


def test_columns_of_labels_that_hold_something_else_are_told(windows: Path) -> None:
    (windows / "wide.csv").write_text(
        "id,a,b\n" + "".join(f"w{row},1,{'maybe' if row == 3 else 0}\n" for row in range(6))
    )
    with pytest.raises(EarmarkError, match=r'row 4: column "b" holds'):
        read_labelled(windows / "v.npz", windows / "wide.csv", label_column="a,b")
