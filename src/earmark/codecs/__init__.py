"""Codecs: what is kept of a sound, and at what rate."""

from earmark.codecs.catalogue import card_of, expand, open_codec, settings
from earmark.codecs.contract import Codec, CodecCard, CodecFailure, Coded, Measured
from earmark.codecs.harness import RoundTrip, round_trip

__all__ = [
    "Codec",
    "CodecCard",
    "CodecFailure",
    "Coded",
    "Measured",
    "RoundTrip",
    "card_of",
    "expand",
    "open_codec",
    "round_trip",
    "settings",
]
