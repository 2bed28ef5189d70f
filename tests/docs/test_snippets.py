"""Every example in the README and the documentation is run, page by page, each page in an empty folder.

- Python blocks of a page share one namespace and run from top to bottom. A block of the language `output` shows what
  the Python blocks since the last such block print.
- In console and bash blocks, lines that start with `$ earmark` run as the installed command would (see
  prepared.py). Output shown below such a line must be what the command prints on stdout; `...` stands for anything.
- A block that cannot run says why on the line above it: <!-- no-run: reason -->
- A page has a cache of its own, so that it shows what a first run shows, and the folder examples/ beside it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from earmark.scores.rows import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("bash", "console", "sh", "shell")
TIMEOUT = 300

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
_NO_RUN = re.compile(r"^\s*<!--\s*no-run:?(?P<reason>.*?)-->\s*$")
_OUTPUT = doctest.OutputChecker()
_LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page on which the text starts (from 1)."""

    language: str
    text: str
    line: int


class Command(NamedTuple):
    """A command of a console block and the output shown below it."""

    text: str
    shown: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page that are to be run, or of a language that never is."""
    lines = page.splitlines()
    place = 0
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence is None:
            place += 1
            continue
        start = place + 1
        place = start
        while place < len(lines) and lines[place].strip() != fence["ticks"]:
            place += 1
        if place == len(lines):
            raise ValueError(f"line {start}: the block is not closed")
        if not _excused(lines, start - 2):
            yield Block(fence["language"], textwrap.dedent("\n".join(lines[start:place]) + "\n"), start + 1)
        place += 1


def _excused(lines: list[str], above: int) -> bool:
    """Whether the line above a block, or the one above a blank line, says that it is not to be run."""
    if above > 0 and not lines[above].strip():
        above -= 1
    excuse = _NO_RUN.match(lines[above]) if above >= 0 else None
    if excuse is not None and not excuse["reason"].strip():
        raise ValueError(f"line {above + 1}: no-run needs a reason")
    return excuse is not None


def commands(block: Block) -> Iterator[Command]:
    """The `$ earmark` commands of a console block; a backslash at the end continues a line."""
    lines = block.text.splitlines()
    place = 0
    while place < len(lines):
        first, line = lines[place], block.line + place
        place += 1
        if re.match(r"(python -m )?earmark\b", first):
            raise ValueError(f"line {line}: write `$ {first}`, so that it is run")
        if not first.startswith("$ "):
            continue
        text = first[2:]
        while text.endswith("\\") and place < len(lines):
            text = text[:-1] + lines[place].removeprefix("> ").lstrip()
            place += 1
        shown = []
        while place < len(lines) and not lines[place].startswith("$ "):
            shown.append(lines[place] + "\n")
            place += 1
        if text.split()[0] == "earmark":
            yield Command(text, "".join(shown), line)


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """What a block prints. A traceback points at the line of the page."""
    tree = ast.increment_lineno(ast.parse(block.text, str(page)), block.line - 1)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, str(page), "exec"), namespace)
    return printed.getvalue()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a command `earmark` that a prepared process answers."""
    folder = Path(tempfile.mkdtemp(prefix="earmark-"))  # a socket's address must be short
    prepared, address = Path(__file__).with_name("prepared.py"), folder / "socket"
    script = folder / "earmark"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{prepared}" call "{address}" "$@"\n')
    script.chmod(0o755)
    server = subprocess.Popen([sys.executable, prepared, "serve", address], env=dict(os.environ, MPLBACKEND="Agg"))
    while not address.exists():
        assert server.poll() is None, "the prepared process has ended"
        time.sleep(0.05)
    yield folder
    server.kill()
    server.wait()
    shutil.rmtree(folder)


def run_command(command: Command, where: str, programs: Path) -> str:
    environment = dict(os.environ, MPLBACKEND="Agg", COLUMNS="100")
    environment["PATH"] = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.text],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
    )
    said = f"{where}: {command.text}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, f"exit code {done.returncode} from {said}"
    assert "Traceback" not in done.stderr, said
    if command.shown.strip():
        assert _OUTPUT.check_output(command.shown, done.stdout, _LOOSELY), f"the page shows otherwise: {said}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_page(
    page: Path,
    programs: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("EARMARK_CACHE", str(tmp_path_factory.mktemp("cache")))
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language in ("python", "py"):
            printed += run_python(block, page, namespace)
        elif block.language == "output":
            shown = f"{page.name}, line {block.line}, shows otherwise:\n{printed}"
            assert _OUTPUT.check_output(block.text, printed, _LOOSELY), shown
            printed = ""
        elif block.language in SHELLS:
            for command in commands(block):
                run_command(command, f"{page.name}, line {command.line}", programs)


@pytest.mark.parametrize("name", ["run.yaml", "vocsim_grid.yaml"])
def test_the_page_on_configs_shows_the_example_as_it_is(name: str) -> None:
    page = (ROOT / "docs" / "configs.md").read_text(encoding="utf-8")
    shown = [block.text for block in blocks(page) if block.language == "yaml"]
    assert (ROOT / "examples" / name).read_text(encoding="utf-8") in shown


@pytest.mark.parametrize("name", ["extractor", "codec", "tokenizer", "metric", "corpus", "task"])
def test_a_part_of_ones_own_is_a_file_of_fewer_than_thirty_lines_and_shown_as_it_is(name: str) -> None:
    text = (ROOT / "examples" / f"my_{name}.py").read_text(encoding="utf-8")
    assert text.count("\n") < 30
    page = (ROOT / "docs" / "own.md").read_text(encoding="utf-8")
    assert text in [block.text for block in blocks(page) if block.language == "python"]


def test_the_page_on_score_tables_describes_every_column_once() -> None:
    page = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    table = page.split("## What a row means")[1].split("\n\n")[1]
    described = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert sorted(described) == sorted(COLUMNS)


# --- the runner itself ----------------------------------------------------------------------------

PAGE = """\
# A page

```python
a = 1
```

- in a list

    ```console
    $ earmark one \\
        --two
    shown
    $ make three
    $ earmark four | head -1
    ```

<!-- no-run: needs a microphone -->
```python
raise SystemExit
```

<!-- no-run: and with a blank line between -->

```bash
$ earmark record
```

```text
anything
```
"""


def test_blocks_are_found_with_their_lines_and_excuses() -> None:
    found = list(blocks(PAGE))
    assert [(block.language, block.line) for block in found] == [("python", 4), ("console", 10), ("text", 29)]
    assert found[0].text == "a = 1\n"


def test_commands_are_joined_and_keep_the_output_shown_below_them() -> None:
    console = list(blocks(PAGE))[1]
    assert list(commands(console)) == [
        Command("earmark one --two", "shown\n", 10),
        Command("earmark four | head -1", "", 14),
    ]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```python\na = 1\n", "not closed"),
        ("<!-- no-run: -->\n```python\n```\n", "needs a reason"),
        ("<!-- no-run -->\n```python\n```\n", "needs a reason"),
    ],
)
def test_a_malformed_page_is_refused(page: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(blocks(page))


def test_a_command_without_a_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match=r"line 2: write `\$ earmark demo`"):
        list(commands(Block("bash", "earmark demo\n", 2)))


def test_an_error_in_a_python_block_names_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_python(Block("python", "a = 1\na / 0\n", 41), Path("page.md"), {})
    assert caught.traceback[-1].lineno == 41  # pytest counts from 0
    assert run_python(Block("python", "print(1 + 1)\n", 1), Path("page.md"), {}) == "2\n"


def test_a_failing_command_and_a_wrong_output_are_reported() -> None:
    with pytest.raises(AssertionError, match="exit code 3"):
        run_command(Command("exit 3", "", 1), "page.md", Path())
    with pytest.raises(AssertionError, match="shows otherwise"):
        run_command(Command("echo heard", "seen\n", 1), "page.md", Path())
    run_command(Command("echo heard it", "heard ...\n", 1), "page.md", Path())
