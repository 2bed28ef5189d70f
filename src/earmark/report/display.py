"""What a console and a notebook show of scores, corpora, analyses and runs: a short text, a table, a figure.

    as_text(scores)     the leading metrics, a line for each setting
    as_html(scores)     the same as a table
    draw(scores)        values with their intervals; of comparisons the differences

Each is one function for every kind of value; analyses and runs add theirs in their own rooms.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from earmark.corpora.clips import Corpus
from earmark.errors import InputError
from earmark.report._score_tables import leading_metrics, score_table
from earmark.report.metric_text import facts
from earmark.report.parts import Parts
from earmark.scores import Scores
from earmark.tables import Column, Table, html
from earmark.wording import counted, listed

MOST_LINES = 20
_STYLE = (
    "<style>.earmark table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".earmark th,.earmark td{padding:.25em .7em;text-align:left;border-bottom:1px solid #8884}"
    ".earmark th.n,.earmark td.n{text-align:right}.earmark .scroll{overflow-x:auto}"
    ".earmark p.quiet{opacity:.75;font-size:.9em}</style>"
)


# --- tables -----------------------------------------------------------------------------------------------------------


@singledispatch
def table_of(value: Any) -> Table:
    """The table that stands for a value."""
    raise InputError(f"A value of type {type(value).__name__} has no table.")


@singledispatch
def remarks_on(value: Any) -> list[str]:
    """Sentences that belong under its table."""
    return []


@table_of.register
def _(scores: Scores) -> Table:
    if not scores.rows:
        return Table([Column("scores", "left")], [["no rows"]])
    table = score_table(scores, metrics=leading_metrics(scores))
    return Table(table.columns, list(table.rows)[:MOST_LINES], table.title, table.footnotes)


@remarks_on.register
def _(scores: Scores) -> list[str]:
    present = dict.fromkeys(row.metric for row in scores)
    lines = len(dict.fromkeys(row.key[:-1] for row in scores))
    shown = leading_metrics(scores)
    sentences = []
    if lines > MOST_LINES:
        sentences.append(f"{MOST_LINES} of {lines} lines; to_pandas() has all of them.")
    if len(present) > len(shown):
        others = [name for name in present if name not in shown]
        sentences.append(f'Also measured: {listed(others)}; to_pandas() has them, row("{others[0]}") one.')
    return [*sentences, *scores.notes]


@table_of.register
def _(corpus: Corpus) -> Table:
    columns = [Column("subset", "left"), *map(Column, ("clips", "classes", "unlabelled", "groups"))]
    rows = [
        [
            name or "(all)",
            len(clips),
            len({clip.label for clip in clips if clip.label is not None}),
            sum(clip.label is None for clip in clips),
            len({clip.group for clip in clips if clip.group is not None}) or "\N{EN DASH}",
        ]
        for name, clips in corpus.subsets().items()
    ]
    return Table(
        columns, rows[:MOST_LINES], title=f"{corpus.card.title or corpus.name}: {counted(len(corpus), 'clip')}"
    )


@remarks_on.register
def _(corpus: Corpus) -> list[str]:
    subsets = len(corpus.subsets())
    cut = [f"{MOST_LINES} of {subsets} subsets."] if subsets > MOST_LINES else []
    return [*cut, *corpus.notes]


@table_of.register
def _(parts: Parts) -> Table:
    return parts.table(MOST_LINES)


@remarks_on.register
def _(parts: Parts) -> list[str]:
    cut = [f"The lowest {MOST_LINES} of {len(parts)}; table() has all."] if len(parts) > MOST_LINES else []
    return [*cut, *parts.sentences()]


def as_text(value: Any) -> str:
    """The table and its remarks for a console."""
    return "\n".join([table_of(value).to_text().rstrip(), *remarks_on(value)])


def as_html(value: Any) -> str:
    """The same for a notebook."""
    notes = [html.paragraph(sentence, class_="quiet") for sentence in remarks_on(value)]
    body = html.tag("div", table_of(value).to_html(sortable=False), notes, class_="earmark")
    return _STYLE + body


# --- figures ----------------------------------------------------------------------------------------------------------


@singledispatch
def draw(value: Any, **options: Any) -> Any:
    """The figure that people want first: of scores values (or differences) with intervals, of a corpus its classes and
    durations."""
    raise InputError(f"A value of type {type(value).__name__} has no figure.")


@draw.register
def _(scores: Scores, metric: str | None = None) -> Any:
    from earmark.report.figures._dots import dot_plot

    name = metric or next(iter(leading_metrics(scores.select(status="ok"), 1)), None)
    if name is None:
        raise InputError("No row has a value: there is nothing to draw.")
    return dot_plot([row for row in scores if row.metric == name and row.value is not None], facts(name))


@draw.register
def _(corpus: Corpus, progress: bool = False) -> Any:
    from earmark.corpora.describe import describe, figure_of

    return figure_of(describe(corpus, dri=False, progress=progress), title=corpus.card.title or corpus.name)
