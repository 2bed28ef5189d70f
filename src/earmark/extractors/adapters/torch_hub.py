"""An entry of torch.hub as an extractor: `torchhub:OWNER/REPO:ENTRY`, `torchhub:/folder/with/hubconf:ENTRY`.

    torchhub:OWNER/REPO:ENTRY        from torch.hub's cache, or from GitHub into it
    torchhub:OWNER/REPO:REF:ENTRY    at a branch, a tag or a commit
    torchhub:./folder:ENTRY          a folder that holds hubconf.py

The code of the repository runs, as it does in torch.hub. One that torch.hub does not trust yet is refused until
`trust=true` says so, which puts it on torch.hub's list of trusted ones; nothing is asked on the terminal. A folder is
code that you name yourself, like an import path.

What is called is `method`; without it `extract_features` where the model has it, else the model itself. Which tensor of
the answer is meant `answers` tells. Which of its axes is time is found by letting the model hear one second and two:
the axis that grows is time. Where none grows and two are longer than 1, `output_layout` has to say it. Clips are given
one by one, float32, as [1, samples] unless `layout` says otherwise.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

import numpy as np

from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean, require, strangers_code
from earmark.extractors.adapters.answers import chosen_output
from earmark.extractors.adapters.given_models import Floats, GivenModel, Setup, Shape, setup_from
from earmark.extractors.torch_models import device_of, exact
from earmark.extractors.windows import trial_noise
from earmark.wording import error_text

METHOD = "extract_features"
BRANCHES = ("main", "master")
RATE_NAMES = ("sample_rate", "sampling_rate", "rate", "sr")


class Source(NamedTuple):
    """Where an entry is: a folder, or a repository and what of it."""

    repository: str  # OWNER/REPO; empty for a folder
    reference: str  # a branch, a tag or a commit; empty: the main branch
    folder: Path | None
    entry: str


class TorchHubModel(GivenModel):
    """What an entry of torch.hub makes of each clip.

    Args:
        spec: OWNER/REPO[:REF]:ENTRY, or FOLDER:ENTRY.
        method: what is called with the samples.
        trust: run the code of a repository that torch.hub does not know yet.
        entry: keywords of the entry whose names are among those below.
        device: where the model runs.
        given: fields of `Setup` (rate, seconds, hop, shortest, front_end, layout, output, output_layout, card); every
            other keyword is the entry's.
    """

    title = "torch.hub entry"

    def __init__(
        self, spec: str, *, method: str = "", trust: bool = False, entry: Mapping[str, Any] | None = None,
        device: str = "cpu", **given: Any,
    ) -> None:  # fmt: skip
        self.source = parse_source(spec)
        self.method, self._trust, self._device = method, trust, device
        known = {field.name for field in fields(Setup)}
        self._entry = {**{key: value for key, value in given.items() if key not in known}, **(entry or {})}
        asked = {key: value for key, value in given.items() if key in known}
        self._states_rate = "rate" in asked
        asked["output"] = str(asked.get("output", ""))
        super().__init__(self.source.entry, setup_from(asked, "torchhub"))

    def begin(self) -> tuple[tuple[str, ...], Shape]:
        torch = self._torch = require("torch", "Entries of torch.hub", "torch")
        device = device_of(torch, self._device)
        self.folder = _folder_of(torch, self.source, self._trust)
        _refuse_namesakes(self.folder)
        self.files = [str(file) for file in sorted(self.folder.rglob("*.py")) if not _is_hidden(file, self.folder)]
        self.model = _network_of(torch, self._made(torch), self.name)
        if isinstance(self.model, torch.nn.Module):
            self.model = self.model.to(device).eval()
        self._device = device
        self._call = self._callable()
        if not self._states_rate:
            self.setup = replace(self.setup, rate=_stated_rate(self.model, self.name))
        return self.setup.layout or ("batch", "time"), ()

    def _made(self, torch: Any) -> Any:
        """What the entry returns."""
        try:
            return torch.hub.load(str(self.folder), self.name, source="local", **self._entry)
        except EarmarkError:
            raise
        except TypeError as error:
            raise UsageError(
                f"The entry {self.name} cannot be called with {self._entry}: {error_text(error)}."
            ) from error
        except URLError as error:
            raise InputError(
                f"The entry {self.name} fetches weights and there is no connection ({error_text(error)}): put them "
                f"where torch.hub keeps its own, in {Path(torch.hub.get_dir()) / 'checkpoints'}."
            ) from error
        except Exception as error:
            entries = _entries(self.folder)
            if entries and self.name not in entries:
                raise UsageError(
                    f"{self.folder} has no entry {self.name!r}.{did_you_mean(self.name, entries)} Its own: "
                    f"{', '.join(entries)}."
                ) from error
            raise InputError(
                f"The entry {self.name} of {self.folder} fails: {type(error).__name__}: {error_text(error)}."
            ) from error

    def _callable(self) -> Any:
        name = self.method or (METHOD if callable(getattr(self.model, METHOD, None)) else "")
        call = getattr(self.model, name, None) if name else self.model
        if callable(call):
            return call
        if not name:
            kind = type(self.model).__name__
            raise UsageError(f"The entry {self.name} returns {kind}, which cannot be called: give a method.")
        methods = [each for each in dir(self.model) if not each.startswith("_")]
        raise UsageError(f"The model of {self.name} has no method {name!r}.{did_you_mean(name, methods)}")

    def call(self, given: Floats) -> Any:
        torch = self._torch
        with torch.inference_mode(), exact(torch):
            answer = self._call(torch.from_numpy(given).to(self._device))
        chosen = chosen_output(answer, self.setup.output, self.name)
        return chosen.detach().cpu().float().numpy() if hasattr(chosen, "detach") else np.asarray(chosen, np.float32)

    def settle(self) -> None:
        """Which axis of the answer is which, where nobody says it."""
        if self.setup.output_layout:
            return
        length = self.size or self.setup.rate
        shapes = [np.shape(self._heard(length))]
        try:
            shapes.append(np.shape(self._heard(2 * length)))
        except InputError:
            if self.size is None:
                raise
            if sum(size > 1 for size in shapes[0]) > 1:
                raise UsageError(
                    f"{self.name} hears one length only and answers with {list(shapes[0])}: say which axis is which, "
                    "as in output_layout=[batch,time,feature]."
                ) from None
        axes = axes_of(shapes[0], shapes[-1], self.name)
        self.setup = replace(self.setup, output_layout=axes)
        if "time" in axes and self.size is None:
            grown = shapes[1][axes.index("time")] - shapes[0][axes.index("time")]
            self.frame_rate = float(grown) or None

    def _heard(self, samples: int) -> Any:
        remedy = (
            "give seconds where it hears one length only, layout where it takes other axes than [batch, time], or "
            "method where something else is meant"
        )
        with strangers_code(f"{self.name} fails on {samples / self.setup.rate:g} s of sound", remedy):
            return self.call(self.given(trial_noise(samples)))


def parse_source(spec: str) -> Source:
    """A spelling taken apart; what names a folder on this machine is one."""
    where, colon, entry = spec.rpartition(":")
    if not colon or not where or not entry.isidentifier():
        raise UsageError(
            f"torchhub:{spec} names no entry: write torchhub:OWNER/REPO:ENTRY, or torchhub:FOLDER:ENTRY for a folder "
            "with hubconf.py."
        )
    folder = Path(where).expanduser()
    if folder.is_dir():
        return Source("", "", folder.resolve(), entry)
    repository, _, reference = where.partition(":")
    owner, slash, name = repository.partition("/")
    if where.startswith(("/", ".", "~")) or not (owner and slash and name) or "/" in name or "\\" in where:
        raise InputError(f"The folder {where} does not exist: give one that holds hubconf.py, or OWNER/REPO on GitHub.")
    return Source(repository, reference, None, entry)


def _folder_of(torch: Any, source: Source, trust: bool) -> Path:
    """The folder of the code; a repository is fetched where it may be and is not in torch.hub's cache."""
    folder = source.folder or _fetched(torch, source, trust)
    if not (folder / "hubconf.py").is_file():
        raise InputError(f"{folder} holds no hubconf.py: torch.hub finds its entries there.")
    return folder


def _fetched(torch: Any, source: Source, trust: bool) -> Path:
    hub, home = torch.hub, Path(torch.hub.get_dir())
    flat = source.repository.replace("/", "_")
    spelled = ":".join(filter(None, [source.repository, source.reference]))
    for reference in [source.reference] if source.reference else BRANCHES:
        folder = home / f"{flat}_{reference.replace('/', '_')}"
        if folder.is_dir():  # torch.hub trusts what it has fetched before
            return folder
    owner = source.repository.partition("/")[0]
    listed = home / "trusted_list"
    names = listed.read_text("utf-8").split() if listed.is_file() else []
    if not trust and flat not in names and owner not in getattr(hub, "_TRUSTED_REPO_OWNERS", ()):
        raise UsageError(
            f"{source.repository} is not among the repositories that torch.hub trusts here, and its code would run: if "
            f"you trust it, add the parameter trust=true, as in torchhub:{spelled}:{source.entry}?trust=true."
        )
    before = _folders(home)
    try:
        hub.list(spelled, trust_repo=True, verbose=False)
    except Exception as error:
        fetched = sorted(_folders(home) - before)
        if not fetched:
            raise InputError(
                f"{spelled} is not in torch.hub's cache ({home}) and cannot be fetched ({error_text(error)}): clone "
                "it where there is a connection, copy it to this machine, and give its folder, as in "
                f"torchhub:/path/to/folder:{source.entry}."
            ) from error
    fetched = sorted(each for each in _folders(home) - before if each.name.startswith(f"{flat}_"))
    if not fetched:
        raise InputError(f"torch.hub fetched {spelled} and it is not in {home}: name a branch or a tag behind a colon.")
    return fetched[0]


def _folders(home: Path) -> set[Path]:
    return {path for path in home.iterdir() if path.is_dir()} if home.is_dir() else set()


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _refuse_namesakes(folder: Path) -> None:
    """Python has one module of a name: an entry must not be made of the modules of another repository."""
    tree = _hubconf(folder)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    for name in sorted({name.partition(".")[0] for name in names}):
        own = [folder / f"{name}.py", folder / name]
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and any(path.exists() for path in own) and folder not in Path(file).resolve().parents:
            raise UsageError(
                f"{folder} has a module {name}, and {file} is loaded under that name already: run this model in a "
                "process of its own."
            )


def _entries(folder: Path) -> list[str]:
    """What hubconf.py defines or imports by name; nothing runs."""
    tree = _hubconf(folder)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names += [alias.asname or alias.name for node in froms for alias in node.names]
    return [name for name in names if not name.startswith("_")]


def _hubconf(folder: Path) -> ast.Module:
    try:
        return ast.parse((folder / "hubconf.py").read_bytes())
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{folder / 'hubconf.py'} is no Python that can be read: {error_text(error)}.") from error


def _network_of(torch: Any, made: Any, name: str) -> Any:
    """What an entry returned, or the one network in a tuple of a network and its tools."""
    if not isinstance(made, tuple | list):
        return made
    networks = [part for part in made if isinstance(part, torch.nn.Module)]
    if len(networks) != 1:
        raise UsageError(
            f"The entry {name} returns {len(made)} things, of which {len(networks)} are networks: one is needed; "
            "wrap it in a class with `extract`."
        )
    return networks[0]


def _stated_rate(model: Any, name: str) -> int:
    for holder in (model, getattr(model, "config", None), getattr(model, "cfg", None)):
        for spelling in RATE_NAMES:
            rate = getattr(holder, spelling, None)
            if isinstance(rate, int | float) and not isinstance(rate, bool) and rate >= 1:
                return int(rate)
    raise UsageError(f"{name} does not say which rate it wants: give it, as in ?rate=16000.")


def axes_of(one: tuple[int, ...], two: tuple[int, ...], name: str) -> tuple[str, ...]:
    """The axes of an answer, from its shapes for a second and for two: what grows is time."""
    remedy = "say which axis is which, as in output_layout=[batch,time,feature], or choose another output"
    if len(one) != len(two):
        raise UsageError(f"{name} answers with shapes {list(one)} and {list(two)} for 1 s and 2 s: {remedy}.")
    growing = [axis for axis, sizes in enumerate(zip(one, two, strict=True)) if sizes[0] != sizes[1]]
    axes = [""] * len(one)
    if len(one) > 1 and one[0] == two[0] == 1:
        axes[0] = "batch"
    left = [axis for axis, word in enumerate(axes) if not word]
    if len(left) == 1 and not growing:
        axes[left[0]] = "feature"
    elif len(left) == 2 and (len(growing) == 1 or (not growing and 1 in (one[left[0]], one[left[1]]))):
        time = growing[0] if growing else left[0] if one[left[0]] == 1 else left[1]
        axes[time] = "time"
        axes[left[0] + left[1] - time] = "feature"
    else:
        raise UsageError(f"{name} answers with shapes {list(one)} and {list(two)} for 1 s and 2 s: {remedy}.")
    return tuple(axes)
