"""A line for every table and figure of the papers, and the page that shows them."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from earmark import published
from earmark.cli import BELOW, VERBS, main, parser_of

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT.parent / "shared" / "papers"
COUNTS = {
    "VocSim": (28, 9),
    "VocSim, earlier version": (20, 6),
    "SimBA": (6, 3),
    "GICDM": (11, 17),
    "Codec-SUPERB": (8, 7),
}
"""By paper: its tables and its figures."""
TEXTS = {
    "VocSim, earlier version": "000_*",
    "VocSim": "001_*",
    "SimBA": "002_*",
    "GICDM": "003_*",
    "Codec-SUPERB": "004_*",
}


def test_every_table_and_figure_has_one_line() -> None:
    lines = Counter((item.paper, item.item) for item in published.items())
    wanted = {
        (paper, f"{kind} {number}")
        for paper, counts in COUNTS.items()
        for kind, count in zip(("Table", "Figure"), counts, strict=True)
        for number in range(1, count + 1)
    }
    assert set(lines) == wanted
    assert set(lines.values()) == {1}


@pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers' texts are not beside this checkout")
def test_the_papers_speak_of_no_other_table_or_figure() -> None:
    for paper, pattern in TEXTS.items():
        (path,) = PAPERS.glob(pattern)
        text = path.read_text(encoding="utf-8")
        for kind, count in zip(("Table", "Figure"), COUNTS[paper], strict=True):
            found = {int(number) for number in re.findall(rf"\b{kind} (\d+)\b(?!,? of Zandberg)", text)}
            assert max(found) == count, (paper, kind)


def test_every_line_has_a_standing_and_a_reason_where_it_cannot_be_had() -> None:
    for item in published.items():
        assert item.standing in published.STANDINGS, item
        assert item.shows, item
        assert item.standing != "cannot be had here" or item.why, item
        assert "not done" not in item.stands
        assert not item.why.endswith("."), item


def test_every_printed_table_of_the_package_has_a_line() -> None:
    named = {name for item in published.items() for name in item.tables}
    assert named == {card.name for card in published.tables()}


@pytest.mark.parametrize("command", sorted({part for item in published.items() for part in item.command.split(" && ")}))
def test_every_command_parses(command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "earmark"
    verb = " ".join(words[:2]) if " ".join(words[:2]) in BELOW else words[0]
    assert verb in VERBS or verb in BELOW
    parser_of(verb)[0].parse_args(words[len(verb.split()) :])


def test_commands_of_codec_tables_show_the_repeated_values(capsys: pytest.CaptureFixture[str]) -> None:
    (item,) = [one for one in published.items() if (one.paper, one.item) == ("Codec-SUPERB", "Table 3")]
    assert main([*shlex.split(item.command)[1:], "--quiet"]) == 0
    printed = {row["codec"]: row["er_acc_pct"] for row in published.read("codec_superb_table3")}
    shown = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    for codec in ("F1", "F2", "F3", "F4"):
        assert f" {printed[codec]}" in shown[codec]


def _cheap() -> list[str]:
    """Commands that need nothing of a user's, one of those that differ in their metrics alone."""
    whole = {item.command for item in published.items() if not re.search(r"\b[A-Z]{3,}\d?\b(?!@)", item.command)}
    alike = {re.sub(r" --metrics \S+", "", command): command for command in sorted(whole)}
    return [
        command
        for command in alike.values()
        if command not in ("earmark serve", "earmark published check", "earmark cost vae,ae,logmel")
    ]


@pytest.mark.parametrize("command", _cheap())
def test_what_needs_no_data_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 3


@pytest.mark.parametrize("name", ["papers", "judged"])
def test_the_pages_show_what_the_package_says(name: str) -> None:
    """scripts/papers writes the tables of these pages; this fails while they are not what it would write."""
    tables = {"papers": published.items_page(published.items()), "judged": published.claims_page(published.claims())}
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    start, end = "<!-- made by scripts/papers -->\n", "<!-- end -->"
    assert page[page.index(start) + len(start) : page.index(end)].strip() == tables[name].strip()


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "items", "--paper", "gicdm"]) == 0
    printed = capsys.readouterr().out
    assert "Figure 17" in printed
    assert "Codec" not in printed
    assert main(["published", "items", "--paper", "vocsim"]) == 0
    assert "VocSim, earlier version" in capsys.readouterr().out


def test_overlap_beside_table_5(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "overlap"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"encodec +HU1 +confirmed +no evidence", shown.out)
    assert "104 of 120 verdicts are the printed ones" in shown.err
