"""`earmark probe perception`: files of vectors, distances and runs against judgements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.verbs import runner
from tests.representations import sounds

from earmark.cli import probe as module
from earmark.representations import load_vectors, run
from earmark.runs.folder import read_record
from earmark.scores import load_scores

Command = Callable[..., tuple[int, str, str]]
IDS = [f"calls/s{n:02d}.wav" for n in range(12)]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    run_probe = runner("probe", module, capsys)
    return lambda *words: run_probe("perception", *words)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Choices that follow the vectors `good` in three cases of four, by six listeners."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 5))
    np.savez(tmp_path / "good.npz", vectors=values, ids=IDS)
    np.savez(tmp_path / "poor.npz", vectors=rng.normal(size=(12, 5)), ids=IDS)
    np.save(tmp_path / "bare.npy", values)
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, 0)
    np.save(tmp_path / "matrix.npy", (distances + distances.T) / 2)
    lines, pairs = ["probe,left,right,decision,bird,session"], {}
    for n in range(150):
        x, a, b = rng.choice(12, 3, replace=False)
        nearer = "Left" if distances[x, a] < distances[x, b] else "Right"
        choice = nearer if rng.random() < 0.75 else rng.choice(["Left", "Right"])
        lines.append(f"s{x:02d},s{a:02d},s{b:02d},{choice if n % 25 else 'NA'},B{n % 6},{n % 2}")
        pairs |= {(IDS[min(x, y)], IDS[max(x, y)]): distances[x, y] for y in (a, b)}
    (tmp_path / "choices.csv").write_text("\n".join(lines) + "\n")
    table = ["a,b,distance", *(f"{a},{b},{value:.17g}" for (a, b), value in pairs.items())]
    (tmp_path / "pairs.csv").write_text("\n".join(table) + "\n")
    return {path.name: str(path) for path in tmp_path.iterdir()}


def test_a_table_for_people_and_rows_in_a_file(command: Command, files: dict[str, str], tmp_path: Path) -> None:
    out, figure = tmp_path / "scores.csv", tmp_path / "agreement.svg"
    code, shown, err = command(
        files["choices.csv"], "--vectors", f"{files['good.npz']},{files['poor.npz']}", "--listener", "bird",
        "--distance", "cosine,spearman", "--where", "session=1", "--ceiling", "80%,0.9", "--out", out,
        "--figure", figure,
    )  # fmt: skip
    assert code == 0, err
    assert "choices.csv: 150 judgements (2afc); x: probe; a: left; b: right; choice: decision; listener: bird" in err
    for words in ("of 80 %", "below 0 agrees with the listeners", "good - poor",
                  "jackknife over listeners and pairs (at least 6 each)",
                  "6 judgements without a choice left out", "2afc session=1", "two listeners agree"):  # fmt: skip
        assert words in shown
    scores = load_scores(out)
    row = scores.row("choice_accuracy", system="good", distance="cosine", protocol="2afc")
    assert row.value is not None
    assert row.value > 0.7
    assert (row.n, row.units, row.baseline) == (144, 6, 0.5)
    assert scores.value("choice_spearman", system="good", distance="cosine", protocol="2afc") < -0.3
    assert figure.read_text().count("agreement (%)") == 2


def test_vectors_matrix_and_listed_pairs_give_the_same_answers(command: Command, files: dict[str, str]) -> None:
    values = []
    for words in (
        ["--vectors", files["good.npz"]], ["--vectors", files["bare.npy"], "--ids", files["ids.txt"]],
        ["--distances", files["matrix.npy"], "--ids", files["ids.txt"]], ["--distances", files["pairs.csv"]],
    ):  # fmt: skip
        code, shown, err = command(files["choices.csv"], *words, "--json", "--quiet")
        assert code == 0, err
        rows = {row["metric"]: row["value"] for row in json.loads(shown)}
        values.append([rows[name] for name in ("choice_accuracy", "choice_spearman", "choice_kendall")])
    assert values[1:] == [pytest.approx(values[0], abs=1e-12)] * 3
    words = ["--vectors", files["poor.npz"], "--distances", files["matrix.npy"], "--ids", files["ids.txt"]]
    code, shown, _ = command(files["choices.csv"], *words, "--distance-name", "luscinia", "--json", "--quiet")
    assert code == 0
    (row,) = (row for row in json.loads(shown) if row["statistic"] == "difference")
    assert (row["system"], row["distance"]) == ("poor - matrix", "cosine - luscinia")
    assert row["value"] < 0


def test_the_systems_of_a_run_are_judged(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run({
        "corpus": str(sounds.make_folder(tmp_path / "sounds")), "extractors": [sounds.BANDS],
        "pooling": ["mean_time", "max_time"], "metrics": ["P@1"], "into": str(folder),
        "cache": {"url": str(tmp_path / "cache")}, "steps": ["prepare", "embed", "evaluate"],
    })  # fmt: skip
    record = read_record(folder)["vectors"]
    known = load_vectors(folder, record[0]["subset"], record[0]["system"])
    names = [name.removesuffix(".wav") for name in known.ids]
    lines = [f"{names[n]},{names[n + 1]},{names[n + 2]}" for n in range(len(names) - 2)]
    judgements = tmp_path / "triplets.csv"
    judgements.write_text("Anchor,Positive,Negative\n" + "\n".join(lines) + "\n")
    code, shown, err = command(judgements, "--run", folder, "--json", "--quiet")
    assert code == 0, err
    rows = [row for row in json.loads(shown) if row["metric"] == "triplet_accuracy"]
    assert [row["system"] for row in rows] == [entry["system"] for entry in record]
    assert {row["subset"] for row in rows} == {record[0]["subset"]}
    values = known.values / np.linalg.norm(known.values, axis=1, keepdims=True)
    near = (values[:-2] * values[1:-1]).sum(axis=1) - (values[:-2] * values[2:]).sum(axis=1)
    assert rows[0]["value"] == pytest.approx(np.mean(near > 1e-9), abs=1e-9)
    code, shown, _ = command(judgements, "--run", folder, "--system", record[1]["system"], "--json", "--quiet")
    assert {row["system"] for row in json.loads(shown)} == {record[1]["system"], "listeners"}
    code, _, err = command(judgements, "--run", folder, "--system", "nobody")
    assert (code, 'has no system "nobody"' in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 2, "give --vectors, --distances or --run"),
        (["--vectors", "good.npz", "--run", "x"], 2, "not both"),
        (["--vectors", "good.npz", "--distance-name", "x"], 2, "give --distances FILE"),
        (["--vectors", "good.npz,good.npz"], 2, "given twice"),
        (["--vectors", "bare.npy"], 1, "nothing says which sound a row is"),
        (["--vectors", "good.npz", "--ceiling", "high"], 2, "no list of shares"),
        (["--vectors", "good.npz", "--ceiling", "80"], 2, "A ceiling is a share"),
        (["--vectors", "good.npz", "--system", "a,b"], 2, "--system gives 2 names for 1 file"),
        (["--vectors", "good.npz", "--unit", "listener"], 2, "needs to know who judged"),
        (["--vectors", "good.npz", "--where", "sesion=1"], 1, 'Did you mean "session"?'),
        (["--vectors", "good.npz", "--figure", "f.txt"], 2, "choose a name that ends in"),
        (["--vectors", "good.npz", "--reference", "other"], 2, "There is no system 'other'"),
        (["--vectors", "good.npz", "--x", "prob"], 1, 'no column "prob"'),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    command: Command, files: dict[str, str], words: list[str], code: int, sentence: str
) -> None:
    found, _, err = command(files["choices.csv"], *(files.get(word, word) for word in words))
    assert found == code
    assert sentence in err


def test_a_system_without_the_sounds_leaves_with_1_and_says_it_even_when_quiet(
    command: Command, files: dict[str, str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "other.npz", vectors=np.eye(3), ids=["u", "v", "w"])
    code, shown, err = command(files["choices.csv"], "--vectors", tmp_path / "other.npz", "--quiet")
    assert code == 1
    assert "WARNING: other can answer only 0 of 144 judgements of 2afc" in err
    assert "144 judgements of 144 left out for 12 missing sounds" in shown
