"""`--sample` in a run: drawn before anything is embedded, named in every row, the same for whoever does the work."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import soundfile
from tests.representations import sounds

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import UsageError
from earmark.pipeline import make_config, plan, run
from earmark.representations import _steps as steps
from earmark.representations import load_points, load_vectors
from earmark.representations._folder import open_clips
from earmark.runs.executors import Job
from earmark.runs.store import Cache
from earmark.scores import load_scores

SIZES = {"alpha": 7, "beta": 7, "gamma": 6, "delta": 5, "tiny": 2}


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A manifest of clips of many lengths: classes of several sizes, groups of some clips, no label of others, a copy
    inside a class and one under two labels, a file that is no sound and one that is not there."""
    folder = tmp_path / "field"
    folder.mkdir()
    lines = []
    for kind, (label, size) in enumerate(SIZES.items()):
        for number in range(size):
            name = f"{label}{number}.wav"
            sound = sounds.tone(250.0 * (kind + 1), 100 * kind + number, seconds=0.03 + 0.01 * ((kind + number) % 5))
            soundfile.write(folder / name, sound, sounds.RATE)
            lines.append([name, label, "" if number == 6 else f"bird{number % 3}"])
    for name, source, label in (("copy.wav", "alpha0.wav", "alpha"), ("x.wav", "delta0.wav", "beta")):
        (folder / name).write_bytes((folder / source).read_bytes())
        lines.append([name, label, "bird1"])
    soundfile.write(folder / "nameless.wav", sounds.tone(900, 5), sounds.RATE)
    (folder / "broken.wav").write_bytes(b"")
    lines += [["nameless.wav", "", "bird0"], ["broken.wav", "gamma", "bird0"], ["gone.wav", "gamma", "bird0"]]
    with (folder / "field.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["path", "label", "group"], *lines])
    return folder / "field.csv"


def lines_of(place: Path) -> list[dict[str, str]]:
    with (place / "run" / "clips.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def given(corpus: Path, place: Path, **changes: Any) -> dict[str, Any]:
    return sounds.config(corpus, place, **{"sample": "3x5", **changes})


def test_what_is_drawn_is_all_that_is_heard_and_scored(messy: Path, tmp_path: Path) -> None:
    result = run(given(messy, tmp_path))
    assert result.counts["embed"]["computed"] == 15
    # 7, 7, 6, 5 and 2 clips, less a sound of delta that is also one of beta, so that delta has too few; those that
    # cannot be read do not count.
    row = result.scores.row("P@1")
    text = "15 of 26 clips, 5 of each of the 3 most frequent classes (sample 3x5, seed 0)"
    assert (row.subset, row.ablation, row.n) == ("field~3x5", "sample3x5", 15)
    assert text in row.reason
    assert f"field~3x5: {text}" in result.notes
    used = [line for line in lines_of(tmp_path) if line["outcome"] == "used"]
    assert Counter(line["label"] for line in used) == {"alpha": 5, "beta": 5, "gamma": 5}
    left_out = {line["id"] for line in lines_of(tmp_path) if line["outcome"].startswith("left out")}
    assert left_out == {"copy.wav", "delta0.wav", "x.wav"}
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (subset,) = record["subsets"]
    assert (subset["subset"], subset["clips"], subset["classes"]) == ("field~3x5", 15, 3)
    assert subset["sample"] == {
        "sample": "3x5", "seed": 0, "clips": 15, "of_clips": 26, "classes": 3, "of_classes": 5,
        "classes_with_enough": 3, "text": text,
    }  # fmt: skip
    vectors = load_vectors(tmp_path / "run", "field~3x5", "bands mean_time")
    assert vectors.ids == [line["id"] for line in used]
    assert len(load_points(tmp_path / "run", "field~3x5", "bands mean_time", "cosine")["all", "P@1"]) == 15
    assert set(open_clips(tmp_path / "run")["field", "field~3x5"]) == {line["id"] for line in lines_of(tmp_path)}
    again = run(given(messy, tmp_path))
    assert again.counts["embed"]["computed"] == again.counts["evaluate"]["computed"] == 0


def test_another_seed_draws_others_and_the_rest_of_the_corpus_is_not_heard(messy: Path, tmp_path: Path) -> None:
    run(given(messy, tmp_path))
    first = {line["id"] for line in lines_of(tmp_path)}
    planned, _ = plan({**given(messy, tmp_path), "seed": 4})
    run({**given(messy, tmp_path), "seed": 4})
    second = {line["id"] for line in lines_of(tmp_path)}
    assert first != second
    assert {row.subset for row in load_scores(tmp_path / "run" / "scores.csv")} == {"field~3x5:seed4"}
    assert set(open_clips(tmp_path / "run")["field", "field~3x5:seed4"]) == second
    kept = tmp_path / "run" / "clips.csv"
    kept.write_text(kept.read_text().replace(":seed4", ""))  # as folders were before names had the seed
    assert set(open_clips(tmp_path / "run")["field", "field~3x5"]) == second
    assert next(step.todo for step in planned if step.step == "embed") == len(second - first)


def test_clips_without_a_group_are_not_drawn_where_groups_are_needed(messy: Path, tmp_path: Path) -> None:
    result = run(given(messy, tmp_path, across_groups=True))
    assert {line["group"] for line in lines_of(tmp_path) if line["outcome"] == "used"} == {"bird0", "bird1", "bird2"}
    assert result.scores.row("P@1", protocol="across_groups").n == 15


def test_a_worker_finds_the_clips_of_a_sample(messy: Path, tmp_path: Path) -> None:
    run(given(messy, tmp_path))
    config = make_config(given(messy, tmp_path))
    cache = Cache(str(tmp_path / "cache"))
    drawn = [line for line in lines_of(tmp_path) if line["outcome"] == "used"]
    ids, digests = [line["id"] for line in drawn], [line["digest"] for line in drawn]
    clips = tuple(Clip(id=id) for id in ids)
    known = PreparedSubset("field", "field~3x5", CorpusCard("field"), clips, tuple(digests), (0.05,) * len(ids), ())
    job = Job(cache, config.model_dump(mode="json"))
    found = steps._subset(job, steps.keep_subset(cache, known))
    assert [clip.id for clip in found.clips] == ids
    assert {clip.label for clip in found.clips} == {"alpha", "beta", "gamma"}


def test_copies_that_are_kept_are_told_as_far_as_they_were_drawn(messy: Path, tmp_path: Path) -> None:
    result = run(given(messy, tmp_path, copies="keep", sample="4xall"))
    row = result.scores.row("P@1")
    assert "4 clips kept that are copies of one another" in row.reason
    assert "all of the 4 most frequent classes (sample 4xall)" in row.reason
    run(given(messy, tmp_path, copies="keep"))
    drawn = {line["id"] for line in lines_of(tmp_path)}
    record = json.loads((tmp_path / "run" / "run.json").read_text())["subsets"][0]
    pairs = [{"alpha0.wav", "copy.wav"}, {"delta0.wav", "x.wav"}]
    assert record["copies"]["sounds"] == sum(pair <= drawn for pair in pairs)


def test_a_sample_that_nothing_fits(messy: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"No class of field~3x40 has the 40 clips .*the largest has 7"):
        run(given(messy, tmp_path) | {"sample": "3x40"})
    small = [
        Clip(id=f"s{n}", label="few", subset="small", samples=sounds.tone(300, n), rate=sounds.RATE) for n in range(3)
    ]
    large = [
        Clip(
            id=f"l{n}", label="ab"[n % 2], subset="large", samples=sounds.tone(300 + 300 * (n % 2), n), rate=sounds.RATE
        )
        for n in range(12)
    ]
    corpus = Corpus(CorpusCard("two"), [*small, *large])
    result = run(given(messy, tmp_path) | {"corpus": "two", "sample": "2x4"}, corpora=[corpus])
    assert result.scores.row("P@1", subset="large~2x4").n == 8
    failed = result.scores.row("P@1", subset="small~2x4")
    assert failed.status == "failed"
    assert "no class has 4 clips, the largest has 3 (sample 2x4)" in failed.reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sample": "many"}, "write 50x5"),
        ({"sample": "9x2", "min_class_size": 3}, "fewer than min_class_size 3"),
        ({"sample": 50}, "write 50x5"),
    ],
)
def test_refusals_before_any_work(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_config({"corpus": "x", "extractors": ["logmel"], **changes})


def test_an_exported_sample_keeps_its_name() -> None:
    clips = [
        Clip(id=f"{label}{n}", label=label, subset=subset) for subset in ("A", "B") for label in "xyz" for n in range(4)
    ]
    corpus = Corpus(CorpusCard("mine"), clips, subset_cards={"A": CorpusCard("mine:A")})
    drawn = corpus.sampled("2x3", seed=1)
    assert Counter((clip.subset, clip.label) for clip in drawn) == Counter(
        {(subset, label): 3 for subset in ("A~2x3:seed1", "B~2x3:seed1") for label in "xy"}
    )
    assert drawn.card_of("A~2x3:seed1").name == "mine:A"
    (note,) = drawn.notes
    assert note.startswith("A~2x3:seed1 and B~2x3:seed1 each: 6 of 12 clips, 3 of each of the first 2 in the alphabet ")
    assert note.endswith(" of 3 classes of one size (sample 2x3, seed 1)")
    assert set(drawn.sampled("2x2").subsets()) == {"A~2x3:seed1~2x2", "B~2x3:seed1~2x2"}
    plain = Corpus(CorpusCard("plain"), [Clip(id=str(n), label="ab"[n % 2]) for n in range(6)])
    assert set(plain.sampled("2x2").subsets()) == {"plain~2x2"}
