"""A sound that goes through the same codec again and again, as it does on the way through several networks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from earmark.codecs.alignment import aligned
from earmark.codecs.contract import Codec, CodecFailure, Waveform
from earmark.codecs.harness import round_trip
from earmark.errors import UsageError

MORE_BITS = 1.25
"""How much more than the first time a later pass may send: a variable rate may rise, a codec may not learn."""


def tandem(
    codec: Codec, samples: ArrayLike, rate: int, passes: int, delay: float, bits: int | None = None
) -> Iterator[Waveform]:
    """The clip after 1, 2, … `passes` passes, each time aligned by `delay` seconds and cut to the clip's length.

    Alignment after every pass keeps delays from adding up; the framing of a pass is that of the one before it, which
    is the kindest case for codecs with frames. `bits` are those that the clip cost when it was counted: CodecFailure
    where a pass sends more than a quarter more.
    """
    if passes < 1:
        raise UsageError(f"{passes} passes are not possible: give at least 1.")
    heard: Waveform = np.asarray(samples, dtype=np.float32)
    length = len(heard)
    for _ in range(passes):
        made = round_trip(codec, heard, rate)
        if bits is not None and made.bits > MORE_BITS * bits + 512:
            raise CodecFailure(f"{codec.card.name}: it sends {made.bits} bits where {bits} were counted.")
        heard = aligned(made.samples, delay, rate, length)
        yield heard
