"""`metrics` and `geometry` are functions of arrays: no module of theirs opens, reads or writes a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "earmark"
MODULES = sorted(path for room in ("metrics", "geometry") for path in (SOURCE / room).rglob("*.py"))
FILE_MODULES = {"io", "os", "pathlib", "shutil", "tempfile", "glob", "fileinput", "pickle", "csv", "json", "sqlite3"}
FILE_CALLS = {
    "open", "fdopen", "load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile",
    "tofile", "memmap", "read_bytes", "read_text", "write_bytes", "write_text", "Path", "unlink", "mkdir",
}  # fmt: skip


def offences(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in FILE_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FILE_MODULES:
            if [alias.name for alias in node.names] != ["environ"]:
                yield node.module or ""
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "tl":
                continue  # the memory of a GPU, as Triton's kernels name it
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if name in FILE_CALLS:
                yield f"{name} in line {node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_a_module_of_arrays_touches_no_file(path: Path) -> None:
    assert list(offences(ast.parse(path.read_text()))) == []


def test_the_check_sees_what_it_should() -> None:
    fine = "from os import environ\ntl.load(x)\nmath.sqrt(2)\n"
    code = fine + "import os\nfrom pathlib import Path\nnp.load('x')\nopen('y')\nPath('z').read_text()"
    assert len(list(offences(ast.parse(code)))) == 6
