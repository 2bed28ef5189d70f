"""What a codec run would do: which clips are coded and measured already, which are not, and about how long it takes."""

from __future__ import annotations

from earmark.codecs.clip_work import MOST_SECONDS
from earmark.embedding.hearing import length_of
from earmark.pipeline.codec_coding import missing_names
from earmark.pipeline.codec_delays import chosen, known_delay
from earmark.pipeline.codec_packs import read_records
from earmark.pipeline.codec_state import CodecWork
from earmark.pipeline.plan import Line

__all__ = ["make_plan"]

# Measured on one core for the core metrics, to the right order of magnitude: a plan says minutes or hours.
_SECONDS_PER_SECOND = 0.08
_CODING_PER_SECOND = 0.03


def make_plan(work: CodecWork) -> list[Line]:
    """A line for each codec and step. Nothing is coded; a delay that is not known yet means nothing is measured yet."""
    samples = [one for one in work.samples() if length_of(one[0].clip) <= MOST_SECONDS]
    seconds = sum(length for subset in work.subsets for length in subset.seconds)
    workers = max(1, work.jobs)
    suitable = chosen([sample for sample, _ in samples]) if any(one.card.delay is None for one in work.systems) else []
    lines: list[Line] = []
    for system in work.systems:
        work.coded[system.name] = read_records(work.cache, system.coded_kind)
        known = work.coded[system.name].records
        todo = sum(sample.digest not in known for sample, _ in samples)
        pace = seconds / max(1, len(samples)) / workers
        lines.append(Line("code", "", system.name, todo, len(samples), "clips", todo * pace * _CODING_PER_SECOND))
        delay = known_delay(work.cache, system, suitable)
        left = len(samples)
        if delay is not None:
            work.delays[system.name] = delay
            for category in dict.fromkeys(work.categories.values()):
                kind = system.measured_kind(delay.seconds, category)
                work.measured[system.name, category] = read_records(work.cache, kind)
            left = sum(bool(missing_names(work, system, sample.digest)) for sample, _ in samples)
        lines.append(Line("measure", "", system.name, left, len(samples), "clips", left * pace * _SECONDS_PER_SECOND))
    return lines
