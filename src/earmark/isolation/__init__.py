"""Code of strangers in processes of their own, which see only what they are given.

    with Cell("earmark.codecs._inside:answer", Bounds(readable=[weights], hidden=[clips])) as cell:
        reply = cell.call(Message({"do": "encode"}, (samples.tobytes(),)), seconds=30.0)

A cell is one process that answers messages: plain values and bytes, never pickles, so that what runs inside can say
something outside and do nothing. Where bubblewrap is installed the cell has no network, a file system of its own in
which only `readable` lies, and no other process in sight (`support().level` is "full"); elsewhere it has folders of its
own and a cleaned environment, and `support().reason` says what could not be excluded.

`sealed` gives a cell for strangers beside data that they may not have: every part of its walls must be there
(`missing_parts`), and what it uses is limited (`Limits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.isolation._bounds import Bounds, Support, support
    from earmark.isolation._cell import Cell, CellDied, CellFailure, CellOverdue
    from earmark.isolation._limits import Limits
    from earmark.isolation._messages import BadMessage, Message, array_of, arrays_message
    from earmark.isolation._processes import ending, kill_after, pipe
    from earmark.isolation._sealed import PARTS, missing_parts, sealed

# Names load on first use: a sealed cell closes itself off before it imports anything that starts threads.
_HOME = {
    "BadMessage": "_messages",
    "Bounds": "_bounds",
    "Cell": "_cell",
    "CellDied": "_cell",
    "CellFailure": "_cell",
    "CellOverdue": "_cell",
    "Limits": "_limits",
    "Message": "_messages",
    "PARTS": "_sealed",
    "Support": "_bounds",
    "array_of": "_messages",
    "arrays_message": "_messages",
    "ending": "_processes",
    "kill_after": "_processes",
    "missing_parts": "_sealed",
    "pipe": "_processes",
    "sealed": "_sealed",
    "support": "_bounds",
}

__all__ = [
    "PARTS",
    "BadMessage",
    "Bounds",
    "Cell",
    "CellDied",
    "CellFailure",
    "CellOverdue",
    "Limits",
    "Message",
    "Support",
    "array_of",
    "arrays_message",
    "ending",
    "kill_after",
    "missing_parts",
    "pipe",
    "sealed",
    "support",
]

__getattr__ = lazy_names(__name__, _HOME)
