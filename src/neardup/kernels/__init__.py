"""All Numba code: arrays in, arrays out, without options or errors. Each kernel has a naive twin in the tests.

Conventions of the docstrings: ``heads`` are offsets of rows, so that row i is ``values[heads[i]:heads[i + 1]]``;
"concatenated" sets or texts follow each other in one array; an argument described as "gets" or "written" is output.
A kernel whose output may not fit stops early, and its caller empties the output and continues from the returned place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
#: Hashes and sets of bits.
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
