"""Packages that arrive as a form: parsed as they come, written to their place, never held in memory.

The texts of the form stand before its file (browsers send the fields of a form in their order), so that whoever may not
send is told before the file is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from fastapi.concurrency import run_in_threadpool
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from earmark.board.jobs import Job
from earmark.board.packages import Incoming, inspected
from earmark.board.records import User
from earmark.board.refusals import Refusal
from earmark.board.web.middleware import DRAINED, DRAINING_SECONDS
from earmark.board.web.requests import Context, inspect_apart
from earmark.errors import EarmarkError

_MOST_TEXT, _MOST_FIELDS = 10_000, 20
_AT_ONCE = 1_000_000
_STALLED_SECONDS = 120.0
_GRACE_SECONDS = 60.0
_LEAST_RATE = 20_000
"""Bytes a second, on the average since the beginning, that an upload keeps to after a grace."""
_FAIR_RATE = 100_000
"""At this rate the largest package has to be through in time, however fast it began."""
FILE = "package"
"""The name of the form's file."""


@dataclass
class _Part:
    """A part of the form: of a text its bytes, of the file those that are not written yet."""

    name: str = ""
    is_file: bool = False
    data: bytearray = field(default_factory=bytearray)
    done: bool = False


class _Form:
    """What the parser has seen of a form so far."""

    def __init__(self, boundary: bytes) -> None:
        self.texts: dict[str, str] = {}
        self.file: _Part | None = None
        self.ended = False
        self._part = _Part()
        self._header, self._value = bytearray(), bytearray()
        self._fields = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin, "on_part_data": self._data, "on_part_end": self._end,
                "on_header_field": lambda data, start, end: self._header.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._header_end, "on_end": self._all,
            },
        )  # fmt: skip

    def feed(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except MultipartParseError as error:
            raise Refusal("The form cannot be read; send it as multipart/form-data.", 400) from error

    def _begin(self) -> None:
        self._part = _Part()
        self._fields += 1
        if self._fields > _MOST_FIELDS:
            raise Refusal(f"The form has more than {_MOST_FIELDS} fields.", 400)

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(bytes(self._value))
            self._part.name = options.get(b"name", b"").decode("utf-8", "replace")
            self._part.is_file = b"filename" in options
            if self._part.is_file:
                if self.file is not None or self._part.name != FILE:
                    raise Refusal(f'The form has one file, "{FILE}".', 422)
                self.file = self._part
        self._header.clear()
        self._value.clear()

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._part.data += data[start:end]
        if not self._part.is_file and len(self._part.data) > _MOST_TEXT:
            raise Refusal(f"The field {self._part.name[:40]!r} is longer than {_MOST_TEXT} bytes.", 413)

    def _end(self) -> None:
        self._part.done = True
        if not self._part.is_file:
            self.texts[self._part.name] = bytes(self._part.data).decode("utf-8", "replace")

    def _all(self) -> None:
        self.ended = True


async def receive_package(
    request: Request, incoming: Incoming, allow: Callable[[Mapping[str, str]], Awaitable[None]]
) -> dict[str, str]:
    """Write the form's file to its place and return the form's texts.

    `allow` is asked when the file begins, with the texts before it, and raises for a sender who may not go on.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise Refusal("A package is sent as multipart/form-data.", 415)
    form, allowed = _Form(options[b"boundary"]), False
    stream, began, taken = request.stream(), time.monotonic(), 0
    longest = incoming.most / _FAIR_RATE + _GRACE_SECONDS
    try:
        while True:
            chunk = await asyncio.wait_for(anext(stream, None), _STALLED_SECONDS)
            if chunk is None:
                break
            taken += len(chunk)
            passed = time.monotonic() - began
            if passed > longest or taken < (passed - _GRACE_SECONDS) * _LEAST_RATE:
                raise Refusal(
                    f"The upload is too slow: {taken / 1e6:.1f} MB in {passed:.0f} s; send it from a faster line.", 408
                )
            form.feed(chunk)
            if form.file is None:
                continue
            if not allowed:
                await allow(form.texts)
                allowed = True
            if len(form.file.data) >= _AT_ONCE:
                await _write(form.file, incoming)
    except (ClientDisconnect, TimeoutError) as error:
        raise Refusal("The upload ended early; send it again.", 400) from error
    except EarmarkError:
        await _spill(stream)
        raise
    if form.file is None:
        raise Refusal(f'The form has no file; send it as the part "{FILE}", after the other fields.', 422)
    if not form.ended or not form.file.done:
        raise Refusal("The upload ended early; send it again.", 400)
    await _write(form.file, incoming)
    await run_in_threadpool(incoming.finish)
    return form.texts


async def _spill(stream: AsyncIterator[bytes]) -> None:
    """Let what is being sent fall away, up to a bound, so that the sender reads why it was refused."""
    taken = 0
    with contextlib.suppress(TimeoutError, ClientDisconnect, HTTPException):
        async with asyncio.timeout(DRAINING_SECONDS):
            async for chunk in stream:
                taken += len(chunk)
                if taken > DRAINED:
                    return


async def _write(file: _Part, incoming: Incoming) -> None:
    data = bytes(file.data)
    file.data.clear()
    await run_in_threadpool(incoming.write, data)


async def take_package(
    request: Request, context: Context, user: User, check: Callable[[Mapping[str, str]], None]
) -> tuple[Job, bool]:
    """Receive a package and queue it; `check` is given the texts of the form before its file is read."""
    id, store = secrets.token_hex(8), context.store

    async def allow(texts: Mapping[str, str]) -> None:
        check(texts)
        if not texts.get("board", "").strip():
            raise Refusal('The form does not name the board; send the part "board" before the package.', 422)
        await run_in_threadpool(store.check_quota, user, texts["board"].strip(), texts.get("sha256", ""))

    declared = request.headers.get("content-length", "")
    length = int(declared) if declared.isdigit() else 0
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(context.packages.turn(user.counted_as))
            incoming = held.enter_context(context.packages.incoming(id, length))
        except Refusal:
            await _spill(request.stream())
            raise
        texts = await receive_package(request, incoming, allow)

        def queue() -> tuple[Job, bool]:
            package, card = inspected(incoming)
            context.packages.keep(id, incoming)
            new = False
            try:
                job, new = store.add_job(user, texts["board"].strip(), package, card, id)
            finally:
                if not new:
                    context.packages.path(id).unlink(missing_ok=True)
            return job, new

        return await inspect_apart(request, queue)
