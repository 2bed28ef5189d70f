"""The embedded default corpus: SYNTHETIC sounds with the shape of VocSim, computed from a seed."""

from earmark.corpora.synth._suite import SIZES, SUBSETS, VERSION, open_synth

__all__ = ["SIZES", "SUBSETS", "VERSION", "open_synth"]
