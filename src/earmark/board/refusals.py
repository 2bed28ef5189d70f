"""Why the board does not do what it was asked to: each kind has its own status in the API."""

from __future__ import annotations

from collections.abc import Mapping

from earmark.errors import EarmarkError


class Refusal(EarmarkError):
    """A refusal with the status of its answer, and headers that go with it."""

    status = 400

    def __init__(self, message: str, status: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status or self.status
        self.headers = dict(headers or {})


class NotAllowed(Refusal):
    """This user may not do that."""

    status = 403


class NotFound(Refusal):
    """There is no such thing on this board."""

    status = 404


class Conflict(Refusal):
    """It does not fit what is there already."""

    status = 409


def too_often(sentence: str, wait: float, status: int = 429) -> Refusal:
    """A refusal that says in how many seconds to come back."""
    after = str(max(1, round(wait + 0.5)))
    return Refusal(f"{sentence} Try again in {after} s.", status, {"Retry-After": after})
