"""A codec run as it begins: codecs opened, corpora listed, and what codecs may not see; no clip is opened yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from earmark.codecs.cells import Confinement, covering
from earmark.codecs.contract import Codec
from earmark.codecs.runs._systems import CodecSystem, open_systems
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.state import CodecWork
from earmark.codecs.signal import CORE, require_packages
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.subsets import open_corpora
from earmark.errors import UsageError
from earmark.metrics.catalogue import pinned
from earmark.places import is_url
from earmark.runs.store import Cache
from earmark.workers import thread_count


def open_work(
    config: CodecConfig,
    cache: Cache,
    codecs: Sequence[str | Codec] | None = None,
    corpora: Sequence[Corpus] | None = None,
    progress: bool = False,
) -> CodecWork:
    """A run whose codecs and corpora are opened; `codecs` and `corpora` stand in for those that the config names."""
    metrics = tuple(dict.fromkeys(map(pinned, [*(config.metrics or CORE), *config.extras])))
    require_packages(metrics)
    if config.gain_match and config.definitions == "reference":
        raise UsageError("The published definitions know no gain matching: leave out one of the two.")
    confinement = Confinement(config.isolation, (), tuple(config.readable), config.clip_timeout)
    if confinement.support().level == "full":  # from now on no worker may fall back to less
        confinement = replace(confinement, mode="full")
    systems, notes = open_systems(config.codecs if codecs is None else codecs, cache, confinement)
    limited = [_limited(corpus, config.limit) for corpus in corpora or open_corpora(config.corpus)]
    return CodecWork(
        config=config, cache=cache, corpora=limited, systems=systems, metrics=metrics,
        jobs=thread_count(None) if config.jobs is None else config.jobs, progress=progress, notes=notes,
        confinement=replace(confinement, hidden=_hidden(config, cache, limited, systems, confinement)),
    )  # fmt: skip


def _hidden(
    config: CodecConfig,
    cache: Cache,
    corpora: Sequence[Corpus],
    systems: Sequence[CodecSystem],
    confinement: Confinement,
) -> tuple[str, ...]:
    """What codecs may not see: clips, the cache, the results."""
    clips = {clip.path for corpus in corpora for clip in corpus.clips if clip.path and not is_url(clip.path)}
    covered = covering(clips, [system.codec for system in systems], confinement)
    into = [] if is_url(config.into) else [str(Path(config.into).absolute())]
    return (*covered, *into, *([cache.url] if cache.local else []))


def _limited(corpus: Corpus, limit: int | None) -> Corpus:
    """The corpus with at most so many clips of each subset, evenly from its beginning to its end."""
    if limit is None:
        return corpus
    kept: list[Clip] = []
    for clips in corpus.subsets().values():
        rows = np.linspace(0, len(clips) - 1, min(limit, len(clips))).round().astype(int)
        kept += [clips[row] for row in rows]
    return replace(corpus, clips=kept)
