"""The map of a run: its vectors, labels and values as it measured them; choices of subset, system and distance."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.test_maps import lists_of, page_data
from tests.representations.sounds import make_folder

import earmark
from earmark.cli import main
from earmark.errors import UsageError
from earmark.report.maps import _packing
from earmark.representations import load_points, load_vectors, map_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems over 30 clips of five classes, in groups, under two distances and a correction."""
    root = tmp_path_factory.mktemp("map")
    sounds = make_folder(root / "sounds", 5, 6)
    with (root / "clips.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["path", "label", "group", "subset", "id"])
        for number, path in enumerate(sorted(sounds.rglob("*.wav"))):
            for subset in ("first", "second"):
                if subset == "first" or number < 24:
                    lines.writerow(
                        [
                            path,
                            path.parent.name,
                            f"tape{number % 4}",
                            subset,
                            f"{subset}/{path.parent.name}/{path.name}",
                        ]
                    )
    earmark.run({
        "corpus": str(root / "clips.csv"), "extractors": ["logmel", "mfcc"], "distances": ["cosine", "euclidean"],
        "correct": ["none", "nicdm:k=5"], "across_groups": True, "metrics": ["P@1", "GSR"],
        "steps": ["embed", "evaluate"], "into": str(root / "run"), "cache": {"url": str(root / "cache")},
    })  # fmt: skip
    return root / "run"


def test_a_run_is_mapped_as_it_was_measured(folder: Path) -> None:
    made = map_run(folder, system="mfcc", distance="euclidean", correct="nicdm:k=5", projection="pca")
    stored = page_data(made.html)
    vectors = load_vectors(folder, "first", "mfcc")
    points = load_points(folder, "first", "mfcc", "euclidean", correction="nicdm:k=5")
    assert stored["ids"] == vectors.ids
    assert stored["title"] == "first"
    for number, protocol in enumerate(["across_groups", "all"]):
        view = stored["views"][number]
        assert (view["system"], view["distance"], view["correction"]) == ("mfcc", "euclidean", "nicdm:k=5")
        rows, _ = lists_of(made.html, number)
        np.testing.assert_array_equal(rows[:, 0], points[protocol, "nearest_row"])
        for name in view["values"]:
            np.testing.assert_allclose(_packing.unpacked(view["values"][name]), points[protocol, name], rtol=1e-6)
        assert set(view["values"]) == {"P@1", "GSR"}
    sounds = page_data(made.html, "map-sounds")
    assert len(sounds["rows"]) == 30
    assert stored["files"]["names"][0].endswith(".wav")
    assert "The run also has second: --subset chooses." in made.notes


def test_several_systems_share_a_page_and_each_distance_has_its_places(folder: Path) -> None:
    made = map_run(folder, system="all", distance=["cosine", "euclidean"], projection="pca", sounds="none")
    stored = page_data(made.html)
    shown = {(view["system"], view["distance"]) for view in stored["views"]}
    assert len(shown) == 4
    assert len(stored["views"]) == 8
    assert len(stored["layouts"]) == 4
    assert {tuple(view["layouts"]) for view in stored["views"]} == {(0,), (1,), (2,), (3,)}


def test_without_a_wish_the_best_uncorrected_setting_is_shown(folder: Path) -> None:
    view = page_data(map_run(folder, subset="second", projection="pca", sounds="none").html)["views"][0]
    scores = earmark.load_scores(folder / "scores.csv").select(subset="second", metric="P@1", correction="none")
    best = max(row.value or 0.0 for row in scores)
    ways = {(row.system, row.distance) for row in scores if row.value == best}
    assert (view["system"], view["distance"]) in ways
    assert view["correction"] == "none"


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"subset": "third"}, 'no subset "third"; it has first, second'),
        ({"system": "mfc"}, 'no system "mfc".*Did you mean'),
        ({"distance": "spearman"}, 'has no distance "spearman"'),
        ({"correct": "mp"}, 'has no correction "mp"'),
    ],
)
def test_what_a_run_does_not_have_is_named(folder: Path, wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        map_run(folder, **wishes)


def test_a_run_maps_itself(folder: Path, tmp_path: Path) -> None:
    config = {"corpus": str(folder.parent / "sounds"), "extractors": ["mfcc"], "metrics": ["P@1"]}
    ran = earmark.run({
        **config, "steps": ["embed", "evaluate"], "into": str(tmp_path / "run"), "cache": {"url": str(tmp_path)},
    })  # fmt: skip
    assert len(ran.map(sounds="none", projection="pca").content.clips) == 30


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_maps_runs_and_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "map.html"
    assert main(["map", str(folder), "--out", str(page), "--sounds", "link", "--projection", "pca", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith(f"{page}: 30 clips, 2 views, 0.")
    assert page_data(page.read_text("utf-8"), "map-sounds")["kind"] == "linked"
    found = load_vectors(folder, "first", "mfcc")
    np.savez(tmp_path / "vectors.npz", vectors=found.values, ids=found.ids)
    rows = [f"{name},{label}" for name, label in zip(found.ids, found.labels, strict=True)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,species", *rows]) + "\n")
    words = ["map", str(tmp_path / "vectors.npz"), str(tmp_path / "labels.csv"), "--label-column", "species"]
    words += ["--audio", str(folder.parent / "sounds"), "--out", str(page), "--projection", "pca"]
    assert main(words) == 0
    stored = page_data(page.read_text("utf-8"))
    assert len(stored["labels"]["names"]) == 5
    assert len(page_data(page.read_text("utf-8"), "map-sounds")["rows"]) == 30
    assert main(["map", str(tmp_path / "vectors.npz"), "--out", str(page), "--quiet"]) == 0
    assert page_data(page.read_text("utf-8"))["labels"]["names"] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["gone"], "gone does not exist"),
        (["."], "is a folder and holds no run"),
        (["RUN", "labels.csv"], "is a run, which knows its labels"),
        (["RUN", "--groups", "tape"], "--groups is for files of vectors"),
        (["RUN", "--sounds", "loud"], "a size such as 5MB, or link, or none"),
        (["RUN", "--out", "map.png"], "ends in .html"),
        (["RUN", "--out", "nowhere/map.html"], "does not exist; create it first"),
        (["VECTORS", "--subset", "x"], "--subset is for run folders"),
        (["VECTORS", "--across-groups"], "needs groups"),
    ],
)
def test_wrong_words_are_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", np.eye(6))
    given = [{"RUN": str(folder), "VECTORS": "vectors.npy"}.get(word, word) for word in words]
    assert main(["map", *given]) in (1, 2)
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert json.dumps(told).count("earmark: ") == 1
