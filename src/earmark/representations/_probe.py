"""Probes of a run: what classifiers, linear probes and listeners say of the vectors that were measured.

A job is one subset, one system and one probe; its rows are kept like those of measurements, under a key made of the
vectors, the labels, groups and folds, the judgements and the options.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from earmark._version import __version__
from earmark.corpora.clips import folds_of
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.representations._evaluate import Vectors, remarks_on
from earmark.representations.config import ProbeEntry, RunConfig
from earmark.runs.identity import Stage
from earmark.runs.packs import Records
from earmark.runs.store import Entry
from earmark.scores import Row, Scores

PROBE = Stage(
    "probe",
    2,
    libraries=("numpy", "scipy", "scikit-learn"),
    modules=(
        "calibrate/binomial.py",
        "calibrate/jackknife.py",
        "corpora/manifest.py",
        "evaluation/data.py",
        "geometry/**/*.py",
        "representations/_probe.py",
        "vectors/texts.py",
        *(
            f"probes/{name}.py"
            for name in (
                "_accuracy", "_agreement", "_answers", "_choice_statistics", "_classifiers", "_fold_probe", "_items",
                "_judgements", "_logistic", "_names", "_precision", "_probed_rows", "_sounds", "_strengths", "_units",
                "classify", "folds", "linear", "perception",
            )
        ),
    ),
)  # fmt: skip
PROBES_KIND = "probes"


@dataclass(frozen=True)
class Probing:
    """One probe of some vectors."""

    vectors: Vectors
    entry: ProbeEntry
    key: str


def probings_of(vectors: Vectors, config: RunConfig) -> Iterator[Probing]:
    """Every probe of some vectors, in the order of the config."""
    labels, groups = vectors.truth(0.0, config.seed)
    for entry in config.probes:
        about: list[Any] = [labels, groups, _folds(vectors)]
        if entry.probe == "perception":
            about = [_digest(entry.file), [vectors.subset.clips[row].id for row in vectors.rows], config.ties]
            about += list(vectors.system.distances)
        yield Probing(vectors, entry, PROBE.key(vectors.key, entry.model_dump(exclude={"file"}), about, config.seed))


def probe(job: Probing, loaded: Entry, config: RunConfig) -> Entry:
    """The rows of a probe, without names; one that cannot be had is a row that says why."""
    started = time.perf_counter()
    values = np.asarray(loaded.arrays["values"])
    try:
        rows = _RUNNERS[job.entry.probe](job, values, config).rows
    except (InputError, UsageError) as error:
        metric = "triplet_accuracy" if job.entry.probe == "perception" else "accuracy"
        rows = (
            Row(metric=metric, protocol=job.entry.probe, status="not_applicable", reason=str(error),
                version=__version__),
        )  # fmt: skip
    return Entry({"rows": [row.as_dict() for row in rows], "seconds": time.perf_counter() - started})


def named_rows(job: Probing, entry: Entry, records: Records) -> list[Row]:
    """The rows as they stand in the score table, with everything a reader should know of n."""
    subset, system = job.vectors.subset, job.vectors.system
    names = {"suite": subset.suite, "subset": subset.name}
    remarks = remarks_on(job.vectors, records, shared=False)
    if system.pca is not None and job.entry.probe != "perception":
        remarks.append("PCA was fitted on all clips, those to be tested too")
    rows = []
    for cells in entry.meta["rows"]:
        own = [] if cells["system"] else remarks  # how listeners agree rests on no system
        reason = "; ".join(filter(None, [*own, cells["reason"]]))
        rows.append(Row(**{**cells, **names, "system": cells["system"] or system.name, "reason": reason}))
    return rows


def _folds(vectors: Vectors) -> list[str | None] | None:
    return folds_of([vectors.subset.clips[row] for row in vectors.rows])


def refuse_missing_files(config: RunConfig) -> None:
    """Say before the work, not after it, that judgements are not there."""
    for entry in config.probes:
        if entry.file:
            _digest(entry.file)


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(locate(file).expanduser().read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"The judgements {file} cannot be read ({error.strerror or error}): check the path.") from None


# --- the probes ------------------------------------------------------------------------------------------------------


def _linear(job: Probing, values: np.ndarray[Any, Any], config: RunConfig) -> Scores:
    from earmark.probes.linear import linear

    return linear(values, *_truth(job, config), **_options(job, config))


def _classify(job: Probing, values: np.ndarray[Any, Any], config: RunConfig) -> Scores:
    from earmark.probes.classify import classify

    return classify(values, *_truth(job, config), **_options(job, config))


def _perception(job: Probing, values: np.ndarray[Any, Any], config: RunConfig) -> Scores:
    from earmark.probes.perception import perception

    ids = [job.vectors.subset.clips[row].id for row in job.vectors.rows]
    options = {"distance": job.vectors.system.distances, "ties": config.ties, **job.entry.options}
    return perception(str(locate(job.entry.file).expanduser()), values, ids=ids, threads=config.threads, **options)


def _truth(job: Probing, config: RunConfig) -> tuple[list[str | None]]:
    return (job.vectors.truth(0.0, config.seed)[0],)


def _options(job: Probing, config: RunConfig) -> dict[str, Any]:
    """Groups, and the folds of the corpus unless the entry asks for others."""
    _, groups = job.vectors.truth(0.0, config.seed)
    options = {"groups": groups, "seed": config.seed, "threads": config.threads, **job.entry.options}
    if not {"folds", "kind"} & set(job.entry.options):
        options["given"] = _folds(job.vectors)
    return options


_RUNNERS: dict[str, Callable[[Probing, np.ndarray[Any, Any], RunConfig], Scores]] = {
    "linear": _linear,
    "classify": _classify,
    "perception": _perception,
}
