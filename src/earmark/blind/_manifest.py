"""`submission.yaml`: what a package says of itself.

format: 1
kind: onnx                       # onnx, safetensors or code
model: model.onnx                # a file; a folder with config.json and model.safetensors; or extractor.py:MyModel
architecture: wavlm              # safetensors: one of the models that `earmark extractors` lists
options: {layer: 9}              # safetensors, code: keywords of the model
rate: 16000                      # onnx and code: samples a second that the model wants
front_end: {n_fft: 400, hop: 160, mels: 64}     # onnx: how sound is given to it; also seconds, hop, shortest,
                                                # layout, output and output_layout, as for `onnx:model.onnx`
pooling: mean_time               # frames to one vector; MTF, or mean_time+max_time, or MTF D100 with a PCA
pca: 100                         # principal components, fitted by the host on the vectors of each set
distance: cosine                 # cosine, euclidean or spearman
correction: none                 # of hubness: none, csls, icdm:k=20, ...
system:                          # the card of the entry on the board
  name: my-model
  title: My model
  licence: MIT
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, get_args

import yaml

from earmark.embedding import pooling
from earmark.errors import EarmarkError, UsageError, did_you_mean, quoted
from earmark.extractors.adapters.given_models import Setup, setup_from
from earmark.extractors.model_cards import CARDS, PRETRAINED
from earmark.geometry.correction_names import parse as parse_correction
from earmark.geometry.spaces import DISTANCES
from earmark.plain_yaml import load_yaml
from earmark.scores import Row, Scores
from earmark.submissions import Document, Problem, SystemCard, card_from, check, plain_card
from earmark.tables import plain

__all__ = ["ARCHITECTURES", "MOST_JSON", "RATES", "Kind", "Manifest", "read_manifest"]

Kind = Literal["onnx", "safetensors", "code"]

MOST_BYTES = 64_000
MOST_JSON = 16_000_000
"""Of all .json files together: those of weights are read."""
LONGEST_ENTRY = 80
RATES = range(1000, 96_001)
MOST_COMPONENTS = 1000
MOST_NEIGHBOURS, MOST_ITERATIONS = 200, 50
_DEEPEST = 12
SETUP = tuple(one.name for one in fields(Setup) if one.name != "card")
KEYS = (
    "format",
    "kind",
    "model",
    "architecture",
    "options",
    "pooling",
    "pca",
    "distance",
    "correction",
    "system",
    *SETUP,
)
ARCHITECTURES = tuple(card.name for card in PRETRAINED if not card.learns_here)
_HOSTS = ("device", "dtype", "batch", "threads", "local_files_only", "allow_pickle", "revision", "checkpoint", "path")
"""Keywords that are the host's to decide."""


class Manifest(NamedTuple):
    """What was read, or what is wrong with it."""

    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()


def read_manifest(data: bytes, files: Sequence[str], texts: Mapping[str, bytes]) -> Manifest:
    """The facts of a submission.yaml, checked against the files beside it; `texts` are the contents of .json files."""
    try:
        values = _loaded(data)
    except EarmarkError as error:
        return Manifest({}, (str(error),))
    reader = _Reader(values, files, texts)
    facts = reader.read()
    return Manifest(facts, tuple(reader.problems))


def _loaded(data: bytes) -> Mapping[str, Any]:
    if len(data) > MOST_BYTES:
        raise UsageError(f"submission.yaml has more than {MOST_BYTES:,} bytes: shorten it.")
    try:
        text = data.decode("utf-8")
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise UsageError("submission.yaml uses * to repeat a part: write it out.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise UsageError("submission.yaml is nested too deeply.")
        values = load_yaml(text, "submission.yaml")
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"submission.yaml cannot be read ({' '.join(str(error).split())[:200]}).") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise UsageError("submission.yaml must hold `key: value` lines such as `kind: onnx`.")
    return values


class _Reader:
    def __init__(self, values: Mapping[str, Any], files: Sequence[str], texts: Mapping[str, bytes]) -> None:
        self.values, self.files, self.texts = values, files, texts
        self.problems: list[str] = []
        self.kind = str(values.get("kind", ""))

    def _say(self, sentence: str) -> None:
        self.problems.append(f"submission.yaml: {sentence}")

    def read(self) -> dict[str, Any]:
        for key in self.values:
            if key not in KEYS:
                self._say(f"unknown key {quoted(key)}.{did_you_mean(key, KEYS)} Known: {', '.join(KEYS)}.")
        if self.values.get("format") != 1:
            self._say("the format is missing or unknown: write `format: 1`.")
        if self.kind not in get_args(Kind):
            self._say(f"the kind is onnx, safetensors or code, not {quoted(self.kind)}.")
            return {}
        system = self._system()
        variant = self._variant()
        return {
            "kind": self.kind,
            "model": self._model(),
            "architecture": self._architecture(),
            "entry": str(system.get("name", "")),
            "system": system,
            **variant,
            "distance": self._chosen("distance", "cosine", DISTANCES),
            "correction": self._correction(),
            "rate": self._rate(),
            "setup": self._setup(),
            "options": self._options(),
        }

    def _only_for(self, key: str, *kinds: str) -> bool:
        """Whether a key was given, and may be for this kind of package."""
        if self.values.get(key) is None:
            return False
        if self.kind not in kinds:
            self._say(f"{key} says nothing of a package of kind {self.kind}: leave it out.")
            return False
        return True

    def _model(self) -> str:
        given = self.values.get("model")
        if not isinstance(given, str) or not given.strip():
            self._say("say which file is the model, as in `model: model.onnx`.")
            return ""
        path, colon, name = given.strip().removeprefix("./").partition(":")
        if self.kind == "code":
            if not path.endswith(".py") or not re.fullmatch(r"[A-Za-z_]\w*", name):
                self._say("the model of a code package is written as `model: extractor.py:MyModel`.")
            elif not PurePosixPath(path).stem.isidentifier():
                self._say(f"{quoted(path)} cannot be imported: give the file a name such as extractor.py.")
        elif colon:
            self._say(f"there is no file {quoted(given)} in the package.")
        if self.kind == "safetensors":
            return self._weights_folder(path)
        if path not in self.files:
            self._say(f"there is no file {quoted(path)} in the package.{did_you_mean(path, self.files)}")
        elif self.kind == "onnx" and not path.endswith(".onnx"):
            self._say(f"{quoted(path)} is no .onnx file.")
        elif self.kind == "onnx" and (beside := str(PurePosixPath(path).with_suffix(".yaml"))) in self.files:
            self._say(f"the lines of {quoted(beside)} belong into submission.yaml: move them, and leave the file out.")
        return f"{path}:{name}" if self.kind == "code" else path

    def _weights_folder(self, given: str) -> str:
        """The folder of a checkpoint, "." for the package itself; what its files say of each other is checked."""
        folder = given.rstrip("/")
        if folder.endswith(".safetensors"):
            folder = str(PurePosixPath(folder).parent)
        before = "" if folder == "." else f"{folder}/"
        inside = [name.removeprefix(before) for name in self.files if name.startswith(before)]
        if not any(name.endswith(".safetensors") and "/" not in name for name in inside):
            self._say(f"{quoted(given)} holds no .safetensors file: give the folder of config.json and the weights.")
        for name in inside:
            if "/" in name or not name.endswith(".json"):
                continue
            content = self._json(before + name)
            if name.endswith(".index.json"):
                shards = content.get("weight_map")
                named = set(map(str, shards.values())) if isinstance(shards, dict) else {"?"}
                if lacking := sorted(named - set(inside)):
                    self._say(f"{quoted(name)} names the file {quoted(lacking[0])}, which does not lie beside it.")
            if "auto_map" in content:
                self._say(f"{quoted(name)} asks for code of its own (auto_map): send a code package, or leave it out.")
        return folder

    def _json(self, name: str) -> Mapping[str, Any]:
        try:
            values = json.loads(self.texts.get(name, b""))
        except (ValueError, RecursionError):
            self._say(f"{quoted(name)} is not readable JSON, or too long.")
            return {}
        return values if isinstance(values, dict) else {}

    def _architecture(self) -> str:
        given = str(self.values.get("architecture") or "")
        if not self._only_for("architecture", "safetensors"):
            if self.kind == "safetensors":
                self._say(f"name the architecture of the weights: one of {', '.join(ARCHITECTURES)}.")
            return ""
        if given in CARDS and CARDS[given].learns_here:
            self._say(f"{given} learns from the sounds it is measured with: the host alone may measure such models.")
        elif given not in ARCHITECTURES:
            hint = did_you_mean(given, ARCHITECTURES)
            self._say(f"Earmark knows no architecture {quoted(given)}.{hint} Known: {', '.join(ARCHITECTURES)}.")
        return given

    def _options(self) -> dict[str, Any]:
        given = self.values.get("options")
        if not self._only_for("options", "safetensors", "code"):
            return {}
        if not isinstance(given, dict):
            self._say("options are `name: value` pairs such as {layer: 9}.")
            return {}
        for name, value in given.items():
            if not isinstance(name, str) or not name.isidentifier() or not isinstance(value, str | int | float | bool):
                self._say(f"the option {quoted(str(name))} is not a plain name with a text, a number, true or false.")
            elif name in _HOSTS and self.kind == "safetensors":
                self._say(f"the option {name} is the host's to decide: leave it out.")
            elif isinstance(value, str) and ("/" in value or "\\" in value):
                self._say(f"the option {name} names a path: a model reads its own files only.")
        return dict(given)

    def _rate(self) -> int | None:
        rate = self.values.get("rate")
        if rate is None or not self._only_for("rate", "onnx", "code"):
            return None
        if type(rate) is not int or rate not in RATES:
            self._say(
                f"rate is a whole number of hertz from {RATES.start} to {RATES.stop - 1}, not {quoted(str(rate))}."
            )
        return rate if type(rate) is int else None

    def _setup(self) -> dict[str, Any]:
        given = {key: self.values[key] for key in SETUP if key != "rate" and self._only_for(key, "onnx")}
        if self.kind != "onnx":
            return {}
        if type(self.values.get("rate")) is int:
            given["rate"] = self.values["rate"]
        try:
            made = setup_from(given, "submission.yaml")
            if made.rate not in RATES or (made.front_end is not None and made.front_end.rate != made.rate):
                raise UsageError(f"a rate of {made.rate} Hz cannot be had, or the front end states another.")
        except EarmarkError as error:
            self._say(str(error).removeprefix("submission.yaml: "))
        except (TypeError, ValueError) as error:
            self._say(f"the front end is not as it should be ({' '.join(str(error).split())[:150]}).")
        return given

    def _variant(self) -> dict[str, Any]:
        """Pooling and components; the pooling may carry the components, as in MTF D100."""
        own = CARDS[name].pooling if (name := str(self.values.get("architecture"))) in ARCHITECTURES else "mean_time"
        given, components = self.values.get("pooling"), self.values.get("pca")
        variant = pooling.Variant("mean_time")
        try:
            variant = pooling.parse(str(own if given is None else given))
        except EarmarkError as error:
            self._say(str(error))
        if variant.whiten:
            self._say("components are not whitened in blind evaluation: write D without W.")
        if components is None:
            components = variant.pca
        elif type(components) is not int or components < 1:
            self._say(f"pca is a whole number of components, at least 1, not {quoted(str(components))}.")
            components = None
        elif variant.pca not in (None, components):
            self._say(f"pooling asks for {variant.pca} components and pca for {components}: give one of them.")
        if components is not None and components > MOST_COMPONENTS:
            self._say(f"{components:,} components are too many; {MOST_COMPONENTS:,} are allowed.")
        return {"pooling": variant.pooling, "pca": components}

    def _chosen(self, key: str, default: str, known: Sequence[str]) -> str:
        given = self.values.get(key)
        if given is None:
            return default
        if given not in known:
            hint = did_you_mean(str(given), known)
            self._say(f"{key} is one of {', '.join(known)}, not {quoted(str(given))}.{hint}")
        return str(given)

    def _correction(self) -> str:
        try:
            found = parse_correction(str(self.values.get("correction") or "none"))
        except EarmarkError as error:
            self._say(str(error))
            return "none"
        if found.k > MOST_NEIGHBOURS or found.iterations > MOST_ITERATIONS:
            self._say(f"a correction has at most k={MOST_NEIGHBOURS} and iterations={MOST_ITERATIONS}.")
        return str(found)

    def _system(self) -> dict[str, Any]:
        try:
            card = card_from(self.values.get("system") or {}, "submission.yaml: system")
        except EarmarkError as error:
            self.problems.append(str(error))
            return {}
        name = card.name
        if len(name) > LONGEST_ENTRY or not name.isprintable() or name != plain(name):
            self._say(f"the system's name is one plain line of at most {LONGEST_ENTRY} letters: change it.")
        if card.kind != "representation":
            self._say(f"the system is a representation here, not a {card.kind}.")
        self.problems += [f"submission.yaml: {problem.message}" for problem in _release_problems(card)]
        return plain_card(card)


def _release_problems(card: SystemCard) -> list[Problem]:
    """What a board would say of a release with this card: found before anything is heard, not after."""
    row = Row(suite="board", subset="set", system=card.name, distance="cosine", metric="P@1", value=0.5, n=100)
    return check(Document("board", (card,), Scores((row,)), "blind")).problems
