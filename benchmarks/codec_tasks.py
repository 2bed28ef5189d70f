"""What codecs cost a speaker verifier and a recogniser, on SYNTHETIC read sentences (espeak-ng).

    EARMARK_LYRA=/models/lyra python benchmarks/codec_tasks.py --into study

Speaker verification: 24 voices read 6 sentences, all pairs are tried. Recognition: 40 sentences, each read by one of
four voices. What was heard of a codec is kept under --into: a run that was stopped goes on. Prints Markdown tables;
--codecs, --voices and --sentences make it smaller.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from earmark.codecs import alignment, harness
from earmark.codecs.catalogue import open_codec
from earmark.corpora.clips import Clip
from earmark.corpora.spoken import SENTENCES, VOICES, open_spoken
from earmark.probes import Responses, Row, Task, open_task

CODECS = (
    "codec2@0.7 codec2@1.2 codec2@3.2 lyra@3.2 lyra@6 lyra@9.2 opus@6 opus@12 opus@24 mp3@8 mp3@16 mp3@32 "
    "amr_nb@4.75 amr_nb@12.2"
).split()
UNDERSTOOD = ("en-us+f2", "en-gb+edward", "en-gb+benjamin", "en-us+michel")
"""Of the 32 voices, the four that PocketSphinx understands best."""
RATE = 16000
CALIBRATED_ON = 8  # clips


def coded_clips(name: str, clips: Sequence[Clip]) -> tuple[list[Clip], float]:
    """Clips through a codec, aligned by its one delay, with the same ids; and the measured kbit/s."""
    codec = open_codec(name)
    trips = [(clip, clip.read(RATE)[0]) for clip in clips]
    done = [(clip, samples, harness.round_trip(codec, samples, RATE)) for clip, samples in trips]
    delay = alignment.declared(codec.card) or alignment.calibrate(
        [(samples, trip.samples) for _, samples, trip in done[:CALIBRATED_ON]], RATE
    )
    made = [
        Clip(clip.id, clip.label, clip.subset, clip.group, rate=RATE,
             samples=alignment.aligned(trip.samples, delay.seconds, RATE, len(samples)))
        for clip, samples, trip in done
    ]  # fmt: skip
    bits, seconds = sum(trip.bits for *_, trip in done), sum(trip.seconds for *_, trip in done)
    return made, bits / seconds / 1000.0


def heard(task: Task, name: str, clips: Sequence[Clip], folder: Path) -> tuple[Responses, float]:
    """What a task hears of clips after a codec ("" for none), from the folder where it is there already."""
    place = folder / f"{task.card.name}-{re.sub(r'[^a-z0-9.]+', '_', name) or 'none'}-{len(clips)}.npz"
    if place.exists():
        with np.load(place) as kept:
            return Responses.from_arrays(kept), float(kept["kbps"])
    coded, kbps = coded_clips(name, clips) if name else (list(clips), 16.0 * RATE / 1000.0)
    found = task.listen(coded, progress=True)
    np.savez(place, kbps=np.float64(kbps), **found.to_arrays())
    return found, kbps


def table(
    task: Task, clips: Sequence[Clip], columns: Sequence[tuple[str, str]], codecs: Iterable[str], folder: Path
) -> None:
    """A row for no codec and for each codec; a column for each metric and protocol, with its interval."""
    heads = [metric if protocol == "all" else f"{metric} {protocol}" for metric, protocol in columns]
    print(f"\n| codec | kbit/s | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}", flush=True)
    clean, _ = heard(task, "", clips, folder)
    for name in ("", *codecs):
        coded, kbps = heard(task, name, clips, folder)
        found = {(one.metric, one.protocol): one for one in task.score(clips, clean, coded)}
        cells = " | ".join(cell(found[column]) for column in columns)
        print(f"| {name or 'no codec'} | {kbps:.2f} | {cells} |", flush=True)


def cell(one: Row) -> str:
    if one.value is None:
        return one.status
    scale, digits = (100.0, 1) if one.metric.partition(":")[0] in ("eer", "wer", "dwer") else (1.0, 3)
    numbers = [f"{scale * number:.{digits}f}" for number in (one.value, one.low, one.high) if number is not None]
    return numbers[0] if len(numbers) < 3 else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def sentences(count: int) -> list[Clip]:
    """Each sentence once, by the understood voices in turn. Four voices are too few to draw from: clips are drawn."""
    read = {(clip.group, clip.label): clip for clip in open_spoken(voices=len(VOICES), sentences=count)}
    chosen = [read[UNDERSTOOD[number % len(UNDERSTOOD)], SENTENCES[number]] for number in range(count)]
    return [replace(clip, group=None) for clip in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="a folder for what was heard")
    parser.add_argument("--codecs", default=",".join(CODECS))
    parser.add_argument("--voices", type=int, default=24)
    parser.add_argument("--sentences", type=int, default=len(SENTENCES), help="of the recogniser's clips")
    parser.add_argument("--effort", default="full", help="of PocketSphinx: full or fast")
    parser.add_argument("--tasks", default="asv,asr")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    codecs = [name for name in given.codecs.split(",") if name]
    if "asv" in given.tasks.split(","):
        columns = [(metric, kind) for kind in ("coded_enrol", "clean_enrol") for metric in ("eer", "min_dcf")]
        clips = list(open_spoken(voices=given.voices, sentences=6))
        table(open_task("asv"), clips, [*columns, ("speaker_similarity", "all")], codecs, given.into)
    if "asr" in given.tasks.split(","):
        table(
            open_task("asr", effort=given.effort),
            sentences(given.sentences),
            [("dwer", "all"), ("wer", "all")],
            codecs,
            given.into,
        )


if __name__ == "__main__":
    main()
