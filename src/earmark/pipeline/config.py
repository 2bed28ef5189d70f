"""The config of a representation run, which lives in `earmark.representations.config`."""

from earmark.representations.config import STEPS, DtwOptions, ExtractorEntry, RunConfig
from earmark.runs.config import CorpusEntry, Policy

__all__ = ["STEPS", "CorpusEntry", "DtwOptions", "ExtractorEntry", "Policy", "RunConfig", "load_config", "make_config"]

load_config = RunConfig.load
make_config = RunConfig.make
