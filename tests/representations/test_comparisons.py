"""Systems are compared on the clips they share, and one that lost most of its clips is not ranked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from tests.representations import sounds

import earmark
from earmark import cli
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.extractors.contract import ExtractorCard, Frames
from earmark.report.answer import findings
from earmark.report.ranking import rank
from earmark.representations import comparisons, load_vectors, run
from earmark.representations._evaluate import SCORES_KIND, without_each
from earmark.representations.comparisons import clip_counts, differences, read_comparisons, shared_clips
from earmark.runs.folder import read_record
from earmark.runs.store import Cache, Entry
from earmark.scores import Row, Scores, validate


class Picky(sounds.Bands):
    """Refuses clips longer than a limit; of the others it gives what `Bands` gives."""

    card = ExtractorCard(name="picky", rate=sounds.RATE, dimension=8, frame_rate=125.0)

    def __init__(self, limit: int = 440) -> None:
        super().__init__()
        self.limit = limit

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        if any(len(waveform) > self.limit for waveform in waveforms):
            raise ValueError("a clip that is too long")
        return super().extract(waveforms)


PICKY = "tests.representations.test_comparisons:Picky"
LENGTHS = (400, 420, 440, 460, 480, 500)  # samples of a clip, by its number


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """18 clips of six lengths, three classes that are hard to tell apart."""
    root = tmp_path / "sounds"
    for kind in range(3):
        (root / f"class{kind}").mkdir(parents=True)
        for number, length in enumerate(LENGTHS):
            rng = np.random.default_rng([kind, number])
            sound = 0.1 * np.sin((0.3 + 0.02 * kind) * np.arange(length)) + 0.1 * rng.standard_normal(length)
            soundfile.write(root / f"class{kind}" / f"clip{number}.wav", sound, sounds.RATE)
    return root


def given(corpus: Path, place: Path, limit: int, **changes: Any) -> dict[str, Any]:
    models = [{"name": "bands", "spec": sounds.BANDS}, {"name": "picky", "spec": PICKY, "parameters": {"limit": limit}}]
    return sounds.config(corpus, place, extractors=models, **changes)


def test_systems_that_differ_in_their_clips_are_measured_again_on_those_they_share(
    corpus: Path, tmp_path: Path
) -> None:
    config = given(corpus, tmp_path, 460, bootstrap=20)
    result = run(config)
    assert result.scores.row("P@1", system="bands mean_time").n == 18
    assert result.scores.row("P@1", system="picky mean_time").n == 12
    compared = read_comparisons(tmp_path / "run")
    assert validate(compared.rows) == []
    rows = {row.system: row for row in compared.select(metric="P@1")}
    assert rows["bands mean_time"].n == rows["picky mean_time"].n == 12
    assert rows["bands mean_time"].value == rows["picky mean_time"].value  # one model under two names
    assert "on the 12 of 18 clips that all compared systems have" in rows["bands mean_time"].reason
    found = load_vectors(tmp_path / "run", "sounds", "bands mean_time")
    chosen = [row for row, id in enumerate(found.ids) if int(id[-5]) < 4]
    alone = earmark.evaluate(found.values[chosen], [found.labels[row] for row in chosen], metrics=["P@1"])
    assert rows["bands mean_time"].value == pytest.approx(alone.value("P@1"))
    said = " ".join(result.answer)
    assert "picky mean_time was scored on 12 of 18 clips." in said
    assert "compared on the 12 clips that both of them have" in said
    assert "clear" not in said
    assert result.lost == ()
    again = run(config)
    assert again.counts["evaluate"]["computed"] == 0
    assert read_comparisons(tmp_path / "run").rows == compared.rows


def test_a_system_that_lost_most_clips_is_not_ranked_and_the_command_fails(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text(
        json.dumps(given(corpus, tmp_path, 420, steps=["prepare", "embed", "evaluate", "report"]))
    )
    assert cli.main(["run", str(tmp_path / "run.yaml"), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "picky mean_time failed on 12 of 18 clips of sounds: more than half, so it is not ranked" in said
    place = tmp_path / "run"
    assert "bands mean_time · cosine</b> reaches" in (place / "report.html").read_text()
    assert not (place / "comparisons.csv").exists()
    scores = earmark.load_scores(place / "scores.csv")
    assert (
        "12 clips failed and are left out, more than half: not ranked"
        in scores.row("P@1", system="picky mean_time").reason
    )
    assert {count.system: count.scored for count in clip_counts(read_record(place))} == {
        "bands mean_time": 18, "picky mean_time": 6,
    }  # fmt: skip


def test_a_system_without_any_vector_fails_the_command_too(corpus: Path, tmp_path: Path) -> None:
    result = run(given(corpus, tmp_path, 100))
    assert result.lost == ("picky mean_time failed on 18 of 18 clips of sounds: more than half, so it is not ranked",)


def test_unreadable_files_count_when_they_are_most(tmp_path: Path) -> None:
    corpus = sounds.make_folder(tmp_path / "sounds", classes=2, per_class=3)
    for number in range(7):
        (corpus / "class0" / f"bad{number}.wav").write_bytes(b"")
    result = run(sounds.config(corpus, tmp_path))
    assert result.lost == ("bands mean_time failed on 7 of 13 clips of sounds: more than half, so it is not ranked",)
    assert result.scores.row("P@1").n == 6


def test_systems_that_share_too_few_clips_have_no_best(corpus: Path, tmp_path: Path) -> None:
    config = given(corpus, tmp_path, 440)
    config["extractors"].append({"name": "long", "spec": "tests.representations.test_comparisons:Long"})
    result = run(config)
    assert not (tmp_path / "run" / "comparisons.csv").exists()
    (shared,) = shared_clips(read_record(tmp_path / "run"))
    assert (shared.shared, shared.clips, shared.systems) == (0, 18, 3)
    assert "no representation is called the best: its 3 systems share only 0 of 18 clips" in " ".join(result.answer)


class Long(sounds.Bands):
    """Refuses short clips."""

    card = ExtractorCard(name="long", rate=sounds.RATE, dimension=8, frame_rate=125.0)

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        if any(len(waveform) <= 440 for waveform in waveforms):
            raise ValueError("a clip that is too short")
        return super().extract(waveforms)


def test_a_comparison_goes_when_it_is_no_longer_needed(corpus: Path, tmp_path: Path) -> None:
    for limit, compared in ((460, {"P@1", "P@5", "GSR"}), (500, set())):
        run(given(corpus, tmp_path, limit))
        rows = read_comparisons(tmp_path / "run")
        assert {row.metric for row in rows if not row.metric.endswith(":difference")} == compared


class Tilted(sounds.Bands):
    """Bands with the upper half weighted, and noise that depends on the clip alone."""

    card = ExtractorCard(name="tilted", rate=sounds.RATE, dimension=8, frame_rate=125.0)

    def __init__(self, high: float = 1.0, noise: float = 0.0) -> None:
        super().__init__()
        self.high, self.noise = high, noise

    def _one(self, waveform: NDArray[np.float32]) -> Frames:
        values, length = super()._one(waveform)[:2]
        rng = np.random.default_rng(int(1e6 * abs(float(waveform.sum()))))
        weights = np.where(np.arange(8) < 4, 1.0, self.high)
        return Frames((values * weights + self.noise * rng.standard_normal(8)).astype(np.float32), length)


def test_the_report_names_the_best_across_groups_and_the_other_one_over_all_pairs(tmp_path: Path) -> None:
    """Three words of four speakers, each with a whistle that drowns the word for a model that hears it."""
    clips = []
    for place in range(60):
        word, speaker = place % 3, place // 3 % 4
        sound = 0.5 * sounds.tone(300.0 + 150 * word, place) + sounds.tone(2600.0 + 350.0 * speaker, 99 + place)
        clips.append(Clip(f"{place}", f"word{word}", group=f"speaker{speaker}", samples=sound, rate=sounds.RATE))
    spec = "tests.representations.test_comparisons:Tilted"
    models = [{"name": "hears_all", "spec": spec},
              {"name": "hears_words", "spec": spec, "parameters": {"high": 0.0, "noise": 1.0}}]  # fmt: skip
    config = sounds.config(tmp_path, tmp_path, extractors=models, across_groups=True,
                           steps=["prepare", "embed", "evaluate", "report"])  # fmt: skip
    result = run(config, corpora=[Corpus(CorpusCard("words"), clips)])
    values = {
        (row.system, row.protocol): f"{100 * (row.value or 0):.1f} %" for row in result.scores.select(metric="P@1")
    }
    said = " ".join(result.answer).replace("\N{NO-BREAK SPACE}", " ")
    best, other = "hears_words mean_time", "hears_all mean_time"
    assert f"{best} · cosine does best of 2: {values[best, 'across_groups']}" in said
    assert f"{other} · cosine, with {values[other, 'all']} and {values[other, 'across_groups']} across groups" in said
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.index(f"<b>{best} · cosine</b>") < page.index("Both protocols side by side")
    assert f"words: {best} · cosine (across groups)</h3>" in page


def test_the_best_is_tested_against_each_other_one_on_the_same_clips(tmp_path: Path) -> None:
    pytest.importorskip("earmark.calibrate.jackknife")
    cache, evaluations, rows = Cache(str(tmp_path)), [], []
    rng = np.random.default_rng(0)
    hits = {"a": rng.random(40) < 0.9, "b": rng.random(40) < 0.85, "c": rng.random(40) < 0.2}
    for system, found in hits.items():
        rows.append(Row(subset="s", system=system, distance="cosine", metric="P@1", value=float(found.mean()), n=40))
        without = (found.sum() - found) / 39
        cache.put(SCORES_KIND, system, Entry({"rows": []}, {without_each("all", "P@1"): without}))
        where = {"suite": "", "subset": "s", "system": system, "distance": "cosine", "correction": "none"}
        evaluations.append({**where, "key": system})
    ranking = rank(Scores(tuple(rows)))
    tested = {row.system: row for row in differences(ranking, evaluations, cache)}
    assert set(tested) == {"b", "c", "a - b", "a - c", "b - c"}
    assert tested["a - c"].p_value == tested["c"].p_value
    assert tested["c"].value == pytest.approx(hits["a"].mean() - hits["c"].mean())
    assert (tested["c"].comparisons, tested["c"].units, tested["c"].metric) == (3, 40, "P@1:difference")
    assert tested["c"].reason == "a · cosine minus c · cosine"
    assert validate(list(tested.values())) == []
    (finding,) = findings(rank(Scores(tuple(rows)), Scores(tuple(tested.values()))))
    assert (finding.tested, [line.system for line in finding.rivals]) == ("clip", ["b"])
    assert differences(ranking, evaluations[:1], cache) == []


def test_distances_of_aligned_frames_that_are_left_out_are_told(tmp_path: Path) -> None:
    jobs = [{"distance": name} for name in ("cosine", "spearman+dtw", "cosine")]
    assert comparisons._aligned_note({tmp_path: {"evaluations": jobs[::2]}}) == []
    (note,) = comparisons._aligned_note({tmp_path: {"evaluations": jobs}})
    assert note.startswith("spearman+dtw left out")
