"""What a stranger may try inside of a sealed cell. Each attempt returns what it got, or raises what stopped it.

The same functions run in a cell that is not confined at all, where they succeed: a case that could not succeed anywhere
would show nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.blind.red_team.replies import REPLIES

from earmark.isolation import Message


def answer(message: Message) -> Message:
    """Do one attempt, or several under names; say for each what was got or what stopped it."""
    given = dict(message.head)
    name = given.pop("do")
    if name == "several":
        return Message({"results": {label: _tried(**attempt) for label, attempt in given["attempts"].items()}})
    if name == "reply":
        return REPLIES[given["kind"]](message)
    return Message({"results": {name: _tried(name, **given)}})


def _tried(do: str, **given: Any) -> dict[str, Any]:
    try:
        return {"got": ATTEMPTS[do](**given)}
    except Exception as error:
        return {"stopped": type(error).__name__, "number": getattr(error, "errno", None), "words": str(error)[:200]}


# --- the network ------------------------------------------------------------------------------------------------------


def tcp(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        connection.sendall(b"clip")
        return "connected"


def udp(port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"clip", ("127.0.0.1", port))
        return "sent"


def resolve() -> str:
    return str(socket.getaddrinfo("localhost", 80)[0][4][0])


def unix(address: str) -> str:
    """The address of an abstract socket begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect("\0" + address[1:] if address.startswith("@") else address)
        connection.sendall(b"clip")
        return "connected"


def listen() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        return "listening"


def make_socket(family: int, kind: int) -> str:
    socket.socket(family, kind).close()
    return "made"


def socket_pair() -> str:
    for end in socket.socketpair():
        end.close()
    return "made"


# --- files ------------------------------------------------------------------------------------------------------------


def read(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(200).decode(errors="replace")


def read_all(path: str) -> str:
    return Path(path).read_text()


def look(path: str) -> list[str]:
    return sorted(os.listdir(path))[:5]  # noqa: PTH208 - as a stranger would


def environment() -> dict[str, str]:
    return dict(os.environ)


def write(path: str, text: str = "taken") -> str:
    Path(path).write_text(text)
    return "written"


def write_back(path: str) -> str:
    """Write what stands there: harmless where it succeeds."""
    text = Path(path).read_text()
    Path(path).write_text(text)
    return "written"


def remove(path: str) -> str:
    Path(path).unlink()
    return "removed"


def change_mode(path: str) -> str:
    Path(path).chmod(0o777)
    return "changed"


def symbolic_link(target: str, link: str) -> str:
    Path(link).symlink_to(target)
    return read(link)


def hard_link(target: str, link: str) -> str:
    Path(link).hardlink_to(target)
    return read(link)


def pipe_file(path: str) -> str:
    os.mkfifo(path)
    return "made"


def device_file(path: str) -> str:
    """A device like /dev/null, and a write to it."""
    os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
    return "made"


def open_device(path: str) -> str:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return "opened"


def descriptors() -> list[str]:
    found = []
    for number in range(256):
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")  # noqa: PTH115
    return found


# --- processes --------------------------------------------------------------------------------------------------------


def parent_memory(process: int, address: int, size: int) -> str:
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size).decode()


def parent_memory_by_call(process: int, address: int, size: int) -> str:
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(size)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    there = (ctypes.c_size_t * 2)(address, size)
    if library.process_vm_readv(process, here, ctypes.c_ulong(1), there, ctypes.c_ulong(1), ctypes.c_ulong(0)) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
    return buffer.raw.decode()


def processes(numbers: list[int]) -> list[int]:
    """Those of the numbers that are there, although the folder cannot be listed."""
    return [number for number in numbers if Path(f"/proc/{number}").exists()]


def send_signal(process: int, number: int = 0) -> str:
    os.kill(process, number)
    return "sent"


def fork() -> str:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "forked"


def fork_bomb() -> int:
    """As many processes as possible; each waits."""
    children = []
    try:
        while len(children) < 50:
            child = os.fork()
            if child == 0:
                time.sleep(30)
                os._exit(0)
            children.append(child)
    except OSError:
        if not children:
            raise
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return len(children)


def left_behind(file: str) -> str:
    """A process that outlives its parent in a session of its own, and goes on writing."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3):
                os.close(fd)
            for _ in range(100):
                Path(file).write_text(str(os.getpid()))
                time.sleep(0.1)
        os._exit(0)
    os.waitpid(child, 0)
    return "left"


def spawn() -> str:
    return str(os.posix_spawn("/proc/self/exe", [sys.executable, "-c", "pass"], {}))


def replace() -> str:
    os.execv(os.path.realpath("/proc/self/exe"), [sys.executable, "-c", "import time; time.sleep(100)"])


def new_session() -> str:
    os.setsid()
    return "made"


def threads(most: int) -> int:
    """As many threads as possible, up to a number; how many there were."""
    release = threading.Event()
    started: list[threading.Thread] = []
    try:
        while len(started) < most:
            thread = threading.Thread(target=release.wait, daemon=True)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError):
        pass
    finally:
        release.set()
    for thread in started:
        thread.join()
    return len(started)


# --- the kernel -------------------------------------------------------------------------------------------------------


def call(number: int, *arguments: int, **given: Any) -> int:
    """A system call by its number, with arguments that do no harm where it is allowed."""
    values = [*arguments, *given.get("values", ())]
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    result = int(library.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in values)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def machine_code(code: str) -> int:
    """Run instructions given as hexadecimal digits."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex(code))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return int(ctypes.CFUNCTYPE(ctypes.c_long)(address)())


def raise_limit(name: str) -> str:
    kind = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard + 1, hard + 1))
    return "raised"


# --- what it uses -----------------------------------------------------------------------------------------------------


def allocate(size: int) -> int:
    data = bytearray(size)
    for place in range(0, size, 4096):
        data[place] = 1
    return len(data)


def allocate_pieces(size: int) -> int:
    pieces = []
    while len(pieces) << 20 < size:
        pieces.append(b"x" * (1 << 20))
    return len(pieces) << 20


def fill(folder: str, size: int) -> int:
    """Files of a mebibyte until no more can be written; their sum."""
    written = 0
    try:
        while written < size:
            with Path(folder, f"{written}").open("wb") as file:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        if not written:
            raise
        return -written if error.errno in (28, 12) else written
    finally:
        for file_name in os.listdir(folder):  # noqa: PTH208
            with contextlib.suppress(OSError):
                Path(folder, file_name).unlink()
    return written


def long_file(path: str, size: int) -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Path(path).open("wb") as file:
            file.truncate(size)
        return Path(path).stat().st_size
    finally:
        Path(path).unlink(missing_ok=True)


def open_files(most: int) -> int:
    opened: list[int] = []
    try:
        while len(opened) < most:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    finally:
        for fd in opened:
            os.close(fd)
    return len(opened)


def loop() -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


def sleep() -> str:
    time.sleep(1000)
    return "slept"


def end_by(number: int) -> str:
    os.kill(os.getpid(), number)
    time.sleep(10)
    return "went on"


def stop_later() -> str:
    """Answer, and read nothing any more."""

    def stop_soon() -> None:
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGSTOP)

    threading.Thread(target=stop_soon, daemon=True).start()
    return "soon"


def stop() -> str:
    os.kill(os.getpid(), signal.SIGSTOP)
    return "went on"


def crash() -> str:
    return ctypes.string_at(0).decode()


def print_much(number: int, size: int) -> int:
    chunk = b"clip" * (1 << 18)
    left = size
    while left > 0:
        left -= os.write(number, chunk[:left])
    return size


ATTEMPTS: dict[str, Callable[..., Any]] = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", "") == __name__ and not name.startswith("_") and name != "answer"
}
