"""How one board is run: from the environment, from the options of `earmark serve`, or from Python.

Every option has a name in the environment, so that a unit file or a container sets it, and so that the worker
processes that uvicorn starts see what the command was given.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args
from urllib.parse import urlsplit

from earmark.board.records import Quotas
from earmark.errors import UsageError, did_you_mean
from earmark.submissions import Limits

Result = TypeVar("Result")


@dataclass(frozen=True)
class Rate:
    """So many requests a minute in the long run, and `burst` at once. A rate of 0 sets no limit."""

    per_minute: float
    burst: int


class Throttle:
    """A bucket for each asker, refilled steadily: in this process alone, and forgotten with the process.

    A bucket of `burst` drops; a request takes one; `per_minute` drops come back each minute. `take` returns 0 when
    there was a drop, else the seconds until there is one; `charge` takes what was used already. The buckets of those
    who have not asked for long are full again and are dropped, so that memory stays within `most` askers.
    """

    def __init__(self, rate: Rate, *, most: int = 50_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # asker: (drops, when counted)

    def take(self, asker: str, drops: float = 1.0) -> float:
        return self._take(asker, drops, owing=False)

    def charge(self, asker: str, drops: float) -> None:
        """Take drops that were used already, also where there are not so many: the asker then owes them."""
        self._take(asker, drops, owing=True)

    def charging(self, asker: str, work: Callable[[], Result]) -> Result:
        """What `work` makes; the seconds of a processor that it takes are the asker's."""
        began = time.thread_time()
        try:
            return work()
        finally:
            self.charge(asker, time.thread_time() - began)

    def _take(self, asker: str, drops: float, *, owing: bool) -> float:
        if self._rate.per_minute <= 0:
            return 0.0
        per_second = self._rate.per_minute / 60
        now = self._clock()
        most = float(self._rate.burst)
        with self._lock:
            there, counted = self._buckets.pop(asker, (most, now))
            there = min(most, there + (now - counted) * per_second)
            wait = max(0.0, min(drops, most) - there) / per_second
            self._buckets[asker] = (min(most, there - drops) if owing or wait == 0 else there, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return wait


Registration: TypeAlias = Literal["open", "closed"]
Webhooks: TypeAlias = Literal["public", "any", "off"]
"""Where notices are posted: to addresses of the public internet, anywhere (also inside of the host's own network), or
nowhere."""
_FILE = "earmark-board.sqlite3"
# Far above what a reader or a script needs, and low enough that one of them cannot keep the others out.
_READS, _WRITES, _SIGN_INS = Rate(per_minute=60_000, burst=3_000), Rate(120, 120), Rate(20, 20)
_PAGE_SECONDS = Rate(30, 60)
_ANONYMOUS_SECONDS, _CHECK_SECONDS, _SUBMISSION_SECONDS = Rate(10, 10), Rate(60, 60), Rate(120, 120)


@dataclass(frozen=True)
class Settings:
    """What the host decides. `database_url` "" stands for a SQLite file in the data folder."""

    data: Path = Path()
    database_url: str = ""
    title: str = "Earmark leaderboard"
    base_url: str = ""  # the address that the world sees, a path included; "": as each request says
    registration: Registration = "closed"
    limits: Limits = field(default_factory=Limits)
    reads: Rate = _READS
    writes: Rate = _WRITES
    sign_ins: Rate = _SIGN_INS  # tokens that fit nobody, for each address
    # Seconds of a processor that reading what one asker sent may take: of an address, and of a user.
    anonymous_seconds: Rate = _ANONYMOUS_SECONDS
    check_seconds: Rate = _CHECK_SECONDS
    submission_seconds: Rate = _SUBMISSION_SECONDS
    page_seconds: Rate = _PAGE_SECONDS  # the same for making pages that nobody asked for before, of an address
    anonymous_rows: int = 5_000  # of a document that is checked without a token; 0: none is
    anonymous_bytes: int = 1_000_000
    secure_cookies: bool = False  # also on when `base_url` is https: the browser sends cookies over nothing else
    session_hours: float = 72
    workers: int = 1
    log_level: str = "info"
    blind: bool = False  # whether packages are taken for blind evaluation
    max_package: int = 2_000_000_000  # bytes
    least_free: int = 100_000_000  # bytes on the disk, under which the board is not ready
    lease_seconds: float = 120.0  # after which a worker that is not heard of loses its job
    quotas: Quotas = field(default_factory=Quotas)
    draft_days: float = 30.0  # after which a draft that was not sent is deleted
    smtp: str = ""  # smtp://user:password@host:587 (STARTTLS) or smtps://host; "": no mail is sent
    mail_from: str = ""  # the address that mail comes from
    webhooks: Webhooks = "public"

    @property
    def database(self) -> str:
        """The address of the database for SQLAlchemy."""
        return self.database_url or f"sqlite:///{(self.data / _FILE).absolute()}"

    @property
    def packages(self) -> Path:
        """The folder in which packages lie until their job has ended."""
        return (self.data / "blind-packages").absolute()

    @property
    def path(self) -> str:
        """Where the board lies on its host: "/leaderboard", or "" when it has the host to itself."""
        return urlsplit(self.base_url).path.rstrip("/")

    @property
    def cookies_over_https_only(self) -> bool:
        return self.secure_cookies or self.base_url.startswith("https://")

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables, from which `from_environment` makes them again."""
        texts = {name: str(getattr(self, name)) for name in _TEXTS.values()}
        texts |= {name: repr(getattr(self, name).per_minute) for name in _RATES.values()}
        numbers = {
            "EARMARK_BOARD_MAX_BODY": str(self.limits.max_body), "EARMARK_BOARD_WORKERS": str(self.workers),
            "EARMARK_BOARD_MAX_PACKAGE": str(self.max_package), "EARMARK_BOARD_MAX_ROWS": str(self.limits.max_rows),
            "EARMARK_BOARD_LEAST_FREE": str(self.least_free),
            "EARMARK_BOARD_ANONYMOUS_ROWS": str(self.anonymous_rows),
            "EARMARK_BOARD_ANONYMOUS_BYTES": str(self.anonymous_bytes),
            "EARMARK_BOARD_LEASE_SECONDS": repr(self.lease_seconds),
            "EARMARK_BOARD_DRAFT_DAYS": repr(self.draft_days),
        }  # fmt: skip
        numbers |= {variable: str(getattr(self.quotas, name)) for variable, name in _QUOTAS.items()}
        named = {variable: texts[name] for variable, name in (_TEXTS | _RATES).items()}
        return named | numbers | {variable: "1" if getattr(self, name) else "" for variable, name in _SWITCHES.items()}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment gives; what it does not name keeps its default."""
        given = {name: text for name, text in (os.environ if environment is None else environment).items() if text}
        plain = cls()
        known = plain.to_environment()
        for name in given:
            if name.startswith("EARMARK_BOARD") and name not in known:
                raise UsageError(f"{name} is no setting of the board.{did_you_mean(name, known)}")
        values: dict[str, Any] = {name: given[variable] for variable, name in _TEXTS.items() if variable in given}
        if values.get("registration", "open") not in get_args(Registration):
            raise UsageError(f"EARMARK_BOARD_REGISTRATION is open or closed, not {values['registration']!r}.")
        if values.get("webhooks", "off") not in get_args(Webhooks):
            raise UsageError(f"EARMARK_BOARD_WEBHOOKS is public, any or off, not {values['webhooks']!r}.")
        values["data"] = Path(values.get("data", "."))
        values["base_url"] = public_address(values.get("base_url", ""), "EARMARK_BOARD_URL")
        values |= {name: _rate(given, variable, getattr(plain, name)) for variable, name in _RATES.items()}
        values |= {name: given.get(each, "").lower() in ("1", "true", "yes", "on") for each, name in _SWITCHES.items()}

        def count(variable: str, default: int, least: int = 1) -> int:
            return int(_number(given, f"EARMARK_BOARD_{variable}", default, least=least))

        return cls(
            **values,
            limits=Limits(
                max_body=count("MAX_BODY", plain.limits.max_body), max_rows=count("MAX_ROWS", plain.limits.max_rows)
            ),
            workers=count("WORKERS", plain.workers),
            max_package=count("MAX_PACKAGE", plain.max_package),
            least_free=count("LEAST_FREE", plain.least_free, 0),
            anonymous_rows=count("ANONYMOUS_ROWS", plain.anonymous_rows, 0),
            anonymous_bytes=count("ANONYMOUS_BYTES", plain.anonymous_bytes),
            lease_seconds=_number(given, "EARMARK_BOARD_LEASE_SECONDS", plain.lease_seconds, least=1),
            draft_days=_number(given, "EARMARK_BOARD_DRAFT_DAYS", plain.draft_days, least=0),
            quotas=Quotas(
                **{
                    name: int(_number(given, each, getattr(plain.quotas, name), least=0))
                    for each, name in _QUOTAS.items()
                }
            ),
        )


_TEXTS = {
    "EARMARK_BOARD": "data", "EARMARK_DATABASE_URL": "database_url", "EARMARK_BOARD_TITLE": "title",
    "EARMARK_BOARD_URL": "base_url", "EARMARK_BOARD_REGISTRATION": "registration", "EARMARK_BOARD_LOG": "log_level",
    "EARMARK_BOARD_SMTP": "smtp", "EARMARK_BOARD_MAIL_FROM": "mail_from", "EARMARK_BOARD_WEBHOOKS": "webhooks",
}  # fmt: skip
_QUOTAS = {f"EARMARK_BOARD_{name.upper()}_PER_DAY": name for name in ("submissions", "rows", "bytes")}
_SWITCHES = {"EARMARK_BOARD_SECURE_COOKIES": "secure_cookies", "EARMARK_BOARD_BLIND": "blind"}
_RATED = ("reads", "writes", "sign_ins", "anonymous_seconds", "check_seconds", "submission_seconds", "page_seconds")
_RATES = {f"EARMARK_BOARD_{name.upper()}_PER_MINUTE": name for name in _RATED}


OWN_NAMES = frozenset(
    "about audit audit.csv b blind contact corrections drafts feed feed.atom feeds healthz how-to-submit "
    "imprint metrics mine moderate privacy readyz rules sign-in sign-out sign-up static submissions "
    "submit texts tokens users v1".split()
)
"""What addresses of the board begin with: under such a path nobody could tell them from the path."""
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")


def public_address(text: str, name: str) -> str:
    """The address of the board without a slash at the end; UsageError, which calls it by `name`, when it is none."""
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        fine = False
    if text and not (fine and text.isprintable() and " " not in text):
        raise UsageError(f"{name} is an address such as https://board.example.org, not {text!r}.")
    address = text.rstrip("/")
    path = urlsplit(address).path
    if not _PATH.fullmatch(path):
        raise UsageError(
            f"{name} {text}: a path is written with letters, digits, - . _ ~ and single slashes, such as /leaderboard."
        )
    if taken := OWN_NAMES.intersection(path.split("/")):
        raise UsageError(f"{name} {text}: /{min(taken)} is a page of the board itself; give it another path.")
    return address


def _rate(given: Mapping[str, str], name: str, plain: Rate) -> Rate:
    """A rate with the burst of the plain one, but never less than a minute's worth when the rate was lowered."""
    per_minute = _number(given, name, plain.per_minute, least=0)
    return plain if per_minute == plain.per_minute else Rate(per_minute, max(1, min(plain.burst, round(per_minute))))


def _number(given: Mapping[str, str], name: str, default: float, *, least: float) -> float:
    try:
        number = float(given.get(name, default))
    except ValueError:
        number = float("nan")
    if not least <= number < float("inf"):
        raise UsageError(f"{name} is a number of at least {least:g}, not {given[name]!r}.")
    return number
