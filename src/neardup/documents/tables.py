"""Data in memory -> one Arrow table: lists, data frames, Arrow objects, datasets, dicts of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from neardup.documents.discover import one_line
from neardup.errors import InputError

TEXT = "text"


def table_of(data: Any) -> pa.Table:
    """Turn data in memory into a table; texts without a name become the column ``text``.

    Parameters
    ----------
    data : object
        A list or other iterable of str or None; a pandas or Polars data frame or series; an Arrow table,
        record batch, reader or array; a Hugging Face dataset; a dict of columns; anything else that offers
        ``__arrow_c_stream__`` or ``__arrow_c_array__``.

    Raises
    ------
    InputError
        When the data is none of these.
    """
    if isinstance(data, str | bytes):
        raise InputError(
            f"one {type(data).__name__} is not a corpus: give a list of texts; nd.open_files takes names of files"
        )
    try:
        return _table_of(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{type(data).__name__} cannot be read as texts or columns ({one_line(error)}); "
            "give a list of str, a data frame or an Arrow table"
        ) from None


def _table_of(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return pa.table({TEXT: data})
    if hasattr(data, "__arrow_c_stream__"):
        return _from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        array = pa.array(data)
        return pa.Table.from_struct_array(array) if pa.types.is_struct(array.type) else pa.table({TEXT: array})
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return data.with_format("arrow")[:]
    if isinstance(data, Mapping):
        return pa.table({str(name): _column(column) for name, column in data.items()})
    if type(data).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(data) if hasattr(data, "columns") else pa.table({TEXT: pa.array(data)})
    if isinstance(data, Iterable):
        return pa.table({TEXT: _column(data)})
    raise TypeError("it is not iterable")


def _from_stream(data: Any) -> pa.Table:
    """Read the stream as a table; a series streams a column instead of a struct."""
    chunks = pa.chunked_array(data)
    if not pa.types.is_struct(chunks.type):
        return pa.table({TEXT: chunks})
    return pa.table(data)


def _column(values: Iterable[Any]) -> Any:
    """Convert a column of Python values; texts that are no UTF-8 go in as bytes, to be set aside later."""
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    held = values if isinstance(values, list | tuple) else list(values)
    try:
        array = pa.array(held)
    except UnicodeEncodeError:
        held = [v.encode(errors="surrogatepass") if isinstance(v, str) else v for v in held]
        array = pa.array(held, pa.large_binary())
    return array.cast(pa.large_string()) if pa.types.is_null(array.type) else array
