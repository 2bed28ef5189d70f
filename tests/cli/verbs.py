"""Run one verb as the command line does, whether or not it is listed among the commands yet."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from earmark import cli


def runner(name: str, module: ModuleType, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A function of words that returns exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        listed = dict(cli.VERBS)
        cli.VERBS[name] = (module.__name__, "")
        try:
            code = cli.main([name, *map(str, words)])
        finally:
            cli.VERBS.clear()
            cli.VERBS.update(listed)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
