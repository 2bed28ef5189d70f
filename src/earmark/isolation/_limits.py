"""What a sealed cell may use, and how the process inside binds itself to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from earmark.errors import UsageError

_SPARE_THREADS = 32  # beside those that libraries are told to use: their helpers, and bubblewrap itself


@dataclass(frozen=True)
class Limits:
    """What one sealed cell may use while it lives. How long an answer may take is said with each question."""

    memory: int = 8 << 30  # bytes of address space
    cpu_seconds: int = 3600  # of all threads together
    threads: int = 1  # that libraries are told to use; a few more may exist
    files: int = 256  # open at a time
    file_bytes: int = 256 << 20  # of the longest file
    scratch: int = 512 << 20  # bytes in /tmp, and again in /dev/shm
    printed: int = 64 << 10  # bytes that are kept of what it prints

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = _LEAST.get(field.name, 1)
            if type(value) is not int or not least <= value < 1 << 62:
                raise UsageError(
                    f"The limit {field.name} of a sealed cell must be a whole number from {least}; it is {value!r}."
                )

    @classmethod
    def of(cls, values: dict[str, Any]) -> Limits:
        return cls(**values)

    def values(self) -> dict[str, int]:
        return asdict(self)


_LEAST = {"memory": 256 << 20, "files": 16, "scratch": 4096, "printed": 0}


def bind(limits: Limits) -> None:
    """Set the limits of this process, soft and hard: they cannot be raised again."""
    import resource

    for name, value in {
        "AS": limits.memory,
        "CORE": 0,
        "CPU": limits.cpu_seconds,
        "FSIZE": limits.file_bytes,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "NICE": 0,
        "NOFILE": limits.files,
        "NPROC": limits.threads + _SPARE_THREADS,
        "RTPRIO": 0,
        "SIGPENDING": 64,
    }.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        finite = hard != resource.RLIM_INFINITY
        soft = min(value, hard) if finite else value
        spare = name == "CPU" and not (finite and hard <= soft)  # a second between the signal that can be caught and
        resource.setrlimit(kind, (soft, soft + spare))  # the end that cannot
