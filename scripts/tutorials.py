"""Run the tutorials, write what their commands print into the pages, and take their pictures.

    python scripts/tutorials.py                          every page of docs/tutorials, and the README
    python scripts/tutorials.py docs/tutorials/codec.md  one page
    python scripts/tutorials.py --pictures               leave the text as it is

A page runs as the tests run it (tests/docs/test_snippets.py), in an empty folder with an empty cache. Output below a
command is replaced, unless it has an ellipsis. A picture is asked for on the page, above the image that it makes:

    <!-- picture: run/report.html -->
    ![What is seen on it](../images/tutorial-sounds.png)

HTML is photographed with Chromium, a figure is taken as it is; both become PNG files of few colours.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from test_snippets import SHELLS, Block, blocks, commands, run_python  # noqa: E402

PICTURE = re.compile(r"<!-- picture: (?P<source>\S+)(?: after `(?P<command>.+)`)? -->\n!\[.*\]\((?P<image>\S+)\)")
SCREEN = (1200, 900)  # CSS pixels
MARGIN = 16  # above and below a part of a page
SCALE = 1.5
COLOURS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages to run (default: all that have pictures)")
    parser.add_argument("--pictures", action="store_true", help="take the pictures alone")
    options = parser.parse_args()
    pages = options.pages or [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), ROOT / "README.md"]
    for page in (page.resolve() for page in pages):
        with empty_folder():
            filled = run(page) if page.parent.name == "tutorials" else page.read_text(encoding="utf-8")
            if not options.pictures:
                page.write_text(filled, encoding="utf-8")
            for picture in PICTURE.finditer(filled):
                if picture["command"]:
                    print(_printed(picture["command"]), file=sys.stderr)
                image = (page.parent / picture["image"]).resolve()
                take(picture["source"], image)
                print(f"{image.relative_to(ROOT)}: {image.stat().st_size // 1000} kB", file=sys.stderr)


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.update(MPLBACKEND="Agg", COLUMNS="100", EARMARK_CACHE=str(Path(folder, ".cache")))
        shutil.copytree(ROOT / "examples", "examples")
        yield


def run(page: Path) -> str:
    """The text of a page with the output that its commands have now."""
    lines = page.read_text(encoding="utf-8").splitlines()
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed, edits = "", []
    for block in blocks("\n".join(lines)):
        print(f"{page.name}, line {block.line}", file=sys.stderr)
        if block.language == "python":
            printed += run_python(block, page, namespace)
        elif block.language == "output":
            edits.append((block, _kept(block.text) or printed))
            printed = ""
        elif block.language in SHELLS:
            edits.append((block, _console(block)))
    for block, text in reversed(edits):
        first = block.line - 1
        end = next(number for number in range(first, len(lines)) if lines[number].strip() == "```")
        lines[first:end] = text.rstrip("\n").split("\n") if text.strip() else []
    return "\n".join(lines) + "\n"


def _console(block: Block) -> str:
    """A console block with what its commands print below them."""
    outputs = {}
    for command in commands(block):
        printed = _printed(command.text)
        outputs[command.line] = _kept(command.shown) or printed
    text, below = io.StringIO(), ""
    typed = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ ") or typed:
            if line.startswith("$ "):
                text.write(below)
                below = outputs.get(number, "")
            text.write(line + "\n")
            typed = line.endswith("\\")
    return text.getvalue() + below


def _kept(shown: str) -> str:
    return shown if "..." in shown else ""


def _printed(command: str) -> str:
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], stdout=subprocess.PIPE, text=True, check=True)
    return re.sub(r"[ \t]+$", "", done.stdout, flags=re.MULTILINE)


def take(source: str, image: Path) -> None:
    """A PNG file of a page, from its top or from an anchor, or of a figure; in few colours."""
    from PIL import Image

    path, _, anchor = source.partition("#")
    shot = _photograph(Path(path), anchor) if path.endswith(".html") else Path(path)
    with Image.open(shot) as opened:
        opened.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            image, optimize=True
        )


def _photograph(page: Path, anchor: str) -> Path:
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        width, height = SCREEN
        opened = chromium.new_page(viewport={"width": width, "height": height}, device_scale_factor=SCALE)
        opened.goto(page.resolve().as_uri())
        area = {"x": 0, "y": 0, "width": width, "height": height}
        if anchor and (box := opened.locator(f"#{anchor}").bounding_box()):
            area.update(y=max(0, box["y"] - MARGIN), height=min(height, box["height"] + 2 * MARGIN))
        opened.screenshot(path="screen.png", full_page=True, clip=area)
        chromium.close()
    return Path("screen.png")


if __name__ == "__main__":
    main()
