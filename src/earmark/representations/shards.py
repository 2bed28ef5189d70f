"""A share of a run, done by itself: `earmark run CONFIG --shard 3/40`, later `earmark run CONFIG --merge`.

A shard hears its windows of every subset with every model, then measures its share of the systems whose vectors are all
there already, and leaves the rest to shards that come later and to the merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from earmark.corpora.subsets import open_corpora
from earmark.representations._record import Work
from earmark.representations._shards import as_facts, refusals_of
from earmark.representations._workers import spread, spread_here
from earmark.representations.config import RunConfig
from earmark.representations.runner import Config, prepare_work
from earmark.runs import folder
from earmark.runs.config import refuse_unshared
from earmark.runs.executors import Executor
from earmark.runs.shards import Share, parse_share, read_shards, working_on, write_shard


@dataclass(frozen=True)
class Shard:
    """What a share of a run came to. `left`: systems whose vectors are not all there yet."""

    share: Share
    folder: Path
    counts: dict[str, dict[str, float]]
    left: int


def run_shard(config: Config, share: str | Share, *, progress: bool = False) -> Shard:
    """Do a share of a run, such as "3/40"; what it makes lies in the cache, what failed in RUN/shards."""
    config = RunConfig.resolve(config)
    share = parse_share(share) if isinstance(share, str) else share
    refuse_unshared(config.executor, config.cache, merge=True)
    path = folder.make_folder(config.into)
    with working_on(share, config, path, config.cache, config.steps) as (record, cache):
        work = Work(
            config=config, cache=cache, corpora=open_corpora(config.corpus, config.label_separator), progress=progress
        )
        try:
            prepare_work(work)
            if "embed" in config.steps:
                spread_here(work, share)
                with Executor(work.workers) as executor:
                    spread(work, executor, ["embed"], share)
                record.about["refused"] = as_facts(work.refused)
                done = sum(work.embedded.values())
                work.count("embed", computed=done, failed=sum(map(len, work.refused.values())))
            write_shard(path, record)  # what failed is known before what takes long
            left = 0
            wanted = tuple(step for step in ("evaluate", "probe") if step in config.steps)
            if wanted:
                work.refused = refusals_of(read_shards(path))
                with Executor(work.workers) as executor:
                    left = spread(work, executor, wanted, share).left
                work.count("evaluate", computed=len(work.elsewhere), left=left)
        finally:
            record.counts.update(work.counts)
    return Shard(share, path, work.counts, left)
