"""One text says which corpus is meant: `open_corpus` finds out what kind it is.

synth            a registered name; `vocsim:BS1` and `asterisk:en` pass on what follows the colon
hear:FOLDER      a task of the HEAR benchmark
hub:owner/name   a Hugging Face dataset
clips.csv        a manifest (.csv, .tsv, .parquet)
recordings/      a folder: with a manifest in it, an AudioFolder with metadata, a saved dataset, or a folder of folders
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
from earmark.errors import EarmarkError, Ended, InputError, UsageError, did_you_mean, no_exit
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
    spec: str, *, label_column: str | None = None, groups: str | None = None, needs_labels: bool = True
) -> Corpus:
    """Open a corpus by name, path, hub id or import path; no audio is decoded.

    A registered name comes before a folder of the same name: write `./synth` for the folder.

    Args:
        spec: A registered name, a folder, a manifest, a file, `hub:owner/name` or an import path.
        label_column: The column of a manifest that holds the label, if it is not called `label`.
        groups: The column of a manifest that holds the speaker, bird or recording, if it is not called `group`.
        needs_labels: Whether a manifest must have a column of labels.
    """
    spec = spec.strip()
    if label_column or groups:
        return _with_columns(spec, {"label": label_column, "group": groups}, needs_labels)
    if not spec:
        raise UsageError("The corpus is empty: give a folder, a manifest, hub:owner/name or a registered name.")
    if spec.startswith("hub:"):
        from earmark.corpora._hub import open_hub

        return open_hub(spec)
    name, colon, rest = spec.partition(":")
    if name in CORPORA:
        opener = CORPORA.load(name)
        return _checked(opener(rest) if colon else opener(), spec)
    place = locate(spec).expanduser()
    if place.exists():
        return _open_place(place, needs_labels)
    module = [] if name.endswith(".py") else name.split(".")
    if colon and all(part.isidentifier() for part in (*module, *rest.split("."))):
        found = load_path(spec, "corpus")
        try:
            with no_exit():
                return _checked(found() if callable(found) else found, spec)
        except Ended as error:
            raise InputError(f"The corpus {spec} cannot be opened: {error}.") from error
        except EarmarkError:
            raise
        except Exception as error:  # a stranger's function may raise anything
            text = " ".join(str(error).split())
            raise InputError(f"The corpus {spec} cannot be opened: {type(error).__name__}: {text}.") from error
    known = {*manifest.SUFFIXES, *SUFFIXES}
    if "/" in spec or "\\" in spec or spec.startswith((".", "~")) or place.suffix.lower() in known:
        raise InputError(f"{spec} does not exist: check the path.")
    raise UsageError(
        f"There is no corpus {spec!r}.{did_you_mean(spec, CORPORA.names())} Give a folder, a manifest, hub:owner/name, "
        f"an import path such as mypackage.mymodule:corpus, or one of: {', '.join(CORPORA.names())}."
    )


def _open_place(place: Path, needs_labels: bool) -> Corpus:
    from earmark.corpora import _folders as folders
    from earmark.corpora import _hub as hub

    suffix = place.suffix.lower()
    if place.is_dir():
        for name in ("manifest.csv", "manifest.tsv", "manifest.parquet"):
            if (place / name).is_file():
                corpus = manifest.read_manifest(place / name, needs_labels=needs_labels)
                count = folders.strays(corpus.clips, place)  # the manifest counts, not the folder
                note = f"{place / name} is read and the {count} sound files beside it that it does not list are not."
                return replace(corpus, notes=(*corpus.notes, note)) if count else corpus
        if not hub.is_saved(place) and folders.metadata_files(place):
            return folders.read_audio_folder(place)
        if hub.is_saved(place) or any(place.glob("*.parquet")) or any(place.glob("data/*.parquet")):
            return hub.open_hub(str(place))
        return folders.read_folder(place)
    if suffix in manifest.SUFFIXES:
        return manifest.read_manifest(place, needs_labels=needs_labels)
    if suffix in SUFFIXES:
        return folders.read_file(place)
    raise InputError(f"{place} is neither a manifest ({', '.join(manifest.SUFFIXES)}) nor audio by its name.")


def _checked(found: object, spec: str) -> Corpus:
    if not isinstance(found, Corpus):
        raise InputError(f"{spec} is a {type(found).__name__}, not a corpus: return an earmark.corpora.clips.Corpus.")
    return found


def _with_columns(spec: str, columns: Mapping[str, str | None], needs_labels: bool) -> Corpus:
    """A manifest, or the manifest of a folder, whose columns have names of their own."""
    path = locate(spec).expanduser()
    for file in (path, *(path / f"manifest{suffix}" for suffix in manifest.SUFFIXES)):
        if spec.partition(":")[0] not in CORPORA and file.is_file() and file.suffix.lower() in manifest.SUFFIXES:
            named = {role: name for role, name in columns.items() if name}
            return manifest.read_manifest(file, named, needs_labels=needs_labels)
    raise UsageError(f"{spec} is no manifest: label_column and groups name columns of one.")
