"""Every figure of a study by name, drawn when it is asked for, and saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from earmark.analysis.study import Study
from earmark.errors import UsageError
from earmark.places import locate
from earmark.progress import tracked
from earmark.report.analysis import _check_figures as checks
from earmark.report.analysis import _figures as figures
from earmark.report.figures import style

FORMATS = ("png", "svg", "pdf")
MOST_MODELS = 300
"""Models whose pairs are drawn; a tree of more is neither legible nor safe to walk."""


def analysis_figures(study: Study) -> dict[str, Callable[[], Any]]:
    """What there is to draw, by the names of the files: call one to draw it."""
    drawings: list[tuple[str, bool, Callable[[Study], Any]]] = [
        ("relations_of_datasets", True, figures.relation_map),
        ("relations_of_models", len(study.matrix.models) <= MOST_MODELS, partial(figures.relation_map, of="models")),
        ("coverage_curves", True, figures.coverage_curves),
        ("beam_widths", bool(study.beams), checks.beam_widths),
        ("error_curves", study.pounce is not None, figures.error_curves),
        ("noise_curves", bool(study.noise or study.folds), checks.noise_curves),
        ("fold_errors", study.folds is not None, checks.fold_errors),
        ("rank_plot", study.ranks is not None, figures.rank_plot),
        ("trade_off", study.lite is not None, figures.trade_off),
    ]
    return {name: partial(draw, study) for name, there, draw in drawings if there}


def save_figures(
    study: Study, folder: str | os.PathLike[str], formats: Iterable[str] = ("png",), *, progress: bool = False
) -> list[str]:
    """Write every figure in every format; the names of the files. The folder is made if need be.

    Args:
        study: What `analyze` found.
        folder: Where the files go: `coverage_curves.png` and so on.
        formats: Of png, svg and pdf.
        progress: Whether a bar is shown on stderr where it takes longer than two seconds.
    """
    endings = check_formats(formats)
    place = locate(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in tracked(analysis_figures(study).items(), "draw", "figure", progress=progress):
        figure = draw()
        for ending in endings:
            target = place / f"{name}.{ending}"
            style.save(figure, str(target))
            written.append(str(target))
    return written


def check_formats(formats: Iterable[str]) -> list[str]:
    """The formats, each once; UsageError for one that there is not."""
    endings = list(dict.fromkeys(ending.lower().lstrip(".") for ending in formats))
    for ending in endings:
        if ending not in FORMATS:
            raise UsageError(f'Figures are written as png, svg or pdf, not "{ending}".')
    if not endings:
        raise UsageError("Name at least one format of figures: png, svg or pdf.")
    return endings
