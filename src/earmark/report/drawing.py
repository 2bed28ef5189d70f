"""Figures from a score table, a run folder or printed results: open it, find what it can give, draw it, write it.

draw_figures("run", figure=["trends", "maps"], into="figures", format=["png", "pdf"])
draw_figures("published:vocsim", figure="trends", top=5, out="trends.svg")
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from earmark.analysis.sources import PREFIX, open_scores
from earmark.atomic import write_whole
from earmark.codecs.runs.folder import is_codec_run
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.progress import Progress, progress_bar
from earmark.report.content import SubsetFacts
from earmark.report.facts import match_facts, printed_facts, read_facts
from earmark.report.figures import save
from earmark.report.figures.style import library
from earmark.report.gallery import TOPS, Drawing, Exhibit, Material, Wishes, find, offers
from earmark.report.score_index import ScoreIndex
from earmark.runs.folder import make_folder
from earmark.scores import Scores
from earmark.tables import csv_text
from earmark.wording import listed

FORMATS = ("png", "svg", "pdf")
CAPTIONS = "captions.md"

Source = str | os.PathLike[str] | Scores


def open_material(
    source: Source, *, facts: str | os.PathLike[str] | None = None, with_repeats: bool = False,
    wishes: Wishes | None = None,
) -> Material:  # fmt: skip
    """What figures can be drawn from: see `draw_figures`."""
    wishes = wishes or Wishes()
    given = [] if facts is None else read_facts(facts)
    name = "a score table" if isinstance(source, Scores) else os.fspath(source)
    printed = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    place = None if isinstance(source, Scores) or printed else locate(source)
    if place is not None and (place / "run.json").exists():
        made = _codec_run(place, name, wishes) if is_codec_run(place) else _run(place, name, wishes, given)
    else:
        metric = wishes.metrics[0] if len(wishes.metrics) == 1 else None
        scores, _ = open_scores(source, metric, with_repeats=with_repeats)
        known = [*ScoreIndex(scores).subsets]
        made = Material(
            name=name, scores=scores, printed=printed, wishes=wishes,
            facts=match_facts(known, given, printed_facts(known)),
        )  # fmt: skip
    if not made.scores.rows:
        raise InputError(f"{name} holds no scores: there is nothing to draw.")
    made.check_wishes()
    return made


def _codec_run(place: Path, name: str, wishes: Wishes) -> Material:
    from earmark.report.codecs.finished import open_runs

    runs = open_runs([place])
    synthetic = any("synth" in str(record.get("corpora", "")) for record in runs.records)
    return Material(
        name=name, scores=runs.scores, synthetic=synthetic, wishes=wishes,
        comparisons=lambda metrics: runs.compared(metrics, None),
    )  # fmt: skip


def _run(place: Path, name: str, wishes: Wishes, given: Sequence[SubsetFacts]) -> Material:
    runs = import_module("earmark.representations.figures")  # a room above this one
    material: Material = runs.material_of_run(place, name, wishes, given)
    return material


def draw_figures(
    source: Source, *, figure: str | Iterable[str] = (), into: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None, format: str | Iterable[str] = ("png",),
    metric: str | Iterable[str] = (), top: float | Iterable[float] = TOPS, subset: str | Iterable[str] = (),
    system: str | Iterable[str] = (), distance: str | Iterable[str] = (),
    facts: str | os.PathLike[str] | None = None, with_repeats: bool = False, seed: int = 0, progress: Progress = False,
) -> list[Drawing]:  # fmt: skip
    """Draw figures of a score table, and write them where that is asked for.

    Args:
        source: Score table or its file, run folder, or published:vocsim, published:codec-superb and other printed sets.
        figure: Names of figures; none: all that the source can give.
        into: Folder for one file of each figure and format, their numbers as CSV and captions.md; made if need be.
        out: File for a single figure: .png, .svg or .pdf.
        format: png, svg, pdf: what is written into the folder.
        metric: Metrics to draw; none: what the figure is usually drawn of.
        top: Shares of the configurations for trends, in percent.
        subset: Only these subsets.
        system: Only these systems.
        distance: Only rows of these distances.
        facts: File with clips, classes, seconds and DRI of subsets, as `earmark corpus describe --out` writes it.
        with_repeats: Count printed values that repeat another system's as measured.
        seed: Seed of maps and samples.
        progress: Show a bar.

    Returns the drawings: name, matplotlib figure, caption, and the numbers behind it.
    """
    library()
    formats = _names(format)
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"A figure is written as {listed(FORMATS)}, not {name!r}.")
    tops = (float(top),) if isinstance(top, int | float) else tuple(map(float, top))
    wishes = Wishes(
        metrics=_names(metric), top=tops or TOPS, subsets=_names(subset), systems=_names(system),
        distances=_names(distance), seed=seed,
    )  # fmt: skip
    material = open_material(source, facts=facts, with_repeats=with_repeats, wishes=wishes)
    exhibits = _exhibits(material, _names(figure))
    if out is not None and len(exhibits) > 1:
        raise UsageError(
            f"{len(exhibits)} figures do not fit into one file ({listed([one.name for one in exhibits[:6]])}"
            f"{' …' if len(exhibits) > 6 else ''}): give a folder with --into, or choose one."
        )
    drawings = []
    with progress_bar(progress, len(exhibits), "draw", "figure") as bar:
        for exhibit in exhibits:
            drawings.append(exhibit.draw()._replace(name=exhibit.name))
            bar(note=exhibit.name)
    if out is not None:
        save(drawings[0].figure, os.fspath(out))
    if into is not None:
        write_drawings(drawings, into, formats)
    return drawings


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _exhibits(material: Material, names: Sequence[str]) -> list[Exhibit]:
    if names:
        found = [exhibit for name in dict.fromkeys(names) for exhibit in find(name, material)]
    else:
        found = [exhibit for offer in offers(material) for exhibit in offer.exhibits]
    if not found:
        raise InputError(f"{material.name} gives no figure; `earmark figures {material.name} --list` says why.")
    used: Counter[str] = Counter()
    for place, exhibit in enumerate(found):  # labels may differ in what no file is called
        used[exhibit.name.lower()] += 1
        count = used[exhibit.name.lower()]
        found[place] = exhibit._replace(name=f"{exhibit.name}-{count}") if count > 1 else exhibit
    return found


def write_drawings(
    drawings: Sequence[Drawing], into: str | os.PathLike[str], formats: Sequence[str] = ("png",)
) -> list[Path]:  # fmt: skip
    """Write figures, the numbers behind them and their captions into a folder; the files, in order."""
    folder = make_folder(Path(into))
    written = []
    for drawing in drawings:
        for suffix in formats:
            path = folder / f"{drawing.name}.{suffix}"
            save(drawing.figure, str(path))
            written.append(path)
        if drawing.rows:
            path = folder / f"{drawing.name}.csv"
            write_whole(path, csv_text(list(drawing.rows[0]), _lines(drawing.rows)).encode())
            written.append(path)
    captions = _captions(folder) | {drawing.name: drawing.caption for drawing in drawings}
    text = "\n".join(f"**{name}.** {caption}\n" for name, caption in captions.items())
    write_whole(folder / CAPTIONS, text.encode())
    return [*written, folder / CAPTIONS]


def _captions(folder: Path) -> dict[str, str]:
    """The captions of figures that were drawn into the folder before."""
    try:
        text = (folder / CAPTIONS).read_text("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return {}
    return dict(re.findall(r"^\*\*(.+?)\.\*\* (.+)$", text, re.MULTILINE))


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    return [[row.get(name) for name in rows[0]] for row in rows]
