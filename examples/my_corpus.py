"""A corpus of your own in one file: earmark run --corpus my_corpus:my_corpus --extractor logmel --into results/

A clip may also name a file (`path=`, with `start=` and `end=` in seconds) instead of the function that makes it.
"""

from functools import partial

import numpy as np

from earmark.corpora import Clip, Corpus, CorpusCard

NOTES = {"low": 220.0, "middle": 440.0, "high": 880.0}


def play(pitch: float, take: int) -> tuple[np.ndarray, int]:
    seconds = np.arange(8000) / 16_000
    noise = np.random.default_rng(take).normal(0, 0.1, len(seconds))
    return (np.sin(2 * np.pi * pitch * seconds) + noise).astype(np.float32), 16_000


def my_corpus() -> Corpus:
    clips = [
        Clip(f"{label}/{take}", label, make=partial(play, pitch, take), recipe=f"my notes 1 {pitch} {take}")
        for label, pitch in NOTES.items()
        for take in range(6)
    ]
    return Corpus(CorpusCard("notes", title="Three notes with noise", licence="CC0-1.0", status="synthetic"), clips)
