"""A board for tests: an app on a new SQLite file, an author, a moderator, and documents to send."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fastapi.testclient import TestClient

from earmark.board.app import create_app
from earmark.board.settings import Settings
from earmark.board.storage import Store
from earmark.scores import Row, Scores
from earmark.submissions import Document, SystemCard

SUBSETS = ("BC", "BS1", "HW1", "HS1")


def document(name: str = "my model", value: float = 0.5, board: str = "vocsim", **card: Any) -> Document:
    """P@1 of one system on a few subsets, its values around `value`."""
    rows = [
        Row(
            suite=board,
            subset=subset,
            system=name,
            distance="cosine",
            metric="P@1",
            value=round(value + 0.01 * place, 6),
            low=round(value + 0.01 * place - 0.02, 6),
            high=round(value + 0.01 * place + 0.02, 6),
            version="0.1",
            inputs="0123456789abcdef",
        )
        for place, subset in enumerate(SUBSETS)
    ]
    return Document.of(Scores(tuple(rows)), board=board, cards=[SystemCard(name, **card)])


@dataclass
class Hosted:
    """A running app, and who may do what on it."""

    client: TestClient
    store: Store
    author: dict[str, str]
    moderator: dict[str, str]
    author_token: str
    moderator_token: str
    worker: dict[str, str] = field(default_factory=dict)  # where a test makes one

    def send(self, sent: Document | bytes, **headers: str) -> Any:
        data = sent if isinstance(sent, bytes) else sent.to_bytes()
        return self.client.post(
            "/v1/submissions", content=data, headers={"Content-Type": "application/json", **self.author, **headers}
        )

    def accepted(self, sent: Document) -> str:
        """The id of a document that was sent and accepted."""
        created = self.send(sent).json()
        done = self.client.post(
            f"/v1/submissions/{created['id']}/decision", json={"accept": True}, headers=self.moderator
        )
        assert done.json()["state"] == "accepted", done.text
        return str(created["id"])

    def counts(self) -> tuple[int, int]:
        """How many submissions and events there are: nothing was stored when it stays the same."""
        return len(self.store.submissions(limit=1000)), len(self.store.events(1000))


@contextmanager
def hosted(folder: Path, **settings: Any) -> Iterator[Hosted]:
    app = create_app(Settings(data=folder, **settings))
    store: Store = app.state.context.store
    author_token, _ = store.create_token(store.create_user("ada"), "test")
    moderator_token, _ = store.create_token(store.create_user("mod", role="moderator"), "test")
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Hosted(
            client,
            store,
            {"Authorization": f"Bearer {author_token}"},
            {"Authorization": f"Bearer {moderator_token}"},
            author_token,
            moderator_token,
        )


@contextmanager
def listening(folder: Path, **settings: Any) -> Iterator[tuple[str, Store]]:
    """The address and the store of a board that uvicorn serves in a thread, for clients that need a real connection."""
    app = create_app(Settings(data=folder, **settings))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", app.state.context.store
    finally:
        server.should_exit = True
        thread.join()


def plain(sent: Document) -> dict[str, Any]:
    """The document as a dictionary, to be spoiled."""
    made: dict[str, Any] = json.loads(sent.to_bytes())
    return made
