"""Models that learn from one subset, from several together, or from others than the one they hear."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import soundfile
from tests.representations import sounds

from earmark.corpora.subsets import open_corpora
from earmark.errors import UsageError
from earmark.extractors.model_cards import CARDS
from earmark.representations import _steps as steps
from earmark.representations import load_vectors, report, run
from earmark.representations._record import Work
from earmark.representations._systems import describe_model
from earmark.representations.config import RunConfig
from earmark.representations.runner import prepare_work
from earmark.representations.shards import run_shard
from earmark.runs.executors import Job
from earmark.runs.store import open_cache

SIZES = {"A": 8, "B": 10, "C": 6}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "clips.csv"
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["path", "label", "subset"])
        for place, (subset, count) in enumerate(SIZES.items()):
            for number in range(count):
                name = f"{subset}{number}.wav"
                sound = sounds.tone(300.0 * (1 + number % 2), 100 * place + number)
                soundfile.write(tmp_path / name, sound, sounds.RATE)
                table.writerow([name, f"kind{number % 2}", subset])
    return path


def config(manifest: Path, place: Path, **parameters: Any) -> dict[str, Any]:
    model = {"name": "pupil", "spec": sounds.PUPIL, "parameters": parameters}
    return sounds.config(manifest, place, extractors=[model])


def loudness(folder: Path, system: str, subset: str) -> float:
    return float(load_vectors(folder / "run", subset, system).values.mean())


TAUGHT = {
    "subset": ("pupil mean_time", {"A": 9, "B": 11, "C": 7}),
    "all": ("pupil on all mean_time", {"A": 25, "B": 25, "C": 25}),
    "A+C": ("pupil on A+C mean_time", {"A": 15, "B": 15, "C": 15}),
    "B": ("pupil on B mean_time", {"A": 11, "B": 11, "C": 11}),
}
"""The name of a row, and the factor on the vectors of each subset: one more than the clips it learnt from."""


def test_what_it_learns_from(manifest: Path, tmp_path: Path) -> None:
    run(sounds.config(manifest, tmp_path))
    plain = {subset: loudness(tmp_path, "bands mean_time", subset) for subset in SIZES}
    for trained_on, (name, expected) in TAUGHT.items():
        given = config(manifest, tmp_path, trained_on=[trained_on] if trained_on == "B" else trained_on)
        assert {row.system for row in run(given).scores} == {name}
        louder = {subset: loudness(tmp_path, name, subset) / plain[subset] for subset in SIZES}
        assert louder == pytest.approx(expected)
        record = json.loads((tmp_path / "run" / "run.json").read_text())
        assert len({vectors["extractor_key"] for vectors in record["vectors"]}) == (3 if trained_on == "subset" else 1)
        (system,) = record["systems"]
        taught = {"all": ["A", "B", "C"], "A+C": ["A", "C"], "B": ["B"]}.get(trained_on)
        assert system["trained_on"] == ("subset" if taught is None else [f"clips/{name}" for name in taught])
        assert run(given).counts["embed"]["computed"] == 0


def test_a_name_that_says_it_already_is_kept(manifest: Path, tmp_path: Path) -> None:
    given = config(manifest, tmp_path) | {"extractors": [f"{sounds.PUPIL}?trained_on=all"]}
    assert {row.system for row in run(given).scores} == {f"{sounds.PUPIL}?trained_on=all mean_time"}


def test_another_clip_anywhere_is_another_training(manifest: Path, tmp_path: Path) -> None:
    computed = []
    for trained_on in ("subset", "A+B", "all"):
        given = config(manifest, tmp_path / trained_on, trained_on=trained_on)
        soundfile.write(tmp_path / "C0.wav", sounds.tone(300, 200), sounds.RATE)
        run(given)
        soundfile.write(tmp_path / "C0.wav", sounds.tone(777, 7), sounds.RATE)
        computed.append(run(given).counts["embed"]["computed"])
    assert computed == [6, 1, 24]


def test_an_unknown_subset_is_named(manifest: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="pupil on D is to learn from 'D', which is no subset of this run; it has A, B, C"
    ):
        run(config(manifest, tmp_path, trained_on="D"))


def test_shards_and_fresh_processes_know_the_school(manifest: Path, tmp_path: Path) -> None:
    given = config(manifest, tmp_path / "shards", trained_on="A+C")
    for number in (1, 2):
        run_shard(given, f"{number}/2")
    run(given, merge=True)
    run(config(manifest, tmp_path / "local", trained_on="A+C"))
    one, two = (tmp_path / name / "run" / "scores.csv" for name in ("shards", "local"))
    assert sounds.without_seconds(one) == sounds.without_seconds(two)

    values = RunConfig.make(config(manifest, tmp_path / "fresh", trained_on="A+C"))
    with open_cache(values.cache.url, "on") as cache:
        work = Work(config=values, cache=cache, corpora=list(open_corpora(values.corpus)))
        prepare_work(work)
        keys = [steps.keep_subset(cache, subset) for subset in work.subsets]
        model = work.systems[0].model
        job = Job(cache, values.portable().model_dump(mode="json"))
        school = [keys[0], keys[2]]
        done = steps.embed_windows(
            job, model.name, model.identity, keys[1], ["mean_time"], [[0, 1, 2]], (True, False, 0, 0), school
        )
        assert done.counts["computed"] == 3
        assert describe_model(values.extractors[0]).school == ()


def test_a_subset_that_it_did_not_learn_from_is_new_to_it() -> None:
    about = {"suite": "s", "domain": "birds", "status": "public"}
    record = {
        "systems": [{"extractor": "ae on B", "card": asdict(CARDS["ae"]), "trained_on": ["s/B"]}],
        "subsets": [{**about, "subset": name} for name in "AB"],
    }
    new, known = report._overlaps(record)
    assert (new.verdict, new.why) == ("no evidence", "it learnt from s/B in this run, and from nothing before")
    assert known.verdict == "confirmed"
