"""How one board is run: from the environment, from the options of `earmark serve`, or from Python.

Every option has a name in the environment, so that a unit file or a container sets it, and so that the worker
processes that uvicorn starts see what the command was given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast
from urllib.parse import urlsplit

from earmark.board.web.throttle import Rate
from earmark.errors import UsageError, did_you_mean
from earmark.submissions import Limits

__all__ = ["Registration", "Settings", "public_address"]

Registration: TypeAlias = Literal["open", "closed"]
_REGISTRATION = ("open", "closed")
_FILE = "earmark-board.sqlite3"
# Far above what a reader or a script needs, and low enough that one of them cannot keep the others out.
_READS = Rate(per_minute=60_000, burst=3_000)
_WRITES = Rate(per_minute=120, burst=120)
_SIGN_INS = Rate(per_minute=20, burst=20)


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

    @property
    def database(self) -> str:
        """The address of the database for SQLAlchemy."""
        return self.database_url or f"sqlite:///{(self.data / _FILE).absolute()}"

    @property
    def cookies_over_https_only(self) -> bool:
        return self.secure_cookies or self.base_url.startswith("https://")

    def to_environment(self) -> dict[str, str]:
        """The settings as environment variables, from which `from_environment` makes them again."""
        return {
            "EARMARK_BOARD": str(self.data),
            "EARMARK_DATABASE_URL": self.database_url,
            "EARMARK_BOARD_TITLE": self.title,
            "EARMARK_BOARD_URL": self.base_url,
            "EARMARK_BOARD_REGISTRATION": self.registration,
            "EARMARK_BOARD_MAX_BODY": str(self.limits.max_body),
            "EARMARK_BOARD_READS_PER_MINUTE": repr(self.reads.per_minute),
            "EARMARK_BOARD_WRITES_PER_MINUTE": repr(self.writes.per_minute),
            "EARMARK_BOARD_SIGN_INS_PER_MINUTE": repr(self.sign_ins.per_minute),
            "EARMARK_BOARD_SECURE_COOKIES": "1" if self.secure_cookies else "",
            "EARMARK_BOARD_WORKERS": str(self.workers),
            "EARMARK_BOARD_LOG": self.log_level,
        }

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment gives; what it does not name keeps its default."""
        given = {name: text for name, text in (os.environ if environment is None else environment).items() if text}
        known = cls().to_environment()
        for name in given:
            if name.startswith("EARMARK_BOARD") and name not in known:
                raise UsageError(f"{name} is no setting of the board.{did_you_mean(name, known)}")
        plain = cls()
        limits = Limits(max_body=int(_number(given, "EARMARK_BOARD_MAX_BODY", plain.limits.max_body, least=1)))
        registration = given.get("EARMARK_BOARD_REGISTRATION", plain.registration)
        if registration not in _REGISTRATION:
            raise UsageError(f"EARMARK_BOARD_REGISTRATION is open or closed, not {registration!r}.")
        base_url = public_address(given.get("EARMARK_BOARD_URL", ""), "EARMARK_BOARD_URL")
        return cls(
            data=Path(given.get("EARMARK_BOARD", ".")),
            database_url=given.get("EARMARK_DATABASE_URL", ""),
            title=given.get("EARMARK_BOARD_TITLE", plain.title),
            base_url=base_url,
            registration=cast(Registration, registration),
            limits=limits,
            reads=_rate(given, "EARMARK_BOARD_READS_PER_MINUTE", plain.reads),
            writes=_rate(given, "EARMARK_BOARD_WRITES_PER_MINUTE", plain.writes),
            sign_ins=_rate(given, "EARMARK_BOARD_SIGN_INS_PER_MINUTE", plain.sign_ins),
            secure_cookies=given.get("EARMARK_BOARD_SECURE_COOKIES", "").lower() in ("1", "true", "yes", "on"),
            workers=int(_number(given, "EARMARK_BOARD_WORKERS", plain.workers, least=1)),
            log_level=given.get("EARMARK_BOARD_LOG", plain.log_level),
        )


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
    text = given.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number < float("inf"):
        raise UsageError(f"{name} is a number of at least {least:g}, not {text!r}.")
    return number
