"""Fifty submissions at once from ten processes, the server killed twice in the middle: each is there exactly once."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from tests.board.hosted import document
from tests.board.serving import serving

from earmark.board.storage import Store, open_database

PROCESSES, EACH = 10, 5

SENDER = """
import sys
from pathlib import Path
from earmark.submissions.client import BoardClient

address, token, *files = sys.argv[1:]
board = BoardClient(address, token, patience=120)
for file in files:
    print(Path(file).stem, board.submit(Path(file).read_bytes()).id, flush=True)
"""


def arrived(address: str, token: str) -> int:
    """How many submissions the board has now, as its moderator sees it."""
    asked = urllib.request.Request(f"{address}/v1/submissions?limit=200", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return len(json.load(answer)["items"])


def test_every_acknowledged_submission_is_there_exactly_once(tmp_path: Path, url: str) -> None:
    data = tmp_path / "board"
    files = [tmp_path / f"{number}.json" for number in range(PROCESSES * EACH)]
    for file in files:
        file.write_bytes(document(f"model {file.stem}").to_bytes())
    with ExitStack() as stack:
        server = stack.enter_context(serving(data, "--empty", "--database", url))
        token, port = server.token(), int(server.address.rpartition(":")[2])
        senders = [
            subprocess.Popen(
                [sys.executable, "-c", SENDER, server.address, token, *map(str, files[one::PROCESSES])],
                stdout=subprocess.PIPE,
                text=True,
            )
            for one in range(PROCESSES)
        ]
        for kill_at in (8, 25):
            while arrived(server.address, token) < kill_at:
                time.sleep(0.01)
            assert server.stop(signal.SIGKILL) == -signal.SIGKILL
            seen = Store(open_database(url))
            assert all(len(seen.rows_of(one.id)) == one.rows == 4 for one in seen.submissions(limit=1000))
            seen.close()
            server = stack.enter_context(serving(data, "--empty", "--database", url, port=port))
        told = [sender.communicate(timeout=120)[0] for sender in senders]
        assert [sender.returncode for sender in senders] == [0] * PROCESSES
        server.stop()
    acknowledged = dict(line.split() for text in told for line in text.splitlines())
    assert len(acknowledged) == PROCESSES * EACH
    store = Store(open_database(url))
    stored = {one.id: one for one in store.submissions(limit=1000)}
    assert sorted(stored) == sorted(acknowledged.values())
    for number, key in acknowledged.items():
        sent = document(f"model {number}")
        assert stored[key].digest == sent.digest == hashlib.sha256(store.document_of(key)).hexdigest()
        assert store.rows_of(key) == sent.scores
    assert sum(event.action == "submitted" for event in store.events(1000)) == PROCESSES * EACH
    store.close()
