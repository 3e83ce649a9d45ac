"""Digests of texts and of sets: what tells them apart where an answer depends on it, whoever wrote them."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup._kernels.pairing import sort_rows

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_BYTES = 16
_NO_WEIGHTS = np.empty(0, np.int64)


def text_digests(data: npt.NDArray[Any], offsets: Integers) -> Words:
    """Return the 128 bits of BLAKE2b of each text: uint64[d, 2].

    Two texts with one digest are not known for any such hash; to find a pair takes some 2**64 of them.

    Parameters
    ----------
    data : uint8[bytes]
        The texts, one behind the other.
    offsets : int64[d + 1]
        Where each one begins, and where the last one ends.
    """
    view, ends = data.data, offsets.tolist()
    found = [blake2b(view[begin:end], digest_size=_BYTES).digest() for begin, end in pairwise(ends)]
    return np.frombuffer(b"".join(found), "<u8").astype(np.uint64).reshape(-1, 2)


def set_digests(features: Words, sizes: Integers) -> Words:
    """Return the digest of each set of features, whatever their order: uint64[d, 2].

    Parameters
    ----------
    features : uint64[k]
        The sets, one behind the other.
    sizes : int64[d]
        How many features each one has.
    """
    heads = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ordered = features.copy()
    sort_rows(heads, ordered, _NO_WEIGHTS)
    return text_digests(ordered.astype("<u8").view(np.uint8), 8 * heads)
