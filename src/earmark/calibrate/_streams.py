"""Random streams in compiled code: the numbers of `numpy.random.default_rng([seed, shuffle])`, without its objects.

A null of 1000 shuffles opens 1000 streams, each one its own, so that batches, threads and devices do not matter. NumPy
takes longer to open one than to shuffle a small corpus with it, and holds the interpreter meanwhile. What is here is
the arithmetic alone: SeedSequence (a pool of four 32-bit words), PCG64 (128 bits of state, XSL-RR), bounded integers
by masks and rejection. tests/calibrate/test_streams.py compares it with NumPy, number by number.
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry.kernels import compiled

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SIXTEEN = np.uint64(16)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_MULTIPLIER = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)  # of PCG's 128-bit step
_POOL = 4
_TO_UNIT = 1.0 / 9007199254740992.0  # 53 bits to [0, 1)


def words_of(seed: int) -> NDArray[np.uint64]:
    """The 32-bit words that a seed adds to the entropy, lowest first."""
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}.")
    words = [seed & 0xFFFFFFFF]
    while seed := seed >> 32:
        words.append(seed & 0xFFFFFFFF)
    return np.array(words, np.uint64)


@compiled
def _hashed(value, constant, multiplier):
    """One step of the hash: the hashed word, and the constant of the next step."""
    value = (value ^ constant) & _LOW
    constant = (constant * multiplier) & _LOW
    value = (value * constant) & _LOW
    return value ^ (value >> _SIXTEEN), constant


@compiled
def _mixed(x, y):
    value = (np.uint64(0xCA01F9DD) * x - np.uint64(0x4973F715) * y) & _LOW
    return value ^ (value >> _SIXTEEN)


@compiled
def _product(a, b):
    """a * b of 64-bit words: high and low word of the 128 bits."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low, left, right = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (left & _LOW) + (right & _LOW)
    return a1 * b1 + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF), (middle << _HALF) | (low & _LOW)


@compiled
def _step(high, low, more, odd):
    """(high, low) * multiplier + (more, odd), the increment of the stream, in 128 bits."""
    top, bottom = _product(low, _MULTIPLIER[1])
    top += high * _MULTIPLIER[1] + low * _MULTIPLIER[0]
    total = bottom + odd
    return top + more + (_ONE if total < bottom else _ZERO), total


@compiled
def _opened(words, shuffle):
    """The stream of entropy (words, shuffle): high and low word of its state, and of its increment."""
    pool = np.zeros(_POOL, np.uint64)
    count = words.shape[0] + 1
    constant = np.uint64(0x43B0D7E5)
    mixer = np.uint64(0x931E8875)
    for i in range(_POOL):
        word = words[i] if i < count - 1 else np.uint64(shuffle) if i == count - 1 else _ZERO
        pool[i], constant = _hashed(word, constant, mixer)
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                value, constant = _hashed(pool[source], constant, mixer)
                pool[target] = _mixed(pool[target], value)
    for source in range(_POOL, count):
        word = words[source] if source < count - 1 else np.uint64(shuffle)
        for target in range(_POOL):
            value, constant = _hashed(word, constant, mixer)
            pool[target] = _mixed(pool[target], value)
    constant = np.uint64(0x8B51F9DD)
    filled = np.zeros(_POOL, np.uint64)
    for i in range(2 * _POOL):
        value, constant = _hashed(pool[i % _POOL], constant, np.uint64(0x58F38DED))
        filled[i // 2] |= value << (_HALF if i % 2 else _ZERO)
    more, odd = (filled[2] << _ONE) | (filled[3] >> np.uint64(63)), (filled[3] << _ONE) | _ONE
    high, low = _step(_ZERO, _ZERO, more, odd)
    total = low + filled[1]
    high, low = _step(high + filled[0] + (_ONE if total < low else _ZERO), total, more, odd)
    return high, low, more, odd


@compiled
def _output(high, low):
    value, turn = high ^ low, high >> np.uint64(58)
    return (value >> turn) | (value << ((np.uint64(64) - turn) & np.uint64(63)))


@compiled
def _swapped(order, word, i, mask):
    """One try of Fisher and Yates: slot i trades places if the word is not past it; the slot that comes next.

    Without a branch, for no processor guesses which words are past it.
    """
    found = np.int64(word & mask)
    hit = found <= i
    j = found if hit else i
    order[i], order[j] = order[j], order[i]
    return i - hit


@compiled
def permutation(words, shuffle, order):
    """`permutation(n)` of the stream into order: [n], any integer type that holds n - 1."""
    high, low, more, odd = _opened(words, shuffle)
    for i in range(order.shape[0]):
        order[i] = i
    i = order.shape[0] - 1
    mask = _ZERO
    while mask < np.uint64(max(i, 0)):
        mask = (mask << _ONE) | _ONE
    while i > 0:
        high, low = _step(high, low, more, odd)
        both = _output(high, low)
        i = _swapped(order, both & _LOW, i, mask)
        while i > 0 and (mask >> _ONE) >= np.uint64(i):
            mask >>= _ONE
        if i > 0:
            i = _swapped(order, both >> _HALF, i, mask)
            while i > 0 and (mask >> _ONE) >= np.uint64(i):
                mask >>= _ONE


@compiled
def uniforms(words, shuffle, values):
    """`random(n)` of the stream into values: [n]."""
    high, low, more, odd = _opened(words, shuffle)
    for i in range(values.shape[0]):
        high, low = _step(high, low, more, odd)
        values[i] = np.float64(_output(high, low) >> np.uint64(11)) * _TO_UNIT


@compiled
def permutations(words, first, orders):
    """`permutation` of the streams first, first + 1, ... into orders: [B, n]."""
    for b in range(orders.shape[0]):
        permutation(words, first + b, orders[b])
