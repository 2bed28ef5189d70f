"""A fresh interpreter, for what only a first import shows."""

from __future__ import annotations

import subprocess
import sys


def run_fresh(code: str) -> str:
    """What `code` prints in an interpreter of its own; an error of it fails the test."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def heavy_imports(code: str, heavy: str) -> list[str]:
    """Which of the modules named in `heavy` are there after `code`."""
    last = f"print('', *sorted(set({heavy!r}.split()) & set(sys.modules)))"
    return run_fresh(f"import sys\n{code}\n{last}").splitlines()[-1].split()
