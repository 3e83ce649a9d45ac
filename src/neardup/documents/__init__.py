"""Files and tables as batches of documents, and back.

Pass one, `Corpus.scan`, yields texts, ids and keep order; pass two, `Corpus.copy`, writes the kept raw records. In
both a document is identified by its raw row: counted from 0 over all inputs, with broken records and without blank
lines.
"""

from __future__ import annotations

from neardup.documents.corpus import Corpus, Ids, as_corpus, cluster_column, corpus_of, open_corpus
from neardup.documents.inputs import Quoting
from neardup.documents.output import Writer, check_output, open_writer, write_table
from neardup.documents.records import Batch, Names, join_ids, join_order, repeated_ids
from neardup.documents.rejected import Rejected
from neardup.documents.tables import DETECTED_TIME_COLUMN, OrderColumn, TextColumn

__all__ = [
    "DETECTED_TIME_COLUMN",
    "Batch",
    "Corpus",
    "Ids",
    "Names",
    "OrderColumn",
    "Quoting",
    "Rejected",
    "TextColumn",
    "Writer",
    "as_corpus",
    "check_output",
    "cluster_column",
    "corpus_of",
    "join_ids",
    "join_order",
    "open_corpus",
    "open_writer",
    "repeated_ids",
    "write_table",
]
