"""Embeddings: the encoder interface, unit vectors, and cosines as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from neardup.errors import RecipeError
from neardup.kernels import Floats, Integers

#: A cosine is a whole number of this many parts.
COSINE_UNIT = 10**9


class Encoder(Protocol):
    """An object that computes embeddings: ``encode(texts)`` returns an array with one row of numbers per text."""

    def encode(self, texts: list[str]) -> Any:
        """Return the embeddings of texts."""


def embed(texts: Sequence[str], encoder: Encoder) -> Floats:
    """Return the embeddings of texts as rows of length 1, or of zeros if the encoder returns zeros.

    Raises ``RecipeError`` if the encoder fails or returns anything but a finite row per text.
    """
    if not len(texts):
        return np.empty((0, 1))
    try:
        rows = np.asarray(encoder.encode(list(texts)), np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the encoder {type(encoder).__name__} fails ({error}); it must have encode(texts), which returns a "
            "row of finite numbers for each text"
        ) from error
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise RecipeError(
            f"the encoder returned an array of shape {rows.shape} for {len(texts):,} texts; it must return a row of "
            "finite numbers for each"
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def cosine_counts(embeddings: Floats, left: Integers, right: Integers) -> Integers:
    """Return o, a and b of pairs of embeddings as int64[n, 3]: their cosine, clipped to [0, 1], in units of 1e-9."""
    cosine = np.einsum("ij,ij->i", embeddings[left], embeddings[right])
    o = np.rint(np.clip(cosine, 0, 1) * COSINE_UNIT).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), COSINE_UNIT, np.int64)])
