"""Which codecs there are, and how one is opened from its name or an import path.

The cards are data: listing them imports neither FFmpeg nor torch. A family is a row that says where its maker is,
`make(card, checkpoint, **options)`; a setting is a card. A stranger's codec needs no registration and no card:
`mypackage.mymodule:MyCodec` is imported (from the current folder too) and given sensible defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, NamedTuple

import yaml

from earmark.codecs.adapted import Adapted, is_codec
from earmark.codecs.classical import cards as classical
from earmark.codecs.classical.lyra import FILES, weights_folder
from earmark.codecs.contract import Codec, CodecCard
from earmark.codecs.neural import cards as neural
from earmark.codecs.neural.checkpoints import published_name, weights_name
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.registry import Registry

__all__ = [
    "FAMILIES",
    "Spec",
    "availability",
    "card_of",
    "expand",
    "families",
    "is_family",
    "open_codec",
    "parse_spec",
    "settings",
]

FAMILIES: Registry[Callable[..., Codec]] = Registry(
    "codec", "earmark.codecs", {**classical.FACTORIES, **neural.FACTORIES}
)
"""Makers of families; plug-ins add codecs of their own under the entry points `earmark.codecs`."""

_MODULES_OF_EXTRA = {"codecs": ("av",), "models": ("torch", "transformers"), "torch": ("torch",)}
_GROUPS = ("all", "classical", "neural")


def settings() -> tuple[CodecCard, ...]:
    """The card of every setting, anchors first, families together, rates rising."""
    return (*classical.CARDS, *neural.CARDS)


def is_family(name: str) -> bool:
    """Whether a family is registered, here or by a plug-in; plug-ins are only looked for when it is not ours."""
    return name in classical.FACTORIES or name in neural.FACTORIES or name in FAMILIES


def families() -> tuple[str, ...]:
    """The families that have settings, in the order of the settings."""
    return tuple(dict.fromkeys(card.family for card in settings()))


# --- names ---------------------------------------------------------------------------------------------------


_SILENT = ("allow_pickle", "device", "local_files_only")


class Spec(NamedTuple):
    """A codec as it is spelled: `family:checkpoint@kbps?option=value`, or an import path."""

    family: str  # or the module of an import path
    checkpoint: str  # or the attribute of an import path
    setting: str  # what follows @: "12", "*", or nothing
    options: dict[str, Any]
    query: str  # the options as they were written

    @property
    def is_path(self) -> bool:
        return not is_family(self.family)

    @property
    def audible(self) -> str:
        """The options that can change the sound, as a name says them: where and how weights load cannot."""
        pairs = [pair.partition("=") for pair in self.query.split("&") if self.query]
        return "&".join(f"{key}={_last_part(value)}" for key, _, value in pairs if key not in _SILENT)

    def named(self, setting: str) -> str:
        """The spelling with another setting."""
        checkpoint = f":{self.checkpoint}" if self.checkpoint else ""
        return f"{self.family}{checkpoint}{f'@{setting}' if setting else ''}{f'?{self.query}' if self.query else ''}"


def parse_spec(spec: str) -> Spec:
    """Take a spelling apart; option values are read as YAML reads them (9, true, text)."""
    path, mark, query = spec.rpartition("?")
    pairs = [pair.partition("=") for pair in query.split("&")] if mark else []
    if not pairs or not all(key.isidentifier() and equals for key, equals, _ in pairs):
        path, query, pairs = spec, "", []
    head, colon, checkpoint = path.partition(":")
    setting = ""
    if colon and "@" in checkpoint and is_family(head):
        checkpoint, _, setting = checkpoint.rpartition("@")
    elif not colon:
        head, _, setting = head.partition("@")
    return Spec(head, checkpoint, setting, {key: _scalar(value) for key, _, value in pairs}, query)


def _last_part(value: str) -> str:
    """What a name says of an option's value: of a path on this machine the last part alone."""
    return PurePath(value).name if value.startswith(("/", "./", "../", "~")) else value


def _scalar(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def expand(specs: Iterable[str]) -> list[str]:
    """Spellings of single settings, each once: `opus` and `opus@*` are all rates of a family.

    `classical` and `neural` are all settings of a kind, `all` every setting that can run on this machine. Import
    paths stay as they are. Raises UsageError for a name that is not known.
    """
    found: dict[str, None] = {}
    for spec in specs:
        found.update(dict.fromkeys(_expanded(spec.strip())))
    return list(found)


def _expanded(spec: str) -> list[str]:
    if spec == "all":
        return [card.name for card in settings() if not availability(card)]
    if spec in ("classical", "neural"):
        return [card.name for card in (classical if spec == "classical" else neural).CARDS]
    parsed = parse_spec(spec)
    if parsed.family in families() and parsed.setting in ("", "*"):
        return [parsed.named(card.name.partition("@")[2]) for card in settings() if card.family == parsed.family]
    card_of(spec)
    return [spec]


def card_of(spec: str) -> CodecCard:
    """The card of one setting. Its name says options and other weights, and so does its family, which is one curve of
    rates: the same weights and options, but for the number of codebooks. An import path is imported and opened.
    """
    parsed = parse_spec(spec)
    if parsed.is_path:
        return _open_path(parsed, spec, {}).card
    if parsed.family not in families():  # a plug-in
        return _open_plug_in(parsed, spec, {}).card
    card = _setting(parsed)
    head, _, options = card.name.partition("?")
    kept = "&".join(pair for pair in options.split("&") if pair.partition("=")[0] not in ("", "codebooks"))
    family = head.partition("@")[0] + (f"?{kept}" if kept else "")
    return replace(
        card, family=family, checkpoint=published_name(parsed.checkpoint) if parsed.checkpoint else card.checkpoint
    )


def _setting(parsed: Spec) -> CodecCard:
    """The row of a setting under the name that its spelling gives it."""
    of_family = {card.name.partition("@")[2]: card for card in settings() if card.family == parsed.family}
    wanted = parsed.setting or (next(iter(of_family)) if len(of_family) == 1 else "")
    card = of_family.get(wanted) or of_family.get(_same_number(wanted, of_family))
    if card is None:
        rates = ", ".join(f"{parsed.family}@{rate}" for rate in of_family)
        asked = f"no setting {wanted!r}" if wanted else "several settings"
        raise UsageError(f"{parsed.family} has {asked}: choose from {rates}, or {parsed.family}@* for all.")
    return replace(card, name=_name_of(card, parsed))


def _name_of(card: CodecCard, parsed: Spec) -> str:
    """The name of a setting, with what can change its sound: weights other than its own, and options.

    Where a family has no weights that are its own, those that are given are taken for the published ones.
    """
    name = card.name
    given = weights_name(parsed.checkpoint)
    if card.checkpoint and given and given != weights_name(card.checkpoint):
        name = name.replace(card.family, f"{card.family}:{given}", 1)
    return f"{name}?{parsed.audible}" if parsed.audible else name


def _same_number(wanted: str, known: Iterable[str]) -> str:
    """The known setting that is the same number: 12.0 for 12."""
    try:
        number = float(wanted)
    except ValueError:
        return ""
    return next((name for name in known if name and float(name) == number), "")


# --- opening -------------------------------------------------------------------------------------------------


def open_codec(spec: str, **options: Any) -> Codec:
    """Make the codec that `spec` names.

        `opus@12`                     a setting of the list
        `opus@12?vbr=off`             with options
        `lyra:FOLDER@3.2`             with weights of your own: a folder, a file, or a name on the hub
        `mypackage.mymodule:MyCodec`  an import path: a class, a function that makes a codec, or a codec

    Args:
        spec: How it is spelled, as above.
        options: Options of the codec; they win over those in the spelling.
    """
    parsed = parse_spec(spec)
    if parsed.is_path:
        return _open_path(parsed, spec, options)
    if parsed.family not in families():
        return _open_plug_in(parsed, spec, options)
    card = _setting(parsed)
    made = _construct(
        FAMILIES.load(parsed.family), spec, (card, parsed.checkpoint or card.checkpoint), {**parsed.options, **options}
    )
    if not is_codec(made):
        raise UsageError(f"{spec} has no `encode` and `decode`: its maker must return a codec.")
    opened: Codec = made
    return opened


def _open_path(parsed: Spec, spec: str, options: dict[str, Any]) -> Codec:
    if not parsed.checkpoint:
        known = [*_GROUPS, *families(), *FAMILIES.names()]
        raise UsageError(
            f"There is no codec {spec!r}.{did_you_mean(parsed.family, known)} `earmark codecs` lists them; or give an "
            "import path such as mypackage.mymodule:MyCodec."
        )
    try:
        thing: Any = FAMILIES.load(f"{parsed.family}:{parsed.checkpoint}")
    except InputError as error:
        raise InputError(f"{error}{did_you_mean(parsed.family, families())}") from error
    return _adapted(thing, spec, parsed.checkpoint.rpartition(".")[2], {**parsed.options, **options}, parsed.audible)


def _open_plug_in(parsed: Spec, spec: str, options: dict[str, Any]) -> Codec:
    name = f"{parsed.family}@{parsed.setting}" if parsed.setting else parsed.family
    given = {**parsed.options, **options} | ({"kbps": _scalar(parsed.setting)} if parsed.setting else {})
    return _adapted(FAMILIES.load(parsed.family), spec, name, given, parsed.audible)


def _adapted(thing: Any, spec: str, name: str, options: dict[str, Any], said: str) -> Codec:
    if is_codec(thing) and not isinstance(thing, type):
        if options:
            raise UsageError(f"{spec} is a finished object and takes no options ({', '.join(options)}).")
        made = thing
    else:
        made = _construct(thing, spec, (), options)
    if not is_codec(made):
        raise UsageError(f"{spec} has no `encode` and `decode`: give it both.")
    adapted = Adapted(made, name)
    if said and "?" not in adapted.card.name:
        adapted.card = replace(adapted.card, name=f"{adapted.card.name}?{said}")
    return adapted


def _construct(thing: Any, spec: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a maker; what goes wrong inside it becomes one sentence."""
    if not callable(thing):
        raise UsageError(f"{spec} is neither a codec with `encode` and `decode` nor something that makes one.")
    try:
        return thing(*arguments, **options)
    except EarmarkError:
        raise
    except TypeError as error:
        raise UsageError(f"{spec} cannot be made with these options: {error}.") from error
    except Exception as error:
        raise InputError(f"{spec} cannot be made: {type(error).__name__}: {error}.") from error


# --- what is here --------------------------------------------------------------------------------------------


def availability(card: CodecCard) -> str:
    """Nothing when a setting can run here, else one sentence that says what is missing and how to get it.

    Only looked for, never imported. A checkpoint on the hub may be here or not: that is found out on opening.
    """
    family = re.split("[:?@]", card.name, maxsplit=1)[0]
    modules = classical.MODULES.get(family, _MODULES_OF_EXTRA.get(card.extra, ()))
    if not all(map(_installed, modules)):
        return f'It needs `pip install "earmark[{card.extra}]"`.'
    if family == "lyra":
        folder = weights_folder()
        if folder is None or not all((folder / name).is_file() for name in FILES):
            return f"It needs weights: {card.how_to_get}."
    elif card.how_to_get and not card.checkpoint:
        return f"It needs weights: {card.how_to_get}."
    elif family in neural.FACTORIES:
        return f"It needs weights: {card.how_to_get or f'{card.checkpoint} from the Hugging Face hub'}."
    return ""


@cache
def _installed(module: str) -> bool:
    return find_spec(module) is not None
