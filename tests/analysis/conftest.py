"""What tests of the analysis share."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.analysis import predict as module
from earmark.analysis.matrix import Matrix


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> list[Matrix]:
    """The matrices that predictions were made from, in the order in which they were."""
    seen: list[Matrix] = []
    predict_rows = module.predict_rows

    def watch(history: Matrix, *args: Any, **kwargs: Any) -> Any:
        seen.append(history)
        return predict_rows(history, *args, **kwargs)

    monkeypatch.setattr(module, "predict_rows", watch)
    return seen
