"""What runs inside a cell: read a message, answer it, until the owner is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from earmark.errors import EarmarkError, Ended, no_exit
from earmark.isolation._messages import Message, read_message, write_message


def serve() -> None:
    """Answer until the pipe is closed. What the code prints goes to standard error; its standard input is empty."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides what an interrupt means
    with contextlib.suppress(OSError, AttributeError):  # Linux: end with the owner, also in the middle of a call
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        first = read_message(messages)
        sys.path[:] = first.head["path"]
        module, _, name = str(first.head["function"]).partition(":")
        answer: Callable[[Message], Message] = getattr(import_module(module), name)
        write_message(answers, Message({}))
        while True:
            write_message(answers, _answer(answer, read_message(messages)))


def _answer(answer: Callable[[Message], Message], message: Message) -> Message:
    """What the function returns; whatever it raises becomes a message that says so, also an attempt to exit."""
    try:
        with no_exit():
            return answer(message)
    except Ended as error:
        return Message({"error": str(error), "kind": "Ended", "missing": ""})
    except EarmarkError as error:
        return Message({"error": str(error), "kind": "EarmarkError", "missing": ""})
    except BaseException as error:  # a stranger's code may raise anything
        text = " ".join(str(error).split())[:500].rstrip(".")
        missing = str(error.filename) if isinstance(error, OSError) and error.filename else ""
        return Message({"error": text, "kind": type(error).__name__, "missing": missing})
