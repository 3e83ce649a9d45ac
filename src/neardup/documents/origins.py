"""What rows were read from: the names of files, and of folders of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from neardup.documents.parts import Source
from neardup.documents.textfiles import TextFiles


def origins(sources: Sequence[Source], bounds: Sequence[int], rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what raw rows were read from.

    Parameters
    ----------
    sources : sequence of Source
        Of a corpus.
    bounds : sequence of int
        The first raw row of each source, and where the last one ends.
    rows : int64[n]
        Raw rows.

    Returns
    -------
    int64[n], tuple of str
        A place among the names for each row, and the names: of files as they are given, of text files those of their
        folders; without those that have none of the rows.
    """
    named = [_names(source) for source in sources]
    names = list(dict.fromkeys(name for found in named for name in found))
    codes = {name: code for code, name in enumerate(names)}
    places = np.searchsorted(np.asarray(bounds[1:], np.int64), rows, side="right")
    found = np.zeros(len(rows), np.int64)
    for number, source in enumerate(named):
        here = np.flatnonzero(places == number)
        own = np.array([codes[name] for name in source], np.int64)
        found[here] = own[rows[here] - bounds[number]] if isinstance(sources[number], TextFiles) else own[0]
    used, dense = np.unique(found, return_inverse=True)
    return dense.astype(np.int64), tuple(names[code] for code in used.tolist())


def _names(source: Source) -> list[str]:
    """Return the folder of each text file, or the name of the one file that a source is."""
    if not isinstance(source, TextFiles):
        return [source.found.name]
    return [os.path.dirname(found.name) or os.curdir for found in source.files]
