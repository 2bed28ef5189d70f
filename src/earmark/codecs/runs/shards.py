"""A share of a codec run, done by itself: `earmark codec run CONFIG --shard 3/40`, later `--merge`.

A shard encodes and measures its clips with every codec, beside the few clips that delays and promises are found on, and
lets the models of tasks hear what came out. The merge computes what is still missing, and the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from earmark.codecs.runs._code import SHARE_CLIPS, code_and_measure
from earmark.codecs.runs._listen import ear_of, fitting_subsets, open_tasks, sounds_of
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.runner import Config, prepare_work
from earmark.corpora.subsets import PreparedSubset
from earmark.runs import folder
from earmark.runs.config import refuse_unshared
from earmark.runs.shards import Share, parse_share, working_on


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
    refuse_unshared(config.executor, config.cache, merge=True)
    tasks = open_tasks(config.tasks, config.retention)
    path = folder.make_folder(config.into)
    with working_on(share, config, path, config.cache) as (record, cache):
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
    return CodecShard(share, path, work.counts)


def _part(subset: PreparedSubset, own: set[str]) -> PreparedSubset:
    """The clips of a subset that a share has."""
    rows = [row for row, digest in enumerate(subset.digests) if digest in own]
    return replace(
        subset, clips=tuple(subset.clips[row] for row in rows), digests=tuple(subset.digests[row] for row in rows),
        seconds=(), failures=(),
    )  # fmt: skip
