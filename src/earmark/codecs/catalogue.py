"""Which codecs there are, which of them can run here, and how one is opened from its spelling.

The cards are data: listing them imports neither FFmpeg nor torch. A family is a row that says where its maker is,
`make(card, checkpoint, **options)`; a setting is a card. A stranger's codec needs no registration and no card:
`mypackage.mymodule:MyCodec` is imported (from the current folder too) and given sensible defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from earmark import specs
from earmark.codecs._adapted import Adapted
from earmark.codecs.classical import cards as classical
from earmark.codecs.classical.lyra import FILES, weights_folder
from earmark.codecs.contract import Codec, CodecCard
from earmark.codecs.neural import cards as neural
from earmark.codecs.neural.checkpoints import published_name, weights_name
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.registry import EXTRA_MODULES, Registry, are_installed
from earmark.specs import Spec

FAMILIES: Registry[Callable[..., Codec]] = Registry(
    "codec",
    "earmark.codecs",
    {**classical.FACTORIES, **neural.FACTORIES},
    methods=("encode",),
    shape="a codec with `encode` and `decode`",
    remedy="`encode`: give it that, and `decode` unless it only makes tokens",
    options="options",
)
"""Makers of families; plug-ins add codecs of their own under the entry points `earmark.codecs`."""

_KINDS = {"classical": classical.CARDS, "neural": neural.CARDS}


def settings() -> tuple[CodecCard, ...]:
    """The card of every setting, anchors first, families together, rates rising."""
    return (*classical.CARDS, *neural.CARDS)


def families() -> tuple[str, ...]:
    """The families that have settings, in the order of the settings."""
    return tuple(dict.fromkeys(card.family for card in settings()))


# --- names ---------------------------------------------------------------------------------------------------


def parse_spec(spec: str) -> Spec:
    """Take `family:checkpoint@kbps?option=value`, or an import path, apart."""
    return specs.parse_spec(spec, FAMILIES.__contains__)


def is_path(spec: Spec) -> bool:
    """Whether a spelling is an import path: no family is registered under its name, here or by a plug-in."""
    return spec.name not in FAMILIES


def expand(spellings: Iterable[str]) -> list[str]:
    """Spellings of single settings, each once: `opus` and `opus@*` are all rates of a family.

    `classical` and `neural` are all settings of a kind, `all` every setting that can run on this machine. Import
    paths stay as they are and are not opened. Raises UsageError for a name that is not known.
    """
    single: dict[str, None] = {}
    for spec in map(str.strip, spellings):
        parsed = parse_spec(spec)
        if spec == "all":
            names = [card.name for card in settings() if not availability(card)]
        elif spec in _KINDS:
            names = [card.name for card in _KINDS[spec]]
        elif parsed.name in families() and parsed.setting in ("", "*"):
            rates = [card.name.partition("@")[2] for card in settings() if card.family == parsed.name]
            names = [parsed.with_setting(rate) for rate in rates]
        else:
            if parsed.name in families():
                _setting(parsed)
            elif is_path(parsed) and not parsed.argument:
                raise _unknown(parsed, spec)
            names = [spec]
        single.update(dict.fromkeys(names))
    return list(single)


def card_of(spec: str) -> CodecCard:
    """The card of one setting. Its name says options and other weights, and so does its family, which is one curve of
    rates: the same weights and options, but for the number of codebooks. An import path is imported and opened.
    """
    parsed = parse_spec(spec)
    if parsed.name not in families():
        return open_codec(spec).card
    card = _setting(parsed)
    head, _, options = card.name.partition("?")
    kept = "&".join(pair for pair in options.split("&") if pair.partition("=")[0] not in ("", "codebooks"))
    family = head.partition("@")[0] + (f"?{kept}" if kept else "")
    checkpoint = published_name(parsed.argument) if parsed.argument else card.checkpoint
    return replace(card, family=family, checkpoint=checkpoint)


def _setting(spec: Spec) -> CodecCard:
    """The row of a setting, named with what can change its sound: weights other than its own, and options.

    Where a family has no weights that are its own, those that are given are taken for the published ones.
    """
    of_family = {card.name.partition("@")[2]: card for card in settings() if card.family == spec.name}
    wanted = spec.setting or (next(iter(of_family)) if len(of_family) == 1 else "")
    card = of_family.get(wanted) or of_family.get(_same_number(wanted, of_family))
    if card is None:
        rates = ", ".join(f"{spec.name}@{rate}" for rate in of_family)
        problem = f"no setting {wanted!r}" if wanted else "several settings"
        raise UsageError(f"{spec.name} has {problem}: choose from {rates}, or {spec.name}@* for all.")
    name = card.name
    given = weights_name(spec.argument or "")
    if card.checkpoint and given and given != weights_name(card.checkpoint):
        name = name.replace(card.family, f"{card.family}:{given}", 1)
    return replace(card, name=f"{name}?{spec.audible_options}" if spec.audible_options else name)


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
        `my_codec.py:MyCodec`         the same in a Python file

    Args:
        spec: the spelling.
        options: of the codec; they win over those in the spelling.

    Returns:
        The codec, ready to encode and decode.

    >>> earmark.open_codec("opus@12").card
    """
    parsed = parse_spec(spec)
    options = {**parsed.options, **options}
    if parsed.name in families():
        card = _setting(parsed)
        maker = FAMILIES.load(parsed.name)
        codec: Codec = FAMILIES.make(maker, spec, (card, parsed.argument or card.checkpoint), options)
        return codec
    if is_path(parsed):
        thing, name = _load_path(parsed, spec), str(parsed.argument).rpartition(".")[2]
    else:  # a plug-in
        thing, name = FAMILIES.load(parsed.name), parsed.name
        if parsed.setting:
            name, options = f"{name}@{parsed.setting}", {**options, "kbps": specs.scalar(parsed.setting)}
    adapted = Adapted(FAMILIES.make(thing, spec, (), options), name)
    if parsed.audible_options and "?" not in adapted.card.name:
        adapted.card = replace(adapted.card, name=f"{adapted.card.name}?{parsed.audible_options}")
    return adapted


def _load_path(parsed: Spec, spec: str) -> Any:
    if not parsed.argument:
        raise _unknown(parsed, spec)
    try:
        return FAMILIES.load(parsed.path)
    except InputError as error:
        raise InputError(f"{error}{did_you_mean(parsed.name, families())}") from error


def _unknown(parsed: Spec, spec: str) -> UsageError:
    known = ["all", *_KINDS, *families(), *FAMILIES]
    return UsageError(
        f"There is no codec {spec!r}.{did_you_mean(parsed.name, known)} `earmark codecs` lists them; or give an "
        "import path such as mypackage.mymodule:MyCodec."
    )


def availability(card: CodecCard) -> str:
    """Nothing when a setting can run here, else one sentence that says what is missing and how to get it.

    Only looked for, never imported. A checkpoint on the hub may be here or not: that is found out on opening.
    """
    family = re.split("[:?@]", card.name, maxsplit=1)[0]
    if not are_installed(classical.MODULES.get(family, EXTRA_MODULES.get(card.extra, ()))):
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
