"""A sealed cell reads what it was given, writes its own scratch, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.blind.red_team.cells import attempt, attempts, sealed_cell, stopped

import earmark


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blind-data")
    (folder / "clip.wav").write_text("a voice")
    return folder


def test_the_data_folder_is_not_there_by_any_path(inside, outside, data):
    file = data / "clip.wav"
    ways = {
        "plain": str(file),
        "root of the process": f"/proc/self/root{file}",
        "root of the first process": f"/proc/1/root{file}",
        "root of the owner": f"/proc/{os.getpid()}/root{file}",
        "folder of the owner": f"/proc/{os.getpid()}/cwd",
        "upwards": f"/tmp/../..{file}",
        "old root": f"/oldroot{file}",
    }
    results = attempts(inside, {way: {"do": "read", "path": path} for way, path in ways.items()})
    assert all(map(stopped, results.values())), results
    assert attempt(outside, "read", path=str(file))["got"] == "a voice"
    assert stopped(attempt(inside, "look", path=str(data)))
    assert stopped(attempt(inside, "look", path=str(data.parent)))


def test_a_link_inside_of_what_is_readable_does_not_lead_out(data, tmp_path):
    (tmp_path / "link").symlink_to(data / "clip.wav")
    (tmp_path / "own").write_text("own")
    with sealed_cell([tmp_path]) as cell:
        assert attempt(cell, "read", path=str(tmp_path / "own"))["got"] == "own"
        assert stopped(attempt(cell, "read", path=str(tmp_path / "link")))


@pytest.mark.parametrize("do", ["symbolic_link", "hard_link"])
def test_no_link_out_can_be_made(inside, outside, data, tmp_path, do):
    file = str(data / "clip.wav")
    assert stopped(attempt(inside, do, target=file, link="/tmp/link"))
    assert stopped(attempt(inside, do, target="/etc/passwd", link="/dev/shm/link"))
    assert attempt(outside, do, target=file, link=str(tmp_path / do))["got"] == "a voice"


def test_nothing_of_the_host_is_read(inside, outside):
    paths = [
        "/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/machine-id", "/etc/hostname", "/root/.bashrc",
        "/proc/self/mountinfo", "/proc/self/environ", "/proc/1/environ", "/proc/1/cmdline", "/proc/kallsyms",
        "/proc/kcore", "/proc/keys", "/proc/loadavg", "/proc/cmdline", "/proc/net/tcp", "/sys/kernel/uevent_seqnum",
    ]  # fmt: skip
    results = attempts(inside, {path: {"do": "read", "path": path} for path in paths})
    assert [path for path, result in results.items() if not stopped(result)] == []
    assert "root" in attempt(outside, "read", path="/etc/passwd")["got"]
    assert not stopped(attempt(outside, "read", path="/proc/self/mountinfo"))
    folders = ["/", "/etc", "/home", "/root", "/var", "/sys", "/proc", "/usr/bin", "/usr/share", "/mnt", "/run"]
    results = attempts(inside, {path: {"do": "look", "path": path} for path in folders})
    assert [path for path, result in results.items() if not stopped(result)] == []


def test_the_environment_says_nothing_of_the_owner(monkeypatch):
    monkeypatch.setenv("EARMARK_TOKEN", "a secret")
    monkeypatch.setenv("OMP_SECRET", "a secret")  # begins like a setting of a library
    monkeypatch.setenv("PYTHONSTARTUP", "a secret")
    with sealed_cell() as cell:
        known = attempt(cell, "environment")["got"]
    assert "a secret" not in known.values()
    assert not any(str(Path.home()) in value or str(Path.cwd()) in value for value in known.values())
    assert known["USER"] == "nobody"


def test_the_current_folder_is_not_seen_although_python_may_import_from_it(data, monkeypatch):
    monkeypatch.chdir(data)
    monkeypatch.syspath_prepend(str(data))
    with sealed_cell() as cell:
        assert stopped(attempt(cell, "read", path=str(data / "clip.wav")))
        assert stopped(attempt(cell, "look", path=str(data)))


def test_it_writes_nowhere_but_in_its_scratch(inside, outside, tmp_path):
    package = Path(earmark.__file__).parent
    places = [
        "/x", "/usr/lib/x", "/etc/x", "/etc/ld.so.cache", "/dev/x", "/dev/random", "/proc/x", "/run/x", "/var/tmp/x",
        "/root/x", str(package / "x.py"), str(package / "__init__.py"), str(Path(__file__).parent / "x.py"),
        str(tmp_path / "x"), str(Path(os.__file__).parent / "x.py"),
    ]  # fmt: skip
    results = attempts(inside, {path: {"do": "write", "path": path} for path in places})
    assert [path for path, result in results.items() if not stopped(result)] == []
    assert not any(Path(path).exists() for path in places if path.endswith(("/x", "/x.py")))
    for path in (f"/tmp/{tmp_path.name}-{os.getpid()}", f"/dev/shm/{tmp_path.name}-{os.getpid()}"):
        assert not stopped(attempt(inside, "write", path=path))
        assert not Path(path).exists()
    assert not stopped(attempt(outside, "write", path=str(tmp_path / "x")))


def test_it_changes_nothing_of_what_it_reads(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("weights")
    before = (model / "weights").stat().st_mode
    with sealed_cell([model]) as cell:
        for do in ("write", "remove", "change_mode"):
            assert stopped(attempt(cell, do, path=str(model / "weights")))
    assert (model / "weights").read_text() == "weights"
    assert (model / "weights").stat().st_mode == before


def test_no_setting_of_the_kernel_is_written(inside, outside):
    settings = ["/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj"]
    results = attempts(inside, {path: {"do": "write_back", "path": path} for path in settings})
    assert [path for path, result in results.items() if not stopped(result)] == []
    assert not stopped(attempt(outside, "write_back", path="/proc/self/oom_score_adj"))


def test_there_is_no_device(inside, outside):
    devices = ["/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/tty", "/dev/ptmx", "/dev/nvidia0",
               "/dev/nvidiactl", "/dev/dri", "/dev/vda", "/dev/sda", "/dev/loop0", "/dev/net/tun"]  # fmt: skip
    results = attempts(inside, {path: {"do": "open_device", "path": path} for path in devices})
    assert [path for path, result in results.items() if not stopped(result)] == []
    assert not stopped(attempt(outside, "open_device", path="/dev/null"))
    for do in ("device_file", "pipe_file"):
        assert stopped(attempt(inside, do, path="/tmp/made"))


def test_it_inherits_three_pipes_and_nothing_else(tmp_path):
    with (tmp_path / "open.txt").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with sealed_cell() as cell:
            found = attempt(cell, "descriptors")["got"]
    assert len(found) <= 5
    assert not any("open.txt" in entry for entry in found), found
    assert {entry.split()[1].split(":")[0] for entry in found} <= {"pipe", "/dev/null"}
