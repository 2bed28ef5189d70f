"""A codec's weights: where they are, what their config says, and how they get into a network, to the last tensor.

    speechtokenizer@4                   the published checkpoint, from the hub or its cache on this machine
    speechtokenizer:/models/st@4        a folder with config and weights
    speechtokenizer:/models/st.pt@4     a file, with the config beside it

Safetensors come first. A pickle is opened only with allow_pickle=true, and only its tensors and plain values are read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, TypeVar, get_type_hints

import yaml

from earmark.codecs.contract import CodecCard
from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.extractors.pretrained import Checkpoint, read_state

PICKLES = (".bin", ".pt", ".pth", ".th", ".ckpt", ".pkl")
TRAINING = ("inited", "cluster_size", "embed_avg", "pad_buffer", "inv_freq")
"""Buffers that only training, streaming or a formula need."""

_UNINFORMATIVE = ("checkpoint", "model", "pytorch_model", "weights")
_LONGEST_NAME = 40

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What may stand behind the question mark of every neural codec: `encodec@6?device=cpu&allow_pickle=true`."""

    codebooks: int | None = None  # fewer than the checkpoint has; None: as many as the card says
    device: str = "auto"  # cuda where there is one, else cpu
    local_files_only: bool = False
    allow_pickle: bool = False
    revision: str | None = None

    @classmethod
    def of(cls, family: str, given: Mapping[str, Any]) -> Options:
        """The options, or one sentence that names what is unknown."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise UsageError(
                    f"{family} takes no option {name}: choose from {', '.join(known)}.{did_you_mean(name, known)}"
                )
        options = cls(**given)
        count = options.codebooks
        if count is not None and (isinstance(count, bool) or not str(count).isdigit()):
            raise UsageError(f"{family} cannot use {count} codebooks: give a whole number.")
        return options


# --- files ---------------------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How a family's files are called, and the folder of its repository that they lie in."""

    config: tuple[str, ...] = ("config.json",)
    weights: tuple[str, ...] = ("pytorch_model.bin",)
    folder: str = ""


def find(card: CodecCard, checkpoint: str, layout: Layout, options: Options) -> Checkpoint:
    """The file of weights, or one sentence that says what to download and how to give it."""
    name = checkpoint or card.checkpoint
    setting = card.name.partition("?")[0].rpartition("@")[2]
    spec = f"{card.family}:FOLDER@{setting}"
    if not name:
        raise InputError(f"{card.name} cannot be had by name: give {card.how_to_get} as {spec}.")
    path, revision = Path(name).expanduser(), ""
    if not path.exists():
        if not on_hub(name):
            raise InputError(f"{name} does not exist: give {card.family} an existing folder, file or name on the hub.")
        path = _from_hub(card, name, layout, options, spec)
        revision = options.revision or path.name
    weights = _weights_in(path, layout) if path.is_dir() else path
    if weights is None:
        wanted = card.how_to_get or f"{layout.config[0]} and model.safetensors of {card.checkpoint}"
        raise InputError(f"{path} holds no weights of {card.family}: it needs {wanted}.")
    if ".safetensors" not in weights.name and not options.allow_pickle:
        raise UsageError(
            f"{weights} is a pickle, not safetensors: convert it, or if you trust it say "
            f"{card.family}:{name}@{setting}?allow_pickle=true."
        )
    return Checkpoint(name, card.family, weights, revision, options.allow_pickle)


def _weights_in(folder: Path, layout: Layout) -> Path | None:
    for inner in (folder / layout.folder, folder):
        if not inner.is_dir():
            continue
        files = sorted(path for path in inner.iterdir() if path.is_file())
        safe = [path for path in files if path.name.endswith((".safetensors", ".safetensors.index.json"))]
        usual = [path for name in layout.weights for path in files if path.name == name]
        weights = safe or usual or [path for path in files if path.suffix in PICKLES]
        if weights:
            return weights[0]
    return None


def fetch(card: CodecCard, name: str, patterns: Sequence[str], options: Options, spec: str) -> Path:
    """The folder of the hub's cache that holds the files that match, downloaded if that may be."""
    hub = require("huggingface_hub", "Models from the hub", "models")
    try:
        folder = hub.snapshot_download(
            name, revision=options.revision, allow_patterns=list(patterns), local_files_only=options.local_files_only
        )
    except Exception as error:  # the hub's many errors all mean that the files cannot be had
        why = "only local files may be used" if options.local_files_only else type(error).__name__
        raise InputError(
            f"The weights {name} of {card.family} are not on this machine and cannot be fetched ({why}): "
            f"give {card.how_to_get or f'config.json and model.safetensors of {name}'} as {spec}."
        ) from error
    return Path(folder)


def _from_hub(card: CodecCard, name: str, layout: Layout, options: Options, spec: str) -> Path:
    wanted = [*layout.config, "*.safetensors", "*.safetensors.index.json"]
    wanted += layout.weights if options.allow_pickle else ()
    folder = fetch(card, name, [str(PurePosixPath(layout.folder) / file) for file in wanted], options, spec)
    if _weights_in(folder, layout) is None and not options.allow_pickle:
        raise UsageError(f"{name} has no safetensors: if you trust its pickle say {card.name}?allow_pickle=true.")
    return folder


def on_hub(name: str) -> bool:
    """Whether a checkpoint that is no file here is spelled like a name on the hub."""
    return not name.startswith(("/", ".", "~")) and name.count("/") == 1 and Path(name).suffix not in PICKLES


def fingerprint(checkpoint: Checkpoint) -> str:
    """What tells these weights from others of the same name: the hub's revision, or a digest of the file."""
    if checkpoint.revision:
        return checkpoint.revision
    with checkpoint.place.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def weights_name(checkpoint: str) -> str:
    """Short for a checkpoint: the last part of its path, or of the folder where the file says nothing."""
    path = PurePath(checkpoint)
    if path.suffix in (*PICKLES, ".safetensors"):
        path = path.parent if path.stem in _UNINFORMATIVE else path.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.name)[:_LONGEST_NAME]


def published_name(checkpoint: str) -> str:
    """What a card says of a checkpoint: a name on the hub as it is, of a path on this machine the last part alone."""
    hub = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", checkpoint) and not Path(checkpoint).exists()
    return checkpoint if hub else weights_name(checkpoint)


# --- configs -------------------------------------------------------------------------------------------------


def read_config(checkpoint: Checkpoint, layout: Layout) -> Config:
    """The config beside the weights, JSON or YAML."""
    path = next((path for name in layout.config if (path := checkpoint.folder / name).is_file()), None)
    if path is None:
        raise InputError(
            f"{checkpoint.folder} has no {' or '.join(layout.config)}: download it beside the weights of "
            f"{checkpoint.name}."
        )
    try:
        text = path.read_text("utf-8")
        values = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{path} is not readable ({str(error).splitlines()[0]}): download it again.") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} is not a config, which has names and values: download it again.")
    return Config(values, checkpoint)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_whole, value))


_KINDS: dict[Any, tuple[Any, Any, str]] = {
    int: (lambda value: _whole(value) and value >= -1, int, "a whole number"),
    bool: (lambda value: isinstance(value, bool), bool, "true or false"),
    str: (lambda value: True, str, "a word"),
    tuple[int, ...]: (_whole_list, tuple, "a list of whole numbers"),
    tuple[tuple[int, ...], ...]: (
        lambda value: isinstance(value, list | tuple) and all(map(_whole_list, value)),
        lambda value: tuple(map(tuple, value)),
        "a list of lists of whole numbers",
    ),
}
"""For each kind of value: whether one is of it, how it is kept, and what it is called."""


class Config:
    """Values of a config; one that is missing, of the wrong kind or never read is told in one sentence."""

    def __init__(self, values: Mapping[str, Any], checkpoint: Checkpoint) -> None:
        self.values, self.checkpoint = values, checkpoint
        self._read: set[str] = set()

    def get(self, name: str, kind: type[T], default: T | None = None, known: Sequence[T] = ()) -> T:
        """The value of a name: of the kind, and one of those that are known if any are."""
        self._read.add(name)
        value = self.values.get(name)
        value = default if value is None else value
        if value is None:
            raise InputError(
                f"The config of {self.checkpoint.name} lacks {name}: check that it is one of {self.checkpoint.family}."
            )
        fits, convert, title = _KINDS[kind]
        value = str(value) if kind is str else value
        kept: T | None = convert(value) if fits(value) else None
        if kept is None or (known and kept not in known):
            wanted = " or ".join(map(str, known)) if known else title
            raise InputError(
                f"The config of {self.checkpoint.name} says {name}: {value!r}, and {self.checkpoint.family} wants "
                f"{wanted}."
            )
        return kept

    def fill(self, shape: type[T], names: Sequence[str] = (), **given: Any) -> T:
        """A dataclass whose fields are read from the config under their own names, but those that are given.

        Where `names` are given only those are read, and each must be there; else a field's default is the config's.
        """
        kinds = get_type_hints(shape)
        for field in fields(shape):  # type: ignore[arg-type]
            if field.name in given or (names and field.name not in names):
                continue
            default = None if names or field.default is MISSING else field.default
            given[field.name] = self.get(field.name, kinds[field.name], default)
        return shape(**given)

    def part(self, name: str) -> Config:
        """A section of the config; an empty one where it has none."""
        self._read.add(name)
        values = self.values.get(name)
        if values is not None and not isinstance(values, Mapping):
            raise InputError(
                f"The config of {self.checkpoint.name} says {name}: {values!r}, and {self.checkpoint.family} wants a "
                "section."
            )
        return Config(values or {}, self.checkpoint)

    def refuse_others(self, *passed_over: str) -> None:
        """Refuse names that were not read: they would change the network in a way that is not here."""
        left = sorted(set(self.values) - self._read - set(passed_over))
        if left:
            raise InputError(
                f"The config of {self.checkpoint.name} asks for {left[0]}, which {self.checkpoint.family} does not "
                f"know here: take a published checkpoint."
            )


# --- tensors -------------------------------------------------------------------------------------------------


def read_tensors(checkpoint: Checkpoint) -> dict[str, Any]:
    """Tensors by dotted names, with weight normalisation multiplied out."""
    return _fold(dict(_flat(read_state(checkpoint))))


def _flat(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in state.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif hasattr(value, "shape"):
            yield f"{prefix}{name}", value


def _fold(state: Mapping[str, Any]) -> dict[str, Any]:
    """weight = g v / |v|, the length taken over every axis but the first."""
    tensors = dict(state)
    for long, direction in (
        ("weight_g", "weight_v"),
        ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    ):
        for name in [name for name in tensors if name.endswith(f".{long}") or name == long]:
            other = name.removesuffix(long) + direction
            if other in tensors:
                length, vector = tensors.pop(name), tensors.pop(other)
                norm = vector.flatten(1).norm(dim=1).reshape(length.shape)
                tensors[name.removesuffix(long) + "weight"] = vector * (length / norm)
    return tensors


def fill_exactly(network: Any, state: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """A network with all tensors that it wants, of the shapes that it wants; others in its own parts are an error.

    Parts that it has not (discriminators, losses) and what only training needs are left out.
    """
    wanted = network.state_dict()
    path, family = checkpoint.place, checkpoint.family
    lacking = [name for name in wanted if name not in state]
    if lacking:
        raise InputError(
            f"{path} has no tensor {lacking[0]} (one of {len(lacking)} that {family} needs and it lacks): check that "
            f"the weights and their config belong together."
        )
    for name, value in wanted.items():
        if state[name].shape != value.shape:
            raise InputError(
                f"{path} has the tensor {name} of shape {list(state[name].shape)}, and its config asks for "
                f"{list(value.shape)}: check that they belong together."
            )
    parts = {name.partition(".")[0] for name in wanted}
    beyond = [
        name
        for name in state
        if name not in wanted and name.partition(".")[0] in parts and name.rpartition(".")[2] not in TRAINING
    ]
    if beyond:
        raise InputError(
            f"{path} has the tensor {beyond[0]} (one of {len(beyond)}), which its config does not ask for: check that "
            f"they belong together."
        )
    network.load_state_dict({name: state[name].float() for name in wanted}, assign=True)
    return network.eval().requires_grad_(False)
