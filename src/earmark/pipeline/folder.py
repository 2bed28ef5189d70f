"""The run folder: what a run leaves for people and for reports.

    config.yaml    the config as resolved; `earmark run RUN/config.yaml` does it again
    scores.csv     the score table: every system on the clips it has
    comparisons.csv  systems on the clips they share, where they differ in theirs, and differences between them
    clips.csv      every clip and what happened to it
    failures.csv   clips that could not be used, with the reason
    run.json       corpora, subsets, systems, where vectors lie, times, versions
    run.log        what was done when
    report.html    the report
    tables/        the scores of each subset for papers, and how metrics correlate
    figures/       what models that learn made of the sounds, where there are such models

Every file is replaced as a whole: a reader never sees half of one.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.pipeline import packs, steps
from earmark.pipeline.cache import Cache
from earmark.pipeline.config import load_config
from earmark.pipeline.packs import Facts
from earmark.pipeline.prepare import Failure, Subset, choose_subsets, open_corpora

CLIP_COLUMNS = tuple("suite subset id label group path start end seconds rate channels digest outcome copy_of".split())
FORMAT = 1


def make_folder(into: str | Path) -> Path:
    folder = Path(into).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is not a folder: give another place with --into.") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror}): give another place with --into.") from error
    return folder


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole; what cannot be written as UTF-8 is escaped."""
    try:
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): free some space or choose another place."
        ) from error


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if cell is None else cell for cell in line] for line in lines])
    write_text(path, stream.getvalue())


def file_stem(name: str) -> str:
    """A name as part of a file's."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def write_failures(folder: Path, failures: Iterable[Failure]) -> None:
    write_csv(folder / "failures.csv", [field.name for field in fields(Failure)], map(astuple, failures))


def read_failures(folder: Path) -> list[Failure]:
    path = folder / "failures.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return [Failure(**record) for record in csv.DictReader(stream)]


def write_clips(
    folder: Path, subsets: Iterable[Subset], facts: Mapping[str, Facts], outcomes: Mapping[tuple[str, str, str], str]
) -> None:
    write_csv(
        folder / "clips.csv",
        CLIP_COLUMNS,
        (
            [*_clip_line(subset, clip, digest, facts.get(digest or ""), outcomes), copy_of.get(clip.id)]
            for subset in subsets
            for copy_of in [{id: copies.ids[0] for copies in subset.copies for id in copies.ids[1:]}]
            for clip, digest in subset.listed
        ),
    )


def _clip_line(
    subset: Subset, clip: Clip, digest: str | None, facts: Facts | None, outcomes: Mapping[tuple[str, str, str], str]
) -> list[object]:
    path = str(Path(clip.path).absolute()) if clip.path else None
    heard = [None, None, None] if facts is None else [facts.seconds, facts.rate or None, facts.channels or None]
    said = outcomes.get((subset.suite, subset.name, clip.id), "used" if digest else "")
    where = [subset.suite, subset.name, clip.id, clip.label, clip.group, path, clip.start, clip.end]
    return [*where, *heard, digest, said]


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1, default=str) + "\n")


@contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Send the pipeline's log to RUN/run.log while a run lasts."""
    log = logging.getLogger("earmark.pipeline")
    try:
        handler: logging.Handler = logging.FileHandler(folder / "run.log", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{folder / 'run.log'} cannot be written ({error.strerror}): choose another place.") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before, spread = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = spread
        handler.close()


# --- reading a finished run ----------------------------------------------------------------------------------


class RunVectors(NamedTuple):
    """The vectors of one system over one subset, with what is known of each row."""

    ids: list[str]
    labels: list[str | None]
    groups: list[str | None]
    values: NDArray[np.float32]


def read_record(folder: str | Path) -> dict[str, Any]:
    """What run.json says."""
    path = Path(folder) / "run.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} is not a run folder: it has no run.json; give the folder of an `earmark run`."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    return found


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
        said = line["id"], line["label"], line["group"], line["digest"]
        clips.setdefault((line["suite"], line["subset"]), []).append(said)
    return Finished(record, clips)


def read_clips(folder: str | Path) -> list[dict[str, str]]:
    """The lines of clips.csv; an empty cell is an empty text."""
    with (Path(folder) / "clips.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def load_vectors(folder: str | Path, subset: str, system: str, suite: str | None = None) -> RunVectors:
    """The vectors that a run measured, from its cache; InputError when the cache has lost them.

    Args:
        folder: The run folder.
        subset: The subset, as the scores name it.
        system: The system, as the scores name it.
        suite: The suite, where several have a subset of that name.
    """
    record = read_record(folder)
    found = _find(record["vectors"], "vectors", subset, system, suite)
    cache = _cache_of(record)
    lines = _lines_of(folder, found)
    if found["pca_key"]:
        entry = cache.get(steps.PCA_KIND, found["pca_key"])
        if entry is None:
            raise _lost(folder, cache)
        values = np.asarray(entry.arrays["values"])
    else:
        index = packs.read_index(cache, found["extractor_key"])
        try:
            digests = [line["digest"] for line in lines]
            values = packs.assemble(cache, found["extractor_key"], index, digests, found["parts"])
        except (packs.LostPacks, KeyError):
            raise _lost(folder, cache) from None
    return RunVectors(
        [line["id"] for line in lines],
        [line["label"] or None for line in lines],
        [line["group"] or None for line in lines],
        values,
    )


def load_points(
    folder: str | Path,
    subset: str,
    system: str,
    distance: str,
    suite: str | None = None,
    correction: str = "none",
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Per-point values by (protocol, metric): `nearest_row`, `P@1`, `GSR`, `hub_ratio`, as far as they were asked for.

    Rows as in `load_vectors`, NaN where a clip has none. Empty when nothing could be measured.
    """
    record = read_record(folder)
    job = _find(
        [
            one
            for one in record["evaluations"]
            if (one["distance"], one.get("correction", "none")) == (distance, correction)
        ],
        "evaluations",
        subset,
        system,
        suite,
    )
    cache = _cache_of(record)
    entry = cache.get(steps.SCORES_KIND, job["key"])
    if entry is None:
        raise _lost(folder, cache)
    names = [name for name in entry.arrays if " without " not in name]
    return {(name.split(" ", 1)[0], name.split(" ", 1)[1]): np.array(entry.arrays[name]) for name in names}


def open_clips(folder: str | Path) -> dict[tuple[str, str], dict[str, Clip]]:
    """The clips of a run, to be heard again: {(suite, subset): {id: Clip}}; corpora are opened as the config says."""
    config = load_config(Path(folder) / "config.yaml")
    found: dict[tuple[str, str], dict[str, Clip]] = {}
    for corpus, entry in zip(open_corpora(config.corpus), config.corpus, strict=True):
        for name, clips in choose_subsets(corpus, entry.subsets).items():
            found[corpus.name, name] = {clip.id: clip for clip in clips}
    return found


def _cache_of(record: Mapping[str, Any]) -> Cache:
    if not record["cache"]:
        raise InputError("This run kept no cache (cache: off), so its vectors are gone; run it again with a cache.")
    return Cache(record["cache"])


def _lines_of(folder: str | Path, found: Mapping[str, Any]) -> list[dict[str, str]]:
    lines = [
        line for line in read_clips(folder) if (line["suite"], line["subset"]) == (found["suite"], found["subset"])
    ]
    left_out = set(found["left_out"])
    return [line for line in lines if line["id"] not in left_out]


def _find(entries: Sequence[dict[str, Any]], what: str, subset: str, system: str, suite: str | None) -> dict[str, Any]:
    for one in entries:
        if (one["subset"], one["system"]) == (subset, system) and suite in (None, one["suite"]):
            return one
    known = sorted({f"{one['subset']}: {one['system']}" for one in entries})
    raise UsageError(f"The run has no {what} of {subset}: {system}.{did_you_mean(f'{subset}: {system}', known)}")


def _lost(folder: str | Path, cache: Cache) -> InputError:
    return InputError(f"The cache {cache.url} no longer holds what {folder} measured: run its config.yaml again.")
