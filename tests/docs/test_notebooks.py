"""The gallery of notebooks runs in a kernel, and shows what is saved; progress in a kernel and in a log file."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = _script()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    with gallery.kernel() as running:
        yield running


@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_saved(path: Path, kernel: Any) -> None:
    saved = json.loads(path.read_text(encoding="utf-8"))
    shown = gallery.shown_text(gallery.executed(path, kernel))
    assert shown == gallery.shown_text(saved), f"python scripts/notebooks.py notebooks/{path.name} saves it anew"
    assert any(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_figure_of_a_notebook_is_a_picture(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    figures = [output for output in outputs if "<Figure" in "".join(output.get("data", {}).get("text/plain", ""))]
    assert all("image/png" in figure["data"] for figure in figures)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_becomes_a_page_and_stays_small(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text, images = gallery.page(path, notebook)
    assert text.startswith(f"# {gallery.title(notebook)}\n\n*For people")
    assert all(f"({name})" in text and data.startswith(b"\x89PNG") for name, data in images.items())
    assert path.stat().st_size < 150_000
    assert gallery.title(notebook) in gallery.gallery({path: notebook})


WORK = """\
import time
from earmark import progress
from earmark.progress import tracked
progress.DELAY = 0.05
for number in tracked(range(8), "embed", "clip", progress=True):
    time.sleep(0.05)
print("done")
"""


@pytest.mark.xdist_group("notebooks")
def test_progress_in_a_kernel_is_a_widget_and_not_a_line_for_each_step(kernel: Any, tmp_path: Path) -> None:
    import nbformat

    path = tmp_path / "progress.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(WORK)]), path)
    outputs = gallery.executed(path, kernel).cells[0].outputs
    kinds = [output.output_type for output in outputs]
    assert gallery.shown_text({"cells": [{"cell_type": "code", "outputs": outputs}]})[0].endswith("done\n")
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert kinds.count("display_data") <= 1


def test_progress_in_a_log_file_is_few_plain_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as stream:
        subprocess.run(
            [sys.executable, "-c", WORK], stderr=stream, stdout=subprocess.DEVNULL, env=os.environ, check=True
        )
    text = log.read_text()
    assert "\r" not in text
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 2
