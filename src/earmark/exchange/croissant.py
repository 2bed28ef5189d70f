"""A corpus as Croissant: JSON-LD that dataset searches and loaders read.

    FOLDER/croissant.json        name, licence, citation, every file with its SHA-256, and the fields of the clips
    FOLDER/croissant-clips.csv   a line for each clip: id, path, label, group, subset, start, end

Both lie in the folder that holds the recordings, so that every path is relative to it.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.atomic import write_whole
from earmark.corpora import Clip, Corpus
from earmark.errors import InputError, UsageError
from earmark.places import locate
from earmark.tables import csv_text

CLIPS = "croissant-clips.csv"
FIELDS = {
    "id": ("sc:Text", "Name of the clip"),
    "path": ("sc:Text", "Recording the clip lies in, relative to this file"),
    "label": ("sc:Text", "Class of the clip; empty where it has none"),
    "group": ("sc:Text", "What clips of one origin share, such as speaker, animal or recording"),
    "subset": ("sc:Text", "Part of the corpus that is scored on its own"),
    "start": ("sc:Float", "Where the clip begins in the recording, in seconds; empty: at its beginning"),
    "end": ("sc:Float", "Where the clip ends in the recording, in seconds; empty: at its end"),
}
_TERMS = (
    "citeAs column conformsTo cr data dataType dct examples extract field fileProperty fileObject fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace sc separator "
    "source subField transform"
).split()
_NAMESPACES = {"cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/", "sc": "https://schema.org/"}
_TYPED = {
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}


def write_croissant(corpus: Corpus, folder: Path) -> tuple[list[Path], list[str]]:
    """Write both files; their places, and what was left out."""
    if any(clip.path is None for clip in corpus.clips):
        raise UsageError(
            f"{corpus.name} has clips that are no files: write them first with `earmark corpus export`, and export "
            "that folder."
        )
    paths = {str(clip.path): _relative(str(clip.path), folder) for clip in corpus.clips}
    table = csv_text(tuple(FIELDS), [_line(clip, paths) for clip in corpus.clips]).encode()
    write_whole(folder / CLIPS, table)
    files = [_file_object(CLIPS, table)]
    files += [_file_object(name, locate(path).read_bytes()) for path, name in sorted(paths.items())]
    facts = _facts(corpus, files)
    write_whole(folder / "croissant.json", (json.dumps(facts, ensure_ascii=False, indent=2) + "\n").encode())
    remarks = ["Croissant has no place for cards of single subsets."] if corpus.subset_cards else []
    missing = [name for name in ("licence", "citation", "source") if not getattr(corpus.card, name)]
    if missing:
        remarks.append(f"The corpus states no {' and no '.join(missing)}: write card.json beside it and export again.")
    return [folder / "croissant.json", folder / CLIPS], remarks


def _relative(path: str, folder: Path) -> str:
    try:
        return locate(path).resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        raise InputError(
            f"{path} does not lie in {folder}: give with --into the folder that holds the recordings, as paths in "
            "Croissant are relative to it."
        ) from None


def _line(clip: Clip, paths: dict[str, str]) -> Sequence[object]:
    values = {**{name: getattr(clip, name) for name in FIELDS}, "path": paths[str(clip.path)]}
    return ["" if value is None else value for value in values.values()]


def _file_object(name: str, data: bytes) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name, "contentSize": f"{len(data)} B",
        "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip


def _facts(corpus: Corpus, files: list[dict[str, Any]]) -> dict[str, Any]:
    card = corpus.card
    stated = {
        "license": card.licence, "citeAs": card.citation,
        "url": card.source if card.source.startswith(("http://", "https://")) else "",
        "version": card.revision if re.fullmatch(r"\d+(\.\d+){0,2}", card.revision) else "",
        "inLanguage": card.language,
    }  # fmt: skip
    return {
        "@context": _context(), "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": re.sub(r"[^\w.-]+", "_", card.name) or "corpus",
        "description": " ".join(part for part in (card.title or card.name, card.notes) if part),
        **{name: value for name, value in stated.items() if value},
        "distribution": files,
        "recordSet": [{
            "@type": "cr:RecordSet", "@id": "clips", "name": "clips", "description": "A record for each labelled clip",
            "key": {"@id": "clips/id"}, "field": [_field(name, *about) for name, about in FIELDS.items()],
        }],
    }  # fmt: skip


def _field(name: str, kind: str, words: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field", "@id": f"clips/{name}", "name": name, "description": words, "dataType": kind,
        "source": {"fileObject": {"@id": CLIPS}, "extract": {"column": name}},
    }  # fmt: skip


def _context() -> dict[str, Any]:
    """The vocabulary of Croissant 1.0."""
    terms = {term: _NAMESPACES.get(term) or _TYPED.get(term) or f"cr:{term}" for term in _TERMS}
    return {"@language": "en", "@vocab": "https://schema.org/", **terms}
