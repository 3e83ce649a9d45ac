"""The index on disk: it opens instantly, answers exactly, and grows by whole segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Batch, Corpus, corpus_of
from neardup.errors import OutputError, RecipeError, StoreError, check_count, option, quoted
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, pieces
from neardup.features.store import Block, Vectors, row_heads
from neardup.files import placed_output, write_error
from neardup.index.known import DocumentKeys, find_known
from neardup.index.manifest import Manifest, is_index, read_manifest, recipe_of
from neardup.index.segment import MatchRule, Segment, check_part, check_recipe
from neardup.index.writer import IndexWriter, open_writer
from neardup.kernels import Integers, Words
from neardup.kernels.prefixes import overlaps_with_one
from neardup.pipeline.pipeline import thread_count
from neardup.pipeline.query import Answer, query_corpus
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, similarities
from neardup.runtime import map_in_order
from neardup.search.matches import Similar
from neardup.search.nearest import closest_documents

#: How often a reader starts again if a writer has merged the segments it was about to open.
_MAX_TRIES = 20
#: Search for nearest documents: size of the first batch, largest batch, and number of documents beyond which the whole
#: index is read.
_NEAREST_FIRST_BATCH, _NEAREST_MAX_BATCH, _NEAREST_MAX_QUERIES = 64, 1 << 12, 64
#: A rule that every pair meets.
_ANY = Rule(0, 0, 1, 0, 1)


class DiskIndex:
    """One state of an index on disk; later additions become visible when it is opened again.

    Parameters
    ----------
    path : path
        The folder.
    manifest : Manifest, optional
        The state to open; the latest by default.

    Raises
    ------
    InputError
        If there is no index.
    StoreError
        If it is damaged, has another format, or this installation computes other features.

    Examples
    --------
    >>> import neardup as nd, tempfile
    >>> folder = tempfile.mkdtemp() + "/archive"
    >>> with_ids = {"id": ["a", "b"], "text": ["a rose is a rose is a rose", "the daisies are out"]}
    >>> index = nd.build_index(with_ids, folder, threshold=0.5)
    >>> index.query("A rose is a rose, is a rose!")
    [Similar(id='a', similarity=1.0)]
    >>> len(nd.open_index(folder).add({"id": ["c"], "text": ["a tulip is a tulip"]}))
    3
    """

    def __init__(self, path: str | PathLike[str], manifest: Manifest | None = None) -> None:
        self.path = os.fspath(path)
        for attempt in range(_MAX_TRIES):
            self.manifest = read_manifest(self.path) if manifest is None else manifest
            self.recipe = recipe_of(self.manifest, self.path)
            self._match_rule = MatchRule.from_recipe(self.recipe)
            try:
                self._segments = [Segment(self.path, part, self._match_rule) for part in self.manifest.segments]
                break
            except StoreError:
                # A writer may have replaced the segments meanwhile.
                if manifest is not None or attempt + 1 == _MAX_TRIES or read_manifest(self.path) == self.manifest:
                    raise
        self._firsts = np.cumsum([0, *(len(segment) for segment in self._segments)])
        #: How many documents of the addition that made this object were known already.
        self.known_count = 0
        self._extractor = Extractor(self.recipe)

    def __len__(self) -> int:
        return self.manifest.documents

    def __repr__(self) -> str:
        return f"<index of {len(self):,} documents, {self.recipe.in_words()}>"

    @property
    def info(self) -> dict[str, Any]:
        """Counts, sizes in bytes, and the recipe."""
        parts = self.manifest.segments
        return {
            "documents": len(self),
            "removed": sum(part.removed for part in parts),
            "segments": len(parts),
            "text_bytes": sum(part.text_bytes for part in parts),
            "bytes": sum(part.bytes for part in parts),
            "ids": self.manifest.ids,
            "recipe": dict(self.manifest.recipe),
            "fingerprint": self.recipe.fingerprint,
        }

    def check_recipe(self, recipe: Recipe) -> None:
        """Check that a recipe equals that of the index, apart from ``keep``; raises ``RecipeError`` that names both."""
        expected, requested = self.recipe.changed(keep="first"), recipe.changed(keep="first")
        if expected.fingerprint != requested.fingerprint:
            raise RecipeError(
                f"{self.path} was built by {expected.in_words()}, not by {requested.in_words()}: leave the recipe out "
                "to take that of the index, or build another index"
            )

    def candidates(self, batches: Iterable[pa.LargeStringArray], threads: int | None = None) -> Integers:
        """Return the documents that may match any of some texts, all matching ones among them.

        They are ascending places in keep order. ``batches``: texts as Arrow arrays, valid UTF-8 without nulls.
        """
        found = [np.zeros(len(segment), np.bool_) for segment in self._segments]

        def mark(block: Block) -> None:
            for segment, marks in zip(self._segments, found, strict=True):
                # Threads only ever write the same value.
                marks[segment.candidates(block)[1]] = True

        threads = thread_count(threads)
        if self._match_rule.distance >= 0:
            mark(_distinct_fingerprints(map_in_order(self._extractor, batches, threads)))
        else:
            for _ in map_in_order(lambda texts: mark(self._extractor(texts)), batches, threads):
                pass
        return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *found]))

    def documents(self, places: Integers | None = None) -> pa.Table:
        """Return documents as a table of id and text, in keep order.

        ``places``: int64[n], ascending places in keep order; all remaining documents by default.
        """
        ids, texts = list[pa.Array](), list[pa.Array]()
        for segment, segment_places in self._by_segment(places):
            ids.append(segment.ids().take(pa.array(segment_places)))
            texts += segment.texts(segment_places)
        kind = pa.large_string() if self.manifest.ids == "string" else pa.int64()
        return pa.table({"id": pa.chunked_array(ids, kind), "text": pa.chunked_array(texts, pa.large_string())})

    def _by_segment(self, places: Integers | None) -> Iterator[tuple[Segment, Integers]]:
        for segment, first in zip(self._segments, self._firsts.tolist(), strict=False):
            if places is None:
                yield segment, segment.present_documents()
            else:
                begin, end = np.searchsorted(places, [first, first + len(segment)])
                yield segment, places[begin:end] - first

    def corpus(self, places: Integers | None = None) -> Corpus:
        """Return documents as a corpus, which counts the other documents as omitted. Arguments as in ``documents``.

        Raises ``InputError`` if the index is empty.
        """
        found = corpus_of(self.documents(places), text_column="text", id_column="id")
        for source in found.sources:
            # Messages name the index.
            source.file = replace(source.file, name=self.path)
        found.omitted_count = 0 if places is None else len(self) - len(places)
        return found

    def set_as_reference(
        self,
        corpus: Corpus,
        *,
        all_documents: bool = False,
        without_known: bool = False,
        strict_ids: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Make the index the reference of a corpus, restricted to documents that may match one of the corpus.

        The corpus is read once. ``all_documents``: whether to take all, for searches below the threshold, by which
        candidates are found. ``without_known``: whether to leave out documents that the corpus has under the same id
        with the same text, so that a shard that was added before gives the result that it gave then; ``strict_ids``
        refuses them. ``progress`` is called with ("look up", bytes done, total bytes).
        """
        if all_documents and not without_known:
            corpus.set_reference(self.corpus())
            return
        keys = DocumentKeys()

        def add_keys(batch: Batch) -> None:
            if without_known and batch.ids is not None:
                keys.add(batch.ids, batch.rows, batch.texts)

        texts = pieces(corpus, "look up", progress, add_keys, content=self.recipe.content)
        places = self.candidates(texts, threads)
        known = self._known_places(keys, strict=strict_ids) if without_known else places[:0]
        if all_documents:
            places = np.concatenate([first + documents for first, documents in self._present()])
        if len(known):
            places = np.setdiff1d(places, known, assume_unique=True)
        if not len(places):
            # A document that does not match does no harm, and gives the id column its type.
            places = self._first_document(known)
        reference = self.corpus(places)
        if without_known:
            reference.known_count = len(known)
            reference.omitted_count -= len(known)
        corpus.set_reference(reference)

    def _present(self) -> Iterator[tuple[int, Integers]]:
        """Yield the first place of each segment, and its remaining documents."""
        for segment, first in zip(self._segments, self._firsts.tolist(), strict=False):
            yield first, segment.present_documents()

    def _first_document(self, known: Integers) -> Integers:
        """Return the place of the first document that is not known; empty if there is none."""
        for first, documents in self._present():
            places = np.setdiff1d(first + documents, known, assume_unique=True)
            if len(places):
                return places[:1]
        return np.empty(0, np.int64)

    def check_none_known(self, corpus: Corpus) -> None:
        """Check that a corpus has no known documents (``set_as_reference``); ``RecipeError`` if it has."""
        keys = DocumentKeys()
        for batch in corpus.scan():
            if batch.ids is not None:
                keys.add(batch.ids, batch.rows, batch.texts)
        if count := len(self._known_places(keys, strict=False)):
            raise RecipeError(
                f"{self.path} has {count:,} of these documents already, and on Spark they would match themselves: run "
                f"without {option('--engine spark', 'Spark')}, or leave them out"
            )

    def _known_places(self, keys: DocumentKeys, *, strict: bool) -> Integers:
        """Return the places of documents that were given with their ids and texts, ascending."""
        _, documents = find_known(self.path, self._segments, keys, strict=strict)
        places = [first + part for first, part in zip(self._firsts.tolist(), documents, strict=False)]
        return np.concatenate([np.empty(0, np.int64), *places])

    def query(self, text: str, k: int | None = None) -> list[Similar]:
        """Return the documents that a text matches, or its k nearest, the most similar first; ties in index order.

        A text without features matches nothing. It is an HTML page if the recipe has ``content``. Other errors are
        those of ``nd.query``.
        """
        _check_k(k)
        features = self._features(text) if self._match_rule.distance < 0 else np.empty(0, np.uint64)
        if not len(features) and self._is_without_features(text):
            return []
        if not len(features) or (self.recipe.second_step if k is None else not 0 < k <= len(self)):
            return list(self.answer(text, k))
        if k is not None:
            places = self._nearest(features, k)
            candidates, sizes = self._feature_sets(places)
            vectors = Vectors(row_heads(sizes), candidates, np.empty(0, np.int64))
            nearest = closest_documents(vectors, features, vectors.weights, self.recipe.measure, k)
            ids = self.documents(places)["id"].take(nearest.document).to_pylist()
            return [Similar(*row) for row in zip(ids, nearest.similarity.tolist(), strict=True)]
        found: list[Similar] = []
        for segment in self._segments:
            documents = segment.candidates_of(features)
            if documents:
                found += self._similar(segment, documents, features)
        return sorted(found, key=lambda match: -match.similarity)

    def _is_without_features(self, text: str) -> bool:
        """Return whether a text is a valid string that has no features."""
        try:
            texts = pa.array([text], pa.large_string())
        except (UnicodeEncodeError, pa.ArrowException):
            return False
        return not texts.null_count and not int(self._extractor(texts).sizes[0])

    def _features(self, text: str) -> Words:
        """Return the features of a text; empty if it is not a valid string."""
        try:
            data = np.frombuffer(text.encode(), np.uint8)
        except (UnicodeEncodeError, AttributeError):
            return np.empty(0, np.uint64)
        return self._extractor.sets(data, np.array([0, len(data)]))[0]

    def _similar(self, segment: Segment, documents: list[int], features: Words) -> Iterator[Similar]:
        """Yield the candidates of a segment that match a set, in keep order."""
        candidate_features, sizes = self._extractor.sets(*segment.text_bytes_of(documents))
        counts, ids = overlaps_with_one(features, candidate_features, sizes, self._match_rule.rule), segment.ids()
        match = np.flatnonzero(counts[:, 0] >= 0)
        found = similarities(self.recipe.measure, counts[match]).tolist()
        for place, similarity in zip(match.tolist(), found, strict=True):
            yield Similar(ids[documents[place]].as_py(), similarity)

    def _nearest(self, features: Words, k: int) -> Integers:
        """Return documents that include the k nearest to a set, as ascending places in keep order.

        Documents with the highest bound of shared features, from bitmaps, are compared first, until no other can be as
        near.
        """
        bounds = np.concatenate(
            [np.empty(0, np.int64), *(segment.shared_bounds(features) for segment in self._segments)]
        )
        places = np.flatnonzero(bounds > 0)
        sizes = np.concatenate([np.empty(0, np.uint32), *(segment.sizes for segment in self._segments)])[places]
        counts = np.stack([bounds[places], np.full(len(places), len(features)), sizes], axis=1)
        bound = similarities(self.recipe.measure, counts)
        found, similar, kth = [np.empty(0, np.int64)], np.empty(0), 0.0
        remaining, batch = np.arange(len(places)), _NEAREST_FIRST_BATCH
        while len(remaining):
            if batch < len(remaining):
                remaining = remaining[np.argpartition(-bound[remaining], batch)]
            found.append(np.sort(places[remaining[:batch]]))
            counts = overlaps_with_one(features, *self._feature_sets(found[-1]), _ANY)
            # A document that shares no feature is not near, even if a distance is small.
            exact = np.where(counts[:, 0] > 0, similarities(self.recipe.measure, counts), -1.0)
            similar = np.append(similar, exact)
            if k <= len(similar):
                # Slightly less, since equal similarities may differ in the last bit.
                kth = float(np.partition(similar, -k)[-k]) * (1 - 1e-9)
            remaining = remaining[batch:]
            remaining, batch = remaining[bound[remaining] >= kth], min(4 * batch, _NEAREST_MAX_BATCH)
        return np.sort(np.concatenate(found)[similar >= kth])

    def _feature_sets(self, places: Integers) -> tuple[Words, Integers]:
        """Return the concatenated features of some documents, and their numbers."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        for segment, documents in self._by_segment(places):
            if len(documents):
                found.append(self._extractor.sets(*segment.text_bytes_of(documents.tolist())))
        features, sizes = zip(*found, strict=True)
        return np.concatenate(features), np.concatenate(sizes)

    def candidate_corpus(self, text: str, k: int | None = None) -> Corpus:
        """Return a corpus of documents that includes all matches of a text, or its k nearest."""
        _check_k(k)
        if k is not None and self._match_rule.distance >= 0:
            return self.corpus()
        features = self._features(text)
        if not len(features):
            # The query reports such a text itself.
            return self.corpus(np.empty(0, np.int64))
        if k is not None:
            return self.corpus(self._nearest(features, k))
        return self.corpus(self.candidates([pa.array([text], pa.large_string())], 1))

    def neighbor_corpus(self, k: int, of: Sequence[Any] | None = None, first: int | None = None) -> Corpus:
        """Return a corpus of documents that includes the k nearest of some documents: given by ids, or the first ones.

        It is the whole index for many documents, or an unknown id.
        """
        check_count("k", k, "ask for one neighbour at least")
        if first is not None:
            check_count("first", first, "ask for one document at least")
        parts = list(self._by_segment(None))
        present = [first + documents for first, (_, documents) in zip(self._firsts, parts, strict=False)]
        places = np.concatenate([np.empty(0, np.int64), *present])
        if of is not None and len(of) <= _NEAREST_MAX_QUERIES:
            names = pa.concat_arrays(
                [segment.ids().take(pa.array(documents)).cast(pa.large_string()) for segment, documents in parts]
            )
            rows = pc.index_in(pa.array(map(str, of), pa.large_string()), value_set=names)
            chosen = places[:0] if rows.null_count else places[rows.to_numpy()]
        else:
            chosen = places[: first if first is not None and first <= _NEAREST_MAX_QUERIES else 0]
        if self._match_rule.distance >= 0 or not len(chosen):
            return self.corpus()
        texts = self.documents(np.unique(chosen))["text"].to_pylist()
        nearest = [self._nearest(features, k + 1) for text in texts if len(features := self._features(text))]
        return self.corpus(np.unique(np.concatenate([chosen, *nearest])))

    def answer(self, text: str, k: int | None = None, **options: Any) -> Answer:
        """Return the result of ``nd.query`` on all documents of the index; options as there."""
        with self.candidate_corpus(text, k) as corpus:
            return query_corpus(corpus, self.recipe, text, k=k, **options)

    def add(self, data: Any, *, strict_ids: bool = False, **options: Any) -> DiskIndex:
        """Add documents, atomically; return the new state of the index.

        Parameters
        ----------
        data, **options
            As in ``nd.dedup``: a list, a table, an array or a Corpus; ``text_column``, ``id_column`` and ``threads``.
        strict_ids : bool
            Whether to refuse ids that exist already; by default documents whose id exists with the same text are
            skipped, and ``known_count`` of the result counts them.

        Raises
        ------
        InputError
            If an id exists already with another text, or only one side has ids.
        StoreError, OutputError
            If another process writes to the index, or it is not writable.
        """
        threads = options.pop("threads", None)
        corpus = data if isinstance(data, Corpus) else corpus_of(data, **options)
        with open_writer(self.path) as writer:
            known_count = writer.add(corpus, strict_ids=strict_ids, threads=threads)
            writer.commit()
        found = DiskIndex(self.path)
        found.known_count = known_count
        return found

    def remove(self, ids: Iterable[Any]) -> DiskIndex:
        """Remove the documents with some ids, if present; return the new state of the index."""
        if isinstance(ids, str | bytes):
            raise RecipeError(f"ids {quoted(ids)} is one id or one text: give a list of ids")
        with open_writer(self.path) as writer:
            writer.remove(ids)
            writer.commit()
        return DiskIndex(self.path)

    def compact(self, *, threads: int | None = None) -> DiskIndex:
        """Merge small segments and those with removed documents; return the new state, which gives the same results."""
        with open_writer(self.path) as writer:
            writer.compact(threads=threads)
            writer.commit()
        return DiskIndex(self.path)

    def check(self) -> None:
        """Read every byte of the index; raise ``StoreError``, which names the first file that has changed."""
        for part in self.manifest.segments:
            check_part(self.path, part)


def _distinct_fingerprints(blocks: Iterator[Block]) -> Block:
    """Return the distinct fingerprints of several blocks as one block."""
    values = np.unique(np.concatenate([np.empty(0, np.uint64), *(block.features for block in blocks)]))
    ones, marks = np.ones(len(values), np.int64), np.empty((0, 2), np.uint64)
    return Block(values, ones, marks, marks, ones, np.empty(0, np.int64))


def _check_k(k: int | None) -> None:
    if k is not None:
        check_count("k", k, "ask for one document at least")


def build(
    corpus: Corpus,
    path: str | PathLike[str],
    recipe: Recipe,
    *,
    strict_ids: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DiskIndex:
    """Build an index of a corpus, which is read once; it appears at its path only when it is complete.

    A document that comes twice, with the same id and the same text, is entered once; ``strict_ids`` refuses it.
    ``threads`` changes the time, never the bytes; ``progress`` is called with ("index", bytes done, total bytes).
    Raises ``RecipeError`` if no index can be built with the recipe, and ``OutputError`` if the path exists already or
    cannot be written.
    """
    check_recipe(recipe)
    folder = os.path.realpath(path)
    check_new_path(path)
    try:
        with placed_output(folder, folder=True) as output:
            writer = IndexWriter(output.path, Manifest.from_recipe(recipe))
            known_count = writer.add(corpus, strict_ids=strict_ids, threads=threads, progress=progress)
            writer.commit()
    except OSError as error:
        raise write_error(path, error) from None
    found = DiskIndex(path)
    found.known_count = known_count
    return found


def check_new_path(path: str | PathLike[str]) -> None:
    """Check, before the work, that the path of a new index does not exist; raises ``OutputError`` if it does."""
    if os.path.lexists(path):
        way = f"add to it with neardup index add {os.fspath(path)} CORPUS, or " if is_index(path) else ""
        raise OutputError(f"{os.fspath(path)} exists: {way}name a folder that does not")
