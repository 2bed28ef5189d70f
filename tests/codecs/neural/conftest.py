"""Tiny checkpoints, each written once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where the tiny checkpoint of a setting lies. Tests that change one copy it first."""
    from tests.codecs.neural import tiny_codecs

    @cache
    def written(name: str) -> Path:
        write = (tiny_codecs.WRITERS | tiny_codecs.LIBRARY)[name]
        return write(tmp_path_factory.mktemp("tiny") / name.partition("@")[0])

    return written
