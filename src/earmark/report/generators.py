"""Several generated sets against one real set, for people: who leads, who is not told apart, and a page.

by clipped_density, clipped_coverage    rank, its interval, value and interval of each set, best first
every metric                            values of each set, with the ranks that each may have
judgements                              how far each metric goes with what people said
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from earmark._version import __version__
from earmark.analysis.human import HumanAgreement
from earmark.generated.api import HEADLINES
from earmark.generated.metrics import LITERAL
from earmark.generated.metrics import facts as fidelity_facts
from earmark.generated.several import GeneratorRank, RankedGenerators
from earmark.places import locate
from earmark.report import judgements
from earmark.report.fidelity import QUESTIONS, TITLES, cell_text
from earmark.report.figures import fidelity as figures
from earmark.report.figures.judgements import CAPTION as JUDGED_CAPTION
from earmark.report.figures.judgements import against_judgements, leading_metric
from earmark.report.figures.style import as_svg
from earmark.report.html import _shell as shell
from earmark.report.judgements import write_records
from earmark.report.metric_text import number
from earmark.scores import Row
from earmark.tables import MISSING, aligned, plain
from earmark.tables.html import Html, bullets, drawing, paragraph, section, table, tag
from earmark.wording import counted, listed

RANK_COLUMNS = (
    "distance",
    "correction",
    "metric",
    "system",
    "value",
    "rank",
    "rank_low",
    "rank_high",
    "may_lead",
    "reason",
)
_FIRST = {"fidelity": HEADLINES, "coverage": ("clipped_coverage", "coverage"), "distance": ()}
_WIDTH = 118
_NAME = 24  # marks of a set's name in a table
_FEW = 4  # sets that a sentence names


def leading(ranked: RankedGenerators, distance: str) -> list[tuple[str, str]]:
    """What sets are ranked by first: the clipped pair, else a first metric of each question; corrected if measured."""
    found: list[tuple[str, str]] = []
    for asks, usual in _FIRST.items():
        lines = [line for line in ranked.ranks if line.distance == distance and line.rank]
        known = [
            line for line in lines if fidelity_facts(line.metric).asks == asks and not line.metric.endswith(LITERAL)
        ]
        names = [line.metric for line in known]
        if not names or (asks == "distance" and found):
            continue
        metric = next((name for name in usual if name in names), names[0])
        corrections = {line.correction for line in known if line.metric == metric}
        found.append((metric, "gicdm" if "gicdm" in corrections else "none"))
    return found


# --- the terminal ---------------------------------------------------------------------------------------------------


def to_text(ranked: RankedGenerators, heading: str = "", human: HumanAgreement | None = None) -> str:
    """For each distance the ranking by the leading metrics, the sentence on it, and every metric of every set."""
    blocks = []
    for distance in dict.fromkeys(row.distance for row in ranked.scores):
        blocks.append(" · ".join(filter(None, [heading, distance])))
        for metric, correction in leading(ranked, distance):
            head = [f"by {_title(metric, correction)}", "rank", "", "value"]
            lines = [[f"  {_short(name)}", *cells] for name, *cells in _ranking(ranked, metric, correction, distance)]
            blocks.append("\n".join(aligned([head, *lines], indent="  ", gap="   ")))
            blocks.append(told_apart(ranked, metric, correction, distance))
        blocks += _every_metric(ranked, distance)
    if human is not None:
        blocks += judgements.to_text(human)
    notes = [*ranked.scores.notes, *_reasons(ranked)]
    blocks += ["\n".join(f"note: {note}" for note in notes)] if notes else []
    return "\n\n".join(blocks) + "\n"


def _title(metric: str, correction: str) -> str:
    return f"{metric}{' with GICDM' if correction == 'gicdm' else ''}"


def _short(name: str) -> str:
    return plain(name, _NAME)


def _named(names: Sequence[str]) -> str:
    """Sets by name, of many the first few and how many more."""
    if len(names) <= _FEW + 1:
        return listed(map(_short, names))
    return f"{', '.join(map(_short, names[:_FEW]))} and {len(names) - _FEW} others"


def _ranking(ranked: RankedGenerators, metric: str, correction: str, distance: str) -> list[list[str]]:
    """A line for each set, best first: name, rank, its interval, value with interval."""
    lines = []
    for line in ranked.ranking(metric, correction, distance):
        row = _row(ranked, line)
        lines.append([line.system, str(line.rank or MISSING), rank_range(line), cell_text(row)])
    return lines


def _row(ranked: RankedGenerators, line: GeneratorRank) -> Row:
    return ranked.fidelities[line.system].row(line.metric, distance=line.distance, correction=line.correction)


def rank_range(line: GeneratorRank) -> str:
    """The ranks that a set may have: `[1–3]`, or nothing where there is no interval."""
    if not line.low:
        return ""
    return f"[{line.low}–{line.high}]" if line.high > line.low else f"[{line.low}]"


def told_apart(ranked: RankedGenerators, metric: str, correction: str, distance: str) -> str:
    """Who leads, who is not told apart from the leader, and how many pairs are told apart."""
    lines = [line for line in ranked.ranking(metric, correction, distance) if line.rank]
    rows = [
        row for row in ranked.pairs.select(distance=distance, correction=correction)
        if row.metric == f"{metric}:difference"
    ]  # fmt: skip
    tested = [row for row in rows if row.p_value is not None]
    if len(lines) < 2 or not tested:
        return f"{_title(metric, correction)}: no pair was tested, so the order may be chance."
    # A set that was not tested, such as one of three samples, may have the best value and yet not lead.
    known = [line for line in lines if line.low]
    if not known:
        return f"{_title(metric, correction)}: no rank was tested, so the order may be chance."
    first = min(line.rank for line in known)
    best = [line.system for line in known if line.rank == first]
    like = [line.system for line in known if line.may_lead and line.rank > first]
    open_ = [line.system for line in lines if not line.low]
    behind = [line.system for line in known if not line.may_lead]
    parts = [f"{_named(best)} {'leads' if len(best) == 1 else 'lead'} by {_title(metric, correction)}"]
    if copying := [name for name in best if (distance, "none", "all", "copy") in ranked.fidelities[name].per_sample]:
        parts.append(f"but {_named(copying)} {'plays' if len(copying) == 1 else 'play'} real points back")
    if like:
        parts.append(f"{_named(like)} may as well be first")
    if behind:
        parts.append(f"{_named(behind)} {'is' if len(behind) == 1 else 'are'} surely behind")
    if open_:
        parts.append(f"{_named(open_)} could not be tested")
    apart = sum((row.p_value or 0.0) < 0.05 for row in tested)
    untested = f", {len(rows) - len(tested)} were not tested" if len(tested) < len(rows) else ""
    pairs = f"{apart} of {counted(len(rows), 'pair')} told apart{untested}; corrected for their number"
    return f"{'; '.join(parts)} ({pairs})."


def _every_metric(ranked: RankedGenerators, distance: str) -> list[str]:
    """Every value with its possible ranks: metrics by lines and sets by columns, or the other way round if narrower."""
    lines = {(line.correction, line.metric, line.system): line for line in ranked.ranks if line.distance == distance}
    blocks = []
    for correction, title in TITLES.items():
        metrics = list(dict.fromkeys(metric for which, metric, _ in lines if which == correction))
        if not metrics:
            continue
        head = f"{title}: value, possible ranks"
        cells = {
            (metric, name): _value_and_ranks(lines.get((correction, metric, name)))
            for metric in metrics
            for name in ranked.systems
        }
        short = {name: _short(name) for name in ranked.systems}
        by_set, by_metric = _columns([*short.values()], 36), _columns(metrics, max(36, _NAME))
        if len(by_set) <= len(by_metric):
            systems = list(ranked.systems)
            for part in by_set:
                named, systems = systems[: len(part)], systems[len(part) :]
                body: list[list[str]] = []
                for question, members in _by_question(metrics).items():
                    body.append([question])
                    body += [[f"  {metric}", *(cells[metric, name] for name in named)] for metric in members]
                blocks.append("\n".join(aligned([[head, *part], *body], indent="  ", gap="   ")))
        else:
            for part in by_metric:
                body = [[f"  {short[name]}", *(cells[metric, name] for metric in part)] for name in ranked.systems]
                blocks.append("\n".join(aligned([[head, *part], *body], indent="  ", gap="   ")))
    return blocks


def _columns(names: Sequence[str], first: int) -> list[list[str]]:
    """Names of columns in blocks that fit a terminal, beside a first column."""
    width = max(16, *(len(name) + 3 for name in names))
    fit = max(1, (_WIDTH - first) // width)
    return [list(names[start : start + fit]) for start in range(0, len(names), fit)]


def _by_question(metrics: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for asks, question in QUESTIONS.items():
        members = [metric for metric in metrics if fidelity_facts(metric).asks == asks]
        found |= {question: members} if members else {}
    return found


def _value_and_ranks(line: GeneratorRank | None) -> str:
    if line is None or line.value is None:
        return MISSING
    percent = fidelity_facts(line.metric).percent
    return f"{number(line.value, line.metric)}{'%' if percent else ''} {rank_range(line)}".rstrip()


def _reasons(ranked: RankedGenerators) -> list[str]:
    """Why a set has no value or no interval, once for each reason and set."""
    told: dict[tuple[str, str], dict[str, None]] = {}
    for row in ranked.scores:
        undefined = row.correction == "gicdm" and not fidelity_facts(row.metric).gicdm
        if row.reason and not undefined:
            told.setdefault((row.system, row.reason), {})[_title(row.metric, row.correction)] = None
    return [
        f"{_short(system)}: {listed(metrics) if len(metrics) < 4 else counted(len(metrics), 'score')}: {reason}"
        for (system, reason), metrics in told.items()
    ]


# --- files ----------------------------------------------------------------------------------------------------------


def write_ranks(ranked: RankedGenerators, path: str | os.PathLike[str]) -> None:
    """A line for each metric, correction and set: value, rank and its interval."""
    write_records(RANK_COLUMNS, [dict(zip(RANK_COLUMNS, line, strict=True)) for line in ranked.ranks], path)


# --- the page -------------------------------------------------------------------------------------------------------


def write_page(
    ranked: RankedGenerators, title: str, path: str | os.PathLike[str], human: HumanAgreement | None = None,
    judged: Mapping[str, float] | None = None,
) -> None:  # fmt: skip
    """One HTML file that needs nothing else: who leads, the plane, every metric, judgements, remarks."""
    parts: list[Html] = []
    for distance in dict.fromkeys(row.distance for row in ranked.scores):
        parts.append(section(f"ranks-{distance}", f"Ranks under {distance}", *_page_ranks(ranked, distance)))
        parts.append(section(f"scores-{distance}", "Every metric", *_page_scores(ranked, distance)))
    if human is not None:
        parts.append(section("judgements", "Agreement with the judgements", *_page_judgements(ranked, human, judged)))
    notes = [*ranked.scores.notes, *_reasons(ranked)]
    parts += [section("notes", "Notes", bullets(notes))] if notes else []
    parts.append(section("reading", "How to read it", _explained()))
    header = tag("header", tag("h1", title), paragraph(f"Earmark {__version__}", class_="meta"))
    shell.write_page(shell.whole_page(title, __version__, header, parts, shell.footer(__version__)), locate(path))


def _page_ranks(ranked: RankedGenerators, distance: str) -> list[Html]:
    made: list[Html] = []
    chosen = leading(ranked, distance)
    made += [paragraph(told_apart(ranked, *setting, distance)) for setting in chosen]
    if figures.drawable(ranked.scores, distance):
        picture = as_svg(figures.plane(ranked.scores, distance), f"plane {distance}", "Fidelity against coverage")
        made.append(drawing(picture, figures.plane_caption(ranked.scores, distance)))
    heads = ["generated set", "rank", "it may be", "value"]
    made += [
        table(heads, _ranking(ranked, *setting, distance), words=1, caption=f"By {_title(*setting)}", sortable=False)
        for setting in chosen
    ]
    return made


def _page_scores(ranked: RankedGenerators, distance: str) -> list[Html]:
    lines = {(line.correction, line.metric, line.system): line for line in ranked.ranks if line.distance == distance}
    made = []
    for correction, title in TITLES.items():
        metrics = list(dict.fromkeys(metric for which, metric, _ in lines if which == correction))
        for question, members in _by_question(metrics).items():
            body = [
                [metric, *(_value_and_ranks(lines.get((correction, metric, name))) for name in ranked.systems)]
                for metric in members
            ]
            caption = f"{question} Values {title}, with the ranks that a set may have"
            made.append(table(["metric", *ranked.systems], body, caption=caption, sortable=False))
    return made


def _page_judgements(ranked: RankedGenerators, human: HumanAgreement, judged: Mapping[str, float] | None) -> list[Html]:
    distance = human.relations[0].distance
    if not judged or not any(item.pearson for item in human.relations if item.distance == distance):
        return judgements.to_html(human)
    picture = as_svg(
        against_judgements(ranked.scores, judged, human, distance), "judgements", "A metric against the judgements"
    )
    caption = JUDGED_CAPTION.format(metric=leading_metric(human, distance))
    return [drawing(picture, caption), *judgements.to_html(human)]


def _explained() -> Html:
    return bullets([
        "All sets are judged by the same real points. For the intervals all of them lose points together with the same "
        "real ones, so a difference between two sets is not blurred by what another real set would do to both.",
        "Two sets are told apart when less than one of twenty comparisons of equal generators would show such a "
        "difference, after a correction for the number of pairs.",
        "A rank lies in its interval with at least 95 %: from one plus the number of sets that are surely ahead to the "
        "number of those that are not surely behind.",
        "Metrics whose value changes with the number of samples do not tell apart sets of different sizes.",
    ])  # fmt: skip
