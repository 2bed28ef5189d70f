"""The page of one system: where it stands, all its scores, its card, how to make them again, what was sent when."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from earmark.board.boards.cells import mean_cells
from earmark.board.boards.codecs import ANCHOR, RANKED
from earmark.board.boards.contents import NoSuchSystem
from earmark.board.boards.costs import pareto
from earmark.board.boards.field import Rank
from earmark.board.boards.lines import bitrates, setting_of, setting_words, settings_of
from earmark.board.boards.pairs import cells_of
from earmark.board.boards.panels import OK, PROVENANCES
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import leading_values
from earmark.board.pages import files
from earmark.board.pages.assets import system_address
from earmark.board.pages.boards import Items, Reader, as_file
from earmark.board.pages.cells import blind_badge, rank_cell
from earmark.board.pages.cost_figure import Own, pareto_figure
from earmark.board.pages.drawing import Drawing
from earmark.board.pages.figures import profile
from earmark.board.pages.summaries import rank_interval, system_words
from earmark.board.records import System
from earmark.board.web.caching import Page, packed
from earmark.codecs.ranking import TITLES, standing_of, why_apart
from earmark.errors import UsageError
from earmark.scores import COLUMNS
from earmark.scores.spelling import is_single
from earmark.submissions import SystemCard
from earmark.tables import csv_text, plain

OwnRows = Mapping[str, Mapping[tuple[str, str], int]]
"""The rows of a system in the panel of each of its metrics, by setting and protocol."""
_NOT_STATED = "not stated"


def system_page(reader: Reader, board: str, slug: str, items: Items = ()) -> Page:
    """The page of a system."""
    snapshot = reader.source.boards.current(board)
    system = snapshot.system(slug)
    card, address = system.card, system_address(board, slug)
    history = [each for each in reader.source.history(board, slug) if each.state in ("accepted", "withdrawn")]
    own = _own_rows(snapshot, slug)
    if not own and not history:
        raise NoSuchSystem(f'"{card.name}" has no accepted scores.')
    provenances = _provenances(snapshot, own)
    no_command = "The author gave no command."
    if provenances == ["printed"]:
        no_command = "These numbers were printed in a paper; it says how they were measured."
    kind, isolation = snapshot.kinds[snapshot.places[slug]], reader.isolation_of(board, slug)
    values: dict[str, Any] = {
        "board": board, "card": card, "address": address, "history": history,
        "changes": reader.source.changes(board, slug), "facts": _facts(system, _tried(own), isolation),
        "bibtex": files.bibtex(system, f"{reader.base_url}{address}"), "no_command": no_command,
        "provenances": [name for name in provenances if name != "blind"],
        "blind_badge": blind_badge(reader.audited(snapshot).get(system.id)) if "blind" in provenances else "",
        "standings": [], "metric": "", "kind": kind, "isolation": isolation,
        "apart": _apart(card, kind), "exports": _exports(board, slug),
    }  # fmt: skip
    if own:
        values |= _scored(snapshot, system, own, dict(items))
    values |= _shared(reader, snapshot, system, values["standings"])
    return packed(reader.page("system.html", **values))


def _shared(
    reader: Reader, snapshot: Snapshot, system: System, standings: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is meant for other sites: the preview of a link, and the badge for a README."""
    title, address = snapshot.definition.heading, system_address(snapshot.board, system.slug)
    first = next((each for each in standings if each["rank_words"]), None)
    told = f"{first['metric']}, {first['over']}: {first['rank_words']}" if first else "no rank"
    words = f"{title}: {told}"
    named = f"{system_words(system.card)} on {title}"
    badge = None
    if reader.base_url and not reader.frozen and not snapshot.definition.private:
        target = f"{reader.base_url}{address}"
        badge = {"words": words, "markdown": f"[![{plain(named, 200)}]({target}/badge.svg)]({target})"}
    return {"badge": badge, "preview": reader.preview(named, f"{words}.", address, snapshot.board)}


def _exports(board: str, slug: str) -> str:
    """The commands that make files for other places of the score table that this page offers."""
    table = f"{board}-{slug}.csv"
    return "\n".join(
        f"earmark export {shlex.quote(table)} --as {kind} --into {kind}{more}"
        for kind, more in (("hf", " --card README.md"), ("mteb", ""), ("eee", " --organisation NAME"))
    )


def _tried(own: OwnRows) -> int:
    """Under how many settings (distance and correction) a system was measured."""
    return len({setting for rows in own.values() for setting, _ in rows if setting})


def _apart(card: SystemCard, kind: str) -> str:
    """Why a codec is ranked among others than most, or not at all; "" for all that is ranked first."""
    if kind == RANKED:
        return ""
    if kind == ANCHOR:
        return "An anchor: it loses nothing and is not ranked."
    return f"Ranked apart. {TITLES[kind]}; {why_apart(standing_of(card.details))}."


def system_file(reader: Reader, board: str, slug: str, kind: str) -> Page:
    """A system's live rows as a score table (CSV, JSON), or how to cite it (BibTeX)."""
    system = reader.source.boards.current(board).system(slug)
    if kind == "bib":
        return as_file(files.bibtex(system, f"{reader.base_url}{system_address(board, slug)}"), kind, slug)
    scores = reader.source.rows(board, system)
    text = scores.to_json() if kind == "json" else csv_text(COLUMNS, (row.as_dict() for row in scores))
    return as_file(text, kind, f"{board}-{slug}")


def _own_rows(snapshot: Snapshot, slug: str) -> OwnRows:
    lines = snapshot.lines_of.get(snapshot.places[slug], [])
    own: dict[str, dict[tuple[str, str], int]] = {}
    for metric in snapshot.metrics:
        for at, row in zip(lines, snapshot.rows_of_lines(metric)[lines].tolist(), strict=True):
            if row >= 0:
                line = snapshot.lines[at]
                own.setdefault(metric, {})[line.setting, line.protocol] = row
    return own


def _scored(snapshot: Snapshot, system: System, own: OwnRows, query: Mapping[str, str]) -> dict[str, Any]:
    name, metrics = system.card.name, list(own)
    metric = query.get("metric", "") or metrics[0]
    if metric not in metrics:
        raise UsageError(f'"{name}" has no {metric}; it has {", ".join(metrics)}.')
    standings = [each for other in metrics for each in _standings(snapshot, snapshot.places[system.slug], other)]
    protocol = min((other for _, other in own[metric]), key=snapshot.protocols(metric).index)
    here = {setting: row for (setting, other), row in own[metric].items() if other == protocol}
    best = next((str(each["setting"]) for each in standings if each["metric"] == metric), "")
    chosen = query.get("setting", best if best in here else next(iter(here)))
    if chosen not in here:
        raise UsageError(f'"{name}" has no {metric} under "{chosen}"; it has {", ".join(here)}.')
    subsets = list(dict.fromkeys([*snapshot.group(metric).subsets, *snapshot.subsets(metric)]))
    # The best and the median of the board on each subset stand behind the system's own.
    higher = snapshot.definition.facts(metric).higher_is_better
    turn = 1.0 if higher else -1.0
    values = leading_values(snapshot, metric, protocol).value[:, snapshot.panel(metric).columns(subsets)]
    present = [column[np.isfinite(column)] for column in values.T]
    best_of = [float(turn * column.max()) if column.size else None for column in present]
    median_of = [float(np.median(turn * column)) if column.size else None for column in present]
    labels = [subset or "all clips" for subset in subsets]
    cells = cells_of(snapshot.panel(metric), here[chosen], subsets)
    return {
        "standings": standings, "metric": metric, "metrics": metrics, "setting": chosen, "settings": sorted(here),
        "drawn": profile(name, labels, cells, best_of, median_of, metric, higher),
        "drawn_caption": f"{metric} of this system on each subset, with the best and the median of the board.",
        "rated": _rated(snapshot, system, metric, standings),
        "lines": (lines := _lines(snapshot, own, chosen, protocol)), "reservations": _reservations(lines),
        "scores_note": f"Protocol {protocol}. The file has every setting and protocol.",
    }  # fmt: skip


def _rated(snapshot: Snapshot, system: System, metric: str, standings: Sequence[dict[str, Any]]) -> Drawing | None:
    """A codec among the others: the bitrate against the metric; None for what is no codec, or has no rate or value."""
    rate = bitrates(snapshot).get(snapshot.places[system.slug])
    mean = next((each["mean"].value for each in standings if each["metric"] == metric), None)
    if system.card.kind != "codec" or rate is None or mean is None or metric.endswith("kbps"):
        return None
    return pareto_figure(pareto(snapshot, "kbps", metric=metric), Own(system.card.name, rate.kbps, mean))


def _standings(snapshot: Snapshot, place: int, metric: str) -> Iterator[dict[str, Any]]:
    """Where a system stands under a metric: by the leading mean, and where that is blind, by the public one too."""
    groups = dict.fromkeys((snapshot.group(metric).key, snapshot.public_group(metric).key))
    found = [each for each in (_standing(snapshot, place, metric, key) for key in groups) if each]
    yield from [each for each in found if each["mean"].status] or found[-1:]


def _standing(snapshot: Snapshot, place: int, metric: str, over: str) -> dict[str, Any] | None:
    """Mean and rank of a system under a metric, in its best setting and the leading protocol."""
    field = snapshot.field(metric, over)
    places = np.flatnonzero(field.systems == place)
    if not places.size:
        return None
    at = int(places[0])
    shown = snapshot.means_shown(metric, field.group, field.best).take(field.rows)
    (mean,) = mean_cells(field.means, places[:1], shown=shown)
    tried, choices = settings_of(snapshot, field, at)
    why = "an anchor, which loses nothing" if field.kinds[at] == ANCHOR else mean.reason
    rank = field.rank_at(at)
    return {
        "metric": metric,
        "over": field.group.title if len(field.group.subsets) > 1 else field.group.subsets[0] or "all clips",
        "setting": setting_of(snapshot.lines[field.panel.lines[field.rows[at]]], choices),
        "chosen": setting_words(tried, choices),
        "mean": mean,
        "rank": rank_cell(*rank[:3], why, field.among(at)),
        "rank_words": _rank_words(rank, field.among(at)),
    }


def _rank_words(rank: Rank, among: int) -> str:
    """A rank in a sentence: "rank 1 of 30 (1–30), not told apart from the best"; "" without one."""
    if not rank.rank:
        return ""
    interval = f" ({rank_interval(rank.low, rank.high)})" if rank.low else ""
    return f"rank {rank.rank} of {among}{interval}" + (", not told apart from the best" if rank.tier == 1 else "")


def _lines(snapshot: Snapshot, own: OwnRows, setting: str, protocol: str) -> list[dict[str, Any]]:
    """A line for each subset with a cell for each metric, under one setting; metrics without it show their own."""
    rows = {metric: found.get((setting, protocol), next(iter(found.values()))) for metric, found in own.items()}
    names = dict.fromkeys(subset for metric in own for subset in snapshot.panel(metric).subsets)
    subsets = sorted(names, key=lambda name: not is_single(name))
    columns = {metric: cells_of(snapshot.panel(metric), row, subsets) for metric, row in rows.items()}
    lines = []
    for place, subset in enumerate(subsets):
        cells = {metric: column[place] for metric, column in columns.items()}
        if any(cell.status for cell in cells.values()):
            lines.append({"subset": subset, "single": is_single(subset), "cells": cells})
    return lines


def _reservations(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """What is to be said of scores, and why some are missing: subset, metrics and the words, each once."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for metric, cell in line["cells"].items():
            if cell.status and cell.reason:
                word = "" if cell.status == "ok" else cell.status.replace("_", " ")
                words = ": ".join(filter(None, [word, cell.reason]))
                found.setdefault((line["subset"] or "all clips", words), []).append(metric)
    return [(subset, ", ".join(metrics), words) for (subset, words), metrics in found.items()]


def _provenances(snapshot: Snapshot, own: OwnRows) -> list[str]:
    codes: set[int] = set()
    for metric, rows in own.items():
        panel, numbers = snapshot.panel(metric), list(rows.values())
        codes |= set(panel.provenance[numbers][panel.status[numbers] == OK].tolist())
    return [PROVENANCES[code] for code in sorted(codes) if code]


def _codec_facts(card: SystemCard, whose: str) -> list[tuple[str, str, bool]]:
    """What the results of a codec rest on, and which version of it they are of; printed ones say nothing of it."""
    if card.kind != "codec":
        return []
    standing, stated = standing_of(card.details), "isolation" in card.details
    isolation = f"{standing.isolation}: {standing.isolation_reason}".rstrip(": ")
    isolation += {"stated": ", stated by the author", "confirmed": ", confirmed by the host"}.get(whose, "")
    broken = "; ".join(f"{promise.name}: {promise.reason}" for promise in standing.broken)
    return [
        ("Version of the codec", str(card.details.get("version", "")), stated),
        ("Isolation", isolation if stated else "", stated),
        ("Check", f"{standing.check}: {standing.check_reason}".rstrip(": ") if stated else "", stated),
        ("Promises broken", (broken or "none") if stated else "", stated),
    ]


_TECHNICAL = {
    "Revision": (("revision", ""), ("checkpoint", "")),
    "Hardware": (("hardware", ""),),
    "Dimension": (("dimension", ""), ("dimensions", "")),
    "Sampling rate": (("rate", " Hz"), ("sample_rate", " Hz"), ("sampling_rate", " Hz")),
    "Frame rate": (("frame_rate", " Hz"),),
}
"""Facts that stand among the details of a card: under which names, and in which unit."""


def _technical_facts(card: SystemCard) -> list[tuple[str, str, bool]]:
    """Revision, hardware, dimension and rates, as the details of a card say."""

    def told(name: str, unit: str) -> str:
        value = card.details.get(name)
        if value is None or value == "":
            return ""
        return f"{value:g}{unit}" if isinstance(value, int | float) else plain(str(value), 200)

    found = {title: next(filter(None, (told(*each) for each in names)), "") for title, names in _TECHNICAL.items()}
    return [(title, text, title in _ASKED) for title, text in found.items()]


_ASKED = ("Revision", "Hardware")
"""What every card should say."""


def _facts(system: System, tried: int, isolation: str) -> list[tuple[str, str]]:
    """What the card says; some facts are named although they are not stated."""
    card = system.card
    facts_of_card = [
        ("Kind", card.kind, True), ("Family", card.family, True), ("Authors", ", ".join(card.authors), True),
        ("Address", card.url, False), ("Licence", card.licence, True),
        ("Training-free", {True: "yes", False: "no", None: ""}[card.training_free], True),
        ("Parameters", "" if card.parameters_m is None else f"{card.parameters_m:g} million", True),
        ("Trained on", ", ".join(card.pretraining), True),
        *_technical_facts(card),
        ("Nominal bit rate", "" if card.kbps is None else f"{card.kbps:g} kbps", False),
        ("Real-time factor", "" if card.real_time_factor is None else f"{card.real_time_factor:g}", False),
        ("Settings tried", str(tried), tried > 0), ("Year", str(card.year or ""), False),
        *_codec_facts(card, isolation),
        ("Citation", "" if card.citation.startswith("@") else card.citation, False),
        ("Sent first by", system.team or system.owner, True),
    ]  # fmt: skip
    return [(name, text or _NOT_STATED) for name, text, named in facts_of_card if text or named]
