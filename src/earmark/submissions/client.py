"""Talk to a board from elsewhere, with the standard library alone.

    board = BoardClient("https://board.example.org", token)
    receipt = board.submit(document.to_bytes())
    print(receipt.permalink, receipt.state)

A submission carries a key of its own. When the connection breaks or the board is being restarted, the same request is
sent again with the same key until an answer comes, and the board stores it once. So it is with packages for blind
evaluation, and with everything that the host's worker says: each may be said twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import ipaddress
import json
import random
import secrets
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.atomic import replacing
from earmark.definitions import Definition, from_plain
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.progress import Progress, progress_bar
from earmark.submissions._problems import Problem

_AGAIN = (429, 502, 503, 504)
_MOST_READ = 20_000_000
_LONGEST_PAUSE = 8.0
_PIECE = 256 * 1024


class Receipt(NamedTuple):
    """What the board answered to a submission."""

    id: str
    board: str
    state: str
    systems: tuple[str, ...]
    rows: int
    notes: tuple[str, ...]
    permalink: str


class BoardRefusal(EarmarkError):
    """The board said no: its sentence, its status, and everything that it found wrong."""

    def __init__(self, status: int, detail: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(f"The board answered {status}: {detail}")
        self.status = status
        self.problems = problems


@dataclass(frozen=True)
class BoardClient:
    """One board at one address. `patience` is how many seconds a lost or restarting board is asked again."""

    address: str
    token: str = field(default="", repr=False)
    timeout: float = 60.0
    patience: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", checked_address(self.address))
        if any(not "!" <= mark <= "~" for mark in self.token):
            raise UsageError("The token holds a space or a strange character; copy it again.")

    def validate(self, document: bytes) -> dict[str, Any]:
        """What the board's rules say of a document, which it does not store."""
        verdict = self._ask("POST", "/v1/submissions/validate", document)
        if not isinstance(verdict.get("problems"), list):
            raise self._stranger()
        return verdict

    def submit(self, document: bytes, key: str = "") -> Receipt:
        """Send a document, again if need be, and have it stored once. Equal keys mean the same submission."""
        more = {"Idempotency-Key": key or secrets.token_hex(16)}
        return self._receipt(self._ask("POST", "/v1/submissions", document, more))

    def submission(self, submission: str) -> Receipt:
        """What became of a submission."""
        return self._receipt(self._ask("GET", "/v1/submissions/" + urllib.parse.quote(submission, safe="")))

    def definition(self, board: str) -> Definition | None:
        """What a board is, as its host says; None where there is no such board, or it says nothing."""
        try:
            return from_plain(self._ask("GET", f"/v1/boards/{urllib.parse.quote(board, safe='')}/definition"))
        except (BoardRefusal, UsageError):
            return None

    def find(self, board: str, digest: str) -> Receipt | None:
        """Your newest submission of a document that is pending or accepted, among the last hundred."""
        name = self._ask("GET", "/v1/me").get("name", "")
        query = urllib.parse.urlencode({"owner": name, "board": board, "limit": 100})
        listed = self._ask("GET", f"/v1/submissions?{query}").get("items")
        if not isinstance(listed, list):
            raise self._stranger()
        for sent in listed:
            if isinstance(sent, dict) and sent.get("digest") == digest and sent.get("state") in ("pending", "accepted"):
                return self._receipt(sent)
        return None

    # --- blind evaluation: participants ------------------------------------------------------------------------------

    def send_package(self, path: Path, board: str, *, progress: Progress = False) -> dict[str, Any]:
        """Send a package, a zip archive, for blind evaluation; its job. The same package again is the same job."""
        self.jobs(1)  # a wrong token or a board without blind evaluation is told before anything large is sent
        return self._ask("POST", "/v1/blind/jobs", _Form(path, board, progress))

    def job(self, job: str) -> dict[str, Any]:
        """Where a job stands, and what became of it."""
        return self._ask("GET", _job_path(job))

    def jobs(self, limit: int = 200) -> list[dict[str, Any]]:
        """The newest jobs of the token's user and their team; of a moderator all, of a worker those that wait."""
        listed = self._ask("GET", f"/v1/blind/jobs?limit={limit}").get("items")
        if not isinstance(listed, list):
            raise self._stranger()
        return listed

    def withdraw_job(self, job: str) -> dict[str, Any]:
        """Take a package back, before its figures are released."""
        return self._ask("POST", _job_path(job, "withdraw"), b"")

    # --- blind evaluation: the host's worker; 409 says that a lease is over, 410 that a job was withdrawn ------------

    def announce_sets(self, board: str, sets: Sequence[Mapping[str, Any]], policy: Mapping[str, Any]) -> dict[str, Any]:
        """Say which blind sets are measured on a board, and by which policy."""
        return self._tell("PUT", "/v1/blind/sets", board=board, sets=[dict(each) for each in sets], policy=dict(policy))

    def claim_job(self, worker: str) -> dict[str, Any] | None:
        """The next job, or the one that this worker has already, with its lease; None when nothing waits."""
        return self._tell("POST", "/v1/blind/jobs/claim", worker=worker) or None

    def fetch_package(self, job: str, lease: str, target: Path, digest: str) -> None:
        """Write the package of a job to a file, whole or not at all; `digest` is the SHA-256 that the claim told."""
        query = urllib.parse.urlencode({"lease": lease})
        with replacing(target) as part:
            self._ask("GET", f"{_job_path(job, 'package')}?{query}", into=part)
            with part.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != digest:
                raise InputError(f"The package of the job {job} has the SHA-256 {found}, not {digest} as was told.")

    def report_progress(self, job: str, lease: str, phase: str, tenths: int) -> dict[str, Any]:
        """Say how far a job is, and keep its lease."""
        return self._tell("POST", _job_path(job, "progress"), lease=lease, phase=phase, tenths=tenths)

    def hold_job(self, job: str, lease: str, message: str = "") -> dict[str, Any]:
        """Say that a job is measured, and what its figures wait for."""
        return self._tell("POST", _job_path(job, "held"), lease=lease, message=message)

    def fail_job(
        self, job: str, lease: str, blame: str, message: str, log: str = "", refused: bool = False
    ) -> dict[str, Any]:
        """End a job that cannot be measured: `blame` is model or infrastructure."""
        told = {"lease": lease, "blame": blame, "message": message, "log": log, "refused": refused}
        return self._tell("POST", _job_path(job, "fail"), **told)

    def release_job(self, job: str, entry: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
        """Put the figures of a job on the board, with the public part of their audit entry."""
        return self._tell("POST", _job_path(job, "release"), entry=dict(entry), document=dict(document))

    def withdraw_release(self, job: str, reason: str) -> dict[str, Any]:
        """Take the figures of a job back, or keep them from leaving."""
        place = urllib.parse.quote(job, safe="")
        return self._tell("POST", f"/v1/blind/releases/{place}/withdraw", reason=reason)

    def _tell(self, method: str, path: str, **told: Any) -> dict[str, Any]:
        return self._ask(method, path, json.dumps(told, allow_nan=False).encode())

    # --- requests ----------------------------------------------------------------------------------------------------

    def _receipt(self, plain: Mapping[str, Any]) -> Receipt:
        try:
            number, board, state, permalink = (str(plain[name]) for name in ("id", "board", "state", "permalink"))
            systems, notes = (tuple(map(str, plain[name])) for name in ("systems", "notes"))
            return Receipt(number, board, state, systems, int(plain["rows"]), notes, permalink)
        except (KeyError, TypeError, ValueError) as error:
            raise self._stranger() from error

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | _Form | None = None,
        more: Mapping[str, str] | None = None,
        into: Path | None = None,
    ) -> dict[str, Any]:
        """Ask until an answer comes or patience ends; every request here may be sent twice without harm.

        What comes with `into` is written there; nothing comes as an empty answer.
        """
        until = time.monotonic() + self.patience
        pause = 0.25
        while True:
            try:
                return self._once(method, path, body, more or {}, into)
            except BoardRefusal as refusal:
                if refusal.status not in _AGAIN or time.monotonic() + pause > until:
                    raise
            except (OSError, http.client.HTTPException) as error:
                # What another minute does not change: a name that nobody has, a certificate that is not the board's.
                lasting = isinstance(getattr(error, "reason", None), socket.gaierror | ssl.SSLCertVerificationError)
                if lasting or time.monotonic() + pause > until:
                    why = getattr(error, "reason", None) or error
                    raise InputError(
                        f"{self.address} does not answer ({why}); check the address and try again."
                    ) from error
            self.sleep(pause * random.uniform(0.7, 1.3))  # so that many who wait do not come back at once
            pause = min(_LONGEST_PAUSE, 2 * pause)

    def _once(
        self, method: str, path: str, body: bytes | _Form | None, more: Mapping[str, str], into: Path | None
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": f"earmark/{__version__}", **more}
        if isinstance(body, _Form):
            headers |= {"Content-Type": body.media_type, "Content-Length": str(body.length)}
        elif body is not None:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        sent = body.parts() if isinstance(body, _Form) else body
        request = urllib.request.Request(self.address + path, data=sent, headers=headers, method=method)
        try:
            with _OPENER.open(request, timeout=self.timeout) as answer:
                if into is not None:
                    _write_to(answer, into)
                    return {}
                if answer.status == 204:
                    return {}
                data = answer.read(_MOST_READ)
                if answer.length:  # `read` with a limit does not tell when a connection broke
                    raise http.client.IncompleteRead(data, answer.length)
                plain = json.loads(data)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (ValueError, RecursionError) as error:
            raise self._stranger() from error
        if not isinstance(plain, dict):
            raise self._stranger()
        return plain

    def _refusal(self, error: urllib.error.HTTPError) -> EarmarkError:
        if 300 <= error.code < 400:
            place = error.headers.get("Location", "elsewhere")
            return InputError(f"{self.address} sends us to {place}; give that address to --to if you trust it.")
        plain: Any = None
        with contextlib.suppress(OSError, ValueError, RecursionError, http.client.HTTPException):
            plain = json.loads(error.read(_MOST_READ))
        if not isinstance(plain, dict) or not isinstance(plain.get("detail"), str):
            if error.code in (404, 405):  # a board says why, in JSON
                return self._stranger()
            return BoardRefusal(error.code, f"{error.reason or 'no reason given'}.")
        return BoardRefusal(error.code, plain["detail"], problems_in(plain.get("errors")))

    def _stranger(self) -> InputError:
        return InputError(f"{self.address} does not answer as a board of Earmark does; check the address.")


def _job_path(job: str, action: str = "") -> str:
    return f"/v1/blind/jobs/{urllib.parse.quote(job, safe='')}" + (f"/{action}" if action else "")


def _write_to(answer: http.client.HTTPResponse, target: Path) -> None:
    with target.open("wb") as stream:
        shutil.copyfileobj(answer, stream, _PIECE)
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


@dataclass(frozen=True)
class _Form:
    """A package and the name of a board as a form, read from the disk while it is sent: each time from its start."""

    path: Path
    board: str
    progress: Progress = False
    boundary: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def media_type(self) -> str:
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def length(self) -> int:
        return len(self._head()) + self.path.stat().st_size + len(self._tail())

    def parts(self) -> Iterator[bytes]:
        yield self._head()
        with (
            self.path.open("rb") as stream,
            progress_bar(self.progress, self.path.stat().st_size, "sending") as advance,
        ):
            while piece := stream.read(_PIECE):
                yield piece
                advance(len(piece))
        yield self._tail()

    def _head(self) -> bytes:
        begin = f"--{self.boundary}\r\nContent-Disposition: form-data; name="
        # The hash goes before the package: after a lost answer the board knows that it has this one already.
        texts = "".join(
            f'{begin}"{name}"\r\n\r\n{text}\r\n' for name, text in (("board", self.board), ("sha256", self.sha256))
        )
        file = f'{begin}"package"; filename="package.zip"\r\nContent-Type: application/zip\r\n\r\n'
        return (texts + file).encode("utf-8", "replace")

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _tail(self) -> bytes:
        return f"\r\n--{self.boundary}--\r\n".encode()


def problems_in(listed: object) -> tuple[Problem, ...]:
    """The problems that a board lists; of one of another version, whatever can be read of them."""
    dicts = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return tuple(Problem("refused", str(each.get("detail", "")), str(each.get("pointer", ""))) for each in dicts)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is not followed: it could carry the token to another host, or turn a POST into a GET."""

    def redirect_request(self, *_args: Any, **_keywords: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def checked_address(text: str) -> str:
    """The address of a board without what follows its path; UsageError when it is none."""
    try:
        parts = urllib.parse.urlsplit(text if "//" in text else f"https://{text}")
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        fine = fine and not parts.username and all(" " < mark != "\x7f" for mark in text)
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(f"{text!r} is not the address of a board; give one such as https://board.example.org.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def sends_in_the_open(address: str) -> bool:
    """Whether a token sent there could be read on the way: http to another machine."""
    parts = urllib.parse.urlsplit(address)
    host = parts.hostname or ""
    with contextlib.suppress(ValueError):
        return parts.scheme == "http" and not ipaddress.ip_address(host).is_loopback
    return parts.scheme == "http" and host != "localhost"
