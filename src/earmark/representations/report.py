"""From a run folder to its report: read what the run left, and hand it to the report as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip, CorpusCard
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.evaluation.options import kind_of_intervals
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.overlap import audit
from earmark.places import locate
from earmark.report import TableOptions, leading_metrics, score_table
from earmark.report.content import CloseUp, CopyNote, FileNote, OtherLook, OverlapNote, ReportData, Timing
from earmark.report.correlations import metric_correlations
from earmark.report.facts import recorded_facts
from earmark.report.html import write_report
from earmark.report.probes import probe_table
from earmark.report.score_index import ScoreIndex
from earmark.report.tabulation.choice import pick
from earmark.representations import _sequences as sequences
from earmark.representations import comparisons
from earmark.representations._folder import clips_to_hear, load_points, load_vectors
from earmark.representations.config import RunConfig
from earmark.runs import folder
from earmark.scores import Row, Scores, load_scores
from earmark.scores.metrics import named
from earmark.scores.rows import distinct
from earmark.vectors.several_labels import spelled
from earmark.wording import counted, listed

CLOSE_UPS = 6
"""Subsets shown clip by clip: their best representation each. More would make the page long, not clearer."""

OTHERS = 12
"""Systems shown in short beside those, all subsets together: the page stays small enough to send."""

MOST_CLIPS = 20_000
"""Of larger subsets one system is shown: reading the vectors of all would take longer than the report is worth."""

CONVERTED = 100
"""More conversions than this are the rule in a corpus, not something that happened to a file."""

SETTINGS = (
    "distances", "correct", "ties", "queries", "permutations", "shuffle", "intervals", "bootstrap", "across_groups",
    "min_class_size", "copies", "sample", "speed", "k", "seed",
)  # fmt: skip

Clips = Mapping[tuple[str, str], Mapping[str, Clip]]
Fetch = Callable[[int], tuple[NDArray[Any], int]]


def report_run(
    path: str | Path,
    *,
    scores: Scores | None = None,
    compared: Scores | None = None,
    system: str | Sequence[str] = (),
    **shown: Unpack[TableOptions],
) -> Path:
    """Write RUN/report.html and RUN/tables/; returns the page.

    Args:
        path: the run folder.
        scores: what its scores.csv holds, where that is at hand.
        compared: what its comparisons.csv holds, where that is at hand.
        system: systems to look at closely, in place of the best of each subset.
        shown: what the tables of each subset show: `metrics` (default: the three to read first; `all`), `interval`,
            `lift`.
    """
    path = locate(path)
    record = folder.read_record(path)
    if scores is None:
        if not (path / "scores.csv").exists():
            raise InputError(f"{path} has no scores.csv yet: let `earmark run` finish the step evaluate first.")
        scores = load_scores(path / "scores.csv")
    if not scores.rows:
        raise InputError(f"{path / 'scores.csv'} holds no scores: there is nothing to report.")
    if compared is None:
        compared = comparisons.read_comparisons(path)
    tables = _write_tables(scores, path / "tables", shown)
    page = path / "report.html"
    write_report(gather(path, record, scores, compared, tables, named(system)), page)
    return page


def gather(
    path: Path,
    record: Mapping[str, Any],
    scores: Scores,
    compared: Scores,
    tables: Mapping[str, str],
    systems: Sequence[str] = (),
) -> ReportData:
    """Everything the report says of a run; `systems` are looked at closely in place of the best."""
    config = RunConfig.load(path / "config.yaml")
    ranking = comparisons.ranking_of(record, scores, compared)
    looks = _Looks(path, ranking.scores, config, systems)
    close_ups, missing = looks.close_ups()
    others, unseen = looks.others()
    names = [corpus["title"] or corpus["name"] for corpus in record["corpora"]]
    remarks = {system["extractor"]: system.get("remark", "") for system in record["systems"]}
    figures = {title: file for title, file in record.get("figures", {}).items() if (path / file).exists()}
    lines = folder.read_clips(path)
    return ReportData(
        title=" + ".join(dict.fromkeys(names)) or "Earmark report",
        scores=scores,
        generated=record["finished"][:10],
        version=record["earmark"],
        cards=[_from_record(CorpusCard, corpus) for corpus in record["corpora"]],
        subsets=recorded_facts(record),
        files=[*_file_notes(path, lines), *_converted(lines, record, config.speed)],
        notes=[
            *(note for corpus in record["corpora"] for note in corpus["remarks"]),
            *missing,
            *_drawn(record),
            *_sampled(config),
        ],
        timings=[
            Timing(stage=name, seconds=float(counts.get("seconds", 0.0)), detail=_detail(counts))
            for name, counts in record["steps"].items()
        ],
        unsteady=[f"{name}: {remark}" for name, remark in remarks.items() if remark],
        config=(path / "config.yaml").read_text("utf-8"),
        settings=_settings(config),
        versions={"Earmark": record["earmark"], **record["versions"]},
        methods=record.get("methods", ""),
        tables={**tables, **figures},
        close_ups=close_ups,
        others=others,
        unseen=unseen,
        overlaps=_overlaps(record),
        compared=compared,
        counts=ranking.counts,
        shared=ranking.shared,
        copies=[_copy_note(subset) for subset in record["subsets"] if subset.get("copies")],
        seed=config.seed,
    )


def _copy_note(subset: Mapping[str, Any]) -> CopyNote:
    copies = subset["copies"]
    return CopyNote(
        subset=subset["subset"],
        examples=[(example["ids"], example["labels"]) for example in copies["examples"]],
        **{name: copies[name] for name in ("policy", "sounds", "clips", "left_out", "under_several_labels")},
    )


def _overlaps(record: Mapping[str, Any]) -> list[OverlapNote]:
    """What each pretrained model may have heard of each subset before; models that were never trained are left out."""
    cards = {system["extractor"]: _from_record(ExtractorCard, system["card"]) for system in record["systems"]}
    teachers = {system["extractor"]: system.get("trained_on") for system in record["systems"]}
    notes = []
    for name, card in cards.items():
        for subset in record["subsets"] if card.parameters != 0 else []:
            corpus = CorpusCard(
                name=subset["subset"],
                domain=subset["domain"],
                drawn_from=subset.get("drawn_from", ""),
                status=subset["status"],
            )
            verdict, why = audit(card, corpus)
            taught = teachers[name]
            if card.learns_here and isinstance(taught, list) and f"{subset['suite']}/{subset['subset']}" not in taught:
                verdict, why = "no evidence", f"it learnt from {listed(taught)} in this run, and from nothing before"
            notes.append(OverlapNote(model=name, subset=subset["subset"], verdict=verdict, why=why))
    return notes


def _from_record(card: Any, stored: Mapping[str, Any]) -> Any:
    """A card as a record keeps it, lists and fields of other versions included."""
    known = {name: stored[name] for name in card.__dataclass_fields__ if name in stored}
    return card(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})


def _file_note(line: Mapping[str, str], kind: Any, reason: str, outcome: str) -> FileNote:
    return FileNote(
        clip=line["id"], kind=kind, reason=reason, outcome=outcome, subset=line["subset"], label=line["label"],
        path=line["path"],
    )  # fmt: skip


def _drawn(record: Mapping[str, Any]) -> list[str]:
    return [
        f"{subset['subset']} holds {subset['sample']['text']}: scores are those of these clips, not of the whole subset"
        for subset in record["subsets"]
        if subset.get("sample")
    ]


def _sampled(config: RunConfig) -> list[str]:
    if not config.queries:
        return []
    asked = f"{counted(config.queries, 'clip')} of each subset (seed {config.seed}) asked for neighbours among all"
    return [f"{asked}: values are estimates of those of all clips, and their intervals say how good"]


def _file_notes(path: Path, lines: list[dict[str, str]]) -> Iterator[FileNote]:
    """One note for each clip that was not simply used, in the words of clips.csv."""
    reasons = {
        (failure.suite, failure.subset, failure.id): failure.reason for failure in folder.read_failures(path)
    }  # fmt: skip
    for line in lines:
        outcome = line["outcome"]
        if outcome.startswith("failed"):
            reason = reasons.get((line["suite"], line["subset"], line["id"]), outcome)
            yield _file_note(line, "failed", reason, "left out")
        elif outcome not in ("", "used"):
            yield _file_note(line, "truncated" if outcome.startswith("truncated") else "dropped", outcome, "")


def _converted(lines: list[dict[str, str]], record: Mapping[str, Any], speed: float) -> list[FileNote]:
    """Clips that were mixed down or resampled before a model heard them; where they are many, nobody wants a list."""
    rates = sorted({system["card"]["rate"] for system in record["systems"]})
    at_rates = " and ".join(f"{rate} Hz" if rate else "their own rate" for rate in rates)
    outcome = f"heard as one channel at {at_rates}{'' if speed == 1.0 else f', at {speed:g} of their speed'}"
    notes = []
    for line in lines:
        rate, channels = int(line["rate"] or 0), int(line["channels"] or 1)
        if line["outcome"] == "used" and rate and (channels > 1 or speed != 1.0 or rates not in ([rate], [0])):
            reason = f"{channels} channel{'s' * (channels > 1)} at {rate} Hz"
            notes.append(_file_note(line, "converted", reason, outcome))
    return notes if len(notes) <= CONVERTED else []


def _detail(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in counts.items() if name != "seconds" and amount)


def _settings(config: RunConfig) -> dict[str, str]:
    settings = config.model_dump(mode="json")
    settings["intervals"], settings["bootstrap"] = kind_of_intervals(config.intervals, config.bootstrap)
    if not settings["bootstrap"]:
        del settings["bootstrap"]
    if config.speed == 1.0:
        del settings["speed"]
    if not config.sample:
        del settings["sample"]
    if config.shuffle == "auto":
        del settings["shuffle"]
    return {
        name.replace("_", " "): _in_words(settings[name]) for name in SETTINGS if settings.get(name) is not None
    }  # fmt: skip


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# --- the best representation of each subset, clip by clip ----------------------------------------------------


class _Looks:
    """Which representations of a run are shown clip by clip: the best of each subset, or those of chosen systems."""

    def __init__(self, path: Path, scores: Scores, config: RunConfig, systems: Sequence[str]) -> None:
        self.path, self.config = path, config
        index = ScoreIndex(scores)
        self.best: dict[tuple[str, str], dict[str, Row]] = {}
        """The best representation of every system, by subset; the best system first."""
        for row in [row for rows in index.values("P@1").values() for row in rows.values()]:
            if row.distance.endswith(sequences.SUFFIX):
                continue  # an ablation: it has no neighbours of its own to show
            of_subset = self.best.setdefault((row.suite, row.subset), {})
            if row.system not in of_subset or _worth(row) > _worth(of_subset[row.system]):
                of_subset[row.system] = row
        self.best = {
            place: dict(sorted(rows.items(), key=lambda item: _worth(item[1]), reverse=True))
            for place, rows in self.best.items()
        }
        known = list(dict.fromkeys(name for rows in self.best.values() for name in rows))
        chosen = pick(systems, known, "system", str(path)) if systems else []
        self.main = [
            row
            for rows in self.best.values()
            for name, row in (rows.items() if chosen else list(rows.items())[:1])
            if not chosen or name in chosen
        ][: max(CLOSE_UPS, len(chosen))]

    @cached_property
    def clips(self) -> Clips:
        return clips_to_hear(self.path)

    def close_ups(self) -> tuple[list[CloseUp], list[str]]:
        """The close-ups, and sentences about those that cannot be had."""
        made: list[CloseUp] = []
        missing: dict[str, list[str]] = {}
        for row in self.main:
            try:
                made.append(close_up_of(self.path, row, self.clips, self.config))
            except UsageError:
                lost = "no longer says where its vectors lie: run it again with the step evaluate."
                missing.setdefault(f"The record of {self.path} {lost}", []).append(row.subset)
            except EarmarkError as error:  # its vectors are not in the cache
                missing.setdefault(str(error), []).append(row.subset)
        return made, [f"There is no closer look at {listed(names)}. {why}" for why, names in missing.items()]

    def others(self) -> tuple[list[OtherLook], list[str]]:
        """Other systems of the same subsets in short, turn by turn, and the names of what does not fit."""
        shown = {(row.suite, row.subset) for row in self.main}
        queues = [
            [row for row in rows.values() if row not in self.main and (row.n or 0) <= MOST_CLIPS]
            for place, rows in self.best.items()
            if place in shown
        ]
        turns = [row for turn in zip_longest(*queues) for row in turn if row is not None]
        taken = set(turns[:OTHERS])
        looks = [
            OtherLook(_heading(row), partial(close_up_of, self.path, row, self.clips, self.config))
            for queue in queues
            for row in queue
            if row in taken
        ]
        seen = {*self.main, *taken}
        left = [_heading(row) for rows in self.best.values() for row in rows.values() if row not in seen]
        return looks, left


def _heading(row: Row) -> str:
    """What a row is of, as the heading of its close-up has it."""
    close_up = CloseUp(subset=row.subset, system=row.system, distance=row.distance, correction=row.correction,
                       suite=row.suite, protocol=row.protocol, labels=(), ids=(), nearest=())  # fmt: skip
    return close_up.heading


def _worth(row: Row) -> tuple[bool, float]:
    """What makes a row worth a close-up: distances between points that can be drawn, then a high value."""
    return row.correction == "none", row.value or 0.0


def close_up_of(path: Path, best: Row, clips: Clips, config: RunConfig) -> CloseUp:
    """One representation of a run clip by clip, from its cache; EarmarkError where that has lost it."""
    vectors = load_vectors(path, best.subset, best.system, best.suite)
    points = load_points(path, best.subset, best.system, best.distance, best.suite, best.correction)
    own = {metric: values for (protocol, metric), values in points.items() if protocol == best.protocol}
    nearest = own.pop("nearest_row", np.full(len(vectors.ids), np.nan))
    return CloseUp(
        subset=best.subset,
        system=best.system,
        distance=best.distance,
        correction=best.correction,
        suite=best.suite,
        protocol=best.protocol,
        labels=[spelled(label, config.label_separator) for label in vectors.labels],
        ids=vectors.ids,
        groups=vectors.groups if any(vectors.groups) else None,
        nearest=nearest,
        vectors=vectors.values if best.correction == "none" else None,  # no points lie at corrected distances
        per_point=own,
        ties=config.ties,
        hub_k=config.hub_k,
        fetch=_fetcher(clips.get((best.suite, best.subset), {}), vectors.ids),
        separator=config.label_separator,
        background=config.background,
    )


def _fetcher(clips: Mapping[str, Clip], ids: list[str]) -> Fetch | None:
    return (lambda row: clips[ids[row]].read()) if clips else None


# --- tables for papers and notebooks -------------------------------------------------------------------------


def _write_tables(scores: Scores, path: Path, shown: TableOptions) -> dict[str, str]:
    """One pair of files for each subset; returns titles and addresses."""
    metrics = list(shown.get("metrics") or ())
    if metrics and metrics != ["all"]:
        pick(metrics, distinct(scores.rows, "metric"), "metric", str(path.parent))
    path.mkdir(exist_ok=True)
    tables = {"all scores (CSV)": "scores.csv"}
    if (path.parent / comparisons.FILE).exists():
        tables["systems on the clips they share, and differences between them (CSV)"] = comparisons.FILE
    tables |= {"every clip and what happened to it (CSV)": "clips.csv"}
    for subset in dict.fromkeys(row.subset for row in scores):
        rows = scores.select(subset=subset)
        measured, probes = (Scores(tuple(row for row in rows if row.probed == probed)) for probed in (False, True))
        stem = folder.file_stem(subset) or "scores"
        texts: dict[str, str] = {}
        present = distinct(measured.rows, "metric")
        asked = present if metrics == ["all"] else metrics or leading_metrics(measured)
        wanted = [name for name in asked if name in present]
        if wanted:
            chosen: TableOptions = {**shown, "metrics": wanted}
            made = score_table(measured, **chosen)
            texts |= {f"{stem}.md": made.to_markdown(), f"{stem}.tex": made.to_latex()}
        if probes.rows:
            table = probe_table(probes)
            texts |= {f"{stem}-probes.md": table.to_markdown(), f"{stem}-probes.tex": table.to_latex()}
        for name, text in texts.items():
            folder.write_text(path / name, text)
            kind = "Markdown" if name.endswith(".md") else "LaTeX"
            tables[f"{subset or 'scores'}{', probes' * ('-probes.' in name)} ({kind})"] = f"tables/{name}"
    return tables | _write_correlations(scores, path)


def _write_correlations(scores: Scores, path: Path) -> dict[str, str]:
    """How metrics correlate, where there is enough to correlate; files of an earlier run go otherwise."""
    table, text = path / "metric_correlations.csv", path / "metric_correlations.md"
    try:
        correlations = metric_correlations(scores)
    except InputError:
        table.unlink(missing_ok=True)
        text.unlink(missing_ok=True)
        return {}
    folder.write_csv(table, ["metric", *correlations.metrics], correlations.lines())
    folder.write_text(text, correlations.to_markdown())
    title = "correlations of the metrics"
    return {f"{title} (CSV)": f"tables/{table.name}", f"{title} (Markdown)": f"tables/{text.name}"}
