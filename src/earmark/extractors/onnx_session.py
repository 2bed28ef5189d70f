"""ONNX files opened for deterministic work: one thread for each call, and clips spread over threads by the caller."""

from __future__ import annotations

from os import PathLike
from typing import Any

from earmark.errors import InputError, require

__all__ = ["open_session"]


def open_session(path: str | PathLike[str], thing: str = "ONNX models", extra: str = "onnx") -> Any:
    """An onnxruntime session on the CPU. It may be called from several threads at once."""
    require("onnxruntime", thing, extra)
    import onnxruntime  # an import statement, so that its version is part of the cache key

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no type of their own
        text = " ".join(str(error).split())
        raise InputError(f"{path} cannot be opened as an ONNX model: {text}.") from error
