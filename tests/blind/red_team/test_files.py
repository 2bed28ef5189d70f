"""Files that try: every package here is refused before anything of it is unpacked or run, and within its limits."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.blind.examples import CODE, code_package, onnx_package, write_manifest, write_onnx
from tests.extractors.tiny_onnx import external, node, number, tensor, text, value_info, varint

from earmark.blind import _archives, _onnx_rules
from earmark.blind._onnx_rules import MOST_DEPTH, onnx_problems
from earmark.blind._safetensors_rules import safetensors_problems
from earmark.blind.packages import PackageRefused, inspect, unpack

SECONDS = 5.0


def refused(path: Path, words: str) -> None:
    """The package is refused for this reason, quickly, and nothing of it lies anywhere."""
    started = time.monotonic()
    for look in (inspect, lambda given: unpack(given, path.parent / "unpacked")):
        with pytest.raises(PackageRefused) as refusal:
            look(path)
        assert any(words in problem for problem in refusal.value.problems), refusal.value.problems
        assert all(problem.isprintable() for problem in refusal.value.problems)
    assert time.monotonic() - started < SECONDS


# --- ONNX ------------------------------------------------------------------------------------------------------------

WEIGHTS = np.ones((2, 2), np.float32)


def graph(*nodes: bytes, tensors: tuple[bytes, ...] = ()) -> bytes:
    inside = b"".join(text(1, one) for one in nodes) + text(2, "g") + b"".join(text(5, one) for one in tensors)
    return inside + text(11, value_info("x", [1, "t"])) + text(12, value_info("y", [1, "t"]))


def model(inside: bytes, more: bytes = b"") -> bytes:
    return number(1, 8) + text(7, inside) + text(8, text(1, "") + number(2, 17)) + more


IDENTITY = node("Identity", ["x"], ["y"])


def claims(sizes: list[int], kind: int = 1, data: bytes = b"") -> bytes:
    """A tensor that says it is larger than it is."""
    return b"".join(number(1, size) for size in sizes) + number(2, kind) + text(8, "w") + data


def subgraphs(depth: int) -> bytes:
    inside = graph(IDENTITY)
    for _ in range(depth):
        branch = text(5, text(1, "then_branch") + text(6, inside) + number(20, 5))
        inside = graph(node("If", ["x"], ["y"]) + branch)
    return inside


ONNX: dict[str, tuple[bytes, str]] = {
    "a file above": (model(graph(IDENTITY, tensors=(external("w", WEIGHTS, "../../etc/passwd"),))), "outside itself"),
    "an absolute file": (model(graph(IDENTITY, tensors=(external("w", WEIGHTS, "/etc/passwd"),))), "outside itself"),
    "an address": (model(graph(IDENTITY, tensors=(external("w", WEIGHTS, "http://a.example/w"),))), "outside itself"),
    "a file beside it": (model(graph(IDENTITY, tensors=(external("w", WEIGHTS, "w.data"),))), "outside itself"),
    "the memory of its reader": (
        model(graph(IDENTITY, tensors=(external("w", WEIGHTS, "*/_ORT_MEM_ADDR_/*", 4096),))), "outside itself",
    ),
    "a place alone, without a name": (model(graph(IDENTITY, tensors=(claims([1]) + number(14, 1),))), "outside itself"),
    "a file named by a constant": (
        model(graph(node("Constant", [], ["y"]) + text(5, text(1, "value") + text(5, external("w", WEIGHTS, "/a"))))),
        "outside itself",
    ),
    "a file named in a branch": (
        model(graph(node("If", ["x"], ["y"]) + text(5, text(6, graph(tensors=(external("w", WEIGHTS, "/a"),)))))),
        "outside itself",
    ),
    "operators of its own": (model(graph(IDENTITY), text(8, text(1, "evil.ops") + number(2, 1))), "evil.ops"),
    "a node of its own operators": (model(graph(IDENTITY + text(7, "com.microsoft"))), "com.microsoft"),
    "a function": (model(graph(IDENTITY), text(25, text(1, "f") + text(10, "evil"))), "functions"),
    "training": (model(graph(IDENTITY), text(20, text(1, graph(IDENTITY)))), "training"),
    "a sparse tensor": (model(graph(IDENTITY) + text(15, text(1, claims([10**12])))), "sparse"),
    "a tensor of 10^12 numbers in four bytes": (
        model(graph(IDENTITY, tensors=(claims([10**6, 10**6], data=text(9, bytes(4))),))), "larger than the bytes",
    ),
    "a tensor whose size wraps to 0": (
        model(graph(IDENTITY, tensors=(claims([2**32, 2**32]),))), "larger than the bytes",
    ),
    "a tensor of negative size": (model(graph(IDENTITY, tensors=(claims([-1]),))), "larger than the bytes"),
    "packed sizes": (
        model(graph(IDENTITY, tensors=(text(1, varint(10**9) * 2) + number(2, 1),))), "larger than the bytes",
    ),
    "a list of numbers that is too short": (
        model(graph(IDENTITY, tensors=(claims([10**9], data=text(4, bytes(400))),))), "larger than the bytes",
    ),
    "texts that are not there": (model(graph(IDENTITY, tensors=(claims([10**9], 8),))), "larger than the bytes"),
    "a type that there is not": (model(graph(IDENTITY, tensors=(claims([1], 99),))), "unknown type"),
    "a hundred dimensions": (model(graph(IDENTITY, tensors=(claims([1] * 100),))), "dimensions"),
    "two graphs": (model(graph(IDENTITY), text(7, graph(IDENTITY))), "twice"),
    "a tensor twice": (
        model(graph(node("Constant", [], ["y"]) + text(5, text(5, tensor("a", WEIGHTS)) + text(5, claims([]))))),
        "twice",
    ),
    "graphs in graphs": (model(subgraphs(MOST_DEPTH + 1)), "deep"),
    "graphs in a thousand graphs": (model(subgraphs(1000)), "deep"),
    "no graph": (number(1, 8), "no graph"),
    "cut short": (model(graph(IDENTITY, tensors=(tensor("w", WEIGHTS),)))[:-9], "not a readable ONNX file"),
    "a length beyond its end": (number(1, 8) + b"\x3a\xff\xff\xff\xff\x0f", "not a readable ONNX file"),
    "a number without an end": (b"\x08" + b"\xff" * 100, "not a readable ONNX file"),
    "noise": (bytes(np.random.default_rng(0).integers(1, 256, 5000, np.uint8)), "not a readable ONNX file"),
    "nothing": (b"", "no graph"),
}  # fmt: skip


@pytest.mark.parametrize("case", ONNX)
def test_an_onnx_file_that_tries_is_refused(case: str, tmp_path: Path) -> None:
    data, words = ONNX[case]
    folder = onnx_package(tmp_path / "a")
    (folder / "model.onnx").write_bytes(data)
    refused(folder, words)


def test_too_many_nodes_and_parts_are_not_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_onnx_rules, "MOST_NODES", 50)
    assert "more than 50 nodes" in onnx_problems(model(graph(*[IDENTITY] * 51)), "a")[0]
    assert onnx_problems(model(graph(*[IDENTITY] * 50)), "a") == []
    monkeypatch.setattr(_onnx_rules, "MOST_FIELDS", 1000)
    floats = claims([5000], data=b"\x25\0\0\0\0" * 5000)  # numbers one by one, not packed
    assert "more than 1,000 parts" in onnx_problems(model(graph(IDENTITY, tensors=(floats,))), "a")[0]


def test_every_cut_of_an_onnx_file_is_a_sentence_or_a_model(tmp_path: Path) -> None:
    data = write_onnx(tmp_path / "m.onnx").read_bytes()
    assert onnx_problems(data, "m") == []
    for end in range(0, len(data), 7):
        assert all(problem.isprintable() for problem in onnx_problems(data[:end], "m"))


def test_every_changed_byte_of_an_onnx_file_is_a_sentence_or_a_model(tmp_path: Path) -> None:
    data = bytearray(write_onnx(tmp_path / "m.onnx").read_bytes())
    random = np.random.default_rng(1)
    for place in random.integers(0, len(data), 400):
        kept, data[place] = data[place], int(random.integers(256))
        assert all(problem.isprintable() for problem in onnx_problems(bytes(data), "m"))
        data[place] = kept


# --- safetensors -----------------------------------------------------------------------------------------------------


def said(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


def weights(header: object, data: bytes = bytes(8), length: int | None = None) -> bytes:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(encoded) if length is None else length) + encoded + data


WEIGHTS_FILES: dict[str, tuple[bytes, str]] = {
    "a header longer than the file": (weights({"a": said()}, length=10**6), "more than the file has"),
    "a header of 2^63 bytes": (weights({"a": said()}, length=2**63), "more than the file has"),
    "a negative offset": (weights({"a": said(data_offsets=[-8, 0])}), "does not fit"),
    "an offset beyond the end": (weights({"a": said(data_offsets=[8, 16])}), "does not fit"),
    "offsets that overlap": (weights({"a": said(), "b": said()}), "overlap"),
    "a gap": (weights({"a": said(data_offsets=[8, 16])}, bytes(16)), "gaps"),
    "bytes of no tensor": (weights({"a": said()}, bytes(800)), "belong to no tensor"),
    "a shape that is too large": (weights({"a": said(shape=[10**12])}), "does not fit"),
    "a shape that wraps to 0": (weights({"a": said(shape=[2**32, 2**32], data_offsets=[0, 0])}, b""), "does not fit"),
    "a number that is none": (weights({"a": said(shape=[2.0])}), "does not fit"),
    "true as a size": (weights({"a": said(shape=[True, 2])}), "does not fit"),
    "a huge number": (weights(b'{"a": {"dtype": "F32", "shape": [1e400], "data_offsets": [0, 8]}}'), "does not fit"),
    "an unknown type": (weights({"a": said(dtype="OBJECT")}), "does not fit"),
    "a type that is a list": (weights({"a": said(dtype=["F32"])}), "does not fit"),
    "a key too many": (weights({"a": said(code="import os")}), "does not fit"),
    "a name twice": (
        weights(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "a": {}}'), "twice",
    ),
    "a key twice": (
        weights(b'{"a": {"dtype": "F32", "dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}'), "twice",
    ),
    "no JSON": (weights(b"\x80\x04\x95"), "not JSON"),
    "lists in lists": (weights(b"[" * 100_000), "not JSON"),
    "a list": (weights([1]), "names no tensors"),
    "metadata that are no texts": (weights({"a": said(), "__metadata__": {"a": [1]}}), "not texts"),
    "nothing": (b"", "shorter"),
    "a pickle": (pickle.dumps({"a": 1}), "more than the file has"),
}  # fmt: skip


@pytest.mark.parametrize("case", WEIGHTS_FILES)
def test_a_safetensors_file_that_lies_is_refused(case: str, tmp_path: Path) -> None:
    data, words = WEIGHTS_FILES[case]
    folder = code_package(tmp_path / "a")
    (folder / "model.safetensors").write_bytes(data)
    refused(folder, words)


def test_a_header_of_100_megabytes_is_not_read() -> None:
    size = 100 << 20
    tracemalloc.start()
    problems = safetensors_problems(io.BytesIO(struct.pack("<Q", size) + b"{"), size + 100, "a")
    assert "allowed" in problems[0]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_weights_that_the_library_saves_are_taken(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    kinds = (np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_)
    arrays = {str(number): np.ones((number, 3), kind) for number, kind in enumerate(kinds)}
    library.save_file({**arrays, "scalar": np.ones((), np.float32)}, tmp_path / "a", metadata={"format": "pt"})
    with (tmp_path / "a").open("rb") as stream:
        assert safetensors_problems(stream, (tmp_path / "a").stat().st_size, "a") == []


# --- pickles and compiled code, whatever they are called ------------------------------------------------------------


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch evidence",)


def object_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], object), allow_pickle=True)
    return stream.getvalue()


def array(header: str, data: bytes = b"") -> bytes:
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + data


def saved_by_torch() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("archive/data.pkl", pickle.dumps(Evil()))
    return stream.getvalue()


CONTENTS: dict[str, tuple[str, bytes, str]] = {
    "a pickle": ("weights.pkl", pickle.dumps(Evil()), "pickle"),
    "what torch saves": ("weights.pt", saved_by_torch(), "pickle"),
    "what joblib saves": ("weights.joblib", pickle.dumps(Evil()), "pickle"),
    "a pickle called JSON": ("weights.json", pickle.dumps(Evil()), "a pickle"),
    "a pickle called ONNX": ("weights.onnx", pickle.dumps(Evil()), "a pickle"),
    "a pickle called an array": ("weights.npy", pickle.dumps(Evil()), "a pickle"),
    "an old pickle called text": ("weights.txt", pickle.dumps(Evil(), protocol=0), "pickle written as text"),
    "what torch saves called text": ("weights.txt", saved_by_torch(), "archive"),
    "an array of objects": ("weights.npy", object_array(), "Python objects"),
    "objects inside of records": (
        "weights.npy", array("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }", bytes(8)), "objects",
    ),
    "an array that claims more": (
        "weights.npy", array("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"), "another size",
    ),
    "code in the header of an array": (
        "weights.npy", array("{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').system('a'),), }"),
        "not a readable .npy",
    ),
    "an archive of arrays": ("weights.npz", saved_by_torch(), "pickle"),
    "a library": ("native.so", b"\x7fELF", "compiled code"),
    "a library with a version": ("native.so.1", b"\x7fELF", "compiled code"),
    "a library called text": ("native.txt", b"\x7fELF\2\1\1", "compiled code"),
    "compiled Python": ("evil.pyc", b"\xa7\r\r\n", "compiled code"),
    "compiled Python called Python": ("evil.py", b"\xa7\r\r\n\0\0\0\0", "not text"),
    "a wheel": ("evil.whl", b"PK\3\4", "compiled code"),
    "an HDF5 file": ("weights.h5", b"\x89HDF\r\n\x1a\n", "of a kind"),
    "a script": ("run.sh", b"#!/bin/sh\n", "of a kind"),
    "a binary called text": ("notes.txt", b"abc\0def", "not text"),
    "a gzip bomb": ("weights.json", zlib.compress(bytes(10**6), wbits=31), "archive"),
    "something without a kind": ("weights", b"abc", "of a kind"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTENTS)
def test_pickles_and_compiled_code_are_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, data, words = CONTENTS[case]
    folder = code_package(tmp_path / "a")
    (folder / name).write_bytes(data)
    refused(folder, words)
    assert not (tmp_path / "evidence").exists()


# --- archives --------------------------------------------------------------------------------------------------------


def files() -> dict[str, bytes]:
    manifest = b"format: 1\nkind: code\nmodel: extractor.py:Spectrum\nsystem: {name: tiny}\n"
    return {"submission.yaml": manifest, "extractor.py": CODE.encode()}


def zipped(path: Path, more: Callable[[zipfile.ZipFile], None] = lambda made: None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files().items():
            made.writestr(name, data)
        more(made)
    return path


def named(name: str) -> Callable[[zipfile.ZipFile], None]:
    """A file whose name is stored as it is."""

    def add(made: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo("placeholder")
        info.filename = name
        made.writestr(info, b"a")

    return add


def linked(made: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("notes.txt")
    info.external_attr = 0o120777 << 16
    made.writestr(info, b"/etc/passwd")


def device(made: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("notes.txt")
    info.external_attr = 0o020666 << 16
    made.writestr(info, b"")


def bomb(made: zipfile.ZipFile) -> None:
    made.writestr("weights.txt", bytes(30 << 20))


def twice(made: zipfile.ZipFile) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("extractor.py", b"print('the other one')")


ARCHIVES: dict[str, tuple[Callable[[zipfile.ZipFile], None], str]] = {
    "a name that leads out": (named("../evil.py"), "leads out"),
    "a name that leads out of a folder": (named("a/../../evil.py"), "leads out"),
    "an absolute name": (named("/tmp/evil.py"), "leads out"),
    "a name with a backslash": (named("..\\evil.py"), "characters"),
    "a drive": (named("C:evil.py"), "characters"),
    "a name with a line break": (named("a\nb.py"), "characters"),
    "a name that steers a terminal": (named("a\x1b[2J.py"), "characters"),
    "a name that reads backwards": (named("a\u202eyp.exe.py"), "characters"),
    "a name of 300 letters": (named("a" * 300 + ".py"), "too long"),
    "thirty folders": (named("a/" * 30 + "b.py"), "too deep"),
    "a name in capitals": (named("EXTRACTOR.PY"), "two files"),
    "a file that is a folder": (named("extractor.py/a.py"), "a file and a folder"),
    "a link": (linked, "a link"),
    "a device": (device, "a link or a device"),
    "one name twice": (twice, "two files"),
    "a bomb": (bomb, "unpacks to"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_that_tries_is_refused(case: str, tmp_path: Path) -> None:
    more, words = ARCHIVES[case]
    refused(zipped(tmp_path / "a.zip", more), words)
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "unpacked"}
    assert not any((tmp_path / "unpacked").iterdir())


def test_a_name_that_ends_before_its_end_is_refused(tmp_path: Path) -> None:
    """Some readers stop at NUL, and see another name than others."""
    path = zipped(tmp_path / "a.zip", named("evil.txt_.py"))
    path.write_bytes(path.read_bytes().replace(b"evil.txt_.py", b"evil.txt\0.py"))
    refused(path, "characters")


def changed(path: Path, change: Callable[[bytearray, int, int], None]) -> Path:
    """A zip whose list of files is changed: its bytes, where the list begins, and where its end record begins."""
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    change(data, struct.unpack_from("<L", data, end + 16)[0], end)
    path.write_bytes(data)
    return path


def set_number(place: int, form: str, value: int) -> Callable[[bytearray, int, int], None]:
    """A number in the first record of the list."""
    return lambda data, start, end: struct.pack_into(form, data, start + place, value)


LISTS: dict[str, tuple[Callable[[bytearray, int, int], None], str]] = {
    "a smaller size": (set_number(24, "<L", 10), "not what it says at its end"),
    "a larger size": (set_number(24, "<L", 2**31), "not what it says at its end"),
    "another checksum": (set_number(16, "<L", 1), "not what it says at its end"),
    "another method": (set_number(10, "<H", 12), "not a plain .zip"),
    "a password": (set_number(8, "<H", 1), "not what it says at its end"),
    "files over each other": (
        lambda data, start, end: struct.pack_into(
            "<L", data, data.index(b"PK\x01\x02", start + 4) + 42, struct.unpack_from("<L", data, start + 42)[0] + 4
        ), "not a plain .zip",
    ),
    "a file behind the end": (set_number(42, "<L", 2**30), "not a plain .zip"),
    "a million files": (lambda data, start, end: struct.pack_into("<HH", data, end + 8, 60000, 60000), "are allowed"),
    "a list of a gigabyte": (lambda data, start, end: struct.pack_into("<L", data, end + 12, 2**30), "are allowed"),
    "several parts": (lambda data, start, end: struct.pack_into("<H", data, end + 4, 3), "several parts"),
    "another name": (
        lambda data, start, end: data.__setitem__(slice(start + 46, start + 49), b"abc"), "not what it says at its end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
def test_an_archive_whose_lists_differ_is_refused(case: str, tmp_path: Path) -> None:
    change, words = LISTS[case]
    refused(changed(zipped(tmp_path / "a.zip"), change), words)


def test_bytes_before_behind_and_between_are_refused(tmp_path: Path) -> None:
    plain = zipped(tmp_path / "plain.zip").read_bytes()
    for number_, data in enumerate((b"#!/bin/sh\n" + plain, plain + b"x", plain + plain, plain[:-5], plain[:50], b"")):
        path = tmp_path / f"{number_}.zip"
        path.write_bytes(data)
        refused(path, "not a plain .zip")


def test_a_list_of_a_million_files_is_refused_in_no_time(tmp_path: Path) -> None:
    """The list is there in full and says how long it is; it is not read."""
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    path = tmp_path / "a.zip"
    path.write_bytes(entry * 10**6 + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) * 10**6, 0, 0))
    tracemalloc.start()
    refused(path, "are allowed")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_sums_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_archives, "MOST_BYTES", 500)
    refused(zipped(tmp_path / "a.zip"), "are allowed")
    refused(code_package(tmp_path / "b"), "come to")
    monkeypatch.setattr(_archives, "MOST_FILES", 1)
    refused(code_package(tmp_path / "c"), "2 files")


HEAVY: dict[str, tuple[str, bytes, str]] = {
    "opcodes without an end": (".txt", b"N0" * 1_000_000, "reads like one"),
    "opcodes in many files": (".md", b"N0" * 30_000 + b"?", "reads like one"),
    "small fields in many graphs": (".onnx", number(3, 1) * 100_000, "parts"),
    "long headers in many files": (".safetensors", weights(b" " * (5 << 20) + b"{}", b""), "headers"),
    "texts": (".csv", b"1\n" * 2_000_000, "texts"),
}


@pytest.mark.parametrize("case", HEAVY)
def test_what_many_files_cost_is_counted_together(case: str, tmp_path: Path) -> None:
    """Each alone might be taken; a package of them costs seconds, not hours."""
    suffix, data, words = HEAVY[case]
    folder = code_package(tmp_path / "a")
    for count in range(20):
        (folder / f"{count}{suffix}").write_bytes(data)
    started = time.process_time()
    with pytest.raises(PackageRefused) as refusal:
        inspect(folder)
    assert any(words in problem for problem in refusal.value.problems)
    assert time.process_time() - started < 15


def test_many_json_files_are_not_kept(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name, content in files().items():
            made.writestr(name, content)
        for count in range(10):
            made.writestr(f"{count}.json", bytes(np.random.default_rng(0).integers(97, 122, 4_000_000, np.uint8)))
    tracemalloc.start()
    assert inspect(tmp_path / "a.zip").kind == "code"
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()


def test_content_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip")
    data = bytearray(path.read_bytes())
    data[80] ^= 255
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"damaged|plain"):
        inspect(path)


def test_links_in_a_folder_are_refused(tmp_path: Path) -> None:
    folder = code_package(tmp_path / "a")
    (folder / "notes.txt").symlink_to("/etc/passwd")
    refused(folder, "a link")
    other = code_package(tmp_path / "b")
    (other / "all").symlink_to("/")
    refused(other, "a link")
    third = code_package(tmp_path / "c")
    os.mkfifo(third / "notes.txt")
    refused(third, "a link, a device")


def test_a_manifest_alone_is_refused(tmp_path: Path) -> None:
    refused(write_manifest(tmp_path / "a", kind="onnx", model="model.onnx"), "no file")
