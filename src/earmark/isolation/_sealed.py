"""Sealed cells: for code of strangers beside data that they may not have.

    part         what it is
    bubblewrap   the program that makes the mounts and namespaces
    namespaces   user, pid, ipc, uts, net (and cgroup): no network, no other process, nobody's number
    privileges   no capabilities, and no way to new ones
    seccomp      an allow-list of system calls: no sockets, no new processes, no programs
    landlock     an allow-list of files, once more, by the kernel
    limits       memory, processor, threads, open files, lengths of files
    not-root     the owner is an ordinary user: what leaks has an ordinary user's rights

A cell sees Python, its packages, the system's libraries, what is `readable`, an empty /tmp and /dev/shm, all but those
two read only; no /etc but what the loader needs, no home, no /sys, no devices but /dev/null and its like.
Where a part is missing the cell does not start, unless the host allows that part by name.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import earmark
from earmark.errors import UsageError
from earmark.isolation import _landlock, _seccomp
from earmark.isolation._bounds import PROGRAM, is_inside, present
from earmark.isolation._cell import Cell, CellDied, CellOverdue, Launch
from earmark.isolation._limits import Limits
from earmark.isolation._messages import Message
from earmark.isolation._processes import pipe_with

PARTS = ("bubblewrap", "namespaces", "privileges", "seccomp", "landlock", "limits", "not-root")
PROFILE_COMMAND = (
    "copy deploy/apparmor/earmark-bwrap to /etc/apparmor.d and run apparmor_parser -r /etc/apparmor.d/earmark-bwrap"
)

_LIBRARIES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib32", "/lib64", "/nix/store")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self/maps", "/proc/self/status")  # that libraries read
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from earmark.isolation._seal import start; start()"
)
_NOBODY = "65534"
_PACKAGE = Path(earmark.__file__).parent


def sealed(
    function: str,
    *,
    readable: Iterable[str | os.PathLike[str]] = (),
    limits: Limits | None = None,
    allowed: Iterable[str] = frozenset(),
) -> Cell:
    """A cell that is sealed in every part, for a function named as `module:function`.

    Args:
        function: what answers, of a Message to a Message; imported inside, from a folder that it may read.
        readable: files and folders that it may read beside Python and its packages.
        limits: what it may use.
        allowed: names of parts that may be missing; those that are there are used all the same.

    Raises UsageError where a part is missing that is not allowed to be, and says the remedy.
    """
    granted = frozenset(allowed)
    if unknown := sorted(granted - set(PARTS)):
        raise UsageError(f"There is no part {unknown[0]!r} of a sealed cell: the parts are {', '.join(PARTS)}.")
    missing = missing_parts()
    if refused := [part for part in PARTS if part in missing and part not in granted]:
        reasons = "; ".join(f"{part}: {missing[part]}" for part in refused)
        raise UsageError(
            f"A sealed cell cannot be had here. {reasons}. A host who accepts that allows the missing part by name: "
            f"{', '.join(refused)}."
        )
    paths = tuple(os.fspath(path) for path in readable)
    if absent := [path for path in paths if not Path(path).exists()]:
        raise UsageError(f"{absent[0]} is not there, so that a sealed cell cannot be given it to read.")
    return Cell(function, seal=Seal(paths, limits or Limits(), frozenset(missing)))


class Seal:
    """How the process of a sealed cell is started."""

    def __init__(self, readable: tuple[str, ...], limits: Limits, missing: frozenset[str] = frozenset()) -> None:
        self.readable, self.limits, self.missing = readable, limits, missing

    @property
    def printed(self) -> int:
        return self.limits.printed

    @property
    def confined(self) -> bool:
        return not self.missing & {"bubblewrap", "namespaces"}

    def launch(self) -> Launch:
        """The command, with the descriptors that it inherits."""
        folder = "" if self.confined else tempfile.mkdtemp(prefix="earmark-cell-")
        scratch = folder or "/tmp"
        visible = self.visible()
        path = [
            entry for entry in present(sys.path)
            if entry == str(_PACKAGE.parent) or any(is_inside(entry, root) for root in visible)
        ]  # fmt: skip
        given = {
            "path": path,
            "parts": sorted({"seccomp", "landlock", "limits"} - self.missing),
            "limits": self.limits.values(),
            "readable": [*visible, *_FACTS, *_DEVICES],
            "writable": [scratch, "/dev/null", *(() if folder else ("/dev/shm",))],
        }
        command = [_interpreter(), "-I", "-B", "-S", "-c", _START, json.dumps(given)]
        options: dict[str, Any] = {"env": self._environment(scratch, visible), "cwd": "/"}
        if not self.confined:
            return Launch(command, path, {**options, "cwd": folder, "start_new_session": True}, folder=folder)
        arguments = pipe_with(b"".join(argument.encode() + b"\0" for argument in self._arguments(visible)))
        fds = [arguments]
        prefix = [str(shutil.which(PROGRAM)), "--args", str(arguments)]
        known = _seccomp.architecture()
        if "seccomp" not in self.missing and known is not None:
            fds.append(pipe_with(_seccomp.filter_program(known)))
            prefix += ["--seccomp", str(fds[-1])]
        return Launch([*prefix, *command], path, options, tuple(fds), watched=True)

    def visible(self) -> list[str]:
        """Files and folders that are read: libraries, Python, its packages, and what the owner names."""
        return present([*_LIBRARIES, *_LOADER, *_python(), *self.readable])

    def _arguments(self, visible: list[str]) -> list[str]:
        given = [
            "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "cell", "--proc", "/proc", "--remount-ro", "/proc",
            "--size", "65536", "--perms", "0755", "--tmpfs", "/dev",
        ]  # fmt: skip
        for device in present(_DEVICES):
            given += ["--dev-bind", device, device]
        for folder in ("/tmp", "/dev/shm"):
            given += ["--size", str(self.limits.scratch), "--perms", "0700", "--tmpfs", folder]
        for path in sorted(visible, key=lambda path: (path.count("/"), path)):
            if path in _LIBRARIES and Path(path).is_symlink():
                given += ["--symlink", str(Path(path).readlink()), path]
            else:
                given += ["--ro-bind", path, path]
        return [*given, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]

    def _environment(self, scratch: str, visible: list[str]) -> dict[str, str]:
        """Nothing of the owner's but where libraries lie that the cell sees anyway."""
        threads = str(self.limits.threads)
        libraries = [
            entry for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":")
            if entry and any(is_inside(entry, root) for root in visible)
        ]  # fmt: skip
        # Memory of one clip is kept for the next, instead of being given back and taken again page by page.
        kept = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
        return {
            **kept,
            **{f"{name}_NUM_THREADS": threads for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")},
            **({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}),
            "HF_HUB_OFFLINE": "1", "HOME": scratch, "LANG": "C.UTF-8", "LOGNAME": "nobody", "MALLOC_ARENA_MAX": "2",
            "NUMBA_CACHE_DIR": scratch, "PATH": "", "TMPDIR": scratch, "USER": "nobody", "XDG_CACHE_HOME": scratch,
        }  # fmt: skip


def _interpreter() -> str:
    """Python itself, not the link to it in an environment: packages are found by the path that the cell is given."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _python() -> list[str]:
    """Where Python, its packages and this one lie; no other folder of `sys.path`, which may be the current one."""
    standard, base = str(sysconfig.get_path("stdlib")), Path(sys.base_prefix)
    libraries = [] if str(base) in ("/usr", "/usr/local") else [str(base / "lib")]
    packages = [
        entry for entry in sys.path
        if Path(entry).name in ("site-packages", "dist-packages")
        and any(is_inside(entry, root) for root in (sys.prefix, sys.base_prefix, standard, "/usr/lib"))
    ]  # fmt: skip
    return [_interpreter(), standard, *libraries, *packages, str(_PACKAGE)]


def missing_parts() -> dict[str, str]:
    """Parts of a sealed cell that cannot be had on this machine, each with the reason and the remedy.

    They are found by sealing a cell and asking Earmark's own code inside what it sees, once in a process.
    """
    return dict(found_missing())


@functools.cache
def found_missing() -> dict[str, str]:
    """See `missing_parts`."""
    if sys.platform != "linux":
        return dict.fromkeys(PARTS, "sealed cells need Linux; run the worker there")
    missing = {}
    if os.geteuid() == 0:
        missing["not-root"] = (
            "this process runs as root, and so does what is inside for the kernel; run it as an ordinary user"
        )
    if _seccomp.architecture() is None:
        missing["seccomp"] = f"the system calls of {os.uname().machine} are not known here; x86_64 and aarch64 are"
    elif not Path("/proc/sys/kernel/seccomp/actions_avail").exists():
        missing["seccomp"] = "this kernel has no filter of system calls; take one with CONFIG_SECCOMP_FILTER"
    if not _landlock.version():
        missing["landlock"] = (
            "this kernel has no Landlock or does not switch it on; take Linux 5.13 or later, with landlock in lsm="
        )
    if shutil.which(PROGRAM) is None:
        missing["bubblewrap"] = "the program bwrap is not installed; on Debian and Ubuntu: apt-get install bubblewrap"
        missing["namespaces"] = "bubblewrap makes them"
    else:
        found, said = _found(frozenset(missing))
        if found is None:
            missing["namespaces"] = f"bubblewrap is not allowed to make them ({said}); {_namespaces_remedy()}"
        else:
            missing |= _lacking(found, frozenset(missing))
            return missing
    found, said = _found(frozenset(missing))
    if found is None:
        return dict.fromkeys(PARTS, f"a process that closes itself off does not start here ({said})") | missing
    return missing | _lacking(found, frozenset(missing))


def _found(missing: frozenset[str]) -> tuple[dict[str, Any] | None, str]:
    """What a cell without the missing parts sees of itself; None and what it said where it does not start."""
    with Cell("earmark.isolation._evidence:answer", seal=Seal((), _TRIAL, missing)) as cell:
        try:
            return dict(cell.call(Message({}), 60.0, 0).head), ""
        except (CellDied, CellOverdue) as error:
            said = " ".join(cell.printed.split())[-200:]
            return None, said or str(error)


_TRIAL = Limits(cpu_seconds=30, files=64)


def _lacking(found: dict[str, Any], missing: frozenset[str]) -> dict[str, str]:
    """Parts that were asked for and are not in force."""
    status, did = found["status"], set(found["did"])
    lacking = {}
    own = {name: str(Path("/proc/self/ns", name).readlink()) for name in found["namespaces"]}
    shared = [name for name, number in found["namespaces"].items() if own[name] == number]
    if "namespaces" not in missing and (shared or set(status["Uid"].split()) != {_NOBODY}):
        lacking["namespaces"] = f"namespaces are shared with this machine ({', '.join(shared) or 'user'})"
    if int(status["CapEff"] or "1", 16) or status["NoNewPrivs"] != "1":
        lacking["privileges"] = "the process inside keeps rights of an administrator; run it as an ordinary user"
    if "seccomp" not in missing and (status["Seccomp"] != "2" or did & {"socket", "process", "limits raised"}):
        lacking["seccomp"] = "the filter of system calls is not in force"
    if "landlock" not in missing and did & {"folders", "password file"}:
        lacking["landlock"] = "files that are not named can be read"
    wanted = {"AS": _TRIAL.memory, "CPU": _TRIAL.cpu_seconds, "FSIZE": _TRIAL.file_bytes, "NOFILE": _TRIAL.files}
    if any(found["limits"][name][0] > value for name, value in wanted.items()):
        lacking["limits"] = "the kernel does not take limits on memory, time and files"
    return lacking


def _namespaces_remedy() -> str:
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return f"this system wants an AppArmor profile for it: {PROFILE_COMMAND}"
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "switch them on for ordinary users: sysctl -w kernel.unprivileged_userns_clone=1"
    if _setting("user/max_user_namespaces") == "0":
        return "switch them on: sysctl -w user.max_user_namespaces=10000"
    return "in a container it needs a runtime that allows user namespaces, see the page on the sandbox"


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""
