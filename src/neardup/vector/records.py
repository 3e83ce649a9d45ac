"""What is known of the documents of pairs: texts, and where they have them titles and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: The time of a document whose time is not known.
NO_TIME = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Documents whose pairs are to be measured.

    Attributes
    ----------
    texts : sequence of str
        What is compared, content already taken from pages.
    titles : sequence of str or None, optional
        None for a document without one, or where no measure takes them.
    times : int64[n], optional
        Microseconds since 1970, ``NO_TIME`` where it is not known.
    """

    texts: Sequence[str]
    titles: Sequence[str | None] | None = None
    times: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.texts)
