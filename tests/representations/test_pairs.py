"""From a run to its answer: all pairs, any system under the glass, groups and classes, metrics to read first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.verbs import runner
from tests.representations import sounds

from earmark.cli import compare as compare_verb
from earmark.cli import run as run_verb
from earmark.cli import tables as tables_verb
from earmark.errors import InputError, UsageError
from earmark.report.ranking import rank
from earmark.representations import compare_runs, run
from earmark.representations.comparisons import read_comparisons
from earmark.representations.report import report_run
from earmark.scores import load_scores

pytest.importorskip("matplotlib")
POOLS = ["mean_time", "max_time", "first_time"]


def make(corpus: object, into: Path, **more: object) -> Path:
    base = {"extractors": [sounds.BANDS], "pooling": POOLS, "distances": ["cosine", "euclidean"], "permutations": 0}
    run({"corpus": str(corpus), **base, "into": str(into), "cache": str(into.parent / "cache"), **more})
    return into


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    sounds.make_folder(folder / "sounds")
    return make(folder / "sounds", folder / "run", min_class_size=3, across_groups=False)


def test_pairs_of_the_report_are_those_of_compare_to_the_digit(place: Path) -> None:
    compared = read_comparisons(place)
    ranking = rank(load_scores(place / "scores.csv"), compared)
    (rows,) = ranking.index.values("P@1").values()
    told = compare_runs([place]).select(metric="P@1:difference")
    assert len(rows) == 6
    assert len(told) == 15
    kept = {row.key: row for row in compared}
    for row in told:
        mine = kept[row.key]
        assert (mine.value, mine.low, mine.high, mine.p_value) == (row.value, row.low, row.high, row.p_value)
        assert (mine.comparisons, mine.units, mine.n) == (15, row.units, row.n)


def test_a_pair_is_turned_with_its_interval(place: Path) -> None:
    ranking = rank(load_scores(place / "scores.csv"), read_comparisons(place))
    (rows,) = ranking.index.values("P@1").values()
    first, second, *_ = rows.values()
    one, other = ranking.pair(first, second), ranking.pair(second, first)
    assert one is not None
    assert other is not None
    assert one.value == pytest.approx((first.value or 0) - (second.value or 0))
    assert (other.value, other.low, other.high) == (-(one.value or 0), -(one.high or 0), -(one.low or 0))


def test_the_page_has_pairs_groups_and_other_systems(place: Path) -> None:
    page = (place / "report.html").read_text()
    assert '<section id="pairs">' in page
    assert "of 15 pairs differ" in page
    assert "Read P@1 first" in page
    assert page.index("<summary>Scores on") < page.index("<summary>All 12 metrics on")
    assert '<section id="groups">' in page
    others = page[page.index("Other systems") :]
    assert others.count("<details>") >= 2
    assert "Most frequent confusions" in others


def test_any_system_takes_the_place_of_the_best(place: Path) -> None:
    scores = load_scores(place / "scores.csv")
    worst = min(scores.select(metric="P@1"), key=lambda row: row.value or 0).system
    page = report_run(place, system=worst).read_text()
    closer = page[page.index('<section id="closer">') :]
    assert f": {worst} · " in closer[: closer.index("</h3>")]
    report_run(place)
    with pytest.raises(UsageError, match="has no system"):
        report_run(place, system="mist")


def test_tables_of_a_run_show_three_metrics_unless_others_are_asked_for(place: Path) -> None:
    heads = (place / "tables" / "sounds.tex").read_text()
    assert "GSR" in heads
    assert "hub" not in heads
    report_run(place, metrics=["all"])
    assert "hub" in (place / "tables" / "sounds.tex").read_text()
    report_run(place, metrics=["CSR"])
    assert "GSR" not in (place / "tables" / "sounds.tex").read_text()
    report_run(place)


def test_commands_print_three_metrics_and_name_the_others(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = runner("run", run_verb, capsys)
    words = ["--corpus", place.parent / "sounds", "--extractor", sounds.BANDS, "--cache-dir", place.parent / "cache"]
    words += ["--steps", "prepare,embed,evaluate"]
    code, shown, err = command(*words, "--into", tmp_path / "a")
    assert code == 0
    assert all(name in shown for name in ("P@1 (%)", "GSR (%)", "P@5 (%)"))
    assert "CSR" not in shown
    assert "also measured: CSR," in err
    assert "--metrics all prints them" in err
    assert "CSR" in (tmp_path / "a" / "scores.csv").read_text()
    shown = command(*words, "--into", tmp_path / "b", "--metrics", "CSR,P@1")[1]
    assert "CSR (%)" in shown
    code, shown, err = runner("compare", compare_verb, capsys)(place)
    assert "of 15 pairs differ" in shown
    assert "corrected for 15 pairs" in shown
    assert "also measured: CSR" in err
    shown = runner("compare", compare_verb, capsys)(place, "--metrics", "all", "--distance", "cosine", "--quiet")[1]
    assert "silhouette" in shown


def test_tables_of_groups_and_classes(place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = runner("tables", tables_verb, capsys)
    code, shown, _ = command(place, "--kind", "classes", "--quiet")
    assert code == 0
    assert "elsewhere (%)" in shown
    code, shown, err = command(place, "--kind", "groups", "--quiet")
    assert code == 1
    assert "The clips have no groups" in err
    code, shown, _ = command(place, "--kind", "classes", "--systems", "all", "--json", "--quiet")
    assert len(json.loads(shown)["tables"]) == 6
    code, _, err = command(place / "scores.csv", "--kind", "groups", "--quiet")
    assert code == 2
    assert "give a folder of `earmark run`" in err


def test_runs_with_other_settings_are_not_mixed_up(place: Path) -> None:
    other = make(
        place.parent / "sounds", place.parent / "other", min_class_size=4, steps=["prepare", "embed", "evaluate"]
    )
    with pytest.raises(UsageError, match=r"min_class_size 3 and .*other with 4: choose one with --min-class-size"):
        compare_runs([place, other])
    told = compare_runs([place, other], min_class_size=4, metrics="P@1", distance="cosine")
    assert len(told) == 15
    assert "run/" in told.rows[0].system
    same = [row for row in told if row.system.replace("run/", "").replace("other/", "").split(" - ")[0] ==
            row.system.replace("run/", "").replace("other/", "").split(" - ")[1]]  # fmt: skip
    assert len(same) == 3
    assert all(row.value == 0 and row.p_value == 1 for row in same)


def test_runs_that_share_some_clips_are_compared_on_these(place: Path, tmp_path: Path) -> None:
    sounds.make_folder(tmp_path / "sounds")
    files = sorted((tmp_path / "sounds").rglob("*.wav"))
    for file in files[:2]:
        file.unlink()
    fewer = make(
        tmp_path / "sounds",
        tmp_path / "fewer",
        min_class_size=3,
        pooling=["mean_time"],
        steps=["prepare", "embed", "evaluate"],
    )
    told = compare_runs([place, fewer], metrics="P@1", distance="cosine")
    assert any(f"compared on the {len(files) - 2} clips, of {len(files)}" in note for note in told.notes)
    assert told.rows[0].n == len(files) - 2
    (tmp_path / "sounds").rename(tmp_path / "renamed")
    renamed = make(
        tmp_path / "renamed", tmp_path / "again", min_class_size=3, pooling=["mean_time"],
        steps=["prepare", "embed", "evaluate"],
    )  # fmt: skip
    again = compare_runs([place, renamed], metrics="P@1", distance="cosine")
    assert [row.value for row in again] == [row.value for row in told]
    assert "sounds was compared with renamed: the runs share clips under these names" in again.notes


def test_clips_with_other_labels_or_groups_are_said_to_differ_in_them(place: Path, tmp_path: Path) -> None:
    sounds.make_folder(tmp_path / "sounds")
    lines = [f"sounds/{file.relative_to(tmp_path / 'sounds').as_posix()}" for file in
             sorted((tmp_path / "sounds").rglob("*.wav"))]  # fmt: skip
    steps = ["prepare", "embed", "evaluate"]
    made = []
    for name, group in (("one", "tape"), ("two", "disc")):
        (tmp_path / name).mkdir()
        rows = "".join(
            f"../{line},{line.split('/')[1]},{group}{k % 3},{line}\n" for k, line in enumerate(lines)
        )  # fmt: skip
        (tmp_path / name / "clips.csv").write_text("path,label,group,id\n" + rows)
        made.append(make(str(tmp_path / name / "clips.csv"), tmp_path / f"run-{name}", min_class_size=3, steps=steps))
    with pytest.raises(InputError, match=rf"{len(lines)} ids are the same, and differ in group; run them"):
        compare_runs(made, metrics="P@1", distance="cosine")


def test_runs_of_different_sounds_have_nothing_in_common(place: Path, tmp_path: Path) -> None:
    corpus = "synth:tiny"
    other = make(
        corpus, tmp_path / "synth", min_class_size=3, subset=["SYN-HW"], steps=["prepare", "embed", "evaluate"]
    )
    with pytest.raises(UsageError, match="no system 'mist'"):
        compare_runs([place, other], systems=["mist"])
    told = compare_runs([place, other], metrics="P@1", distance="cosine")
    assert {row.subset for row in told} == {"sounds", "SYN-HW"}
    assert all(not (row.system.count("run/") and row.system.count("synth/")) for row in told)
    with pytest.raises(UsageError, match="given twice"):
        compare_runs([place, place])
    with pytest.raises(InputError, match="No run has a subset 'sound'"):
        compare_runs([place], subset="sound")


def test_a_reference_is_compared_with_every_other_system_measured_likewise(place: Path) -> None:
    name = load_scores(place / "scores.csv").rows[0].system
    told = compare_runs([place], reference=name, metrics="P@1")
    assert len(told) == 4
    assert all(row.system.endswith(f" - {name}") and row.comparisons == 4 for row in told)
    assert {row.distance for row in told} == {"cosine", "euclidean"}
