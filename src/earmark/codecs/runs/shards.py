"""A share of a codec run, done by itself: `earmark codec run CONFIG --shard 3/40`, later `--merge`.

A shard encodes and measures its clips with every codec, beside the few clips that delays and promises are found on, and
lets the models of tasks hear what came out. The merge computes what is still missing, and the rows.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from earmark._version import __version__
from earmark.codecs.runs._code import SHARE_CLIPS, code_and_measure
from earmark.codecs.runs._listen import ear_of, fitting_subsets, open_tasks, sounds_of
from earmark.codecs.runs.config import CodecConfig, refuse_unshared
from earmark.codecs.runs.runner import Config, prepare_work
from earmark.corpora.subsets import PreparedSubset
from earmark.runs import folder
from earmark.runs.engine import reason_of
from earmark.runs.shards import ShardRecord, Share, config_key, parse_share, read_shard, shard_folder, write_shard
from earmark.runs.store import open_cache

log = logging.getLogger("earmark.runs")


@dataclass(frozen=True)
class CodecShard:
    """What a share of a codec run came to."""

    share: Share
    folder: Path
    counts: dict[str, dict[str, float]]


def run_codec_shard(config: Config, share: str | Share, *, progress: bool = False) -> CodecShard:
    """Do a share of a codec run, such as "3/40"; what it makes lies in the cache."""
    config = CodecConfig.resolve(config)
    share = parse_share(share) if isinstance(share, str) else share
    refuse_unshared(config, None, None, merge=True)
    tasks = open_tasks(config.tasks, config.retention)
    path = folder.make_folder(config.into)
    before = read_shard(path, share)
    record = ShardRecord(
        share.number, share.of, config=config_key(config), counts=before.counts if before is not None else {}
    )
    write_shard(path, record)
    with folder.logging_to(shard_folder(path, share)), open_cache(config.cache.url, config.cache.policy) as cache:
        log.info("earmark %s: shard %s into %s, cache %s", __version__, share, path, cache.url)
        try:
            work = prepare_work(config, cache, progress=progress)
            places = {digest: place for place, digest in enumerate(work.samples)}
            code_and_measure(work, share)
            own = {digest for digest, place in places.items() if share.takes(place // SHARE_CLIPS)}
            work.subsets = [_part(subset, own) for subset in work.subsets]
            for named in tasks:
                ear = ear_of(work, named)
                if not ear.together:  # a set that is heard as a whole waits for the merge
                    ear.listen(sounds for subset in fitting_subsets(work, named) for sounds in sounds_of(work, subset))
            record.counts.update(work.counts)
            record.status = "finished"
            log.info("finished: %s", "; ".join(f"{step} {amounts}" for step, amounts in work.counts.items()))
        except BaseException as error:
            record.status = reason_of(error)
            log.error("stopped: %s", record.status)
            raise
        finally:
            write_shard(path, record)
    return CodecShard(share, path, work.counts)


def _part(subset: PreparedSubset, own: set[str]) -> PreparedSubset:
    """The clips of a subset that a share has."""
    rows = [row for row, digest in enumerate(subset.digests) if digest in own]
    return replace(
        subset, clips=tuple(subset.clips[row] for row in rows), digests=tuple(subset.digests[row] for row in rows),
        seconds=(), failures=(),
    )  # fmt: skip
