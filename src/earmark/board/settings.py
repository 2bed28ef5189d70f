"""How one board is run: from the environment, from the options of `earmark serve`, or from Python.

Every option has a name in the environment, so that a unit file or a container sets it, and so that the worker
processes that uvicorn starts see what the command was given.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from earmark.errors import UsageError, did_you_mean
from earmark.submissions import Limits


@dataclass(frozen=True)
class Rate:
    """So many requests a minute in the long run, and `burst` at once. A rate of 0 sets no limit."""

    per_minute: float
    burst: int


class Throttle:
    """A bucket for each asker, refilled steadily: in this process alone, and forgotten with the process.

    A bucket of `burst` drops; a request takes one; `per_minute` drops come back each minute. `take` returns 0 when
    there was a drop, else the seconds until there is one. The buckets of those who have not asked for long are full
    again and are dropped, so that memory stays within `most` askers.
    """

    def __init__(self, rate: Rate, *, most: int = 50_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # asker: (drops, when counted)

    def take(self, asker: str) -> float:
        if self._rate.per_minute <= 0:
            return 0.0
        per_second = self._rate.per_minute / 60
        now = self._clock()
        with self._lock:
            drops, counted = self._buckets.pop(asker, (float(self._rate.burst), now))
            drops = min(float(self._rate.burst), drops + (now - counted) * per_second)
            wait = 0.0 if drops >= 1 else (1 - drops) / per_second
            self._buckets[asker] = (drops - 1 if wait == 0 else drops, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return wait


Registration: TypeAlias = Literal["open", "closed"]
_FILE = "earmark-board.sqlite3"
# Far above what a reader or a script needs, and low enough that one of them cannot keep the others out.
_READS, _WRITES, _SIGN_INS = Rate(per_minute=60_000, burst=3_000), Rate(120, 120), Rate(20, 20)


@dataclass(frozen=True)
class Settings:
    """What the host decides. `database_url` "" stands for a SQLite file in the data folder."""

    data: Path = Path()
    database_url: str = ""
    title: str = "Earmark leaderboard"
    base_url: str = ""  # the address that the world sees, such as https://board.example.org; "": as each request says
    registration: Registration = "closed"
    limits: Limits = field(default_factory=Limits)
    reads: Rate = _READS
    writes: Rate = _WRITES
    sign_ins: Rate = _SIGN_INS  # tokens that fit nobody, for each address
    secure_cookies: bool = False  # also on when `base_url` is https: the browser sends cookies over nothing else
    session_hours: float = 72
    workers: int = 1
    log_level: str = "info"
    blind: bool = False  # whether packages are taken for blind evaluation
    max_package: int = 2_000_000_000  # bytes
    lease_seconds: float = 120.0  # after which a worker that is not heard of loses its job

    @property
    def database(self) -> str:
        """The address of the database for SQLAlchemy."""
        return self.database_url or f"sqlite:///{(self.data / _FILE).absolute()}"

    @property
    def packages(self) -> Path:
        """The folder in which packages lie until their job has ended."""
        return (self.data / "blind-packages").absolute()

    @property
    def cookies_over_https_only(self) -> bool:
        return self.secure_cookies or self.base_url.startswith("https://")

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables, from which `from_environment` makes them again."""
        texts = {name: str(getattr(self, name)) for name in _TEXTS.values()}
        texts |= {name: repr(getattr(self, name).per_minute) for name in _RATES.values()}
        numbers = {
            "EARMARK_BOARD_MAX_BODY": str(self.limits.max_body), "EARMARK_BOARD_WORKERS": str(self.workers),
            "EARMARK_BOARD_MAX_PACKAGE": str(self.max_package),
            "EARMARK_BOARD_LEASE_SECONDS": repr(self.lease_seconds),
        }  # fmt: skip
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
        values["data"] = Path(values.get("data", "."))
        values["base_url"] = public_address(values.get("base_url", ""), "EARMARK_BOARD_URL")
        values |= {name: _rate(given, variable, getattr(plain, name)) for variable, name in _RATES.items()}
        values |= {name: given.get(each, "").lower() in ("1", "true", "yes", "on") for each, name in _SWITCHES.items()}
        return cls(
            **values,
            limits=Limits(max_body=int(_number(given, "EARMARK_BOARD_MAX_BODY", plain.limits.max_body, least=1))),
            workers=int(_number(given, "EARMARK_BOARD_WORKERS", plain.workers, least=1)),
            max_package=int(_number(given, "EARMARK_BOARD_MAX_PACKAGE", plain.max_package, least=1)),
            lease_seconds=_number(given, "EARMARK_BOARD_LEASE_SECONDS", plain.lease_seconds, least=1),
        )


_TEXTS = {
    "EARMARK_BOARD": "data", "EARMARK_DATABASE_URL": "database_url", "EARMARK_BOARD_TITLE": "title",
    "EARMARK_BOARD_URL": "base_url", "EARMARK_BOARD_REGISTRATION": "registration", "EARMARK_BOARD_LOG": "log_level",
}  # fmt: skip
_SWITCHES = {"EARMARK_BOARD_SECURE_COOKIES": "secure_cookies", "EARMARK_BOARD_BLIND": "blind"}
_RATES = {f"EARMARK_BOARD_{name.upper()}_PER_MINUTE": name for name in ("reads", "writes", "sign_ins")}


def public_address(text: str, name: str) -> str:
    """The address of the board without a slash at the end; UsageError, which calls it by `name`, when it is none."""
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        fine = False
    if text and not (fine and text.isprintable() and " " not in text):
        raise UsageError(f"{name} is an address such as https://board.example.org, not {text!r}.")
    return text.rstrip("/")


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
