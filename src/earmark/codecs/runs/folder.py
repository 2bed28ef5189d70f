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
from earmark.codecs.runs.state import ClipResult, CodecWork
from earmark.codecs.runs.systems import CodecSystem
from earmark.codecs.submission import codec_document, to_json
from earmark.corpora.subsets import PreparedSubset
from earmark.errors import EarmarkError, InputError
from earmark.runs import folder
from earmark.runs.identity import fingerprint, versions
from earmark.scores import Scores
from earmark.submissions import Dataset, Document

__all__ = ["KIND", "clip_values", "is_codec_run", "read_cards", "read_codec_record", "write_results"]

KIND = "codec"
MOST_REASONS = 2_000
_FACTS = ("subset", "system", "id", "label", "group", "status", "seconds", "bits", "header_bits", "kbps")
_TIMES = ("encode_seconds", "decode_seconds")
_LIBRARIES = (
    "av", "imageio-ffmpeg", "numpy", "pesq", "praat-parselmouth", "pycodec2", "pystoi", "scipy", "soxr", "speechmos",
    "torch", "transformers", "visqol-python", "zimtohrli",
)  # fmt: skip


def write_results(work: CodecWork, place: Path, scores: Scores) -> None:
    """Everything but the log, the config and the report."""
    scores.write(place / "scores.csv")
    _write_clips(work, place)
    folder.write_text(place / "submission.json", to_json(document_of(work, scores)))
    folder.write_record(place, _record(work))


def document_of(work: CodecWork, scores: Scores) -> Document:
    """The run as a submission."""
    return codec_document(
        cards=tuple(system.card for system in work.systems),
        scores=scores,
        suite=work.config.suite,
        definitions=work.config.definitions,
        datasets=tuple(_dataset(work, subset) for subset in work.subsets),
        versions=_versions(),
    )


def _dataset(work: CodecWork, subset: PreparedSubset) -> Dataset:
    seconds = 0.0
    for one in work.results(subset, work.systems[0]):
        seconds += one.known.seconds if one.known is not None else 0.0
    digest = fingerprint(list(subset.digests))
    category = work.categories[subset.name]
    return Dataset(subset.name, category, len(subset.clips), round(seconds, 3), digest, subset.card.title)


def _versions() -> dict[str, str]:
    found = {name: version for name, version in versions(*_LIBRARIES).items() if version}
    return {"earmark": __version__, "python": platform.python_version(), **found}


def _record(work: CodecWork) -> dict[str, Any]:
    return {
        "format": folder.FORMAT,
        "kind": KIND,
        "earmark": __version__,
        "started": work.started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "platform": platform.platform(),
        "cache": work.cache.url if work.config.cache.policy != "off" else None,
        "steps": work.counts,
        "protocol": work.protocol,
        "metrics": list(work.metrics),
        "corpora": [{**asdict(corpus.card), "clips": len(corpus)} for corpus in work.corpora],
        "datasets": [asdict(_dataset(work, subset)) for subset in work.subsets],
        "codecs": [
            {
                "card": asdict(system.card),
                "spec": system.codec if isinstance(system.codec, str) else "",
                "key": system.key,
                "delay": work.delays[system.name]._asdict(),
            }
            for system in work.systems
        ],
        "missing": missing(work),
        "failed": failed(work),
        "notes": work.notes,
    }


def missing(work: CodecWork) -> list[dict[str, Any]]:
    """Clips without a value, counted by subset, codec, what was to be measured, and reason; most frequent first."""
    found: dict[tuple[str, str, str, str, str], list[str]] = {}
    for subset in work.subsets:
        for system in work.systems:
            for one in work.results(subset, system):
                lacking = {"coding": one.refused} if one.refused is not None else one.values
                for what, value in lacking.items():
                    if value.status != "ok":
                        what = re.sub(r"#\d+", "", what.removeprefix(f"{work.protocol} "))
                        found.setdefault((subset.name, system.name, what, value.status, value.reason), []).append(
                            one.clip.id
                        )
    names = ("subset", "system", "what", "status", "reason")
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))[:MOST_REASONS]
    return [{**dict(zip(names, key, strict=True)), "clips": len(ids), "first": ids[0]} for key, ids in ordered]


def failed(work: CodecWork) -> dict[str, dict[str, dict[str, list[str]]]]:
    """{subset: {codec: {"coding" or a metric: ids of the clips that failed}}}; a codec that never fails has none."""
    names = {f"{work.protocol} {metric}": metric for metric in work.metrics}
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for subset in work.subsets:
        for system in work.systems:
            own = found.setdefault(subset.name, {}).setdefault(system.name, {})
            for one in work.results(subset, system):
                values = {"coding": one.refused} if one.refused is not None else one.values
                for what, value in values.items():
                    if value.status == "failed" and (what in names or one.refused is not None):
                        own.setdefault(names.get(what, what), []).append(one.clip.id)
    return found


# --- clips.csv -------------------------------------------------------------------------------------------------------


def _write_clips(work: CodecWork, place: Path) -> None:
    names = [f"{work.protocol} {metric}" for metric in work.metrics]
    extra: dict[str, None] = {}
    lines: list[tuple[PreparedSubset, CodecSystem, ClipResult]] = []
    for subset in work.subsets:
        for system in work.systems:
            for one in work.results(subset, system):
                lines.append((subset, system, one))
                extra.update(dict.fromkeys(name for name in one.values if name not in names))
    columns = [*names, *sorted(extra)]
    titles = [name.removeprefix(f"{work.protocol} ") for name in columns]
    header = [*_FACTS, *titles, *_TIMES, "reasons"]
    folder.write_csv(place / "clips.csv", header, (_line(*line, columns, titles) for line in lines))


def _line(
    subset: PreparedSubset, system: CodecSystem, one: ClipResult, columns: Sequence[str], titles: Sequence[str]
) -> list[object]:
    known = one.known
    found = [one.refused or one.values.get(name) for name in columns]
    status = one.refused.status if one.refused else "ok"
    facts: list[object] = [subset.name, system.name, one.clip.id, one.clip.label, one.clip.group, status]
    if known is None:
        counts: list[object] = [None] * 4
        times: list[object] = [None] * 2
    else:
        counts = [known.seconds, known.bits, known.header_bits, known.bits / known.seconds / 1000]
        times = [known.encode_seconds, known.decode_seconds]
    values = [None if value is None else value.value for value in found]
    return [*facts, *counts, *values, *times, _reasons(one, found, titles)]


def _reasons(one: ClipResult, found: Sequence[Measured | None], titles: Sequence[str]) -> str:
    """Why values are missing, each reason once, with what it is about."""
    if one.refused is not None:
        return one.refused.reason
    about: dict[tuple[str, str], list[str]] = {}
    for title, value in zip(titles, found, strict=True):
        if value is not None and value.status != "ok":
            about.setdefault((value.status, value.reason), []).append(title)
    said = (f"{', '.join(names)} {status.replace('_', ' ')}: {why}" for (status, why), names in about.items())
    return "; ".join(said)


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
    cards = (one["card"] for one in record["codecs"])
    found = [CodecCard(**{**card, "codebook_sizes": tuple(card["codebook_sizes"])}) for card in cards]
    return {card.name: card for card in found}


def clip_values(place: str | Path, metric: str) -> Iterator[tuple[str, str, str, Measured]]:
    """(subset, system, clip id, value) of one column of clips.csv; "status" tells the lines without a value apart."""
    path = Path(place) / "clips.csv"
    try:
        for line in folder.read_clips(place):
            cell = line.get(metric) or ""
            status = line["status"] if line["status"] != "ok" else "not_applicable"
            value = Measured(float(cell)) if cell else Measured(None, status, line["reasons"] or "not measured")
            yield line["subset"], line["system"], line["id"], value
    except (EarmarkError, KeyError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): run its config.yaml again.") from error
