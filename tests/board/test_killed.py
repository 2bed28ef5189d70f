"""Writers killed in the middle: what was acknowledged is there once, and nothing is there by half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from sqlalchemy import text

from earmark.board.storage import Store, open_database

WRITER = """
import sys
from earmark.board.storage import Store, open_database
from tests.board.documents import document

url, number = sys.argv[1:]
store = Store(open_database(url))
me, grace = store.user("ada"), store.user("grace")
for turn in range(10_000):
    values = {f"subset {k}": turn / 10_000 for k in range(40)}
    sent = store.submit(document(values, system=f"writer {number}"), me, idempotency_key=f"{number}-{turn}")
    print("sent", sent.id, flush=True)
    store.decide(sent.id, grace, accept=True)
    print("accepted", sent.id, flush=True)
"""


def test_killed_writers_lose_nothing_and_leave_no_half(url: str) -> None:
    store = Store(open_database(url))
    store.create_user("ada")
    store.create_user("grace", role="moderator")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, str(number)],
            stdout=subprocess.PIPE, text=True, cwd=root, env=environment,
        )
        for number in range(2)
    ]  # fmt: skip
    said: list[list[str]] = [[] for _ in writers]

    def kill_in_the_middle(number: int) -> None:
        writer = writers[number]
        assert writer.stdout is not None
        for line in writer.stdout:
            said[number].append(line)
            if len(said[number]) == 9 + 8 * number:
                writer.send_signal(signal.SIGKILL)

    readers = [threading.Thread(target=kill_in_the_middle, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    for reader, writer in zip(readers, writers, strict=True):
        reader.join(120)
        assert writer.wait(10) == -signal.SIGKILL

    words = [line.split() for lines in said for line in lines if line.endswith("\n")]
    found = {sent.id: sent for sent in store.submissions(limit=1000)}
    acknowledged = {id for verb, id in words if verb == "sent"}
    accepted = {id for verb, id in words if verb == "accepted"}
    assert len(acknowledged) >= 13
    assert acknowledged <= found.keys()
    # A writer that was killed may have done one thing more than it could say.
    assert len(found) <= len(acknowledged) + 2
    assert {id for id, sent in found.items() if sent.state == "accepted"} >= accepted
    assert all(len(store.rows_of(id)) == sent.rows == 40 for id, sent in found.items())
    with store.engine.connect() as connection:
        count = connection.execute(text("SELECT count(*) FROM scores")).scalar()
        lines = connection.execute(text("SELECT count(*) FROM events WHERE action = 'submitted'")).scalar()
    assert count == 40 * len(found)
    assert lines == len(found)
    # And the board goes on: the same key finds what was stored before the kill.
    live = store.live_scores("mine")
    newest = {slug: sent.id for sent in reversed(found.values()) if sent.state == "accepted" for slug in sent.systems}
    assert len(live) == 40 * len(newest)
    assert set(live["submission_id"]) == set(newest.values())
    store.close()
