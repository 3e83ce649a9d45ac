"""Documents that an index has already: an id that comes again with its text is known, with another text an error.

A shard that is delivered again, after a crash or by a queue that repeats itself, then changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Corpus, join_ids
from neardup.documents.records import Names, repeated_ids
from neardup.errors import InputError, option, quoted
from neardup.index.segment import Segment
from neardup.kernels import Bools, Integers
from neardup.text.bulk import text_buffers

_DIGEST_BYTES = 16


class DocumentKeys:
    """What identifies documents: ids, raw rows, and digests of their texts, piece by piece in order."""

    def __init__(self) -> None:
        self._ids: list[pa.Array] = []
        self._rows: list[Integers] = [np.empty(0, np.int64)]
        self._digests: list[bytes] = []

    def add(self, ids: pa.Array, rows: Integers, texts: pa.LargeStringArray) -> None:
        """Add documents."""
        self._ids.append(ids)
        self._rows.append(rows)
        self._digests.append(_digests(texts))

    @property
    def ids(self) -> pa.Array:
        """The ids; of type int64 without documents."""
        return join_ids(self._ids) if self._ids else pa.array([], pa.int64())

    @property
    def rows(self) -> Integers:
        """The raw rows."""
        return np.concatenate(self._rows)

    @property
    def digests(self) -> np.ndarray:
        """The digests of the texts."""
        return np.frombuffer(b"".join(self._digests), f"V{_DIGEST_BYTES}")


def _digests(texts: pa.LargeStringArray) -> bytes:
    data, offsets = text_buffers(texts)
    view = data.data
    return b"".join(
        blake2b(view[begin:end], digest_size=_DIGEST_BYTES).digest() for begin, end in pairwise(offsets.tolist())
    )


def repeats_in(corpus: Corpus, keys: DocumentKeys, *, strict: bool) -> Bools:
    """Return which documents repeat an earlier one of their corpus, with its id and its text.

    Raises ``InputError`` for an id with two texts; if ``strict``, for any repeated id.
    """
    ids, digests = keys.ids, keys.digests
    is_repeat = np.zeros(len(ids), np.bool_)
    later = repeated_ids(ids)
    if len(later):
        first = np.asarray(pc.index_in(ids.take(pa.array(later)), value_set=ids))
        if strict or (digests[later] != digests[first]).any():
            corpus.check_unique_ids(Names(keys.rows, ids))
        is_repeat[later] = True
    return is_repeat


def find_known(
    path: str, segments: Iterable[Segment], keys: DocumentKeys, *, strict: bool
) -> tuple[Bools, list[Integers]]:
    """Return which documents an index has already, and where: the documents of each of its segments.

    Raises ``InputError`` for an id of the index with another text; if ``strict``, for any id of the index.
    """
    ids, digests = keys.ids, keys.digests
    is_known, places = np.zeros(len(ids), np.bool_), list[Integers]()
    for segment in segments:
        documents = segment.present_documents()
        names = segment.ids().take(pa.array(documents))
        if not len(ids) or names.type != ids.type:
            places.append(documents[:0])
            continue
        found = pc.index_in(names, value_set=ids)
        is_found = np.asarray(pc.is_valid(found))
        rows = np.asarray(pc.drop_null(found), np.int64)
        documents = documents[is_found]
        own = b"".join(map(_digests, segment.texts(documents)))
        is_other = np.frombuffer(own, f"V{_DIGEST_BYTES}") != digests[rows]
        if strict and len(rows):
            raise _repeated_error(path, ids[int(rows[0])].as_py())
        if is_other.any():
            raise _other_text_error(path, ids[int(rows[is_other][0])].as_py(), int(is_other.sum()))
        is_known[rows] = True
        places.append(documents)
    return is_known, places


def _repeated_error(path: str, name: object) -> InputError:
    way_out = option("--strict-ids", "strict_ids")
    return InputError(
        f"{path} already has a document with the id {quoted(name)}: leave the new one out, or leave out {way_out}, and "
        "documents with the same text are skipped"
    )


def _other_text_error(path: str, name: object, count: int) -> InputError:
    others = f" ({count:,} such documents)" if count > 1 else ""
    remove = option(f"neardup index remove {path} --ids FILE", "index.remove([id])")
    return InputError(
        f"{path} already has another text under the id {quoted(name)}{others}: give the new one another id, or remove "
        f"the old one first, with {remove}"
    )
