"""The discriminant g of a support vector machine, one pair after the other, so that no batch changes a bit of it."""

from math import exp

import numpy as np

from neardup._kernels.compiling import kernel


@kernel
def discriminant(x, skipped, fill, center, scale, gamma, support, dual, intercept, out):
    """Set out[i] to g of row i of x; with ``skipped`` = j >= 0, as if measure j had the value center[j].

    x: float64[n, r], nan for what is not known; fill, center, scale: float64[r]; gamma: 0 for the linear kernel;
    support: float64[s, r], standardised; dual: float64[s]; out: float64[n].
    """
    width = x.shape[1]
    row = np.empty(width)
    for i in range(x.shape[0]):
        for j in range(width):
            value = x[i, j]
            if np.isnan(value):
                value = fill[j]
            row[j] = 0.0 if j == skipped else (value - center[j]) / scale[j]
        total = intercept
        for s in range(support.shape[0]):
            inner = 0.0
            if gamma > 0:
                for j in range(width):
                    difference = row[j] - support[s, j]
                    inner += difference * difference
                total += dual[s] * exp(-gamma * inner)
            else:
                for j in range(width):
                    inner += row[j] * support[s, j]
                total += dual[s] * inner
        out[i] = total
