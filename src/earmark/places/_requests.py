"""Requests to file systems elsewhere: repeated while a trouble may pass, and one sentence when it does not.

    cut connection, time-out, refused, 5xx, "slow down"     asked again after a pause that grows, for PATIENCE seconds
    no such file                                            FileNotFoundError, as of a file here
    no such bucket, access denied, no credentials           InputError with the remedy

Every request is whole in itself (a listing, a range of bytes, one upload), so that it may be repeated.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from earmark.errors import EarmarkError, InputError, MissingExtra, Unreachable
from earmark.places._keys import as_given, is_signed

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds that a server may stay silent that answered before; EARMARK_PATIENCE is another number."""
FIRST = 8.0
"""Seconds that are given to a server that never answered: its address may be wrong."""

OBJECT_STORES = frozenset("s3 s3a gs gcs az abfs abfss adl oci oss tos memory".split())
"""Where a file is there when its upload ends, and not before: a rename would be a copy more."""

HTTP = frozenset({"http", "https"})
"""Where a folder is a page of links, a folder's page looks like a file, and keys may stand in the address."""

_NATURAL = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
_LASTING = {
    getattr(errno, name, None)
    for name in "EACCES EDQUOT EFBIG EINVAL EMSGSIZE ENAMETOOLONG ENOSPC ENOSYS ENOTEMPTY EPERM EREMCHG EROFS".split()
}
_TALKING = frozenset(
    "aiobotocore aiohttp asyncio azure botocore fsspec gcsfs google http paramiko requests ssl urllib3".split()
)
_CREDENTIALS = re.compile(r"credential|ProfileNotFound|TokenRetrieval|UnauthorizedSSO|DefaultCredentials", re.I)
_PASSING_CODES = frozenset("BadDigest IncompleteBody InternalError RequestTimeout ServiceUnavailable SlowDown".split())

log = logging.getLogger("earmark.places")
_answered: set[str] = set()
_told = 0.0
_lock = threading.Lock()


class Elsewhere(NamedTuple):
    """A file system, and how it calls a file."""

    fs: Any
    path: str


def scheme_of(url: str) -> str:
    return url.partition("://")[0].rpartition("::")[2].lower()


def server_of(url: str) -> str:
    """Scheme and bucket or host: what answers or does not."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def reach(url: str) -> Elsewhere:
    """The file system of a URL, with credentials and addresses as its library takes them from the environment."""
    from fsspec.core import url_to_fs

    try:
        fs, path = url_to_fs(as_given(url), **_options(scheme_of(url)))
    except ImportError as error:
        if scheme_of(url) in ("s3", "s3a"):
            raise MissingExtra("Files on s3://", "s3") from error
        raise InputError(f"{url} cannot be opened ({_detail(error)}): install what it names.") from error
    except Exception as error:
        if _CREDENTIALS.search(f"{type(error).__name__} {error}"):
            raise _without_credentials(url, error) from error
        raise InputError(f"{url} cannot be opened ({_detail(error)}): check the address.") from error
    return Elsewhere(fs, path.rstrip("/"))


def _options(scheme: str) -> dict[str, Any]:
    """Of HTTP: passwords from ~/.netrc, proxies from the environment. Of S3: no listings kept, our own pauses instead
    of two more layers of them, no checksums that not all servers know. What the user configured for fsspec, or the
    environment says, wins."""
    from fsspec.config import conf

    if scheme in HTTP:
        return {"client_kwargs": {"trust_env": True, **conf.get(scheme, {}).get("client_kwargs", {})}}
    if scheme not in ("s3", "s3a"):
        return {}
    given = dict(conf.get("s3", {}).get("config_kwargs", {}))
    ours: dict[str, Any] = {
        "connect_timeout": 10,
        "read_timeout": 60,
        "retries": {"mode": "standard", "max_attempts": 1},
    }
    for name in ("request_checksum_calculation", "response_checksum_validation"):
        if f"AWS_{name.upper()}" not in os.environ:
            ours[name] = "when_required"
    return {"use_listings_cache": False, "config_kwargs": {**ours, **given}}


# --- asking until there is an answer -------------------------------------------------------------------------


def persist(call: Callable[[], T], url: str, *, doing: str = "read") -> T:
    """What `call` returns, asked for again while what it raises may pass; `doing` says what failed in the end."""
    started, pause = time.monotonic(), 0.1
    while True:
        try:
            answer = call()
        except EarmarkError:
            raise
        except Exception as error:
            waited = time.monotonic() - started
            if not may_pass(error):
                told = _lasting(error, url, doing)
                if told is error:
                    raise
                raise told from (None if is_signed(url) else error)
            if waited + pause > _patience(url):
                raise _given_up(error, url, waited) from error
            _tell(error, url, waited)
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, 5.0)
        else:
            _answered.add(server_of(url))
            return answer


def _patience(url: str) -> float:
    text = os.environ.get("EARMARK_PATIENCE", "")
    try:
        whole = float(text) if text else PATIENCE
    except ValueError:
        raise InputError(f"EARMARK_PATIENCE is {text!r}: give a number of seconds.") from None
    return whole if server_of(url) in _answered else min(whole, FIRST)


def may_pass(error: BaseException) -> bool:
    """Whether an error may be gone when the same is asked again."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    if isinstance(response, dict):  # botocore's
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(response.get("Error", {}).get("Code", ""))
        if code in _PASSING_CODES or status in (408, 409, 425, 429):
            return True
        if 400 <= status < 500 or status == 507:
            return False
    status = next((v for name in ("status", "status_code", "code") if isinstance(v := getattr(error, name, 0), int)), 0)
    if 400 <= status < 500:
        return status in (408, 409, 425, 429)
    if isinstance(error, (PermissionError, *_NATURAL)):
        return False
    if _CREDENTIALS.search(type(error).__name__):
        return False
    if isinstance(error, OSError | EOFError):
        return getattr(error, "errno", None) not in _LASTING
    return type(error).__module__.partition(".")[0] in _TALKING and "ParamValidation" not in type(error).__name__


def _lasting(error: Exception, url: str, doing: str) -> Exception:
    detail = _detail(error)
    if isinstance(error, FileNotFoundError) and "bucket does not exist" in detail.lower():
        bucket = url.partition("://")[2].partition("/")[0]
        return InputError(f"{url}: there is no bucket {bucket!r}; make it, or check its name.")
    if isinstance(error, _NATURAL):  # which names the address as it was asked for
        return type(error)(errno.ENOENT, "No such file", url) if is_signed(url) else error
    if _CREDENTIALS.search(f"{type(error).__name__} {error}"):
        return _without_credentials(url, error)
    if isinstance(error, PermissionError) or getattr(error, "status", 0) in (401, 403):
        keys = " (AWS_ACCESS_KEY_ID, AWS_PROFILE)" if scheme_of(url).startswith("s3") else ""
        if scheme_of(url) in HTTP:
            keys = " (~/.netrc, or the signature in its address, which is kept nowhere and may be too old)"
        return InputError(
            f"{url} may not be {_participle(doing)} ({detail}): check the keys{keys} and their right to list, read and "
            "write there."
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error
    return InputError(f"{url} cannot be {_participle(doing)} ({detail}): check the address, or choose another place.")


def _given_up(error: Exception, url: str, waited: float) -> Unreachable:
    where = " and AWS_ENDPOINT_URL" if scheme_of(url).startswith("s3") else ""
    return Unreachable(
        f"{url} cannot be reached ({_detail(error)}; tried for {waited:.0f} s): check the network, the address{where}, "
        "and run it again; what is done stays."
    )


def _without_credentials(url: str, error: Exception) -> InputError:
    remedy = (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        if scheme_of(url).startswith("s3")
        else "give them as its library takes them"
    )
    return InputError(f"{url} needs credentials ({_detail(error)}): {remedy}.")


def _participle(doing: str) -> str:
    return {"write": "written", "list": "listed"}.get(doing, doing)


def _detail(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = " ".join(str(text).split()).rstrip(" .")
    # Signed addresses carry keys, and are long.
    return re.sub(r"\?\S*", "", text)[:200].rstrip('"')


def _tell(error: Exception, url: str, waited: float) -> None:
    """Say after a while, and not too often, that a server is waited for."""
    global _told
    with _lock:
        if waited < 3.0 or time.monotonic() - _told < 30.0:
            return
        _told = time.monotonic()
    text = "%s does not answer (%s): asking again for up to %.0f s"
    log.warning(text, server_of(url), _detail(error), _patience(url))
    logging.getLogger("earmark.runs").info(text, server_of(url), _detail(error), _patience(url))
