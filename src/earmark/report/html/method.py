"""The last part of a report: what happened to single files, and how everything was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote

from earmark.corpora.clips import CorpusCard
from earmark.report import reading
from earmark.report.content import FileKind, FileNote, ReportData, Timing
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


def what_happened(data: ReportData) -> Html:
    """Every file that was not simply used, and the notes of the run."""
    notes = list(dict.fromkeys([*data.notes, *data.scores.notes]))
    parts: list[Child] = []
    if data.files:
        counts = Counter(note.kind for note in data.files)
        said = ", ".join(f"{counts[kind]} {words}" for kind, words in _KINDS.items() if counts[kind])
        were = "was" if len(data.files) == 1 else "were"
        parts.append(paragraph(f"{counted(len(data.files), 'clip')} {were} not simply used: {said}."))
        told = [note for note in data.files if note.kind != "converted"]
        converted = [note for note in data.files if note.kind == "converted"]
        parts.append(_file_table(told[:MOST_FILES]) if told else None)
        if converted:
            title = f"{counted(len(converted), 'clip')} resampled or mixed down, as the models need"
            parts.append(folded(title, _file_table(converted[:MOST_FILES])))
        if max(len(told), len(converted)) > MOST_FILES:
            parts.append(
                paragraph(f"The first {MOST_FILES} are listed; the run's failure file has all.", class_="quiet")
            )
    else:
        parts.append(paragraph("Every clip was used as it is: none failed, none was dropped, none was cut."))
    parts.append(bullets(notes) if notes else None)
    return section("files", "What happened to single files", parts)


def _file_table(files: Iterable[FileNote]) -> Html:
    shown = list(files)
    subset = len({note.subset for note in shown}) > 1
    system = any(note.system for note in shown)
    heads: list[Child] = ["clip", "what", "why", "what was done"]
    heads += (["subset"] if subset else []) + (["for"] if system else [])
    lines = []
    for note in shown:
        name = join(note.clip, tag("small", f" {note.label}", class_="quiet") if note.label else None)
        line: list[Html | str] = [name, tag("span", note.kind, class_=f"badge {note.kind}"), note.reason, note.outcome]
        lines.append([*line, *([note.subset] if subset else []), *([note.system or "all"] if system else [])])
    return table(heads, lines, left=len(heads), filterable=True)


def how(data: ReportData) -> Html:
    rows = reading.single_subsets(data.scores)
    distances = list(dict.fromkeys(row.distance for row in rows if row.distance))
    corrections = [name for name in dict.fromkeys(row.correction for row in rows) if name not in ("", "none")]
    return section(
        "method",
        "How it was measured",
        paragraph(
            "Vectors come from frozen models; nothing was trained on the labels. Every clip is a"
            " query once, and its neighbours "
            "are all other clips of its subset (across groups: of other groups). Means over"
            " subsets count each subset once."
        ),
        tag("h3", "Models that do not repeat themselves") if data.unsteady else None,
        paragraph("Their scores rest on more than the clips: another run may give others.") if data.unsteady else None,
        bullets(data.unsteady) if data.unsteady else None,
        tag("h3", "Distances") if distances else None,
        pairs((name, DISTANCES.get(name, "")) for name in distances) if distances else None,
        tag("h3", "Hubness corrections") if corrections else None,
        pairs((name, CORRECTIONS.get(name.partition(":")[0], "")) for name in corrections) if corrections else None,
        tag("h3", "Metrics"),
        pairs((name, _definition(name)) for name in reading.metrics(rows)),
        _calibration(data),
        _facts_table(data),
        _timings(data.timings) if data.timings else None,
        tag("h3", "Sounds") if data.cards else None,
        [_card(card) for card in data.cards],
        _tables(data),
        _hashes(data),
        folded("Configuration", tag("pre", data.config)) if data.config.strip() else None,
    )


def _definition(metric: str) -> str:
    return reading.facts(metric).words or "see the documentation"


def _calibration(data: ReportData) -> Html:
    rows = reading.single_subsets(data.scores)
    said = []
    if any(row.lift is not None for row in rows):
        count = data.settings.get("permutations", "")
        said.append(
            "Chance is the mean of the metric when the labels are"
            f" shuffled{f' ({count} times)' if count else ''} and the distances "
            "stay; lift is the value minus that mean; p = (shuffles at least as good + 1) / (shuffles + 1)."
        )
    else:
        said.append("No permutations were made, so there are no values for chance, lift or p.")
    if any(row.shuffle not in ("", "clips") for row in rows):
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
    return join(tag("h3", "Chance and intervals"), [paragraph(sentence) for sentence in said])


def _facts_table(data: ReportData) -> Html | None:
    items = [*data.settings.items(), *data.versions.items()]
    if data.version:
        items.append(("Earmark", data.version))
    return join(tag("h3", "Settings and versions"), pairs(items)) if items else None


def _timings(timings: Iterable[Timing]) -> Html:
    shown = list(timings)
    lines: list[list[Html | str]] = [
        [item.stage, tag("td", _seconds(item.seconds), class_="n", data_value=repr(item.seconds)), item.detail]
        for item in shown
    ]
    caption = f"{_seconds(sum(item.seconds for item in shown))} in all."
    return join(tag("h3", "Time"), table(["stage", "time", ""], lines, caption=caption))


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _card(card: CorpusCard) -> Html:
    known = [
        ("status", card.status), ("source", card.source), ("revision", card.revision), ("licence", card.licence),
        ("citation", card.citation), ("domain", card.domain), ("notes", card.notes),
    ]  # fmt: skip
    return join(tag("h4", card.title or card.name), pairs((name, value) for name, value in known if value))


def _tables(data: ReportData) -> Html | None:
    links = [tag("a", title, href=quote(address)) for title, address in data.tables.items() if _beside(address)]
    return join(tag("h3", "The same as tables"), bullets(links)) if links else None


def _beside(address: str) -> bool:
    """A file beside the report: not an address on a network, not a script."""
    return bool(address) and ":" not in address and not address.startswith(("/", "\\"))


def _hashes(data: ReportData) -> Html | None:
    rows = {
        f"{reading.subset(row).label}: {reading.representation(row).label}": row.inputs
        for row in reading.single_subsets(data.scores)
        if row.inputs
    }
    items = [*data.inputs.items(), *rows.items()]
    if not items:
        return None
    return folded(
        "Hashes of the inputs",
        paragraph("Two values with the same hash were computed from the same bytes in the same way."),
        pairs((name, tag("span", value, class_="hash")) for name, value in items),
    )  # fmt: skip
