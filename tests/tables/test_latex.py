"""LaTeX tables fit a page: by their font, turned, in parts, or over several pages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from earmark.errors import UsageError
from earmark.tables import Cell, Column, NumberFormat, Page, Table
from earmark.tables.latex import text_width

PERCENT = NumberFormat(1, percent=True)


def grid(columns: int, rows: int, name: str = "system", over: str = "", title: str = "A title.") -> Table:
    heads = [Column("system", "left"), *(Column(f"column {n}", format=PERCENT, over=over) for n in range(columns))]
    body = [[f"{name} {row}", *(row / (n + 2) / 100 for n in range(columns))] for row in range(rows)]
    return Table(heads, body, title, ["a note"])


def widths(source: str) -> list[float]:
    """About how wide each tabular is, from what it says: the sum of its widest cells and the gaps around them."""
    found = []
    scale = {"": 1.0, "\\small": 0.93, "\\footnotesize": 0.85, "\\scriptsize": 0.8}
    size = next((name for name in list(scale)[1:] if name + "\n" in source), "")
    gap = float((re.findall(r"tabcolsep\}\{([\d.]+)pt", source) or ["6"])[0])
    for body in re.findall(r"\\begin\{(?:tabular|longtable)\}(.*?)\\end\{(?:tabular|longtable)\}", source, re.S):
        lines = [line[:-3] for line in body.splitlines() if line.endswith(r" \\") and "multicolumn" not in line]
        lines = [line for line in lines if r"\caption" not in line]
        cells = [
            [re.sub(r"\\textbf\{(.*?)\}|\\([%&_#])", r"\1\2", cell) for cell in line.split(" & ")] for line in lines
        ]
        assert len({len(line) for line in cells}) == 1  # every line has as many cells
        found.append(sum(max(map(text_width, column)) * scale[size] + 2 * gap for column in zip(*cells, strict=True)))
    return found


def environments(source: str) -> list[str]:
    """The environments that begin, after checking that each ends where it should."""
    open_: list[str] = []
    begun = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z]+)\}", source):
        if kind == "begin":
            open_.append(name)
            begun.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    return begun


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (grid(4, 5), ["table", "tabular"]),
        (grid(7, 5), ["table", "tabular"]),
        (grid(11, 5), ["sidewaystable", "tabular"]),
        (grid(16, 5), ["table", "tabular", "tabular", "tabular"]),
        (grid(4, 90), ["longtable"]),
        (grid(11, 90), ["landscape", "longtable"]),
        (grid(16, 90), ["longtable"] * 3),
        (grid(3, 4, name=", ".join(["a name that fits no page of any journal"] * 4)), None),
    ],
)
def test_every_table_fits(table: Table, expected: list[str] | None) -> None:
    source = table.to_latex(label="tab:x")
    begun = environments(source)
    assert expected is None or begun == expected
    turned = "landscape" in begun or "sidewaystable" in begun
    if expected is None:
        assert r"p{138pt}" in source  # names are broken into lines
    else:
        assert max(widths(source)) <= (550 if turned else 345)
    packages = re.search(r"usepackage\{(.*)\}", source)
    needed = {"longtable": "longtable", "landscape": "pdflscape", "sidewaystable": "rotating"}
    assert {needed[name] for name in begun if name in needed} <= set(packages[1].split(",") if packages else ())
    assert source.count(r"\label{tab:x}") == 1
    assert source.count("a note") == 1
    for row in range(len(table.rows)):  # names stand in every part
        assert source.count(f"{table.rows[row][0]} &") == max(1, begun.count("tabular") + begun.count("longtable"))


def test_a_wider_page_needs_no_turn_and_parts_are_even() -> None:
    assert environments(grid(11, 5).to_latex(page=Page(700, 900))) == ["table", "tabular"]
    parts = widths(grid(16, 5).to_latex())
    assert max(parts) - min(parts) < 120


def test_columns_with_a_heading_in_common_stay_together() -> None:
    heads = [Column("system", "left"), Column("kbps")]
    heads += [Column(name, over=over, format=PERCENT) for over in ("public", "blind") for name in ("P@1", "GSR")]
    source = Table(heads, [["a", 3, 0.1, 0.2, 0.3, 0.4]]).to_latex()
    assert r" &  & \multicolumn{2}{c}{public} & \multicolumn{2}{c}{blind} \\" in source
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-6}" in source
    wide = [Column("system", "left")]
    wide += [Column(f"long column {n}", over=over) for over in "abcd" for n in range(4)]
    source = Table(wide, [["x", *range(16)]]).to_latex()
    assert [line.count("multicolumn{4}{c}") for line in source.splitlines() if "multicolumn" in line] == [1, 1, 1, 1]


def test_marks_and_columns_for_programs() -> None:
    head = [Column("system", "left"), Column("P@1", over="public", mark=" ↑"), Column("low", over="public", data=True)]
    row = [Cell("50.0", underlined=True, rest=" ± 1.0", exact=0.5), Cell(exact=0.49)]
    table = Table(
        head, [["a", *row], ["b", Cell("–", note=1, blank=True), Cell(blank=True)]], footnotes=["not measured"]
    )
    assert r"a & \underline{50.0} $\pm$ 1.0 \\" in table.to_latex()
    assert "| a | <ins>50.0</ins> ± 1.0 |" in table.to_markdown()
    assert "<u>50.0</u> ± 1.0" in table.to_html()
    assert table.header == ["system", "public P@1 ↑"]
    assert table.to_csv() == "system,public P@1,public low\na,0.5,0.49\nb,,\n"
    assert table.records()[1] == {"system": "b", "public P@1": None, "public low": None}


def test_marks_of_mathematics_are_escaped_and_other_letters_are_said() -> None:
    made = grid(2, 2, name="→ ≥ ≤ ÷ ≈ μ ρ α β").to_latex(label="tab:a-b_c.1")
    names = "rightarrow geq leq div approx mu rho alpha beta".split()
    assert " ".join(rf"$\{name}$" for name in names) in made
    assert made.isascii()
    assert grid(2, 2, name="жук").to_latex().startswith("% needs XeLaTeX or LuaLaTeX and a font that has ж к у\n")
    for label in ("a}b", "a b", "%", "é"):
        with pytest.raises(UsageError, match="label"):
            grid(2, 2).to_latex(label=label)


def test_the_estimate_of_widths_is_not_too_small(tmp_path: Path) -> None:
    """Against a real LaTeX where there is one; always against the widths of Computer Modern that were looked up."""
    known = {"0123456789": 50.0, "P@1": 19.6, "EWMTF D100": 66.0, "cosine": 26.2, "66.8": 17.8, "system": 29.8}
    for text, points in known.items():
        assert points <= text_width(text) <= 1.35 * points, text
    latex = shutil.which("pdflatex")
    if latex is None:
        return
    tables = [
        grid(4, 5, title="→ ≥ ≤ ÷ ≈ µ μ ρ α β ⁴ ∞ ° é ń “…”"),
        grid(11, 5),
        grid(16, 5),
        grid(4, 90),
        grid(11, 90),
        grid(16, 90),
    ]
    body = "\n\\clearpage\n".join(table.to_latex() for table in tables)
    packages = "booktabs,rotating,longtable,pdflscape,array"
    source = f"\\documentclass{{article}}\\usepackage{{{packages}}}\\begin{{document}}\n{body}\n\\end{{document}}\n"
    (tmp_path / "x.tex").write_text(source)
    done = subprocess.run([latex, "-interaction=nonstopmode", "-halt-on-error", "x"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-800:]
    assert b"Overfull" not in done.stdout
