"""What a model's answers depend on: the one place where that is found out, for extractors, codecs and tasks alike.

    code         sources of Earmark's extractors and of the user's own modules, followed through their imports
    libraries    versions of the installed packages that are really at work in it
    files        what parameters name, what is opened while the model is opened, weights whose names it holds or its
                 code spells out, and whatever it states in an attribute `files`; ONNX files with their external data

`opening` makes a model and finds out; `Reads.key` is the hash of all of it. Files that are opened only when the model
first hears sound are found then, and kept in the cache beside the vectors (`identity.later`).
"""

from earmark.pipeline.identity.later import Later, resolved
from earmark.pipeline.identity.reads import Reads, opening, stated_by

__all__ = ["Later", "Reads", "opening", "resolved", "stated_by"]
