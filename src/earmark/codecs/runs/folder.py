"""The folder of a codec run: what it leaves for people, for `earmark codec compare` and for a leaderboard.

    config.yaml      the config as resolved; `earmark codec run RUN/config.yaml` does it again
    scores.csv       the score table: means with intervals, rates, delays, speeds, tasks
    clips.csv        every clip through every codec: bits, times, every value, and why some are missing
    submission.json  the same scores for a leaderboard, with the codecs' cards
    run.json         codecs, delays, datasets, times, versions
    run.log          what was done when
    report.html      the report

Every file is replaced as a whole: a reader never sees half of one.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.codecs.contract import CodecCard, Measured
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.state import ClipResult, CodecWork
from earmark.codecs.standing import Standing
from earmark.codecs.submission import codec_document, to_json
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import EarmarkError, InputError
from earmark.metrics.catalogue import name_of
from earmark.places import locate
from earmark.runs import folder
from earmark.runs.identity import fingerprint, versions
from earmark.scores import Scores
from earmark.submissions import Dataset

KIND = "codec"
MOST_REASONS = 2_000
_FACTS = ("subset", "system", "id", "label", "group", "status", "seconds", "bits", "header_bits", "kbps")
_TIMES = ("encode_seconds", "decode_seconds")
_LIBRARIES = (
    "av", "imageio-ffmpeg", "numpy", "pesq", "praat-parselmouth", "pycodec2", "pystoi", "scipy", "soxr", "speechmos",
    "torch", "transformers", "visqol-python", "zimtohrli",
)  # fmt: skip


Line = tuple[PreparedSubset, CodecSystem, ClipResult]
"""One clip of a subset through one codec."""


def write_results(work: CodecWork, path: Path, scores: Scores) -> None:
    """Everything but the log, the config and the report."""
    lines: list[Line] = [
        (subset, system, result)
        for subset in work.subsets
        for system in work.systems
        for result in work.results(subset, system)
    ]
    datasets = [_dataset(work, subset, lines) for subset in work.subsets]
    libraries = {name: version for name, version in versions(*_LIBRARIES).items() if version}
    used = {"earmark": __version__, "python": platform.python_version(), **libraries}
    document = codec_document(
        cards=tuple(system.card for system in work.systems),
        scores=scores,
        suite=work.config.suite,
        definitions=work.config.definitions,
        datasets=tuple(datasets),
        versions=used,
        standings=work.standings,
    )
    scores.write(path / "scores.csv")
    _write_clips(work, path, lines)
    folder.write_text(path / "submission.json", to_json(document))
    folder.write_record(path, _record(work, datasets, used, lines))


def _dataset(work: CodecWork, subset: PreparedSubset, lines: Sequence[Line]) -> Dataset:
    own = [result.known for of, system, result in lines if of is subset and system is work.systems[0]]
    seconds = round(sum((known.seconds for known in own if known is not None), 0.0), 3)
    digest = fingerprint(list(subset.digests))
    return Dataset(subset.name, work.categories[subset.name], len(subset.clips), seconds, digest, subset.card.title)


def _record(
    work: CodecWork, datasets: Sequence[Dataset], used: dict[str, str], lines: Sequence[Line]
) -> dict[str, Any]:
    missing, failed = _losses(work, lines)
    return {
        "format": folder.FORMAT,
        "kind": KIND,
        "earmark": __version__,
        "started": work.started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": used,
        "platform": platform.platform(),
        "cache": work.cache.url if work.config.cache.policy != "off" else None,
        "steps": work.counts,
        "protocol": work.protocol,
        "metrics": list(map(name_of, work.metrics)),
        "corpora": [{**asdict(corpus.card), "clips": len(corpus)} for corpus in work.corpora],
        "datasets": [asdict(dataset) for dataset in datasets],
        "codecs": [
            {
                "card": asdict(system.card),
                "spec": system.codec if isinstance(system.codec, str) else "",
                "key": system.key,
                "delay": work.delays[system.name]._asdict(),
                "standing": work.standings.get(system.name, Standing()).plain,
            }
            for system in work.systems
        ],
        "missing": missing,
        "failed": failed,
        "notes": work.notes,
    }


def _losses(
    work: CodecWork, lines: Sequence[Line]
) -> tuple[list[dict[str, Any]], dict[str, dict[str, dict[str, list[str]]]]]:
    """What is missing, and what failed.

    The first counts clips without a value by subset, codec, what was to be measured, and reason, most frequent first;
    the second is {subset: {codec: {"coding" or a metric: ids of the clips that failed}}}, empty where none did.
    """
    names = {f"{work.protocol} {metric}": name_of(metric) for metric in work.metrics}
    missing: dict[tuple[str, str, str, str, str], list[str]] = {}
    failed: dict[str, dict[str, dict[str, list[str]]]] = {}
    for subset, system, result in lines:
        own = failed.setdefault(subset.name, {}).setdefault(system.name, {})
        values = {"coding": result.refused} if result.refused is not None else result.values
        for what, value in values.items():
            if value.status == "ok":
                continue
            shown = re.sub(r"#\d+", "", what.removeprefix(f"{work.protocol} "))
            reason = subset.name, system.name, shown, value.status, value.reason
            missing.setdefault(reason, []).append(result.clip.id)
            if value.status == "failed" and (what in names or result.refused is not None):
                own.setdefault(names.get(what, what), []).append(result.clip.id)
    columns = ("subset", "system", "what", "status", "reason")
    ordered = sorted(missing.items(), key=lambda item: -len(item[1]))[:MOST_REASONS]
    counted = [{**dict(zip(columns, key, strict=True)), "clips": len(ids), "first": ids[0]} for key, ids in ordered]
    return counted, failed


# --- clips.csv -------------------------------------------------------------------------------------------------------


def _write_clips(work: CodecWork, path: Path, lines: Sequence[Line]) -> None:
    names = [f"{work.protocol} {metric}" for metric in work.metrics]
    extra = {name for _, _, result in lines for name in result.values} - set(names)
    columns = [*names, *sorted(extra)]
    titles = [_title(name).removeprefix(f"{work.protocol} ") for name in columns]
    header = [*_FACTS, *titles, *_TIMES, "reasons"]
    folder.write_csv(path / "clips.csv", header, [_clip_line(*line, columns, titles) for line in lines])


def _title(name: str) -> str:
    """The name of a measurement with its metric spelled as in score tables."""
    protocol, metric = name.split(" ", 1)
    return f"{protocol} {name_of(metric)}"


def _clip_line(
    subset: PreparedSubset, system: CodecSystem, result: ClipResult, columns: Sequence[str], titles: Sequence[str]
) -> list[object]:
    clip, known, refused = result.clip, result.known, result.refused
    values = [refused or result.values.get(name) for name in columns]
    counts: list[object] = [None] * 4
    times: list[object] = [None] * 2
    if known is not None:
        counts = [known.seconds, known.bits, known.header_bits, known.bits / known.seconds / 1000]
        times = [known.encode_seconds, known.decode_seconds]
    about: dict[tuple[str, str], list[str]] = {}  # each reason once, with what it is about
    for title, value in zip(titles, values, strict=True):
        if value is not None and value.status != "ok":
            about.setdefault((value.status, value.reason), []).append(title)
    reasons = "; ".join(f"{', '.join(of)} {status.replace('_', ' ')}: {why}" for (status, why), of in about.items())
    facts = [subset.name, system.name, clip.id, clip.label, clip.group, refused.status if refused else "ok"]
    numbers = [None if value is None else value.value for value in values]
    return [*facts, *counts, *numbers, *times, refused.reason if refused else reasons]


# --- reading a finished run ------------------------------------------------------------------------------------------


def is_codec_run(place: str | Path) -> bool:
    """Whether a folder of a finished run is one of `earmark codec run`."""
    return bool(folder.read_record(place).get("kind") == KIND)


def read_codec_record(place: str | Path) -> dict[str, Any]:
    """What run.json of a codec run says."""
    record = folder.read_record(place)
    if record.get("kind") != KIND:
        raise InputError(f"{place} is not the folder of a codec run: give one of `earmark codec run`.")
    return record


def read_cards(record: dict[str, Any]) -> dict[str, CodecCard]:
    """The codecs of a run, by name."""
    stored = [codec["card"] for codec in record["codecs"]]
    cards = [CodecCard(**{**card, "codebook_sizes": tuple(card["codebook_sizes"])}) for card in stored]
    return {card.name: card for card in cards}


def clip_values(place: str | Path, metric: str) -> Iterator[tuple[str, str, str, Measured]]:
    """(subset, system, clip id, value) of one column of clips.csv; "status" tells the lines without a value apart."""
    path = locate(place) / "clips.csv"
    try:
        for line in folder.read_clips(place):
            cell = line.get(metric) or ""
            status = line["status"] if line["status"] != "ok" else "not_applicable"
            value = Measured(float(cell)) if cell else Measured(None, status, line["reasons"] or "not measured")
            yield line["subset"], line["system"], line["id"], value
    except (EarmarkError, KeyError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): run its config.yaml again.") from error
