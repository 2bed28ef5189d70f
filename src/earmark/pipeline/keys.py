"""Names of finished steps: a hash of everything a step depends on, its code included.

Code counts by what it does, not by how it reads: comments, docstrings and layout change no key.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import earmark

_HERE = Path(earmark.__file__).parent

EMBEDDING_CODE = (
    "audio.py",
    "audio_containers.py",
    "corpora/clips.py",
    "embedding/hearing.py",
    "embedding/pooling.py",
    "extractors/catalogue.py",
    "pipeline/embedding.py",
    "pipeline/frames.py",
    "pipeline/layers.py",
)
EMBEDDING_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr", "av")
ASSEMBLY_CODE = ("embedding/pooling.py", "pipeline/packs.py")
PCA_CODE = ("embedding/pca.py",)
EVALUATION_CODE = (
    "evaluation/*.py",
    "geometry/*.py",
    "metrics/*.py",
    "calibrate/*.py",
    "pipeline/noise.py",
    "pipeline/sequences.py",
    "pipeline/steps.py",
    "scores/facts.py",
    "vectors/texts.py",
)
EVALUATION_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "umap-learn")


def fingerprint(*parts: Any) -> str:
    """A hash of values that JSON can hold; the order of keys in a mapping does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} cannot be part of a cache key: use text, numbers, lists and mappings.")


@functools.cache
def code_of(patterns: tuple[str, ...]) -> str:
    """The hash of Earmark's own modules that match the patterns, relative to the package."""
    found = sorted(path for pattern in patterns for path in _HERE.glob(pattern))
    return fingerprint([[path.relative_to(_HERE).as_posix(), source_digest(path)] for path in found])


@functools.cache
def source_digest(path: Path) -> str:
    source = path.read_bytes()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # compiled code
        return hashlib.sha256(source).hexdigest()
    for node in ast.walk(tree):
        _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _drop_docstring(node: ast.AST) -> None:
    body = getattr(node, "body", None)
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            del body[0]


def versions(*libraries: str) -> dict[str, str]:
    """Versions of the libraries that a step's numbers may depend on; "" where one is not installed."""
    return {name: version_of(name) for name in libraries}


@functools.cache
def version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
