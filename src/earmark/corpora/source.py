"""One text says which corpus is meant: `open_corpus` finds out what kind it is.

synth            a registered name; `vocsim:BS1` and `asterisk:en` pass on what follows the colon
hear:FOLDER      a task of the HEAR benchmark
hub:owner/name   a Hugging Face dataset
clips.csv        a manifest (.csv, .tsv, .parquet)
recordings/      a folder: with a manifest in it, an AudioFolder with metadata, a saved dataset, or a folder of folders
dawn.selections.txt, labels.txt, dawn.TextGrid, id.csv
                 annotations of Raven, Audacity, Praat or Kaleidoscope; also a folder of recordings with some in it
one.wav          a single file
mypackage:birds  an import path to a Corpus, or to a function that returns one; also my_file.py:birds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from earmark.audio import SUFFIXES
from earmark.corpora import manifest
from earmark.corpora.clips import Corpus
from earmark.corpora.names import parse_pattern
from earmark.errors import InputError, UsageError, did_you_mean, strangers_code
from earmark.places import locate
from earmark.registry import Registry, load_path

CORPORA: Registry[Callable[..., Corpus]] = Registry(
    "corpus",
    "earmark.corpora",
    {
        "asterisk": "earmark.corpora.recordings.asterisk:open_asterisk",
        "codec_superb": "earmark.corpora.codec_superb:open_codec_superb",
        "drums": "earmark.corpora.recordings.drums:open_drums",
        "gcin": "earmark.corpora.recordings.words:open_gcin",
        "hear": "earmark.corpora.hear_tasks:open_hear",
        "instruments": "earmark.corpora.recordings.instruments:open_instruments",
        "klettres": "earmark.corpora.recordings.words:open_klettres",
        "ktuberling": "earmark.corpora.recordings.words:open_ktuberling",
        "speech_examples": "earmark.corpora.recordings.examples:open_examples",
        "spoken": "earmark.corpora.spoken:open_spoken",
        "synth": "earmark.corpora.synth:open_synth",
        "tuxpaint": "earmark.corpora.recordings.words:open_tuxpaint",
        "vocsim": "earmark.corpora.vocsim:open_vocsim",
        "voices": "earmark.corpora._voices:open_voices",
    },
)


def open_corpus(
    spec: str,
    *,
    label_column: str | None = None,
    group_column: str | None = None,
    path_column: str | None = None,
    subset_column: str | None = None,
    labels_from: str | None = None,
    label_separator: str | None = None,
    groups: str | None = None,
    needs_labels: bool = True,
) -> Corpus:
    """Open a corpus by name, path, hub id or import path; no audio is decoded.

    A registered name comes before a folder of the same name: write `./synth` for the folder.

    Args:
        spec: A registered name, a folder, a manifest, a file, `hub:owner/name` or an import path.
        label_column: The column of a manifest, of metadata or of a dataset that holds the label, if it is not called
            `label`.
        group_column: The one that holds the speaker, bird or recording, if it is not called `group`; "none" leaves out
            the one that would be taken.
        path_column: The one that holds the file, if it is not called `path`.
        subset_column: The one that holds the subset, if it is not called `subset`.
        labels_from: A pattern of the names of files, as `{label}_{group}_{take}.wav`; see `earmark.corpora.names`.
        label_separator: What stands between the labels of a clip that has several: spans of annotations with several
            labels are then kept, with this between them. Without it they are left out.
        groups: Another name of `group_column`.
        needs_labels: Whether a manifest must have a column of labels.

    Returns:
        The clips, of which nothing is decoded yet.

    >>> earmark.open_corpus("digits/", labels_from="{label}_{group}_{take}.wav").plot()
    """
    if group_column and groups and group_column != groups:
        raise UsageError(f"groups {groups!r} and group_column {group_column!r} are two names of one thing: give one.")
    named = {"label": label_column, "group": group_column or groups, "path": path_column, "subset": subset_column}
    columns = {role: column.strip() for role, column in named.items() if column}
    if not labels_from:
        return _open(spec.strip(), columns, needs_labels, label_separator or "")
    if label_column:
        raise UsageError("label_column and labels_from both say where labels stand: give one of them.")
    pattern = parse_pattern(labels_from)
    return pattern.applied(_open(spec.strip(), columns, needs_labels=False, separator=""))


def _open(spec: str, columns: Mapping[str, str], needs_labels: bool, separator: str) -> Corpus:
    if not spec:
        raise UsageError("The corpus is empty: give a folder, a manifest, hub:owner/name or a registered name.")
    if spec.startswith("hub:"):
        from earmark.corpora._hub import open_hub

        return open_hub(spec, columns)
    name, colon, rest = spec.partition(":")
    place = locate(spec).expanduser()
    if name not in CORPORA and place.exists():
        return _open_place(place, columns, needs_labels, separator)
    if columns:
        raise UsageError(f"{spec} is no manifest: label_column and the like name columns of one.")
    if name in CORPORA:
        opener = CORPORA.load(name)
        return _checked(opener(rest) if colon else opener(), spec)
    module = [] if name.endswith(".py") else name.split(".")
    if colon and all(part.isidentifier() for part in (*module, *rest.split("."))):
        found = load_path(spec, "corpus")
        with strangers_code(f"The corpus {spec} cannot be opened"):
            return _checked(found() if callable(found) else found, spec)
    known = {*manifest.SUFFIXES, *SUFFIXES}
    if "/" in spec or "\\" in spec or spec.startswith((".", "~")) or place.suffix.lower() in known:
        raise InputError(f"{spec} does not exist: check the path.")
    raise UsageError(
        f"There is no corpus {spec!r}.{did_you_mean(spec, CORPORA.names())} Give a folder, a manifest, hub:owner/name, "
        f"an import path such as mypackage.mymodule:corpus, or one of: {', '.join(CORPORA.names())}."
    )


def _open_place(place: Path, columns: Mapping[str, str], needs_labels: bool, separator: str) -> Corpus:
    from earmark.corpora import _annotated as annotated
    from earmark.corpora import _folders as folders
    from earmark.corpora import _hub as hub
    from earmark.corpora.annotation_files import kind_of

    suffix = place.suffix.lower()
    if place.is_dir():
        for name in ("manifest.csv", "manifest.tsv", "manifest.parquet"):
            if (place / name).is_file():
                corpus = manifest.read_manifest(place / name, columns, needs_labels=needs_labels)
                count = folders.strays(corpus.clips, place)  # the manifest counts, not the folder
                note = f"{place / name} is read and the {count} sound files beside it that it does not list are not."
                return replace(corpus, notes=(*corpus.notes, note)) if count else corpus
        if not hub.is_saved(place) and folders.metadata_files(place, columns):
            return folders.read_audio_folder(place, columns)
        if hub.is_saved(place) or any(place.glob("*.parquet")) or any(place.glob("data/*.parquet")):
            return hub.open_hub(str(place), columns)
        if files := annotated.annotation_files(place):
            return annotated.read_annotated(place, files, columns, place.absolute().name, separator)
    if kind_of(place) is not None:
        return annotated.read_annotated(place.parent, [place], columns, place.stem, separator, whole=False)
    if suffix in manifest.SUFFIXES and place.is_file():
        return manifest.read_manifest(place, columns, needs_labels=needs_labels)
    if columns:
        raise UsageError(f"{place} is no manifest and has none in it: label_column and the like name columns of one.")
    if place.is_dir():
        return folders.read_folder(place)
    if suffix in SUFFIXES:
        return folders.read_file(place)
    raise InputError(f"{place} is neither a manifest ({', '.join(manifest.SUFFIXES)}) nor audio by its name.")


def _checked(found: object, spec: str) -> Corpus:
    if not isinstance(found, Corpus):
        raise InputError(f"{spec} is a {type(found).__name__}, not a corpus: return an earmark.corpora.clips.Corpus.")
    return found
