"""`earmark fidelity` as a user meets it: vectors or sounds in; a table, files and figures out; a sentence if wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

import earmark
from earmark.cli import main
from earmark.generated import audio_distance
from earmark.scores import COLUMNS, load_scores


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with real.npy (130 points) and generated.npz (110, with ids)."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("real.npy", rng.normal(size=(130, 8)))
    generated = rng.normal(size=(110, 8))
    generated[:9] += 5.0
    np.savez("generated.npz", vectors=generated, ids=[f"take{row:03d}.wav" for row in range(110)])
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run a command that must fail: nothing on stdout, one sentence on stderr."""
    code = main(["fidelity", *words])
    captured = capsys.readouterr()
    assert code in (1, 2)
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return code, captured.err


@pytest.mark.usefixtures("folder")
def test_scores_of_the_command_are_those_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--k 3 --bootstrap 20 --distance euclidean,cosine --quiet --json --out scores.csv".split()
    assert main(["fidelity", "real.npy", "generated.npz", *flags]) == 0
    rows = json.loads(capsys.readouterr().out)
    direct = earmark.fidelity(
        np.load("real.npy"), np.load("generated.npz")["vectors"], k=3, bootstrap=20, distance=["euclidean", "cosine"],
        system="generated.npz", subset="real.npy",
    )  # fmt: skip
    kept = [name for name in COLUMNS if name != "seconds"]
    assert [[row[name] for name in kept] for row in rows] == [[getattr(row, name) for name in kept] for row in direct]
    again = load_scores("scores.csv")
    assert again.value("density", distance="cosine", correction="gicdm") == direct.value(
        "density", distance="cosine", correction="gicdm"
    )


@pytest.mark.usefixtures("folder")
def test_table_files_figure_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    files = "--per-sample samples.csv --per-real reals.csv --figure all.png --html page.html".split()
    assert main(["fidelity", "real.npy", "generated.npz", "--worst", "3", "--bootstrap", "20", *files]) == 0
    captured = capsys.readouterr()
    assert "generated.npz against real.npy · 110 generated points, 130 real · euclidean" in captured.out
    assert "with GICDM" in captured.out
    assert captured.out.count("take00") == 3
    assert "nan" not in captured.out
    assert "written: page.html" in captured.err
    with Path("samples.csv").open() as stream:
        worst = [row["id"] for row in csv.DictReader(stream)][:9]
    assert sorted(worst) == [f"take{row:03d}.wav" for row in range(9)]
    assert Path("all.png").read_bytes().startswith(b"\x89PNG")
    page = Path("page.html").read_text()
    assert worst[0] in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.usefixtures("folder")
def test_metrics_k_and_readings_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--metrics precision,clipped_density --k precision=2,clipped_density=3 --reading literal --correct gicdm"
    assert main(["fidelity", "real.npy", "generated.npz", *words.split(), "--json", "--quiet", "--uncapped"]) == 0
    rows = {row["metric"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    real, generated = np.load("real.npy"), np.load("generated.npz")["vectors"]
    expected = earmark.fidelity(
        real, generated, k={"precision": 2, "clipped_density": 3}, correct="gicdm", reading="literal", cap=False,
        metrics=["precision", "clipped_density"],
    )  # fmt: skip
    assert rows == {row.metric: row.value for row in expected}
    assert set(rows) == {"precision", "clipped_density_literal"}


def test_folders_of_sounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    time = np.arange(1600) / 16000
    for name, lowest in (("real", 300), ("made", 320)):
        for label in ("a", "b"):
            (tmp_path / name / label).mkdir(parents=True)
            for take in range(8):
                tone = np.sin(2 * np.pi * rng.uniform(lowest, 900) * time) + 0.1 * rng.normal(size=1600)
                soundfile.write(tmp_path / name / label / f"{take}.wav", 0.3 * tone, 16000)
    words = "real made --extractor logmel --k 2 --metrics precision,coverage --per-sample samples.csv --quiet".split()
    assert main(["fidelity", *words]) == 0
    assert "16 generated points, 16 real" in capsys.readouterr().out
    with Path("samples.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 16
    assert all(row["id"].endswith(".wav") and row["euclidean nearest_id"].endswith(".wav") for row in rows)
    samples = np.random.default_rng(2).normal(size=2400)
    soundfile.write(tmp_path / "made" / "a" / "0.wav", 0.1 * samples, 16000)
    (tmp_path / "made" / "a" / "1.wav").write_bytes(b"no sound")
    words = "real made --extractor logmel --k 2 --metrics precision --correct none --quiet".split()
    assert main(["fidelity", *words]) == 0
    captured = capsys.readouterr()
    assert "15 generated points, 16 real" in captured.out
    assert "note: made: 1 of 16 clips failed; first a/1.wav" in captured.err
    assert main(["fidelity", *words, "--pool", "flatten"]) == 1
    assert "use --pool mean_time" in capsys.readouterr().err
    assert "to each set by itself: leave D out" in failure(capsys, *words, "--pool", "mean_time D3")[1]
    code, said = failure(capsys, "real", "made")
    assert code == 2
    assert "real is a folder: name a model with --extractor" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("real.npy missing.npy", 1, "missing.npy does not exist"),
        ("real.npy generated.npz --k many", 2, "'many' is not a number such as 5"),
        ("real.npy generated.npz --metrics presision", 2, 'Did you mean "precision"'),
        ("real.npy generated.npz --correct icdm", 2, "choose from none, gicdm"),
        ("real.npy generated.npz --figure plane.gif", 2, "ends in .png, .svg or .pdf"),
        ("real.npy generated.npz --html no/such/page.html", 1, "does not exist; create it first"),
        ("real.npy generated.npz --pool mean_time", 2, "--pool belongs to audio"),
        ("real.npy", 2, "required: GENERATED"),
    ],
)
def test_mistakes_are_one_sentence(words: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = failure(capsys, *words.split())
    assert found[0] == code
    assert said in found[1]


@pytest.mark.usefixtures("folder")
def test_nothing_measured_is_exit_code_1_and_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("fidelity real.npy generated.npz --k 500 --metrics precision --quiet".split()) == 1
    assert "precision: k = 500 needs more than 500 real points, and there are 130" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_file_that_cannot_be_written_does_not_cost_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    files = "--per-sample samples.csv --per-real reals.csv --figure all.png --html page.html"
    assert main(f"fidelity real.npy generated.npz --metrics fad_inf {files}".split()) == 1
    captured = capsys.readouterr()
    assert "fad_inf" in captured.out
    for name in ("samples.csv", "all.png"):
        assert f"not written: {name}: No score of single samples was measured" in captured.err
        assert not Path(name).exists()
    assert "not written: reals.csv: No score of single real points" in captured.err
    assert "written: page.html" in captured.err.splitlines()
    np.save("four.npy", np.load("real.npy")[:4])
    words = "--metrics precision_cover --k precision_cover=5 --figure all.png"
    assert main(f"fidelity four.npy generated.npz {words}".split()) == 1
    assert "not written: all.png: There is no ball" in capsys.readouterr().err


def test_help_teaches_and_sanity_is_a_command_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "--help"]) == 0
    said = capsys.readouterr().out
    assert "examples:" in said
    assert "earmark fidelity sanity" in said
    assert main(["fidelity", "sanity", "--help"]) == 0
    assert "usage: earmark fidelity sanity" in capsys.readouterr().out


def test_recipes_are_listed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("fidelity recipes".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["recipe", "model"]
    (own,) = [line for line in lines if line.startswith("earmark-mfcc ")]
    assert own.split()[-1] == "yes"
    assert max(map(len, lines)) <= 120
    assert main("fidelity recipes google-vggish".split()) == 0
    told = capsys.readouterr().out
    assert "1 s every 0.5 s; what passes the end is dropped" in told
    assert "here      weights" in told
    assert main("fidelity recipes --json".split()) == 0
    facts = {fact["name"]: fact for fact in json.loads(capsys.readouterr().out)}
    assert facts["kadtk-panns-cnn14-32k"]["rate"] == 32000
    assert main("fidelity recipes --quiet".split()) == 0
    assert capsys.readouterr().out.split() == list(facts)
    assert "There is no recipe 'fadtk'" in failure(capsys, "recipes", "fadtk")[1]


@pytest.mark.usefixtures("folder")
def test_a_recipe_measures_vectors_of_any_tool(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    files = "--per-sample s.csv --per-real r.csv --figure f.png --html p.html --out scores.csv"
    assert main(f"fidelity real.npy generated.npz --recipe kadtk-vggish {files}".split()) == 0
    shown = capsys.readouterr().out
    assert "kad " in shown
    assert "samples that raise frechet_distance most: take00" in shown
    assert "8 numbers in a vector, and kadtk-vggish has 128" in shown
    found = load_scores("scores.csv")
    assert {(row.protocol, row.metric) for row in found} == {
        ("kadtk-vggish", "frechet_distance"), ("kadtk-vggish", "kad"),
    }  # fmt: skip
    direct = audio_distance("real.npy", "generated.npz", recipe="kadtk-vggish")
    assert found.value("kad") == direct.value("kad")
    with Path("s.csv").open() as file:
        first = next(csv.DictReader(file))
    assert first["id"] in {f"take00{row}.wav" for row in range(9)}
    assert float(first["euclidean frechet_distance"]) > 0
    assert all(Path(name).stat().st_size > 2000 for name in ("f.png", "p.html", "r.csv"))
    assert main("fidelity real.npy generated.npz --metrics fad,fad_inf --figure g.svg --quiet".split()) == 0
    assert "all clips" in Path("g.svg").read_text()
    assert "–" not in capsys.readouterr().out  # no column of GICDM, which they do not have
    several = "real.npy generated.npz real.npy --recipe kadtk-vggish --system made,real --intervals none"
    assert main(f"fidelity {several} --quiet --json".split()) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert {(row["suite"], row["system"], row["metric"]) for row in rows} == {
        ("kadtk-vggish", system, metric) for system in ("made", "real") for metric in ("frechet_distance", "kad")
    }
    assert [row["value"] for row in rows if row["system"] == "made" and row["metric"] == "kad"] == [direct.value("kad")]
    assert captured.err.count("8 numbers in a vector") == 2
    for words, said in (
        ("--pool max_time", "--pool is for metrics of neighbourhoods"),
        ("--metrics density", "density is no distance of two distributions"),
        ("--intervals bootstrap", "give jackknife or none"),
        ("--bandwidth wide", "bandwidth must be real, generated or a number over 0"),
    ):
        assert said in failure(capsys, *f"real.npy generated.npz --recipe kadtk-vggish {words}".split())[1]
