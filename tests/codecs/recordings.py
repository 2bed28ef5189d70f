"""Recorded speech, music and sounds that tests of codecs listen to: Debian packages and ESC-50, never copied here.

pocketsphinx-testdata: a LibriVox reader at 16 kHz. codec2-examples: amateur radio and test sentences at 8 kHz.
sonic-pi-samples: instruments and loops at 44.1 kHz. `scripts/services install` installs the three.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from earmark import audio

SHARE = Path("/usr/share")
READER = "pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
ESC50 = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "esc50"


def recording(name, *, rate=None, start=0.0, seconds=None):
    """Samples and rate of a file below /usr/share, or of ESC-50 by its number; the test is skipped where it is not."""
    if name.startswith("esc50:"):
        files = sorted((ESC50 / "audio").glob("*"))
        path = files[int(name.partition(":")[2])] if files else ESC50
    else:
        path = SHARE / name
    if not path.is_file():
        pytest.skip(f"{path} is not here: run scripts/services install")
    samples, rate = audio.read(path, rate=rate)
    first = round(start * rate)
    return samples[first : None if seconds is None else first + round(seconds * rate)], rate
