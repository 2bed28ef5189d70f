"""Tells authors what became of their submissions: takes notices from the store and sends them, by mail or webhook.

    courier = Courier(store, settings)
    courier.start()         a thread of its own: no request waits for a mail server
    courier.stop()

A notice that does not arrive is due again after 1, 2, 4 … minutes, eight times. It may arrive twice when a process is
killed between sending it and writing that down; webhooks carry an id by which a receiver can tell.

A webhook is posted to a machine of the public internet alone (unless the host allows any): the name is resolved once,
every address is looked at, and the connection goes to the address that was looked at, so that no later answer of a name
server leads inside. Redirects are not followed, and nothing of the answer is kept but its status.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import smtplib
import socket
import ssl
import threading
from collections.abc import Mapping
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from earmark._version import __version__
from earmark.board.web.logs import LOGGER
from earmark.databases import Busy
from earmark.errors import InputError

if TYPE_CHECKING:
    from earmark.board.settings import Settings
    from earmark.board.storage import Store
    from earmark.board.storage.notices import Notice

_SECONDS = 10.0
_MOMENT = 1.0
_SENTENCES: Mapping[str, str] = {
    "accepted": "Your submission to {board} was accepted: its scores are on the board.",
    "rejected": "Your submission to {board} was rejected.",
    "withdrawn": "Your submission to {board} was withdrawn by a moderator.",
    "marked": "The scores of your submission to {board} are marked as {provenance} from now on.",
    "card_applied": "Your correction of a card on {board} was applied.",
    "card_rejected": "Your correction of a card on {board} was rejected.",
    "confirm": "Somebody, probably you, gave this address to a leaderboard. Confirm it there, or do nothing.",
}


class Courier:
    """The thread that sends what is due, every few seconds."""

    def __init__(self, store: Store, settings: Settings, *, every: float = 5.0) -> None:
        self._store = store
        self._settings = settings
        self._every = every
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless there is nothing to send by or it has begun already."""
        if self._thread is None and (self._settings.smtp or self._settings.webhooks != "off"):
            self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Begin no other notice; the one that is on its way is not waited for longer than a moment."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(_MOMENT)

    def _run(self) -> None:
        while not self._ends.wait(self._every):
            try:
                self.send_due()
            except Busy:
                continue  # the database is away: what is due stays so
            except Exception:
                LOGGER.exception("notices could not be sent")

    def send_due(self) -> int:
        """Send what is due now, and return how many arrived."""
        if not self._store.has_due_notices():
            return 0
        arrived = 0
        for notice in self._store.take_notices():
            if self._ends.is_set():
                break  # it was taken, and is due again in a while
            error = self._send(notice)
            self._store.close_notice(notice, error)
            arrived += not error
        return arrived

    def _send(self, notice: Notice) -> str:
        """Send one; what went wrong, as words, or nothing."""
        try:
            if notice.kind == "mail":
                send_mail(self._settings, notice.target, notice.subject, _letter(notice, self._settings.base_url))
            else:
                body = {"id": notice.id, **notice.body, "subject": notice.subject}
                body["address"] = _address(notice, self._settings.base_url)
                post_signed(notice.target, body, notice.secret, anywhere=self._settings.webhooks == "any")
        except (OSError, smtplib.SMTPException, http.client.HTTPException, ValueError, InputError) as error:
            return f"{type(error).__name__}: {error}"[:400]
        return ""


def _address(notice: Notice, base_url: str) -> str:
    """The page that a notice is about."""
    body = notice.body
    if "submission" in body:
        return f"{base_url}/submissions/{body['submission']}"
    if "code" in body:
        return f"{base_url}/contact/confirm?code={quote(body['code'])}"
    return f"{base_url}/b/{quote(body['board'])}/s/{quote(body['system'])}" if "system" in body else base_url


def _letter(notice: Notice, base_url: str) -> str:
    body: dict[str, Any] = {"board": "", "provenance": "", **notice.body}
    sentence = _SENTENCES.get(str(body.get("event")), notice.subject).format(**body)
    reason = f"\n\nReason: {body['reason']}" if body.get("reason") else ""
    return f"{sentence}{reason}\n\n{_address(notice, base_url)}\n"


# --- mail ------------------------------------------------------------------------------------------------------------


def send_mail(settings: Settings, to: str, subject: str, text: str) -> None:
    """Send a mail through the host's server: smtp:// (encrypted where the server can), or smtps://."""
    parts = urlsplit(settings.smtp)
    host = parts.hostname or ""
    message = EmailMessage()
    message["From"] = settings.mail_from or f"board@{host}"
    message["To"] = to
    message["Subject"] = f"{settings.title}: {subject}".replace("\n", " ")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    context = ssl.create_default_context()
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=_SECONDS, context=context)
    else:
        server = smtplib.SMTP(host, parts.port or 587, timeout=_SECONDS)
    with server:
        if parts.scheme == "smtp":
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=context)
            elif parts.username:
                raise InputError(
                    "The mail server offers no STARTTLS, and a password is not sent in the open; use smtps."
                )
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        server.send_message(message)


# --- webhooks --------------------------------------------------------------------------------------------------------


def signature(secret: str, body: bytes) -> str:
    """What a receiver computes of the body with the secret, and compares with the header."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def post_signed(address: str, plain: Mapping[str, Any], secret: str, *, anywhere: bool = False) -> None:
    """Post JSON with its signature; an answer that is no 2xx is an error, a redirect too."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    body = json.dumps(dict(plain), ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json", "X-Earmark-Signature": signature(secret, body),
        "User-Agent": f"earmark/{__version__}", "Connection": "close",
    }  # fmt: skip
    connection = _Pinned(parts.hostname or "", port, https=parts.scheme == "https", anywhere=anywhere)
    try:
        connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise InputError(f"The webhook answered {status}.")


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was looked at; with https, to whoever can prove the name."""

    def __init__(self, host: str, port: int, *, https: bool, anywhere: bool) -> None:
        super().__init__(host, port, timeout=_SECONDS)
        self._https = https
        self._anywhere = anywhere

    def connect(self) -> None:
        target = public_target(self.host, self.port) if not self._anywhere else (self.host, self.port)
        self.sock = socket.create_connection(target, self.timeout)
        if self._https:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


def public_target(host: str, port: int) -> tuple[str, int]:
    """An address of a host to connect to; InputError when any of its addresses is not of the public internet."""
    addresses = [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        if not _is_public(ipaddress.ip_address(address.partition("%")[0])):
            raise InputError(f"{host} is {address}, which is no address of the public internet.")
    return addresses[0], port


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is not None:
            return _is_public(inside)
        if address in ipaddress.ip_network("64:ff9b::/96"):  # IPv4 behind a translator
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast
