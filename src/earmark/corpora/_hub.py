"""Hugging Face datasets: by hub id, saved with `save_to_disk`, a folder of Parquet files, or an AudioFolder.

    hub:owner/name    hub:owner/name?config=clean&split=test&revision=main    hub:path/to/saved?label=species

Columns `audio` and `label`, and `subset`, `group` (or `speaker`, …) and `id` where they are there; other names are
given as `label=species`. Audio is taken as stored and decoded by Earmark when a clip is read, never by `datasets`,
so no other decoder is needed. Without `split`, all splits are taken, one after the other.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies

from earmark import audio
from earmark.corpora._folders import choose_column, metadata_files, read_audio_folder
from earmark.corpora.clips import Clip, Corpus, CorpusCard, Samples
from earmark.corpora.manifest import ROLES
from earmark.errors import EarmarkError, InputError, UsageError, absent, did_you_mean, require
from earmark.vectors.texts import column_texts


@dataclass(frozen=True)
class HubDataset:
    """Which dataset: enough to open it again in another process."""

    place: str
    config: str = ""
    revision: str = ""

    @property
    def local(self) -> bool:
        return Path(self.place).exists()


@dataclass(frozen=True)
class HubAudio:
    """The sound of one row, as the `make` of a clip: small to send to a worker, which opens the dataset itself."""

    dataset: HubDataset
    split: str
    row: int
    column: str

    def __call__(self) -> tuple[Samples, int]:
        stored = self._stored()
        return audio.read(stored) if isinstance(stored, str) else audio.read_bytes(stored, self.name)

    def digest(self) -> str:
        """A hash of the stored bytes, so that a cache follows the content and not the place."""
        stored = self._stored()
        data = Path(stored).read_bytes() if isinstance(stored, str) else stored
        return hashlib.sha256(data).hexdigest()

    @property
    def name(self) -> str:
        return f"{self.dataset.place}, row {self.row} of {self.split}"

    def _stored(self) -> bytes | str:
        """The encoded file, or the path where it lies."""
        value = _splits(self.dataset)[self.split][self.row][self.column]
        data, path = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (None, value)
        if isinstance(data, bytes):
            return data
        if isinstance(path, str):
            return path
        raise InputError(f"{self.name}: the column {self.column!r} holds no audio; leave the row out.")


def parse(spec: str) -> tuple[HubDataset, dict[str, str]]:
    """Take `owner/name?split=test&label=species` apart: the dataset, and the other options."""
    place, _, query = spec.removeprefix("hub:").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    allowed = ("config", "revision", "split", *ROLES)
    for name in options:
        if name not in allowed:
            raise UsageError(
                f"hub:{place} has no option {name!r}.{did_you_mean(name, allowed)} Known: {', '.join(allowed)}."
            )
    if not place:
        raise UsageError("hub: names no dataset; write hub:owner/name or hub:path/to/folder.")
    dataset = HubDataset(place, options.pop("config", ""), options.pop("revision", ""))
    return dataset, options


def open_hub(spec: str, columns: Mapping[str, str] | None = None) -> Corpus:
    """Open a dataset from the hub or from disk; labels are read, audio stays where it is until it is needed.

    `columns` are names beside those behind the question mark; the path of a table of files is the audio of a dataset.
    """
    dataset, options = parse(spec)
    for role, column in (columns or {}).items():
        if options.setdefault(role, column) != column:
            raise UsageError(
                f"{spec} names the column {options[role]!r}, and {column!r} was asked for: give one of them."
            )
    folder = Path(dataset.place)
    if folder.is_dir() and not is_saved(folder) and metadata_files(folder, options):
        return read_audio_folder(folder, options)
    if "path" in options:
        options.setdefault("audio", options.pop("path"))
    splits = _splits(dataset)
    wanted = options.pop("split", "")
    if wanted and wanted not in splits:
        raise InputError(absent(wanted, splits, "split", dataset.place))
    clips: list[Clip] = []
    for split in [wanted] if wanted else list(splits):
        clips += _clips(dataset, split, splits[split], options)
    if not clips:
        raise InputError(f"{dataset.place} holds no rows: give another dataset or split.")
    ids = {clip.id for clip in clips}
    if len(ids) < len(clips):
        raise InputError(f"{dataset.place}: the column of ids holds some twice; choose another with ?id=COLUMN.")
    return Corpus(_card(dataset, splits), clips)


def _clips(dataset: HubDataset, split: str, table: Any, options: Mapping[str, str]) -> list[Clip]:
    roles = [role for role in ROLES if role != "path"]
    chosen = {role: choose_column(role, table.column_names, options, dataset.place) for role in roles}
    sound = chosen.pop("audio")
    if sound is None:
        raise InputError(
            f"{dataset.place} has no column 'audio' (columns: {', '.join(table.column_names)}); "
            "name it with ?audio=COLUMN."
        )
    values = {role: _texts(table, column) for role, column in chosen.items()}
    return [
        Clip(
            id=values["id"][row] or f"{split}/{row:06d}",
            label=values["label"][row],
            subset=values["subset"][row] or "",
            group=values["group"][row],
            make=HubAudio(dataset, split, row, sound),
            text=values["text"][row],
        )
        for row in range(len(table))
    ]


def _texts(table: Any, column: str | None) -> list[str | None]:
    """A column as text. Class numbers become the names that the dataset gives them."""
    if column is None:
        return [None] * len(table)
    # Through a table of this column alone: indexing the whole one would fetch the audio of every row.
    values = table.select_columns([column])[:][column]
    name_of = getattr(table.features[column], "int2str", None)
    if name_of is not None:
        return [None if value is None or value < 0 else str(name_of(value)) for value in values]
    return column_texts(values)


@lru_cache(maxsize=8)
def _splits(dataset: HubDataset) -> dict[str, Any]:
    """The splits, opened once per process, with audio columns left undecoded."""
    datasets = require("datasets", "Hugging Face datasets", "hub")
    datasets.disable_progress_bars()
    found = _load(datasets, dataset)
    splits = dict(found) if isinstance(found, Mapping) else {str(found.split or "all"): found}
    undecoded = datasets.Audio(decode=False)
    for name, table in splits.items():
        for column, feature in table.features.items():
            if isinstance(feature, datasets.Audio):
                table = table.cast_column(column, undecoded)
        splits[name] = table
    return splits


def _load(datasets: Any, dataset: HubDataset) -> Any:
    folder = Path(dataset.place)
    try:
        if is_saved(folder):
            return datasets.load_from_disk(str(folder))
        # A hub id is owner/name; everything else that looks like a path is one.
        path = folder.is_absolute() or dataset.place.startswith((".", "~")) or dataset.place.count("/") > 1
        if path and not dataset.local:
            raise InputError(f"{dataset.place} does not exist: check the path.")
        with _offline_if_unreachable(datasets, wanted=not dataset.local):
            return datasets.load_dataset(dataset.place, dataset.config or None, revision=dataset.revision or None)
    except EarmarkError:
        raise
    except Exception as error:  # `datasets` passes on the errors of a dozen libraries
        raise InputError(_why(error, dataset)) from error


@contextmanager
def _offline_if_unreachable(datasets: Any, *, wanted: bool) -> Iterator[None]:
    """Where the hub's name cannot be looked up, look in the local cache at once instead of trying for half a minute.

    Behind a proxy the name need not resolve, so nothing is concluded there.
    """
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname or ""
    if not wanted or getproxies() or _resolves(host):
        yield
        return
    settings = (datasets.config, require("huggingface_hub.constants", "Hugging Face datasets", "hub"))
    before = [getattr(setting, "HF_HUB_OFFLINE", False) for setting in settings]
    try:
        for setting in settings:
            setting.HF_HUB_OFFLINE = True
        yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            setting.HF_HUB_OFFLINE = value


def _resolves(host: str) -> bool:
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True


def _why(error: Exception, dataset: HubDataset) -> str:
    links = _chain(error)
    lacking = next((link for link in links if isinstance(link, ImportError)), None)
    if lacking is not None:
        return f"{dataset.place} cannot be opened, since a package is missing ({_first_line(lacking)}): install it."
    # `datasets` wraps what went wrong in sentences that say only that something did.
    detail = _first_line(links[-1] if dataset.local else error)
    if dataset.local:
        return f"{dataset.place} is not a dataset that can be opened ({detail}): save it again or give Parquet files."
    chain = [type(link).__name__ for link in links]
    offline = any(os.environ.get(name, "").upper() in ("1", "TRUE", "YES", "ON")
                  for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"))  # fmt: skip
    if offline or any("Connect" in name or "Offline" in name or "Timeout" in name for name in chain):
        return (
            f"{dataset.place} cannot be fetched: the Hugging Face hub is not reachable from here; "
            "download it where it is and give the folder as hub:path/to/folder."
        )
    return f"{dataset.place} cannot be opened from the Hugging Face hub ({detail}): check the name and your access."


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0].rstrip(". ") if str(error).strip() else type(error).__name__


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def is_saved(folder: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def _card(dataset: HubDataset, splits: Mapping[str, Any]) -> CorpusCard:
    info = next(iter(splits.values())).info
    name = Path(dataset.place).absolute().name if dataset.local else dataset.place
    return CorpusCard(
        name=name,
        title=" ".join((info.description or "").split())[:200],
        source=dataset.place if dataset.local else f"https://huggingface.co/datasets/{dataset.place}",
        revision=dataset.revision,
        licence=str(info.license or ""),
        citation=" ".join((info.citation or "").split()),
        status="local" if dataset.local else "public",
    )
