"""The former home of runs: names that were documented there still stand for what they stood for."""

from earmark.representations import Run, load_points, load_vectors, open_clips, plan, run
from earmark.representations.config import RunConfig
from earmark.runs import read_clips, read_record

__all__ = [
    "Run",
    "RunConfig",
    "load_config",
    "load_points",
    "load_vectors",
    "make_config",
    "open_clips",
    "plan",
    "read_clips",
    "read_record",
    "run",
]

load_config = RunConfig.load
make_config = RunConfig.make
