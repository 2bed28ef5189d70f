"""What is to be measured: clips with labels, from folders, manifests, the hub, the suites of papers, or a function.

corpus = open_corpus("recordings/")       see `earmark.corpora.source` for what may be given
Corpus(CorpusCard("mine"), [Clip("a", label="robin", path="a.wav"), …])
"""

from earmark.corpora.clips import Clip, Corpus, CorpusCard, groups_of, labels_of
from earmark.corpora.manifest import read_manifest, write_manifest
from earmark.corpora.source import CORPORA, open_corpus

__all__ = [
    "CORPORA",
    "Clip",
    "Corpus",
    "CorpusCard",
    "groups_of",
    "labels_of",
    "open_corpus",
    "read_manifest",
    "write_manifest",
]
