"""Files and tables -> batches of texts, and back.

Pass one, `Corpus.scan`, gives texts, ids and keep order; pass two, `Corpus.copy`, writes the kept raw
records. Between them a document is its raw row: counted from 0 over all inputs in order, broken records too,
blank lines not.
"""

from neardup.documents.columns import FIND_TIME
from neardup.documents.copying import CopyReport
from neardup.documents.corpus import Corpus
from neardup.documents.opened import corpus_of, open_corpus
from neardup.documents.output import check_output
from neardup.documents.parts import REPEATED_ID
from neardup.documents.quarantine import SetAside
from neardup.documents.sift import Batch
from neardup.documents.values import join_ids, join_order, repeated_ids
from neardup.documents.writers import Writer, open_writer, write_table

__all__ = [
    "FIND_TIME",
    "REPEATED_ID",
    "Batch",
    "CopyReport",
    "Corpus",
    "SetAside",
    "Writer",
    "check_output",
    "corpus_of",
    "join_ids",
    "join_order",
    "open_corpus",
    "open_writer",
    "repeated_ids",
    "write_table",
]
