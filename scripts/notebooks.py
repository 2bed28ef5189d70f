"""The gallery of notebooks: run again, and made into pages of the documentation.

    python scripts/notebooks.py                         run every notebook of notebooks/ and save what it shows
    python scripts/notebooks.py notebooks/hubness.ipynb    one of them

A hook of mkdocs: `notebooks/NAME.md` is made from `notebooks/NAME.ipynb` when the site is built, with its figures, and
lies nowhere. tests/docs/test_notebooks.py runs the notebooks and compares the text that they show.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
TIMEOUT = 100  # seconds for a cell


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def title(notebook: dict[str, Any]) -> str:
    """The heading of the first cell."""
    return _text(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")


def summary(notebook: dict[str, Any]) -> str:
    """The paragraph under the heading, which says for whom it is."""
    return _text(notebook["cells"][0]["source"]).split("\n\n")[1].strip("*\n ")


# --- run --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def kernel() -> Iterator[Any]:
    """A kernel, as Jupyter starts it, for one notebook after the other."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.util import run_sync

    backend = "module://matplotlib_inline.backend_inline"
    with tempfile.TemporaryDirectory() as folder:
        manager = AsyncKernelManager(kernel_name="python3")
        environment = dict(os.environ, EARMARK_CACHE=f"{folder}/cache", MPLBACKEND=backend, COLUMNS="100")
        run_sync(manager.start_kernel)(env=environment, cwd=folder)
        try:
            yield manager
        finally:
            run_sync(manager.shutdown_kernel)(now=True)


def executed(path: Path, manager: Any) -> Any:
    """A notebook with the outputs that it has now, run in an empty folder. An error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    start = nbformat.v4.new_code_cell("%reset -f\nimport os, tempfile\nos.chdir(tempfile.mkdtemp(dir='.'))")
    notebook.cells.insert(0, start)
    NotebookClient(notebook, timeout=TIMEOUT, km=manager).execute()
    del notebook.cells[0]
    return _plain(notebook)


def _plain(notebook: Any) -> Any:
    """Without what changes from run to run: times, numbers of cells, states of widgets."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                output.pop("execution_count", None)
                output.update({"execution_count": None} if output.output_type == "execute_result" else {})
    return notebook


def shown_text(notebook: Any) -> list[str]:
    """What each cell of code prints, and the plain text of its value."""
    texts = []
    for cell in notebook["cells"]:
        parts = [
            _text(output.get("text") or output.get("data", {}).get("text/plain", ""))
            for output in cell.get("outputs", ())
            if output.get("name") != "stderr"
        ]
        if cell["cell_type"] == "code":
            texts.append("".join(parts))
    return texts


def _text(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


# --- pages ------------------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    read = {path: json.loads(path.read_text(encoding="utf-8")) for path in notebooks()}
    files.append(File.generated(config, "notebooks/index.md", content=gallery(read)))
    for path, notebook in read.items():
        text, images = page(path, notebook)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        files.append(File.generated(config, f"notebooks/{path.name}", content=path.read_bytes()))
        for name, data in images.items():
            files.append(File.generated(config, f"notebooks/{name}", content=data))
    return files


def gallery(read: dict[Path, Any]) -> str:
    """The page that lists all notebooks."""
    lines = [f"- [{title(notebook)}]({path.stem}.md). {summary(notebook)}" for path, notebook in read.items()]
    return "\n".join(
        [
            "# Gallery of notebooks\n",
            "*For people who work in Jupyter and would rather change an example than read about options.*\n",
            "Each notebook lies in the folder `notebooks/` of the repository, takes seconds and downloads nothing. "
            "The outputs are real: the tests run every notebook and compare the text that it shows. They need "
            "`pip install '.[notebook]'` and Jupyter.\n",
            *lines,
            "\n[Work in a notebook](../notebook.md) explains frames, tables and figures.\n",
        ]
    )


def page(path: Path, notebook: Any) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its figures by name."""
    parts: list[str] = []
    images: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, path.stem, images))
    parts.insert(1, f"[Download this notebook]({path.name})")
    return "\n\n".join(parts) + "\n", images


def _shown(output: Any, name: str, images: dict[str, bytes]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        image = f"{name}-{len(images)}.png"
        images[image] = base64.b64decode(_text(data["image/png"]))
        return f"![What the cell above draws]({image})"
    if "text/html" in data:
        return "\n".join(line for line in _text(data["text/html"]).splitlines() if line.strip())
    text = _text(output.get("text") or data.get("text/plain", "")).rstrip()
    return f"```text\n{text}\n```"


def main() -> None:
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebooks to run (default: all)")
    with kernel() as running:
        for path in parser.parse_args().notebooks or notebooks():
            nbformat.write(executed(path.resolve(), running), path)
            print(f"{path.name}: {path.stat().st_size // 1000} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
