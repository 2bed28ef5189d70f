"""What a host measures: its blind sets, its policy and its limits, in one YAML file.

    board: vocsim                    # the board that the results go to, by its name there
    sets:
      HU3:                           # the subset's name on the board
        title: Utterances, Shipibo-Conibo
        corpus: recordings/HU3       # whatever `earmark run` takes: a folder, a manifest, a registered name
        subset: ""                   # one subset of that corpus, if it has several
        label_column: word           # columns of a manifest, where they are not called label and group
        groups: speaker
    policy: {sets: {HU3: {...}}}     # `earmark blind prepare` writes it (see `earmark.blind.policy`)
    limits: {memory: 8GB, threads: 2}
    seconds_per_clip: 30             # without it 5 times the length of a clip, and 20 s more
    job_seconds: 21600               # for all sets together
    secret: sets.secret              # a file of random bytes, made where it is missing; nobody else may read it

Paths are relative to the file.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from earmark.blind.policy import Policy, read_policy
from earmark.corpora.clips import Clip, groups_of, labels_of
from earmark.corpora.source import CORPORA, open_corpus
from earmark.errors import InputError, UsageError, did_you_mean, quoted
from earmark.evaluation.options import byte_count
from earmark.isolation import Limits
from earmark.plain_yaml import load_yaml
from earmark.scores.spelling import refuse_reserved

__all__ = ["BlindSet", "Host", "read_sets"]

JOB_SECONDS = 6 * 3600.0
SECRET_BYTES = 32


@dataclass(frozen=True)
class BlindSet:
    """Recordings that may not leave: what the world may know of them, and where they are.

    Args:
        name: The subset on the board.
        corpus: What `open_corpus` opens.
        title: In words.
        subset: One subset of the corpus, where it has several.
        label_column: The column of a manifest that holds the label.
        groups: The column of a manifest that holds the speaker or recording.
    """

    name: str
    corpus: str
    title: str = ""
    subset: str = ""
    label_column: str | None = None
    groups: str | None = None

    @cached_property
    def clips(self) -> list[Clip]:
        """All clips, as a corpus has them: those without a label or alone in their class are heard and not scored."""
        corpus = open_corpus(self.corpus, label_column=self.label_column, groups=self.groups)
        subsets = corpus.subsets()
        if self.subset and self.subset not in subsets:
            hint = did_you_mean(self.subset, subsets)
            raise InputError(f"The blind set {quoted(self.name)}: {self.corpus} has no subset {self.subset!r}.{hint}")
        if not self.subset and len(subsets) > 1:
            raise InputError(
                f"The blind set {quoted(self.name)}: {self.corpus} has {len(subsets)} subsets; name one with `subset`."
            )
        clips = list(subsets[self.subset] if self.subset else corpus.clips)
        if max(Counter(clip.label for clip in clips if clip.label).values(), default=0) < 2:
            raise InputError(f"The blind set {quoted(self.name)} has no two clips of one label: check its corpus.")
        return clips

    @property
    def labels(self) -> list[str | None]:
        return labels_of(self.clips)

    @property
    def group_names(self) -> list[str | None] | None:
        return groups_of(self.clips)

    @cached_property
    def class_sizes(self) -> dict[str, int]:
        """The classes that are scored, of two clips or more, with the number of their clips."""
        sizes = Counter(clip.label for clip in self.clips if clip.label)
        return {str(label): size for label, size in sizes.items() if size > 1}

    def public_facts(self) -> dict[str, Any]:
        """What the board is told: name, title, and how many clips and classes are scored."""
        sizes = self.class_sizes
        return {
            "subset": self.name,
            "title": self.title or self.name,
            "clips": sum(sizes.values()),
            "classes": len(sizes),
        }


@dataclass(frozen=True)
class Host:
    """Everything that one host decides. `secret` never leaves its file."""

    board: str
    sets: Mapping[str, BlindSet]
    policy: Policy
    limits: Limits = field(default_factory=Limits)
    seconds_per_clip: float | None = None
    job_seconds: float = JOB_SECONDS
    secret: bytes = field(default=b"", repr=False)
    path: Path | None = None


_KEYS = ("board", "sets", "policy", "limits", "seconds_per_clip", "job_seconds", "secret")
_OF_A_SET = tuple(one.name for one in fields(BlindSet) if one.name != "name")


def read_sets(path: str | os.PathLike[str], *, prepared: bool = True) -> Host:
    """The host's file.

    Args:
        path: The YAML file.
        prepared: Whether its policy must state the terms of every set, as `earmark blind prepare` writes them.
    """
    file = Path(path)
    values = _mapping(_load(file), _KEYS, file.name)
    board, sets = values.get("board"), values.get("sets")
    if not isinstance(board, str) or not board.strip():
        raise UsageError(f"{file.name}: say which board the results go to, as in `board: vocsim`.")
    if not isinstance(sets, dict) or not sets:
        raise UsageError(
            f"{file.name}: sets names each blind set with its corpus, as in `sets: {{HU3: {{corpus: a}}}}`."
        )
    blind = {str(name): _blind_set(str(name), facts, file) for name, facts in sets.items()}
    policy = read_policy(values.get("policy") or {}, f"{file.name}: policy")
    if prepared and (lacking := [name for name in blind if name not in policy.sets]):
        raise UsageError(
            f"{file.name}: the policy has no terms for {lacking[0]}: `earmark blind prepare {file}` measures them."
        )
    times = {name: _seconds(values.get(name), name, file.name) for name in ("seconds_per_clip", "job_seconds")}
    return Host(
        board=board.strip(),
        sets=blind,
        policy=policy,
        limits=_limits(values.get("limits"), file.name),
        seconds_per_clip=times["seconds_per_clip"],
        job_seconds=times["job_seconds"] or JOB_SECONDS,
        secret=_secret(file.parent / str(values.get("secret") or f"{file.stem}.secret")),
        path=file,
    )


def _load(file: Path) -> Any:
    try:
        return load_yaml(file.read_text("utf-8"), file.name)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{file} cannot be read ({' '.join(str(error).split())[:200]}).") from error


def _mapping(given: object, known: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"{where} must hold `key: value` lines; known: {', '.join(known)}.")
    for key in given:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise UsageError(f"{where}: unknown key {quoted(str(key))}.{hint} Known: {', '.join(known)}.")
    return given


def _blind_set(name: str, given: object, file: Path) -> BlindSet:
    where = f"{file.name}: the set {quoted(name)}"
    facts = _mapping(given, _OF_A_SET, where)
    refuse_reserved(name, where)
    for key, value in facts.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{where}: {key} is text; put quotation marks around it.")
    corpus = facts.get("corpus")
    if not corpus:
        raise UsageError(f"{where} has no corpus: name the folder or manifest of its recordings.")
    beside = file.parent / corpus
    if corpus.partition(":")[0] not in CORPORA and beside.exists():
        corpus = str(beside.absolute())
    return BlindSet(
        name=name,
        corpus=corpus,
        title=facts.get("title") or "",
        subset=facts.get("subset") or "",
        label_column=facts.get("label_column") or None,
        groups=facts.get("groups") or None,
    )


def _limits(given: object, where: str) -> Limits:
    known = tuple(one.name for one in fields(Limits))
    values = _mapping(given if given is not None else {}, known, f"{where}: limits")
    return Limits(**{key: byte_count(value) if isinstance(value, str) else value for key, value in values.items()})


def _seconds(given: object, name: str, where: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e8:
        raise UsageError(f"{where}: {name} is a positive number of seconds, not {quoted(str(given))}.")
    return float(given)


def _secret(file: Path) -> bytes:
    """The host's secret: which clips are heard twice, and in which order. Made once; only its owner may read it."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(SECRET_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise UsageError(f"Others may read {file}, the host's secret: chmod 600 {file}.")
    data = file.read_bytes()
    if len(data) < SECRET_BYTES:
        raise InputError(f"{file} is too short for a secret: remove it, and it is made anew.")
    return data
