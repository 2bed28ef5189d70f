"""What the files of a package may hold. What is not on the list is refused: no pickles, no compiled code, no archives.

.yaml .yml .json .txt .md .csv .tsv .toml .py   text in UTF-8
.onnx .safetensors .npy                          read byte for byte (`_onnx_rules`, `_safetensors_rules`, below)
LICENSE LICENCE README NOTICE CITATION           text in UTF-8
"""

from __future__ import annotations

import io
import mmap
import pickletools
from pathlib import PurePosixPath
from typing import IO, Any

from earmark.blind._archives import Member
from earmark.blind._onnx_rules import onnx_problems
from earmark.blind._safetensors_rules import MOST_HEADER, safetensors_problems
from earmark.errors import quoted

__all__ = ["bytes_needed", "content_problems", "kind_problem"]

TEXTS = (".yaml", ".yml", ".json", ".txt", ".md", ".csv", ".tsv", ".toml", ".cff", ".py")
NAMES = ("license", "licence", "readme", "notice", "citation", "copying")
BINARIES = (".onnx", ".safetensors", ".npy")
MOST_TEXT = 20_000_000
MOST_ONNX = (2 << 30) - 1  # what a protocol buffer can be
_PICKLES = (
    ".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".bin", ".joblib", ".npz", ".dill", ".mar", ".sav", ".model", ".p",
)  # fmt: skip
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".exe", ".o", ".a", ".whl", ".egg", ".jar", ".wasm")
_CALLS = frozenset({"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "REDUCE", "NEWOBJ", "NEWOBJ_EX", "BUILD", "EXT1"})
_MAGICS = {
    b"\x7fELF": "compiled code", b"MZ": "compiled code", b"\xcf\xfa\xed\xfe": "compiled code",
    b"\xca\xfe\xba\xbe": "compiled code", b"\x00asm": "compiled code",
    b"PK\x03\x04": "an archive, as torch.save writes",
    b"\x1f\x8b": "an archive", b"BZh": "an archive", b"\xfd7zXZ": "an archive", b"7z\xbc\xaf": "an archive",
    b"\x28\xb5\x2f\xfd": "an archive", b"\x80\x02": "a pickle", b"\x80\x03": "a pickle", b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle", b"\x89HDF": "an HDF5 file",
}  # fmt: skip


def kind_problem(member: Member) -> str:
    """Why a file of this name and size is refused, or nothing."""
    path = PurePosixPath(member.name)
    suffix, shown = path.suffix.lower(), quoted(member.name)
    if suffix in _PICKLES:
        return f"{shown} is a pickle or may hold one: save weights as .safetensors or .npy."
    if suffix in _COMPILED or ".so." in path.name.lower():
        return f"{shown} is compiled code: a package holds Python, ONNX and safetensors only."
    if suffix not in (*TEXTS, *BINARIES) and path.stem.lower() not in NAMES:
        return f"{shown} is of a kind that packages do not hold: {', '.join((*TEXTS, *BINARIES))} are taken."
    most = MOST_TEXT if suffix not in BINARIES else MOST_ONNX if suffix == ".onnx" else member.size
    return f"{shown} has {member.size:,} bytes; {most:,} are allowed." if member.size > most else ""


def bytes_needed(member: Member) -> int:
    """How much of a file, from its beginning, is looked at."""
    most = {".safetensors": MOST_HEADER + 8, ".npy": 1 << 16}
    return min(member.size, most.get(PurePosixPath(member.name).suffix.lower(), member.size))


def content_problems(stream: IO[bytes], member: Member) -> list[str]:
    """Everything for which the content of a file is refused."""
    start = stream.read(16)
    stream.seek(0)
    suffix, name = PurePosixPath(member.name).suffix.lower(), member.name
    for magic, kind in _MAGICS.items():
        # The first bytes of a safetensors file are a length, which may be any.
        if start.startswith(magic) and suffix != ".safetensors":
            return [f"{quoted(name)} is {kind}, whatever its name says: it is not taken."]
    if suffix == ".onnx":
        with _mapped(stream, member.size) as data:
            return onnx_problems(data, name)
    if suffix == ".safetensors":
        return safetensors_problems(stream, member.size, name)  # type: ignore[arg-type]
    return _array_problems(stream, member) if suffix == ".npy" else _text_problems(stream.read(), name)


def _mapped(stream: IO[bytes], size: int) -> Any:
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else memoryview(b"")


def _text_problems(data: bytes, name: str) -> list[str]:
    try:
        if "\0" in data.decode("utf-8"):
            raise ValueError
    except ValueError:
        return [f"{quoted(name)} is not text in UTF-8, as its name says."]
    return [f"{quoted(name)} is a pickle written as text: it is not taken."] if _is_pickle(data) else []


def _is_pickle(data: bytes) -> bool:
    """Whether a text is a pickle that calls something when it is loaded."""
    calls = False
    stream = io.BytesIO(data.rstrip())
    try:
        for operation, _, _ in pickletools.genops(stream):
            calls = calls or operation.name in _CALLS
    except (ValueError, OverflowError, RecursionError, MemoryError):
        return False
    return calls


def _array_problems(stream: IO[bytes], member: Member) -> list[str]:
    import numpy as np

    shown = quoted(member.name)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
    except Exception as error:  # what a header may do to its reader is NumPy's to say
        return [f"{shown} is not a readable .npy file ({type(error).__name__}): save it again with numpy.save."]
    if kind.hasobject:
        return [f"{shown} holds Python objects, which are pickled: save numbers only."]
    elements = 1
    for size in shape:
        elements *= int(size)
    if min(shape, default=0) < 0 or elements * kind.itemsize != member.size - stream.tell():
        return [f"{shown} claims another size than it has: save it again with numpy.save."]
    return []
