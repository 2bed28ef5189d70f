"""The kernel's wider doors are shut, and what is shut stays shut."""

from __future__ import annotations

import errno
import platform
import signal

import pytest
from tests.blind.red_team.cells import attempt, attempts, sealed_cell, stopped

from earmark.isolation import CellDied
from earmark.isolation._seccomp import architecture

# Numbers on x86_64 and aarch64, with arguments that do no harm where the call is allowed.
DOORS = {
    "ptrace": (101, 117, [16, 0, 0, 0]),
    "mount": (165, 40, [0, 0, 0, 0, 0]),
    "umount2": (166, 39, [0, 0]),
    "pivot_root": (155, 41, [0, 0]),
    "chroot": (161, 51, [0]),
    "open_tree": (428, 428, [-1, 0, 0xFFFF]),
    "fsopen": (430, 430, [0, 0xFFFF]),
    "move_mount": (429, 429, [-1, 0, -1, 0, 0xFFFF]),
    "unshare": (272, 97, [0x10000000]),
    "setns": (308, 268, [-1, 0]),
    "keyctl": (250, 219, [0, -3, 0]),
    "add_key": (248, 217, [0, 0, 0, 0, 0]),
    "request_key": (249, 218, [0, 0, 0, 0]),
    "bpf": (321, 280, [999, 0, 0]),
    "io_uring_setup": (425, 425, [0, 0]),
    "userfaultfd": (323, 282, [0xFFFF]),
    "perf_event_open": (298, 241, [0, 0, 0, 0, 0]),
    "memfd_create": (319, 279, [0, 0]),
    "memfd_secret": (447, 447, [0xFFFF]),
    "process_vm_writev": (311, 271, [0, 0, 0, 0, 0, 0]),
    "process_madvise": (440, 440, [-1, 0, 0, 0, 0]),
    "pidfd_open": (434, 434, [0, 0]),
    "kcmp": (312, 272, [0, 0, 0, 0, 0]),
    "open_by_handle_at": (304, 265, [-1, 0, 0]),
    "name_to_handle_at": (303, 264, [-1, 0, 0, 0, 0xFFFF]),
    "fanotify_init": (300, 262, [0xFFFFFF, 0]),
    "inotify_init1": (294, 26, [1]),
    "init_module": (175, 105, [0, 0, 0]),
    "finit_module": (313, 273, [-1, 0, 0]),
    "delete_module": (176, 106, [0, 0]),
    "kexec_load": (246, 104, [0, 99, 0, 0]),
    "swapon": (167, 224, [0, 0]),
    "syslog": (103, 116, [99, 0, 0]),
    "quotactl": (179, 60, [0, 0, 0, 0]),
    "shmget": (29, 194, [0, -1, 0]),
    "msgget": (68, 186, [-1, 0]),
    "semget": (64, 190, [0, -1, 0]),
    "mq_open": (240, 180, [0, 0, 0, 0]),
    "personality": (135, 92, [0xFFFFFFFF]),
    "setresuid": (117, 147, [-1, -1, -1]),
    "setgroups": (116, 159, [-1, 0]),
    "capset": (126, 91, [0, 0]),
    "clock_settime": (227, 112, [99, 0]),
    "settimeofday": (164, 170, [0, 0]),
    "mlock": (149, 228, [0, 0]),
    "mincore": (27, 232, [1, 0, 0]),  # which pages of a file lie in memory tells what others read
    "vmsplice": (278, 75, [-1, 0, 0, 0]),
    "io_setup": (206, 0, [0, 0]),
    "sched_setscheduler": (144, 119, [0, 99, 0]),
    "setpriority": (141, 140, [99, 0, 0]),
    "execveat": (322, 281, [-1, 0, 0, 0, 0]),
    "socket": (41, 198, [-1, 0, 0]),
    "socketpair": (53, 199, [-1, 0, 0, 0]),
    "prlimit64 to set": (302, 261, [0, 99, 1, 0]),
    "a process by clone": (56, 220, [0x00000100 | 0x10000000 | 0x00010000, 0, 0, 0, 0]),
    "landlock_create_ruleset": (444, 444, [0, 0, 1]),
    "seccomp": (317, 277, [99, 0, 0]),
}
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]


def test_system_calls_that_no_model_needs_are_refused(inside, outside):
    """Outside each of them gets as far as its arguments, which are wrong; inside it does not get that far."""
    calls = {name: {"do": "call", "number": row[COLUMN], "values": row[2]} for name, row in DOORS.items()}
    results = attempts(inside, calls)
    assert {name for name, result in results.items() if result.get("number") != errno.EPERM} == set()
    reached = attempts(outside, {name: given for name, given in calls.items() if name not in _HARMFUL})
    absent = {name for name, result in reached.items() if result.get("number") == errno.ENOSYS}  # not in this kernel
    far = {name for name, result in reached.items() if result.get("number") != errno.EPERM}
    assert len(far - absent) > 35, reached


_HARMFUL = {"unshare", "a process by clone"}  # these would succeed, or do something that lasts


def test_calls_that_are_younger_than_the_table_look_absent(inside):
    for number in (435, 452, 460, 500):  # clone3, and what came or may come later
        assert attempt(inside, "call", number=number, values=[0, 0, 0])["number"] == errno.ENOSYS


@pytest.mark.skipif(platform.machine() != "x86_64", reason="there are no other calls on this architecture")
@pytest.mark.parametrize(
    "code",
    ["b814000000cd80c3", "b8270000400f05c3"],
    ids=["32-bit getpid", "x32 getpid"],
)
def test_calls_of_another_architecture_end_the_process(code):
    with sealed_cell() as cell:
        assert attempt(cell, "machine_code", code="b8270000000f05c3")["got"] > 0  # getpid, in its own way
        with pytest.raises(CellDied, match=r"SIGSYS|SIGSEGV|SIGILL"):
            attempt(cell, "machine_code", code=code)


def test_what_was_given_up_does_not_come_back(inside):
    numbers = architecture().numbers
    prctl = numbers["prctl"]
    undo = {
        "dumps again": [prctl, 4, 1, 0, 0, 0],
        "no filter": [prctl, 22, 0, 0, 0, 0],
        "another filter": [prctl, 22, 2, 0, 0, 0],
        "new privileges": [prctl, 38, 0, 0, 0, 0],
        "ambient capabilities": [prctl, 47, 2, 21, 0, 0],
        "keep capabilities": [prctl, 8, 1, 0, 0, 0],
        "secure bits": [prctl, 28, 0, 0, 0, 0],
        "subreaper": [prctl, 36, 1, 0, 0, 0],
        "live on without the owner": [prctl, 1, 0, 0, 0, 0],
        "let everybody trace": [prctl, 0x59616D61, -1, 0, 0, 0],
    }
    results = attempts(
        inside, {name: {"do": "call", "number": row[0], "values": row[1:]} for name, row in undo.items()}
    )
    assert [name for name, result in results.items() if not stopped(result)] == []
    for name in ("AS", "CPU", "NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK"):
        assert stopped(attempt(inside, "raise_limit", name=name))


def test_a_terminal_cannot_be_typed_into(inside):
    ioctl = architecture().numbers["ioctl"]
    for command in (0x5412, 0x540E, 0x541C):  # TIOCSTI, TIOCSCTTY, TIOCLINUX
        assert attempt(inside, "call", number=ioctl, values=[0, command, 0])["number"] == errno.ENOTTY


def test_a_setuid_program_is_neither_seen_nor_run(inside):
    for path in ("/usr/bin/su", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/passwd", "/bin/sh"):
        assert stopped(attempt(inside, "open_device", path=path))
    assert attempt(inside, "spawn")["stopped"] == "PermissionError"


def test_it_ends_itself_by_a_signal_and_that_is_told():
    with sealed_cell() as cell, pytest.raises(CellDied, match="SIGABRT"):
        attempt(cell, "end_by", number=int(signal.SIGABRT))
