"""Run by pytest on the pretended machine: the unit's board, with nginx or Caddy before it, as the world sees it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.board.hosted import document
from tests.deploy.pretended import CERTIFICATES, ENVIRONMENT_FILE, HOST
from tests.deploy.units import DEPLOY, Unit
from tests.deploy.walking import sign_in, walk

HOME = Path(os.environ["HOME"])
LOCAL = "http://127.0.0.1:8000"
NGINX = os.environ.get("EARMARK_TEST_NGINX", "/usr/sbin/nginx")
_TOKEN = re.compile(r"^    (em_\S+)$", re.MULTILINE)
_SECURITY = ("content-security-policy", "x-content-type-options", "x-frame-options", "strict-transport-security")


class Started:
    """A process that writes into a log."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as stream:
            told = {**os.environ, **(environment or {})}
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, env=told)

    def wait_for(self, answers: Callable[[], bool], seconds: float = 120) -> None:
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError, httpx.TransportError):
                if answers():
                    return
            assert self.process.poll() is None, self.log.read_text("utf-8")
            assert time.monotonic() < until, self.log.read_text("utf-8")
            time.sleep(0.1)


@contextmanager
def started_unit(**settings: str) -> Iterator[Started]:
    """The board as its unit says, with an environment file beside it; at the end SIGTERM, and ten seconds to go."""
    ENVIRONMENT_FILE.write_text("".join(f"{name}={text}\n" for name, text in settings.items()), "utf-8")
    unit = Unit.read("earmark-board.service")
    board = Started(unit.confined(), HOME / "board.log", unit.environment)
    try:
        board.wait_for(lambda: httpx.get(f"{LOCAL}/readyz", timeout=30).status_code == 200)
        yield board
        for process in _started_by(board.process.pid):  # as systemd does it: all of them, not bubblewrap alone
            os.kill(process, signal.SIGTERM)
        assert board.process.wait(10) == 0, board.log.read_text("utf-8")
    finally:
        board.process.kill()


@contextmanager
def started_proxy(
    kind: str, sites: str = f"import {DEPLOY / 'Caddyfile'}\n", page: str = f"https://{HOST}/"
) -> Iterator[ssl.SSLContext]:
    """nginx as Debian starts it, or Caddy with its sites, once a page of the board is there (Caddy looks after its
    health first); and what trusts its certificate."""
    if kind == "nginx":
        proxy = Started([NGINX, "-c", "/etc/nginx/nginx.conf", "-g", "daemon off;"], HOME / "nginx.log")
        authority = CERTIFICATES / "fullchain.pem"
    else:
        # Certificates of its own making: the others come from the Internet.
        file = HOME / "Caddyfile"
        file.write_text(f"{{\n\tlocal_certs\n\tskip_install_trust\n\tadmin off\n}}\n{sites}", "utf-8")
        command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]
        proxy = Started(command, HOME / "caddy.log", {"XDG_DATA_HOME": str(HOME)})
        authority = HOME / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    try:
        proxy.wait_for(lambda: httpx.get(page, verify=_trust(authority), timeout=30).status_code < 500)
        trust = _trust(authority)
        os.environ["SSL_CERT_FILE"] = str(authority)
        yield trust
        proxy.process.terminate()
        assert proxy.process.wait(10) == 0, proxy.log.read_text("utf-8")
    finally:
        proxy.process.kill()


def _started_by(process: int) -> list[int]:
    """The processes that one has started, and those that they have."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text("utf-8")
    return [one for child in map(int, text.split()) for one in (child, *_started_by(child))]


def _trust(authority: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority))


def token_of(board: Started) -> str:
    found = _TOKEN.search(board.log.read_text("utf-8"))
    assert found is not None
    return found[1]


def check_submit(base: str, token: str, name: str, folder: Path, to: str = "") -> None:
    """`earmark submit` through the proxy, over https."""
    document(name).scores.write(folder / "scores.csv")
    told = ["submit", str(folder / "scores.csv"), "--board", "vocsim", "--to", base + to, "--yes", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "earmark", *told], capture_output=True, text=True, timeout=120,
        env={**os.environ, "EARMARK_TOKEN": token},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{base}/submissions/")


def check_bodies(client: httpx.Client, base: str, token: str) -> None:
    """The board says what is too large, the proxy what is far too large; packages of blind evaluation may be larger."""
    known = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    large = client.post(f"{base}/v1/submissions", content=b"x" * 8_300_000, headers=known)
    assert (large.status_code, large.headers["content-type"]) == (413, "application/problem+json")
    assert client.post(f"{base}/v1/submissions", content=b"x" * 12_000_000, headers=known).status_code == 413
    files = {"package": ("package.zip", b"x" * 12_000_000, "application/zip")}
    package = client.post(
        f"{base}/v1/blind/jobs",
        data={"board": "vocsim"},
        files=files,
        headers={"Authorization": known["Authorization"]},
    )
    assert package.headers["content-type"] == "application/problem+json", package.text
    assert package.status_code != 413, package.text


def check_askers(base: str, trust: ssl.SSLContext, addresses: tuple[str, str]) -> None:
    """Who guesses tokens is slowed down by the address that the proxy saw, whatever the request itself claims."""
    guesser, other = (
        httpx.Client(verify=trust, transport=httpx.HTTPTransport(verify=trust, local_address=address))
        for address in addresses
    )
    with guesser, other:
        guessed = {"Authorization": "Bearer em_wrong"}
        claims = ({**guessed, "X-Forwarded-For": f"192.0.2.{number}"} for number in range(60))
        answers = [guesser.get(f"{base}/v1/me", headers=headers).status_code for headers in claims]
        assert set(answers) == {401, 429}
        assert other.get(f"{base}/v1/me", headers=guessed).status_code == 401


def test_own_host(tmp_path: Path) -> None:
    with started_unit(EARMARK_BOARD_BLIND="1") as board:
        check_own_host(board, "nginx", tmp_path)
        check_own_host(board, "caddy", tmp_path)


def check_own_host(board: Started, kind: str, folder: Path) -> None:
    base, token = f"https://{HOST}", token_of(board)
    with started_proxy(kind) as trust, httpx.Client(verify=trust, timeout=60) as client:
        moved = client.get(f"http://{HOST}/b/vocsim?metric=P%401")
        assert (moved.status_code, moved.headers["location"]) == (308, f"{base}/b/vocsim?metric=P%401")
        page = client.get(f"{base}/b/vocsim")
        assert page.status_code == 200
        assert {name: len(page.headers.get_list(name)) for name in _SECURITY} == dict.fromkeys(_SECURITY, 1)
        assert f"{base}/b/vocsim/s/ewmtf-d100" in client.get(f"{base}/b/vocsim/s/ewmtf-d100.bib").text
        assert client.get(f"{base}/metrics").status_code == 404
        assert b"requests" in httpx.get(f"{LOCAL}/metrics").content
        assert http_version(trust) == "h2"
        client.follow_redirects = True
        sign_in(client, base, token)
        assert all(cookie.secure for cookie in client.cookies.jar)
        assert len(client.cookies) == 2
        check_bodies(client, base, token)
        askers = ("127.0.1.1", "127.0.1.2") if kind == "nginx" else ("127.0.2.1", "127.0.2.2")
        check_askers(base, trust, askers)
        check_submit(base, token, kind, folder)
    assert f'"client": "{askers[0]}"' in board.log.read_text("utf-8")
    assert "192.0.2." not in board.log.read_text("utf-8")


def http_version(trust: ssl.SSLContext) -> str | None:
    """What the proxy and a browser of today agree on."""
    trust.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection((HOST, 443), 10) as plain,
        trust.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        agreed = connection.selected_alpn_protocol()
    trust.set_alpn_protocols(["http/1.1"])
    return agreed


_OTHER_SITE = """server {{
    listen 443 ssl;
    server_name {host};
    ssl_certificate {certificates}/fullchain.pem;
    ssl_certificate_key {certificates}/privkey.pem;
    location / {{
        return 200 "another site";
    }}
    {board}
}}
"""
_TAKEN_AWAY = """location /leaderboard/ {
        proxy_pass http://127.0.0.1:8000/;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
    }"""


_WITH_CADDY = f"""{HOST} {{
	import {DEPLOY / "Caddyfile-path"}
	respond "another site"
}}
"""


def test_under_path(tmp_path: Path) -> None:
    base = f"https://{HOST}/leaderboard"
    file = HOME / "made" / "conf.d" / "earmark-board.conf"
    proxies = (("nginx", f"include {DEPLOY / 'nginx-path.conf'};"), ("nginx", _TAKEN_AWAY), ("caddy", _WITH_CADDY))
    with started_unit(EARMARK_BOARD_URL=base, EARMARK_BOARD_BLIND="1") as board:
        token = token_of(board)
        for number, (kind, inside) in enumerate(proxies):
            if kind == "nginx":
                file.write_text(_OTHER_SITE.format(host=HOST, certificates=CERTIFICATES, board=inside), "utf-8")
            running = started_proxy(kind, inside, f"{base}/readyz")
            with running as trust, httpx.Client(verify=trust, timeout=60) as client:
                assert client.get(f"https://{HOST}/").text == "another site"
                moved = client.get(base)
                assert moved.status_code in (301, 308)
                assert moved.headers["location"] == f"{base}/"
                client.follow_redirects = True
                sign_in(client, base, token)
                names = {f"__Host-earmark_{purpose}_leaderboard" for purpose in ("session", "visit")}
                assert {cookie.name for cookie in client.cookies.jar if cookie.secure} == names
                check_submit(base, token, f"under a path {number}", tmp_path, "/b/vocsim")
                if inside == _TAKEN_AWAY:  # with the path, test_under_path.py walks
                    read = walk(client, base)
                    assert (read.outside, read.broken) == ([], [])
                    assert len(read.pages) > 60
                else:
                    assert client.get(f"{base}/metrics").status_code == 404
                    check_bodies(client, base, token)
                    check_askers(base, trust, (f"127.0.{3 + number}.1", f"127.0.{3 + number}.2"))
