"""Data in memory as Arrow tables, and the choice of columns for text, id and order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

import pyarrow as pa

from neardup.documents.arrays import is_text_type, type_words
from neardup.documents.column_paths import ColumnPath
from neardup.documents.inputs import one_line
from neardup.documents.records import ColumnSource, ReadOptions, is_id_type
from neardup.errors import InputError, option, quoted

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
    package = type(data).__module__.partition(".")[0]
    if package == "polars":
        data = _polars_data(data.collect() if hasattr(data, "collect") else data)
    if package == "pandas":
        return _pandas_table(data)
    table = _arrow_table(data)
    if table is not None:
        return table
    if _is_dataset(data):
        streamed = hasattr(data, "iter") and not hasattr(data, "__len__")
        return _table_of_stream(data) if streamed else data.with_format("arrow")[:]
    if isinstance(data, Mapping):
        if data and all(map(_is_dataset, data.values())):
            return _table_of_splits({str(name): _table_of(split) for name, split in data.items()})
        return pa.table({str(name): _column(column, str(name)) for name, column in data.items()})
    if isinstance(data, Iterable):
        items = data if isinstance(data, list | tuple) else list(data)
        if any(isinstance(item, Mapping) for item in items):
            return _table_of_rows(items)
        return pa.table({TEXT: _column(items, TEXT)})
    raise TypeError("it is not iterable")


def _polars_data(data: Any) -> Any:
    """Return a Polars frame or series without the types that Arrow does not import: 128-bit integers become decimals.

    Raises ``InputError`` for columns of Python objects, which Polars hands over as addresses.
    """
    from polars import Decimal, Int128, Object, Series, String, UInt128
    from polars.exceptions import InvalidOperationError

    def plain(series: Any) -> Any:
        if series.dtype == Object:
            raise InputError(
                f"column {series.name!r} holds Python objects: give it a type, for instance with cast(pl.String)"
            )
        if series.dtype not in (Int128, UInt128):
            return series
        try:
            return series.cast(Decimal(38, 0))
        except InvalidOperationError:
            return series.cast(String)

    return plain(data) if isinstance(data, Series) else data.with_columns(map(plain, data.get_columns()))


def _pandas_table(data: Any) -> pa.Table:
    """Return a pandas frame, index, series or array as a table; several levels of names are joined by dots."""
    if not hasattr(data, "columns"):
        return pa.table({TEXT: _column(data, TEXT)})
    if data.columns.nlevels > 1:
        data = data.set_axis([".".join(filter(None, map(str, name))) for name in data.columns], axis="columns")
    names = [str(name) for name in data.columns]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"the data frame has several columns named {quoted(repeated)}: give each its own name")
    try:
        return pa.Table.from_pandas(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A column of objects: of numbers that Arrow would round, or of several types.
        return pa.table({name: _column(data[column], name) for name, column in zip(names, data.columns, strict=True)})


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
    columns = {name: [None if row is None else row.get(name) for row in rows] for name in names}
    return pa.table({str(name): _column(column, str(name)) for name, column in columns.items()})


def _table_of_arrow_stream(data: Any) -> pa.Table:
    """Return the table of an Arrow stream; a series streams a column instead of structs."""
    chunks = pa.chunked_array(data)
    if not pa.types.is_struct(chunks.type):
        return pa.table({TEXT: chunks})
    return pa.table(data)


def _column(values: Iterable[Any], name: str) -> Any:
    """Return a column of Python values.

    Strings that UTF-8 cannot write become bytes, which are rejected later. Numbers that have no common type of Arrow
    without a loss become text.

    Raises ``InputError`` if the values have no common type.
    """
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "to_numpy"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    try:
        array = pa.array(values, from_pandas=True) if hasattr(values, "to_numpy") else None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        array = _array_of(values if isinstance(values, list | tuple) else list(values), name)
    return array.cast(pa.large_string()) if pa.types.is_null(array.type) else array


def _array_of(items: Sequence[Any], name: str) -> Any:
    kinds = {type(item) for item in items} - {type(None)}
    # Arrow makes a 1 of a true beside doubles.
    if len(kinds) == 1 or bool not in kinds:
        try:
            return pa.array(items)
        except UnicodeEncodeError:
            encoded = [item.encode(errors="surrogatepass") if isinstance(item, str) else item for item in items]
            return pa.array(encoded, pa.large_binary())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            if kinds and all(issubclass(kind, int | float | Decimal) for kind in kinds):
                return _exact_numbers(items)
    names = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(
        f"column {quoted(name)} holds values of {names} that have no common type: make them all str, or leave it out"
    )


def _exact_numbers(items: Sequence[Any]) -> Any:
    """Return numbers as uint64 if that holds all, else as text."""
    if all(item is None or (isinstance(item, int) and 0 <= item < 1 << 64) for item in items):
        return pa.array(items, pa.uint64())
    return pa.array([None if item is None else str(item) for item in items], pa.large_string())


TEXT_NAMES = (
    *("text", "content", "body", "document", "article", "raw_content", "full_text", "fulltext", "description"),
    *("abstract", "sentence"),
)
_MAX_LISTED = 30
#: The usual names of times, in order of preference, for columns and fields of JSON: publication first. Of names that
#: occur together, the one with a zone or a time of day comes first (``date_gmt`` before ``date`` in WordPress).
TIME_NAMES = (
    *("timestamp", "datetime", "date_gmt", "datetimepub", "time", "date", "published", "published_at", "publishedat"),
    *("publish_date", "publishdate", "publish_time", "published_date", "publisheddate", "published_time"),
    *("date_publish", "date_published", "datepublished", "publication_date", "publicationdate", "pubdate", "pub_date"),
    *(
        "pubtime",
        "issued",
        "versioncreated",
        "firstcreated",
        "created",
        "created_at",
        "createdat",
        "created_time",
        "creationdate",
    ),
    *("creation_date", "created_utc", "createdutc", "date_created", "datecreated", "posted", "posted_at", "postedat"),
    *("@timestamp", "seendate", "seen_date"),
    *("crawled", "crawled_at", "crawl_date", "crawl_time", "crawl_timestamp", "crawltimemsec", "timestampusec"),
    *("date_crawled", "warc_date", "warc-date", "fetch_time", "fetched", "fetched_at", "date_download"),
    *("scraped", "scraped_at", "retrieved", "retrieved_at", "ingested_at", "added", "added_at", "date_added"),
    *("updated", "updated_at", "updatedat", "update_date", "modified", "modified_at", "date_modified", "datemodified"),
    *("modified_gmt", "last_modified", "lastmodified"),
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

    A text or id column of None is the one with a usual name; an id column of "" means that there is none. A name may be
    a path, see `column_paths`.

    Raises ``InputError`` if a column is missing, has an unsuitable type, or cannot be detected.
    """
    sources = [source for source in sources if source.columns()]
    names = [] if text is None else _named_texts(sources, text)
    if not sources:
        return ReadOptions((names or ["text"])[0], key or None, order, max_document, more_texts=tuple(names[1:]))
    order_use = "order"
    stated = {name: source.file.name for source in sources for name in getattr(source, "partitions", ())}
    names = names or [_usual_text(sources, stated)]
    for name in names:
        if name in stated:
            raise InputError(
                f"{stated[name]}: {name!r} is the name of a folder, not a text: name a column of the file with "
                f"{option('--text-column')}: {listed_columns(sources[0])}"
            )
        require_column(sources, name, option("--text-column"), _is_text, "the texts must be text or a list of texts")
    if key is None:
        # A format may say which of its columns holds the ids.
        declared = [source.id_column for source in sources if hasattr(source, "id_column")]
        key = _usual(sources, (*dict.fromkeys(declared), *ID_NAMES), is_id_type, names)
        key = None if key is not None and any(source.has_fractions(key, names[0]) for source in sources) else key
    elif key:
        require_column(sources, key, option("--id-column"), is_id_type, "ids must be text or numbers")
    if order == DETECTED_TIME_COLUMN:
        order, order_use = _usual_time(sources, names), "time"
    elif order:
        named_by = order.option if isinstance(order, OrderColumn) else "order_column"
        require_column(sources, order, named_by, is_single, "it cannot be sorted")
        order_use = "clusters" if "clusters" in named_by else "time" if "time" in named_by else "order"
    order = str(order) if order else None
    more = tuple(names[1:])
    return ReadOptions(names[0], key or None, order, max_document, more_texts=more, order_use=order_use)


def _is_text(kind: pa.DataType) -> bool:
    return is_text_type(kind) or is_text_type(ColumnPath("", kind=kind).as_text().kind)


def is_single(kind: pa.DataType) -> bool:
    """Return whether a column of this type has a single value a row."""
    return not pa.types.is_nested(kind)


def listed_columns(source: ColumnSource) -> str:
    """Return the columns of an input, each with the words for its type."""
    columns = list(source.columns().items())
    listed = [f"{' '.join(name.split())[:60]} ({type_words(kind)[:90]})" for name, kind in columns[:_MAX_LISTED]]
    rest = [f"and {len(columns) - _MAX_LISTED} more"] if len(columns) > _MAX_LISTED else []
    return ", ".join(listed + rest)


def require_column(
    sources: Sequence[ColumnSource], name: str, option: str, accepts: Callable[[pa.DataType], bool], rule: str
) -> None:
    """Raise InputError if an input lacks a column, or the column has an unsuitable type."""
    for source in sources:
        path = source.find_column(name)
        if path is None:
            raise InputError(
                f"{source.file.name} has no column {name!r} for {option}; its columns are {listed_columns(source)}"
            )
        if not accepts(path.kind):
            raise InputError(
                f"{source.file.name}: column {name!r} is of type {type_words(path.kind)!r}, but {rule}; choose another "
                f"with {option}, or a part of one by a path such as doc.text or messages[].content: "
                f"{listed_columns(source)}"
            )


def _usual(
    sources: Sequence[ColumnSource],
    candidates: Sequence[str],
    accepts: Callable[[pa.DataType], bool],
    excluded: Collection[str] = (),
) -> str | None:
    """Return the first candidate that all inputs have with a suitable type, in any case of letters; else None."""
    for candidate in candidates:
        for name in sources[0].columns():
            if name.lower() == candidate and name not in excluded and _is_everywhere(sources, name, accepts):
                return name
    return None


def _is_everywhere(sources: Sequence[ColumnSource], name: str, accepts: Callable[[pa.DataType], bool]) -> bool:
    return all(name in source.columns() and accepts(source.columns()[name]) for source in sources)


def _usual_text(sources: Sequence[ColumnSource], stated: Collection[str]) -> str:
    """Return the column with the usual name of a text, but none that the names of folders state."""
    name = _usual(sources, TEXT_NAMES, is_text_type, stated)
    if name is not None:
        return name
    raise InputError(
        f"{sources[0].file.name}: no column is named like a text ({', '.join(TEXT_NAMES[:3])} ...); name it with "
        f"{option('--text-column')}: "
        f"{listed_columns(sources[0])}"
    )


def _usual_time(sources: Sequence[ColumnSource], texts: Sequence[str]) -> str:
    name = _usual(sources, TIME_NAMES, is_single, texts)
    if name is not None:
        return name
    raise InputError(
        f"{sources[0].file.name}: no column is named like a time ({', '.join(TIME_NAMES[:3])} ...); name it with "
        f"{option('--time-column')}: "
        f"{listed_columns(sources[0])}"
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
