"""Over which subsets a metric of a board is averaged: the groups of its definition, and each subset by itself.

Which groups there are, and by which a board is ranked, is said by its definition alone (`earmark.definitions`); no
submission changes it. A mean is compared only among systems that have all its subsets. Only the blind mean follows what
the host does: where it measures some of the blind subsets, those are the mean, and whoever was measured on all that are
measured has a rank; that over all of the definition's is offered beside it. Each subset is a group of its own as well,
so that a system that lacks some can be ranked on what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from earmark.definitions import BLIND, Definition, SubsetGroup
from earmark.definitions.derived import MEAN, shared_by_most
from earmark.scores.spelling import is_single

__all__ = ["BLIND", "Group", "groups_of"]

_BLIND_TITLES = ("Blind mean", "Blind")
_PUBLIC_TITLES = ("Public mean", "Public")


class Group(NamedTuple):
    """Subsets to average over. `narrow` groups are domains: a table may show a column for each of them. A `single` one
    is a subset by itself. The mean of a `harmonic` one is the harmonic mean, as the paper's. A `column` one stands
    beside the mean that a table is ranked by."""

    key: str
    title: str
    short: str
    subsets: tuple[str, ...]
    narrow: bool = False
    single: bool = False
    harmonic: bool = False
    column: bool = True

    @property
    def words(self) -> str:
        """The title within a sentence."""
        return self.title if self.single else self.title[:1].lower() + self.title[1:]


def groups_of(
    definition: Definition,
    systems_with: Mapping[str, int],
    metric: str = "",
    aside: Sequence[str] = (),
    blind: Collection[str] = (),
    offered: Collection[str] = (),
    founded: Collection[str] | None = None,
) -> tuple[Group, ...]:
    """The groups of one metric of a board, the leading one first; `systems_with` counts those that have each subset.

    A group is offered where somebody has a value on each of its subsets; that which the board is ranked by, always.
    Subsets `aside` have values at single sampling rates only, which no mean takes in: they are offered by themselves.
    Of the `blind` ones, a host measures those that are `offered` now. The first submission has those that are
    `founded`: the first group of the definition's choice that it has a part of leads, whoever comes later.
    """
    present = [name for name in systems_with if is_single(name) and systems_with[name]]
    announced = set(blind) - definition.blind  # of which authors had figures before, and have none now
    defined = [_resolved(_without(group, announced), metric) for group in definition.groups_for(metric)]
    whole = [group for group in defined if set(group.subsets) <= set(present)]
    public = [group for group in whole if not blind or not set(group.subsets) <= set(blind)]
    leading = _public_lead(definition, defined, present if founded is None else founded, blind)
    leading = leading or _public_lead(definition, defined, present, blind)
    public = [*leading, *(group for group in public if group not in leading)]
    hidden = _blind_groups(whole, systems_with, present, blind, offered)
    if hidden and definition.derived:  # whose one mean is over what is not blind
        public = [group._replace(title=_PUBLIC_TITLES[0], short=_PUBLIC_TITLES[1]) for group in public]
    singles = _singles(definition, [*present, *aside], alone=not (hidden or public))
    if not (hidden or public or singles):
        return (Group(MEAN, "Mean", "Mean", ()),)
    if hidden and public and not _leads(definition, blind):
        return (*public, *hidden, *singles)
    # The blind mean first, that of everybody beside it, then what the paper has of all.
    return (*hidden[:1], *public[:1], *(group for group in public[1:] if not group.narrow), *hidden[1:],
            *(group for group in public[1:] if group.narrow), *singles)  # fmt: skip


def _leads(definition: Definition, blind: Collection[str]) -> bool:
    """Whether a board is ranked by its blind mean first: as its definition says, or where it says nothing of one."""
    hidden = [group.key for group in definition.groups if set(group.subsets) <= set(blind)]
    return not hidden or definition.derived or definition.rank_by[:1] == (hidden[0],)


def _without(group: SubsetGroup, announced: Collection[str]) -> SubsetGroup:
    kept = tuple(name for name in group.subsets if name not in announced)
    return replace(group, subsets=kept) if kept else group


def _resolved(group: SubsetGroup, metric: str) -> Group:
    harmonic = metric in group.harmonic
    title = f"{group.title} (harmonic mean)" if harmonic else group.title
    return Group(
        group.key, title or group.key, group.short or group.title or group.key, group.subsets, narrow=group.narrow,
        harmonic=harmonic, column=group.column,
    )  # fmt: skip


def _public_lead(
    definition: Definition, defined: Iterable[Group], present: Collection[str], blind: Collection[str]
) -> list[Group]:
    """The group that systems without blind figures are ranked by, whether anybody has all of it or not."""
    candidates = [
        group for group in defined if group.key in definition.rank_by and not set(group.subsets) <= set(blind)
    ]
    return [group for group in candidates if not set(present).isdisjoint(group.subsets)][:1]


def _blind_groups(
    whole: Sequence[Group],
    systems_with: Mapping[str, int],
    present: Sequence[str],
    blind: Collection[str],
    offered: Collection[str],
) -> list[Group]:
    """The mean over the blind subsets that the host measures, and beside it that of the definition."""
    here = [name for name in present if name in blind]
    hidden = [name for name in here if name in offered]
    own = [group for group in whole if set(group.subsets) <= set(blind)]
    if own and not hidden:
        return own
    measured = shared_by_most({name: systems_with[name] for name in hidden or here})
    if not measured:
        return own
    if own and set(measured) == set(own[0].subsets):
        return own
    beside = [_all_of(group) if group.key == BLIND else group for group in own]
    return [Group(BLIND, *_BLIND_TITLES, measured), *beside]


def _all_of(group: Group) -> Group:
    title = f"Mean of all {len(group.subsets)} blind subsets"
    return group._replace(key=f"{group.key}_all", title=title, short="All blind")


def _singles(definition: Definition, present: Sequence[str], *, alone: bool) -> list[Group]:
    if len(present) == 1 and not alone:
        return []
    place = {subset.name: number for number, subset in enumerate(definition.subsets)}
    titles = {name: name or "all clips" for name in sorted(present, key=lambda name: place.get(name, len(place)))}
    return [Group(f"subset:{name}", title, title, (name,), single=True) for name, title in titles.items()]
