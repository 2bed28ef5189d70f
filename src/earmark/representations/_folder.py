"""The folder of a representation run: its clips, and its vectors read back from the cache.

Beside the files of every run (`earmark.runs.folder`):

    comparisons.csv  systems on the clips they share, where they differ in theirs, and differences between them
    tables/          the scores of each subset for papers, and how metrics correlate
    figures/         what models that learn made of the sounds, where there are such models
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.corpora.subsets import PreparedSubset, choose_subsets, open_corpora
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.places import locate
from earmark.representations._evaluate import PCA_KIND, SCORES_KIND, assemble
from earmark.representations.config import RunConfig
from earmark.runs.folder import clips_of_subset, read_clips, read_record, write_csv
from earmark.runs.packs import LostPacks, read_records
from earmark.runs.store import Cache

CLIP_COLUMNS = tuple("suite subset id label group path start end seconds rate channels digest outcome copy_of".split())

Key = tuple[str, str, str]
"""Of a clip: suite, subset, id."""


def vectors_kind(extractor_key: str) -> str:
    """Where the packs of a model's vectors lie in the cache."""
    return f"vectors/{extractor_key}"


def write_clips(
    folder: Path,
    subsets: Iterable[PreparedSubset],
    records: Mapping[str, Mapping[str, Any]],
    outcomes: Mapping[Key, str],
) -> None:
    lines: list[list[object]] = []
    for subset in subsets:
        copy_of = {id: copies.ids[0] for copies in subset.copies for id in copies.ids[1:]}
        for clip, digest in subset.listed:
            known = records.get(digest or "", {})
            outcome = outcomes.get((subset.suite, subset.name, clip.id), "used" if digest else "")
            path = str(locate(clip.path).absolute()) if clip.path else None
            lines.append([
                subset.suite, subset.name, clip.id, clip.label, clip.group, path, clip.start, clip.end,
                known.get("seconds"), known.get("rate") or None, known.get("channels") or None, digest, outcome,
                copy_of.get(clip.id),
            ])  # fmt: skip
    write_csv(folder / "clips.csv", CLIP_COLUMNS, lines)


# --- reading a finished run ----------------------------------------------------------------------------------


class Finished(NamedTuple):
    """What an earlier run left: its record, and (id, label, group, digest) of each clip by suite and subset."""

    record: dict[str, Any]
    clips: dict[tuple[str, str], list[tuple[str, str, str, str]]]


def read_finished(folder: Path) -> Finished | None:
    """What a run that came to scores left in the folder; None when there is no such run."""
    if not all((folder / name).exists() for name in ("scores.csv", "run.json", "clips.csv")):
        return None
    try:
        record = read_record(folder)
    except InputError:
        return None  # nothing can be kept of a record that cannot be read
    clips: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    for line in read_clips(folder):
        facts = line["id"], line["label"], line["group"], line["digest"]
        clips.setdefault((line["suite"], line["subset"]), []).append(facts)
    return Finished(record, clips)


class RunVectors(NamedTuple):
    """The vectors of one system over one subset, with what is known of each row."""

    ids: list[str]
    labels: list[str | None]
    groups: list[str | None]
    values: NDArray[np.float32]

    def of_clips(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of some of the clips, in this order."""
        if list(ids) == self.ids:
            return self.values
        rows = {clip: row for row, clip in enumerate(self.ids)}
        return self.values[[rows[clip] for clip in ids]]


def load_vectors(folder: str | Path, subset: str, system: str, suite: str | None = None) -> RunVectors:
    """The vectors that a run measured, from its cache; InputError when the cache has lost them.

    Args:
        folder: The run folder.
        subset: The subset, as the scores name it.
        system: The system, as the scores name it.
        suite: The suite, where several have a subset of that name.

    Returns:
        The vectors of one system on one subset, with ids, labels and groups.

    >>> earmark.load_vectors("run", "SYN-HW", "mfcc").values.shape
    """
    record = read_record(folder)
    vectors = _find(record["vectors"], "vectors", subset, system, suite)
    cache = cache_of(record)
    left_out = set(vectors["left_out"])
    known = clips_of_subset(folder, vectors["suite"], vectors["subset"])
    lines = [line for clip, line in known.items() if clip not in left_out]
    if vectors["pca_key"]:
        entry = cache.get(PCA_KIND, vectors["pca_key"])
        if entry is None:
            raise lost_from(folder, cache)
        values = np.asarray(entry.arrays["values"])
    else:
        records = read_records(cache, vectors_kind(vectors["extractor_key"]))
        try:
            values = assemble(records, [line["digest"] for line in lines], vectors["parts"])
        except (LostPacks, KeyError):
            raise lost_from(folder, cache) from None
    return RunVectors(
        [line["id"] for line in lines],
        [line["label"] or None for line in lines],
        [line["group"] or None for line in lines],
        values,
    )


def load_points(
    folder: str | Path, subset: str, system: str, distance: str, suite: str | None = None, correction: str = "none"
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Per-point values by (protocol, metric): `nearest_row`, `P@1`, `GSR`, `hub_ratio`, as far as they were asked for.

    Rows as in `load_vectors`, NaN where a clip has none. Empty when nothing could be measured.
    """
    record = read_record(folder)
    way = distance, correction
    known = [job for job in record["evaluations"] if (job["distance"], job.get("correction", "none")) == way]
    cache = cache_of(record)
    entry = cache.get(SCORES_KIND, _find(known, "evaluations", subset, system, suite)["key"])
    if entry is None:
        raise lost_from(folder, cache)
    names = [name for name in entry.arrays if " without " not in name]
    return {(name.split(" ", 1)[0], name.split(" ", 1)[1]): np.array(entry.arrays[name]) for name in names}


def open_clips(folder: str | Path) -> dict[tuple[str, str], dict[str, Clip]]:
    """The clips of a run, to be heard again: {(suite, subset): {id: Clip}}; corpora are opened as the config says."""
    config = RunConfig.load(locate(folder) / "config.yaml")
    whole = {
        (corpus.name, name): {clip.id: clip for clip in clips}
        for corpus, entry in zip(open_corpora(config.corpus, config.label_separator), config.corpus, strict=True)
        for name, clips in choose_subsets(corpus.at_speed(config.speed), entry.subsets).items()
    }
    if not config.sample:
        return whole
    drawn: dict[tuple[str, str], dict[str, Clip]] = {}
    for line in read_clips(folder):
        clips = whole.get((line["suite"], line["subset"].rpartition("~")[0]), {})
        if line["id"] in clips:
            drawn.setdefault((line["suite"], line["subset"]), {})[line["id"]] = clips[line["id"]]
    return drawn


def clips_to_hear(folder: str | Path) -> dict[tuple[str, str], dict[str, Clip]]:
    """`open_clips`, or nothing where the recordings have moved."""
    try:
        return open_clips(folder)
    except (EarmarkError, OSError):
        return {}


def cache_of(record: Mapping[str, Any]) -> Cache:
    """The cache of a run; InputError when it kept none."""
    if not record["cache"]:
        raise InputError("This run kept no cache (cache: off), so its vectors are gone; run it again with a cache.")
    return Cache(record["cache"])


def _find(entries: Sequence[dict[str, Any]], what: str, subset: str, system: str, suite: str | None) -> dict[str, Any]:
    for entry in entries:
        if (entry["subset"], entry["system"]) == (subset, system) and suite in (None, entry["suite"]):
            return entry
    known = sorted({f"{entry['subset']}: {entry['system']}" for entry in entries})
    raise UsageError(f"The run has no {what} of {subset}: {system}.{did_you_mean(f'{subset}: {system}', known)}")


def lost_from(folder: str | Path, cache: Cache) -> InputError:
    """What to say where the cache no longer holds something of a run."""
    return InputError(f"The cache {cache.url} no longer holds what {folder} measured: run its config.yaml again.")
