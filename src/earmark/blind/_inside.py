"""A stranger's model inside a cell: opened from its package, and given one clip at a time. See `earmark.blind.models`
for the owner's side, which believes nothing of what is answered here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from earmark.extractors.catalogue import as_frames, open_extractor
from earmark.extractors.contract import Extractor
from earmark.isolation import Message, array_of, arrays_message

_models: list[Extractor] = []


class TooLarge(Exception):
    """An answer of more numbers than the owner takes."""


def answer(message: Message) -> Message:
    """Say that the cell is ready, open the model of a package, or give it a clip."""
    try:
        return _TASKS[message.head["do"]](message)
    except BaseException:
        traceback.print_exc()  # for the log: of a rehearsal its author reads it, later the host alone
        raise
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the stranger's code may have put anything there
                stream.flush()


def _open(message: Message) -> Message:
    _models[:] = [opened(message.head)]
    card = _models[0].card
    return Message({"rate": _whole(card.rate), "parameters": _whole(card.parameters)})


def opened(facts: Mapping[str, Any]) -> Extractor:
    """The model that the facts of a package describe, as an extractor."""
    folder, model, options = Path(facts["folder"]), str(facts["model"]), dict(facts["options"])
    if facts["kind"] == "onnx":
        return open_extractor("onnx", path=str(folder / model), threads=1, **facts["setup"])
    if facts["kind"] == "safetensors":
        spec = f"{facts['architecture']}:{folder / model}"
        return open_extractor(spec, device="cpu", local_files_only=True, **options)
    file, _, name = model.partition(":")
    return open_extractor(f"{folder / file}:{name}", **options)


def _hear(message: Message) -> Message:
    (model,) = _models
    (frames,) = as_frames(model.extract([array_of(message)]), 1)
    values = np.asarray(frames.values)
    if values.size > int(message.head["most"]):
        raise TooLarge(f"the model returned {values.size:,} numbers for a clip; {message.head['most']:,} are allowed")
    # Exactly, in the types that messages have.
    kind = {"f": "f8" if values.dtype.itemsize == 8 else "f4", "b": "?"}.get(values.dtype.kind, "i8")
    return arrays_message({"valid": _whole(frames.valid), "peak": _peak()}, [values.astype(kind)])


def _peak() -> int:
    """Bytes of memory that this process has used at most; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


_TASKS: dict[str, Callable[[Message], Message]] = {"ready": lambda message: Message({}), "open": _open, "hear": _hear}
