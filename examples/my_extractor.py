"""A model of your own: anything with `extract` will do.

earmark check examples/my_extractor.py:BandEnergies
earmark run --corpus synth:tiny --extractor examples/my_extractor.py:BandEnergies,logmel --into run
"""

import numpy as np


class BandEnergies:
    """The energy in eight bands of the spectrum, fifty times a second."""

    card = {
        "name": "bands", "short_name": "BE", "title": "Energy in eight bands", "licence": "CC0-1.0",
        "rate": 16000, "dimension": 8, "frame_rate": 50.0,
    }  # fmt: skip

    def extract(self, waveforms):
        """Arrays [T, 8], one for each waveform: mono float32 at 16 kHz, peak 1."""
        return [self.frames(np.pad(waveform, (0, -len(waveform) % 320))) for waveform in waveforms]

    def frames(self, samples):
        bands = np.array_split(np.abs(np.fft.rfft(samples.reshape(-1, 320))), 8, axis=1)
        return np.log(1e-6 + np.stack([band.sum(axis=1) for band in bands], axis=1))
