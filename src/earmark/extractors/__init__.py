"""Models that hear: waveforms in, frames out. Listing them loads none.

from earmark.extractors import check_extractor, open_extractor

frames = open_extractor("logmel").extract([waveform])
"""

from earmark.extractors.catalogue import EXTRACTORS, cards, installed, is_ready, open_extractor, weights_of
from earmark.extractors.conformance import check_extractor
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, LayeredExtractor, Waveform
from earmark.extractors.model_cards import CARDS

__all__ = [
    "CARDS",
    "EXTRACTORS",
    "Extractor",
    "ExtractorCard",
    "Frames",
    "LayeredExtractor",
    "Waveform",
    "cards",
    "check_extractor",
    "installed",
    "is_ready",
    "open_extractor",
    "weights_of",
]
