"""Over which subsets a board averages: blind ones, VocSim's public ones and domains, Codec-SUPERB's categories, or all.

Where a board has blind subsets, it ranks by them first, as VocSim's paper says; the mean over the public ones is beside
them. Where a host measures only some of them, those are the blind mean: whoever was measured on all that can be
measured has a rank, and the mean over all of the paper's is offered beside it. A mean is compared only among systems
that have all its subsets. Where no paper says which belong to it, a subset does if more than half as many systems were
measured on it as on the subset that most systems have: one that a single author adds takes nobody's rank away. Each
subset is a group of its own as well, so that a system that lacks some can be ranked on what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from earmark import published
from earmark.scores import RULES, VOCSIM_SUBSETS
from earmark.scores.spelling import is_single

BLIND = "blind"
"""The key of the mean over blind subsets."""
_BLIND_TITLES = ("Blind mean", "Blind")
_VOCSIM_TITLES = {
    BLIND: _BLIND_TITLES, "public": ("Public mean", "Public"), "domain:birdsong": ("Birdsong", "Birds"),
    "domain:otter_calls": ("Otter calls", "Otters"), "domain:human_speech": ("Human speech", "Speech"),
    "domain:environmental_sounds": ("Environmental sounds", "Env."),
}  # fmt: skip
_HARMONIC = ("overall", "overall_unsaturated")
"""Metrics of which Codec-SUPERB's categories are harmonic means."""
_HALF = 0.5


class Group(NamedTuple):
    """Subsets to average over. `narrow` groups are domains: a table may show a column for each of them. A `single` one
    is a subset by itself. The mean of a `harmonic` one is the harmonic mean, as the paper's."""

    key: str
    title: str
    short: str
    subsets: tuple[str, ...]
    narrow: bool = False
    single: bool = False
    harmonic: bool = False

    @property
    def words(self) -> str:
        """The title within a sentence."""
        return self.title if self.single else self.title[:1].lower() + self.title[1:]


_ALL_BLIND = Group("blind_all", "Mean of all 4 blind subsets", "All blind", RULES[BLIND].required())


def groups_of(
    board: str,
    systems_with: Mapping[str, int],
    metric: str = "",
    aside: Sequence[str] = (),
    blind: Collection[str] = (),
    offered: Collection[str] = (),
) -> tuple[Group, ...]:
    """The groups of one metric of a board, the leading one first; `systems_with` counts those that have each subset.

    Subsets `aside` have values at single sampling rates only, which no mean takes in: they are offered by themselves.
    Of the `blind` ones, a host measures those that are `offered` now.
    """
    present = [name for name in systems_with if is_single(name) and systems_with[name]]
    hidden = [name for name in present if name in blind and name in offered]
    measured = _shared(hidden or [name for name in present if name in blind], systems_with)
    if board == "vocsim":
        found = [
            Group(key, *titles, RULES[key].required(), narrow=key not in ("public", BLIND))
            for key, titles in _VOCSIM_TITLES.items()
            if set(RULES[key].required()) <= set(present)
        ]
        if hidden and set(measured) != set(_ALL_BLIND.subsets):
            whole = [_ALL_BLIND] if found and found[0].key == BLIND else []
            others = [group for group in found if group.key != BLIND]
            found = [Group(BLIND, *_BLIND_TITLES, measured), *others[:1], *whole, *others[1:]]
        keys = [group.key for group in found]
        if "public" in keys:
            everything = tuple(subset.name for subset in VOCSIM_SUBSETS)
            if set(everything) <= set(present):
                found.insert(keys.index("public") + 1, Group("mean", "Mean of all 19 subsets", "All 19", everything))
            return (*found, *_singles(present))
    public = [name for name in present if name not in blind]
    leading = [Group(BLIND, *_BLIND_TITLES, measured)] if measured else []
    if public or not measured:
        title = "Value" if len(present) == 1 else "Public mean" if measured else "Mean"
        leading.append(Group("mean", title, "Public" if measured else title, _shared(public, systems_with)))
    narrow: list[Group] = []
    if board == "codec-superb":
        for category in ("speech", "audio", "music"):
            members = tuple(name for name in present if codec_categories().get(name) == category)
            if len(members) > 1:
                harmonic = metric in _HARMONIC
                short = category.capitalize()
                title = f"{short} (harmonic mean)" if harmonic else short
                narrow.append(Group(category, title, short, members, narrow=True, harmonic=harmonic))
    return (*leading, *narrow, *_singles([*present, *aside]))


def _shared(names: Sequence[str], systems_with: Mapping[str, int]) -> tuple[str, ...]:
    """Those that more than half as many systems have as have the most common one."""
    most = max((systems_with[name] for name in names), default=0)
    return tuple(name for name in names if systems_with[name] > _HALF * most)


def _singles(present: Sequence[str]) -> list[Group]:
    if len(present) == 1:
        return []
    titles = {name: name or "all clips" for name in present}
    return [Group(f"subset:{name}", title, title, (name,), single=True) for name, title in titles.items()]


@cache
def codec_categories() -> dict[str, str]:
    """The category of each dataset of Codec-SUPERB."""
    return {cell["dataset"]: cell["category"] for cell in published.read("codec_superb_scores")}


def subset_title(board: str, subset: str) -> str:
    """What a subset is, in words, where that is known; else nothing."""
    if board == "vocsim":
        return next((known.title for known in VOCSIM_SUBSETS if known.name == subset), "")
    if board == "codec-superb" and subset in codec_categories():
        return codec_categories()[subset]
    return ""
