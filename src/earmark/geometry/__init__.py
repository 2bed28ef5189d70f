"""Vectors as points of a space: the sweep over all pairs, searches, hubness and its corrections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.geometry.corrections import Correction
    from earmark.geometry.hubness import k_occurrences
    from earmark.geometry.layout import Layout, lay_out
    from earmark.geometry.neighbours import ball_counts, nearest
    from earmark.geometry.spaces import Space, prepare, prepare_pair
    from earmark.geometry.sweep import Neighbours, Swept, Wanted

__all__ = [
    "Correction",
    "Layout",
    "Neighbours",
    "Space",
    "Swept",
    "Wanted",
    "ball_counts",
    "k_occurrences",
    "lay_out",
    "nearest",
    "prepare",
    "prepare_pair",
]

__getattr__ = lazy_names(
    "earmark.geometry",
    {
        "Correction": "corrections",
        "Layout": "layout",
        "Neighbours": "sweep",
        "Space": "spaces",
        "Swept": "sweep",
        "Wanted": "sweep",
        "ball_counts": "neighbours",
        "k_occurrences": "hubness",
        "lay_out": "layout",
        "nearest": "neighbours",
        "prepare": "spaces",
        "prepare_pair": "spaces",
    },
)
