"""The values that the page on VAE and AE calls printed are those of the paper's tables."""

from __future__ import annotations

import re
from pathlib import Path

from earmark.published import read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "baselines.md"


def test_printed_values_are_the_published_ones() -> None:
    published = {
        (row["metric"], row["distance"], row["method"]): float(row["value_pct"])
        for row in read("vocsim_full_results")
        if row["subset"] == "ES1" and row["method"] in ("VC", "AC")
    }
    rows = re.findall(
        r"^\| ([\w@]+)(?: ↓)?, (\w+) \| ([\d.]+) \|[^|]+\|[^|]+\| ([\d.]+) \|", PAGE.read_text("utf-8"), re.M
    )
    assert len(rows) == 18
    for metric, distance, *values in rows:
        expected = [published[metric, distance[0].upper(), method] for method in ("VC", "AC")]
        assert [float(value) for value in values] == expected, (metric, distance)
