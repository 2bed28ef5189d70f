"""Talk to a board from elsewhere, with the standard library alone.

    board = BoardClient("https://board.example.org", token)
    receipt = board.submit(document.to_bytes())
    print(receipt.permalink, receipt.state)

A submission carries a key of its own. When the connection breaks or the board is being restarted, the same request is
sent again with the same key until an answer comes, and the board stores it once.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import random
import secrets
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.submissions._problems import Problem

_AGAIN = (429, 502, 503, 504)
_MOST_READ = 20_000_000
_LONGEST_PAUSE = 8.0


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

    def _receipt(self, plain: Mapping[str, Any]) -> Receipt:
        try:
            number, board, state, permalink = (str(plain[name]) for name in ("id", "board", "state", "permalink"))
            systems, notes = (tuple(map(str, plain[name])) for name in ("systems", "notes"))
            return Receipt(number, board, state, systems, int(plain["rows"]), notes, permalink)
        except (KeyError, TypeError, ValueError) as error:
            raise self._stranger() from error

    def _ask(
        self, method: str, path: str, body: bytes | None = None, more: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Ask until an answer comes or patience ends; every request here may be sent twice without harm."""
        until = time.monotonic() + self.patience
        pause = 0.25
        while True:
            try:
                return self._once(method, path, body, more or {})
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

    def _once(self, method: str, path: str, body: bytes | None, more: Mapping[str, str]) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": f"earmark/{__version__}", **more}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        try:
            with _OPENER.open(request, timeout=self.timeout) as answer:
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
