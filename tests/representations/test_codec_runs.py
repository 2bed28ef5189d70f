"""Codec runs from sounds to a folder: what is counted, what is cached, what fails, and what survives a kill."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import soundfile
from tests.representations import codec_toys
from tests.representations.codec_toys import QUICK, memory, voiced

import earmark
from earmark.cli import main
from earmark.codecs.runs.folder import read_cards, read_codec_record
from earmark.codecs.runs.runner import plan_codecs, run_codecs
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError, UsageError
from earmark.report.codecs.finished import open_runs
from earmark.report.codecs.gathering import gather
from earmark.report.codecs.page import render_codecs
from earmark.report.codecs.text import run_text
from earmark.runs import packs
from earmark.runs.packs import Packer, read_records
from earmark.runs.pool import Died, Processes
from earmark.runs.store import Cache
from earmark.scores import Scores, load_scores, validate
from earmark.submissions import Dataset, check, read_document
from earmark.submissions import read_document as submitted

ROOT = Path(__file__).resolve().parents[2]
TOYS = "tests.representations.codec_toys"


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six voiced clips in two classes, and four that something is wrong with."""
    folder = tmp_path_factory.mktemp("sounds")
    for seed in range(6):
        (folder / f"k{seed % 2}").mkdir(exist_ok=True)
        soundfile.write(folder / f"k{seed % 2}" / f"clip{seed}.wav", voiced(seed), codec_toys.RATE)
    odd = folder / "odd"
    odd.mkdir()
    soundfile.write(odd / "silence.wav", np.zeros(16000, np.float32), 16000)
    soundfile.write(odd / "ten_ms.wav", voiced(1)[:160], 16000)
    soundfile.write(odd / "two_minutes.wav", np.tile(voiced(2), 121)[: 121 * 16000], 16000)
    (odd / "torn.wav").write_bytes((folder / "k0" / "clip0.wav").read_bytes()[:3000])
    return folder


def without_times(scores: Scores) -> list[dict[str, Any]]:
    return [row.as_dict() for row in scores if not row.metric.endswith("_rtf")]


@pytest.fixture(scope="module")
def finished(sounds: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any]]:
    """A whole run with real codecs and worker processes, and its config."""
    place = tmp_path_factory.mktemp("run")
    config = {
        "codecs": ["pcm", "opus@12", "mp3@32", "mulaw@64", "codec2@1.3"], "corpus": str(sounds), "category": "speech",
        "into": str(place / "run"), "cache": {"url": str(place / "cache")}, "jobs": 2, "bootstrap": 100,
    }  # fmt: skip
    return run_codecs(config), config


def test_a_run_with_real_codecs_leaves_whole_results(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    names = {path.name for path in run.folder.iterdir()}
    assert names >= {"scores.csv", "clips.csv", "report.html", "submission.json", "config.yaml", "run.json", "run.log"}
    assert load_scores(run.folder / "scores.csv") == run.scores
    subset = run.scores.rows[0].subset
    assert run.scores.value("pesq", system="pcm", subset=subset) == pytest.approx(4.644, abs=1e-3)
    assert run.scores.value("stoi", system="pcm", subset=subset) == pytest.approx(1.0, abs=1e-4)
    assert run.scores.value("overall", system="pcm", subset=subset) > 0.99
    for system in ("opus@12", "mp3@32", "mulaw@64", "codec2@1.3"):
        assert 0.4 < run.scores.value("overall", system=system, subset=subset) < 0.95
        assert run.scores.row("overall", system=system, subset="mean:speech").value is not None


def test_rates_are_counted_and_means_are_those_of_the_clips(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    lines = list(csv.DictReader((run.folder / "clips.csv").open(encoding="utf-8")))
    subset = run.scores.rows[0].subset
    for system in ("opus@12", "mulaw@64"):
        own = [line for line in lines if line["system"] == system and line["bits"]]
        kbps = sum(float(line["bits"]) for line in own) / sum(float(line["seconds"]) for line in own) / 1000
        assert run.scores.value("kbps", system=system, subset=subset) == pytest.approx(kbps, rel=1e-12)
        pesq = [float(line["pesq"]) for line in own if line["pesq"]]
        row = run.scores.row("pesq", system=system, subset=subset, protocol="all")
        assert row.value == pytest.approx(np.mean(pesq), rel=1e-12)
        assert row.n == len(pesq) == 6
        assert row.low <= row.value <= row.high
    assert run.scores.value("kbps", system="mulaw@64", subset=subset) == pytest.approx(64, rel=0.01)


def test_bad_clips_have_a_status_and_no_number(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    lines = {
        Path(line["id"]).name: line
        for line in csv.DictReader((run.folder / "clips.csv").open(encoding="utf-8"))
        if line["system"] == "opus@12"
    }
    assert lines["torn.wav"]["status"] == "not_applicable"  # no codec is to blame
    assert lines["two_minutes.wav"]["status"] == "not_applicable"
    assert "121 s" in lines["two_minutes.wav"]["reasons"]
    for name in ("torn.wav", "two_minutes.wav", "silence.wav", "ten_ms.wav"):
        assert not any(lines[name][metric] for metric in ("pesq", "stoi", "stft_distance", "f0_corr"))
        assert lines[name]["reasons"]
    row = run.scores.row("pesq", system="opus@12", subset=run.scores.rows[0].subset, protocol="all")
    assert "4 of 10 not applicable" in row.reason
    assert row.status == "ok"
    whole = run.scores.row("overall", system="opus@12", subset=row.subset)
    assert whole.n == 6
    assert "6 of 10 have the rarest" in whole.reason


def test_the_report_can_be_drawn_again(
    finished: tuple[Any, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = finished
    page = run.folder / "report.html"
    page.unlink()
    assert main(["report", str(run.folder), "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert page.stat().st_size > 10_000


def test_a_delay_is_reported_and_both_numbers_are_shown(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    subset = run.scores.rows[0].subset
    row = run.scores.row("delay_ms", system="codec2@1.3", subset=subset)
    assert 5 < row.value < 40
    assert "envelope" in row.reason
    assert run.scores.row("delay_ms", system="mp3@32", subset=subset).reason == "declared on its card"
    aligned = run.scores.value("stoi", system="mp3@32", subset=subset, protocol="all")
    assert aligned > 0.1 + run.scores.value("stoi", system="mp3@32", subset=subset, protocol="unaligned")


def test_worst_clips_are_named(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    row = run.scores.row("pesq:p1", system="opus@12", subset=run.scores.rows[0].subset)
    assert row.value <= run.scores.value("pesq", system="opus@12", subset=row.subset, protocol="all")
    assert "clip" in row.reason


def test_the_submission_holds_the_same_rows(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    document = read_document((run.folder / "submission.json").read_bytes())
    expected = sorted(run.scores.rows, key=lambda row: row.key)
    assert sorted(document.scores.rows, key=lambda row: row.key) == expected
    assert {card.name for card in document.cards} == {row.system for row in run.scores}


def test_a_second_run_computes_nothing_and_says_the_same(finished: tuple[Any, dict[str, Any]]) -> None:
    run, config = finished
    again = run_codecs({**config, "report": False})
    assert "code" not in again.counts
    assert again.counts["measure"]["computed"] == 0
    assert again.scores == run.scores


def test_the_config_it_leaves_does_the_same(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    lines, _ = plan_codecs(run.folder / "config.yaml")
    by_step = {(line.step, line.what): line.todo for line in lines}
    assert by_step["code", "opus@12"] == by_step["measure", "opus@12"] == 1  # the torn file is tried again


def test_a_new_codec_and_a_new_metric_cost_what_is_new(tmp_path: Path) -> None:
    options = {**QUICK, "cache": {"url": str(tmp_path / "cache")}, "into": tmp_path / "run", "category": "audio"}
    first = earmark.codec(["mulaw@64"], memory(), **options)
    assert first.counts["code"]["computed"] == 4
    second = earmark.codec(["mulaw@64", "pcm"], memory(), **options)
    assert second.counts["code"]["computed"] == 4  # those of pcm
    assert second.counts["measure"]["cached"] == 4
    third = earmark.codec(["mulaw@64", "pcm"], memory(), **{**options, "extras": ["si_sdr"]})
    assert "code" not in third.counts
    assert third.counts["measure"]["computed"] == 8
    assert third.scores.value("stft_distance", system="pcm", subset="toy") == second.scores.value(
        "stft_distance", system="pcm", subset="toy"
    )


def test_identity_reaches_the_ceiling_and_a_hidden_delay_is_found(tmp_path: Path) -> None:
    options = {"cache": "off", "into": tmp_path / "run", "category": "music", "jobs": 0, "bootstrap": 20}
    run = earmark.codec([codec_toys.Sixteen(), codec_toys.Late()], memory(6), report=False, **options)
    for system in ("sixteen", "late"):
        value = {row.metric: row.value for row in run.scores.select(system=system, subset="toy", protocol="all")}
        assert value["pesq"] == pytest.approx(4.644, abs=2e-3)
        assert value["stoi"] == pytest.approx(1, abs=1e-3)
        assert value["f0_corr"] == pytest.approx(1, abs=1e-3)
        assert value["stft_distance"] < 0.02
        assert value["overall"] > 0.999
        assert value["overall_unsaturated"] > 0.99
    delay = run.scores.row("delay_ms", system="late", subset="toy")
    assert delay.value == pytest.approx(20.0, abs=0.01)
    assert delay.n == 6
    assert run.scores.value("kbps", system="sixteen", subset="toy") == pytest.approx(256)
    assert "header of 0.024 kbit" in run.scores.row("kbps", system="sixteen", subset="toy").reason


@pytest.mark.parametrize(
    ("toy", "said"),
    [
        ("Silent", "silent"),
        ("NotANumber", "NaN"),
        ("Short", "samples went in"),
        ("WrongRate", "24000 Hz"),
    ],
)
def test_a_broken_decoder_fails_and_gets_no_number(toy: str, said: str, tmp_path: Path) -> None:
    options = {**QUICK, "metrics": ["stft_distance", "mel_distance", "pesq", "stoi"], "category": "speech"}
    run = earmark.codec([f"{TOYS}:{toy}"], memory(), cache="off", into=tmp_path / "run", **options)
    for metric in ("stft_distance", "mel_distance", "pesq", "stoi"):
        row = run.scores.row(metric, subset="toy")
        assert (row.value, row.status, row.n) == (None, "failed", 0)
        assert said in row.reason
    assert run.scores.row("overall", subset="toy").value is None


def test_a_codec_that_kills_its_process_costs_its_own_clip(tmp_path: Path) -> None:
    clips = [*memory(3), Clip("loud", "k0", samples=voiced(7, peak=0.95), rate=16000)]
    corpus = Corpus(CorpusCard("toy"), clips)
    options = {**QUICK, "jobs": 1, "category": "audio", "cache": "off", "into": tmp_path / "run"}
    run = earmark.codec([f"{TOYS}:Deadly", f"{TOYS}:Sixteen"], corpus, **options)
    row = run.scores.row("stft_distance", system="deadly", subset="toy")
    assert row.n == 3
    assert "SIGSEGV" in row.reason
    assert run.scores.row("stft_distance", system="sixteen", subset="toy").n == 4


def test_a_codec_that_fails_on_everything_is_given_up(tmp_path: Path) -> None:
    corpus = memory(24, seconds=0.3)
    run = earmark.codec([f"{TOYS}:Short"], corpus, **QUICK, category="audio", cache="off", into=tmp_path / "run")
    assert "not tried" in run.scores.row("stft_distance", subset="toy").reason


@pytest.fixture(scope="module")
def survivors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A codec that is best on three of five clips and fails on the others, one that takes all, one that takes none."""
    peaks = enumerate((0.5, 0.5, 0.5, 0.3, 0.3))
    clips = [Clip(f"c{seed}", "k", samples=voiced(seed, peak=peak), rate=16000) for seed, peak in peaks]
    codecs = [f"{TOYS}:{name}" for name in ("Picky", "Coarse", "Refusing")]
    place = tmp_path_factory.mktemp("survivors") / "run"
    corpus = Corpus(CorpusCard("toy"), clips)
    return earmark.codec(codecs, corpus, **QUICK, category="audio", cache="off", into=place)


def test_a_setting_that_failed_on_clips_wins_nothing(survivors: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {name: survivors.scores.row("overall", system=name, subset="toy") for name in ("picky", "coarse")}
    assert rows["picky"].value > rows["coarse"].value  # over its own three clips
    assert {name: row.status for name, row in rows.items()} == {"picky": "incomplete", "coarse": "ok"}
    assert rows["picky"].reason.startswith("2 of 5 clips failed")
    assert survivors.scores.row("overall", system="picky", subset="mean:audio").status == "incomplete"
    with pytest.raises(InputError, match="2 of 5 clips failed"):
        survivors.scores.value("overall", system="picky", subset="toy")
    (found,) = open_runs([survivors.folder]).compared(["overall"], None)
    assert [point.system for point in found.front] == ["coarse"]
    assert found.left_out == {"picky": ("failed 2/5", "it failed on 2 of 5 clips")}
    assert main(["codec", "compare", str(survivors.folder), "--metrics", "overall"]) == 0
    compared = capsys.readouterr().out
    assert "failed 2/5" in compared
    record = read_codec_record(survivors.folder)
    datasets = [Dataset(**given) for given in record["datasets"]]
    table = run_text(survivors.scores, read_cards(record), "all", datasets, record["failed"])
    assert "best overall by rate: coarse up to 128 kbps" in table
    for text in (compared, table):
        assert "picky is left out: it failed on 2 of 5 clips" in text
    (line,) = [line.split() for line in table.splitlines() if line.startswith("  picky ")]
    assert line[-3:] == ["3", "2/5", "4"]  # two metrics of two clips are missing
    page = render_codecs(gather([survivors.folder]))
    assert "<b>coarse</b> has the best" in page
    assert "picky is left out: it failed on 2 of 5 clips." in page


def test_a_delay_that_could_not_be_found_is_no_zero(survivors: Any) -> None:
    row = survivors.scores.row("delay_ms", system="refusing", subset="toy")
    assert (row.value, row.status, row.n) == (None, "failed", 0)
    assert "failed on every clip" in row.reason
    declared = survivors.scores.row("delay_ms", system="coarse", subset="toy")
    assert (declared.value, declared.status, declared.n) == (0.0, "ok", None)


@pytest.mark.parametrize("name", ["submission.json", "scores.csv"])
def test_a_board_takes_what_a_run_writes(survivors: Any, finished: tuple[Any, dict[str, Any]], name: str) -> None:
    for run in (survivors, finished[0]):
        document = submitted((run.folder / name).read_bytes(), filename=name)
        assert check(document).problems == []


def test_passes_and_losses_have_rows_of_their_own(tmp_path: Path) -> None:
    options = {**QUICK, "category": "audio", "cache": "off", "into": tmp_path / "run", "tandem": 2, "loss": [20]}
    run = earmark.codec(["opus@12", "mp3@32"], memory(3), **options)
    once = run.scores.value("mel_distance", system="opus@12", subset="toy", protocol="tandem:1")
    assert once == pytest.approx(run.scores.value("mel_distance", system="opus@12", subset="toy", protocol="all"))
    assert run.scores.value("mel_distance", system="opus@12", subset="toy", protocol="tandem:2") > once
    assert run.scores.value("mel_distance", system="opus@12", subset="toy", protocol="loss:20") > once
    lost = run.scores.row("mel_distance", system="mp3@32", subset="toy", protocol="loss:20")
    assert (lost.value, lost.status) == (None, "not_applicable")


def test_retention_hears_the_coded_clips(tmp_path: Path) -> None:
    options = {**QUICK, "category": "audio", "cache": {"url": str(tmp_path / "cache")}, "into": tmp_path / "run"}
    run = earmark.codec(["pcm", "codec2@1.3"], memory(8), retention="logmel", **options)
    metrics = {row.metric for row in run.scores if row.system == "codec2@1.3"}
    assert {"P@1", "GSR", "clipped_density"} <= metrics
    assert run.counts["tasks"] == {"computed": 24, "failed": 0, "cached": 24}  # two tasks, one model: heard once
    again = earmark.codec(["pcm", "codec2@1.3"], memory(8), retention="logmel", **options)
    assert again.counts["tasks"] == {"cached": 48}
    assert without_times(again.scores) == without_times(run.scores)


# --- what is averaged, and what is not -----------------------------------------------------------------------------


def squared_error(reference: Any, decoded: Any) -> float:
    """A metric of one's own."""
    return float(np.mean((reference - decoded) ** 2))


@pytest.fixture(scope="module")
def two_rates(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Clips at 16 and at 44.1 kHz in one subset, with a metric of one's own, and a codec without any result."""
    clips = [
        Clip(f"c{seed}", "k", samples=voiced(seed, rate=rate, peak=0.5), rate=rate)
        for seed, rate in enumerate((16000, 16000, 16000, 44100, 44100))
    ]
    place = tmp_path_factory.mktemp("rates") / "run"
    metrics = ["stft_distance", "mel_distance", "stoi", f"{__name__}:squared_error"]
    codecs = ["pcm", f"{TOYS}:Coarse", f"{TOYS}:Sixteen", f"{TOYS}:Refusing"]
    options = {**QUICK, "metrics": metrics, "category": "audio", "cache": "off", "into": place}
    return earmark.codec(codecs, Corpus(CorpusCard("toy"), clips), **options)


def test_distances_of_two_sampling_rates_are_never_averaged(two_rates: Any) -> None:
    lines = list(csv.DictReader((two_rates.folder / "clips.csv").open(encoding="utf-8")))
    for metric in ("stft_distance", "mel_distance"):
        own = [line for line in lines if line["system"] == "coarse"]
        for rate, few in ((16000, own[:3]), (44100, own[3:])):
            row = two_rates.scores.row(metric, system="coarse", subset="toy", protocol=f"all@{rate}")
            assert row.value == pytest.approx(np.mean([float(line[metric]) for line in few]), rel=1e-12)
            assert row.n == len(few)
    for metric in ("stft_distance", "mel_distance", "stft_distance:p1", "overall", "overall_unsaturated"):
        row = two_rates.scores.row(metric, system="coarse", subset="toy", protocol="all")
        assert (row.value, row.status) == (None, "not_applicable")
        assert "16000 Hz and 44100 Hz" in row.reason
    assert two_rates.scores.row("stoi", system="coarse", subset="toy", protocol="all").n == 5
    assert two_rates.scores.value("overall", system="coarse", subset="toy", protocol="all@44100") > 0.4
    assert two_rates.scores.row("overall", system="coarse", subset="mean:audio").status == "not_applicable"
    rates = {row.protocol: row.value for row in two_rates.scores.select(metric="kbps", system="pcm", subset="toy")}
    assert rates["all@16000"] == pytest.approx(256, rel=0.01)
    assert rates["all@44100"] == pytest.approx(705.6, rel=0.01)
    assert validate(two_rates.scores.rows) == []
    found = open_runs([two_rates.folder]).compared(["overall"], None)
    assert [one.protocol for one in found] == ["all@16000", "all@44100"]
    page = render_codecs(gather([two_rates.folder]))
    assert "On toy, clips at 44,100 Hz" in page


def test_a_run_says_first_who_has_no_result_and_counts_own_metrics(
    two_rates: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = open_runs([two_rates.folder])
    text = run_text(two_rates.scores, runs.cards, "all", runs.datasets, runs.failed, metrics=runs.metrics)
    assert text.startswith("refusing has no result: 5 clips were not coded")
    head = next(line for line in text.splitlines() if line.startswith("  codec"))
    assert "squared_error" in head.split()
    assert "header" in head.split()  # Sixteen sends one
    assert "tasks" not in text
    (refusing,) = [line for line in text.splitlines() if line.startswith("  refusing")][:1]
    assert refusing.split()[-1] == "10"  # stoi and the own metric of five clips: distances have no mean here
    assert "toy, clips at 44100 Hz" in text
    assert "best overall by rate, clips at 16000 Hz: " in text
    last = [line.split()[0] for line in text.split("\n\n")[1].splitlines()][-1]
    assert last == "(pcm)"
    page = render_codecs(gather([two_rates.folder]))
    assert "<b>refusing has no result" in page


def test_the_exit_status_says_whether_every_codec_has_a_result(tmp_path: Path, capsys: Any) -> None:
    soundfile.write(tmp_path / "a.wav", voiced(1), 16000)
    (tmp_path / "clips.csv").write_text(f"path,label\n{tmp_path / 'a.wav'},k\n")
    flags = ["--corpus", str(tmp_path / "clips.csv"), "--category", "audio", "--metrics", "mel_distance", "--jobs", "0"]
    flags += ["--no-report", "--cache", "off", "--quiet", "--into", str(tmp_path / "run")]
    assert main(["codec", "run", "--codecs", f"mulaw@64,{TOYS}:Refusing", *flags]) == 1
    text = capsys.readouterr().out
    assert text.startswith("refusing has no result")
    assert "\n  mulaw@64 " in text


def test_a_task_hears_fewer_clips_of_a_codec_that_failed_and_says_so(tmp_path: Path) -> None:
    peaks = (0.5, 0.5, 0.5, 0.5, 0.5, 0.3)
    clips = [
        Clip(f"c{seed}", f"k{seed % 2}", samples=voiced(seed, peak=peak), rate=16000) for seed, peak in enumerate(peaks)
    ]
    options = {**QUICK, "category": "audio", "cache": "off", "into": tmp_path / "run", "tasks": ["content:logmel"]}
    run = earmark.codec([f"{TOYS}:Picky", f"{TOYS}:Coarse"], Corpus(CorpusCard("toy"), clips), **options)
    row = run.scores.row("P@1", system="picky", subset="toy", protocol="coded_enrol", correction="none")
    assert row.status == "incomplete"
    assert row.reason.startswith("1 of 6 clips was not coded")
    whole = run.scores.row("P@1", system="coarse", subset="toy", protocol="coded_enrol", correction="none")
    assert whole.status == "ok"


# --- killed ----------------------------------------------------------------------------------------------------------

_SCRIPT = """
import sys
from tests.representations.codec_toys import QUICK, memory
from earmark.runs import packs
import earmark
packs.PACK_SECONDS = 0.0
earmark.codec(["tests.representations.codec_toys:Counting"], memory(16, seconds=0.4), category="audio",
              cache={"url": sys.argv[1]}, into=sys.argv[2], **{**QUICK, "jobs": 1})
"""


def _coded(cache: Path) -> int:
    """Clips whose coding is finished, as the packs in the cache say."""
    kinds = [path.name for path in (cache / "coded").glob("*")]
    return sum(len(read_records(Cache(str(cache)), f"coded/{kind}").records) for kind in kinds)


def test_killed_it_continues_and_redoes_nothing_that_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_COUNT", str(tmp_path / "count"))
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path / "cache"), str(tmp_path / "killed")]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)
    deadline = time.monotonic() + 120
    while _coded(tmp_path / "cache") < 4 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    _, left = psutil.wait_procs(workers, timeout=60)  # a worker finishes its clip, finds nobody to tell, and ends
    assert not left
    kept = _coded(tmp_path / "cache")
    before = len((tmp_path / "count").read_text())
    assert 4 <= kept < 16

    def again(cache: str, into: str) -> Any:
        corpus, place = memory(16, seconds=0.4), {"url": str(tmp_path / cache)}
        return earmark.codec([f"{TOYS}:Counting"], corpus, category="audio", cache=place, into=tmp_path / into, **QUICK)

    resumed = again("cache", "resumed")
    assert resumed.counts["code"]["computed"] == 16 - kept
    assert len((tmp_path / "count").read_text()) - before == 16 - kept + 1  # the noise that shows a header's set-up
    whole = again("other", "whole")
    assert whole.counts["code"]["computed"] == 16
    assert without_times(resumed.scores) == without_times(whole.scores)


def test_a_damaged_pack_is_coded_again(tmp_path: Path) -> None:
    options = {**QUICK, "category": "audio", "cache": {"url": str(tmp_path / "cache")}, "into": tmp_path / "run"}
    first = earmark.codec(["mulaw@64"], memory(), **options)
    (pack,) = (tmp_path / "cache" / "coded").rglob("*.entry")
    data = bytearray(pack.read_bytes())
    data[-5] ^= 0xFF
    pack.write_bytes(bytes(data))
    second = earmark.codec(["mulaw@64"], memory(), **{**options, "extras": ["si_sdr"]})
    assert second.counts["code"]["computed"] == 4
    value = second.scores.value("stft_distance", subset="toy")
    assert value == first.scores.value("stft_distance", subset="toy")


# --- the parts -------------------------------------------------------------------------------------------------------


def test_packs_hold_records_and_blobs_and_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PACK_ITEMS", 3)
    cache = Cache(str(tmp_path))
    packer = Packer(read_records(cache, "kind/a"))
    for number in range(7):
        packer.add(f"clip{number}", {"n": number}, {"blob": bytes([number]) * number})
        packer.flush_if_full()
    packer.flush()
    packer.add("clip2", {"more": 1})
    packer.flush()
    found = read_records(cache, "kind/a")
    assert found.records["clip2"] == {"n": 2, "more": 1}
    assert len(list((tmp_path / "kind" / "a").glob("*.entry"))) == 4
    assert [found.payload(f"clip{n}", "blob") for n in range(7)] == [bytes([n]) * n for n in range(7)]


def test_workers_answer_pass_errors_on_and_are_replaced() -> None:
    with Processes(codec_toys.cube_or_die, 1) as processes:
        assert processes.call(3) == 27
        with pytest.raises(InputError, match="ZeroDivisionError"):
            processes.call(0)
        with pytest.raises(Died, match="exit code 7"):
            processes.call(-1)
        assert processes.call(4) == 64


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"codecs": ["opsu@12"]}, "opus"),
        ({"codecs": ["opus@13"]}, "choose from opus@6"),
        ({"category": None}, "category"),
        ({"metrics": ["pesk"]}, "pesq"),
        ({"tasks": ["asx"]}, "asx"),
        ({"tasks": ["content:logmel", "content:mfcc"]}, "same name"),
        ({"categori": "speech"}, "category"),
        ({"loss": [120]}, "loss"),
    ],
)
def test_wrong_configs_are_told_in_a_sentence(changes: dict[str, Any], said: str, sounds: Path, tmp_path: Path) -> None:
    config = {"codecs": ["pcm"], "corpus": str(sounds), "category": "speech", "into": str(tmp_path / "run"), "jobs": 0}
    with pytest.raises((UsageError, InputError), match=said):
        run_codecs({**config, **changes})


def test_the_record_counts_what_is_missing(finished: tuple[Any, dict[str, Any]]) -> None:
    run, _ = finished
    record = json.loads((run.folder / "run.json").read_text())
    coding = [one for one in record["missing"] if one["what"] == "coding" and one["system"] == "opus@12"]
    assert sorted(one["clips"] for one in coding) == [1, 1]
    assert {one["status"] for one in coding} == {"not_applicable"}
