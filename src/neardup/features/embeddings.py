"""Embeddings: what an encoder must do, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError

Floats = npt.NDArray[np.float64]
#: Cosines of embeddings become whole numbers of this.
COSINE_UNIT = 10**9


class Encoder(Protocol):
    """What makes embeddings: ``encode(texts)`` gives an array with a row of numbers for each text."""

    def encode(self, texts: list[str]) -> Any:
        """Return the embeddings of texts."""


def embed(texts: Sequence[str], encoder: Encoder) -> Floats:
    """Return the embeddings of texts as rows of length 1 (of zeros, where they are zeros); refuse other answers."""
    if not len(texts):
        return np.empty((0, 1))
    try:
        rows = np.asarray(encoder.encode(list(texts)), np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the encoder {type(encoder).__name__} fails ({error}); it must have encode(texts), which gives a row of "
            "finite numbers for each text"
        ) from error
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise RecipeError(
            f"the encoder gave an array of shape {rows.shape} for {len(texts):,} texts; it must give a row of finite "
            "numbers for each"
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def cosine_counts(
    embeddings: Floats, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return int64[n, 3], o, a and b of pairs of embeddings: their cosine, 0 below 0, in whole numbers."""
    cosine = np.einsum("ij,ij->i", embeddings[left], embeddings[right])
    o = np.rint(np.clip(cosine, 0, 1) * COSINE_UNIT).astype(np.int64)
    return np.column_stack([o, np.full((len(o), 2), COSINE_UNIT, np.int64)])
