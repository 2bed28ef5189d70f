"""What codecs cost a recogniser and a speaker verifier, and what the tasks themselves cost.

    EARMARK_LYRA=/models/lyra python benchmarks/codec_tasks.py --into study
    python benchmarks/codec_tasks.py --into study --tasks asr --corpus "asterisk:en@16k?only=." --limit 120
    python benchmarks/codec_tasks.py --into study --cost

Without --corpus the speech is SYNTHETIC (espeak-ng): 24 voices read 6 sentences for `asv`, 40 sentences are read by six
voices in turn for `asr`. Every setting of a codec that runs here is tried unless --codecs names some. What was heard of
a codec is kept under --into: a run that was stopped goes on. Prints Markdown tables; behind them, for every family, the
steps in rate at which the first score gets no better, with the difference on the same clips.
"""

from __future__ import annotations

import argparse
import re
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from earmark.codecs import alignment, harness
from earmark.codecs.catalogue import availability, card_of, expand, families, open_codec
from earmark.corpora.clips import Clip
from earmark.corpora.source import open_corpus
from earmark.corpora.spoken import SENTENCES, open_spoken
from earmark.probes import Responses, Row, Task, open_task
from earmark.probes._scoring import draw_clips, ratio_interval
from earmark.probes.asr import count_errors

READERS = 6
CALIBRATED_ON = 8  # clips
COSTS = (
    "asr asr:moonshine:base asr:pocketsphinx asv emotion events content content:moonshine fidelity"
).split()  # fmt: skip


def every_setting() -> list[str]:
    """All settings of the catalogue that run here, the anchors first."""
    settings = [setting for family in families() for setting in expand([f"{family}@*"])]
    return [setting for setting in dict.fromkeys(settings) if not availability(card_of(setting))]


def coded_clips(name: str, clips: Sequence[Clip]) -> tuple[list[Clip], float]:
    """Clips through a codec, aligned by its one delay, with the same ids; and the measured kbit/s."""
    codec = open_codec(name)
    done = []
    for clip in clips:
        samples, rate = clip.read()
        done.append((clip, samples, rate, harness.round_trip(codec, samples, rate)))
    rates = {rate for _, _, rate, _ in done}
    if len(rates) != 1:
        raise SystemExit(f"The clips have rates {sorted(rates)}: one delay is found at one rate.")
    delay = alignment.declared(codec.card) or alignment.calibrate(
        [(samples, trip.samples) for _, samples, _, trip in done[:CALIBRATED_ON]], rates.pop()
    )
    made = [
        replace(clip, path=None, start=None, end=None, make=None, recipe="", rate=rate,
                samples=alignment.aligned(trip.samples, delay.seconds, rate, len(samples)))
        for clip, samples, rate, trip in done
    ]  # fmt: skip
    bits, seconds = sum(trip.bits for *_, trip in done), sum(trip.seconds for *_, trip in done)
    return made, bits / seconds / 1000.0


def heard(task: Task, name: str, clips: Sequence[Clip], folder: Path) -> tuple[Responses, float]:
    """What a task hears of clips after a codec ("" for none), from the folder where it is there already."""
    title = re.sub(r"[^a-z0-9.]+", "_", f"{task.card.name} {task.card.model} {name or 'none'}")
    place = folder / f"{title}-{len(clips)}.npz"
    if place.exists():
        with np.load(place) as kept:
            return Responses.from_arrays(kept), float(kept["kbps"])
    coded, kbps = coded_clips(name, clips) if name else (list(clips), float("nan"))
    responses = task.listen(coded, progress=True)
    np.savez(place, kbps=np.float64(kbps), **responses.to_arrays())
    return responses, kbps


def table(
    task: Task, clips: Sequence[Clip], columns: Sequence[tuple[str, str]], codecs: Iterable[str], folder: Path
) -> None:
    """A row for no codec and for each codec; a column for each metric and protocol, with its interval."""
    heads = [metric if protocol == "all" else f"{metric} {protocol}" for metric, protocol in columns]
    print(f"\n| codec | kbit/s | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}", flush=True)
    clean, _ = heard(task, "", clips, folder)
    answers: dict[str, tuple[Responses, float, float]] = {}
    for name in ("", *codecs):
        try:
            coded, kbps = heard(task, name, clips, folder)
        except Exception as error:  # a codec that fails costs its row
            print(f"| {name} | | {type(error).__name__}: {error} |", flush=True)
            continue
        rows = {(row.metric, row.protocol): row for row in task.score(clips, clean, coded)}
        cells = " | ".join(cell(rows[column]) for column in columns)
        print(f"| {name or 'no codec'} | {kbps:.2f} | {cells} |", flush=True)
        if name:
            answers[name] = coded, kbps, rows[columns[0]].value or 0.0
    report_steps(clips, clean, answers)


def report_steps(clips: Sequence[Clip], clean: Responses, answers: dict[str, tuple[Responses, float, float]]) -> None:
    """For every family, how many steps up in rate make the first score better, and the others with their difference."""
    by_family: dict[str, list[str]] = {}
    for name in answers:
        by_family.setdefault(name.partition("@")[0], []).append(name)
    good = total = 0
    print("\nSteps in rate at which the score gets no better:")
    for names in by_family.values():
        for low, high in pairwise(sorted(names, key=lambda name: answers[name][1])):
            total += 1
            worse = answers[high][2] - answers[low][2]
            good += worse <= 0
            if worse > 0:
                between = word_difference(clips, clean, answers[low][0], answers[high][0])
                print(f"- {low} to {high}: {100 * worse:+.1f} points{between}")
    print(f"{good} of {total} steps are none of these.")


def word_difference(clips: Sequence[Clip], clean: Responses, low: Responses, high: Responses) -> str:
    """The interval of a difference of dWER on the same clips; nothing for tasks without texts."""
    if clean.texts is None:
        return ""
    rows = [responses.rows() for responses in (clean, low, high)]
    kept = [clip for clip in clips if all(clip.id in known for known in rows)]
    texts = [
        [responses.texts[known[clip.id]] for clip in kept]
        for responses, known in zip((clean, low, high), rows, strict=True)
        if responses.texts is not None
    ]
    before, after = count_errors(texts[0], texts[1]), count_errors(texts[0], texts[2])
    least, most = ratio_interval(after.errors - before.errors, before.words, draw_clips(kept, 1000, 0))
    return "" if least is None or most is None else f" [{100 * least:.1f}, {100 * most:.1f}]"


def cell(row: Row) -> str:
    if row.value is None:
        return row.status
    scale, digits = (100.0, 1) if row.metric.partition(":")[0] in ("eer", "wer", "dwer") else (1.0, 3)
    numbers = [f"{scale * number:.{digits}f}" for number in (row.value, row.low, row.high) if number is not None]
    return numbers[0] if len(numbers) < 3 else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def sentences(count: int) -> list[Clip]:
    """Each sentence once, by the voices in turn; clips are drawn for intervals, not voices."""
    read = list(open_spoken(voices=READERS, sentences=count))
    voices = list(dict.fromkeys(clip.group for clip in read))
    by_both = {(clip.group, clip.label): clip for clip in read}
    chosen = [by_both[voices[number % len(voices)], SENTENCES[number]] for number in range(count)]
    return [replace(clip, group=None) for clip in chosen]


def spread(clips: Sequence[Clip], limit: int | None) -> list[Clip]:
    """At most so many clips, evenly from the first to the last."""
    if limit is None or len(clips) <= limit:
        return list(clips)
    return [clips[row] for row in np.linspace(0, len(clips) - 1, limit).round().astype(int)]


def costs(clips: Sequence[Clip]) -> None:
    """CPU seconds of each task for a second of sound, and for the scores of one more codec."""
    seconds = sum(len(samples) / rate for samples, rate in (clip.read() for clip in clips))
    print(
        f"\n{len(clips)} clips, {seconds:.0f} s\n\n| task | hears with | CPU s / s | s / s | CPU s to score a codec |"
    )
    print("|---|---|---|---|---|")
    for spec in COSTS:
        task = open_task(spec)
        began, used = time.perf_counter(), cpu_seconds()
        answers = task.listen(clips)
        wall, cpu = time.perf_counter() - began, cpu_seconds() - used
        task.score(clips, answers, answers)
        used = cpu_seconds()
        task.score(clips, answers, answers)
        line = (f"{cpu / seconds:.3f}", f"{wall / seconds:.3f}", f"{cpu_seconds() - used:.2f}")
        print(f"| `{spec}` | {task.card.model} | {' | '.join(line)} |", flush=True)


def cpu_seconds() -> float:
    """Of this process and of the worker processes that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="a folder for what was heard")
    parser.add_argument("--codecs", help="settings, separated by commas (default: all that run here)")
    parser.add_argument("--corpus", help="speech to code (default: synthetic sentences)")
    parser.add_argument("--limit", type=int, help="clips of --corpus, evenly chosen")
    parser.add_argument("--voices", type=int, default=24)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES), help="synthetic ones, for the recogniser")
    parser.add_argument("--asr", default="asr", help="the recogniser, such as asr:moonshine:base or asr:pocketsphinx")
    parser.add_argument("--tasks", default="asv,asr")
    parser.add_argument("--cost", action="store_true", help="what the tasks cost, instead of what codecs cost")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    given_clips = spread(list(open_corpus(given.corpus)), given.limit) if given.corpus else None
    if given.cost:
        costs(given_clips or list(open_spoken(voices=given.voices, sentences=6)))
        return
    codecs = every_setting() if given.codecs is None else expand(given.codecs.split(","))
    if "asv" in given.tasks.split(","):
        columns = [(metric, kind) for kind in ("clean_enrol", "coded_enrol") for metric in ("eer", "min_dcf")]
        clips = given_clips or list(open_spoken(voices=given.voices, sentences=6))
        table(open_task("asv"), clips, [*columns, ("speaker_similarity", "all")], codecs, given.into)
    if "asr" in given.tasks.split(","):
        clips = given_clips or sentences(given.sentences)
        table(open_task(given.asr), clips, [("dwer", "all"), ("wer", "all")], codecs, given.into)


if __name__ == "__main__":
    main()
