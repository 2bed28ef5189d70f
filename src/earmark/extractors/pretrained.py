"""Checkpoints: found in a local folder or file, or on the hub, and read without running code that came with them.

    whisper                         the family's own checkpoint, from the hub or its cache on this machine
    whisper:openai/whisper-tiny     another one
    whisper:/models/whisper         a folder with config.json and model.safetensors
    beats:/models/BEATs.pt          a file

Safetensors are preferred. A pickle is opened only with `allow_pickle=True`, and even then only its tensors and plain
values are read: one that holds other Python objects is refused. Whatever is missing is told in one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard

CONFIGS = ("config.json", "preprocessor_config.json")
SAFE = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model.bin", "pytorch_model-*-of-*.bin", "pytorch_model.bin.index.json")
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """Files of one model on this machine."""

    name: str  # as it was asked for
    family: str  # the extractor's registered name, for messages
    place: Path  # a folder, or a file of weights
    revision: str = ""  # of the hub's repository; empty for local files
    allow_pickle: bool = False

    def json(self, file: str) -> dict[str, Any]:
        """One of the configs that lie beside the weights; empty where there is none."""
        path = self.folder / file
        if not path.is_file():
            return {}
        try:
            values = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not readable JSON ({error}): download it again.") from error
        return values if isinstance(values, dict) else {}

    @property
    def folder(self) -> Path:
        return self.place if self.place.is_dir() else self.place.parent

    @property
    def weights(self) -> Path:
        """The file of weights, safetensors first."""
        if self.place.is_file():
            return self.place
        return _weights_in(self.place) or self.place


def find(
    name: str,
    card: ExtractorCard,
    *,
    local_files_only: bool = False,
    allow_pickle: bool = False,
    revision: str | None = None,
    pickled: Sequence[str] = PICKLED,
    where: str = "",
) -> Checkpoint:
    """The files of a checkpoint, or one sentence that says what to download and where to put it.

    `pickled` are the files of weights to ask the hub for where it has no safetensors; `where` says where they are
    published when the hub does not have them.
    """
    if not name:
        raise InputError(
            f"{card.name} has no weights of its own: {where or 'download a checkpoint'} and give it as "
            f"{card.name}:/path/to/file."
        )
    local = Path(name).expanduser()
    if not local.exists():
        if name.startswith(("/", ".", "~")) or name.count("/") != 1 or local.suffix in PICKLE_SUFFIXES:
            raise InputError(f"{name} does not exist: give {card.name} an existing folder, file or name on the hub.")
        local = _from_hub(name, card.name, local_files_only, allow_pickle, revision, pickled)
        revision = revision or local.name
    checkpoint = Checkpoint(name, card.name, local, revision or "", allow_pickle)
    if local.is_dir() and _weights_in(local) is None:
        raise InputError(
            f"{local} holds no weights: put config.json and model.safetensors of {card.checkpoint or card.name} there, "
            f"and give it as {card.name}:{local}."
        )
    if checkpoint.weights.suffix in PICKLE_SUFFIXES and not allow_pickle:
        raise UsageError(
            f"{checkpoint.weights} is a pickle, not safetensors: convert it, or if you trust it say "
            f"{card.name}:{name}?allow_pickle=true."
        )
    return checkpoint


def _weights_in(folder: Path) -> Path | None:
    for suffix in (".safetensors", ".safetensors.index.json", *PICKLE_SUFFIXES, ".bin.index.json"):
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(suffix))
        named = [path for path in files if path.name.startswith(("model.", "pytorch_model."))]
        if files:
            return (named or files)[0]
    return None


def _from_hub(
    name: str, family: str, local_only: bool, allow_pickle: bool, revision: str | None, pickled: Sequence[str]
) -> Path:
    """The folder of the hub's cache that holds a checkpoint, downloaded if it may be."""
    hub = require("huggingface_hub", "Models from the hub", "models")
    try:
        for weights in (SAFE, pickled):
            wanted = [*CONFIGS, *weights]
            folder = hub.snapshot_download(name, revision=revision, allow_patterns=wanted, local_files_only=local_only)
            if weights is pickled or _weights_in(Path(folder)) is not None:
                break
            if not allow_pickle:
                raise UsageError(
                    f"{name} has no safetensors on this machine or the hub: if you trust its pickled weights say "
                    f"{family}:{name}?allow_pickle=true."
                )
    except UsageError:
        raise
    except Exception as error:  # the hub's many errors all mean that the files cannot be had
        why = "only local files may be used" if local_only else type(error).__name__
        files = f"{', '.join(CONFIGS)} and {SAFE[0]} of {name} into a folder and give it as {family}:/path/to/folder"
        if tuple(pickled) != PICKLED:
            files = f"{pickled[0]} of {name} and give it as {family}:/path/to/{pickled[0]}?allow_pickle=true"
        raise InputError(
            f"The weights {name} of {family} are not on this machine and cannot be fetched ({why}): download {files}."
        ) from error
    return Path(folder)


def versioned(card: ExtractorCard, checkpoint: Checkpoint, *packages: str, **changes: Any) -> ExtractorCard:
    """The card of an opened model: its version names the packages and the revision that its numbers depend on."""
    from importlib import metadata

    parts = [card.version, *(f"{package} {metadata.version(package)}" for package in packages)]
    if checkpoint.revision:
        parts.append(checkpoint.revision)
    return replace(card, version="; ".join(parts), checkpoint=checkpoint.name, **changes)


def config_of(kind: Any, checkpoint: Checkpoint, part: str = "") -> Any:
    """The config of a checkpoint as a class of transformers; `part` names a section of it, where it has one."""
    config = checkpoint.json("config.json")
    if not config:
        raise InputError(
            f"{checkpoint.folder} has no config.json: download it beside the weights of {checkpoint.name}."
        )
    return kind.from_dict(config.get(part, config))


# --- reading weights -----------------------------------------------------------------------------------------


def load_model(kind: Any, checkpoint: Checkpoint, **options: Any) -> Any:
    """A model of a class of transformers with the weights of a checkpoint; one that lacks any of them is refused."""
    with library_quiet():
        try:
            model, report = kind.from_pretrained(
                checkpoint.folder,
                local_files_only=True,
                use_safetensors=None if checkpoint.allow_pickle else True,
                output_loading_info=True,
                **options,
            )
        except Exception as error:
            raise InputError(
                f"{checkpoint.name} cannot be opened as {checkpoint.family} ({_first_line(error)}): "
                f"check that it is a checkpoint of {kind.__name__}."
            ) from error
    lacking = sorted(report["missing_keys"]) + sorted(map(str, report.get("mismatched_keys", ())))
    if lacking:
        raise _incomplete(checkpoint, lacking)
    return model.eval().requires_grad_(False)


def read_state(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a file of weights holds, tensors by name; a pickle may hold plain values beside them."""
    path = checkpoint.weights
    if path.suffix == ".safetensors":
        safetensors = require("safetensors.torch", "These models", "models")
        try:
            return dict(safetensors.load_file(path))
        except Exception as error:
            raise InputError(f"{path} is not a readable safetensors file ({_first_line(error)}).") from error
    torch = require("torch", "These models", "torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InputError(
            f"{path} cannot be read as tensors and plain values ({_first_line(error)}): it may hold Python objects, "
            f"which are not run; save its tensors as safetensors."
        ) from error
    if not isinstance(state, dict):
        raise InputError(f"{path} holds {type(state).__name__}, not weights by name.")
    return state


def stripped(state: Mapping[str, Any], *prefixes: str) -> dict[str, Any]:
    """Tensors under the first of the prefixes that any name has, without it; all of them when none has."""
    for prefix in prefixes:
        if any(name.startswith(prefix) for name in state):
            return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    return dict(state)


def fill(network: Any, state: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """Give a network of ours the tensors it wants; what else a checkpoint holds (heads, decoders) is left out."""
    wanted = network.state_dict()
    lacking = [name for name in wanted if name not in state]
    wrong = [name for name in wanted if name in state and state[name].shape != wanted[name].shape]
    if lacking or wrong:
        raise _incomplete(checkpoint, lacking + wrong)
    network.load_state_dict({name: state[name] for name in wanted}, assign=True)
    return network.eval().requires_grad_(False)


def _incomplete(checkpoint: Checkpoint, names: Sequence[str]) -> InputError:
    return InputError(
        f"{checkpoint.weights} lacks {len(names)} of the tensors that {checkpoint.family} needs (first: {names[0]}): "
        f"check that it is a checkpoint of this family."
    )


@contextmanager
def library_quiet() -> Iterator[None]:
    """Without the library's report on heads and decoders that are left out: missing tensors are told by us."""
    logging = require("transformers", "These models", "models").utils.logging
    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity(50)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return next((line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), type(error).__name__)
