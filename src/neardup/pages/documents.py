"""The documents that people are shown: ids, titles, and what is compared of their texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.records import TITLE_NAMES, Records, find_usual_column, read_records
from neardup.classifier.vector import Vector
from neardup.documents import Corpus
from neardup.documents.records import Names, value_texts
from neardup.documents.tables import TIME_NAMES
from neardup.errors import InputError
from neardup.features.reading import DocumentColumns, Progress, compared_texts, ignore_progress
from neardup.kernels import Integers
from neardup.pages.diff import ShownDocument
from neardup.recipe import Recipe

#: Characters of a time that are shown: whole seconds.
_LONGEST_TIME = 19
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class DocumentReader:
    """The documents of a corpus, by position, for those who look at some of them.

    The corpus was scanned, and stays open. Columns of titles and times are found by their names where none are given.
    """

    def __init__(
        self,
        corpus: Corpus,
        names: Names,
        *,
        content: str = "",
        title_column: str = "",
        time_column: str = "",
        threads: int = 1,
    ) -> None:
        self.names = names
        self._corpus, self._threads = corpus, threads
        self._recipe = Recipe(content=content)
        self._columns = {"title_column": title_column, "time_column": time_column}
        self._held: dict[int, ShownDocument] = {}
        self._places: dict[str, int] = {}

    @classmethod
    def of(cls, corpus: Corpus, *, report: Progress | None = None, **options: Any) -> Self:
        """Read a corpus once, for what its documents are called; the options are those of the class."""
        seen = DocumentColumns()
        consumed = 0
        for batch in corpus.scan():
            seen.add(batch)
            consumed += batch.bytes_read
            (report or ignore_progress)("read", consumed, corpus.total_bytes)
        return cls(corpus, seen.names(), **options)

    def id(self, position: int) -> str:
        """Return what a document is called, as text."""
        return f"{self.names.name_at(position)}{' (reference)' if position >= self.names.input_count else ''}"

    def position(self, name: str) -> int:
        """Return where the document of that id is, -1 if there is none."""
        if name not in self._places:
            self.find([name])
        return self._places[name]

    def find(self, names: Iterable[str]) -> None:
        """Look up many ids at once, for ``position``."""
        asked = [name for name in dict.fromkeys(names) if name not in self._places]
        known = pa.array(self.names.rows) if self.names.ids is None else self.names.ids
        numbers = pa.types.is_integer(known.type)
        # A number is called as it writes itself: "7" and not "07".
        able = [name for name in asked if not numbers or _NUMBER.fullmatch(name)]
        wanted = pa.array([int(name) if numbers else name for name in able], known.type)
        found = pc.fill_null(pc.index_in(wanted, value_set=known), -1).to_pylist()
        self._places |= dict.fromkeys(asked, -1) | dict(zip(able, found, strict=True))

    def load(self, positions: Integers) -> None:
        """Read the documents at these positions, as far as they are not held already."""
        wanted = [place for place in np.unique(positions).tolist() if place not in self._held]
        if not wanted:
            return
        rows = self.names.rows[wanted]
        table = self._corpus.take(rows)
        texts = compared_texts(table[self._corpus.text_column].to_pylist(), self._recipe, self._threads)
        titles, times = self._values(table, "title_column", TITLE_NAMES), self._values(table, "time_column", TIME_NAMES)
        for place, text, title, time in zip(wanted, texts, titles, times, strict=True):
            self._held[place] = ShownDocument(self.id(place), title, text, time[:_LONGEST_TIME])

    def _values(self, table: pa.Table, option: str, usual: Sequence[str]) -> list[str]:
        """Return the values of a column that is named, or has a usual name; empty ones where there is none."""
        named = self._columns[option]
        if named and named not in table.column_names:
            columns, flag = ", ".join(table.column_names), "--" + option.replace("_", "-")
            raise InputError(f"there is no column {named!r} for {flag}; the columns are {columns}")
        column = named or find_usual_column(table.column_names, usual)
        if not column or column == self._corpus.text_column:
            return [""] * table.num_rows
        return value_texts(table[column])

    def shown(self, position: int) -> ShownDocument:
        """Return a document."""
        if position not in self._held:
            self.load(np.array([position]))
        return self._held[position]

    def checksum(self, position: int) -> str:
        """Return a checksum of a document's text."""
        text = self.shown(position).text
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def records(self, positions: Integers, vector: Vector) -> Records:
        """Return what a vector compares of documents."""
        self.load(positions)
        texts = [self._held[place].text for place in positions.tolist()]
        if not (vector.needs_titles or vector.needs_times):
            return Records(texts)
        columns: dict[str, Any] = self._columns
        return read_records(self._corpus.take(self.names.rows[positions]), texts, vector, **columns)
