"""The last part of a report: overlaps with training data, what happened to single files, how all was measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from earmark.corpora.clips import CorpusCard
from earmark.report.content import FileKind, FileNote, ReportData, Timing
from earmark.report.html._results import number_cell
from earmark.report.metric_text import facts
from earmark.report.score_index import representation, subset
from earmark.tables.html import Child, Html, bullets, folded, join, pairs, paragraph, section, table, tag
from earmark.wording import counted

MOST_FILES = 500

DISTANCES = {
    "cosine": "One minus the cosine of the angle between two vectors: loudness-like scale does not count.",
    "euclidean": "The straight-line distance between two vectors: scale counts.",
    "spearman": "One minus the rank correlation of two vectors' values: only the order of the dimensions counts.",
}

CORRECTIONS = {
    "sphere": "vectors at length 1 before distances are taken",
    "ls": "1 − exp(−d² / (s s′)), s the distance of a point to its k-th neighbour (local scaling)",
    "nicdm": "d over the root of the two points' mean distances to their k nearest",
    "icdm": "nicdm repeated, neighbours found anew each time, until every point's nearest are equally far on average",
    "csls": "2 d minus the two points' mean distances to their k nearest; orders neighbours, is no distance",
    "mp": "chance that a point lies closer to one of the two than they to each other, from the spread of all distances",
    "dsl": "d² minus the points' squared distances to the middle of their k nearest; orders neighbours, is no distance",
}

_KINDS: dict[FileKind, str] = {
    "failed": "could not be used",
    "dropped": "left out",
    "truncated": "cut",
    "converted": "converted and used",
}


_OVERLAPS = {"confirmed": "●", "likely": "◐", "no evidence": "○", "unknown": "?"}


def heard_before(data: ReportData) -> Html | None:
    """The audit as a table of marks, and below it the sentence behind every mark that is not "no evidence"."""
    if not data.overlaps:
        return None
    models = list(dict.fromkeys(note.model for note in data.overlaps))
    subsets = list(dict.fromkeys(note.subset for note in data.overlaps))
    marks: dict[tuple[str, str], Html] = {}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for note in data.overlaps:
        title = f"{note.verdict}: {note.why}"
        marks[note.model, note.subset] = tag("span", _OVERLAPS[note.verdict], title=title, aria_label=note.verdict)
        if note.verdict != "no evidence":
            reasons.setdefault((note.model, note.verdict, note.why), []).append(note.subset)
    return section(
        "overlap",
        "Heard before?",
        paragraph(
            "Zero-shot scores flatter a model that was trained on the very sounds it is measured with. This table"
            " compares what the cards of models and corpora state; no recordings were compared, and “no evidence” is"
            " not “no”."
        ),
        table(["model", *subsets], [[model, *(marks.get((model, name), "") for name in subsets)] for model in models]),
        paragraph(" · ".join(f"{mark} {words}" for words, mark in _OVERLAPS.items()), class_="quiet"),
        bullets(
            f"{model} and {', '.join(where)}: {verdict}; {why}." for (model, verdict, why), where in reasons.items()
        ),
    )


def what_happened(data: ReportData) -> Html:
    """Every file that was not simply used, and the notes of the run."""
    parts: list[Child] = []
    if data.files:
        counts = Counter(note.kind for note in data.files)
        said = ", ".join(f"{counts[kind]} {words}" for kind, words in _KINDS.items() if counts[kind])
        were = "was" if len(data.files) == 1 else "were"
        parts.append(paragraph(f"{counted(len(data.files), 'clip')} {were} not simply used: {said}."))
        other = [note for note in data.files if note.kind != "converted"]
        converted = [note for note in data.files if note.kind == "converted"]
        parts.append(_file_table(other[:MOST_FILES]) if other else None)
        if converted:
            title = f"{counted(len(converted), 'clip')} resampled or mixed down, as the models need"
            parts.append(folded(title, _file_table(converted[:MOST_FILES])))
        if max(len(other), len(converted)) > MOST_FILES:
            said = f"The first {MOST_FILES} are listed; the run's failure file has all."
            parts.append(paragraph(said, class_="quiet"))
    else:
        parts.append(paragraph("Every clip was used as it is: none failed, none was dropped, none was cut."))
    notes = list(dict.fromkeys([*data.notes, *data.scores.notes]))
    parts.append(bullets(notes) if notes else None)
    return section("files", "What happened to single files", parts)


def _file_table(files: Sequence[FileNote]) -> Html:
    several = len({note.subset for note in files}) > 1
    system = any(note.system for note in files)
    heads = ["clip", "what", "why", "what was done", *(["subset"] if several else []), *(["for"] if system else [])]
    lines = []
    for note in files:
        name = join(note.clip, tag("small", f" {note.label}", class_="quiet") if note.label else None)
        line: list[Html | str] = [name, tag("span", note.kind, class_=f"badge {note.kind}"), note.reason, note.outcome]
        lines.append([*line, *([note.subset] if several else []), *([note.system or "all"] if system else [])])
    return table(heads, lines, left=len(heads), filterable=True)


def how(data: ReportData) -> Html:
    rows = data.index.rows
    distances = list(dict.fromkeys(row.distance for row in rows if row.distance))
    corrections = [name for name in dict.fromkeys(row.correction for row in rows) if name not in ("", "none")]
    words = [(name, CORRECTIONS.get(name.partition(":")[0], "")) for name in corrections]
    settings = [*data.settings.items(), *data.versions.items()]
    settings += [("Earmark", data.version)] if data.version else []
    caution = "Their scores rest on more than the clips: another run may give others."
    unsteady = join(paragraph(caution), bullets(data.unsteady))
    # Links lead to files beside the report: to no address on a network, to no script.
    beside = {title: path for title, path in data.tables.items() if path and not re.search(r"^[/\\]|:", path)}
    links = [tag("a", title, href=quote(path)) for title, path in beside.items()]
    return section(
        "method",
        "How it was measured",
        paragraph(
            "Vectors come from frozen models; the scores trained nothing on the labels, and only probes, which have a"
            " section of their own, learn from them. Every clip is a query once, and its"
            " neighbours are all other clips of its subset (across groups: of other groups). Means over subsets count"
            " each subset once."
        ),
        _titled("Models that do not repeat themselves", unsteady if data.unsteady else None),
        _titled("Distances", pairs((name, DISTANCES.get(name, "")) for name in distances) if distances else None),
        _titled("Hubness corrections", pairs(words) if words else None),
        _titled("Metrics", pairs((name, facts(name).words or "see the documentation") for name in data.index.metrics)),
        _titled("Chance and intervals", _calibration(data)),
        _titled("A paragraph for a paper", paragraph(data.methods, class_="said") if data.methods else None),
        _titled("Settings and versions", pairs(settings) if settings else None),
        _titled("Time", _timings(data.timings) if data.timings else None),
        tag("h3", "Sounds") if data.cards else None,
        [_card(card) for card in data.cards],
        _titled("The same as tables", bullets(links) if links else None),
        _hashes(data),
        folded("Configuration", tag("pre", data.config)) if data.config.strip() else None,
    )


def _titled(title: str, part: Html | None) -> Html | None:
    return None if part is None else join(tag("h3", title), part)


def _calibration(data: ReportData) -> Html:
    rows = data.index.rows
    said = ["No permutations were made, so there are no values for chance, lift or p."]
    if any(row.lift is not None for row in rows):
        count = data.settings.get("permutations", "")
        times = f" ({count} times)" if count else ""
        said = [
            f"Chance is the mean of the metric when the labels are shuffled{times} and the distances stay; lift is the"
            " value minus that mean; p = (shuffles at least as good + 1) / (shuffles + 1)."
        ]
    if any(row.shuffle == "clips_ignoring_groups" for row in rows):
        said.append(
            "Over all pairs labels were shuffled from clip to clip whatever their group, as was asked for: where clips"
            " of a group are alike, p is too small."
        )
    if any(row.shuffle not in ("", "clips", "clips_ignoring_groups") for row in rows):
        said.append(
            "Where clips have groups, labels change places only as the groups allow: between whole groups where a group"
            " has one label, between the clips of a group where it has several."
        )
    kinds = {row.interval for row in rows if row.low is not None}
    if "jackknife" in kinds:
        said.append(
            "Intervals are at 95 %: each clip, or each group where clips have groups, is left out in turn, as query and"
            " as candidate. They cover the choice of clips, not of labels or of recording conditions."
        )
    if kinds - {"jackknife"}:
        count = data.settings.get("bootstrap", "0")
        said.append(
            f"{'Other intervals' if 'jackknife' in kinds else 'Intervals'} are the middle 95 % of"
            f" resamples{f' ({count})' if count != '0' else ''} of the queries, of whole groups where clips have"
            " groups. The candidates are held fixed, so these intervals are too narrow for other clips."
        )
    if not kinds:
        said.append("There are no intervals: none were asked for, or there are too few clips or groups.")
    return join([paragraph(sentence) for sentence in said])


def _timings(timings: Sequence[Timing]) -> Html:
    lines = [[item.stage, number_cell(_duration(item.seconds), item.seconds), item.detail] for item in timings]
    total = _duration(sum(item.seconds for item in timings))
    return table(["stage", "time", ""], lines, caption=f"{total} in all.")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _card(card: CorpusCard) -> Html:
    names = ("status", "source", "revision", "licence", "citation", "domain", "language", "rate", "history", "notes")
    known = [(name, getattr(card, name)) for name in names]
    return join(tag("h4", card.title or card.name), pairs((name, value) for name, value in known if value))


def _hashes(data: ReportData) -> Html | None:
    hashes = dict(data.inputs)
    for row in data.index.rows:
        if row.inputs:
            hashes[f"{subset(row).label}: {representation(row).label}"] = row.inputs
    if not hashes:
        return None
    return folded(
        "Hashes of the inputs",
        paragraph("Two values with the same hash were computed from the same bytes in the same way."),
        pairs((name, tag("span", value, class_="hash")) for name, value in hashes.items()),
    )
