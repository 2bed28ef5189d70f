"""How a codec run was measured, for the end of its page."""

from __future__ import annotations

from collections.abc import Iterator

from earmark.report.codecs.content import CodecReport
from earmark.tables.html import Html, bullets, folded, join, pairs, table, tag

__all__ = ["explained"]

_COMMON = (
    "The rate is counted: bits of the payload over seconds of sound. What a decoder is told once (a header) is counted "
    "apart. Names say the nominal rate.",
    "Clips are resampled to the codec's rate and back, so band limits are part of the result.",
    "Each codec has one delay, declared on its card or calibrated on several clips, which is taken out of every clip. "
    "No clip is aligned by itself.",
    "Metrics are means over the clips that have a value; intervals are the middle 95 % of resamples of the clips. For "
    "content identity and fidelity, where clips are neighbours of each other, they are left out in both roles "
    "instead. A value that cannot be measured is not a number: it is counted as not applicable or failed.",
    "overall is the published score of Codec-SUPERB: the harmonic mean of (PESQ + 0.5) / 5, STOI, F0 correlation and "
    "sigmoid(1/d) of the distances, as far as they belong to the category. It saturates at low quality; "
    "overall_unsaturated does not.",
)
_PROTOCOLS = {
    "all": "Definitions are Earmark's, with the defects of the published code mended.",
    "gain_matched": "Before measuring, each coded clip was scaled to the energy of its reference.",
    "reference": "Definitions are those of the published code, word for word, which takes no delay out.",
}


def explained(report: CodecReport) -> Iterator[Html]:
    yield bullets([_PROTOCOLS.get(report.protocol, ""), *_COMMON])
    yield folded("The codecs", _cards(report))
    yield folded("The datasets", _datasets(report))
    yield join(tag("h3", "Settings and versions"), pairs([*report.settings.items(), *report.versions.items()]))


def _cards(report: CodecReport) -> Html:
    lines = []
    for card in report.cards.values():
        causal = "" if card.causal is None else "yes" if card.causal else "no"
        lines.append([card.name, card.title, str(card.rate), causal, card.licence, card.citation, card.notes])
    return table(["codec", "what it is", "Hz", "causal", "licence", "citation", "notes"], lines, left=2, words=4)


def _datasets(report: CodecReport) -> Html:
    lines = [
        [one.subset, one.category, str(one.clips), f"{one.seconds:.0f}", tag("span", one.digest[:16], class_="hash")]
        for one in report.datasets
    ]
    return table(["subset", "category", "clips", "seconds", "hash of the sounds"], lines, left=2, words=1)
