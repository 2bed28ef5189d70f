"""A run reads every recording twice: once for its hash and header, once for its samples."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

import earmark


def test_each_file_is_opened_at_most_twice(tmp_path: Path) -> None:
    for number in range(15):
        sound = 0.3 * np.random.default_rng(number).standard_normal(4000 + 100 * number)
        (tmp_path / "sounds" / f"k{number % 3}").mkdir(parents=True, exist_ok=True)
        soundfile.write(tmp_path / "sounds" / f"k{number % 3}" / f"{number}.wav", sound, 16000)
    opens: Counter[str] = Counter()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).startswith(str(tmp_path / "sounds")):
            opens[str(arguments[0])] += 1

    sys.addaudithook(audit)
    config = {"corpus": str(tmp_path / "sounds"), "extractors": ["logmel"], "into": str(tmp_path / "run")}
    steps = ["prepare", "embed", "evaluate"]  # the report lets its reader hear some of them
    earmark.run({**config, "steps": steps, "cache": "off"})
    files = [name for name in opens if name.endswith(".wav")]
    assert len(files) == 15
    assert max(opens[name] for name in files) <= 2
