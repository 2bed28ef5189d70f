"""Models that hear: waveforms in, frames out. Listing them loads none.

from earmark.extractors import check_extractor, open_extractor

frames = open_extractor("logmel").extract([waveform])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.extractors.catalogue import EXTRACTORS, cards, installed, is_ready, open_extractor, weights_of
    from earmark.extractors.conformance import check_extractor
    from earmark.extractors.contract import Extractor, ExtractorCard, Frames, LayeredExtractor, Waveform
    from earmark.extractors.model_cards import CARDS

_HOME = {
    "CARDS": "model_cards",
    "EXTRACTORS": "catalogue",
    "Extractor": "contract",
    "ExtractorCard": "contract",
    "Frames": "contract",
    "LayeredExtractor": "contract",
    "Waveform": "contract",
    "cards": "catalogue",
    "check_extractor": "conformance",
    "installed": "catalogue",
    "is_ready": "catalogue",
    "open_extractor": "catalogue",
    "weights_of": "catalogue",
}

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

__getattr__ = lazy_names("earmark.extractors", _HOME)
