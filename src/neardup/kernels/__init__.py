"""All Numba code: arrays in, arrays out; no options, no errors. Each has a plain twin in the tests.

Here are the names of the kinds of arrays; docstrings and comments say their shapes.
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
