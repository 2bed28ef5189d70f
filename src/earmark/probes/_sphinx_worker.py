"""A process that writes down clips with PocketSphinx until its input ends. Run by `pocketsphinx`, never imported.

The package holds the interpreter lock while it decodes, so that several clips at once need several processes; started
as a script of its own, one never imports the program that called.

Arguments: options of the decoder as JSON. Input: for each clip the number of bytes (little-endian int32) and 16-bit
samples at 16 kHz. Output: for each clip the number of bytes and the text in UTF-8.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import Any, BinaryIO


def main(options: dict[str, Any], source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every clip of `source` in `sink`."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=16000, loglevel="FATAL", **options)
    while len(head := source.read(4)) == 4:
        samples = source.read(*struct.unpack("<i", head))
        decoder.reinit_feat()  # the noise tracker and the cepstral mean start anew: no clip depends on those before it
        decoder.start_utt()
        decoder.process_raw(samples, full_utt=True)
        decoder.end_utt()
        hypothesis = decoder.hyp()
        text = b"" if hypothesis is None else hypothesis.hypstr.encode()
        sink.write(struct.pack("<i", len(text)) + text)
        sink.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
