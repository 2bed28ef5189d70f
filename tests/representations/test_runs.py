"""What is computed when something changes, what is found again, and what a run folder says."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.representations import sounds

import earmark
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.subsets import clip_count
from earmark.embedding import hearing
from earmark.errors import InputError, UsageError
from earmark.pipeline import load_points, load_vectors, open_clips, plan, read_record, run
from earmark.representations._evaluate import flip_labels
from earmark.representations.report import report_run
from earmark.runs import packs
from earmark.runs.plan import plan_text
from earmark.scores import load_scores, validate


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return sounds.make_folder(tmp_path / "sounds")


def counts(result: Any, step: str) -> tuple[float, float]:
    found = result.counts.get(step, {})
    return found.get("computed", 0), found.get("cached", 0)


def test_a_second_run_computes_nothing(corpus: Path, tmp_path: Path) -> None:
    first = run(sounds.config(corpus, tmp_path))
    assert counts(first, "embed") == (18, 0)
    assert counts(first, "evaluate") == (1, 0)
    written = (tmp_path / "run" / "scores.csv").read_bytes()
    again = run(sounds.config(corpus, tmp_path))
    assert counts(again, "embed") == (0, 18)
    assert counts(again, "evaluate") == (0, 1)
    assert (tmp_path / "run" / "scores.csv").read_bytes() == written
    assert validate(again.scores.rows) == []


def test_corrections_give_rows_points_and_a_part_of_the_report(corpus: Path, tmp_path: Path) -> None:
    result = run(sounds.config(corpus, tmp_path, correct="none,icdm:k=3,dsl:k=30"))
    rows = {row.correction: row for row in result.scores.select(metric="P@1")}
    assert list(rows) == ["none", "icdm:k=3", "dsl:k=30"]
    assert rows["dsl:k=30"].status == "not_applicable"  # 18 clips
    assert "largest k that fits is 17" in rows["dsl:k=30"].reason
    where = (tmp_path / "run", rows["none"].subset, rows["none"].system, "cosine")
    found = {name: load_points(*where, correction=name)["all", "P@1"].mean() for name in ("none", "icdm:k=3")}
    assert found == {name: rows[name].value for name in found}
    if result.report is not None:  # figures need an extra
        assert 'id="corrected"' in result.report.read_text("utf-8")


@pytest.mark.parametrize(
    ("changes", "embed", "pca", "evaluate"),
    [
        ({"distances": ["cosine", "euclidean"]}, 0, 0, 1),
        ({"k": [1, 3], "metrics": ["P@k"]}, 0, 0, 1),
        ({"seed": 1}, 0, 0, 1),
        ({"pca": ["none", 3]}, 0, 1, 1),
        ({"pooling": ["mean_time", "max_time"]}, 18, 0, 1),
        ({"label_noise": [0.1]}, 0, 0, 1),
        ({"correct": ["none", "icdm:k=3"]}, 0, 0, 1),
        ({"extractors": [{"name": "bands", "spec": sounds.BANDS, "parameters": {"scale": 2.0}}]}, 18, 0, 1),
        ({"extractors": [{"name": "renamed", "short_name": "R", "spec": sounds.BANDS}]}, 0, 0, 0),
        ({"threads": 1, "workers": 1, "memory": "1GB"}, 0, 0, 0),
    ],
)  # fmt: skip
def test_only_what_depends_on_a_change_is_computed(
    corpus: Path, tmp_path: Path, changes: dict[str, Any], embed: int, pca: int, evaluate: int
) -> None:
    run(sounds.config(corpus, tmp_path))
    result = run(sounds.config(corpus, tmp_path, **changes))
    assert counts(result, "embed")[0] == embed
    assert counts(result, "pca")[0] == pca
    assert counts(result, "evaluate")[0] == evaluate
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["steps"]["evaluate"]["computed"] == evaluate


def test_a_changed_file_costs_its_clip(corpus: Path, tmp_path: Path) -> None:
    run(sounds.config(corpus, tmp_path))
    before = sounds.Bands.heard
    soundfile.write(corpus / "class1" / "clip3.wav", sounds.tone(700, 5), sounds.RATE)
    result = run(sounds.config(corpus, tmp_path))
    assert sounds.Bands.heard - before == 1
    assert counts(result, "embed") == (1, 17)
    assert counts(result, "evaluate") == (1, 0)
    fresh = run(sounds.config(corpus, tmp_path / "fresh"))
    assert [row.value for row in fresh.scores] == [row.value for row in result.scores]


def test_a_changed_label_costs_no_vector(corpus: Path, tmp_path: Path) -> None:
    run(sounds.config(corpus, tmp_path))
    (corpus / "class1" / "clip3.wav").rename(corpus / "class2" / "clip3b.wav")
    result = run(sounds.config(corpus, tmp_path))
    assert counts(result, "embed") == (0, 18)
    assert counts(result, "evaluate") == (1, 0)


def test_changed_code_of_a_model_is_noticed(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.runs import identity as keys
    from earmark.runs import strangers as reads

    run(sounds.config(corpus, tmp_path))
    monkeypatch.setattr(
        reads, "code_of_modules", lambda modules, rooms: reads.Code({"mine": "another"}, set(), set(), [])
    )
    assert counts(run(sounds.config(corpus, tmp_path)), "embed") == (18, 0)
    source = tmp_path / "code.py"
    source.write_text('"""Doc."""\n\ndef f(x):\n    """Doc."""\n    return x  # comment\n')
    first = keys.source_digest(source)
    keys.source_digest.cache_clear()
    source.write_text("def f(x):\n\n    return x\n")
    assert keys.source_digest(source) == first
    keys.source_digest.cache_clear()
    source.write_text("def f(x):\n    return x + 1\n")
    assert keys.source_digest(source) != first


def test_a_damaged_pack_is_computed_again(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PACK_ITEMS", 4)
    monkeypatch.setattr(hearing, "WINDOW_BATCHES", 1)  # packs hold whole windows
    first = run(sounds.config(corpus, tmp_path))
    damaged = sorted((tmp_path / "cache" / "vectors").rglob("*.entry"))[0]
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-8] + b"\xff" * 8)
    result = run(sounds.config(corpus, tmp_path, distances=["cosine", "euclidean"]))
    assert counts(result, "embed")[0] in (2, 4)  # the clips of that pack, of which the last has two
    assert [row.value for row in result.scores.select(distance="cosine")] == [row.value for row in first.scores]
    for torn in (tmp_path / "cache").rglob("*.entry"):
        torn.write_bytes(torn.read_bytes()[:100])
    again = run(sounds.config(corpus, tmp_path))
    assert counts(again, "embed")[0] == 18
    assert [row.value for row in again.scores] == [row.value for row in first.scores]


def test_refresh_and_off(corpus: Path, tmp_path: Path) -> None:
    first = run(sounds.config(corpus, tmp_path))
    url = str(tmp_path / "cache")
    refreshed = run(sounds.config(corpus, tmp_path, cache={"url": url, "policy": "refresh"}))
    assert counts(refreshed, "embed") == (18, 0)
    off = run(sounds.config(corpus, tmp_path, cache={"url": str(tmp_path / "other"), "policy": "off"}))
    assert counts(off, "embed") == (18, 0)
    assert not (tmp_path / "other").exists()
    assert [row.value for row in off.scores] == [row.value for row in first.scores]
    with pytest.raises(InputError, match="kept no cache"):
        load_vectors(tmp_path / "run", "sounds", "bands mean_time")


def test_steps_one_by_one(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="add the step embed"):
        run(sounds.config(corpus, tmp_path, steps=["evaluate"]))
    assert counts(run(sounds.config(corpus, tmp_path, steps=["prepare", "embed"])), "embed") == (18, 0)
    assert not (tmp_path / "run" / "scores.csv").exists()
    assert counts(run(sounds.config(corpus, tmp_path, steps=["evaluate"])), "evaluate") == (1, 0)


def test_the_plan(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path, distances=["cosine", "euclidean"])
    lines, url = plan(given)
    assert [(line.step, line.todo, line.total, line.state) for line in lines] == [
        ("embed", 18, 18, "to run"), ("evaluate", 2, 2, "to run"),
    ]  # fmt: skip
    assert all(line.seconds is not None and line.seconds > 0 for line in lines)
    assert not (tmp_path / "run").exists()
    run(sounds.config(corpus, tmp_path))
    soundfile.write(corpus / "class1" / "clip3.wav", sounds.tone(700, 5), sounds.RATE)
    lines, url = plan(given)
    assert [(line.todo, line.total) for line in lines] == [(1, 18), (2, 2)]
    text = plan_text(lines, url)
    assert "1 of 18 clips" in text
    assert "partly cached" in text
    run(given)
    assert "nothing to compute" in plan_text(*plan(given))


def test_the_plan_tells_clips_that_failed_before_from_new_ones(corpus: Path, tmp_path: Path) -> None:
    soundfile.write(corpus / "class1" / "odd.wav", sounds.tone(600, 9)[:399], sounds.RATE)
    models = [{"name": "fussy", "spec": sounds.FUSSY}, {"name": "bands", "spec": sounds.BANDS}]
    given = sounds.config(corpus, tmp_path, extractors=models)
    assert [line.todo for line in plan(given)[0]] == [19, 19, 1, 1]
    run(given)
    lines, url = plan(given)
    assert [(line.todo, line.total, line.state) for line in lines[:2]] == [(0, 19, "cached"), (0, 19, "cached")]
    assert [line.again for line in lines[:2]] == [("class1/odd.wav",), ()]
    text = plan_text(lines, url)
    assert "nothing to compute" in text
    assert "1 clip failed before and will be tried again" in text
    soundfile.write(corpus / "class1" / "new.wav", sounds.tone(600, 10), sounds.RATE)
    lines, url = plan(given)
    assert [(line.todo, line.total, line.state) for line in lines[:2]] == [
        (1, 20, "partly cached"), (1, 20, "partly cached"),
    ]  # fmt: skip


def test_a_partial_run_keeps_what_is_known_of_the_finished_one(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path, label_noise=[0.1], steps=["prepare", "embed", "evaluate", "report"])
    run(given)
    place = tmp_path / "run"
    before = read_record(place)
    assert "A closer look" in (place / "report.html").read_text("utf-8")
    for steps in (["prepare"], ["prepare", "embed"]):
        run({**given, "steps": steps})
        after = read_record(place)
        assert (after["vectors"], after["evaluations"]) == (before["vectors"], before["evaluations"])
        assert after["steps"]["evaluate"] == before["steps"]["evaluate"]
    assert "A closer look" in report_run(place).read_text("utf-8")


def test_a_report_without_a_closer_look_says_so(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path, steps=["prepare", "embed", "evaluate", "report"])
    off = run({**given, "cache": {"policy": "off"}})
    assert off.report is not None
    page = off.report.read_text("utf-8")
    assert "A closer look" not in page
    assert "There is no closer look at sounds. This run kept no cache" in page
    run(given)
    soundfile.write(corpus / "class1" / "new.wav", sounds.tone(600, 10), sounds.RATE)
    run({**given, "steps": ["prepare", "embed"]})  # other clips: the vectors of the finished run are not theirs
    assert read_record(tmp_path / "run")["vectors"] == []
    assert "no longer says where its vectors lie" in report_run(tmp_path / "run").read_text("utf-8")
    run(given)
    shutil.rmtree(tmp_path / "cache")
    page = report_run(tmp_path / "run", metrics=["P@1"], interval=False).read_text("utf-8")
    assert "There is no closer look at sounds. The cache" in page
    table = (tmp_path / "run" / "tables" / "sounds.tex").read_text("utf-8")
    assert "P@1" in table
    assert "GSR" not in table
    assert "interval" not in table
    with pytest.raises(UsageError, match='no metric "P@7"'):
        report_run(tmp_path / "run", metrics=["P@7"])


def test_the_bar_of_prepare_counts_the_subsets_asked_for() -> None:
    clips = [Clip(f"{name}{number}", subset=name) for name, many in (("A", 2), ("B", 3)) for number in range(many)]
    corpus = Corpus(CorpusCard("made"), clips)
    assert clip_count([corpus, corpus], [["B"], []]) == 8
    assert clip_count([Corpus(CorpusCard("none"), [])], [["B"]]) == 0


def test_across_groups_without_groups_is_noted(corpus: Path, tmp_path: Path) -> None:
    assert run(sounds.config(corpus, tmp_path)).notes == ()
    notes = run(sounds.config(corpus, tmp_path, across_groups=True)).notes
    assert notes[-1] == "no clip of sounds has a group: across_groups was not measured"


def test_correlations_of_metrics_are_written(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(
        corpus, tmp_path, pooling=["mean_time", "max_time"], distances=["cosine", "euclidean"],
        metrics=["P@1", "P@5", "GSR", "CS"], steps=["prepare", "embed", "evaluate", "report"],
    )  # fmt: skip
    result = run(given)
    assert result.report is not None
    page = result.report.read_text("utf-8")
    table = (tmp_path / "run" / "tables" / "metric_correlations.csv").read_text().splitlines()
    assert table[0].startswith("metric,")
    assert "GSR" in table[0]
    assert "tables/metric_correlations.md" in page
    assert "Do the metrics agree?" in page
    run({**given, "pooling": ["mean_time"]})
    assert not (tmp_path / "run" / "tables" / "metric_correlations.csv").exists()
    assert "Do the metrics agree?" not in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_the_run_folder(corpus: Path, tmp_path: Path) -> None:
    result = run(sounds.config(corpus, tmp_path, pca=["none", 3], across_groups=True))
    place = tmp_path / "run"
    assert {path.name for path in place.iterdir()} == {
        "clips.csv", "comparisons.csv", "config.yaml", "failures.csv", "run.json", "run.log", "scores.csv",
    }  # fmt: skip
    assert load_scores(place / "scores.csv") == result.scores
    across = [row for row in result.scores if row.protocol == "across_groups"]
    assert {(row.status, row.reason) for row in across} == {("not_applicable", "the clips have no groups")}
    record = json.loads((place / "run.json").read_text())
    assert [system["system"] for system in record["systems"]] == ["bands mean_time", "bands mean_time D3"]
    assert [system["code"] for system in record["systems"]] == ["BMT", "BMT D3"]
    assert record["subsets"][0]["clips"] == 18
    assert record["subsets"][0]["seconds"]["total"] == pytest.approx(18 * 0.05)
    raw = load_vectors(place, "sounds", "bands mean_time")
    reduced = load_vectors(place, "sounds", "bands mean_time D3")
    assert (raw.values.shape, reduced.values.shape) == ((18, 8), (18, 3))
    points = load_points(place, "sounds", "bands mean_time", "cosine")
    nearest = points["all", "nearest_row"].astype(int)
    hits = np.mean([raw.labels[row] == raw.labels[near] for row, near in enumerate(nearest)])
    assert hits == pytest.approx(result.scores.value("P@1", system="bands mean_time", protocol="all"))
    clips = open_clips(place)["sounds", "sounds"]
    assert list(clips) == raw.ids
    again = run(place / "config.yaml")
    assert counts(again, "embed")[0] == 0


def test_vectors_are_those_of_embed(corpus: Path, tmp_path: Path) -> None:
    """Padding and concatenation agree with the room that embeds without a cache."""
    from earmark.embedding.embed import embed_audio

    soundfile.write(corpus / "class1" / "long.wav", sounds.tone(600, 9, seconds=0.09), sounds.RATE)
    for pool in ("flatten", "mean_time+mean_feature", "first_time+first_feature"):
        run(sounds.config(corpus, tmp_path, pooling=[pool]))
        ours = load_vectors(tmp_path / "run", "sounds", f"bands {pool}")
        theirs = embed_audio(str(corpus), sounds.Bands(), pool)
        assert ours.ids == list(theirs.ids)
        assert np.array_equal(ours.values, theirs.vectors)


def test_scores_are_those_of_evaluate(corpus: Path, tmp_path: Path) -> None:
    result = run(sounds.config(corpus, tmp_path))
    found = load_vectors(tmp_path / "run", "sounds", "bands mean_time")
    direct = earmark.evaluate(found.values, found.labels, metrics=["P@1", "P@5", "GSR"])
    assert [row.value for row in direct.rows] == [row.value for row in result.scores]
    assert [row.inputs for row in direct.rows] == [row.inputs for row in result.scores]


def test_clips_in_memory_subsets_groups_and_noise(tmp_path: Path) -> None:
    clips = [
        Clip(
            id=f"{subset}{kind}{number}", label=str(kind), subset=subset, group=str(number % 3),
            samples=sounds.tone(250.0 * (kind + 1), 100 * kind + number), rate=sounds.RATE,
        )
        for subset in ("A", "B") for kind in range(3) for number in range(6)
    ]  # fmt: skip
    corpus = Corpus(CorpusCard("made"), clips)
    given = sounds.config(Path("made"), tmp_path, label_noise=[0.25], across_groups=True, bootstrap=10)
    result = run(given, corpora=[corpus])
    assert {row.subset for row in result.scores} == {"A", "A~noise0.25", "B", "B~noise0.25"}
    assert {row.protocol for row in result.scores} == {"all", "across_groups"}
    noisy = result.scores.row("P@1", subset="A~noise0.25", protocol="all")
    assert "label noise 0.25" in noisy.reason
    assert noisy.value is not None
    assert noisy.value < result.scores.value("P@1", subset="A", protocol="all")
    only = run({**given, "corpus": {"spec": "made", "subsets": ["B"]}}, corpora=[corpus])
    assert {row.subset for row in only.scores} == {"B", "B~noise0.25"}
    with pytest.raises(UsageError, match='has no subset "C"'):
        run({**given, "corpus": {"spec": "made", "subsets": ["C"]}}, corpora=[corpus])


def test_flipped_labels() -> None:
    labels = [*"aaaabbbbcccc", None]
    flipped = flip_labels(labels, 0.25, 7)
    assert sum(a != b for a, b in zip(labels, flipped, strict=True)) == 3
    assert flipped[-1] is None
    assert flip_labels(labels, 0.25, 7) == flipped
    more = flip_labels(labels, 0.5, 7)
    assert all(more[row] == flipped[row] for row in range(13) if flipped[row] != labels[row])
    assert flip_labels(["a", "a"], 0.5, 0) == ["a", "a"]


def test_the_picture_of_what_a_model_learnt(corpus: Path, tmp_path: Path) -> None:
    models = [{"name": "learner", "spec": sounds.LEARNER}, {"name": "bands", "spec": sounds.BANDS}]
    given = sounds.config(corpus, tmp_path, extractors=models, steps=["prepare", "embed", "evaluate", "report"])
    fits = sounds.Learner.fits
    for into in ("run", "again"):
        result = run({**given, "into": str(tmp_path / into)})
        assert [path.name for path in (tmp_path / into / "figures").iterdir()] == ["sounds-learner.png"]
        assert (tmp_path / into / "figures" / "sounds-learner.png").read_bytes() == b"a picture"
        assert result.report is not None
        assert 'href="figures/sounds-learner.png"' in result.report.read_text("utf-8")
    assert sounds.Learner.fits - fits == 1


def test_a_picture_that_cannot_be_drawn_costs_nothing(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sounds.Learner, "reconstruction_figure")
    monkeypatch.setattr(sounds.Learner, "reconstruction_figure", lambda *_: 1 / 0, raising=False)
    result = run(sounds.config(corpus, tmp_path, extractors=[{"name": "learner", "spec": sounds.LEARNER}]))
    assert not result.failures
    assert not (tmp_path / "run" / "figures").exists()
    assert "no picture of what learner learnt" in (tmp_path / "run" / "run.log").read_text()


def test_a_model_that_learns_is_fitted_once_per_subset(corpus: Path, tmp_path: Path) -> None:
    given = sounds.config(corpus, tmp_path, extractors=[{"name": "learner", "spec": sounds.LEARNER}])
    before = sounds.Learner.fits
    run(given)
    run(given)
    assert sounds.Learner.fits - before == 1
    soundfile.write(corpus / "class1" / "new.wav", sounds.tone(700, 5), sounds.RATE)
    assert counts(run(given), "embed") == (19, 0)


def test_failures_are_recorded_and_the_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    soundfile.write(corpus / "class1" / "odd.wav", sounds.tone(600, 9)[:399], sounds.RATE)
    (corpus / "class1" / "empty.wav").write_bytes(b"")
    given = sounds.config(corpus, tmp_path, extractors=[{"name": "fussy", "spec": sounds.FUSSY}])
    for computed in (18, 0):
        result = run(given)
        assert counts(result, "embed")[0] == computed
        reasons = {failure.id: (failure.step, failure.extractor, failure.reason) for failure in result.failures}
        assert reasons["class1/odd.wav"] == ("embed", "fussy", "ValueError: an odd number of samples")
        assert reasons["class1/empty.wav"][:2] == ("prepare", "")
        row = result.scores.row("P@1")
        assert row.n == 18
        assert "2 clips failed and are left out" in row.reason
        assert "18 clips truncated to the 0.04 s the model hears" in row.reason
    with (tmp_path / "run" / "failures.csv").open(newline="") as stream:
        found = {line["id"]: line["path"] for line in csv.DictReader(stream)}
    assert found == {id: str(corpus / id) for id in ("class1/odd.wav", "class1/empty.wav")}


def test_paths_of_failures_are_absolute(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "class1" / "empty.wav").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    (failure,) = run(sounds.config(Path("sounds"), tmp_path)).failures
    assert failure.path == str(corpus / "class1" / "empty.wav")
    row = run(sounds.config(Path("sounds"), tmp_path)).scores.row("P@1")
    assert "1 clip failed and is left out" in row.reason


def test_a_model_that_always_fails_gives_failed_rows(tmp_path: Path) -> None:
    root = tmp_path / "odd"
    for kind in "ab":
        (root / kind).mkdir(parents=True)
        for number in range(3):
            soundfile.write(
                root / kind / f"{number}.wav", sounds.tone(300, number + 9 * (kind == "b"))[:399], sounds.RATE
            )
    models = [{"name": "fussy", "spec": sounds.FUSSY}, {"name": "bands", "spec": sounds.BANDS}]
    result = run(sounds.config(root, tmp_path, extractors=models))
    assert {row.status for row in result.scores.select(system="fussy mean_time")} == {"failed"}
    assert {row.status for row in result.scores.select(system="bands mean_time")} == {"ok"}
    assert validate(result.scores.rows) == []


def test_one_class_is_not_applicable(tmp_path: Path) -> None:
    result = run(sounds.config(sounds.make_folder(tmp_path / "one", classes=1), tmp_path))
    assert {row.status for row in result.scores} == {"not_applicable"}
    assert "same label" in result.scores.rows[0].reason


def test_import_paths_and_names_that_are_wrong(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='Did you mean "logmel"'):
        run(sounds.config(corpus, tmp_path, extractors=["logmle"]))
    with pytest.raises(InputError, match="cannot be found"):
        run(sounds.config(corpus, tmp_path, extractors=["tests.representations.sounds:Nothing"]))
    with pytest.raises(InputError, match="does not exist"):
        run(sounds.config(tmp_path / "nowhere", tmp_path))
