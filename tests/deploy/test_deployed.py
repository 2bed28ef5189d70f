"""The files of `deploy`, run: systemd's units as far as they go without systemd, nginx, Caddy, the container's command.

On a pretended machine (`tests.deploy.pretended`) the unchanged files stand where they stand on a real one; what is
checked there is in `on_the_machine.py`, which pytest runs inside. EARMARK_TEST_NGINX names another nginx to try.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.deploy.pretended import bubblewrap, missing
from tests.deploy.units import DEPLOY, ROOT, Unit
from tests.s3 import free_port

from earmark.cli import parser_of

_INSIDE = Path(__file__).with_name("on_the_machine.py")


@pytest.fixture(scope="module")
def machine() -> None:
    if why := missing():
        pytest.skip(why)


@pytest.mark.usefixtures("machine")
def test_the_board_behind_nginx_and_caddy(tmp_path: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "--import-mode=importlib"]
    command = [*bubblewrap(tmp_path), sys.executable, "-m", "pytest", *options, str(_INSIDE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=_plain_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed; scripts/services install does")
    for unit in sorted(DEPLOY.glob("*.service")):
        # What is not installed on this machine is no fault of the file.
        text = unit.read_text("utf-8").replace("/opt/earmark/bin/earmark", "/bin/true")
        (tmp_path / unit.name).write_text(text, "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *sorted(map(str, tmp_path.glob("*.service")))],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Unknown" not in done.stderr
    assert "earmark" not in done.stderr, done.stderr


def test_the_worker_of_the_unit_is_a_command_that_exists() -> None:
    program, verb, *words = Unit.read("earmark-blind-worker.service").command
    parser, _ = parser_of(verb)
    assert program == "/opt/earmark/bin/earmark"
    assert parser.parse_args(words).token_file == "worker.token"


def test_the_command_and_the_health_check_of_the_container_work(tmp_path: Path) -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", "")
    command, health = (json.loads(found) for found in _commands(text))
    variables = dict(re.findall(r"(EARMARK_BOARD|NUMBA_CACHE_DIR)=(\S+)", text))
    assert variables["EARMARK_BOARD"] == "/data"
    port = str(free_port())
    environment = _plain_environment() | {
        key: place.replace("/data", str(tmp_path)) for key, place in variables.items()
    }
    assert command[0] == "earmark"
    words = [port if word == "8000" else word for word in command[1:]]
    with subprocess.Popen([sys.executable, "-m", "earmark", *words, "--empty"], env=environment) as process:
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/readyz")
            assert health[0] == "python"
            check = [sys.executable, *(word.replace("8000", port) for word in health[1:])]
            assert subprocess.run(check, timeout=30).returncode == 0
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert subprocess.run(check, timeout=30, capture_output=True).returncode != 0
        finally:
            process.kill()
    assert list(tmp_path.glob("*.sqlite3"))


def _commands(text: str) -> tuple[str, str]:
    """The command of a Containerfile and that of its health check."""
    health = re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", text, re.MULTILINE)
    command = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert health is not None
    assert command is not None
    return command[1], health[1]


def _plain_environment() -> dict[str, str]:
    own = ("EARMARK_BOARD", "EARMARK_DATABASE", "EARMARK_TOKEN", "PYTEST_")
    return {name: text for name, text in os.environ.items() if not name.startswith(own)} | {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"
    }


def _wait_until_ready(address: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                assert answer.read() == b"ok\n"
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
