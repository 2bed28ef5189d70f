"""`earmark figures` as a user meets it: lists, files, captions, a run with its clips, what is wrong in a sentence."""

from __future__ import annotations

import builtins
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.representations import sounds

from earmark.cli import main
from earmark.errors import InputError
from earmark.report.drawing import draw_figures
from earmark.representations import run
from earmark.scores import Row, Scores

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_list_says_what_there_is_and_why_not_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("figures published:vocsim".split()) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("trends ")
    assert "No row was measured under label noise: add `--label-noise" in out
    assert "earmark run --extractor vae,ae" in out
    assert "--into DIR" in err
    assert main("figures published:vocsim --list --figure pca,maps --json --quiet".split()) == 0
    pca, maps = json.loads(capsys.readouterr().out)
    assert (pca["files"], maps["files"]) == (["pca"], [])
    assert "folder of an `earmark run`" in maps["reason"]


def test_files_captions_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("figures published:vocsim-dtw --figure dtw --into new/here --format png,svg,pdf --quiet".split()) == 0
    assert capsys.readouterr().out.startswith("dtw: What re-ranking by DTW does (published:vocsim-dtw).")
    into = Path("new/here")
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "csv": b"aspect,model"}
    assert sorted(path.name for path in into.iterdir()) == [
        "captions.md",
        *sorted(f"dtw.{suffix}" for suffix in starts),
    ]
    assert all((into / f"dtw.{suffix}").read_bytes().startswith(start) for suffix, start in starts.items())
    lines = list(csv.DictReader((into / "dtw.csv").open()))
    assert [line["metric"] for line in lines] == ["P@1", "P@5", "GSR"]
    assert main("figures published:vocsim --figure composition --into new/here --quiet".split()) == 0
    captions = (into / "captions.md").read_text()
    assert [line.split(".**")[0] for line in captions.splitlines() if line] == ["**dtw", "**composition"]
    assert "**dtw.** What re-ranking" in captions


def test_scores_and_lift_have_their_numbers_too(capsys: pytest.CaptureFixture[str]) -> None:
    chance = {"baseline": 0.2, "lift": 0.3, "low": 0.4, "high": 0.7, "distance": "cosine", "metric": "P@1"}
    rows = [Row(system=name, subset=at, value=0.5, **chance) for name in ("a", "b") for at in ("x", "y")]  # type: ignore[arg-type]
    Scores(tuple(rows)).write(Path("scores.csv"))
    assert main("figures scores.csv --figure scores,lift --into numbers --quiet".split()) == 0
    for name in ("scores-P_1.csv", "lift-P_1.csv"):
        lines = list(csv.DictReader((Path("numbers") / name).open()))
        assert {(line["system"], line["subset"]) for line in lines} == {(row.system, row.subset) for row in rows}
        assert [float(line["value"]) - float(line["baseline"]) for line in lines] == pytest.approx([0.3] * 4)


def test_one_figure_into_one_file_and_the_same_from_python() -> None:
    assert main("figures published:vocsim-dtw --figure dtw --out dtw.svg --quiet".split()) == 0
    (drawing,) = draw_figures("published:vocsim-dtw", figure="dtw", out="again.svg")
    assert Path("dtw.svg").read_bytes() == Path("again.svg").read_bytes()
    assert drawing.rows[0]["subsets"] == 5
    table = Scores(
        tuple(Row(subset=name, system=s, distance="cosine", metric="P@1", value=0.5) for name in "AB" for s in "ab")
    )
    assert [one.name for one in draw_figures(table)] == ["scores-P_1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("published:vocsim --figure trend --into x", 'Did you mean "trends"'),
        ("published:vocsim --figure layers --into x", "`earmark run --layers all`"),
        ("published:vocsim --figure trends --out x.png", "3 figures do not fit into one file"),
        ("published:vocsim --figure pca --out x.gif", "ends in .png, .svg or .pdf"),
        ("published:vocsim --figure pca --out no/x.png", "does not exist"),
        ("published:vocsim --figure pca --out x.png --into y", "choose one"),
        ("published:vocsim --figure pca --into y --format gif", "written as png, svg and pdf"),
        ("published:vocsim --figure trends --into y --top five", "not a list of percentages"),
        ("published:vocsim --figure trends --into y --top 0", "top 0 %"),
        ("published:vocsim --metric P@2", 'has no metric "P@2"'),
        ("published:nothing", "no published set"),
        ("missing.csv", "missing.csv"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", *words.split()]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("earmark: ")
    assert len(err.strip().splitlines()) == 1


def test_facts_of_ones_own_make_trends(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [
        Row(subset=f"s{k}", system=name, distance="cosine", metric="P@1", value=float(rng.random()))
        for k in range(6) for name in "abcd"
    ]  # fmt: skip
    Scores(tuple(rows)).write("scores.csv")
    lines = [f"s{k},{10 * k + 10},{k + 2},{0.1 * k + 0.1},{20 - k}" for k in range(6)]
    Path("facts.csv").write_text("\n".join(["subset,clips,classes,seconds,dri", *lines]) + "\n")
    assert (
        main("figures scores.csv --figure trends --top 100 --facts facts.csv --out t.png --json --quiet".split()) == 0
    )
    (made,) = json.loads(capsys.readouterr().out)
    assert [row["property"] for row in made["rows"]] == [
        "clips", "classes", "clips per class", "mean duration (s)", "dynamic range (dB)",
    ]  # fmt: skip
    clips, *_, dynamic = made["rows"]
    assert clips["rho"] == pytest.approx(-dynamic["rho"])  # one rises where the other falls


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over two subsets of tones with everything that figures are drawn from."""
    root = tmp_path_factory.mktemp("figures")
    for name in ("one", "two"):
        sounds.make_folder(root / "sounds" / name, per_class=10)
    entry = {"name": "towers", "spec": "tests.representations.layered:Towers", "layers": "all"}
    config = sounds.config(
        root, root, extractors=[entry], pooling=["mean_time", "max_time"], correct=["none", "ls"], label_noise=[0.1],
        metrics=["P@1", "GSR", "hub_ratio"], intervals="none", permutations=20,
    )  # fmt: skip
    run({**config, "corpus": [str(root / "sounds" / name) for name in ("one", "two")]})
    return root / "run"


def test_a_run_gives_its_layers_noise_hubs_and_clips(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figures", str(finished), "--json"]) == 0
    files = {offer["figure"]: offer["files"] for offer in json.loads(capsys.readouterr().out)}
    for name in ("label-noise", "layers", "layer-ranks", "pooling", "hubness", "maps", "excerpts", "composition"):
        assert files[name], name
    monkeypatch.setitem(sys.modules, "umap", None)
    (drawing,) = draw_figures(finished, figure="maps", subset="one", system="towers@1 max_time", out="maps.png")
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == ["t-SNE"]
    assert 'UMAP is left out: UMAP maps need `pip install "earmark[clustering]"`' in drawing.caption
    assert {text.get_text() for text in drawing.figure.legends[0].get_texts()} == {"class0", "class1", "class2"}
    (drawing,) = draw_figures(finished, figure="excerpts", subset="two", into="out")
    assert len(drawing.figure.axes) == 6
    assert "class" in drawing.caption
    assert Path("out/excerpts-two.png").stat().st_size > 1000
    names = [one.name for one in draw_figures(finished, figure=["layers", "layer-ranks", "label-noise", "hubness"])]
    assert "label-noise" in names
    assert any(name.startswith("layer-differences-towers") for name in names)


def test_without_matplotlib_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = builtins.__import__

    def no_matplotlib(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return plain(name, *rest)

    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    assert main("figures published:vocsim --figure pca --out x.png".split()) == 1
    assert "earmark[plots]" in capsys.readouterr().err


def test_an_empty_folder_is_no_source() -> None:
    Path("empty").mkdir()
    with pytest.raises(InputError, match="without scores"):
        draw_figures("empty")
