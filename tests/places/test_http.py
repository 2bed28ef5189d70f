"""Files on a plain web server: one that knows no ranges, lists folders without sizes, and asks for keys."""

from __future__ import annotations

import base64
import functools
import io
import os
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.representations import sounds

from earmark import audio, places
from earmark.cli import main
from earmark.corpora.source import open_corpus
from earmark.errors import InputError, Unreachable, UsageError
from earmark.places import _keys, _streams, locate
from earmark.representations import run

SIGNATURE = "X-Amz-Credential=me&X-Amz-Expires=60&X-Amz-Signature=topsecret"


class Handler(SimpleHTTPRequestHandler):
    """As `python -m http.server`; /signed/ needs a signature, /private/ a password, /unlisted/ shows no listing."""

    asked: list[str]

    def send_head(self) -> Any:
        self.asked.append(f"{self.command} {self.path}")
        if self.path.startswith("/signed/") and "X-Amz-Signature=topsecret" not in self.path:
            return self.send_error(403)
        password = base64.b64encode(b"user:topsecret").decode()
        if self.path.startswith("/private/") and self.headers.get("Authorization") != f"Basic {password}":
            return self.send_error(401)
        return self.send_error(404) if self.path.rstrip("/") == "/unlisted" else super().send_head()

    def log_message(self, *_: Any) -> None: ...


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()
        handler = functools.partial(type("Asked", (Handler,), {"asked": self.asked}), directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    pytest.importorskip("aiohttp", reason="needs aiohttp, which comes with earmark[s3]")
    folder = tmp_path_factory.mktemp("site")
    for name in ("open", "signed", "private", "unlisted"):
        sounds.make_folder(folder / name, classes=2, per_class=3)
        values = np.random.default_rng(0).standard_normal((60, 300)).astype(np.float32)
        np.savez(folder / name / "v.npz", vectors=values, labels=[f"l{row % 3}" for row in range(60)])
        files = [f"class{kind}/clip{number}.wav,c{kind}" for kind in (0, 1) for number in range(3)]
        (folder / name / "m.csv").write_text("path,label\n" + "\n".join(files) + "\n")
    (folder / "open" / "a b.txt").write_text("x")
    site = Site(folder)
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def site(_site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", os.devnull)
    monkeypatch.setattr(_keys, "_given", {})
    _site.asked.clear()
    return _site


# --- no ranges -----------------------------------------------------------------------------------------------


def test_a_server_without_ranges_is_read_whole_and_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_streams, "FIRST_READ", 1000)
    monkeypatch.setattr(_streams, "BLOCK", 3000)
    data = (site.folder / "open" / "v.npz").read_bytes()
    file = locate(f"{site.url}/open/v.npz")
    with file.open("rb") as stream:
        stream.seek(-500, io.SEEK_END)
        assert stream.read() == data[-500:]
        for at in (0, 20_000, 7):
            stream.seek(at)
            assert stream.read(5000) == data[at : at + 5000]
        stream.seek(0)
        assert stream.read() == data
    assert site.asked.count("GET /open/v.npz") == 1
    assert file.read_bytes() == data
    assert places.read_heads([file], [10]) == [data[:10]]


def test_a_change_of_equal_length_is_seen(site: Site) -> None:
    file, here = locate(f"{site.url}/changing"), site.folder / "changing"
    here.write_bytes(b"a" * 10)
    os.utime(here, (1e9, 1e9))
    before = file.stat()
    here.write_bytes(b"b" * 10)
    after = file.stat()
    assert before.st_size == after.st_size
    assert before != after


# --- listings without sizes ----------------------------------------------------------------------------------


def test_listings_without_sizes(site: Site) -> None:
    folder = locate(f"{site.url}/open")
    assert folder.is_dir()
    assert not (folder / "m.csv").is_dir()
    sizes = {file.name: file.stat().st_size for file in (site.folder / "open").iterdir() if file.is_file()}
    assert {name.replace("%20", " "): size for name, size in places.sizes_in(folder).items()} == sizes
    names = [f"{site.url}/{name}" for name in ("open/m.csv", "open/a b.txt", "open/no", "unlisted/v.npz", "signed/no")]
    with pytest.raises(InputError, match="may not be read"):
        places.which_exist(names)
    assert list(places.which_exist(names[:4]).values()) == [True, True, False, True]


def test_corpora_on_a_web_server(site: Site) -> None:
    for spec in ("open", "open/m.csv", "unlisted/m.csv"):
        corpus = open_corpus(f"{site.url}/{spec}")
        assert len(corpus.clips) == 6
        assert len(audio.file_digest(corpus.clips[0].path or "")) == 64
        assert {clip.label for clip in corpus.clips} in ({"class0", "class1"}, {"c0", "c1"})


def test_a_silent_server_is_no_missing_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.s3 import free_port

    monkeypatch.setenv("EARMARK_PATIENCE", "0.2")
    with pytest.raises(Unreachable):
        locate(f"http://127.0.0.1:{free_port()}/x").exists()
    assert not locate(f"{site.url}/open/none").exists()


# --- keys in addresses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["http://user:topsecret@h/x", "https://topsecret@h/x", "sftp://me:topsecret@h/x", "s3://id:topsecret@bucket/x",
     "simplecache::https://me:topsecret@h/x?a=1", "zip://a.csv::ftp://me:topsecret@h/x", Path("http://u:topsecret@h/x"),
     "s3://bucket/x?X-Amz-Signature=topsecret"],
)  # fmt: skip
def test_a_password_is_refused(url: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"its address carries a .*environment") as told:
        locate(url)
    assert "topsecret" not in str(told.value)
    with pytest.raises(UsageError, match="its address carries a") as refused:
        run({"corpus": url, "extractors": "mfcc", "into": str(tmp_path / "run")})
    assert "topsecret" not in str(refused.value)
    assert main(["evaluate", "labels.csv", str(url)]) == 1
    assert "topsecret" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "as_shown"),
    [
        ("sftp://me@h/x", "sftp://me@h/x"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfs://container@account.dfs.core.windows.net/x"),
        ("s3://bucket/a@b:c/what?.csv", "s3://bucket/a@b:c/what?.csv"),
        ("https://h/x.npz?download=1", "https://h/x.npz?download=1"),
        (f"https://h/x.npz?{SIGNATURE}", "https://h/x.npz"),
        (f"https://h/x.npz?versionId=7&{SIGNATURE}", "https://h/x.npz?versionId=7"),
        ("https://a.blob.core.windows.net/c/x.npz?sv=1&se=2&sr=b&sp=r&sig=a/b", "https://a.blob.core.windows.net/c/x.npz"),
        ("https://h//get?file=x.npz&access_token=t", "https://h/get?file=x.npz"),
    ],
)  # fmt: skip
def test_what_is_shown_of_an_address(url: str, as_shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_keys, "_given", {})
    path = locate(url)
    assert str(path) == as_shown
    assert _keys.as_given(str(path)) == url
    assert locate(str(path)) == path
    assert "?" not in path.suffix or not url.startswith("http")


def test_two_files_that_only_a_key_tells_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_keys, "_given", {})
    locate("https://h/get?token=one")
    with pytest.raises(InputError, match="https://h/get is given twice, with different keys"):
        locate("https://h/get?token=two")
    locate("https://h/x?X-Amz-Signature=one")
    locate("https://h/x?X-Amz-Signature=two")
    assert _keys.as_given("https://h/x").endswith("two")


def test_a_signature_reads_and_is_written_nowhere(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = f"{site.url}/signed/v.npz?{SIGNATURE}"
    assert main(["evaluate", vectors, "--metrics", "P@1", "--out", str(tmp_path / "ev.csv")]) == 0
    assert f"{site.url}/signed/v.npz" in (tmp_path / "ev.csv").read_text()
    files = [f"{site.url}/signed/class{kind}/clip{number}.wav" for kind in (0, 1) for number in range(3)]
    lines = [f"{file}?{SIGNATURE},{file[-11]}" for file in files]
    (site.folder / "signed" / "list.csv").write_text("path,label\n" + "\n".join(lines) + "\n")
    given = {"corpus": f"{site.url}/signed/list.csv?{SIGNATURE}", "into": str(tmp_path / "run")}
    extractors = [{"name": "bands", "spec": sounds.BANDS}]
    run({**given, "extractors": extractors, "steps": ["prepare", "embed"], "cache": str(tmp_path / "cache")})
    assert main(["evaluate", f"{site.url}/signed/none.npz?{SIGNATURE}"]) == 1
    told = "".join(capsys.readouterr())
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 5
    assert not any(b"topsecret" in text or b"X-Amz" in text for text in [*written, told.encode()])


def test_an_old_signature_and_a_password_from_a_file(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"signed/v.npz may not be read .*check the keys \(~/.netrc, or the signature"):
        locate(f"{site.url}/signed/v.npz?X-Amz-Signature=old").read_bytes()
    with pytest.raises(InputError, match=r"private/m.csv may not be read"):
        locate(f"{site.url}/private/m.csv").exists()
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login user password topsecret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert locate(f"{site.url}/private/m.csv").read_text().startswith("path,label")
