"""The published figures for ESC-50, from audio: log-mel, flattened, in three distances."""

from __future__ import annotations

from pathlib import Path

import pytest

import earmark
from earmark.pipeline import load_vectors, run

MANIFEST = Path(__file__).resolve().parents[3] / "shared" / "data" / "esc50" / "manifest.csv"
METRICS = ("P@1", "P@5", "GSR", "CSR", "CS", "CSCF")
FIGURES = {
    "cosine": (31.75, 22.73, 27.89, 17.09, 40.11, 20.73),
    "euclidean": (31.45, 22.15, 36.59, 25.76, 43.17, 12.00),
    "spearman": (21.35, 14.95, 30.54, 22.88, 44.99, 16.04),
}
"""Percent, with ordinal ties under spearman; a right build is within 0.15."""
AVERAGE = (21.00, 15.07, 31.18, 23.74, 45.52, 17.06)
"""Under spearman with average ties."""


@pytest.mark.slow
@pytest.mark.skipif(not MANIFEST.exists(), reason="ESC-50 does not lie beside the checkout")
def test_a_run_on_esc50_gives_the_published_figures(tmp_path: Path) -> None:
    result = run({
        "corpus": str(MANIFEST), "extractors": "logmel", "pooling": "flatten", "distances": list(FIGURES),
        "ties": "ordinal", "metrics": list(METRICS), "into": str(tmp_path / "run"),
        "cache": {"url": str(tmp_path / "cache")}, "steps": ["prepare", "embed", "evaluate"], "intervals": "none",
    })  # fmt: skip
    assert not result.failures
    for distance, figures in FIGURES.items():
        for metric, figure in zip(METRICS, figures, strict=True):
            found = result.scores.value(metric, subset="ES1", system="logmel flatten", distance=distance)
            assert 100 * found == pytest.approx(figure, abs=0.15), (distance, metric)
    vectors = load_vectors(tmp_path / "run", "ES1", "logmel flatten")
    scores = earmark.evaluate(
        vectors.values, vectors.labels, distance="spearman", ties="average", metrics=METRICS, intervals="none"
    )
    assert [100 * scores.value(name) for name in METRICS] == pytest.approx(AVERAGE, abs=0.15)
