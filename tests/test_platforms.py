"""Earmark runs on Linux, macOS and Windows: no source relies on what only one of them has.

What stays on Linux alone is the isolation of strangers' code; elsewhere it is refused with one sentence.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

import pytest

import earmark
from earmark.exchange.measured import file_name
from earmark.runs.folder import file_stem

PACKAGE = Path(earmark.__file__).parent
LINUX_ONLY = ("isolation/", "blind/_inside.py", "blind/worker.py")
"""Isolation is made of namespaces, seccomp and bubblewrap, and blind evaluation rests on it."""

UNIX_MODULES = frozenset("crypt fcntl grp nis posix pty pwd resource spwd syslog termios tty".split())
UNIX_CALLS = frozenset(
    "chown fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp getuid killpg mkfifo nice pidfd_open "
    "sched_getaffinity sched_setaffinity setpgid setsid setuid sysconf uname wait4 waitpid".split()
)
UNIX_SIGNALS = frozenset("SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGCHLD setitimer alarm pause".split())
UNIX_PATHS = ("/bin", "/dev", "/etc", "/home", "/proc", "/sys", "/tmp", "/usr", "/var")
TEXT_METHODS = {"read_text": 0, "write_text": 1}
"""Methods of paths, and where their argument `encoding` stands."""


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def is_guarded(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a failure is foreseen: inside of try, or of a question about the platform."""
    for node_above in above(node, parents):
        if isinstance(node_above, ast.Try):
            return True
        if isinstance(node_above, ast.With) and "suppress" in ast.unparse(node_above.items[0]):
            return True
        if isinstance(node_above, ast.If | ast.IfExp):
            question = ast.unparse(node_above.test)
            if any(word in question for word in ("platform", "os.name", "hasattr")):
                return True
    return False


def in_function(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    return any(isinstance(node_above, ast.FunctionDef | ast.AsyncFunctionDef) for node_above in above(node, parents))


def problems(source: str) -> list[str]:
    """What a source of ours does that Windows or macOS would not, with the line where it stands."""
    tree = ast.parse(source)
    parents = parents_of(tree)
    return [
        f"{getattr(node, 'lineno', 0)}: {problem}"
        for node in ast.walk(tree)
        for problem in _problems(node, parents)
        if problem.startswith("text") or not is_guarded(node, parents)
    ]


def _problems(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            if name.partition(".")[0] in UNIX_MODULES:
                yield f"import of {name}"
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if (node.value.id == "os" and node.attr in UNIX_CALLS) or (
            node.value.id == "signal" and node.attr in UNIX_SIGNALS
        ):
            yield f"{node.value.id}.{node.attr}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if any(node.value == path or node.value.startswith(f"{path}/") for path in UNIX_PATHS):
            yield f"path {node.value}"
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[str]:
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in TEXT_METHODS and len(node.args) <= TEXT_METHODS[name] and "encoding" not in named:
        yield f"text without an encoding: {name}"
    if name == "open" and "encoding" not in named and None not in named:
        modes = [*node.args[: 2 if isinstance(node.func, ast.Name) else 1], named.get("mode")]
        words = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
        opens_text = not any(set(word) <= set("rwxab+t") and "b" in word for word in words)
        if opens_text and (isinstance(node.func, ast.Name) or words):
            yield "text without an encoding: open"
    asks_text = any(isinstance(named.get(word), ast.Constant) for word in ("text", "universal_newlines"))
    if name in ("run", "Popen", "check_output") and asks_text and "encoding" not in named:
        yield f"text without an encoding: subprocess.{name}"
    if name in ("get_context", "set_start_method") and node.args and ast.unparse(node.args[0]) == "'fork'":
        yield "processes that are forked"


def sources() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(LINUX_ONLY):
            yield path


def test_no_source_relies_on_one_platform() -> None:
    assert [
        f"{path.relative_to(PACKAGE).as_posix()}:{problem}"
        for path in sources()
        for problem in problems(path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "import fcntl",
        "def f():\n    from resource import getrusage",
        "import os\nos.fork()",
        "import signal\nsignal.SIGKILL",
        "Path('/tmp/x').exists()",
        "path.read_text()",
        "path.write_text('x')",
        "open('x')",
        "open('x', 'w')",
        "path.open('w')",
        "subprocess.run(['x'], text=True)",
        "get_context('fork')",
    ],
)
def test_what_is_noticed(source: str) -> None:
    assert problems(source)


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import fcntl\nexcept ImportError:\n    fcntl = None",
        "if sys.platform != 'win32':\n    import resource",
        "path.read_text('utf-8')",
        "path.write_text('x', encoding='utf-8')",
        "open('x', 'rb')",
        "path.open('wb')",
        "open_corpus('x')",
        "get_context('spawn')",
    ],
)
def test_what_is_fine(source: str) -> None:
    assert problems(source) == []


WINDOWS = """
import importlib, os, pkgutil, signal, sys
import earmark

def load():
    for module in pkgutil.walk_packages(earmark.__path__, "earmark."):
        name = module.name
        if any(word in name for word in ("networks", "torch_", "triton_", "__main__", "migrations")):
            continue  # torch alone takes longer than all of the rest
        if name.startswith("earmark.isolation._") or name in ("earmark.blind._inside", "earmark.blind.worker"):
            continue
        yield name

names = list(load())
for name in names:  # what others need is loaded as on this machine
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] == "earmark"]:
    del sys.modules[name]
for name in ("fcntl", "resource", "pwd", "grp", "termios", "posix", "pty", "tty", "syslog"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid", "killpg", "getpgid", "setsid", "sched_getaffinity", "uname", "mkfifo"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD"):
    delattr(signal, name)
sys.platform = "win32"
failed = []
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}: {error}")
print(len(names), "modules")
print("\\n".join(failed), file=sys.stderr)
os._exit(bool(failed))
"""


def test_every_module_loads_without_what_windows_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WINDOWS], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 300


@pytest.mark.parametrize("name", ["a:b", "c\\d", "e/f", 'g"h', "wavlm mean", "*?<>|", "s3://x/y", "..", "tail."])
def test_names_of_files_can_be_stored_everywhere(name: str) -> None:
    for made in (file_name(name), file_stem(name)):
        assert not set(made) & set('<>:"/\\|?*')
        assert PureWindowsPath("runs", made).parts[-1] == made
