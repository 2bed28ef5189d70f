"""What is known of a thing without loading it: every model, codec, task, corpus and sent-in system has a card.

A card is a frozen dataclass of its kind that extends `Card`. A stranger's object may state its card as an instance, as
a mapping of fields, or not at all: its attributes are then looked at, and the rest are defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from earmark.errors import UsageError

__all__ = ["Adapter", "Card"]

C = TypeVar("C", bound="Card")


class Card:
    """The facts that cards of every kind state. A kind adds its own, and says in which order all are saved."""

    name: str
    title: str
    licence: str
    citation: str

    attribute_types: ClassVar[tuple[type, ...]] = (str, int)
    """Types of an object's attributes that are taken for facts where it has no card."""

    @classmethod
    def field_names(cls) -> list[str]:
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]  # every kind is a dataclass

    @classmethod
    def blank(cls, name: str) -> Self:
        """A card that states nothing but a name."""
        return cls(name=name)  # type: ignore[call-arg]

    @classmethod
    def read(cls, name: str, facts: Mapping[str, Any]) -> Self:
        """A card from a mapping of its fields; raises UsageError for fields that the kind does not have."""
        unknown = sorted(set(facts) - set(cls.field_names()))
        if unknown:
            raise UsageError(f"The card of {name} has unknown fields: {', '.join(unknown)}.")
        return replace(cls.blank(name), **facts)  # type: ignore[type-var]

    @classmethod
    def of(cls, thing: Any, name: str) -> Self:
        """The card of a stranger's object: its own, a mapping of fields, or what its attributes say."""
        stated = getattr(thing, "card", None)
        if isinstance(stated, cls):
            return stated
        if isinstance(stated, Mapping):
            return cls.read(name, stated)
        attributes = {field: getattr(thing, field, None) for field in cls.field_names()}
        facts = {field: value for field, value in attributes.items() if isinstance(value, cls.attribute_types)}
        for spelling in ("rate", "sample_rate", "sampling_rate"):
            rate = getattr(thing, spelling, None)
            if "rate" not in facts and isinstance(rate, int | float):
                facts["rate"] = int(rate)
        return cls.read(name, facts)


class Adapter(Generic[C]):
    """A stranger's object behind a card of ours. Attributes that an adapter does not have are the object's own."""

    card_type: ClassVar[type[Card]]
    card: C

    def __init__(self, model: Any, name: str = "") -> None:
        self.model = model
        self.has_own_card = getattr(model, "card", None) is not None
        self.card = self.card_type.of(model, name or type(model).__name__)  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # while unpickling, before __init__
            raise AttributeError(name)
        return getattr(self.model, name)
