"""One pass over a corpus: a random sample of its documents, and sizes and digests of all documents."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents import Batch, Corpus
from neardup.documents.records import Names
from neardup.evaluation.population import splitmix
from neardup.features.extraction import text_digests
from neardup.features.reading import DocumentColumns, Progress, pieces
from neardup.kernels import Integers, Words
from neardup.runtime import map_in_order
from neardup.text.bulk import text_buffers
from neardup.text.contents import extract_contents


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Survey:
    """Sizes, digests and sources of all documents of a corpus, by position."""

    names: Names
    #: int64[n]: the size of each text in bytes of UTF-8; with ``content``, of the extracted content.
    text_bytes: Integers
    #: uint64[n, 2]: equal for texts that are equal byte for byte.
    text_digests: Words
    #: int64[n]: the index in ``sources`` of each document's file, or of its folder if each file is a document.
    source: Integers
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sample:
    """A random sample of the documents of a corpus."""

    #: int64[k]: positions of the sampled documents in the corpus, ascending.
    positions: Integers
    #: The text of each sampled document, or its extracted content.
    texts: list[str]
    names: Names
    documents: int
    bytes: int
    seed: int

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def pairs(self) -> int:
        """The number of pairs of the sample."""
        return len(self) * (len(self) - 1) // 2

    @property
    def corpus_pairs(self) -> int:
        """The number of pairs of the corpus."""
        return self.documents * (self.documents - 1) // 2

    def as_dict(self) -> dict[str, Any]:
        """Return the sizes of the sample for JSON, without texts."""
        return {
            "documents": len(self),
            "pairs": self.pairs,
            "seed": self.seed,
            "of_documents": self.documents,
            "of_pairs": self.corpus_pairs,
            "bytes": self.bytes,
        }


def draw_sample(
    corpus: Corpus,
    *,
    sample: int,
    seed: int = 0,
    content: str = "",
    threads: int = 1,
    report: Progress | None = None,
) -> tuple[Sample, Survey]:
    """Read a corpus once and draw a random sample of its documents: those with the smallest hashes of row and seed.

    So it does not depend on threads, batch sizes or the split into files, and a larger sample contains a smaller one.
    """
    smallest, columns, rows = _BottomSample(sample, seed), DocumentColumns(), deque[Integers]()
    sizes, digests = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.uint64)]

    def add_batch(batch: Batch) -> None:
        columns.add(batch)
        if len(batch.rows):
            rows.append(batch.rows)

    measured = map_in_order(
        partial(_measure_texts, content), pieces(corpus, "sample", report, add_batch, content=content), threads
    )
    for texts, text_sizes, text_marks in measured:
        head = rows.popleft()
        smallest.add(head[: len(texts)], texts)
        if len(head) > len(texts):
            rows.appendleft(head[len(texts) :])
        sizes.append(text_sizes)
        digests.append(text_marks)
    names = columns.names()
    corpus.check_unique_ids(names)
    codes, sources = corpus.sources_of(names.rows)
    survey = Survey(
        names=names,
        text_bytes=np.concatenate(sizes),
        text_digests=np.concatenate(digests),
        source=codes,
        sources=sources,
    )
    drawn_rows, drawn_texts = smallest.result()
    found = Sample(
        positions=np.searchsorted(names.rows, drawn_rows),
        texts=drawn_texts,
        names=names,
        documents=len(names),
        bytes=int(survey.text_bytes.sum()),
        seed=seed,
    )
    return found, survey


def _measure_texts(content: str, texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Integers, Words]:
    """Return texts or their contents, with their sizes in bytes and their digests."""
    if content:
        texts, _ = extract_contents(texts, content)
    data, offsets = text_buffers(texts)
    return texts, np.diff(offsets), text_digests(data, offsets)


class _BottomSample:
    """The rows with the smallest hashes so far, with their texts."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed = count, seed
        self._keys = np.zeros(0, np.uint64)
        self._rows = np.zeros(0, np.int64)
        self._texts: list[str] = []

    def add(self, rows: Integers, texts: pa.LargeStringArray) -> None:
        keys = row_hashes(rows, self._seed)
        full = len(self._keys) == self._count
        small = np.flatnonzero(keys < self._keys[-1]) if full else np.arange(len(keys))
        if not len(small):
            return
        small = small[np.argsort(keys[small])][: self._count]
        keys = np.concatenate([self._keys, keys[small]])
        order = np.argsort(keys)[: self._count]
        found = self._texts + texts.take(pa.array(small)).to_pylist()
        self._keys, self._rows = keys[order], np.concatenate([self._rows, rows[small]])[order]
        self._texts = [found[place] for place in order.tolist()]

    def result(self) -> tuple[Integers, list[str]]:
        order = np.argsort(self._rows)
        return self._rows[order], [self._texts[place] for place in order.tolist()]


def row_hashes(rows: Integers, seed: int) -> Words:
    """Return a hash of each row, different for different rows: splitmix64 of both, twice."""
    words = rows.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
    return splitmix(splitmix(words))
