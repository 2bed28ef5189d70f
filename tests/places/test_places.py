"""Paths and URLs by one name: the verbs of a path, streams that are read in ranges, and troubles told in a sentence."""

from __future__ import annotations

import contextlib
import errno
import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from earmark import atomic, places
from earmark.errors import InputError, MissingExtra, Unreachable
from earmark.places import RemotePath, _requests, _streams, is_url, locate


@pytest.fixture
def memory() -> Iterator[Path]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield locate("memory://room")
    fs.store.clear()


@pytest.mark.parametrize(
    "name", ["a/b.csv", "/tmp/x", "C:\\x", "~/x", "hub:owner/name", "mypackage:birds", "~nobody.npy", "."]
)
def test_what_is_no_url_stays_the_path_it_was(name: str) -> None:
    assert not is_url(name)
    assert locate(name) == Path(name)
    assert locate(Path(name)) == Path(name)


def test_urls_of_this_machine_are_paths() -> None:
    assert locate("file:///tmp/x") == Path("/tmp/x")
    assert not is_url("file:///tmp/x")


@pytest.mark.parametrize("name", ["s3://bucket/a/b.tar.gz", Path("s3://bucket/a/b.tar.gz"), "s3://bucket/a/b.tar.gz/"])
def test_a_url_has_the_parts_of_a_path(name: Any) -> None:
    path = locate(name)
    assert isinstance(path, RemotePath)
    assert (str(path), path.name, path.suffix, path.stem) == ("s3://bucket/a/b.tar.gz", "b.tar.gz", ".gz", "b.tar")
    assert str(path.parent / "../c.csv") == "s3://bucket/c.csv"
    assert str(path.parent.parent.parent) == "s3://bucket"
    assert path.parent / "/tmp/x" == Path("/tmp/x")
    assert str(path / "s3://other/x") == str(Path("here") / locate("s3://other/x")) == "s3://other/x"
    assert path.relative_to(locate("s3://bucket")).parts == ("a", "b.tar.gz")
    assert not path.is_relative_to(locate("s3://bucke"))
    assert path == locate(str(path))
    assert path.with_suffix(".bz2").name == "b.tar.bz2"


def test_files_elsewhere_are_written_whole_and_listed(memory: Path) -> None:
    assert not memory.exists()
    atomic.write_whole(memory / "a" / "one.txt", "grün\r\n".encode())
    with atomic.replacing(memory / "two.bin") as part:
        part.write_bytes(b"2" * 10)
    with contextlib.suppress(RuntimeError), atomic.replacing(memory / "never.bin") as part:
        part.write_bytes(b"half")
        raise RuntimeError
    assert (memory / "a/one.txt").read_text("utf-8") == "grün\n"
    assert (memory / "a").is_dir()
    assert (memory / "two.bin").is_file()
    assert (memory / "two.bin").stat().st_size == 10
    assert not (memory / "never.bin").exists()
    assert places.sizes_in(memory) == {"two.bin": 10}
    assert places.sizes_in(memory / "nowhere") == {}
    assert [str(file) for file in locate("memory://room").tree] == ["memory://room/a/one.txt", "memory://room/two.bin"]  # type: ignore[attr-defined]
    names = [str(memory / "two.bin"), str(memory / "none"), str(memory / "a/one.txt"), __file__, "/nowhere"]
    assert places.which_exist(names) == dict(zip(names, [True, False, True, True, False], strict=True))
    (memory / "two.bin").unlink()
    (memory / "two.bin").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        (memory / "two.bin").unlink()
    with pytest.raises(io.UnsupportedOperation):
        (memory / "a/one.txt").open("w")


def test_a_stream_reads_what_the_file_holds_from_anywhere(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_streams, "FIRST_READ", 100)
    monkeypatch.setattr(_streams, "BLOCK", 300)
    monkeypatch.setattr(_streams, "WINDOW", 1000)
    data = random.Random(1).randbytes(20_000)
    (memory / "data").write_bytes(data)
    rng = random.Random(2)
    told: list[tuple[int, int]] = []
    token = _streams.following.set(lambda _, done, whole: told.append((done, whole)))
    try:
        with (memory / "data").open("rb") as stream:
            for _ in range(200):
                whence = rng.choice([io.SEEK_SET, io.SEEK_CUR, io.SEEK_END])
                at = stream.seek(rng.randrange(-200 if whence else 0, 25_000 if not whence else 200), whence)
                size = rng.choice([0, 1, 7, 500, 5000])
                assert stream.read(size) == data[at : at + size]
            stream.seek(0)
            assert stream.read() == data
            assert stream.read(5) == b""
    finally:
        _streams.following.reset(token)
    assert told[-1][1] == len(data)
    (memory / "lines").write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    with (memory / "lines").open(encoding="utf-8-sig") as lines:
        assert list(lines) == ["a,b\n", "1,2\n"]
    with (memory / "lines").open(encoding="utf-8-sig", newline="") as lines:
        assert list(lines) == ["a,b\r\n", "1,2\r\n"]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 12_345])
def test_every_size_is_read_whole(memory: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earmark.places._remote._WHOLE", 1000)
    monkeypatch.setattr("earmark.places._remote.BLOCK", 700)
    monkeypatch.setattr("earmark.places._remote.WINDOW", 2100)
    data = random.Random(size).randbytes(size)
    (memory / "data").write_bytes(data)
    assert (memory / "data").read_bytes() == data
    with (memory / "data").open("rb") as stream:
        assert stream.read() == data


def test_a_file_that_changes_while_it_is_read_is_refused(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_streams, "FIRST_READ", 100)
    (memory / "data").write_bytes(b"a" * 1000)
    stream = (memory / "data").open("rb")
    stream.read(10)
    (memory / "data").write_bytes(b"b" * 700)
    with pytest.raises(InputError, match="changed while it was read"):
        stream.read()
    (memory / "data").write_bytes(b"a" * 1000)
    with pytest.raises(InputError, match="changed while it was read"):
        _read_across_a_change(memory / "data")


def _read_across_a_change(file: Path) -> None:
    with file.open("rb") as stream:
        stream.read(10)
        file.write_bytes(b"b" * 1000)
        stream.read()


# --- troubles ------------------------------------------------------------------------------------------------


def failing(*errors: BaseException) -> Any:
    waiting = list(errors)

    def call() -> str:
        if waiting:
            raise waiting.pop(0)
        return "done"

    return call


def by_status(status: int, code: str = "") -> OSError:
    """An error as s3fs makes it of an answer of a server."""
    cause: Any = RuntimeError()
    cause.response = {"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Code": code or str(status)}}
    error = OSError(errno.EIO, f"status {status}")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError(), TimeoutError(), OSError(errno.EBUSY, "slow down"), EOFError(), by_status(500),
     by_status(502), by_status(503, "SlowDown"), by_status(429), by_status(400, "IncompleteBody")],
)  # fmt: skip
def test_what_may_pass_is_asked_again(error: Exception) -> None:
    assert _requests.persist(failing(error, error), "s3://b/x") == "done"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError("Access Denied"), r"s3://b/x may not be written \(Access Denied\): check the keys"),
        (FileNotFoundError("The specified bucket does not exist"), "there is no bucket 'b'; make it"),
        (by_status(400, "InvalidArgument"), "s3://b/x cannot be written"),
        (type("NoCredentialsError", (Exception,), {})("Unable to locate credentials"), "s3://b/x needs credentials"),
        (ValueError("odd"), "s3://b/x cannot be written"),
    ],
)
def test_what_lasts_is_one_sentence_at_once(error: Exception, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_requests.time, "sleep", lambda _: pytest.fail("it waited"))
    with pytest.raises(InputError, match=told):
        _requests.persist(failing(error), "s3://b/x", doing="write")


def test_what_a_path_would_raise_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (FileNotFoundError("s3://b/x"), OSError(errno.ENOSPC, "No space left on device")):
        with pytest.raises(type(error)) as raised:
            _requests.persist(failing(error), "s3://b/x")
        assert raised.value is error


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(_requests.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(_requests.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(_requests, "_answered", set())
    broken = failing(*[ConnectionRefusedError("refused")] * 1000)
    with pytest.raises(Unreachable, match=r"cannot be reached \(refused; tried for \d s\).*what is done stays"):
        _requests.persist(broken, "s3://b/x")
    assert now[0] <= _requests.FIRST
    _requests.persist(failing(), "s3://b/y")  # it answers: from now on there is more patience with that bucket
    now[0] = 0.0
    with pytest.raises(Unreachable):
        _requests.persist(broken, "s3://b/x")
    assert _requests.FIRST < now[0] <= _requests.PATIENCE
    monkeypatch.setenv("EARMARK_PATIENCE", "soon")
    with pytest.raises(InputError, match="EARMARK_PATIENCE is 'soon'"):
        _requests.persist(broken, "s3://b/x")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.core

    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("Install gcsfs to access Google Storage")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingExtra, match=r'need `pip install "earmark\[s3\]"`'):
        locate("s3://bucket/x").exists()
    with pytest.raises(InputError, match="Install gcsfs to access Google Storage"):
        locate("gs://bucket/x").exists()
