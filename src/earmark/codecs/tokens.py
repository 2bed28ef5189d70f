"""How a codec uses its codebooks: usage, entropy, perplexity, and the rate that an entropy coder would need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError


class TokenStatistics(NamedTuple):
    """Statistics of tokens. The numbers are means over codebooks; the arrays have one value for each codebook."""

    usage: float  # share of the entries that occur at all
    entropy_bits: float  # bits a token, -sum p log2 p
    perplexity: float  # 2 ** entropy
    entropy_kbps: float  # frame rate times the sum of the codebooks' entropies: each coded alone, without context
    nominal_kbps: float  # frame rate times the sum of log2(size)
    usage_of: NDArray[np.float64]
    entropy_of: NDArray[np.float64]
    perplexity_of: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_frames: int


def token_statistics(tokens: Sequence[NDArray[np.integer]], sizes: Sequence[int], frame_rate: float) -> TokenStatistics:
    """Statistics of the tokens [codebooks, frames] of all clips together.

    usage is in (0, 1], entropy in [0, log2 size], perplexity in [1, size]; higher means a codebook that is used more
    fully. Frequencies are those counted, so with few frames both usage and entropy come out low: with n frames no
    codebook can show more than n entries or log2 n bits. Raises InputError for no frames, another number of
    codebooks, or a token outside its codebook.
    """
    joined = _joined(tokens, len(sizes))
    usage, entropy = np.empty(len(sizes)), np.empty(len(sizes))
    for number, (row, size) in enumerate(zip(joined, sizes, strict=True)):
        if int(row.min()) < 0 or int(row.max()) >= size:
            raise InputError(
                f"Codebook {number} has {size} entries and tokens from {row.min()} to {row.max()}: give its true size."
            )
        shares = np.unique(row, return_counts=True)[1] / len(row)
        usage[number] = len(shares) / size
        entropy[number] = max(0.0, -float(shares @ np.log2(shares)))
    perplexity = 2.0**entropy
    return TokenStatistics(
        usage=float(usage.mean()),
        entropy_bits=float(entropy.mean()),
        perplexity=float(perplexity.mean()),
        entropy_kbps=frame_rate * float(entropy.sum()) / 1000.0,
        nominal_kbps=frame_rate * float(np.log2(np.asarray(sizes, np.float64)).sum()) / 1000.0,
        usage_of=usage,
        entropy_of=entropy,
        perplexity_of=perplexity,
        sizes=np.asarray(sizes, np.int64),
        n_frames=joined.shape[1],
    )


def _joined(tokens: Sequence[NDArray[np.integer]], codebooks: int) -> NDArray[np.int64]:
    for clip in tokens:
        if clip.ndim != 2 or len(clip) != codebooks or clip.dtype.kind not in "iu":
            raise InputError(
                f"Tokens of shape {clip.shape} do not fit {codebooks} codebooks: give whole numbers "
                "[codebooks, frames]."
            )
    if not sum(clip.shape[1] for clip in tokens):
        raise InputError("There are no tokens to count: give at least one frame.")
    return np.concatenate([clip.astype(np.int64) for clip in tokens], axis=1)
