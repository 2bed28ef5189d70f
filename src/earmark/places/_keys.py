"""Addresses that carry keys. What is written or shown never holds them.

    https://user:password@host/x        refused: a password belongs in the environment or the library's own files
    https://host/x?X-Amz-Signature=…    read as given, shown and written as https://host/x

A signed address is known to the process it was given to, and to nobody who reads its results.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from earmark.errors import InputError

_FLATTENED = re.compile(r"(s3a?|gs|gcs|az|abfss?|memory|https?|sftp|ssh|ftp|smb|hdfs|webdav):/(?=[^/])")
"""What `pathlib.Path` makes of a URL's two lines."""
_USER = re.compile(r"(?<=://)([^/?#\s]*)@")
_LINK = re.compile(r"(?:[\w.-]+=)?(?:[a-z0-9]+::)*([a-z][a-z0-9+.-]+)://", re.I)  # `name=URL` is one, too
_SIGNATURE = re.compile(r"x-(amz|goog|oss|cos|tos|obs|ms)-.+|signature|sig", re.I)
_BESIDE = re.compile(
    r"AWSAccessKeyId|GoogleAccessId|OSSAccessKeyId|Expires|Policy|Key-Pair-Id"
    r"|s[veprts]|spr|sip|srt|sdd|sk(oid|tid|t|e|s|v)|saoid|suoid|scid",
    re.I,
)
"""Parameters that a signature covers and that name no file: those of S3, Google, CloudFront and Azure."""
_SECRET = re.compile(r".*(token|secret|passw|credential|api[_-]?key|access[_-]?key|signature|authorization).*", re.I)
_SECRET_WORDS = frozenset({"key", "pwd", "auth", "hmac", "jwt", "sas", "code"})

_given: dict[str, str] = {}
_lock = threading.Lock()


def shown(text: str) -> str:
    """An address as it may be written anywhere: without the keys of its query, which this process remembers.

    Raises:
        InputError: It carries a user with a password.
    """
    link = _LINK.match(text)
    if link is None:
        return text
    scheme = link[1].lower()
    user = next((user for user in _USER.finditer(text) if ":" in user[1] or scheme in ("http", "https")), None)
    if user is not None:
        remedy = " (~/.netrc)" if scheme in ("http", "https") else ""
        raise InputError(
            f"{_USER.sub('', text).partition('?')[0]}: its address carries a password, which would be written into "
            f"results; leave it out, and give it by the environment or the files of the library that reads "
            f"{scheme}://{remedy}."
        )
    place, mark, query = text.partition("?")
    kept, signed = _kept(query)
    if not mark or len(kept) == len(query):
        return text
    if scheme not in ("http", "https"):
        raise InputError(
            f"{place}: its address carries a key behind the question mark; leave it out, and give it by the "
            f"environment or the files of the library that reads {scheme}://."
        )
    plain = place + (f"?{kept}" if kept else "")
    url = text[link.start(1) :] if "=" in text[: link.start(1)] else text
    with _lock:
        before = _given.setdefault(_name(plain[len(text) - len(url) :]), url)
        if before != url and not (signed and _kept(before.partition("?")[2])[1]):
            raise InputError(
                f"{plain} is given twice, with different keys that are not shown: fetch both files to this machine."
            )
        _given[_name(plain[len(text) - len(url) :])] = url
    return plain


def spelled(text: str) -> str:
    """A URL as it was before it went through `pathlib.Path`."""
    return _FLATTENED.sub(r"\1://", text, count=1) if _FLATTENED.match(text) else text


def as_given(url: str) -> str:
    """The address that reads what `shown` made of it."""
    return _given.get(_name(url), url)


def is_signed(url: str) -> bool:
    """Whether an address is read by keys that are not shown, which open one file and none beside it."""
    return as_given(url) != url


def without_keys(value: Any) -> Any:
    """`shown`, of every text in lists and mappings."""
    if isinstance(value, str):
        return shown(value)
    if type(value) in (list, tuple):
        return type(value)(map(without_keys, value))
    if isinstance(value, PurePath):
        url = spelled(str(value))
        return value if (plain := shown(url)) == url else plain
    if isinstance(value, Mapping):
        return {name: without_keys(item) for name, item in value.items()}
    return value


def _kept(query: str) -> tuple[str, bool]:
    """The parameters that are no keys, and whether all keys are those of a signature, which may be made anew."""
    names = [part.partition("=")[0] for part in query.split("&")]
    signed = any(map(_SIGNATURE.fullmatch, names))
    kept, renewable = [], True
    for part, name in zip(query.split("&"), names, strict=True):
        if _SIGNATURE.fullmatch(name) or (signed and _BESIDE.fullmatch(name)):
            continue
        if _SECRET.fullmatch(name) or name.lower() in _SECRET_WORDS:
            renewable = False
            continue
        kept.append(part)
    return "&".join(kept), renewable


def _name(url: str) -> str:
    """One spelling of an address: a RemotePath has no empty parts."""
    scheme, _, rest = url.partition("://")
    place, mark, query = rest.partition("?")
    return f"{scheme}://{'/'.join(part for part in place.split('/') if part)}{mark}{query}"
