"""What a model, codec or metric depends on that states nothing: found out by opening it, the same for all of them.

    code         sources of the user's own modules, followed through their imports; of Earmark's own modules only the
                 `VERSION` that they state, where they do
    libraries    versions of the installed packages that are really at work in it
    files        what parameters name, what is opened while it is opened, weights whose names it holds or its code
                 spells out, and whatever it states in an attribute `files`; ONNX files with their external data

Imports are followed where they are written, also inside functions and as text: `require("torch", ...)`,
`import_module("mine.dsp")`. Packages are found from the types of what the model holds as well: those loaded in the
whole process say nothing of one model. Files that are opened only when the model first hears sound are known after its
key, and kept in the cache beside its vectors (`Later`).
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeVar

from earmark.runs import opened_files
from earmark.runs.identity import distributions_of, fingerprint, source_digest
from earmark.runs.opened_files import WEIGHTS, digest_of, digests, is_data, is_installed, is_own, named_by
from earmark.runs.opened_files import with_companions as with_their_companions
from earmark.runs.store import Cache, Entry

T = TypeVar("T")


@dataclass(frozen=True)
class Reads:
    """Digests of sources (or stated versions) by module, versions by distribution, digests of files by name."""

    code: dict[str, str]
    libraries: dict[str, str]
    files: list[list[str]]
    paths: frozenset[Path] = frozenset()  # where the files lie; no part of the key
    own: frozenset[str] = frozenset()  # modules of the user's; no part of the key

    @property
    def key(self) -> str:
        return fingerprint(self.code, self.libraries, self.files)


def opening(
    make: Callable[[], T], modules: Iterable[str] = (), given: Iterable[Any] = (), rooms: tuple[str, ...] = ()
) -> tuple[T, Reads]:
    """What `make` returns, and what it reads.

    `modules` are those that the spec names; `given` are parameters, which may name files and folders; `rooms` are
    packages of Earmark's whose modules are followed.
    """
    with opened_files.watching() as seen:
        made = make()
    return made, stated_by(made, modules, given, rooms, seen.files())


def stated_by(
    made: Any,
    modules: Iterable[str] = (),
    given: Iterable[Any] = (),
    rooms: tuple[str, ...] = (),
    opened: Iterable[Path] = (),
) -> Reads:
    """What something that is already made reads, as far as it can be told afterwards."""
    parts = [made, *(getattr(made, name) for name in ("model", "codec") if hasattr(made, name))]
    first = {*modules, *(kind.__module__ for part in parts for kind in type(part).__mro__)}
    code = code_of_modules(first, rooms)
    inside = _held_by([made, *_globals_of(code.own)])
    own = {name for name in inside.modules if name != "__main__" and _is_own_module(name)}
    if not own <= code.own:  # parts that came by a dynamic import
        code = code_of_modules(first | own, rooms)
    listed = [getattr(part, "files", None) for part in parts]
    paths = with_their_companions(
        [
            *named_by(*given),
            *opened,
            *opened_files.of_modules(code.own),
            *inside.files,
            *code.files,
            *named_by(*(files for files in listed if isinstance(files, list | tuple | set | frozenset))),
        ]
    )
    own_packages = {name.partition(".")[0] for name in code.own}  # an installed package may have a folder of that name
    libraries = distributions_of((code.packages | _used_by(inside.modules)) - own_packages)
    return Reads(code.sources, libraries, digests(paths), frozenset(paths), frozenset(code.own))


def _is_own_module(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return bool(file) and is_own(Path(str(file)))


def _used_by(modules: Iterable[str]) -> set[str]:
    """Packages that modules belong to, and those that the imported ones among them use."""
    names: set[str] = set()
    for module in modules:
        if module.partition(".")[0] == "earmark":
            continue
        names.add(module)
        for value in list(vars(sys.modules[module]).values()) if module in sys.modules else []:
            owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
            names |= {owner} if isinstance(owner, str) else set()
    packages = {name.partition(".")[0] for name in names}
    return {name for name in packages if name and name not in sys.stdlib_module_names and name != "earmark"}


# --- code ----------------------------------------------------------------------------------------------------

_IMPORTERS = ("require", "import_module", "__import__")


class Code(NamedTuple):
    """Digests of sources by module, the user's own modules among them, packages that they use, weights they name."""

    sources: dict[str, str]
    own: set[str]
    packages: set[str]
    files: list[Path]


def code_of_modules(modules: Iterable[str], rooms: tuple[str, ...] = ()) -> Code:
    """Follow imports from these modules, through the user's own and through those in `rooms` of Earmark."""
    waiting = sorted(set(modules))
    known: set[str] = set()
    code = Code({}, set(), set(), [])
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        ours = top == "earmark"
        if name in known or top in sys.stdlib_module_names or (ours and not name.startswith(rooms or ("-",))):
            continue
        known.add(name)
        file = _file_of(name)
        if file is None:
            continue
        if not ours and is_installed(file):
            code.packages.add(top)
            continue
        source = _read_source(file, name)
        waiting += source.imports
        if ours:
            code.sources.update({name: f"version {source.version}"} if source.version is not None else {})
        else:
            code.sources[name] = source_digest(file)
            code.own.add(name)
            code.files.extend(path for text in source.weights for path in _near(file, text))
    return code


class _Source(NamedTuple):
    imports: list[str]
    weights: list[str]
    version: int | None = None


@functools.cache
def _read_source(file: Path, name: str) -> _Source:
    """Modules that a file's import statements mention, text in it that ends like weights, the version it states."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes() if file.suffix == ".py" else "")
    except (SyntaxError, ValueError):
        return _Source([], [])
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    versions: list[Any] = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        and [getattr(target, "id", "") for target in node.targets] == ["VERSION"]
    ]  # fmt: skip
    weights = sorted(text for text in texts if len(text) < 1024 and Path(text).suffix in WEIGHTS)
    return _Source(list(_imports(tree, package)), weights, next(iter(versions), None))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if function in _IMPORTERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _near(source: Path, text: str) -> list[Path]:
    """The files that text in a source may mean: from the current folder, or in the source's folder or one below it."""
    try:
        below = list(source.parent.glob(f"*/{text}")) if not Path(text).is_absolute() else []
        paths = [Path(text).expanduser().absolute(), source.parent / text, *sorted(below)]
        return [path for path in dict.fromkeys(paths) if is_data(path)]
    except (OSError, RuntimeError, ValueError, NotImplementedError):
        return []  # text that is no path: with a NUL, of an unknown user's home, or no pattern that glob takes


def _file_of(name: str) -> Path | None:
    """The source file of a module, whether it is imported yet or not."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None and name not in sys.modules and all(part.isidentifier() for part in name.split(".")):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        file = spec.origin if spec is not None else None
    return Path(file) if file and Path(file).is_file() else None


# --- what an opened model holds ------------------------------------------------------------------------------

MOST = 20_000  # objects that are looked at, breadth first: the outer ones come first
LONGEST = 1_000  # items of a container
_LEAVES = (bool, int, float, complex, bytes, bytearray, memoryview, type(None))
_ARRAYS = ("numpy", "torch")  # whose tensors are not entered


class _Held(NamedTuple):
    """Modules that types, functions and modules inside a model come from, and files whose names it holds.

    Text that ends like weights (`.onnx`, `.safetensors`, ...) and names a file is taken for a file that the model
    reads: onnxruntime, safetensors and TorchScript open theirs in C++ or Rust, where Python cannot watch.
    """

    modules: set[str]
    files: list[Path]


def _held_by(roots: Iterable[Any]) -> _Held:
    modules: set[str] = set()
    files: dict[Path, None] = {}
    known: dict[int, Any] = {}  # the objects themselves, so that no number is used twice
    waiting = deque(roots)
    while waiting and len(known) < MOST:
        thing = waiting.popleft()
        if isinstance(thing, _LEAVES) or id(thing) in known:
            continue
        if isinstance(thing, str | Path):
            files |= _weights(thing)
            continue
        known[id(thing)] = thing
        kinds = [thing] if isinstance(thing, type | FunctionType | MethodType) else type(thing).__mro__
        modules |= {str(getattr(kind, "__module__", "") or "") for kind in kinds}
        modules |= {thing.__name__} if isinstance(thing, ModuleType) else set()
        waiting.extend(_inside(thing))
    return _Held(modules, list(files))


def _weights(text: str | Path) -> dict[Path, None]:
    with suppress(OSError, RuntimeError, ValueError):
        if len(str(text)) <= 1024 and Path(text).suffix in WEIGHTS:
            file = Path(text).expanduser().absolute()
            return {file: None} if is_data(file) else {}
    return {}


def _inside(thing: Any) -> Iterator[Any]:
    """What an object holds, as far as a model can be made of it."""
    if isinstance(thing, ModuleType | type):
        return
    if isinstance(thing, Mapping):
        pairs: list[tuple[Any, Any]] = []
        with suppress(Exception):  # a stranger's mapping may do what it likes
            pairs = list(islice(thing.items(), LONGEST))
        yield from (value for pair in pairs for value in pair)
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from islice(thing, LONGEST)
    elif isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, FunctionType):
        for cell in thing.__closure__ or ():
            with suppress(ValueError):  # not filled yet
                yield cell.cell_contents
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
    elif not (type(thing).__module__.partition(".")[0] in _ARRAYS and hasattr(thing, "shape")):
        yield from _attributes(thing)


def _attributes(thing: Any) -> Iterator[Any]:
    """Attributes that lie in an object itself; none is computed."""
    own = getattr(thing, "__dict__", None)
    if isinstance(own, dict):
        yield from list(own.values())[:LONGEST]
    for kind in type(thing).__mro__:
        for name in [slots] if isinstance(slots := vars(kind).get("__slots__", ()), str) else list(slots):
            if name not in ("__dict__", "__weakref__"):
                with suppress(AttributeError):
                    yield object.__getattribute__(thing, name)


def _globals_of(modules: Iterable[str]) -> list[Any]:
    """What modules that are imported hold, without their own imports of other modules."""
    held = [item for name in sorted(modules) if name in sys.modules for item in list(vars(sys.modules[name]).items())]
    return [value for key, value in held if not key.startswith("__") and not isinstance(value, ModuleType)]


# --- files that are opened later -----------------------------------------------------------------------------

LATER_KIND = "reads"
_LINKS = 1000  # changes of a file that are followed


class Later:
    """Collects what a model opens while it hears, and writes it down before its vectors are.

        reads/<identity>.entry      {path: digest} of what the model under this identity opened later

    A model keeps its identity for as long as these files hold what they held. When one has changed, the identity
    becomes the hash of the old one and of what the files hold now, which may have files of its own: the chain is
    followed until a link is whole (`resolved`).
    """

    def __init__(self, cache: Cache, identity: str, reads: Reads) -> None:
        self._cache, self._identity, self._reads = cache, identity, reads
        self.seen = opened_files.Seen(hearing=True)
        self._known: set[Path] = set(reads.paths)

    def keep(self) -> None:
        """Write down files that were not known; nothing is written where there are none."""
        opened = [*self.seen.files(), *opened_files.of_modules(self._reads.own, hearing=True)]
        new = [path for path in with_their_companions(opened) if path not in self._known]
        self._known |= set(new)
        keep_later(self._cache, self._identity, new)


def keep_later(cache: Cache, identity: str, files: Iterable[Path | str]) -> None:
    """Write down what was opened later under an identity; nothing is written where there is nothing new."""
    known = _kept(cache, identity)
    new = {_portable(path): digest_of(path) for path in map(Path, files) if is_data(path)}
    if not new.keys() <= known.keys():
        cache.put(LATER_KIND, identity, Entry({"files": known | new}))


def resolved(cache: Cache, identity: str) -> str:
    """The identity under which vectors lie that were made with the files as they are now."""
    for _ in range(_LINKS):
        kept = _kept(cache, identity)
        now = {name: digest_of(Path(name).expanduser()) for name in kept}
        if now == kept:
            break
        identity = fingerprint("read later", identity, sorted(now.values()))
    return identity


def _kept(cache: Cache, identity: str) -> dict[str, str]:
    # Whether entries are to be refreshed does not matter: old vectors still lie under the old identity.
    entry = Cache(cache.url, "use").get(LATER_KIND, identity)
    return dict(entry.meta["files"]) if entry is not None else {}


def _portable(path: Path) -> str:
    """A path that means the same for another user or on another machine that shares the cache."""
    try:
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)
