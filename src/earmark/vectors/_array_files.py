"""Arrays and tensors in files: .npy, .npz and .pt. None of them may hold Python objects: reading one runs code."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import EarmarkError, InputError, UsageError, absent, require
from earmark.places import is_remote
from earmark.vectors._values import Labels, Vectors, as_matrix, labels_of, vectors_of
from earmark.vectors.columns import Asked, names_items, pick_columns, refuse_columns, role_of, roles_of
from earmark.vectors.texts import Texts, as_text


def npy_vectors(source: Path, _key: str | None, asked: Asked) -> Vectors:
    refuse_columns(source, asked.label, asked.groups)
    _refuse_dimensions(source, asked)
    return vectors_of(as_matrix(map_npy(source), source), {}, source)


def npz_vectors(source: Path, key: str | None, asked: Asked) -> Vectors:
    _refuse_dimensions(source, asked)
    with _open_npz(source) as archive:
        chosen = _choose_array({name: _npz_ndim(archive, name) for name in archive.files}, key, source)
        values = as_matrix(_npz_array(archive, chosen, source), source)
        roles = _beside(archive.files, chosen, asked, source)
        texts = {role: _array_texts(_npz_array(archive, name, source), source) for role, name in roles.items()}
        beside = {} if "id" in roles else _text_arrays(archive, [chosen, *roles.values()], len(values), source)
    return vectors_of(values, texts, source, roles=roles, beside=beside)


def pt_vectors(source: Path, key: str | None, asked: Asked) -> Vectors:
    _refuse_dimensions(source, asked)
    torch = require("torch", "Torch .pt files", "torch")
    try:
        # weights_only: tensors and plain containers, never code.
        elsewhere: bool = is_remote(source)
        with source.open("rb") if elsewhere else nullcontext(source) as given:
            held = torch.load(given, map_location="cpu", weights_only=True)
    except (EarmarkError, PermissionError):
        raise
    except Exception as error:
        # Torch's own message advises to load the file without this safeguard.
        raise InputError(
            f"{source} is damaged or holds more than tensors; save the matrix with torch.save(tensor, path)."
        ) from error
    if not isinstance(held, Mapping):
        if key is not None:
            raise InputError(f"{source} holds one tensor; leave the key out.")
        refuse_columns(source, asked.label, asked.groups)
        return vectors_of(as_matrix(_from_tensor(held, torch, source), source), {}, source)
    ndims = {str(name): item.ndim if torch.is_tensor(item) else 0 for name, item in held.items()}
    by_name = {str(name): item for name, item in held.items()}
    chosen = _choose_array(ndims, key, source)
    roles = _beside(list(by_name), chosen, asked, source)
    texts = {}
    for role, name in roles.items():
        item = by_name[name]
        listed = item.tolist() if torch.is_tensor(item) else item
        if not isinstance(listed, list | tuple):
            raise InputError(f"{source}: `{name}` is not a list; give one entry for each vector.")
        texts[role] = [as_text(entry) for entry in listed]
    return vectors_of(as_matrix(_from_tensor(by_name[chosen], torch, source), source), texts, source, roles=roles)


def _beside(names: Sequence[str], chosen: str, asked: Asked, source: Path) -> dict[str, str]:
    """The arrays that hold labels, groups and ids beside the matrix `chosen`."""
    others = [name for name in names if name != chosen]
    return roles_of(others, asked.label, asked.groups, source)


def _refuse_dimensions(source: Path, asked: Asked) -> None:
    if asked.dimensions:
        raise UsageError(f"{source} has no named columns to choose dimensions from; choose the array with a key.")


def npy_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    refuse_columns(source, column, groups)
    return labels_of({"label": _array_texts(_load_npy(source), source)}, source)


def npz_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    with _open_npz(source) as archive:
        lists = [name for name in archive.files if role_of(name) or _npz_ndim(archive, name) == 1 or name == column]
        if not lists:
            raise InputError(f"{source} has no 1-D array; its arrays are {', '.join(archive.files) or 'none'}.")
        roles = pick_columns(lists, column, groups, source)
        texts = {role: _array_texts(_npz_array(archive, name, source), source) for role, name in roles.items()}
        beside = {} if "id" in roles else _text_arrays(archive, [roles["label"]], len(texts["label"]), source)
    return labels_of(texts, source, roles=roles, beside=beside)


def _text_arrays(archive: Any, used: Sequence[str], count: int, source: Path) -> dict[str, Texts]:
    """The arrays of texts whose name says that they hold names."""
    found = {}
    for name in archive.files:
        if name not in used and names_items(name) and _npz_ndim(archive, name) == 1:
            array = _npz_array(archive, name, source)
            if len(array) == count and array.dtype.kind in "US":
                found[name] = _array_texts(array, source)
    return found


def map_npy(source: Path) -> NDArray[Any]:
    """The array of a .npy file, left on disk; what is written to it does not reach the file."""
    elsewhere: bool = is_remote(source)
    if elsewhere:  # there is no disk to leave it on
        return _load_npy(source)
    with source.open("rb") as stream:
        _check_npy(source, stream)
    with _refusing_objects(str(source)):
        return np.asanyarray(np.load(source, mmap_mode="c", allow_pickle=False))


def npz_arrays(source: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file."""
    with _open_npz(source) as archive:
        return {name: _npz_array(archive, name, source) for name in archive.files}


def _load_npy(source: Path) -> NDArray[Any]:
    # Elsewhere NumPy reads blocks into the array itself: the file is never held beside it.
    with source.open("rb") as stream:
        _check_npy(source, stream)
        with _refusing_objects(str(source)):
            return np.asarray(np.load(stream, allow_pickle=False))


def _check_npy(source: Path, stream: IO[bytes]) -> None:
    start = stream.read(6)
    stream.seek(0)
    if start != b"\x93NUMPY":
        # np.load would take it for a pickle and advise to allow them, which is never safe.
        kind = "a .npz file" if start[:2] == b"PK" else "not a NumPy array"
        raise InputError(f"{source} is {kind}; save it with numpy.save, or give it its right suffix.")


@contextmanager
def _refusing_objects(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise InputError(
            f"{name} holds Python objects, which are unsafe to read; save numbers as float32 and text as str."
        ) from error


@contextmanager
def _open_npz(source: Path) -> Iterator[Any]:
    # Opened here: given a path, is_zipfile takes a file that may not be opened for no zip file, and np.load
    # leaves a damaged one open.
    with source.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise InputError(f"{source} is damaged or not a .npz file; save it with numpy.savez.")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            yield archive


def _npz_array(archive: Any, name: str, source: Path) -> NDArray[Any]:
    with _refusing_objects(f"{source}, array `{name}`"):
        return np.asarray(archive[name])


def _npz_ndim(archive: Any, name: str) -> int:
    """The number of dimensions of an array, from its header: other arrays of the file may be large."""
    with archive.zip.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape = np.lib.format.read_array_header_1_0(stream)[0]
        else:
            shape = np.lib.format.read_array_header_2_0(stream)[0]
    return len(shape)


def _choose_array(ndims: Mapping[str, int], key: str | None, source: Path) -> str:
    names = ", ".join(ndims) or "none"
    if key is not None:
        if key not in ndims:
            raise InputError(absent(key, ndims, "array", source))
        return key
    if "vectors" in ndims:
        return "vectors"
    matrices = [name for name, ndim in ndims.items() if ndim == 2]
    if len(matrices) != 1:
        count = "no 2-D array" if not matrices else f"{len(matrices)} 2-D arrays"
        raise InputError(f"{source} has {count} among its arrays ({names}); name the matrix `vectors`.")
    return matrices[0]


def _array_texts(array: NDArray[Any], source: Path) -> Texts:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{source}: labels, ids and groups have one dimension; this shape is {array.shape}.")
    if array.dtype.kind in "OcV":
        raise InputError(f"{source} holds {array.dtype} where text or numbers belong; save labels as str or int.")
    return [as_text(item) for item in array.tolist()]


def _from_tensor(tensor: Any, torch: Any, source: Path) -> NDArray[Any]:
    if not torch.is_tensor(tensor):
        raise InputError(f"{source} holds a {type(tensor).__name__}, not a tensor; save the matrix with torch.save.")
    if tensor.layout != torch.strided:
        raise InputError(f"{source} holds a sparse tensor; save it dense.")
    # NumPy has no bfloat16; float32 holds every value of it.
    dense = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return np.asarray(dense.detach().numpy())
