"""A real `earmark serve` in a process of its own, which a test may stop or kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TOKEN = re.compile(r"^    (em_\S+)$", re.MULTILINE)


@dataclass
class Serving:
    """The process, its address, and what it wrote to stderr so far."""

    process: subprocess.Popen[str]
    address: str
    log: Path

    def token(self) -> str:
        """The token of the first moderator, which a first start prints."""
        found = _TOKEN.search(self.log.read_text("utf-8"))
        assert found is not None, self.log.read_text("utf-8")
        return found[1]

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        self.process.send_signal(with_signal)
        return self.process.wait(30)


@contextmanager
def serving(folder: Path, *options: str, port: int = 0, verb: tuple[str, ...] = ("serve",)) -> Iterator[Serving]:
    """`earmark serve` on a free port (or a given one), ready when its address is printed."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"stderr-{len(list(folder.glob('stderr-*')))}.log"
    command = [sys.executable, "-m", "earmark", *verb, "--port", str(port), "--data", str(folder), *options]
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith(("EARMARK_BOARD", "EARMARK_DATABASE"))
    }
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True, env=environment)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), log.read_text("utf-8")
        yield Serving(process, address, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
