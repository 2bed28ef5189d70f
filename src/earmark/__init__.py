"""Earmark: what frozen audio models hear, measured without training anything.

The names below load on first use, so that `import earmark` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from earmark._version import __version__
from earmark.lazy import lazy_names

if TYPE_CHECKING:
    from earmark.analysis.predict import predict
    from earmark.analysis.study import analyze
    from earmark.codecs.catalogue import open_codec
    from earmark.codecs.runs.config import CodecConfig
    from earmark.codecs.runs.runner import codec
    from earmark.corpora.clips import Clip, Corpus, CorpusCard
    from earmark.corpora.source import open_corpus
    from earmark.embedding import embed_audio as embed
    from earmark.errors import EarmarkError
    from earmark.evaluation import compare, evaluate, hubness
    from earmark.extractors.catalogue import open_extractor
    from earmark.generated.api import fidelity
    from earmark.generated.sanity import sanity
    from earmark.report.maps import map_clips
    from earmark.report.tabulation import tabulate
    from earmark.representations import load_vectors, run
    from earmark.representations.config import RunConfig
    from earmark.scores import Scores, load_scores
    from earmark.vectors import read_distances, read_labelled, read_vectors

_HOME = {
    "Clip": "corpora.clips",
    "CodecConfig": "codecs.runs.config",
    "Corpus": "corpora.clips",
    "CorpusCard": "corpora.clips",
    "EarmarkError": "errors",
    "RunConfig": "representations.config",
    "Scores": "scores",
    "analyze": "analysis.study",
    "codec": "codecs.runs.runner",
    "compare": "evaluation",
    "embed": "embedding.embed:embed_audio",
    "evaluate": "evaluation",
    "fidelity": "generated.api",
    "hubness": "evaluation",
    "load_scores": "scores",
    "load_vectors": "representations",
    "map_clips": "report.maps",
    "open_codec": "codecs.catalogue",
    "open_corpus": "corpora.source",
    "open_extractor": "extractors.catalogue",
    "predict": "analysis.predict",
    "read_distances": "vectors",
    "read_labelled": "vectors",
    "read_vectors": "vectors",
    "run": "representations",
    "sanity": "generated.sanity",
    "tabulate": "report.tabulation",
}
"""Where each name lives, and what it is called there if that is something else."""

__all__ = [
    "Clip", "CodecConfig", "Corpus", "CorpusCard", "EarmarkError", "RunConfig", "Scores", "__version__", "analyze",
    "codec", "compare", "embed", "evaluate", "fidelity", "hubness", "load_scores", "load_vectors", "map_clips",
    "open_codec", "open_corpus", "open_extractor", "predict", "read_distances", "read_labelled", "read_vectors", "run",
    "sanity", "tabulate",
]  # fmt: skip


__getattr__ = lazy_names("earmark", _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
