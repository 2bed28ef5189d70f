"""What finished work is found under: a key made of what was stated, never of Earmark's own source text.

    key = stage's name and version · versions of the libraries that count for it · subject · options · items

A stage of Earmark states its version and is trusted: raising it computes everything of that stage anew, and rewording
an error computes nothing. A test keeps a fingerprint of the modules behind each stage, so that nobody changes a number
and forgets the version (`docs/decisions/0014-one-engine.md`). Models, codecs and metrics of other people state
nothing, so their code is hashed: `earmark.runs.strangers`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any


def fingerprint(*parts: Any) -> str:
    """A hash of values that JSON can hold; the order of keys in a mapping does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} cannot be part of a cache key: use text, numbers, lists and mappings.")


@dataclass(frozen=True)
class Stage:
    """A kind of work that is kept: what it is called, which version of it this is, and what its numbers depend on.

    `libraries` are distributions whose versions count; `modules` are files of the package, as patterns, whose
    fingerprint the tests keep. Raise `version` when a result changes.
    """

    name: str
    version: int
    libraries: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def key(self, *parts: Any) -> str:
        """The name of a result that depends on these parts."""
        return fingerprint(self.name, self.version, versions(*self.libraries), *parts)


# --- versions of libraries -----------------------------------------------------------------------------------


def versions(*libraries: str) -> dict[str, str]:
    """Versions of distributions by name; "" where one is not installed."""
    return {name: version_of(name) for name in libraries}


@functools.cache
def version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def distributions_of(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the distributions that packages come from, and of all that these require.

    Required ones count whether they are loaded or not: libraries for a GPU have no module that could be seen.
    """
    waiting = sorted({name for package in packages for name in _distributions(package)})
    known: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        version = "" if name in known else version_of(name)
        if version:
            known[name] = version
            waiting += _required(name)
    return known


@functools.cache
def _distributions(package: str) -> tuple[str, ...]:
    """The distributions that a package, by the name it is imported under, comes from."""
    name = _normalised(package)
    return (name,) if version_of(name) else _by_package().get(package, ())


@functools.cache
def _required(name: str) -> tuple[str, ...]:
    """What a distribution requires, without its extras."""
    lines = [line for line in metadata.requires(name) or [] if not re.search(r"\bextra\s*==", line)]
    return tuple(_normalised(head[0]) for line in lines if (head := re.match(r"[A-Za-z0-9._-]+", line)))


@functools.cache
def _by_package() -> dict[str, tuple[str, ...]]:
    """Distributions by the packages in them, for those whose names differ (`sklearn`, `yaml`).

    As `metadata.packages_distributions`, which takes seconds because it makes a path of every file.
    """
    names: dict[str, set[str]] = {}
    for distribution in metadata.distributions():
        packages = (distribution.read_text("top_level.txt") or "").split()
        if not packages:
            lines = (distribution.read_text("RECORD") or "").splitlines()
            heads = (line.partition(",")[0] for line in lines if ".py," in line or ".so," in line)
            packages = [head.partition("/")[0].partition(".")[0] for head in heads]
        name = _normalised(distribution.metadata["Name"])
        for package in set(packages):
            names.setdefault(package, set()).add(name)
    return {package: tuple(sorted(found)) for package, found in names.items()}


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# --- source text ---------------------------------------------------------------------------------------------


@functools.cache
def source_digest(path: Path) -> str:
    """The hash of a stranger's source: comments, docstrings and layout change nothing."""
    source = path.read_bytes()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # compiled code
        return hashlib.sha256(source).hexdigest()
    return hashlib.sha256(_text_of(_WithoutDocstrings().visit(tree)).encode()).hexdigest()


def code_fingerprint(source: str) -> str:
    """The hash of a source of ours for the test of versions: words are no code, wherever they stand.

    Docstrings, annotations, what is raised, prose (text with a space in it) and what a card says for people count for
    nothing.
    """
    return hashlib.sha256(_text_of(_WithoutWords().visit(ast.parse(source))).encode()).hexdigest()[:16]


def _text_of(value: Any) -> str:
    """A syntax tree as text, the same with every Python: as `ast.dump` writes it in 3.11."""
    if isinstance(value, list):
        return f"[{', '.join(map(_text_of, value))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    kind, parts = type(value), []
    for name in value._fields:
        field = getattr(value, name, None)
        if (field is None and hasattr(kind, name)) or (name == "type_params" and not field):  # came with 3.12
            continue
        if kind is ast.JoinedStr:  # 3.12 writes empty texts among the parts of a format
            field = [part for part in field or [] if not (isinstance(part, ast.Constant) and part.value == "")]
        parts.append(f"{name}={_text_of(field)}")
    return f"{kind.__name__}({', '.join(parts)})"


class _WithoutDocstrings(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
            first = body[0].value if isinstance(body[0], ast.Expr) else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                del body[0]
        return super().generic_visit(node)


_FOR_PEOPLE = frozenset("citation how_to_get licence notes paper_code reason short_name title".split())


class _WithoutWords(_WithoutDocstrings):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise()

    def visit_Import(self, node: ast.AST) -> None:
        return None

    visit_ImportFrom = visit_Import

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if node.value is None else ast.Assign([node.target], self.visit(node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        return None if node.arg in _FOR_PEOPLE else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        prose = isinstance(node.value, str) and " " in node.value
        return ast.Constant("words" if prose else node.value)
