"""Data in memory as Arrow tables, and the choice of columns for text, id and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from neardup.documents.inputs import one_line
from neardup.documents.records import ColumnSource, ReadOptions, is_id_type, is_text_type
from neardup.errors import InputError, option

TEXT, SPLIT = "text", "split"
TEXTS = pa.large_string()
_ROWS_AT_A_TIME = 10_000


def table_of(data: Any) -> pa.Table:
    """Return data in memory as a table; texts without a name become the column ``text``.

    Parameters
    ----------
    data : object
        A list or other iterable of str or None, or of dicts, one for each document; a pandas or Polars data frame or
        series, or a Polars lazy frame, which is collected; an Arrow table, record batch, reader or array; a Hugging
        Face dataset, also a streaming one, which is read into memory, or a dict of splits, whose names become the
        column ``split`` where there is none; a dict of columns; anything else that offers ``__arrow_c_stream__`` or
        ``__arrow_c_array__``.

    Raises
    ------
    InputError
        If the data is none of these.
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
    table = _arrow_table(data)
    if table is not None:
        return table
    if _is_dataset(data):
        streamed = hasattr(data, "iter") and not hasattr(data, "__len__")
        return _table_of_stream(data) if streamed else data.with_format("arrow")[:]
    if type(data).__module__.split(".")[0] == "polars" and hasattr(data, "collect"):
        return _table_of(data.collect())
    if isinstance(data, Mapping):
        if data and all(map(_is_dataset, data.values())):
            return _table_of_splits({str(name): _table_of(split) for name, split in data.items()})
        return pa.table({str(name): _column(column) for name, column in data.items()})
    if type(data).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(data) if hasattr(data, "columns") else pa.table({TEXT: pa.array(data)})
    if isinstance(data, Iterable):
        items = data if isinstance(data, list | tuple) else list(data)
        if any(isinstance(item, Mapping) for item in items):
            return _table_of_rows(items)
        return pa.table({TEXT: _column(items)})
    raise TypeError("it is not iterable")


def _arrow_table(data: Any) -> pa.Table | None:
    """Return the table of data that Arrow made or can import; None for other data."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return pa.table({TEXT: data})
    if hasattr(data, "__arrow_c_stream__"):
        return _table_of_arrow_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        array = pa.array(data)
        return pa.Table.from_struct_array(array) if pa.types.is_struct(array.type) else pa.table({TEXT: array})
    return None


def _is_dataset(data: Any) -> bool:
    return hasattr(data, "with_format") and hasattr(data, "features")


def _table_of_stream(data: Any) -> pa.Table:
    tables = list(data.with_format("arrow").iter(batch_size=_ROWS_AT_A_TIME))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({TEXT: pa.array([], TEXTS)})


def _table_of_splits(splits: Mapping[str, pa.Table]) -> pa.Table:
    tables = list(splits.values())
    if not any(SPLIT in table.column_names for table in tables):
        tables = [
            table.append_column(SPLIT, pa.repeat(pa.scalar(name), table.num_rows)) for name, table in splits.items()
        ]
    return pa.concat_tables(tables, promote_options="permissive")


def _table_of_rows(rows: Sequence[Any]) -> pa.Table:
    """Return the table of dicts; a missing key is a null."""
    for place, row in enumerate(rows):
        if row is not None and not isinstance(row, Mapping):
            raise TypeError(f"row {place} is no dict, but others are")
    names = dict.fromkeys(name for row in rows if row is not None for name in row)
    return pa.table({str(name): _column([None if row is None else row.get(name) for row in rows]) for name in names})


def _table_of_arrow_stream(data: Any) -> pa.Table:
    """Return the table of an Arrow stream; a series streams a column instead of structs."""
    chunks = pa.chunked_array(data)
    if not pa.types.is_struct(chunks.type):
        return pa.table({TEXT: chunks})
    return pa.table(data)


def _column(values: Iterable[Any]) -> Any:
    """Return a column of Python values; strings that UTF-8 cannot write become bytes, which are rejected later."""
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    items = values if isinstance(values, list | tuple) else list(values)
    try:
        array = pa.array(items)
    except UnicodeEncodeError:
        items = [v.encode(errors="surrogatepass") if isinstance(v, str) else v for v in items]
        array = pa.array(items, pa.large_binary())
    return array.cast(pa.large_string()) if pa.types.is_null(array.type) else array


TEXT_NAMES = (
    *("text", "content", "body", "document", "article", "raw_content", "full_text", "fulltext", "description"),
    *("abstract", "sentence"),
)
_MAX_LISTED = 30
TIME_NAMES = (
    *("timestamp", "time", "date", "datetime", "published", "published_at", "pubdate", "created", "created_at"),
    *("updated", "modified"),
)
#: As the order column: the column of times, detected by its name.
DETECTED_TIME_COLUMN = "<the column of times>"
ID_NAMES = ("id", "_id", "doc_id", "document_id", "docid", "uuid", "guid")


class OrderColumn(str):
    """The name of a column to order by, with the option that named it, for messages."""

    option: str

    def __new__(cls, name: str, option: str) -> Self:
        """Return the name with its option."""
        column = super().__new__(cls, name)
        column.option = option
        return column


#: The column of texts. Several, as names or joined by commas, make one text, line by line. None: detected by name.
TextColumn = str | Sequence[str] | None


def _named_texts(sources: Sequence[ColumnSource], text: str | Sequence[str]) -> list[str]:
    """Return the names of the columns of texts; a name with commas that an input has is one column."""
    if not isinstance(text, str):
        names = list(text) if isinstance(text, Sequence) else []
    elif "," in text and not any(text in source.columns() for source in sources):
        names = [name.strip() for name in text.split(",")]
    else:
        names = [text]
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InputError(
            f"{option('--text-column')} {text!r} is no list of columns: name each once, such as "
            f"{option('title,text', repr(['title', 'text']))}"
        )
    return names


def choose_columns(
    sources: Sequence[ColumnSource], text: TextColumn, key: str | None, order: str | None, max_document: int | None
) -> ReadOptions:
    """Choose the columns of all inputs; empty files, which show no columns, are ignored.

    A text or id column of None is detected by its name; an id column of "" means that there is none.

    Raises ``InputError`` if a column is missing, has an unsuitable type, or cannot be detected.
    """
    sources = [source for source in sources if source.columns()]
    names = [] if text is None else _named_texts(sources, text)
    if not sources:
        return ReadOptions((names or ["text"])[0], key or None, order, max_document, more_texts=tuple(names[1:]))
    names = names or [_obvious_text(sources)]
    for name in names:
        require_column(sources, name, option("--text-column"), is_text_type, "the texts must be strings")
    if key is None:
        # A format may say which of its columns holds the ids.
        declared = [source.id_column for source in sources if hasattr(source, "id_column")]
        key = _obvious(sources, (*dict.fromkeys(declared), *ID_NAMES), is_id_type, names)
    elif key:
        require_column(sources, key, option("--id-column"), is_id_type, "ids must be strings or integers")
    if order == DETECTED_TIME_COLUMN:
        order = _obvious_time(sources)
    elif order:
        named_by = order.option if isinstance(order, OrderColumn) else "order_column"
        require_column(sources, order, named_by, lambda kind: not pa.types.is_nested(kind), "it cannot be sorted")
    return ReadOptions(names[0], key or None, str(order) if order else None, max_document, more_texts=tuple(names[1:]))


def _listed_columns(source: ColumnSource) -> str:
    columns = list(source.columns().items())
    listed = [f"{' '.join(name.split())[:60]} ({str(kind)[:60]})" for name, kind in columns[:_MAX_LISTED]]
    rest = [f"and {len(columns) - _MAX_LISTED} more"] if len(columns) > _MAX_LISTED else []
    return ", ".join(listed + rest)


def require_column(
    sources: Sequence[ColumnSource], name: str, option: str, accepts: Callable[[pa.DataType], bool], rule: str
) -> None:
    """Raise InputError if an input lacks a column, or the column has an unsuitable type."""
    for source in sources:
        columns = source.columns()
        if name not in columns:
            raise InputError(
                f"{source.file.name} has no column {name!r} for {option}; its columns are {_listed_columns(source)}"
            )
        if not accepts(columns[name]):
            raise InputError(
                f"{source.file.name}: column {name!r} is of type {columns[name]}, but {rule}; choose "
                f"another with {option}: {_listed_columns(source)}"
            )


def _obvious(
    sources: Sequence[ColumnSource],
    candidates: Sequence[str],
    accepts: Callable[[pa.DataType], bool],
    excluded: Sequence[str] = (),
) -> str | None:
    """Return the first candidate that all inputs have with a suitable type, in any case of letters; else None."""
    for candidate in candidates:
        for name in sources[0].columns():
            if name.lower() == candidate and name not in excluded and _is_everywhere(sources, name, accepts):
                return name
    return None


def _is_everywhere(sources: Sequence[ColumnSource], name: str, accepts: Callable[[pa.DataType], bool]) -> bool:
    return all(name in source.columns() and accepts(source.columns()[name]) for source in sources)


def _obvious_text(sources: Sequence[ColumnSource]) -> str:
    name = _obvious(sources, TEXT_NAMES, is_text_type)
    if name is not None:
        return name
    strings = [name for name in sources[0].columns() if _is_everywhere(sources, name, is_text_type)]
    candidates = [name for name in strings if name.lower() not in ID_NAMES] or strings
    if len(candidates) == 1:
        return candidates[0]
    raise InputError(
        f"{sources[0].file.name}: no column is obviously the text; name it with {option('--text-column')}: "
        f"{_listed_columns(sources[0])}"
    )


def _obvious_time(sources: Sequence[ColumnSource]) -> str:
    name = _obvious(sources, TIME_NAMES, lambda kind: True)
    if name is not None:
        return name
    raise InputError(
        f"{sources[0].file.name}: no column is obviously the time; name it with {option('--time-column')}: "
        f"{_listed_columns(sources[0])}"
    )


class Table:
    """Base of results that convert to Arrow and pandas tables."""

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)
