"""What is kept of documents, so that each of their pairs is measured in microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.vector.rows import Rows


class Prepared(NamedTuple):
    """Documents that are ready to be measured in pairs.

    Attributes
    ----------
    documents : int
        How many there are.
    rows : mapping of str to Rows
        What is compared, by name: features with their weights, ``tokens``, ``places``, ``facts``, ``titles``.
    texts : sequence of str
        The texts as they are.
    times : int64[n] or None
        Microseconds since 1970; ``NO_TIME`` where it is not known.
    embeddings : float64[n, width] or None
        Rows of length 1.
    """

    documents: int
    rows: Mapping[str, Rows]
    texts: Sequence[str]
    times: npt.NDArray[np.int64] | None
    embeddings: npt.NDArray[np.float64] | None
