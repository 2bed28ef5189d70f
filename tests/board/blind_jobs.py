"""Blind evaluation for tests: a host's announcement, packages in the queue, and what a worker releases."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from earmark.board.jobs import BlindBoard, BlindSet, Job, Package
from earmark.board.records import User
from earmark.board.storage import Store
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard

POLICY = "ab" * 32
SETS = (BlindSet("field", "Field recordings", 600, 30), BlindSet("river", "Along the river", 900, 40))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


def announced(
    store: Store, worker: User, board: str = "mine", sets: Sequence[BlindSet] = SETS, digest: str = "", **terms: int
) -> BlindBoard:
    settings = {"quota": 3, "entries": 2, **terms}
    digest = digest or hashlib.sha256(str(settings).encode()).hexdigest()
    return store.announce_sets(worker, board, sets, digest, "# Policy\n\nFigures leave in **steps**.", settings)


def queued(store: Store, user: User, name: str, entry: str = "", board: str = "mine", number: int = 1) -> Job:
    """A job of a package that nothing but its name tells apart; `number` when it is sent again."""
    package = Package(entry or f"model of {user.name}", "onnx", f"{name:0>64}", f"{name:f>64}", 1000)
    id = hashlib.sha256(f"{user.name} {name} {number}".encode()).hexdigest()[:16]
    return store.add_job(user, board, package, SystemCard(package.entry), id)[0]


def figures(
    entry: str, board: str = "mine", value: float = 0.4, subsets: Sequence[str] = ("field", "river")
) -> Document:
    ends = {"low": round(value - 0.05, 6), "high": round(value + 0.05, 6)}
    rows = tuple(
        Row(
            suite=board, subset=subset, system=entry, distance="cosine", metric=metric, value=value, baseline=0.1,
            lift=round(value - 0.1, 6), n=600, version="0.1", inputs="0123456789abcdef", **ends,
        )
        for subset in subsets
        for metric in ("P@1", "P@5", "GSR")
    )  # fmt: skip
    return Document.of(Scores(rows), board=board, cards=[SystemCard(entry)], provenance="blind")


def facts(**more: Any) -> dict[str, Any]:
    """The public part of a host's audit entry."""
    return {"number": 1, "hash": "cd" * 32, "policy": POLICY, "signed": "the owners, 16 Nov 2026", **more}


def archive(entry: str = "tiny", note: str = "", **files: str) -> bytes:
    """A package of code, as a zip archive."""
    manifest = (
        "format: 1\nkind: code\nmodel: extractor.py:Tiny\nrate: 16000\npooling: mean_time\ndistance: cosine\n"
        f"system: {{name: {entry}, title: A tiny model, licence: MIT}}\n"
    )
    code = (
        f"# {note}\nimport numpy\n\n\nclass Tiny:\n    rate = 16000\n\n    def extract(self, waveforms):\n"
        "        return [wave.samples[None, :8] for wave in waveforms]\n"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as target:
        for name, text in {"submission.yaml": manifest, "extractor.py": code, **files}.items():
            target.writestr(name, text)
    return data.getvalue()
