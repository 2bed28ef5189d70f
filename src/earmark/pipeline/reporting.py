"""From a run folder to its report: read what the run left, and hand it to the report as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip, CorpusCard
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.evaluation.options import kind_of_intervals
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.overlap import audit
from earmark.pipeline import comparisons, folder, sequences
from earmark.pipeline.config import RunConfig, load_config
from earmark.report import to_latex, to_markdown
from earmark.report.content import CloseUp, CopyNote, Durations, FileNote, OverlapNote, ReportData, SubsetFacts, Timing
from earmark.report.correlations import metric_correlations
from earmark.report.html import write_report
from earmark.report.reading import listed, values
from earmark.scores import Row, Scores, load_scores

CLOSE_UPS = 6
"""Subsets shown clip by clip: their best representation each. More would make the page long, not clearer."""

CONVERTED = 100
"""More conversions than this are the rule in a corpus, not something that happened to a file."""

Clips = Mapping[tuple[str, str], Mapping[str, Clip]]
Fetch = Callable[[int], tuple[NDArray[Any], int]]


def report_run(place: str | Path) -> Path:
    """Write RUN/report.html and RUN/tables/; returns the page."""
    place = Path(place)
    record = folder.read_record(place)
    path = place / "scores.csv"
    if not path.exists():
        raise InputError(f"{place} has no scores.csv yet: let `earmark run` finish the step evaluate first.")
    scores = load_scores(path)
    if not scores.rows:
        raise InputError(f"{path} holds no scores: there is nothing to report.")
    tables = _write_tables(scores, place / "tables")
    page = place / "report.html"
    write_report(gather(place, record, scores, tables), page)
    return page


def gather(place: Path, record: Mapping[str, Any], scores: Scores, tables: Mapping[str, str]) -> ReportData:
    """Everything the report says of a run."""
    config = load_config(place / "config.yaml")
    compared = comparisons.read_comparisons(place)
    ranking = comparisons.ranking_of(record, scores, compared)
    close_ups, missing = _close_ups(place, ranking.scores, config)
    names = [corpus["title"] or corpus["name"] for corpus in record["corpora"]]
    return ReportData(
        title=" + ".join(dict.fromkeys(names)) or "Earmark report",
        scores=scores,
        generated=record["finished"][:10],
        version=record["earmark"],
        cards=[_card(corpus) for corpus in record["corpora"]],
        subsets=[_facts(subset) for subset in record["subsets"]],
        files=[*_file_notes(place, record), *_converted(place, record)],
        notes=[*(note for corpus in record["corpora"] for note in corpus["remarks"]), *missing],
        timings=[
            Timing(stage=name, seconds=float(counts.get("seconds", 0.0)), detail=_detail(counts))
            for name, counts in record["steps"].items()
        ],
        unsteady=_unsteady(record),
        config=(place / "config.yaml").read_text("utf-8"),
        settings=_settings(config),
        versions={"Earmark": record["earmark"], **record["versions"]},
        tables={**tables, **{title: path for title, path in _figures(record) if (place / path).exists()}},
        close_ups=close_ups,
        overlaps=_overlaps(record),
        compared=compared,
        counts=ranking.counts,
        shared=ranking.shared,
        copies=[_copy_note(subset) for subset in record["subsets"] if subset.get("copies")],
        seed=config.seed,
    )


def _copy_note(subset: Mapping[str, Any]) -> CopyNote:
    known = subset["copies"]
    return CopyNote(
        subset=subset["subset"],
        examples=[(one["ids"], one["labels"]) for one in known["examples"]],
        **{name: known[name] for name in ("policy", "sounds", "clips", "left_out", "under_several_labels")},
    )


def _unsteady(record: Mapping[str, Any]) -> list[str]:
    """Models that did not repeat themselves when they heard the same clips again."""
    found = {system["extractor"]: system.get("remark", "") for system in record["systems"]}
    return [f"{name}: {remark}" for name, remark in found.items() if remark]


def _overlaps(record: Mapping[str, Any]) -> list[OverlapNote]:
    """What each pretrained model may have heard of each subset before; models that were never trained are left out."""
    cards = {system["extractor"]: _model_card(system["card"]) for system in record["systems"]}
    found = []
    for name, card in cards.items():
        if card.parameters == 0:
            continue
        for subset in record["subsets"]:
            corpus = CorpusCard(
                name=subset["subset"],
                domain=subset["domain"],
                drawn_from=subset.get("drawn_from", ""),
                status=subset["status"],
            )
            verdict, why = audit(card, corpus)
            found.append(OverlapNote(model=name, subset=subset["subset"], verdict=verdict, why=why))
    return found


def _model_card(stored: Mapping[str, Any]) -> ExtractorCard:
    known = {name: stored[name] for name in ExtractorCard.__dataclass_fields__ if name in stored}
    return ExtractorCard(**{**known, "pretraining": tuple(known.get("pretraining", ()))})


def _figures(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from record.get("figures", {}).items()


def _card(corpus: Mapping[str, Any]) -> CorpusCard:
    return CorpusCard(**{name: corpus[name] for name in CorpusCard.__dataclass_fields__ if name in corpus})


def _facts(subset: Mapping[str, Any]) -> SubsetFacts:
    seconds = subset.get("seconds")
    names = ("min", "median", "mean", "max", "total")
    return SubsetFacts(
        subset=subset["subset"],
        suite=subset["suite"],
        title=subset.get("title", ""),
        domain=subset["domain"],
        status=subset["status"],
        clips=subset["clips"],
        classes=subset["classes"],
        per_class=tuple(subset["clips_per_class"]) if subset["clips_per_class"] else None,
        groups=subset["groups"] or None,
        durations=Durations(*(seconds[name] for name in names)) if seconds else None,
    )


def _file_notes(place: Path, record: Mapping[str, Any]) -> Iterator[FileNote]:
    """One note for each clip that was not simply used, in the words of clips.csv."""
    reasons = {(one.suite, one.subset, one.id): one.reason for one in folder.read_failures(place)}
    for line in folder.read_clips(place):
        said = line["outcome"]
        if said in ("", "used"):
            continue
        where = line["suite"], line["subset"], line["id"]
        failed = said.startswith("failed")
        yield FileNote(
            clip=line["id"],
            kind="failed" if failed else "truncated" if said.startswith("truncated") else "dropped",
            reason=reasons.get(where, said) if failed else said,
            outcome="left out" if failed else "",
            subset=line["subset"],
            label=line["label"],
            path=line["path"],
        )


def _converted(place: Path, record: Mapping[str, Any]) -> list[FileNote]:
    """Clips that were mixed down or resampled before a model heard them; where they are many, nobody wants a list."""
    rates = sorted({system["card"]["rate"] for system in record["systems"]})
    heard = " and ".join(f"{rate} Hz" for rate in rates)
    notes = []
    for line in folder.read_clips(place):
        rate, channels = int(line["rate"] or 0), int(line["channels"] or 1)
        if line["outcome"] == "used" and rate and (channels > 1 or rates != [rate]):
            reason = f"{channels} channel{'s' * (channels > 1)} at {rate} Hz"
            notes.append(
                FileNote(
                    clip=line["id"],
                    kind="converted",
                    reason=reason,
                    outcome=f"heard as one channel at {heard}",
                    subset=line["subset"],
                    label=line["label"],
                    path=line["path"],
                )
            )
    return notes if len(notes) <= CONVERTED else []


def _detail(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in counts.items() if name != "seconds" and amount)


def _settings(config: RunConfig) -> dict[str, str]:
    shown = (
        "distances",
        "correct",
        "ties",
        "permutations",
        "intervals",
        "bootstrap",
        "across_groups",
        "min_class_size",
        "copies",
        "k",
        "seed",
    )
    found = config.model_dump(mode="json")
    found["intervals"], found["bootstrap"] = kind_of_intervals(config.intervals, config.bootstrap)
    if not found["bootstrap"]:
        del found["bootstrap"]
    return {name.replace("_", " "): _words(found[name]) for name in shown if found.get(name) is not None}


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# --- the best representation of each subset, clip by clip ----------------------------------------------------


def _close_ups(place: Path, scores: Scores, config: RunConfig) -> tuple[list[CloseUp], list[str]]:
    """The close-ups, and sentences about those that cannot be had."""
    best: dict[tuple[str, str], Row] = {}
    for row in [row for rows in values(scores, "P@1").values() for row in rows.values()]:
        where = row.suite, row.subset
        if row.distance.endswith(sequences.SUFFIX):
            continue  # an ablation: it has no neighbours of its own to show
        if where not in best or _closer(row) > _closer(best[where]):
            best[where] = row
    clips = _heard_again(place)
    made: list[CloseUp] = []
    missing: dict[str, list[str]] = {}
    for row in list(best.values())[:CLOSE_UPS]:
        try:
            made.append(_close_up(place, row, clips, config))
        except EarmarkError as error:  # its vectors are not in the cache, or the run's record knows none
            missing.setdefault(_why(error, place), []).append(row.subset)
    return made, [f"There is no closer look at {listed(names)}. {why}" for why, names in missing.items()]


def _closer(row: Row) -> tuple[bool, float]:
    """What makes a row worth a close-up: distances between points that can be drawn, then a high value."""
    return row.correction == "none", row.value or 0.0


def _why(error: EarmarkError, place: Path) -> str:
    if isinstance(error, UsageError):
        return f"The record of {place} no longer says where its vectors lie: run it again with the step evaluate."
    return str(error)


def _heard_again(place: Path) -> Clips:
    try:
        return folder.open_clips(place)
    except EarmarkError:
        return {}  # the recordings have moved: the report goes without sounds


def _close_up(place: Path, best: Row, clips: Clips, config: RunConfig) -> CloseUp:
    found = folder.load_vectors(place, best.subset, best.system, best.suite)
    points = folder.load_points(place, best.subset, best.system, best.distance, best.suite, best.correction)
    protocol = best.protocol
    per_point = {metric: one for (name, metric), one in points.items() if name == protocol and metric != "nearest_row"}
    nearest = points.get((protocol, "nearest_row"), np.full(len(found.ids), np.nan))
    return CloseUp(
        subset=best.subset,
        system=best.system,
        distance=best.distance,
        correction=best.correction,
        suite=best.suite,
        protocol=protocol,
        labels=found.labels,
        ids=found.ids,
        groups=found.groups if any(found.groups) else None,
        nearest=nearest,
        vectors=found.values if best.correction == "none" else None,  # no points lie at corrected distances
        per_point=per_point,
        ties=config.ties,
        hub_k=config.hub_k,
        fetch=_fetcher(clips.get((best.suite, best.subset), {}), found.ids),
    )


def _fetcher(clips: Mapping[str, Clip], ids: list[str]) -> Fetch | None:
    return (lambda row: clips[ids[row]].read()) if clips else None


def _write_tables(scores: Scores, place: Path) -> dict[str, str]:
    """Tables for papers and notebooks, one pair of files for each subset; returns titles and addresses."""
    place.mkdir(exist_ok=True)
    made = {"all scores (CSV)": "scores.csv"}
    if (place.parent / comparisons.FILE).exists():
        made["systems on the clips they share, and differences between them (CSV)"] = comparisons.FILE
    made |= {"every clip and what happened to it (CSV)": "clips.csv"}
    for subset in dict.fromkeys(row.subset for row in scores):
        rows = scores.select(subset=subset)
        stem = folder.file_stem(subset) or "scores"
        for suffix, render in ((".md", to_markdown), (".tex", to_latex)):
            folder.write_text(place / f"{stem}{suffix}", render(rows))
            made[f"{subset or 'scores'} ({'Markdown' if suffix == '.md' else 'LaTeX'})"] = f"tables/{stem}{suffix}"
    return made | _write_correlations(scores, place)


def _write_correlations(scores: Scores, place: Path) -> dict[str, str]:
    """How metrics correlate, where there is enough to correlate; files of an earlier run go otherwise."""
    table, text = place / "metric_correlations.csv", place / "metric_correlations.md"
    try:
        found = metric_correlations(scores)
    except InputError:
        table.unlink(missing_ok=True)
        text.unlink(missing_ok=True)
        return {}
    folder.write_csv(table, ["metric", *found.metrics], found.lines())
    folder.write_text(text, found.to_markdown())
    title = "correlations of the metrics"
    return {f"{title} (CSV)": f"tables/{table.name}", f"{title} (Markdown)": f"tables/{text.name}"}
