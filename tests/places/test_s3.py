"""Cache, vectors, corpora and runs on a server that speaks S3, which dies and comes back: scores stay the same."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import s3
from tests.representations import sounds
from tests.representations.sounds import without_seconds

from earmark import audio
from earmark.atomic import replacing
from earmark.cli import main
from earmark.corpora.source import open_corpus
from earmark.corpora.subsets import prepare
from earmark.errors import InputError, Unreachable
from earmark.places import locate
from earmark.representations import run
from earmark.runs import packs
from earmark.runs.packs import Packer, Records, read_records
from earmark.runs.store import Cache, Entry


@pytest.fixture(scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    with s3.serving(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def server(_server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.Server]:
    s3.point_at(monkeypatch, _server.port)
    monkeypatch.setattr(packs, "PACK_ITEMS", 8)
    yield _server
    s3.forget_connections()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sounds.make_folder(tmp_path_factory.mktemp("sounds") / "tones", classes=4, per_class=12)


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The scores with a cache and a run folder on this machine."""
    place = tmp_path_factory.mktemp("local")
    run(sounds.config(corpus, place))
    return without_seconds(place / "run" / "scores.csv")


def config(corpus: Path | str, url: str, place: Path, **changes: Any) -> dict[str, Any]:
    return {**sounds.config(Path(), place, cache={"url": url}, **changes), "corpus": str(corpus)}


# --- the cache -----------------------------------------------------------------------------------------------


def test_entries_are_puts_and_headers_come_many_at_a_time(server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache("s3://bucket/many")
    entries = {f"key{number:03}": Entry({"number": number}, {"x": np.arange(number + 1.0)}) for number in range(40)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda item: cache.put("kind", *item), entries.items()))
    assert {file.name for file in (server.bucket / "many" / "kind").iterdir()} == {f"{key}.entry" for key in entries}
    long = Entry({"text": "x" * 200_000}, {"x": np.ones(3)})  # longer than what is read at first
    cache.put("kind", "long", long)
    proxy = s3.Proxy(server.port, wait=0.01)
    s3.point_at(monkeypatch, proxy.port)
    headers = {header.key: header for header in cache.headers("kind")}
    proxy.close()
    assert all(headers[key].meta["number"] == entry.meta["number"] for key, entry in entries.items())
    assert headers["long"].meta["text"] == long.meta["text"]
    assert proxy.most >= 5  # connections at once: one after the other, each header would be a way there and back
    found = cache.get("kind", "key039")
    assert found is not None
    assert np.array_equal(found.arrays["x"], np.arange(40.0))
    peeked = cache.peek("kind", "key005")
    assert peeked is not None
    assert peeked.arrays["x"]["shape"] == [6]
    assert cache.peek("kind", "none") is None
    assert cache.get("kind", "none") is None
    assert cache.headers("other") == []


def test_another_process_is_seen_at_once_and_damage_is_found(server: s3.Server) -> None:
    cache = Cache("s3://bucket/seen")
    records = Records(cache, "kind")
    packer = Packer(records)
    packer.add("one", {"n": 1}, {"x": np.ones(3)})
    packer.flush()
    assert set(read_records(cache, "kind").records) == {"one"}
    entry = next((server.bucket / "seen" / "kind").iterdir())
    there = locate("s3://bucket/seen/kind")
    (there / "copy.entry").write_bytes(entry.read_bytes()[:-4])  # as a broken server might leave it
    (there / "whole.entry").write_bytes(entry.read_bytes())
    assert {header.key for header in cache.headers("kind")} == {entry.stem, "whole"}
    assert not (there / "copy.entry").exists()


def test_two_processes_and_one_cache(server: s3.Server, corpus: Path, expected: list[str], tmp_path: Path) -> None:
    code = (
        "import sys, json\nfrom earmark.representations import run\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nrun(json.loads(sys.argv[1]))"
    )
    models = [{"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": 0.01}}]
    one, other = (config(corpus, "s3://bucket/shared", tmp_path / name, extractors=models) for name in ("1", "2"))
    command = [sys.executable, "-c", code, json.dumps(other)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        run(one)
        assert process.wait(60) == 0
    for name in ("1", "2"):
        assert without_seconds(tmp_path / name / "run" / "scores.csv") == expected
    again = run({**one, "into": str(tmp_path / "again")})
    assert again.counts["embed"]["computed"] == 0
    assert without_seconds(tmp_path / "again" / "scores.csv") == expected


def test_a_restart_in_the_middle(server: s3.Server, corpus: Path, expected: list[str], tmp_path: Path) -> None:
    """The server is killed when the first vectors have come, and comes back a second later."""
    kinds = server.bucket / "restarted"

    def restart() -> None:
        while not list(kinds.rglob("*.entry")):
            time.sleep(0.005)
        server.kill()
        time.sleep(1.0)
        server.start()

    watcher = threading.Thread(target=restart)
    watcher.start()
    models = [{"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": 0.01}}]
    result = run(config(corpus, "s3://bucket/restarted", tmp_path, extractors=models))
    watcher.join()
    assert result.counts["embed"]["computed"] == 48
    assert without_seconds(tmp_path / "run" / "scores.csv") == expected
    assert len(list((kinds / "vectors").rglob("*.entry"))) >= 2


def test_cut_connections(
    server: s3.Server, corpus: Path, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = s3.Proxy(server.port, cuts=12, after=900)
    s3.point_at(monkeypatch, proxy.port)
    run(config(corpus, "s3://bucket/cut", tmp_path))
    assert proxy.cuts < 12
    assert without_seconds(tmp_path / "run" / "scores.csv") == expected
    proxy.cuts = 5
    again = run(config(corpus, "s3://bucket/cut", tmp_path / "again"))
    assert again.counts["embed"]["computed"] == 0
    proxy.close()
    assert without_seconds(tmp_path / "again" / "run" / "scores.csv") == expected


def test_what_is_done_stays_when_a_server_does_not_come_back(
    server: s3.Server, corpus: Path, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARMARK_PATIENCE", "0.5")
    kinds = server.bucket / "gone"

    def end() -> None:
        while len(list(kinds.rglob("*.entry"))) < 2:
            time.sleep(0.005)
        server.kill()

    watcher = threading.Thread(target=end)
    watcher.start()
    models = [{"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": 0.01}}]
    told = r"s3://bucket/gone/\S+ cannot be reached .*tried for.*AWS_ENDPOINT_URL, and run it again; what is done stays"
    with pytest.raises(Unreachable, match=told):
        run(config(corpus, "s3://bucket/gone", tmp_path, extractors=models))
    watcher.join()
    server.start()
    result = run(config(corpus, "s3://bucket/gone", tmp_path, extractors=models))
    assert 0 < result.counts["embed"]["computed"] < 48
    assert without_seconds(tmp_path / "run" / "scores.csv") == expected


# --- vectors -------------------------------------------------------------------------------------------------


def evaluated(capsys: pytest.CaptureFixture[str], *files: str) -> list[dict[str, Any]]:
    assert main(["evaluate", *files, "--json", "--quiet", "--system", "x"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    differing = "seconds", "reason"  # the reason names the file
    return [{name: value for name, value in row.items() if name not in differing} for row in rows]


def test_vectors_are_read_from_a_url(
    server: s3.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((600, 700)).astype(np.float32)
    labels = [f"l{row % 5}" for row in range(len(values))]
    ids = [f"clip{row}" for row in range(len(values))]
    np.save(tmp_path / "v.npy", values)
    np.savez(tmp_path / "v.npz", vectors=values, ids=ids, labels=labels)
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{i},{j}\n" for i, j in zip(ids, labels, strict=True)))
    few = [",".join(map(str, row[:6])) for row in values.tolist()]
    lines = "".join(f"{i},{row}\n" for i, row in zip(ids, few, strict=True))
    (tmp_path / "v.csv").write_text("id,a,b,c,d,e,f\n" + lines)
    for name in ("v.npy", "v.npz", "v.csv", "labels.csv"):
        with replacing(locate(f"s3://bucket/vectors/{name}")) as part:
            part.write_bytes((tmp_path / name).read_bytes())
    proxy = s3.Proxy(server.port, cuts=4, after=300_000)
    s3.point_at(monkeypatch, proxy.port)
    for files in (["v.npz"], ["v.npy", "labels.csv"], ["v.csv", "labels.csv"]):
        here = evaluated(capsys, *(str(tmp_path / name) for name in files))
        there = evaluated(capsys, *(f"s3://bucket/vectors/{name}" for name in files))
        assert there == here
    assert proxy.cuts == 0
    proxy.close()


def test_vectors_are_written_to_a_url(server: s3.Server, corpus: Path, tmp_path: Path) -> None:
    for target in (str(tmp_path / "here.npz"), "s3://bucket/embedded/there.npz"):
        assert main(["embed", str(corpus), "--extractor", "mfcc", "--out", target, "--quiet"]) == 0
    with np.load(tmp_path / "here.npz") as here, np.load(server.bucket / "embedded" / "there.npz") as there:
        assert here.files == there.files
        for name in here.files:
            assert np.array_equal(here[name], there[name])


# --- corpora and run folders ---------------------------------------------------------------------------------


@pytest.fixture
def uploaded(server: s3.Server, corpus: Path) -> str:
    files = {str(file.relative_to(corpus)): file.read_bytes() for file in corpus.rglob("*.wav")}
    files |= {"notes.txt": b"no sound", ".hidden.wav": b"no sound"}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda item: (locate("s3://bucket/tones") / item[0]).write_bytes(item[1]), files.items()))
    return "s3://bucket/tones"


def test_a_run_whose_sounds_and_folder_lie_elsewhere(
    server: s3.Server, uploaded: str, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["prepare", "embed", "evaluate", "report"]
    result = run(config(uploaded, "s3://bucket/all", tmp_path, into="s3://bucket/runs/one", steps=steps))
    assert str(result.folder) == "s3://bucket/runs/one"
    folder = server.bucket / "runs" / "one"
    assert without_seconds(folder / "scores.csv") == expected
    assert "finished" in (folder / "run.log").read_text()
    page = (folder / "report.html").read_text()
    locate("s3://bucket/runs/one/report.html").unlink()
    assert main(["report", "s3://bucket/runs/one", "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == "s3://bucket/runs/one/report.html"
    assert (folder / "report.html").read_text().count("data:audio") == page.count("data:audio") > 0
    assert main(["submit", "s3://bucket/runs/one/scores.csv", "--board", "vocsim", "--dry-run", "--quiet"]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
    assert main(["run", "s3://bucket/runs/one/config.yaml", "--plan"]) == 0
    assert "s3://bucket/all" in capsys.readouterr().out


def test_manifests_name_files_elsewhere(server: s3.Server, uploaded: str, expected: list[str], tmp_path: Path) -> None:
    files = sorted((server.bucket / "tones").rglob("class*/*.wav"))
    relative = "".join(f"{file.relative_to(server.bucket / 'tones')},{file.parent.name}\n" for file in files)
    listed = locate(f"{uploaded}/manifest.csv")
    listed.write_text("path,label\n" + relative)
    absolute = "".join(f"{uploaded}/{line}\n" for line in relative.splitlines())
    (tmp_path / "tones.csv").write_text("path,label\n" + absolute)
    (tmp_path / "more.csv").write_text("path,label\n" + absolute + f"{uploaded}/none.wav,class0\n")
    for spec in (f"{uploaded}/manifest.csv", uploaded, str(tmp_path / "tones.csv")):
        run(config(spec, str(tmp_path / "cache"), tmp_path))
        assert without_seconds(tmp_path / "run" / "scores.csv") == expected
    assert open_corpus(str(tmp_path / "more.csv")).notes == (
        f"more.csv: 1 of 49 files are missing (first: {uploaded}/none.wav).",
    )
    listed.unlink()


def test_an_outage_is_no_bad_clip(
    server: s3.Server, uploaded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clip that cannot be fetched for now must not be left out of the scores."""
    opened = open_corpus(uploaded)
    monkeypatch.setenv("EARMARK_PATIENCE", "0.3")
    for known in ("_known_files", "_fetched"):  # as in a new process
        monkeypatch.setattr(audio, known, {})
    server.kill()
    try:
        with pytest.raises(Unreachable):
            prepare([opened], [[]], workers=2)
    finally:
        server.start()
    assert not prepare([opened], [[]], workers=2)[0].failures


# --- one sentence --------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main([*command, "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1
    return said


def test_troubles_are_one_sentence(
    server: s3.Server, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = ["run", "--corpus", str(corpus), "--extractor", "mfcc", "--into", str(tmp_path / "run"), "--cache-dir"]
    assert "there is no bucket 'nobody'" in told(capsys, *measure, "s3://nobody/cache")
    assert "s3://bucket/none.npz does not exist" in told(capsys, "evaluate", "s3://bucket/none.npz")
    assert "s3://bucket/none does not exist" in told(
        capsys, "run", "--corpus", "s3://bucket/none", "--extractor", "mfcc", "--into", str(tmp_path / "x")
    )
    s3.point_at(monkeypatch, server.port, key="stranger")
    assert "may not be read" in told(capsys, "evaluate", "s3://bucket/none.npz")
    s3.point_at(monkeypatch, s3.free_port())
    monkeypatch.setenv("EARMARK_PATIENCE", "0.5")
    assert "cannot be reached" in told(capsys, *measure, "s3://fresh/cache")
    monkeypatch.setattr("earmark.places._requests._answered", set())
    with pytest.raises(InputError, match="cannot be reached"):
        locate("s3://bucket/x").exists()
