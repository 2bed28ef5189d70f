"""A codec inside a cell: opened, and asked to encode or to decode. See `earmark.codecs.cells` for the owner's side.

Every answer names the data files that were opened for it, so that weights which a codec finds by itself can enter the
key of its results.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from earmark.codecs._adapted import Adapted
from earmark.codecs.catalogue import open_codec
from earmark.codecs.contract import Codec, CodecCard
from earmark.codecs.harness import check_coded, check_waveform, pack, unpack
from earmark.isolation import Message, array_of, arrays_message
from earmark.runs import opened_files, strangers

KEPT = 8
"""Codecs that stay open in a cell."""
TRIAL_SECONDS = 0.5

_codecs: OrderedDict[str, Codec] = OrderedDict()


class NotOpened(Exception):
    """The codec of a message is not open here: the owner opens it, and asks again."""


def answer(message: Message) -> Message:
    """Do what the message asks of a codec: open, describe, try, encode, decode."""
    task, name = message.head["do"], message.head["codec"]
    with opened_files.watching(opened_files.Seen(hearing=task in ("encode", "decode"))) as seen:
        reply = _TASKS[task](name, message)
    files = [str(path) for path in seen.files()]
    return Message({**reply.head, "files": files}, reply.blobs)


def _open(name: str, message: Message) -> Message:
    if name in _codecs:  # it is asked for before every clip
        codec = _codec(name)
    else:
        codec = _opened(pickle.loads(message.blobs[0])) if message.blobs else open_codec(message.head["spec"])
        _codecs[name] = codec
    while len(_codecs) > KEPT:
        _codecs.popitem(last=False)
    prepare = getattr(codec, "prepare", None)
    if callable(prepare):
        prepare()
    return Message(
        {
            "card": {field: _plain(value) for field, value in asdict(codec.card).items()},
            "conceals": callable(getattr(codec, "decode_with_losses", None)),
            "has_own_card": getattr(codec, "has_own_card", True),
        }
    )


def _plain(value: Any) -> Any:
    """A fact of a card without NumPy's types."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _opened(thing: Any) -> Codec:
    """A codec that came as an object; one without a card of ours is given one."""
    return thing if isinstance(getattr(thing, "card", None), CodecCard) else Adapted(thing)


def _describe(name: str, message: Message) -> Message:
    """Open a stranger's codec by its path, and say what its output depends on."""
    head = message.head
    rooms = tuple(head["rooms"])
    reply, reads = strangers.opening(lambda: _open(name, message), given=head["given"], rooms=rooms)
    stated = strangers.stated_by(_codecs[name], given=head["given"], rooms=rooms, opened=reads.paths)
    return Message({**reply.head, "reads": stated.key, "paths": sorted(map(str, stated.paths))})


def _try(name: str, message: Message) -> Message:
    """A short noise through the codec, so that files it opens when they are first needed are known; errors are not
    told here: the clips will tell them."""
    codec = _codec(name)
    noise = 0.1 * np.random.default_rng(0).standard_normal(round(TRIAL_SECONDS * codec.card.rate))
    with suppress(Exception):
        codec.decode(codec.encode(noise.astype(np.float32)))
    return Message({})


def _encode(name: str, message: Message) -> Message:
    codec, waveform = _codec(name), array_of(message)
    coded = codec.encode(waveform.copy())
    check_coded(codec.card, coded, len(waveform))
    return Message({}, (pack(coded),))


def _decode(name: str, message: Message) -> Message:
    codec: Any = _codec(name)
    if "arrays" in message.head:
        decoded = codec.decode_with_losses(unpack(message.blobs[1]), array_of(message))
    else:
        decoded = codec.decode(unpack(message.blobs[0]))
    check_waveform(codec.card, decoded)
    return arrays_message({}, [decoded if decoded.dtype.itemsize in (4, 8) else decoded.astype(np.float32)])


def _codec(name: str) -> Codec:
    if name not in _codecs:
        raise NotOpened(name)
    _codecs.move_to_end(name)
    return _codecs[name]


_TASKS = {"open": _open, "describe": _describe, "try": _try, "encode": _encode, "decode": _decode}
