"""How many features the documents of given pairs share."""

from neardup._kernels.compiling import kernel


@kernel
def overlaps(heads, features, left, right, out):
    """Set out[i] to the number of features that documents left[i] and right[i] share.

    heads: int64[n + 1]; features: uint64, ascending within each document; left, right, out: int64[k].
    """
    for i in range(out.shape[0]):
        a = heads[left[i]]
        b = heads[right[i]]
        end_a = heads[left[i] + 1]
        end_b = heads[right[i] + 1]
        shared = 0
        while a < end_a and b < end_b:
            if features[a] == features[b]:
                shared += 1
                a += 1
                b += 1
            elif features[a] < features[b]:
                a += 1
            else:
                b += 1
        out[i] = shared
