"""What a keep order by a column goes by: numbers and times out of texts as in memory, and who has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.values import readable_texts
from neardup.ordering import goes_by_time, nothing_to_go_by, number_of
from neardup.times import times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a column of times or of texts holds: the type of what is gone by.
_KINDS = {"time": "bigint", "int64": "bigint", "float64": "double", "converted": "double", "text": "string"}
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
    if goes_by_time(keep):
        what = "time"
        documents, usable = converted(present, what).agg(F.count("*"), F.count("keep")).first()
    elif kind in ("string", "binary"):
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        sums = [F.every(name) if name in ("ints", "floats") else F.sum(name) for name in names]
        row = present.mapInArrow(count_batches, _COUNTS).agg(*sums).first()
        told = {name: value or 0 for name, value in zip(names, row, strict=True)}
        documents = told["documents"]
        what, usable = held_by(told)
    else:
        value = F.when(F.isnan("keep"), None).otherwise(F.col("keep")) if kind in ("float", "double") else F.col("keep")
        documents, usable = present.agg(F.count("*"), F.count(value)).first()
        what = ""
    if documents and not usable:
        raise nothing_to_go_by(keep)
    return what, int(documents - usable)


def held_by(told: Mapping[str, Any]) -> tuple[str, int]:
    """Return what a column of texts holds by the sums of ``count_batches``, and how many are usable."""
    if told["ints"]:
        return "int64", told["int64"]
    if told["floats"]:
        return "float64", told["float64"]
    if told["read"] == told["texts"]:
        return "converted", told["converted"]
    return "text", told["texts"]


def converted(frame: DataFrame, what: str) -> DataFrame:
    """Return a frame whose column ``keep`` orders as ``comparable`` found, null where there is nothing to go by."""
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    if what:
        schema = ", ".join(f"{name} {_KINDS[what] if name == 'keep' else kinds[name]}" for name in frame.columns)
        return frame.mapInArrow(partial(convert_batches, what), schema)
    if kinds["keep"] in ("float", "double"):
        # Zeros are equal, whatever their sign.
        return frame.withColumn("keep", F.when(~F.isnan("keep"), F.col("keep") + F.lit(0.0)))
    return frame


def count_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield how many texts of a partition are what; in a worker."""
    for batch in batches:
        values = readable_texts(batch.column("keep"))
        ints, floats = _numbers(values, pa.int64()), _numbers(values, pa.float64())
        numbers = _converted(values)
        counts = [len(values), len(values) - values.null_count]
        counts += [0 if found is None else _usable(found) for found in (ints, floats, numbers)]
        counts.append(len(numbers) - numbers.null_count)
        row = [*counts, ints is not None, floats is not None]
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        yield pa.RecordBatch.from_arrays([pa.array([value]) for value in row], names)


def convert_batches(what: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches whose column ``keep`` holds what is gone by; in a worker."""
    for batch in batches:
        column = batch.column("keep")
        values: Any
        if what == "time":
            times, readable = times_of(column)
            values = pa.array(times, mask=~readable)
        elif what in ("int64", "float64"):
            values = _numbers(readable_texts(column), pa.int64() if what == "int64" else pa.float64())
        elif what == "converted":
            values = _converted(readable_texts(column))
        else:
            values = readable_texts(column).cast(pa.string())
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


def _converted(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else number_of(text) for text in texts.to_pylist()], pa.float64())


def _usable(numbers: pa.Array) -> int:
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return int((~np.isnan(values)).sum())
