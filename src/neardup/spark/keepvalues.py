"""What a keep order by a column goes by: numbers and times out of texts as in memory, and who has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import RecipeError
from neardup.ordering import number_of, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a column of texts holds: the type of what is gone by.
_KINDS = {"int64": "bigint", "float64": "double", "converted": "double", "text": "string"}
_COUNTS = (
    "documents bigint, texts bigint, int64 bigint, float64 bigint, converted bigint, read bigint, "
    "ints boolean, floats boolean"
)


def comparable(features: DataFrame, keep: str) -> tuple[str, int]:
    """Return what the column ``keep`` holds, and how many documents have no value to go by.

    Raises
    ------
    RecipeError
        If none has.
    """
    from pyspark.sql import functions as F

    present = features.where("size >= 0").select("keep")
    kind = dict(present.dtypes)["keep"]
    if kind in ("string", "binary"):
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        sums = [F.every(name) if name in ("ints", "floats") else F.sum(name) for name in names]
        row = present.mapInArrow(partial(count_batches, keep), _COUNTS).agg(*sums).first()
        told = {name: value or 0 for name, value in zip(names, row, strict=True)}
        documents = told["documents"]
        what, usable = held_by(told, keep)
    else:
        value = F.when(F.isnan("keep"), None).otherwise(F.col("keep")) if kind in ("float", "double") else F.col("keep")
        documents, usable = present.agg(F.count("*"), F.count(value)).first()
        what = ""
    if documents and not usable:
        raise RecipeError(f"keep {keep!r}: no document has a usable value in that column; keep 'first' or name another")
    return what, int(documents - usable)


def held_by(told: Mapping[str, Any], keep: str) -> tuple[str, int]:
    """Return what a column of texts holds by the sums of ``count_batches``, and how many are usable."""
    if told["ints"]:
        return "int64", told["int64"]
    if told["floats"]:
        return "float64", told["float64"]
    if keep in ("newest", "oldest") or told["read"] == told["texts"]:
        return "converted", told["converted"]
    return "text", told["texts"]


def converted(frame: DataFrame, keep: str, what: str) -> DataFrame:
    """Return a frame whose column ``keep`` orders as ``comparable`` found, null where there is nothing to go by."""
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    if what:
        schema = ", ".join(f"{name} {_KINDS[what] if name == 'keep' else kinds[name]}" for name in frame.columns)
        return frame.mapInArrow(partial(convert_batches, keep, what), schema)
    if kinds["keep"] in ("float", "double"):
        # Zeros are equal, whatever their sign.
        return frame.withColumn("keep", F.when(~F.isnan("keep"), F.col("keep") + F.lit(0.0)))
    return frame


def count_batches(keep: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield how many texts of a partition are what; in a worker."""
    for batch in batches:
        values = batch.column("keep").cast(pa.large_string())
        ints, floats = _numbers(values, pa.int64()), _numbers(values, pa.float64())
        numbers = _converted(values, keep)
        counts = [len(values), len(values) - values.null_count]
        counts += [0 if found is None else _usable(found) for found in (ints, floats, numbers)]
        counts.append(len(numbers) - numbers.null_count)
        row = [*counts, ints is not None, floats is not None]
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        yield pa.RecordBatch.from_arrays([pa.array([value]) for value in row], names)


def convert_batches(keep: str, what: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches whose column ``keep`` holds what is gone by; in a worker."""
    for batch in batches:
        values: Any = batch.column("keep").cast(pa.large_string())
        if what in ("int64", "float64"):
            values = _numbers(values, pa.int64() if what == "int64" else pa.float64())
        elif what == "converted":
            values = _converted(values, keep)
        else:
            values = values.cast(pa.string())
        if pa.types.is_floating(values.type):
            values = pc.add(pc.if_else(pc.is_nan(values), None, values), 0.0)
        place = batch.schema.names.index("keep")
        yield batch.set_column(place, "keep", values)


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return texts as numbers, empty ones as nulls; None if one is no such number."""
    try:
        return pc.if_else(pc.equal(texts, ""), None, texts).cast(kind)
    except pa.ArrowInvalid:
        return None


def _converted(texts: pa.Array, keep: str) -> pa.Array:
    convert = time_of if keep in ("newest", "oldest") else number_of
    return pa.array([None if text is None else convert(text) for text in texts.to_pylist()], pa.float64())


def _usable(numbers: pa.Array) -> int:
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return int((~np.isnan(values)).sum())
