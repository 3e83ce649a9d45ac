"""Data in memory -> one Arrow table: lists, data frames, Arrow objects, datasets, dicts of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from neardup.documents.inputs import one_line
from neardup.documents.records import Columns, Wanted, is_id_type, is_text_type
from neardup.errors import InputError, option

TEXT, SPLIT = "text", "split"
TEXTS = pa.large_string()
_ROWS_AT_A_TIME = 10_000


def table_of(data: Any) -> pa.Table:
    """Turn data in memory into a table; texts without a name become the column ``text``.

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
    found = _of_arrow(data)
    if found is not None:
        return found
    if _is_dataset(data):
        streamed = hasattr(data, "iter") and not hasattr(data, "__len__")
        return _from_batches(data) if streamed else data.with_format("arrow")[:]
    if type(data).__module__.split(".")[0] == "polars" and hasattr(data, "collect"):
        return _table_of(data.collect())
    if isinstance(data, Mapping):
        if data and all(map(_is_dataset, data.values())):
            return _of_splits({str(name): _table_of(split) for name, split in data.items()})
        return pa.table({str(name): _column(column) for name, column in data.items()})
    if type(data).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(data) if hasattr(data, "columns") else pa.table({TEXT: pa.array(data)})
    if isinstance(data, Iterable):
        held = data if isinstance(data, list | tuple) else list(data)
        if any(isinstance(row, Mapping) for row in held):
            return _of_rows(held)
        return pa.table({TEXT: _column(held)})
    raise TypeError("it is not iterable")


def _of_arrow(data: Any) -> pa.Table | None:
    """Return the table of what Arrow has made or takes by itself; None of anything else."""
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
    return None


def _is_dataset(data: Any) -> bool:
    return hasattr(data, "with_format") and hasattr(data, "features")


def _from_batches(data: Any) -> pa.Table:
    """Read a dataset that only gives its rows one after the other."""
    tables = list(data.with_format("arrow").iter(batch_size=_ROWS_AT_A_TIME))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({TEXT: pa.array([], TEXTS)})


def _of_splits(splits: Mapping[str, pa.Table]) -> pa.Table:
    tables = list(splits.values())
    if not any(SPLIT in table.column_names for table in tables):
        tables = [
            table.append_column(SPLIT, pa.repeat(pa.scalar(name), table.num_rows)) for name, table in splits.items()
        ]
    return pa.concat_tables(tables, promote_options="permissive")


def _of_rows(rows: Sequence[Any]) -> pa.Table:
    """Return the table of dicts; what one does not have is null there."""
    for place, row in enumerate(rows):
        if row is not None and not isinstance(row, Mapping):
            raise TypeError(f"row {place} is no dict, but others are")
    names = dict.fromkeys(name for row in rows if row is not None for name in row)
    return pa.table({str(name): _column([None if row is None else row.get(name) for row in rows]) for name in names})


def _from_stream(data: Any) -> pa.Table:
    """Read the stream as a table; a series streams a column instead of a struct."""
    chunks = pa.chunked_array(data)
    if not pa.types.is_struct(chunks.type):
        return pa.table({TEXT: chunks})
    return pa.table(data)


def _column(values: Iterable[Any]) -> Any:
    """Convert a column of Python values; texts that are no UTF-8 go in as bytes, to be rejected later."""
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


TEXT_NAMES = (
    "text",
    "content",
    "body",
    "document",
    "article",
    "raw_content",
    "full_text",
    "fulltext",
    "description",
    "abstract",
    "sentence",
)
_SHOWN = 30
TIME_NAMES = (
    "timestamp",
    "time",
    "date",
    "datetime",
    "published",
    "published_at",
    "pubdate",
    "created",
    "created_at",
    "updated",
    "modified",
)
#: As the order column: the column of times, found by its name.
FIND_TIME = "<the column of times>"
ID_NAMES = ("id", "_id", "doc_id", "document_id", "docid", "uuid", "guid")


class OrderColumn(str):
    """The name of a column to order by, and the option that named it, for messages."""

    option: str

    def __new__(cls, name: str, option: str) -> Self:
        """Return the name, which knows its option."""
        made = super().__new__(cls, name)
        made.option = option
        return made


#: The column of the texts; several, as names or joined by commas, make one text, line by line; None is found.
TextColumn = str | Sequence[str] | None


def _named_texts(told: Sequence[Columns], text: str | Sequence[str]) -> list[str]:
    """Return the columns of texts that are named; a name that an input has stands for itself, commas and all."""
    if not isinstance(text, str):
        names = list(text)
    elif "," in text and not any(text in source.columns() for source in told):
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
    sources: Sequence[Columns],
    text: TextColumn,
    key: str | None,
    order: str | None,
    max_document: int | None,
) -> Wanted:
    """Resolve the names of the columns against all inputs; those that show no column at all (empty files) have no say.

    Text columns may be several (``TextColumn``). A text or id column of None is found by its name, an id column of ""
    means that there is none. What is absent, of a type that does not do or not obvious is refused.
    """
    told = [source for source in sources if source.columns()]
    names = [] if text is None else _named_texts(told, text)
    if not told:
        return Wanted((names or ["text"])[0], key or None, order, max_document, more=tuple(names[1:]))
    names = names or [_obvious_text(told)]
    for name in names:
        require(told, name, option("--text-column"), is_text_type, "the texts must be strings")
    if key is None:
        key = _obvious(told, ID_NAMES, is_id_type, names)
    elif key:
        require(told, key, option("--id-column"), is_id_type, "ids must be strings or integers")
    if order == FIND_TIME:
        order = _obvious_time(told)
    elif order:
        named_by = order.option if isinstance(order, OrderColumn) else "order_column"
        require(told, order, named_by, lambda kind: not pa.types.is_nested(kind), "it cannot be sorted")
    return Wanted(names[0], key or None, str(order) if order else None, max_document, more=tuple(names[1:]))


def _listed(source: Columns) -> str:
    columns = list(source.columns().items())
    shown = [f"{' '.join(name.split())[:60]} ({str(kind)[:60]})" for name, kind in columns[:_SHOWN]]
    more = [f"and {len(columns) - _SHOWN} more"] if len(columns) > _SHOWN else []
    return ", ".join(shown + more)


def require(sources: Sequence[Columns], name: str, option: str, fits: Callable[[pa.DataType], bool], rule: str) -> None:
    """Refuse a column that an input does not have, or whose type does not do, naming the input and its columns."""
    for source in sources:
        columns = source.columns()
        if name not in columns:
            raise InputError(
                f"{source.found.name} has no column {name!r} for {option}; its columns are {_listed(source)}"
            )
        if not fits(columns[name]):
            raise InputError(
                f"{source.found.name}: column {name!r} is of type {columns[name]}, but {rule}; choose "
                f"another with {option}: {_listed(source)}"
            )


def _obvious(
    sources: Sequence[Columns], known: Sequence[str], fits: Callable[[pa.DataType], bool], taken: Sequence[str] = ()
) -> str | None:
    """Return the column of the first known name that all inputs have with a fitting type; None where there is none."""
    for wanted in known:
        for name in sources[0].columns():
            if name.lower() == wanted and name not in taken and _everywhere(sources, name, fits):
                return name
    return None


def _everywhere(sources: Sequence[Columns], name: str, fits: Callable[[pa.DataType], bool]) -> bool:
    return all(name in source.columns() and fits(source.columns()[name]) for source in sources)


def _obvious_text(sources: Sequence[Columns]) -> str:
    found = _obvious(sources, TEXT_NAMES, is_text_type)
    if found is not None:
        return found
    strings = [name for name in sources[0].columns() if _everywhere(sources, name, is_text_type)]
    others = [name for name in strings if name.lower() not in ID_NAMES] or strings
    if len(others) == 1:
        return others[0]
    raise InputError(
        f"{sources[0].found.name}: no column is obviously the text; name it with {option('--text-column')}: "
        f"{_listed(sources[0])}"
    )


def _obvious_time(sources: Sequence[Columns]) -> str:
    found = _obvious(sources, TIME_NAMES, lambda kind: True)
    if found is not None:
        return found
    raise InputError(
        f"{sources[0].found.name}: no column is obviously the time; name it with {option('--time-column')}: "
        f"{_listed(sources[0])}"
    )
