"""A sealed cell has every part or does not start; where a part is allowed to be missing the others hold."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest
from tests.extractors import tiny_onnx

from earmark.errors import UsageError
from earmark.isolation import Cell, Limits, Message, _landlock, _sealed, _seccomp, missing_parts, sealed
from earmark.isolation import _syscalls as calls

FUNCTION = "tests.blind.red_team.attempts:answer"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh():
    """Parts are found once in the life of a process: here again, and afterwards again."""
    _sealed.found_missing.cache_clear()
    yield
    _sealed.found_missing.cache_clear()


def attempt(cell: Cell, do: str, **given: object) -> dict[str, object]:
    return dict(cell.call(Message({"do": do, **given}), 20.0).head["results"][do])


def test_every_part_is_there_on_the_machine_of_the_checks():
    assert set(missing_parts()) <= {"not-root"}
    missing_parts()["landlock"] = "changed by a caller"
    assert "landlock" not in missing_parts()


@pytest.mark.usefixtures("fresh")
def test_a_host_who_is_root_is_told_and_decides(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match=r"not-root: this process runs as root.*run it as an ordinary user") as told:
        sealed(FUNCTION)
    assert "allows the missing part by name: not-root" in str(told.value)
    sealed(FUNCTION, allowed={"not-root"}).close()


def test_an_unknown_part_is_not_allowed():
    with pytest.raises(UsageError, match="There is no part 'network' of a sealed cell: the parts are bubblewrap"):
        sealed(FUNCTION, allowed={"network"})


def test_what_is_to_be_read_must_be_there(tmp_path):
    with pytest.raises(UsageError, match="model is not there"):
        sealed(FUNCTION, readable=[tmp_path / "model"], allowed={"not-root"})


@pytest.mark.usefixtures("fresh")
def test_without_bubblewrap_it_does_not_start_and_the_other_parts_hold_where_that_is_allowed(monkeypatch, tmp_path):
    (tmp_path / "clip.wav").write_text("a voice")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"bubblewrap: the program bwrap is not installed.*apt-get install bubblewrap"):
        sealed(FUNCTION, allowed={"not-root"})
    allowed = {"bubblewrap", "namespaces", "privileges", "not-root"}
    with sealed(FUNCTION, readable=[ROOT], allowed=allowed, limits=Limits(memory=1 << 30)) as cell:
        assert "stopped" in attempt(cell, "read", path=str(tmp_path / "clip.wav"))
        assert "stopped" in attempt(cell, "read", path="/etc/passwd")
        assert "stopped" in attempt(cell, "write", path=str(tmp_path / "x"))
        assert attempt(cell, "fork")["stopped"] == "PermissionError"
        assert attempt(cell, "listen")["stopped"] == "PermissionError"
        assert attempt(cell, "allocate", size=2 << 30)["stopped"] == "MemoryError"
        assert "stopped" in attempt(cell, "send_signal", process=os.getpid())
        home = attempt(cell, "environment")["got"]["HOME"]
        assert "got" in attempt(cell, "write", path=f"{home}/x")
    assert not Path(home).exists()


@pytest.mark.usefixtures("fresh")
def test_without_landlock_the_mounts_hold(monkeypatch, tmp_path):
    (tmp_path / "clip.wav").write_text("a voice")
    monkeypatch.setattr(_landlock, "version", lambda: 0)
    with pytest.raises(UsageError, match=r"landlock: this kernel has no Landlock.*5\.13"):
        sealed(FUNCTION, allowed={"not-root"})
    with sealed(FUNCTION, readable=[ROOT], allowed={"landlock", "not-root"}) as cell:
        for path in (str(tmp_path / "clip.wav"), "/etc/passwd", "/root/.bashrc"):
            assert "stopped" in attempt(cell, "read", path=path)
        for path in ("/x", "/dev/x", "/usr/lib/x", "/proc/sys/vm/swappiness", str(ROOT / "x")):
            assert "stopped" in attempt(cell, "write", path=path)


@pytest.mark.usefixtures("fresh")
def test_on_another_architecture_seccomp_is_missing(monkeypatch):
    monkeypatch.setattr(_seccomp, "architecture", lambda: None)
    with pytest.raises(UsageError, match=r"seccomp: the system calls of .* are not known here; x86_64 and aarch64 are"):
        sealed(FUNCTION, allowed={"not-root"})


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns 1", "apparmor_parser -r /etc/apparmor.d/earmark-bwrap"),
        ("kernel/unprivileged_userns_clone 0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces 0", "sysctl -w user.max_user_namespaces"),
        ("none 0", "user namespaces"),
    ],
)
def test_bubblewrap_that_may_make_no_namespaces_comes_with_the_remedy(monkeypatch, tmp_path, setting, remedy):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    name, value = setting.split()
    monkeypatch.setattr(_sealed, "_setting", lambda asked: value if asked == name else "")
    reason = missing_parts()["namespaces"]
    assert "setting up uid map: Permission denied" in reason
    assert remedy in reason


def test_the_profile_for_apparmor_is_shipped_where_the_remedy_says():
    profile = (ROOT / "deploy/apparmor/earmark-bwrap").read_text()
    assert "deploy/apparmor/earmark-bwrap" in _sealed.PROFILE_COMMAND
    assert "profile earmark-bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n" in profile


@pytest.mark.parametrize("library", ["torch", "onnxruntime", "numba", "scipy"])
def test_libraries_work_inside(library, tmp_path):
    pytest.importorskip(library)
    results = {"torch": 8 * 98 + 257 * 126, "onnxruntime": 200.0, "numba": 1000.0, "scipy": 100.0}
    file = tiny_onnx.write(
        tmp_path / "double.onnx",
        [tiny_onnx.node("Add", ["audio", "audio"], ["twice"])],
        {"audio": ["samples"]},
        {"twice": ["samples"]},
        {},
    )
    with sealed(
        "tests.isolation.inside:answer", readable=[ROOT, tmp_path], limits=Limits(threads=2), allowed={"not-root"}
    ) as cell:
        reply = cell.call(Message({"do": "work", "library": library, "file": str(file)}), 120.0)
    assert reply.head["result"] == results[library]


# --- the filter, interpreted ------------------------------------------------------------------------------------------

ALLOWED, KILLED = "allowed", "killed"


def decide(program: bytes, audit: int, number: int, *arguments: int) -> str:
    """What the kernel would do: a small interpreter of the packet filter's instructions that are used."""
    given = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, audit, 0, *(value & (1 << 64) - 1 for value in given))
    place, register = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("<HBBI", program, 8 * place)
        place += 1
        match code:
            case 0x20:
                (register,) = struct.unpack_from("<I", data, value)
            case 0x15:
                place += yes if register == value else no
            case 0x35:
                place += yes if register >= value else no
            case 0x45:
                place += yes if register & value else no
            case 0x06:
                names = {0x7FFF0000: ALLOWED, 0x80000000: KILLED}
                return names.get(value) or errno.errorcode[value & 0xFFFF]
            case _:
                raise AssertionError(f"instruction {code:#x} is not used")


@pytest.mark.parametrize("name", calls.ARCHITECTURES)
@pytest.mark.parametrize("starting", [True, False])
def test_the_filter_allows_what_its_table_says_and_nothing_else(name, starting):
    known = calls.ARCHITECTURES[name]
    program = _seccomp.filter_program(known, process=None if starting else 2)
    assert len(program) // 8 < 4096  # what the kernel takes
    plain = calls.ALLOWED | (calls.STARTING if starting else frozenset())
    names = {number: call for call, number in known.numbers.items()}
    for number in range(600):
        decided = decide(program, known.audit, number, 1 << 40, 1 << 20)
        call = names.get(number)
        if call in plain:
            assert decided == ALLOWED, call
        elif call in ("prlimit64", "madvise") or (starting and call in ("kill", "tgkill")):
            assert decided == ALLOWED  # with these arguments: see below
        else:
            assert decided.startswith("E"), (number, call)
    others = {architecture.audit for architecture in calls.ARCHITECTURES.values()} - {known.audit}
    for audit in (*others, 0x40000003, 0x40000028, 0):  # i386, arm
        assert decide(program, audit, known.numbers["read"]) == KILLED
    assert decide(program, known.audit, 0x40000000 | known.numbers["read"]) == KILLED
    assert decide(program, known.audit, 0xFFFFFFFF) == KILLED


@pytest.mark.parametrize("name", calls.ARCHITECTURES)
def test_the_filter_looks_at_arguments(name):
    known = calls.ARCHITECTURES[name]
    program = _seccomp.filter_program(known, process=2)

    def asked(call: str, *arguments: int) -> str:
        return decide(program, known.audit, known.numbers[call], *arguments)

    thread = 0x3D0F00  # what the C library asks for a thread
    assert asked("clone", thread) == ALLOWED
    for flags in (0x11, 0x4111, 0x01200011, thread & ~calls.CLONE_THREAD):
        assert asked("clone", flags) == "EPERM"
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert asked("clone", thread | bit) == "EPERM"
    assert asked("clone3") == "ENOSYS"
    assert asked("prlimit64", 0, 7, 0, 1234) == ALLOWED
    assert asked("prlimit64", 0, 7, 1234) == "EPERM"
    assert asked("prlimit64", 0, 7, 1 << 32) == "EPERM"  # an address whose lower half is zero
    assert asked("prlimit64", 1, 7, 0) == "EPERM"
    assert asked("ioctl", 0, 0x5401) == ALLOWED
    assert asked("ioctl", 0, 0x5412) == "ENOTTY"
    assert asked("fcntl", 0, 1031) == "EPERM"  # a larger pipe
    for call in ("kill", "tgkill"):
        assert asked(call, 2) == ALLOWED  # itself
        for process in (0, 1, 3, -1, -2):
            assert asked(call, process) == "EPERM"
    assert asked("madvise", 4096, 4096, 4) == ALLOWED  # not needed
    for advice in (3, 5, 20, 21, 22, 23):  # what fills or empties the cache of files
        assert asked("madvise", 4096, 4096, advice) == "EINVAL"
    assert asked("fadvise64", 3, 0, 0, 4) == "ENOSYS"
    assert asked("prctl", 15) == ALLOWED
    assert asked("prctl", 4, 1) == "EINVAL"
