"""What a codec did to the signal: distances and scores of a decoded clip against its reference.

    reference ── Sound ──┐
                         ├── measure(…) ── {"pesq": Measured(3.1), "f0_corr": Measured(None, "not_applicable", …), …}
    decoded ──── Sound ──┘

One metric that fails never loses the others.

Both waveforms have one rate and one length and are already aligned (`earmark.codecs.alignment`).
"""

from __future__ import annotations

from earmark.codecs.signal._sound import Sound
from earmark.codecs.signal.measuring import CORE, EXTRA, METRICS, Definitions, measure, require_packages

__all__ = ["CORE", "EXTRA", "METRICS", "Definitions", "Sound", "measure", "require_packages"]
