"""A codec of your own: anything with `encode` and `decode` will do.

earmark check examples/my_codec.py:EightBits
earmark codec run --codecs examples/my_codec.py:EightBits,opus@32 --corpus sounds/ --category speech --into run
"""

import numpy as np


class EightBits:
    """Eight bits a sample, in packets of 20 ms."""

    card = {
        "name": "eight_bits@64", "family": "eight_bits", "title": "Eight bits a sample", "licence": "CC0-1.0",
        "rate": 8000, "kbps": 64.0, "frame_rate": 50.0, "delay": 0,
    }  # fmt: skip

    def encode(self, waveform):
        """Packets of bytes for a mono float32 waveform at 8 kHz."""
        data = np.clip(np.rint(waveform * 127), -127, 127).astype(np.int8).tobytes()
        return [data[start : start + 160] for start in range(0, len(data), 160)]

    def decode(self, packets):
        """The waveform, from the packets alone."""
        return (np.frombuffer(b"".join(packets), np.int8) / 127).astype(np.float32)
