"""Importing and listing cost nothing: measured by what is loaded, not by a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "sklearn", "scipy", "numba", "pyarrow", "matplotlib", "umap", "pandas")
SOURCE = Path(__file__).resolve().parents[1] / "src"

LIGHT = {
    "the package": "import earmark",
    "its version": "import earmark; earmark.__version__",
    "its names": "import earmark; dir(earmark); earmark.__all__",
    "errors": "import earmark.errors",
    "the score table": "import earmark; earmark.Scores(); earmark.load_scores; import earmark.scores",
    "the metrics listed": "from earmark.scores import METRICS, metric_facts; list(METRICS); metric_facts('P@3')",
    "the catalogue": "from earmark.metrics import catalogue as c; c.plan(None, (1, 5)); c.needs(c.KNOWN)",
}


def loaded(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter after running `code`."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("what", LIGHT)
def test_loads_nothing_heavy(what: str) -> None:
    assert loaded(LIGHT[what]) & set(HEAVY) == set()


def test_the_package_alone_does_not_even_load_numpy() -> None:
    assert "numpy" not in loaded("import earmark; dir(earmark)")


def test_an_evaluation_loads_no_torch_and_clusters_only_when_asked() -> None:
    code = (
        "import numpy as np, earmark\n"
        "earmark.evaluate(np.eye(8), list('aabbccdd'), metrics=['P@1', 'GSR', 'CS'], permutations=2, bootstrap=2)"
    )
    assert loaded(code) & {"torch", "sklearn", "pyarrow", "matplotlib", "umap", "pandas"} == set()


def test_every_public_name_loads() -> None:
    loaded("import earmark\nfor name in earmark.__all__: getattr(earmark, name)")


def test_an_unknown_name_is_an_attribute_error() -> None:
    import earmark

    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        earmark.evaluat  # noqa: B018
