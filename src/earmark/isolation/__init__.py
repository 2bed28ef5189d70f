"""Code of strangers in processes of their own, which see only what they are given.

    with Cell("earmark.codecs._inside:answer", Bounds(readable=[weights], hidden=[clips])) as cell:
        reply = cell.call(Message({"do": "encode"}, (samples.tobytes(),)), seconds=30.0)

A cell is one process that answers messages: plain values and bytes, never pickles, so that what runs inside can say
something outside and do nothing. Where bubblewrap is installed the cell has no network, a file system of its own in
which only `readable` lies, and no other process in sight (`support().level` is "full"); elsewhere it has folders of its
own and a cleaned environment, and `support().reason` says what could not be excluded.
"""

from __future__ import annotations

from earmark.isolation._bounds import Bounds, Support, support
from earmark.isolation._cell import Cell, CellDied, CellFailure, CellOverdue
from earmark.isolation._messages import Message, array_of, arrays_message
from earmark.isolation._processes import ending, kill_after, pipe

__all__ = [
    "Bounds",
    "Cell",
    "CellDied",
    "CellFailure",
    "CellOverdue",
    "Message",
    "Support",
    "array_of",
    "arrays_message",
    "ending",
    "kill_after",
    "pipe",
    "support",
]
