"""What the board says of itself: one JSON object to a line on stderr, and meters for Prometheus.

No line holds a token, a cookie, a body or a query: a request is its method, its path and what became of it. What still
looks like a token, because somebody pasted one into a path, is struck out.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LOGGER = logging.getLogger("earmark.board")
_TOKENS = re.compile(r"em_[A-Za-z0-9_\-]{16,}")  # as storage makes them
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0, 2.5, 10.0)


def struck_out(text: str) -> str:
    """The text with everything that looks like a token replaced."""
    return _TOKENS.sub("em_[token]", text)


class JsonLines(logging.Formatter):
    """One JSON object to a line; extra fields are given as `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }  # fmt: skip
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return struck_out(json.dumps(line, ensure_ascii=False, default=str))


def log_to_stderr(level: str = "info") -> None:
    """Send the board's and the server's messages to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("earmark.board", "earmark.databases", "uvicorn", "uvicorn.error", "alembic"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.setLevel(level.upper() if name != "alembic" else "WARNING")
        logger.propagate = name == "uvicorn.error"
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False  # its lines hold the query; ours take their place


class Meters:
    """What `/metrics` shows, of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name = "earmark_board_"
        here: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(f"{name}requests", "Requests answered", ["method", "route", "status"], **here)
        self.seconds = Histogram(f"{name}request_seconds", "Time to answer", ["route"], buckets=_BUCKETS, **here)
        self.submissions = Counter(f"{name}submissions", "Submissions by what became of them", ["outcome"], **here)
        self.refused = Counter(f"{name}refused", "Requests refused before they were read", ["why"], **here)
        self.generation = Gauge(f"{name}generation", "Grows with every visible change of the board", **here)
