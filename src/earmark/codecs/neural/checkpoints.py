"""Finding a codec's weights and giving them to a network, to the last tensor.

    speechtokenizer@4                   the published checkpoint, from the hub or its cache on this machine
    speechtokenizer:/models/st@4        a folder with config and weights
    speechtokenizer:/models/st.pt@4     a file, with the config beside it

Safetensors come first. A pickle is opened only with allow_pickle=true, and only its tensors and plain values are read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from earmark.codecs.contract import CodecCard
from earmark.codecs.neural.options import Options
from earmark.errors import InputError, UsageError, require
from earmark.extractors.pretrained import Checkpoint, read_state

__all__ = ["Layout", "config_at", "exactly", "fetched", "find", "fingerprint", "on_hub", "tensors_of"]

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TRAINING = ("inited", "cluster_size", "embed_avg", "pad_buffer", "inv_freq")
"""Buffers that only training, streaming or a formula need."""


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
    place, revision = Path(name).expanduser(), ""
    if not place.exists():
        if not on_hub(name):
            raise InputError(f"{name} does not exist: give {card.family} an existing folder, file or name on the hub.")
        place = _from_hub(card, name, layout, options, spec)
        revision = options.revision or place.name
    weights = place
    if place.is_dir():
        weights = _weights_in(place, layout) or place
        if weights is place:
            wanted = card.how_to_get or f"{layout.config[0]} and model.safetensors of {card.checkpoint}"
            raise InputError(f"{place} holds no weights of {card.family}: it needs {wanted}.")
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
        named = [path for name in layout.weights for path in files if path.name == name]
        found = safe or named or [path for path in files if path.suffix in PICKLES]
        if found:
            return found[0]
    return None


def fetched(card: CodecCard, name: str, patterns: Sequence[str], options: Options, spec: str) -> Path:
    """The folder of the hub's cache that holds the files that match, downloaded if that may be."""
    hub = require("huggingface_hub", "Models from the hub", "models")
    try:
        place = hub.snapshot_download(
            name, revision=options.revision, allow_patterns=list(patterns), local_files_only=options.local_files_only
        )
    except Exception as error:  # the hub's many errors all mean that the files cannot be had
        why = "only local files may be used" if options.local_files_only else type(error).__name__
        raise InputError(
            f"The weights {name} of {card.family} are not on this machine and cannot be fetched ({why}): "
            f"give {card.how_to_get or f'config.json and model.safetensors of {name}'} as {spec}."
        ) from error
    return Path(place)


def _from_hub(card: CodecCard, name: str, layout: Layout, options: Options, spec: str) -> Path:
    wanted = [*layout.config, "*.safetensors", "*.safetensors.index.json"]
    wanted += layout.weights if options.allow_pickle else ()
    folder = fetched(card, name, [str(PurePosixPath(layout.folder) / one) for one in wanted], options, spec)
    if _weights_in(folder, layout) is None and not options.allow_pickle:
        raise UsageError(f"{name} has no safetensors: if you trust its pickle say {card.name}?allow_pickle=true.")
    return folder


def on_hub(name: str) -> bool:
    """Whether a checkpoint that is no file here is spelled like a name on the hub."""
    return not name.startswith(("/", ".", "~")) and name.count("/") == 1 and Path(name).suffix not in PICKLES


def config_at(checkpoint: Checkpoint, layout: Layout) -> dict[str, Any]:
    """The config beside the weights, JSON or YAML."""
    for name in layout.config:
        path = checkpoint.folder / name
        if path.is_file():
            break
    else:
        raise InputError(
            f"{checkpoint.folder} has no {' or '.join(layout.config)}: download it beside the weights of "
            f"{checkpoint.name}."
        )
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{path} is not readable ({str(error).splitlines()[0]}): download it again.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a config, which has names and values: download it again.")
    return found


def fingerprint(checkpoint: Checkpoint) -> str:
    """What tells these weights from others of the same name: the hub's revision, or a digest of the file."""
    if checkpoint.revision:
        return checkpoint.revision
    digest = hashlib.blake2b(digest_size=8)
    with checkpoint.place.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


# --- tensors -------------------------------------------------------------------------------------------------


def tensors_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Tensors by dotted names, with weight normalisation multiplied out."""
    return _folded(dict(_flat(read_state(checkpoint))))


def _flat(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in state.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif hasattr(value, "shape"):
            yield f"{prefix}{name}", value


def _folded(state: Mapping[str, Any]) -> dict[str, Any]:
    """weight = g v / |v|, the length taken over every axis but the first."""
    found = dict(state)
    for long, direction in (
        ("weight_g", "weight_v"),
        ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    ):
        for name in [name for name in found if name.endswith(f".{long}") or name == long]:
            other = name.removesuffix(long) + direction
            if other in found:
                length, vector = found.pop(name), found.pop(other)
                norm = vector.flatten(1).norm(dim=1).reshape(length.shape)
                found[name.removesuffix(long) + "weight"] = vector * (length / norm)
    return found


def exactly(network: Any, state: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """A network with all tensors that it wants, of the shapes that it wants; others in its own parts are an error.

    Parts that it has not (discriminators, losses) and what only training needs are left out.
    """
    wanted = network.state_dict()
    place, family = checkpoint.place, checkpoint.family
    lacking = [name for name in wanted if name not in state]
    if lacking:
        raise InputError(
            f"{place} has no tensor {lacking[0]} (one of {len(lacking)} that {family} needs and it lacks): check that "
            f"the weights and their config belong together."
        )
    for name, value in wanted.items():
        if state[name].shape != value.shape:
            raise InputError(
                f"{place} has the tensor {name} of shape {list(state[name].shape)}, and its config asks for "
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
            f"{place} has the tensor {beyond[0]} (one of {len(beyond)}), which its config does not ask for: check that "
            f"they belong together."
        )
    network.load_state_dict({name: state[name].float() for name in wanted}, assign=True)
    return network.eval().requires_grad_(False)
