"""A codec run as one HTML file that needs nothing else: who wins at which rate, the curves, the clips to listen to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from earmark._version import __version__
from earmark.errors import InputError
from earmark.report._audio_player import Sound, cut
from earmark.report.codecs import _tables as tables
from earmark.report.codecs._comparison import (
    LADDER,
    MEASURED,
    CodecReport,
    Comparison,
    WorstClip,
    apart,
    best_below,
    compare_subsets,
    split_by_subset,
)
from earmark.report.codecs.text import left_out_text, shown_value, total_failures
from earmark.report.correlations import metric_correlations
from earmark.report.figures._heatmaps import correlation_map
from earmark.report.figures.codecs import Line, difference_png, rate_distortion, steps
from earmark.report.figures.style import as_svg, library
from earmark.report.html._clips import small, sound_parts
from earmark.report.html._shell import footer, whole_page, write_page
from earmark.scores import Row, Scores
from earmark.submissions import Dataset
from earmark.tables import plain
from earmark.tables.html import Html, bullets, drawing, folded, image, join, pairs, paragraph, section, table, tag
from earmark.wording import counted, listed


def write_codecs(report: CodecReport, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_page(render_codecs(report), path)


def render_codecs(report: CodecReport) -> str:
    """The page as HTML text: the same report gives the same text."""
    library()
    of_subset = split_by_subset(report.scores)
    compared = compare_subsets(
        report.scores, report.cards, report.datasets, report.failed, standings=report.standings
    )  # fmt: skip
    found = {dataset.subset: compared.get(dataset.subset, []) for dataset in report.datasets}
    families = len({card.family for card in report.cards.values()})
    meta = (
        f"{counted(len(report.cards), 'setting')} of {families} famil{'y' if families == 1 else 'ies'} on "
        f"{listed(_described(dataset) for dataset in report.datasets)} · Earmark {__version__}"
    )
    header = tag("header", tag("h1", report.title), paragraph(meta, class_="meta"))
    parts = [
        section("answer", "Who keeps most, at which rate", *_answers(report, found)),
        tables.standings(report),
        section("curves", "Rate against what is kept", *_curves(report, found)),
        section("table", "Every setting", *tables.settings(report, of_subset)),
        tables.tasks(report, of_subset),
        tables.speed(report, of_subset),
        _repeated(report, of_subset),
        section("rates", "Families against each other", *tables.families(report, found)),
        _agreement(report),
        _worst(report),
        tables.failures(report),
        section("method", "How it was measured", *_explained(report)),
    ]
    return whole_page(report.title, __version__, header, parts, footer(__version__))


def _described(dataset: Dataset) -> str:
    return f"{dataset.title or dataset.subset} ({dataset.category}, {counted(dataset.clips, 'clip')})"


# --- the answer ------------------------------------------------------------------------------------------------------


def _answers(report: CodecReport, found: dict[str, list[Comparison]]) -> Iterator[Html]:
    lost = total_failures(report.scores, report.cards)
    if lost:
        yield bullets([tag("b", line) for line in lost.splitlines()])
    others = apart(report.standings, report.cards)
    if others:
        yield paragraph("Not ranked with the others, because of what their results rest on:")
        yield bullets(f"{name}: {why.reason}." for name, why in others.items())
    said = False
    for subset, comparisons in found.items():
        for protocol in dict.fromkeys(one.protocol for one in comparisons):
            own = [one for one in comparisons if one.protocol == protocol]
            leading = next((one for one in own if one.metric in ("overall", "pesq")), None)
            if leading is None or not leading.points:
                continue
            said = True
            yield paragraph(*_sentence(subset, leading))
            lines = left_out_text(leading, [name for name, why in leading.left_out.items() if others.get(name) == why])
            if lines:
                yield bullets(f"{line}." for line in lines.splitlines())
            yield _ladder(_place(subset, leading), own)
    if not said:
        yield paragraph("Nothing could be compared: fewer than two settings have a value and a rate.")
    if report.notes:
        yield bullets(report.notes, class_="quiet")


def _place(subset: str, found: Comparison) -> str:
    """The subset, and which of its clips where they are of one sampling rate."""
    rate = found.protocol.partition("@")[2]
    return f"{subset}, clips at {int(rate):,} Hz" if rate else subset


def _sentence(subset: str, found: Comparison) -> Iterator[Html | str]:
    """The best that loses something, what it costs, and who is on the front."""
    sign = 1 if found.higher_is_better else -1
    yield f"On {_place(subset, found)}, "
    if not found.ranked:
        yield "no codec that loses something can be ranked."
        return
    best = max(found.ranked, key=lambda point: sign * point.value)
    yield tag("b", best.system)
    yield f" has the best {found.metric} of the codecs that lose something: {shown_value(best.value, found.metric)}"
    yield f" at {best.kbps:.1f} kbps. "
    front = [point.system for point in found.front]
    if len(front) > 1:
        yield f"No other setting is better at the same rate or lower than {listed(front)}."


def _ladder(subset: str, comparisons: Sequence[Comparison]) -> Html:
    """For each rate the winner under each metric."""
    shown = [one for one in comparisons if one.points][:5]
    lines: list[list[Html | str]] = []
    for rate in LADDER:
        winners = [best_below(one, rate) for one in shown]
        if any(winner is not None for winner in winners):
            cells = [
                "–" if point is None else f"{point.system} ({shown_value(point.value, one.metric)})"
                for one, point in zip(shown, winners, strict=True)
            ]
            if not lines or lines[-1][1:] != cells:  # a rate that changes nothing needs no line
                lines.append([f"{rate:g} kbps", *cells])
    heads = ["up to", *(f"best {one.metric}" for one in shown)]
    return table(
        heads, lines, words=len(shown), sortable=False, caption=f"{subset}: the best setting that sends at most"
    )


# --- curves ----------------------------------------------------------------------------------------------------------


def _curves(report: CodecReport, found: dict[str, list[Comparison]]) -> Iterator[Html]:
    for dataset in report.datasets:
        drawn = [one for one in found[dataset.subset] if one.points]
        if not drawn:
            continue
        picture = as_svg(
            rate_distortion(drawn), f"curves {dataset.subset}", f"Rate against quality on {dataset.subset}"
        )
        caption = (
            f"{_described(dataset)}. Settings of a family are joined; bars are 95 % intervals over clips; the dotted "
            "line is the best that is reached at each rate. Long dashes, with their interval as a band, are anchors "
            "that lose nothing; hollow marks are not ranked. ↑ more is better, ↓ less is."
        )
        yield drawing(picture, caption, wide=len(drawn) > 1)


def _repeated(report: CodecReport, of_subset: Mapping[str, Scores]) -> Html | None:
    """Tandem coding and packet loss, where they were measured."""
    made: list[Html] = []
    for kind, along, title in (
        ("tandem", "passes through the codec", "After several passes"),
        ("loss", "packets lost (%)", "When packets are lost"),
    ):
        for dataset in report.datasets:
            panels = _panels(of_subset.get(dataset.subset, Scores()), kind, report.protocol)
            if panels:
                picture = as_svg(steps(panels, along), f"{kind} {dataset.subset}", f"{title}: {dataset.subset}")
                made.append(drawing(picture, f"{title}, on {dataset.subset}.", wide=True))
    return section("repeated", "Passes and losses", made) if made else None


def _agreement(report: CodecReport) -> Html | None:
    """Which metrics order the settings alike; nothing where there are too few settings to say."""
    apart = ("kbps", "delay_ms", "encode_rtf", "decode_rtf")
    rows = [row for row in report.scores if row.metric not in apart and row.protocol == report.protocol]
    try:
        found = metric_correlations(Scores(tuple(rows)), report.protocol)
    except InputError:
        return None
    picture = as_svg(correlation_map(found), "agreement", "Rank correlation of each pair of metrics")
    caption = (
        f"Spearman's rank correlation across {counted(len(found.configurations), 'setting')} of the means over "
        f"subsets. {found.caution()}"
    )
    return section("agreement", "Which metrics say the same", drawing(picture, caption))


def _panels(scores: Scores, kind: str, protocol: str) -> dict[str, list[Line]]:
    found: dict[str, dict[str, dict[float, Row]]] = {}
    own = [row for row in scores if row.status in MEASURED]
    for row in own:
        name, _, amount = row.protocol.partition(":")
        if name == kind and "@" not in amount:
            found.setdefault(row.metric, {}).setdefault(row.system, {})[float(amount)] = row
    if kind == "loss":  # nothing lost is where the curve begins
        for row in own:
            if row.protocol == protocol and row.system in found.get(row.metric, {}):
                found[row.metric][row.system][0.0] = row
    return {
        metric: [
            Line(system, tuple(sorted(rows)), tuple(rows[at] for at in sorted(rows)))
            for system, rows in systems.items()
        ]
        for metric, systems in found.items()
    }


# --- the worst clips -------------------------------------------------------------------------------------------------


def _worst(report: CodecReport) -> Html | None:
    """A row of three pictures for each clip: the reference, the coded clip, and the difference."""
    if not report.worst:
        return None
    room = report.sound_budget // (2 * len(report.worst))
    note = paragraph(
        "For each codec the clip it did worst on. Red is level that the codec added, blue what it took away, 24 dB at "
        "the darkest. Both sounds are cut to the same span and scaled alike.",
        class_="quiet",
    )
    return section("worst", "The worst clips", note, [_worst_clip(clip, room) for clip in report.worst])


def _worst_clip(clip: WorstClip, room: int) -> Html:
    said = paragraph(
        tag("b", clip.system), f" on {plain(clip.id, 80)} of {clip.subset}: {clip.metric} ",
        f"{shown_value(clip.value, clip.metric)}, where its mean is {shown_value(clip.mean, clip.metric)}.",
    )  # fmt: skip
    try:
        heard = clip.fetch()
    except Exception as error:  # whatever a file or a stranger's codec does, the report is written
        why = f"no sound: {plain(str(error) or type(error).__name__, 160)}"
        return tag("div", said, paragraph(why, class_="small"))
    # The loudest seconds of the reference, and the same seconds of the coded clip at the same scale.
    before = cut(heard.reference, heard.rate)
    first = round(before.start * heard.rate)
    span = slice(first, first + len(before.samples))
    peak = float(abs(heard.reference[span]).max(initial=0.0)) or 1.0
    after = Sound((heard.coded[span] / peak).astype("float32"), heard.rate, before.start, before.whole)
    cards = []
    for name, sound in (("reference", before), (clip.system, after)):
        played = f"{clip.id}, {name}"
        kind = "clip query" if name == "reference" else "clip"
        cards.append(tag("div", tag("b", name), sound_parts(sound, sound.seconds, room, played, played), class_=kind))
    picture = image(difference_png(before.samples, after.samples, before.rate), f"What {clip.system} changed")
    cards.append(tag("div", tag("b", "difference"), picture, small("red: added, blue: lost"), class_="clip"))
    return tag("div", said, tag("div", cards, class_="clips"), class_="retrieval")


# --- how it was measured ---------------------------------------------------------------------------------------------

_COMMON = (
    "The rate is counted: bits of the payload over seconds of sound. What a decoder is told once (a header) is shown "
    "beside it where there is any. Names say the nominal rate.",
    "Clips are resampled to the codec's rate and back, so band limits are part of the result.",
    "Each codec has one delay, declared on its card or calibrated on several clips, which is taken out of every clip. "
    "No clip is aligned by itself.",
    "Metrics are means over the clips that have a value; intervals are the middle 95 % of resamples of the clips. For "
    "content identity and fidelity, where clips are neighbours of each other, they are left out in both roles "
    "instead. A value that cannot be measured is not a number: it is counted as not applicable or failed.",
    "A codec that failed on a clip is not ranked on that subset: a mean without the hard clips would win by failing, "
    "and to leave them out for all codecs would let one choose where it is compared.",
    "Distances have windows in samples, so that clips of several sampling rates have a distance, and an overall score, "
    "at each rate and none together.",
    "overall is the published score of Codec-SUPERB: the harmonic mean of (PESQ + 0.5) / 5, STOI, F0 correlation and "
    "sigmoid(1/d) of the distances, as far as they belong to the category. It saturates at low quality; "
    "overall_unsaturated does not.",
)
_PROTOCOLS = {
    "all": "Definitions are Earmark's, with the defects of the published code mended.",
    "gain_matched": "Before measuring, each coded clip was scaled to the energy of its reference.",
    "reference": "Definitions are those of the published code, word for word, which takes no delay out.",
}


def _explained(report: CodecReport) -> Iterator[Html]:
    yield bullets([_PROTOCOLS.get(report.protocol, ""), *_COMMON])
    cards = []
    for card in report.cards.values():
        causal = "" if card.causal is None else "yes" if card.causal else "no"
        cards.append(
            [card.name, card.title, card.version, str(card.rate), causal, card.licence, card.citation, card.notes]
        )
    heads = ["codec", "what it is", "version", "Hz", "causal", "licence", "citation", "notes"]
    yield folded("The codecs", table(heads, cards, left=3, words=4))
    datasets = [
        [one.subset, one.category, str(one.clips), f"{one.seconds:.0f}", tag("span", one.digest[:16], class_="hash")]
        for one in report.datasets
    ]
    heads = ["subset", "category", "clips", "seconds", "hash of the sounds"]
    yield folded("The datasets", table(heads, datasets, left=2, words=1))
    yield join(tag("h3", "Settings and versions"), pairs([*report.settings.items(), *report.versions.items()]))
