"""Write an example package to begin with: complete, small, and taken as it is.

Change the files into yours, then `earmark blind check FOLDER`. An ONNX model is preferred: none of your code runs, and
what cannot run needs no trust. `safetensors` is for weights of an architecture that Earmark knows; `code` runs Python
of yours in a sandbox.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

EXAMPLES = """examples:
  earmark blind new my-package
  earmark blind new my-package --kind code
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from earmark.blind._manifest import Kind

    parser.add_argument("folder", metavar="FOLDER", help="a new folder for the package")
    parser.add_argument("--kind", choices=get_args(Kind), default="onnx", help="what the model is (default: onnx)")


def run(args: argparse.Namespace) -> int:
    from earmark.blind.example import write_example

    for name in write_example(Path(args.folder), args.kind):
        print(Path(args.folder) / name)
    return 0
