"""What an author says of a system, and what it was measured on: cards from plain values and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from earmark.cards import Card
from earmark.errors import InputError, did_you_mean, quoted

Kind = Literal["representation", "codec", "generator"]


@dataclass(frozen=True)
class SystemCard(Card):
    """What an author says of a system. Unknown facts stay None or empty: they are shown as unknown, never as 0."""

    name: str
    kind: Kind = "representation"
    title: str = ""
    family: str = ""  # the model behind several configurations, e.g. Whisper
    description: str = ""
    authors: tuple[str, ...] = ()
    url: str = ""  # http or https only
    licence: str = ""
    training_free: bool | None = None  # nothing was trained on this benchmark's own data
    parameters_m: float | None = None
    real_time_factor: float | None = None  # seconds of work for one second of sound
    kbps: float | None = None
    pretraining: tuple[str, ...] = ()
    command: str = ""  # how to reproduce the scores
    citation: str = ""
    year: int | None = None
    details: Mapping[str, object] = field(default_factory=dict, hash=False)  # further facts, e.g. of a codec's tokens


@dataclass(frozen=True)
class Dataset:
    """What the systems were measured on. `digest` is a hash of the sounds, in order."""

    subset: str
    category: Literal["speech", "audio", "music"]
    clips: int
    seconds: float = 0.0
    digest: str = ""
    title: str = ""


_UNSTATED = SystemCard("")


def _stated(card: SystemCard) -> dict[str, Any]:
    return {name: value for name, value in asdict(card).items() if value != getattr(_UNSTATED, name)}


def plain_card(card: SystemCard) -> dict[str, Any]:
    """The card as JSON can hold it, without what it does not say."""
    stated = {"name": card.name, **_stated(card)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in stated.items()}


def card_from(plain: object, where: str = "The card") -> SystemCard:
    """A card from a JSON or YAML object; an unknown key and a value of the wrong kind are errors that say where."""
    if not isinstance(plain, Mapping):
        raise InputError(f"{where} is not an object; a card names its facts, at least name.")
    cells = _cells(SystemCard, plain, where)
    if not cells.get("name"):
        raise InputError(f'{where} has no "name"; give the name that its scores have in the column "system".')
    return SystemCard(**cells)


def dataset_from(plain: object, where: str) -> Dataset:
    """What a document says of a dataset; errors say where."""
    if not isinstance(plain, Mapping):
        raise InputError(f"{where} is not an object; a dataset has a subset, a category and a number of clips.")
    cells = _cells(Dataset, plain, where)
    for name in ("subset", "category", "clips"):
        if name not in cells:
            raise InputError(f'{where} has no "{name}"; it is needed.')
    return Dataset(**cells)


def _cells(kind: type, plain: Mapping[Any, object], where: str) -> dict[str, Any]:
    """The cells of a card, each of the type that its class declares; what is None is left out."""
    types = get_type_hints(kind)
    cells: dict[str, Any] = {}
    for name, given in plain.items():
        if name not in types:
            hint = did_you_mean(str(name), types)
            raise InputError(f"{where} has the unknown key {quoted(str(name))}; remove or rename it.{hint}")
        if given is not None:
            cells[name] = _cell(types[name], given, f'{where}, key "{name}",')
    return cells


def _cell(kind: Any, given: object, where: str) -> object:
    """The value of one cell, if it is of the kind that a card declares for it."""
    accepted = get_args(kind) or (kind,)
    if get_origin(kind) is tuple:
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise InputError(f"{where} is a list of texts, not {quoted(str(given))}.")
        if not all(isinstance(item, str) for item in given):
            raise InputError(f"{where} holds something that is not text; put quotation marks around it.")
        return tuple(given)
    if get_origin(kind) is Mapping:
        if not isinstance(given, dict) or not all(isinstance(name, str) and _is_detail(given[name]) for name in given):
            raise InputError(f"{where} holds names with texts, numbers, true, false, or lists of numbers.")
    elif float in accepted:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise InputError(f"{where} is a number, not {quoted(str(given))}.")
        if abs(given) > 1e300 or not math.isfinite(given):
            raise InputError(f"{where} is not a finite number; leave it out if it is not known.")
        return float(given)
    elif int in accepted:
        if isinstance(given, bool) or not isinstance(given, int):
            raise InputError(f"{where} is a whole number, not {quoted(str(given))}.")
    elif bool in accepted:
        if not isinstance(given, bool):
            raise InputError(f"{where} is true or false, not {quoted(str(given))}.")
    elif not isinstance(given, str):
        raise InputError(f"{where} is text, not {quoted(str(given))}; put quotation marks around it.")
    elif kind is not str and given not in accepted:
        raise InputError(f"{where} is {', '.join(accepted)}, not {quoted(given)}.{did_you_mean(given, accepted)}")
    return given


def _is_detail(value: object) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return isinstance(value, str) or all(
        isinstance(number, int | float) and math.isfinite(number) and abs(number) < 1e300 for number in numbers
    )


def combined(cards: Iterable[SystemCard]) -> SystemCard:
    """What the cards of one system say together: a later one replaces what it says, and keeps what it leaves open."""
    first, *later = cards
    for card in later:
        first = replace(first, **_stated(card))
    return first
