"""The public face: a sorted list of names, every parameter of every function described, pages made from both."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import earmark

ROOT = Path(__file__).resolve().parents[1]


def functions() -> list[tuple[str, Any]]:
    return [(name, thing) for name in earmark.__all__ if inspect.isfunction(thing := getattr(earmark, name))]


def test_the_names_are_sorted_and_few() -> None:
    assert dir(earmark) == sorted(earmark.__all__)
    assert len(earmark.__all__) <= 28


def test_a_function_stays_a_function_whatever_is_imported() -> None:
    for module in ("earmark.embedding.pooling", "earmark.generated.sanity"):
        importlib.import_module(module)
    assert inspect.isfunction(earmark.embed)
    assert inspect.isfunction(earmark.fidelity)


@pytest.mark.parametrize(("name", "function"), functions())
def test_every_parameter_is_described(name: str, function: Any) -> None:
    _, _, described = (inspect.getdoc(function) or "").partition("Args:\n")
    known = re.findall(r"^    (\w+): ", described, re.MULTILINE)
    assert known == list(inspect.signature(function).parameters)


@pytest.mark.parametrize(("name", "function"), functions())
def test_a_function_says_what_it_returns(name: str, function: Any) -> None:
    assert re.search(r"^Returns:\n    \S", inspect.getdoc(function) or "", re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in earmark.__all__ if not name.startswith("_")])
def test_every_name_has_an_example_of_its_use(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(earmark, name)) or "")
    assert any(name in example.source for example in examples)
    for example in examples:
        compile(example.source, name, "exec")


def test_pages_are_made_from_the_source() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    commands, python = reference.commands(), reference.python()
    assert "## earmark codec run" in commands
    assert "| `--hub-k N` | neighbours that hubness counts (default: 5) |" in commands
    assert "### evaluate" in python
    assert "- `min_class_size`: Smaller classes are dropped" in python
