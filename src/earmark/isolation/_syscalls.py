"""System calls that a sealed cell may make, with their numbers; everything else is refused.

The numbers are facts of the kernel's interface (x86_64: asm/unistd_64.h; aarch64: asm-generic/unistd.h) and never
change. A dash stands for a call that the architecture does not have.
"""

from __future__ import annotations

from typing import NamedTuple

_ALLOWED = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, pwritev 296 70,
lseek 8 62, open 2 -, openat 257 56, creat 85 -, close 3 57, close_range 436 436, stat 4 -, lstat 6 -, fstat 5 80,
newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44, access 21 -, faccessat 269 48, faccessat2 439 439,
readlink 89 -, readlinkat 267 78, getcwd 79 17, chdir 80 49, fchdir 81 50, getdents 78 -, getdents64 217 61,
mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38,
renameat2 316 276, truncate 76 45, ftruncate 77 46, fallocate 285 47, fsync 74 82, fdatasync 75 83,
utimensat 280 88, chmod 90 -, fchmod 91 52, fchmodat 268 53, umask 95 166, flock 73 32,
getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10, listxattr 194 11, llistxattr 195 12, flistxattr 196 13,
dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72,
epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, eventfd2 290 19,
mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, brk 12 214, msync 26 227,
futex 202 98, futex_waitv 449 449, set_robust_list 273 99, get_robust_list 274 100, set_tid_address 218 96,
rseq 334 293, membarrier 324 283, wait4 61 260, exit 60 93, exit_group 231 94, restart_syscall 219 128,
gettid 186 178, getpid 39 172, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getresuid 118 148, getresgid 120 150, getgroups 115 158, getpgrp 111 -, getpgid 121 155, getsid 124 156,
getrlimit 97 163, getrusage 98 165, getpriority 140 141, times 100 153, time 201 -, gettimeofday 96 169,
clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115, nanosleep 35 101, uname 63 160,
sysinfo 99 179, getcpu 309 168, getrandom 318 278, sched_yield 24 124, sched_getaffinity 204 123,
sched_setaffinity 203 122, sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -, alarm 37 -,
getitimer 36 102, setitimer 38 103, arch_prctl 158 -
"""

_BY_ARGUMENT = """
clone 56 220, fcntl 72 25, ioctl 16 29, kill 62 129, madvise 28 233, prctl 157 167, prlimit64 302 261, tgkill 234 131
"""

_STARTING = """
execve 59 221, seccomp 317 277, landlock_create_ruleset 444 444, landlock_add_rule 445 445,
landlock_restrict_self 446 446
"""

_ABSENT = "clone3 435 435, fadvise64 221 223"


class Architecture(NamedTuple):
    """One architecture: the kernel's word for it, and the numbers of its calls by name."""

    audit: int
    numbers: dict[str, int]


def _numbers(text: str, column: int) -> dict[str, int]:
    rows = [entry.split() for entry in text.split(",")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


_TABLE = ",".join((_ALLOWED, _BY_ARGUMENT, _STARTING, _ABSENT))
ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, _numbers(_TABLE, 1)),
    "aarch64": Architecture(0xC00000B7, _numbers(_TABLE, 2)),
}

ALLOWED = frozenset(entry.split()[0] for entry in _ALLOWED.split(","))
"""Calls that are allowed whatever their arguments."""

STARTING = frozenset(entry.split()[0] for entry in _STARTING.split(","))
"""Calls that are allowed until the process inside has closed itself off: to start Python, and for that purpose."""

ABSENT = frozenset(entry.split()[0] for entry in _ABSENT.split(","))
"""Calls that look as if the kernel did not have them: the C library takes older ones, and what a process wants of the
cache of files, which all cells of a machine share, is nobody's business."""

NEWEST = 452
"""Calls from this number on are younger than the table: they too look as if the kernel did not have them."""

CLONE_THREAD = 0x0001_0000
CLONE_NEW = 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000
"""A thread of the same process, and any namespace of its own."""

FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""Commands: copies of descriptors, flags, locks on files, the size of a pipe (not to change it)."""

IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Commands: whether this is a terminal and how wide, how much can be read, flags of a descriptor."""

MADVISE = (0, 4, 8, 10, 14, 15)
"""Advice on a process's own memory: normal, not needed, free, not for forks, huge pages or none. None that fills or
empties the cache of files."""

PRCTL = (15, 16, 0x5356_4D41)
"""Commands: names of threads and of memory."""

PRCTL_STARTING = (1, 4, 22, 38)
"""Until it has closed itself off: end with the parent, no dumps, a filter, no new privileges."""
