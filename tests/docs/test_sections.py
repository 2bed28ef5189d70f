"""The documentation as a whole: sections, titles, whom a page is for, the glossary, pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.scores.metrics import FAMILIES
from earmark.scores.rows import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = ("reference/", "notebooks/")  # when the site is built


def nav() -> list[dict[str, Any]]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)["nav"])


def leaves(entry: Any) -> list[Any]:
    """Every line of the menu that is a page: a path, or a title with a path."""
    if isinstance(entry, list):
        return [leaf for each in entry for leaf in leaves(each)]
    if isinstance(entry, dict) and all(isinstance(below, list) for below in entry.values()):
        return leaves(list(entry.values()))
    return [entry]


def heading(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def test_a_page_has_its_title_from_its_heading_alone() -> None:
    assert all(isinstance(leaf, str) for leaf in leaves(nav()))


def test_every_section_opens_with_a_page_of_its_title_and_then_the_tutorial() -> None:
    for section in nav()[1:]:
        ((title, pages),) = section.items()
        assert pages[0].endswith("/index.md")
        assert heading(DOCS / pages[0]) == title
        if title.startswith("I "):
            assert pages[1].startswith("tutorials/")
            assert pages[1] in (DOCS / pages[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [leaf for leaf in leaves(nav()) if not leaf.startswith((*MADE, "decisions/0"))])
def test_a_page_says_for_whom_it_is(page: str) -> None:
    if page != "decisions/template.md":
        lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
        assert re.match(r"\*For .+\.\*$", lines[2]), "the third line says for whom the page is: *For people who … .*"


def test_the_glossary_has_every_column_and_every_metric() -> None:
    named = set(re.findall(r"`([^`]+)`", (DOCS / "glossary.md").read_text(encoding="utf-8")))
    assert sorted(set(COLUMNS) - named) == []
    assert sorted({name for _, names in FAMILIES.values() for name in names.split()} - named) == []


def test_an_entry_of_the_glossary_is_one_to_three_sentences() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8").split("## Columns of the score table")[0]
    entries = re.findall(r"^### (.+)\n\n((?:.+\n)+)", page, re.MULTILINE)
    assert len(entries) == page.count("### ")
    long = [term for term, text in entries if len(re.findall(r"[.?](?=\s)", text)) > 4]
    assert not long


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/tutorials/{path.name}" for path in (DOCS / "tutorials").iterdir())]
)
def test_a_page_with_a_picture_says_what_makes_it_and_the_picture_is_small(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    images = re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", text)
    made = re.findall(r"<!-- picture: .+ -->\n!\[[^\]]+\]\(([^)]+)\)", text)
    assert images == made != []
    for image in images:
        assert ((ROOT / page).parent / image).stat().st_size < 250_000


def test_the_readme_begins_with_two_commands_and_a_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("$ make demo\n$ make test\n") < text.index("![") < text.index("## ")
    assert len(text) < 7000
