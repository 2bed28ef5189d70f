"""A system's card from plain values and back, and what two cards of one system say together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, get_args

from earmark.board.records import Kind, SystemCard
from earmark.errors import InputError, did_you_mean, quoted

__all__ = ["card_from", "combined", "plain_card"]

_DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(SystemCard)}
_LISTS = ("authors", "pretraining")
_NUMBERS = ("parameters_m", "real_time_factor", "kbps")


def plain_card(card: SystemCard) -> dict[str, Any]:
    """The card as JSON can hold it, without what it does not say."""
    said = {name: value for name, value in asdict(card).items() if name == "name" or value != _DEFAULTS[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def card_from(plain: object, where: str = "The card") -> SystemCard:
    """A card from a JSON or YAML object; an unknown key and a value of the wrong kind are errors that say where."""
    if not isinstance(plain, Mapping):
        raise InputError(f"{where} is not an object; a card names its facts, at least name.")
    cells: dict[str, Any] = {}
    for name, given in plain.items():
        if name not in _DEFAULTS:
            hint = did_you_mean(str(name), _DEFAULTS)
            raise InputError(f"{where} has the unknown key {quoted(str(name))}; remove or rename it.{hint}")
        if given is not None:
            cells[name] = _cell(name, given, f'{where}, key "{name}",')
    if not cells.get("name"):
        raise InputError(f'{where} has no "name"; give the name that its scores have in the column "system".')
    return SystemCard(**cells)


def _cell(name: str, given: object, where: str) -> object:
    if name in _LISTS:
        if isinstance(given, str) or not isinstance(given, Iterable) or isinstance(given, Mapping):
            raise InputError(f"{where} is a list of texts, not {quoted(str(given))}.")
        items = tuple(given)
        if not all(isinstance(item, str) for item in items):
            raise InputError(f"{where} holds something that is not text; put quotation marks around it.")
        return items
    if name in _NUMBERS:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise InputError(f"{where} is a number, not {quoted(str(given))}.")
        if abs(given) > 1e300 or not math.isfinite(given):
            raise InputError(f"{where} is not a finite number; leave it out if it is not known.")
        return float(given)
    if name == "year":
        if isinstance(given, bool) or not isinstance(given, int):
            raise InputError(f"{where} is a whole number, not {quoted(str(given))}.")
        return given
    if name == "training_free":
        if not isinstance(given, bool):
            raise InputError(f"{where} is true or false, not {quoted(str(given))}.")
        return given
    if not isinstance(given, str):
        raise InputError(f"{where} is text, not {quoted(str(given))}; put quotation marks around it.")
    if name == "kind" and given not in get_args(Kind):
        raise InputError(
            f"{where} is {', '.join(get_args(Kind))}, not {quoted(given)}.{did_you_mean(given, get_args(Kind))}"
        )
    return given


def combined(cards: Iterable[SystemCard]) -> SystemCard:
    """What the cards of one system say together: a later one replaces what it says, and keeps what it leaves open."""
    ordered = list(cards)
    told: dict[str, Any] = {}
    for card in ordered:
        told |= {name: getattr(card, name) for name in _DEFAULTS if getattr(card, name) != _DEFAULTS[name]}
    return replace(ordered[0], **told)
