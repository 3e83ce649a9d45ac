"""Which items of a test set occur in training texts, which are read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.contamination.passages import Items, Passages, make_passages, read_items
from neardup.documents import Corpus, TextColumn, as_corpus
from neardup.errors import RecipeError, option, quoted, with_suggestions
from neardup.features.reading import Progress, text_pieces
from neardup.kernels import Bools, Integers
from neardup.kernels.contamination import find_contained_sets, find_grams
from neardup.runtime import Clock, default_threads, map_in_order
from neardup.text.bulk import normalize_texts, text_buffers
from neardup.text.normalize import Token, tokens

#: Excerpts of training texts: characters around the shared spans; the largest length, and as a multiple of the item's.
_MARGIN, _EXCERPT, _EXCERPT_RATIO = 100, 4_000, 2

#: The columns of the table of spans; offsets count characters (code points) of the original texts.
_STRING, _COUNT = pa.large_string(), pa.int64()
SPANS = pa.schema(
    dict.fromkeys(("item", "column", "document"), _STRING)
    | {"containment": pa.float64()}
    | dict.fromkeys(("item_start", "item_end", "document_start", "document_end", "words"), _COUNT)
)
_ITEMS = pa.schema(
    {"item": _STRING, "column": _STRING, "words": _COUNT, "containment": pa.float64()}
    | {"contaminated": pa.bool_(), "document": _STRING}
)


class Span(NamedTuple):
    """A run of words shared by an item and a training text, as character offsets, end excluded."""

    item_start: int
    item_end: int
    start: int
    end: int
    words: int


@dataclass(frozen=True)
class Finding:
    """A training text that contains at least the required share of a passage."""

    passage: int  #: the number of the passage
    document: Any  #: the id of the training text, or its row number
    shared: int
    grams: int
    spans: list[Span]  #: in the order of the training text
    excerpt: str  #: the training text from a little before the first span to a little after the last one
    is_whole: bool  #: whether the excerpt is the whole training text

    @property
    def containment(self) -> float:
        """The share of the grams of the passage that occur in the training text."""
        return self.shared / self.grams


@dataclass
class Contamination:
    """The result of a contamination check: which items of a test set occur in training texts.

    Attributes
    ----------
    passages : Passages
        The searched passages.
    at_least : float
        The smallest containment that counts.
    documents, contaminated_documents, bytes_read : int
        Number of training texts, of those that contain an item, and bytes of all.
    best : int64[p]
        For each passage, the largest number of its grams in one training text.
    findings : dict of int to Finding
        For each contaminated passage, the training text with most of its grams; ties go to the first.
    read_rows, contaminated_rows : list
        Raw rows of the training texts that were read, and of those that contain an item; see ``clean_rows``.
    rejected : dict of str to int
        Training records that could not be read, by reason.
    stages : list of dict
        Cost of each stage.
    spans : pyarrow.Table
        A row for each span in an item and a training text; empty if they were written to a file.
    inputs, test_inputs : list of str
        The files of the training texts, and of the test set; empty for documents in memory.
    train_columns, test_columns : dict
        The columns of the texts and ids of both.
    """

    passages: Passages
    at_least: float
    best: Integers
    documents: int = 0
    contaminated_documents: int = 0
    findings: dict[int, Finding] = field(default_factory=dict)
    bytes_read: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    stages: list[Any] = field(default_factory=list)
    read_rows: list[slice | Integers] = field(default_factory=list)
    contaminated_rows: list[Integers] = field(default_factory=list)
    spans: pa.Table = field(default_factory=SPANS.empty_table)
    inputs: list[str] = field(default_factory=list)
    test_inputs: list[str] = field(default_factory=list)
    train_columns: dict[str, str | None] = field(default_factory=dict)
    test_columns: dict[str, str | None] = field(default_factory=dict)

    @property
    def items(self) -> Items:
        """The test set."""
        return self.passages.items

    @property
    def contaminated(self) -> Integers:
        """The numbers of the items of which a column, or all columns together, occur in a training text."""
        return np.unique(self.passages.item[sorted(self.findings)])

    @property
    def searched_items(self) -> int:
        """The number of searched items: those with enough words, in a column or in all together."""
        return len(np.unique(self.passages.item))

    @property
    def share(self) -> float:
        """The share of contaminated items among the searched items."""
        return len(self.contaminated) / self.searched_items

    @property
    def summary(self) -> dict[str, Any]:
        """Counts and shares."""
        by_column: dict[str, Any] = {}
        for at, name in enumerate(self.items.columns):
            searched = int((self.passages.column == at).sum())
            found = sum(int(self.passages.column[passage]) == at for passage in self.findings)
            by_column[name] = {
                "searched": searched,
                "contaminated": found,
                "share": found / searched if searched else None,
                "too_short": sum(column == at for _, column in self.passages.too_short),
            }
        return {
            "items": len(self.items.names),
            "too_short": len(self.items.names) - self.searched_items,
            "contaminated": len(self.contaminated),
            "share": self.share,
            "columns": by_column,
            "train_columns": self.train_columns,
            "test_columns": self.test_columns,
            "documents": self.documents,
            "contaminated_documents": self.contaminated_documents,
            "ngrams": self.passages.ngrams,
            "at_least": self.at_least,
            "rejected": {"test": self.items.rejected, "train": self.rejected},
            "text_bytes": self.bytes_read,
            "stages": self.stages,
        }

    def table(self) -> pa.Table:
        """Return a row for each text of an item: item, column, words, containment, contaminated, document.

        ``containment`` is the largest in any training text, whether or not it reaches ``at_least``; ``document`` names
        that training text if it does. All are null for texts with too few words.
        """
        passages, items = self.passages, self.items
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for passage in range(len(passages)):
            found = self.findings.get(passage)
            rows[int(passages.item[passage]), int(passages.column[passage])] = {
                "words": int(passages.words[passage]),
                "containment": float(self.best[passage] / passages.sizes[passage]),
                "contaminated": found is not None,
                "document": None if found is None else str(found.document),
            }
        table_rows = [
            {"item": str(name), "column": column, **rows.get((at, place), {})}
            for at, name in enumerate(items.names)
            for place, column in enumerate(items.columns)
        ]
        return pa.Table.from_pylist(table_rows, _ITEMS)

    def clean_rows(self, raw_rows: int) -> Bools:
        """Return whether each raw row of the training texts was read and contains no item: bool[rows]."""
        keep = np.zeros(raw_rows, bool)
        for rows in self.read_rows:
            keep[rows] = True
        for rows in self.contaminated_rows:
            keep[rows] = False
        return keep


@with_suggestions
def check_contamination(
    train: Any,
    test: Any,
    *,
    columns: Sequence[str] = (),
    ngrams: int = 13,
    at_least: float = 0.5,
    min_words: int = 8,
    ignore: str = "",
    text_column: TextColumn = None,
    id_column: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    write_spans: Callable[[pa.Table], None] | None = None,
) -> Contamination:
    """Find the items of a test set that occur in training texts, exactly, reading the training texts once.

    The grams of an item's text are its contiguous n-grams of words, or one gram of all its words if they are fewer than
    n. Its containment in a training text is o / a: o of its a distinct grams occur there. Words are those of the normal
    form ``words``: case, punctuation and line breaks do not count.

    Parameters
    ----------
    train, test : list of str, table, array or Corpus
        As in ``dedup``, or the result of ``open_files``.
    columns : sequence of str
        Columns of the test set to look for, separately and together; its texts by default.
    ngrams : int
        Words per n-gram; an item with fewer words is a single n-gram. Raising it finds fewer matches by chance.
    at_least : float
        The share of an item's distinct n-grams that one training text must contain, above 0 and at most 1.
    min_words : int
        Texts of the test set with fewer words are skipped; [Brown et al. 2020, appendix C] takes 8.
    ignore : str
        Text whose n-grams do not count, such as the instruction that all items of a test set begin with. An item
        without any other n-gram counts as too short.
    text_column, id_column : str, optional
        Columns of the training texts; detected automatically.
    threads, progress
        As in ``dedup``.
    write_spans : callable, optional
        Called with tables of spans (``SPANS``), in the order of the training texts; by default they are collected.

    Raises
    ------
    RecipeError
        If a number is out of range.
    InputError
        If the test set has no items, or lacks a column.

    Examples
    --------
    >>> import neardup as nd
    >>> train = ["He said that a stitch in time saves nine -- or so they say.", "No other text is here."]
    >>> test = ["A stitch in time saves nine, or so they say!", "Two wrongs make a right."]
    >>> found = nd.check_contamination(train, test)
    >>> found.summary["contaminated"], found.summary["items"], found.summary["too_short"]
    (1, 2, 1)
    """
    if not 0 < at_least <= 1:
        raise RecipeError(
            f"{option('--at-least')} {quoted(at_least)} is not a share: give one above 0 and at most 1, such as 0.5"
        )
    training = as_corpus(train, text_column, id_column)
    items = as_corpus(test, columns[0] if columns and not isinstance(test, Corpus) else None)
    clock = Clock()
    with clock.stage("test set"):
        passages = make_passages(read_items(items, columns), ngrams, min_words, ignore)
        share = Fraction(str(at_least))
    best = np.zeros(len(passages), np.int64)
    found = Contamination(
        passages, at_least, best, stages=clock.stages, inputs=training.inputs, test_inputs=items.inputs
    )
    found.train_columns, found.test_columns = training.columns_used, items.columns_used
    tables = [found.spans]
    with clock.stage("read"):
        search = partial(_search_piece, passages, (share.numerator, share.denominator))
        _ = passages.tables  # computed once, before the threads start
        for piece in map_in_order(search, _pieces(training, found.read_rows, progress), threads or default_threads()):
            _add_findings(found, piece, write_spans or tables.append)
    found.spans = pa.concat_tables(tables)
    found.rejected = dict(training.rejected.counts)
    return found


#: The most places of a repeated gram of an item that a span is tried from.
_MOST_PLACES = 100


class _Piece(NamedTuple):
    texts: pa.LargeStringArray
    names: Any
    rows: Integers


class _PieceFindings(NamedTuple):
    documents: int
    bytes: int
    best: Integers
    rows: Integers
    findings: list[Finding]


def _pieces(corpus: Corpus, read: list[slice | Integers], progress: Progress | None) -> Iterator[_Piece]:
    consumed = 0
    for batch in corpus.scan():
        if len(batch.rows):
            first, last = int(batch.rows[0]), int(batch.rows[-1])
            read.append(slice(first, last + 1) if last - first + 1 == len(batch.rows) else batch.rows)
        consumed += batch.bytes_read
        if progress is not None:
            progress("read", consumed, corpus.total_bytes)
        at = 0
        for texts in text_pieces(batch):
            rows = batch.rows[at : at + len(texts)]
            yield _Piece(texts, rows if batch.ids is None else batch.ids[at : at + len(texts)], rows)
            at += len(texts)


def _search_piece(passages: Passages, share: tuple[int, int], piece: _Piece) -> _PieceFindings:
    data, offsets = text_buffers(piece.texts)
    normal = normalize_texts(data, offsets, "words")
    count = len(piece.texts)
    heads = np.empty(count + 1, np.int64)
    capacity = 1 << 12
    while True:
        numbers, places = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        total = find_grams(
            normal.text, normal.spans, passages.ngrams, passages.widths, *passages.tables, numbers, places, heads
        )
        if total <= capacity:
            break
        capacity = total
    size = int(offsets[-1] - offsets[0])
    best = np.zeros(len(passages), np.int64)
    if not total:
        return _PieceFindings(count, size, best, np.zeros(0, np.int64), [])
    sets_of_grams = passages.owner_heads, passages.owners, passages.sizes, share, best
    capacity = 1 << 10
    while True:
        texts, sets, shared = (np.empty(capacity, np.int64) for _ in range(3))
        pairs = find_contained_sets(numbers, heads, *sets_of_grams, texts, sets, shared)
        if pairs <= capacity:
            break
        capacity = pairs
    findings = []
    d, text, training_tokens = -1, "", list[Token]()
    for document, passage, o in zip(*(part[:pairs].tolist() for part in (texts, sets, shared)), strict=True):
        if document != d:
            d, text = document, piece.texts[document].as_py()
            training_tokens = tokens(text)
        hits = slice(heads[d], heads[d + 1])
        spans = _find_spans(passages, passage, training_tokens, places[hits], numbers[hits])
        begin = max(spans[0].start - _MARGIN, 0)
        max_length = max(_EXCERPT, _EXCERPT_RATIO * len(passages.text(passage)))
        excerpt = text[begin : min(spans[-1].end + _MARGIN, begin + max_length)]
        grams = int(passages.sizes[passage])
        findings.append(Finding(passage, _document_name(piece, d), o, grams, spans, excerpt, excerpt == text))
    return _PieceFindings(count, size, best, piece.rows[np.unique(texts[:pairs])], findings)


def _document_name(piece: _Piece, at: int) -> Any:
    name = piece.names[at]
    return name.as_py() if isinstance(name, pa.Scalar) else int(name)


def _find_spans(
    passages: Passages, passage: int, training_tokens: list[Token], places: Integers, numbers: Integers
) -> list[Span]:
    """Return the maximal runs of grams that a passage and a training text share."""
    grams, item_tokens, width = (
        passages.grams(passage).tolist(),
        tokens(passages.text(passage)),
        passages.width(passage),
    )
    item_places: dict[int, list[int]] = {}
    for at, gram in enumerate(grams):
        if gram >= 0 and len(known := item_places.setdefault(gram, [])) < _MOST_PLACES:
            known.append(at)
    found = {place: gram for place, gram in zip(places.tolist(), numbers.tolist(), strict=True) if gram in item_places}
    spans, last_place = list[Span](), -1
    for place in sorted(found):
        if place <= last_place:
            continue
        length, begin = max((_run_length(grams, at, found, place), -at) for at in item_places[found[place]])
        last_place = place + length - 1
        first, last = item_tokens[-begin], item_tokens[-begin + length + width - 2]
        start, end = training_tokens[place], training_tokens[last_place + width - 1]
        spans.append(Span(first.start, last.end, start.start, end.end, length + width - 1))
    return spans


def _run_length(grams: list[int], at: int, found: dict[int, int], place: int) -> int:
    length = 1
    while at + length < len(grams) and found.get(place + length) == grams[at + length]:
        length += 1
    return length


def _add_findings(found: Contamination, piece: _PieceFindings, write_spans: Callable[[pa.Table], None]) -> None:
    found.documents += piece.documents
    found.bytes_read += piece.bytes
    np.maximum(found.best, piece.best, out=found.best)
    found.contaminated_documents += len(piece.rows)
    if len(piece.rows):
        found.contaminated_rows.append(piece.rows)
    for finding in piece.findings:
        best = found.findings.get(finding.passage)
        if best is None or finding.shared > best.shared:
            found.findings[finding.passage] = finding
    if piece.findings:
        write_spans(_table(found.passages, piece.findings))


def _table(passages: Passages, findings: Sequence[Finding]) -> pa.Table:
    rows = [
        (
            str(passages.items.names[int(passages.item[finding.passage])]),
            passages.items.columns[int(passages.column[finding.passage])],
            str(finding.document),
            finding.containment,
            *span,
        )
        for finding in findings
        for span in finding.spans
    ]
    return pa.Table.from_pylist([dict(zip(SPANS.names, row, strict=True)) for row in rows], SPANS)
