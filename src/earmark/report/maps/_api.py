"""A map as a value: it shows itself in a notebook and saves itself as a page."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from earmark.errors import InputError, UsageError
from earmark.evaluation._label_sets import BACKGROUND, label_sets, names_of, one_each
from earmark.evaluation.data import check_ids, check_vectors, kept_for_reading, texts_of_rows
from earmark.evaluation.options import Options, as_names, byte_count, whole
from earmark.geometry import spaces
from earmark.geometry.corrections import parse_all
from earmark.places import is_remote, locate
from earmark.report.html._shell import write_page
from earmark.report.maps._building import MOST, NEIGHBOURS, Representation, build_map, projections_of
from earmark.report.maps._clips import Audio, clips_of, columns_of
from earmark.report.maps._sounds import BUDGET, Sounds, embedded, files_of, linked, no_sounds, parse_sounds
from earmark.report.maps.content import ClipTable, Fetch, MapContent
from earmark.report.maps.page import render_map
from earmark.vectors.frames import columns_taken, is_frame, read_frame
from earmark.vectors.several_labels import SEPARATORS
from earmark.wording import counted
from earmark.workers import thread_count

_HEIGHT = 760


class ClipMap:
    """A map of clips: at the end of a notebook's cell it shows itself, and `save` writes it as one HTML file.

    `content` holds what it shows: clips, places, and each clip's neighbours.
    """

    def __init__(self, content: MapContent, sounds: str = BUDGET, *, progress: bool = False) -> None:
        self.content = content
        self._wish = parse_sounds(sounds)
        self._progress = progress

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the map; recordings are linked relative to this place, where links were asked for."""
        target = locate(path)
        if target.suffix.lower() not in (".html", ".htm"):
            raise UsageError(f"{path}: a map is a page; give a name that ends in .html.")
        write_page(self._page(target), target)
        return target

    @cached_property
    def html(self) -> str:
        """The page as text."""
        return self._page(None)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of clips and sounds."""
        return (*self.content.notes, *filter(None, [self._embedded.note if isinstance(self._wish, int) else ""]))

    @cached_property
    def _embedded(self) -> Sounds:
        budget = self._wish if isinstance(self._wish, int) else 0
        return embedded(self.content, budget, progress=self._progress)

    def _page(self, target: Path | None) -> str:
        if self._wish != "link":
            return render_map(self.content, self._embedded if isinstance(self._wish, int) else no_sounds())
        if target is None:
            return render_map(self.content, no_sounds("Sounds are linked in a saved file alone: save(...) writes one."))
        if is_remote(target):
            raise UsageError(f"{target}: links to recordings need a page on this machine; give --sounds 5MB.")
        return render_map(self.content, linked(self.content, target.parent))

    def __repr__(self) -> str:
        views = counted(len(self.content.views), "view")
        return f"Map of {counted(len(self.content.clips), 'clip')} ({views}); save('map.html') writes it."

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="Map of clips" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{_HEIGHT}px;border:1px solid #8886;border-radius:8px"></iframe>'
        )


def map_clips(
    vectors: Any, labels: Any = None, *, groups: Any = None, ids: Sequence[str] | str | None = None,
    audio: Audio = None, distance: str | Sequence[str] = "cosine", correct: str | Sequence[str] = "none",
    across_groups: bool = False, k: int = NEIGHBOURS, projection: str | Sequence[str] = "auto", sounds: str = BUDGET,
    most: int = MOST, min_class_size: int = 2, label_separator: str = "", background: str = "",
    ties: spaces.Ties = "average", seed: int = 0, title: str = "", system: str = "", device: str = "auto",
    memory: str | int = "2GB", threads: int | None = None, progress: bool = False,
) -> ClipMap:  # fmt: skip
    """A map of `vectors` [N, D] to click through and listen to, which shows itself in a notebook.

    Args:
        vectors: One row for each clip: an array, a tensor, or a data frame of pandas or polars.
        labels: One for each row, where there are some, or several as in `evaluate`; of a data frame, the name of a
            column.
        groups: The speaker, bird or recording of each row; of a data frame, the name of a column.
        ids: Names of the rows; of a data frame, the name of a column.
        audio: A folder, a manifest, a corpus or a list of clips, whose ids or file names are the ids of the rows.
        distance: One or several of cosine, euclidean, spearman.
        correct: One or several hubness corrections.
        across_groups: Also show neighbours without those of a clip's own group.
        k: How many neighbours of each clip.
        projection: How clips get their places: "pca", "tsne", "umap" (extra `clustering`), several; "auto" is t-SNE of
            30 to 10,000 clips. PCA is always there too.
        sounds: How much of the file excerpts may take ("5MB"), "link" to play the recordings from where they lie
            beside the saved file, or "none".
        most: More clips than this are drawn at random.
        min_class_size: Clips of smaller classes are no one's neighbours, as in `evaluate`.
        label_separator: What stands between the labels of a clip that has several; neighbours that share one agree.
        background: The label of clips that hold none of the classes.
        ties: Ranks of equal values under spearman: "average" or "ordinal".
        seed: Seed of the projection and of the draw.
        title: Heading of the page.
        system: What the vectors are called.
        device: Where distances are computed: auto, cpu, cuda.
        memory: Budget for tiles of distances.
        threads: How many at once; None: as many as there are cores.
        progress: Show bars on stderr.

    Returns:
        The map: it shows itself at the end of a cell, and `save("map.html")` writes it.

    >>> map_clips(np.eye(4), ["wren", "wren", "owl", "owl"], system="one-hot", sounds="none").save("map.html")
    """
    values, names, given_labels, own_groups, notes = _rows_of(vectors, labels, groups, ids)
    several = Options(label_separator=label_separator, background=background)
    texts: list[str | None] = [None] * len(names)
    if given_labels is not None:
        sets = label_sets(given_labels, several)
        if sets is not None and not one_each(sets):
            label_separator, background = label_separator or SEPARATORS[0], background or BACKGROUND
        texts = texts_of_rows(given_labels if sets is None else names_of(sets, several), len(names), "labels") or texts
    found, remarks = clips_of(audio, names)
    clips = ClipTable(ids=names, labels=texts, groups=own_groups, **(columns_of(found) if audio is not None else {}))
    if across_groups and own_groups is None:
        raise UsageError("across_groups needs groups: give the group (speaker, bird, recording) of each row.")
    options = Options(
        distance=as_names(distance, "distance"), correct=parse_all(correct), across_groups=across_groups,
        min_class_size=min_class_size, label_separator=label_separator, background=background,
        ties=ties, seed=seed, memory=byte_count(memory), threads=thread_count(threads),
        device=device, progress=progress,
    )  # fmt: skip
    if parse_sounds(sounds) == "link":  # a mistake is told before the work
        files_of(clips)
    given = [
        Representation(vectors=values, distance=name, correction=str(correction), system=system)
        for name in options.distance
        for correction in options.correct
    ]
    content = build_map(
        clips, given, options, title=title or system or "Map of clips", k=whole("k", k, 1),
        projection=projections_of(projection), most=whole("most", most, 1), notes=[*notes, *remarks],
        fetch=_fetcher(found) if audio is not None else None,
    )  # fmt: skip
    return ClipMap(content, sounds, progress=progress)


def _fetcher(clips: Sequence[Any]) -> Fetch:
    def fetch(row: int) -> Any:
        if clips[row] is None:
            raise InputError("there is no sound of this clip")
        return clips[row].read()

    return fetch


def _rows_of(
    vectors: Any, labels: Any, groups: Any, ids: Any
) -> tuple[Any, list[str], Any, list[str | None] | None, tuple[str, ...]]:
    """Vectors, ids, labels, groups and notes; columns of a frame by their names."""
    if is_frame(vectors) and labels is None and not isinstance(groups, str) and not isinstance(ids, str):
        frame = read_frame(vectors)
        vectors, labels = frame.values, frame.labels
        groups = frame.groups if groups is None else groups
        ids = frame.ids if ids is None else ids
        notes: tuple[str, ...] = (frame.summary, *frame.notes)
    else:
        vectors, labels, groups, ids, notes = columns_taken(vectors, labels, groups, ids)
    values = check_vectors(vectors)
    count = len(values)
    named = check_ids(ids, count)
    names = [str(row) for row in range(count)] if named is None else list(named)
    return values, names, kept_for_reading(labels), texts_of_rows(groups, count, "groups"), notes
