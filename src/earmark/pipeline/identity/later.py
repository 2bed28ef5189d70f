"""Files that a model opens only when it hears sound: known after its key, so they are kept in the cache beside it.

    reads/<identity>.entry      {path: digest} of what the model under this identity opened later

A model keeps its identity for as long as these files hold what they held. When one has changed, the identity becomes
the hash of the old one and of what the files hold now, which may have files of its own: the chain is followed until a
link is whole. The entry is written before the first vectors are, so vectors never lie there without it.
"""

from __future__ import annotations

from pathlib import Path

from earmark.pipeline import keys
from earmark.pipeline.cache import Cache
from earmark.pipeline.entries import Entry
from earmark.pipeline.identity import watching
from earmark.pipeline.identity.files import digest_of, with_companions
from earmark.pipeline.identity.reads import Reads

__all__ = ["KIND", "Later", "resolved"]

KIND = "reads"
_LINKS = 1000  # changes of a file that are followed


def resolved(cache: Cache, identity: str) -> str:
    """The identity under which vectors lie that were made with the files as they are now."""
    for _ in range(_LINKS):
        kept = _kept(cache, identity)
        now = {name: digest_of(Path(name).expanduser()) for name in kept}
        if now == kept:
            break
        identity = keys.fingerprint("read later", identity, sorted(now.values()))
    return identity


def _kept(cache: Cache, identity: str) -> dict[str, str]:
    # Whether entries are to be refreshed does not matter: old vectors still lie under the old identity.
    entry = Cache(cache.url, "use").get(KIND, identity)
    return dict(entry.meta["files"]) if entry is not None else {}


def _spelled(path: Path) -> str:
    """A path that means the same for another user or on another machine that shares the cache."""
    try:
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)


class Later:
    """Collects what a model opens while it hears, and writes it down before its vectors are."""

    def __init__(self, cache: Cache, identity: str, reads: Reads) -> None:
        self._cache, self._identity, self._reads = cache, identity, reads
        self.seen = watching.Seen(hearing=True)
        self._known: set[Path] = set(reads.paths)

    def keep(self) -> None:
        """Write down files that were not known; nothing is written where there are none."""
        opened = [*self.seen.files(), *watching.of_modules(set(self._reads.own), hearing=True)]
        new = [path for path in with_companions(opened) if path not in self._known]
        if not new:
            return
        self._known |= set(new)
        kept = _kept(self._cache, self._identity) | {_spelled(path): digest_of(path) for path in new}
        self._cache.put(KIND, self._identity, Entry({"files": kept}))
