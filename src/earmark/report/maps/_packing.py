"""The values of a map as one JSON text, small enough to open at once.

    numbers   {"type": "u16", "data": base64 of little-endian values}; read in a browser as a typed array
    places    16 bits a coordinate over the square around all points: a 65,536th of the map's width
    texts     of labels and groups each once, with a number for each clip (0: none); files as folder and name

Neighbours take 16 bits each up to 65,535 clips, else 32; 0 is nobody, and row r is r + 1.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.report.maps.content import ClipTable, MapContent, MapLayout, MapView
from earmark.vectors.several_labels import split_labels

STEPS = 65_535
_TYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f32": "<f4"}


def packed(values: NDArray[Any] | Sequence[float], kind: str) -> dict[str, str]:
    """Numbers of one type as text."""
    data = np.ascontiguousarray(values, dtype=_TYPES[kind])
    return {"type": kind, "data": base64.b64encode(data.tobytes()).decode()}


def unpacked(text: dict[str, str]) -> NDArray[Any]:
    """The numbers again, as a browser reads them."""
    return np.frombuffer(base64.b64decode(text["data"]), _TYPES[text["type"]])


def whole_numbers(values: NDArray[Any]) -> dict[str, str]:
    """Numbers from 0 on in as few bytes as they need."""
    largest = int(np.max(values, initial=0))
    return packed(values, "u8" if largest < 1 << 8 else "u16" if largest < 1 << 16 else "u32")


def pack(content: MapContent) -> str:
    """The map as JSON that may stand inside a script element: nothing in it can end the element."""
    clips = content.clips
    values: dict[str, Any] = {
        "title": content.title,
        "clips": len(clips),
        "ids": list(clips.ids),
        "labels": _labels(content),
        "groups": None if clips.groups is None else _texts(clips.groups),
        "files": _files(clips),
        "starts": _times(clips.starts),
        "ends": _times(clips.ends),
        "seconds": _times(clips.seconds),
        "layouts": [_layout(layout) for layout in content.layouts],
        "views": [_view(view) for view in content.views],
    }
    return as_json(values)


def as_json(values: Any) -> str:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _texts(texts: Sequence[str | None]) -> dict[str, Any]:
    """Names in the order of their first letters, and the number of each clip's own: 0 for none."""
    names = sorted({text for text in texts if text})
    numbers = {name: number for number, name in enumerate(names, 1)}
    return {"names": names, "codes": whole_numbers(np.array([numbers.get(text or "", 0) for text in texts], np.int64))}


def _labels(content: MapContent) -> dict[str, Any]:
    """Labels as texts; where clips have several or none, with the numbers of the labels of each text."""
    texts = _texts(content.clips.labels)
    if not content.separator and not content.background:
        return texts
    held = [() if name == content.background else split_labels(name, content.separator) for name in texts["names"]]
    numbers = {label: number for number, label in enumerate(sorted({label for own in held for label in own}))}
    return {**texts, "sets": [[numbers[label] for label in own] for own in held]}


def _files(clips: ClipTable) -> dict[str, Any] | None:
    if clips.paths is None or not any(clips.paths):
        return None
    parts = [(path or "").replace("\\", "/").rpartition("/") for path in clips.paths]
    folders = sorted({folder + slash for folder, slash, _ in parts})
    numbers = {name: number for number, name in enumerate(folders)}
    codes = whole_numbers(np.array([numbers[folder + slash] for folder, slash, _ in parts], np.int64))
    return {"folders": folders, "codes": codes, "names": [name for *_, name in parts]}


def _times(seconds: NDArray[np.float64] | None) -> dict[str, str] | None:
    """NaN stays NaN."""
    return None if seconds is None or np.isnan(seconds).all() else packed(seconds, "f32")


def square(points: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Points on a square of 65,536 steps, with their own proportions, in its middle."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max())
    scaled = (points - (low + high) / 2) / (extent if extent > 0 else 1.0) + 0.5
    return np.asarray(np.round(np.clip(scaled, 0.0, 1.0) * STEPS), np.uint16)


def _layout(layout: MapLayout) -> dict[str, Any]:
    places = square(layout.points)
    told = {name: getattr(layout, name) for name in ("method", "kept", "shared", "trust", "share")}
    return {**told, "x": packed(places[:, 0], "u16"), "y": packed(places[:, 1], "u16")}


def _view(view: MapView) -> dict[str, Any]:
    lists = view.lists
    return {
        "title": view.title,
        "system": view.system,
        "distance": view.distance,
        "correction": view.correction,
        "across": view.protocol == "across_groups",
        "layouts": list(view.layouts),
        "k": lists.rows.shape[1],
        "neighbours": whole_numbers(lists.rows + 1),
        "distances": packed(lists.distances, "f32"),
        "ranked": packed(lists.ranked, "u8"),
        "values": {name: packed(values, "f32") for name, values in view.values.items()},
    }
