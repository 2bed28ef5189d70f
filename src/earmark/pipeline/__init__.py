"""From a config to a folder of results: content-addressed steps that can be killed and continue where they stopped."""

from earmark.pipeline.config import RunConfig, load_config, make_config
from earmark.pipeline.folder import load_points, load_vectors, open_clips, read_clips, read_record
from earmark.pipeline.runs import Run, plan, run

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
