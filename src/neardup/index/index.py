"""The index on disk: opened at once, asked exactly, and grown by whole segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Corpus, corpus_of
from neardup.errors import OutputError, RecipeError, StoreError, check_count, quoted
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, text_pieces
from neardup.features.store import Block, Vectors, row_heads
from neardup.files import placed_output
from neardup.index.manifest import Manifest, digest_of, is_index, read_manifest, recipe_of
from neardup.index.segment import (
    MatchRule,
    Segment,
    check_recipe,
    damage_error,
    read_removed,
    segment_path,
)
from neardup.index.writer import IndexWriter, open_writer
from neardup.kernels.prefixes import overlaps_with_one
from neardup.pipeline.pipeline import thread_count
from neardup.pipeline.query import Answer, query_corpus
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, similarities
from neardup.runtime import map_in_order
from neardup.search.matches import Similar
from neardup.search.nearest import closest_documents

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: So often a reader begins again when a writer has merged what it was about to open.
_TRIES = 20
#: Of the nearest are compared: so many documents first, at most so many at once; beyond so many questions all are read.
_NEAREST_FIRST, _NEAREST_AT_ONCE, _NEAREST_OF = 64, 1 << 12, 64
#: What every pair reaches.
_ANY = Rule(0, 0, 1, 0, 1)


class DiskIndex:
    """One state of an index on disk; what is added later does not show until it is opened again.

    Parameters
    ----------
    path : path
        The folder.
    manifest : Manifest, optional
        The state, where one was read before; the last one by default.

    Attributes
    ----------
    path : str
        The folder.
    recipe : Recipe
        By what its documents match.
    manifest : Manifest
        What it consists of.

    Raises
    ------
    InputError
        If there is no index.
    StoreError
        If it is damaged, of a newer format, or this installation makes other features.

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
        for tried in range(_TRIES):
            self.manifest = read_manifest(self.path) if manifest is None else manifest
            self.recipe = recipe_of(self.manifest, self.path)
            self._match_rule = MatchRule.of(self.recipe)
            try:
                self._segments = [
                    Segment(self.path, part, self._match_rule, read_removed(self.path, part))
                    for part in self.manifest.segments
                ]
                break
            except StoreError:
                # A writer may have put other segments in their place meanwhile.
                if manifest is not None or tried + 1 == _TRIES or read_manifest(self.path) == self.manifest:
                    raise
        self._firsts = np.cumsum([0, *(len(segment) for segment in self._segments)])
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
        """Refuse another recipe; who is kept of documents that match is none of it.

        Raises
        ------
        RecipeError
            Naming both.
        """
        mine, theirs = self.recipe.changed(keep="first"), recipe.changed(keep="first")
        if mine.fingerprint != theirs.fingerprint:
            raise RecipeError(
                f"{self.path} was built by {mine.in_words()}, not by {theirs.in_words()}: leave the recipe out to take "
                "that of the index, or build another index"
            )

    def candidates(self, batches: Iterable[pa.LargeStringArray], threads: int | None = None) -> Integers:
        """Return the documents that may match any of some texts, by their places in keep order, ascending.

        None that matches is left out.

        Parameters
        ----------
        batches : iterable of pyarrow.LargeStringArray
            Valid UTF-8, no nulls.
        threads : int, optional
            They change the time, never the answer.
        """
        found = [np.zeros(len(segment), np.bool_) for segment in self._segments]

        def mark(block: Block) -> None:
            for segment, marks in zip(self._segments, found, strict=True):
                # Threads set the same value wherever they meet.
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

        Parameters
        ----------
        places : int64[n], optional
            Their places in keep order, ascending; all that were not removed by default.
        """
        ids, texts = list[pa.Array](), list[pa.Array]()
        for segment, own in self._by_segment(places):
            ids.append(segment.ids().take(pa.array(own)))
            texts += segment.texts(own)
        kind = _id_type(self.manifest.ids)
        columns = {"id": pa.chunked_array(ids, kind), "text": pa.chunked_array(texts, pa.large_string())}
        return pa.table(columns)

    def _by_segment(self, places: Integers | None) -> Iterator[tuple[Segment, Integers]]:
        for segment, first in zip(self._segments, self._firsts.tolist(), strict=False):
            if places is None:
                yield segment, segment.present_documents()
            else:
                begin, end = np.searchsorted(places, [first, first + len(segment)])
                yield segment, places[begin:end] - first

    def _first_document(self) -> Integers:
        """Return the place of the first document; none of an empty index."""
        for segment, first in zip(self._segments, self._firsts.tolist(), strict=False):
            there = segment.present_documents()
            if len(there):
                return np.array([first + there[0]], np.int64)
        return np.empty(0, np.int64)

    def corpus(self, places: Integers | None = None) -> Corpus:
        """Return documents as a corpus, which counts the others as left out; the arguments are those of ``documents``.

        Raises
        ------
        InputError
            If the index is empty.
        """
        found = corpus_of(self.documents(places), text_column="text", id_column="id")
        for source in found.sources:
            # Messages call it by its name.
            source.file = replace(source.file, name=self.path)
        found.omitted_count = 0 if places is None else len(self) - len(places)
        return found

    def set_as_reference(
        self, corpus: Corpus, *, whole: bool = False, threads: int | None = None, progress: Progress | None = None
    ) -> None:
        """Make the index the reference of a corpus: of its documents those that may match any there.

        Parameters
        ----------
        corpus : Corpus
            It is read once.
        whole : bool
            Take all documents: for whoever looks beyond the threshold, which is what candidates are looked up by.
        threads : int, optional
            They change the time, never the answer.
        progress : callable, optional
            Told ("look up", bytes done, bytes in all).
        """
        if whole:
            corpus.set_reference(self.corpus())
            return
        places = self.candidates(_scan_texts(corpus, "look up", progress), threads)
        if not len(places):
            # One that does not match does no harm, and tables say then of what type the ids are.
            places = self._first_document()
        corpus.set_reference(self.corpus(places))

    def query(self, text: str, k: int | None = None) -> list[Similar]:
        """Return the documents that a text matches, the most similar first; of equally similar ones the first.

        Parameters
        ----------
        text : str
            The text; a page where the recipe has a ``content``.
        k : int, optional
            Return the k nearest instead, whatever their similarity.

        Raises
        ------
        NeardupError
            As ``nd.query`` does.
        """
        _check_k(k)
        features = self._features(text) if self._match_rule.distance < 0 else np.empty(0, np.uint64)
        if not len(features) or (self.recipe.second_step if k is None else not 0 < k <= len(self)):
            return list(self.answer(text, k))
        if k is not None:
            places = self._nearest(features, k)
            others, sizes = self._feature_sets(places)
            vectors = Vectors(row_heads(sizes), others, np.empty(0, np.int64))
            nearest = closest_documents(vectors, features, vectors.weights, self.recipe.measure, k)
            ids = self.documents(places)["id"].take(nearest.document).to_pylist()
            return [Similar(*of) for of in zip(ids, nearest.similarity.tolist(), strict=True)]
        found: list[Similar] = []
        for segment in self._segments:
            documents = segment.candidates_of(features)
            if documents:
                found += self._similar(segment, documents, features)
        return sorted(found, key=lambda one: -one.similarity)

    def _features(self, text: str) -> Words:
        """Return the features of a text; none of one that is no valid Unicode, or no text."""
        try:
            data = np.frombuffer(text.encode(), np.uint8)
        except (UnicodeEncodeError, AttributeError):
            return np.empty(0, np.uint64)
        return self._extractor.sets(data, np.array([0, len(data)]))[0]

    def _similar(self, segment: Segment, documents: list[int], features: Words) -> Iterator[Similar]:
        """Yield which of a segment's candidates match a set, in keep order."""
        others, sizes = self._extractor.sets(*segment.text_bytes_of(documents))
        counts, ids = overlaps_with_one(features, others, sizes, self._match_rule.rule), segment.ids()
        match = np.flatnonzero(counts[:, 0] >= 0)
        found = similarities(self.recipe.measure, counts[match]).tolist()
        for place, similarity in zip(match.tolist(), found, strict=True):
            yield Similar(ids[documents[place]].as_py(), similarity)

    def _nearest(self, features: Words, k: int) -> Integers:
        """Return documents among which are the k nearest to a set, by their places in keep order, ascending.

        Those that share most, as their bitmaps have it, are compared first, until no other one can be as near.
        """
        most = np.concatenate([np.empty(0, np.int64), *(segment.most_shared(features) for segment in self._segments)])
        places = np.flatnonzero(most > 0)
        sizes = np.concatenate([np.empty(0, np.uint32), *(segment.sizes for segment in self._segments)])[places]
        counts = np.stack([most[places], np.full(len(places), len(features)), sizes], axis=1)
        bound = similarities(self.recipe.measure, counts)
        found, similar, least = [np.empty(0, np.int64)], np.empty(0), 0.0
        left, room = np.arange(len(places)), _NEAREST_FIRST
        while len(left):
            if room < len(left):
                left = left[np.argpartition(-bound[left], room)]
            found.append(np.sort(places[left[:room]]))
            counts = overlaps_with_one(features, *self._feature_sets(found[-1]), _ANY)
            # One that shares nothing is not near, though a distance would have it so.
            exact = np.where(counts[:, 0] > 0, similarities(self.recipe.measure, counts), -1.0)
            similar = np.append(similar, exact)
            if k <= len(similar):
                # A little less, for equally similar ones may differ in the last bit.
                least = float(np.partition(similar, -k)[-k]) * (1 - 1e-9)
            left = left[room:]
            left, room = left[bound[left] >= least], min(4 * room, _NEAREST_AT_ONCE)
        return np.sort(np.concatenate(found)[similar >= least])

    def _feature_sets(self, places: Integers) -> tuple[Words, Integers]:
        """Return the features of some documents, one behind the other, and how many each has."""
        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        for segment, documents in self._by_segment(places):
            if len(documents):
                found.append(self._extractor.sets(*segment.text_bytes_of(documents.tolist())))
        features, sizes = zip(*found, strict=True)
        return np.concatenate(features), np.concatenate(sizes)

    def candidate_corpus(self, text: str, k: int | None = None) -> Corpus:
        """Return documents as a corpus, among them all that a text may match, or those that may be the k nearest."""
        _check_k(k)
        if k is not None and self._match_rule.distance >= 0:
            return self.corpus()
        features = self._features(text)
        if not len(features):
            # Whoever asks is told so before anything is compared.
            return self.corpus(np.empty(0, np.int64))
        if k is not None:
            return self.corpus(self._nearest(features, k))
        return self.corpus(self.candidates([pa.array([text], pa.large_string())], 1))

    def neighbor_corpus(self, k: int, of: Sequence[Any] | None = None, first: int | None = None) -> Corpus:
        """Return documents as a corpus, among them the k nearest of some: those of ids, or the first ones.

        Of all, where many are asked for, or one that is not there.
        """
        check_count("k", k, "ask for one neighbour at least")
        if first is not None:
            check_count("first", first, "ask for one document at least")
        own = list(self._by_segment(None))
        places = np.concatenate(
            [np.empty(0, np.int64), *(at + own[1] for at, own in zip(self._firsts, own, strict=False))]
        )
        if of is not None and len(of) <= _NEAREST_OF:
            names = pa.concat_arrays(
                [segment.ids().take(pa.array(there)).cast(pa.large_string()) for segment, there in own]
            )
            rows = pc.index_in(pa.array(map(str, of), pa.large_string()), value_set=names)
            wanted = places[:0] if rows.null_count else places[rows.to_numpy()]
        else:
            wanted = places[: first if first is not None and first <= _NEAREST_OF else 0]
        if self._match_rule.distance >= 0 or not len(wanted):
            return self.corpus()
        texts = self.documents(np.unique(wanted))["text"].to_pylist()
        near = [self._nearest(features, k + 1) for text in texts if len(features := self._features(text))]
        return self.corpus(np.unique(np.concatenate([wanted, *near])))

    def answer(self, text: str, k: int | None = None, **options: Any) -> Answer:
        """Return what ``nd.query`` says of a text and all documents of the index; the options are those of it."""
        with self.candidate_corpus(text, k) as corpus:
            return query_corpus(corpus, self.recipe, text, k=k, **options)

    def add(self, data: Any, **options: Any) -> DiskIndex:
        """Add documents, in one step; return the index with them.

        Parameters
        ----------
        data : list of str, table, array or Corpus
            As in ``nd.dedup``.
        **options
            ``text_column``, ``id_column`` and ``threads``, as there.

        Raises
        ------
        InputError
            If an id is there already, or the ones have ids and the others none.
        StoreError, OutputError
            If another process writes to the index, or it cannot be written to.
        """
        threads = options.pop("threads", None)
        corpus = data if isinstance(data, Corpus) else corpus_of(data, **options)
        with open_writer(self.path) as writer:
            writer.add(corpus, threads=threads)
            writer.commit()
        return DiskIndex(self.path)

    def remove(self, ids: Iterable[Any]) -> DiskIndex:
        """Remove the documents with some ids, those that are there; return the index without them."""
        if isinstance(ids, str | bytes):
            raise RecipeError(f"ids {quoted(ids)} is one id or one text: give a list of ids")
        with open_writer(self.path) as writer:
            writer.remove(ids)
            writer.commit()
        return DiskIndex(self.path)

    def compact(self, *, threads: int | None = None) -> DiskIndex:
        """Write small segments, and those with removed documents, anew as few; return the index, with the same answers.

        Parameters
        ----------
        threads : int, optional
            They change the time, never the bytes.
        """
        with open_writer(self.path) as writer:
            writer.compact(threads=threads)
            writer.commit()
        return DiskIndex(self.path)

    def check(self) -> None:
        """Read every byte of the index.

        Raises
        ------
        StoreError
            Naming the first file that is not as it was written.
        """
        for part in self.manifest.segments:
            for path, file in part.files.items():
                place = segment_path(self.path, path, part)
                if digest_of(place) != file.digest:
                    raise damage_error(place)


def _distinct_fingerprints(blocks: Iterator[Block]) -> Block:
    """Return fingerprints of several blocks as one, each once."""
    values = np.unique(np.concatenate([np.empty(0, np.uint64), *(block.features for block in blocks)]))
    ones, marks = np.ones(len(values), np.int64), np.empty((0, 2), np.uint64)
    return Block(values, ones, marks, marks, ones, np.empty(0, np.int64))


def _scan_texts(corpus: Corpus, stage: str, progress: Progress | None) -> Iterator[pa.LargeStringArray]:
    consumed = 0
    for batch in corpus.scan():
        consumed += batch.bytes_read
        if progress is not None:
            progress(stage, consumed, corpus.total_bytes)
        yield from text_pieces(batch)


def _check_k(k: int | None) -> None:
    """Refuse a number of documents that is none."""
    if k is not None:
        check_count("k", k, "ask for one document at least")


def _id_type(ids: str) -> pa.DataType:
    return pa.large_string() if ids == "string" else pa.int64()


def build(
    corpus: Corpus,
    path: str | PathLike[str],
    recipe: Recipe,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DiskIndex:
    """Make an index of a corpus; it is at its place when it is whole.

    Parameters
    ----------
    corpus : Corpus
        It is read once.
    path : path
        A folder that is not there yet.
    recipe : Recipe
        By what documents match.
    threads : int, optional
        They change the time, never the bytes.
    progress : callable, optional
        Told ("index", bytes done, bytes in all).

    Raises
    ------
    RecipeError
        If no index can be kept by the recipe.
    OutputError
        If something is there already, or it cannot be written.
    """
    check_recipe(recipe)
    folder = os.path.realpath(path)
    check_new_path(path)
    try:
        with placed_output(folder, folder=True) as made:
            writer = IndexWriter(made.path, Manifest.of(recipe))
            writer.add(corpus, threads=threads, progress=progress)
            writer.commit()
    except OSError as error:
        raise OutputError(f"{os.fspath(path)} cannot be written ({error.strerror}); choose another place") from None
    return DiskIndex(path)


def check_new_path(path: str | PathLike[str]) -> None:
    """Refuse, before the work, a place for a new index where something is.

    Raises
    ------
    OutputError
        With the way out.
    """
    if os.path.lexists(path):
        way = f"add to it with neardup index add {os.fspath(path)} CORPUS, or " if is_index(path) else ""
        raise OutputError(f"{os.fspath(path)} exists: {way}name a folder that does not")
