"""In how many sets each feature occurs, approximately: what makes a feature rare, and what no two sets share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup._kernels.counting import count_features
from neardup.search.pruning import FEWEST_BITS
from neardup.spark.features import held
from neardup.spark.packing import BLOBS
from neardup.spark.tables import Table, merged_counts, slices_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages


def counts_of(stages: Stages, sets: DataFrame, features: int, most_bits: int) -> Table:
    """Return the table of counts of all sets' features, as ``neardup._kernels.counting`` understands it.

    Parameters
    ----------
    stages : Stages
        As many workers as it says fill tables, which are then added up.
    sets : DataFrame
        row, features.
    features : int
        How many features all sets have together: the table has about twice as many slots, so that few share one.
    most_bits : int
        It has 2**most_bits slots (bytes) at most. Raising it tells more features apart in large collections, so that
        fewer travel; each worker, the driver and each machine hold such a table.
    """
    bits = min(max(features.bit_length(), FEWEST_BITS), most_bits)
    narrow = sets.select("row", "features").coalesce(stages.workers)
    merged = stages.run(
        "counts", lambda: merged_counts(narrow.mapInArrow(partial(count_batches, bits), BLOBS), stages.workers)
    )
    return table_of(merged, 1 << bits)


def count_batches(bits: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the slices of the table of a partition's sets; in a worker."""
    table = np.zeros(1 << bits, np.uint8)
    shift = np.uint64(64 - bits)
    for batch in batches:
        sets = held(batch)
        count_features(sets.addresses, sets.sizes, np.arange(len(sets.sizes)), shift, table)
    yield from slices_of(table)
