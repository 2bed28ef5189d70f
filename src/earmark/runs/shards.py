"""A run in shares: `--shard 3/40` does the third of forty, at any time and in any order, and `--merge` does the rest.

    RUN/shards/3-of-40/shard.json   what the shard did: when, where, counts, and what failed
    RUN/shards/3-of-40/run.log

Who does what follows from the place of a piece of work in the run alone, so that shares never overlap and need not know
of each other. What they make lies in the cache; what failed lies here, so that nobody tries it again needlessly.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.errors import UsageError
from earmark.runs.config import CacheOptions, RunSettings
from earmark.runs.engine import reason_of
from earmark.runs.folder import logging_to, make_folder, write_text
from earmark.runs.identity import fingerprint
from earmark.runs.store import Cache, open_cache
from earmark.wording import counted, first_of

SHARDS = "shards"

log = logging.getLogger("earmark.runs")


class Share(NamedTuple):
    """Which share of a run: `3/40`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def stem(self) -> str:
        return f"{self.number}-of-{self.of}"

    def takes(self, place: int) -> bool:
        """Whether the piece of work at a place of the run is this share's."""
        return place % self.of == self.number - 1


def parse_share(text: str) -> Share:
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    share = Share(int(found[1]), int(found[2])) if found else Share(0, 0)
    if not 1 <= share.number <= share.of:
        raise UsageError(f"{text!r} is no share of a run: write 3/40 for the third of forty.")
    return share


@dataclass
class ShardRecord:
    """What a shard says of itself."""

    number: int
    of: int
    status: str = "running"  # finished, or the reason why it failed
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    earmark: str = __version__
    config: str = ""  # what it was a share of, by `config_key`
    started: str = field(default_factory=lambda: _now())
    finished: str = ""
    steps: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # what the kind of run wants to know again

    @property
    def share(self) -> Share:
        return Share(self.number, self.of)


def config_key(config: RunSettings) -> str:
    """What a run measures, without where, by whom and how far: shares of one run have one key."""
    return fingerprint(config.portable().model_dump(mode="json", exclude=_ELSEWHERE))


_ELSEWHERE = {
    "into", "steps", "cache", "jobs", "workers", "threads", "memory", "device", "executor", "scheduler", "cluster",
    "report",
}  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def shard_folder(run: Path, share: Share) -> Path:
    return make_folder(run / SHARDS / share.stem)


def write_shard(run: Path, record: ShardRecord) -> None:
    """Replace what is known of a shard, as a whole."""
    if record.status != "running":
        record.finished = _now()
    path = shard_folder(run, record.share) / "shard.json"
    write_text(path, json.dumps(asdict(record), ensure_ascii=False, indent=1) + "\n")


def read_shard(run: Path, share: Share) -> ShardRecord | None:
    """What a shard wrote; None where it wrote nothing that can be read."""
    try:
        known: Mapping[str, Any] = json.loads((run / SHARDS / share.stem / "shard.json").read_text("utf-8"))
        return ShardRecord(**known)
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def working_on(
    share: Share, config: RunSettings, run: Path, cache: CacheOptions, steps: Sequence[str] = ()
) -> Iterator[tuple[ShardRecord, Cache]]:
    """The record of a share, with what it knew before, and its cache; how it ends is written down, however it ends."""
    before = read_shard(run, share)
    record = ShardRecord(share.number, share.of, steps=list(steps), config=config_key(config))
    if before is not None:
        record.about, record.counts = before.about, before.counts
    write_shard(run, record)
    with logging_to(shard_folder(run, share)), open_cache(cache.url, cache.policy) as opened:
        log.info("earmark %s: shard %s into %s, cache %s", __version__, share, run, opened.url)
        try:
            yield record, opened
            record.status = "finished"
            log.info("finished: %s", "; ".join(f"{step} {amounts}" for step, amounts in record.counts.items()))
        except BaseException as error:
            record.status = reason_of(error)
            log.error("stopped: %s", record.status)
            raise
        finally:
            write_shard(run, record)


def read_shards(run: Path) -> list[ShardRecord]:
    """Every shard that has begun, in order."""
    found = re.compile(r"(\d+)-of-(\d+)")
    files = (run / SHARDS).glob("*-of-*/shard.json")  # a folder of an object store is known by what lies in it
    names = [match for path in files if (match := found.fullmatch(path.parent.name))]
    shares = sorted((int(match[2]), int(match[1])) for match in names)
    records = [read_shard(run, Share(number, of)) for of, number in shares]
    return [record for record in records if record is not None]


def notes_on(
    records: Sequence[ShardRecord], command: str, config: RunSettings | None = None, *, show: bool = False
) -> list[str]:
    """What a person should know of shards before their results are merged: which are missing, failed, not at an end, or
    shares of a run with another config.

    Counted are those of the last division: a run that was begun in 10 shards and done in 40 is one of 40. `show` says
    it at once as well: what is missing may take hours.
    """
    notes = _notes_on(records, command, config)
    if show:
        print(*notes, sep="\n", file=sys.stderr)
    return notes


def _notes_on(records: Sequence[ShardRecord], command: str, config: RunSettings | None) -> list[str]:
    if not records:
        return [f"no shard has run: everything is computed here ({command} --shard 1/10 does a tenth)"]
    of = max(records, key=lambda record: record.started).of
    known = {record.number: record for record in records if record.of == of}
    notes = []
    key = config_key(config) if config is not None else ""
    others = [str(record.share) for record in known.values() if key and record.config not in ("", key)]
    known = {number: record for number, record in known.items() if str(record.share) not in others}
    missing = [str(Share(number, of)) for number in range(1, of + 1)
               if number not in known and str(Share(number, of)) not in others]  # fmt: skip
    unfinished = [record for record in known.values() if record.status == "running"]
    failed = [record for record in known.values() if record.status not in ("running", "finished")]
    if others:
        notes.append(f"{counted(len(others), 'shard')} of {of} had another config: {first_of(others, 5)}")
    if missing:
        notes.append(f"{counted(len(missing), 'shard')} of {of} never ran: {first_of(missing, 5)}")
    if unfinished:
        shown = [f"{record.share} (begun {record.started} on {record.host})" for record in unfinished]
        notes.append(f"{counted(len(unfinished), 'shard')} of {of} did not finish: {first_of(shown, 5)}")
    if failed:
        shown = [f"{record.share} ({record.status})" for record in failed]
        notes.append(f"{counted(len(failed), 'shard')} of {of} failed: {first_of(shown, 5)}")
    if notes:
        example = (others or missing or [str(record.share) for record in [*unfinished, *failed]])[0]
        notes.append(f"what is missing is computed here; to spread it instead run {command} --shard {example} first")
    return notes
