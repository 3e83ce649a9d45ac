"""The index of a flow: it takes documents and returns verdicts, each on disk before it is returned."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from neardup.classifier.classifier import Classifier, ClassifierLike, classifier_recipe, resolve_classifier
from neardup.classifier.domain import DomainCounts
from neardup.documents.streams import read_ahead
from neardup.errors import (
    ForeignDocuments,
    InputError,
    RecipeError,
    StoreError,
    UnknownDocument,
    option,
    quoted,
)
from neardup.features.reading import gather_text_statistics
from neardup.features.statistics import Statistics
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe.named import apply_flow_choices
from neardup.recipe.recipe import parse
from neardup.runtime import default_threads
from neardup.search.matches import Similar
from neardup.search.window import WindowLength, check_keys
from neardup.stream.document import Arrival, Document, Verdict
from neardup.stream.matcher import Matcher
from neardup.stream.recent_verdicts import RecentVerdicts
from neardup.stream.store import Store, StoreReader, text_digest
from neardup.stream.store_file import StoreIdentity, damage_error

_log = logging.getLogger("neardup.stream")
_SECOND = 1_000_000
#: Documents and characters per batch.
_BATCH_DOCUMENTS = 1024
_BATCH_CHARACTERS = 1 << 23
#: The most ids whose last version is remembered, and the most sources; a full memory is emptied.
_MAX_NUMBERED = 10_000


def resolve_recipe(
    recipe: AnyRecipe | None, classifier: ClassifierLike | None, choices: Mapping[str, Any]
) -> tuple[Recipe, Classifier | None]:
    """Return the recipe of a flow and its classifier, which is loaded if it is a path.

    Raises ``NeardupError`` if both are passed, or one does not fit a flow.
    """
    if classifier is None:
        return apply_flow_choices(recipe, choices), None
    loaded = resolve_classifier(classifier)
    if loaded.vector.needs_encoder:
        raise RecipeError(
            "the classifier uses 'semantic', and a flow makes no embeddings; train one on a vector without it"
        )
    return classifier_recipe(loaded, {"recipe": recipe, **choices}), loaded


def statistics_for(recipe: Recipe, sample: Sequence[str] | Statistics | None) -> Statistics | None:
    """Return the statistics that a recipe takes from a collection, None if it takes none.

    Raises ``RecipeError`` if it needs a sample and there is none, or the other way round.
    """
    if not recipe.needs_statistics:
        if sample is not None:
            raise RecipeError(
                f"{option('--sample')} is for recipes that take frequencies from a collection, and recipe "
                f"{recipe.name!r} takes none; leave it out"
            )
        return None
    if sample is None:
        raise RecipeError(
            f"recipe {recipe.name!r} takes frequencies from a collection, and a flow is none yet; give one with "
            f"{option('--sample INPUT', 'sample=')}"
        )
    if isinstance(sample, Statistics):
        return sample
    return gather_text_statistics([pa.array(list(sample), pa.large_string())], recipe)


def batch_documents(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield documents in batches of at most a thousand documents and some megabytes."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(f"{type(document).__name__} is not a Document; make one: nd.Document(id, text, timestamp)")
        batch.append(document)
        characters += len(document.text)
        if len(batch) >= _BATCH_DOCUMENTS or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class IndexStatistics(NamedTuple):
    """Counts and sizes of an index."""

    #: Documents with verdicts.
    documents: int
    originals: int
    duplicates: int
    window_documents: int  #: documents in the window; those of its oldest segment leave together
    bytes: int  #: memory of the window's segments and tables
    segments: int  #: nonempty parts of the window, each a 24th of it
    #: The clock of the flow in seconds since 1970; None before the first document, and for windows of documents.
    clock: float | None
    #: Documents with each flag.
    late: int
    ahead: int
    future: int
    undecidable: int
    #: Pairs that a classifier judged, pairs unlike its training pairs, and pairs that passed; all 0 without a
    #: classifier, or if it does not record its training domain.
    domain_counts: DomainCounts = DomainCounts()


_AGAINST = ("originals", "everything")
VERSIONS = ("keep", "replace", "refuse")


class Index:
    """A window of documents that tells for each new document whether it repeats one of them.

    Parameters
    ----------
    recipe : Recipe, str or path, optional
        Decides what matches: any recipe with keys (sets, sketches, fingerprints, LSH); by default
        ``ddd`` at 0.8, or what ``features`` change of ``default``.
    classifier : Classifier or path, optional
        Decides instead of a recipe: a trained classifier, or the path of its file.
    window : str, int, timedelta or None
        How far apart two matches may be: ``"24h"``, ``"7d"``, ``"8000 documents"`` or 8000; ``"endless"`` or None.
        Raising it finds repeats of older documents and takes memory and time in proportion.
    window_by : str
        ``time``, or ``hour``: whole hours are compared, as in Montanari & Puglisi 2012, 3.6.
    against : str
        ``originals``: a document is compared with originals only, so that an endless window keeps what ``dedup``
        keeps; ``everything``: also with duplicates, as in the paper.
    versions : str
        What happens to a document whose id belongs to another text: ``keep`` judges it under the id with ``~2``, ``~3``
        appended, and its verdict names the id as ``version_of``; ``replace`` forgets the earlier document and judges
        the new one in its place; ``refuse`` raises ``InputError``. The same text again is always known.
    path : path, optional
        A file for a durable store: it holds every verdict, and restores the window at a restart.
    keep_texts : bool
        Whether the store also keeps the texts of duplicates, as long as the window, and a digest of every text. Then a
        document can be released by its id, and distinguished from another document with the same id.
    sample : list of str or Statistics, optional
        For recipes whose features depend on a collection (idf, terms, I-Match, the Cornell sketch): texts from which
        the frequencies are taken. They stay fixed; pass the same texts at each start.
    now : callable
        The system clock, in seconds since 1970.
    force_domain : bool
        Whether to suppress the warning ``ForeignDocuments``, which is issued once when documents turn out to be unlike
        the training data of the classifier. The flow continues in both cases.
    **choices
        Fields of ``Recipe`` that override those of the recipe.

    Raises
    ------
    NeardupError
        If an option does not fit, or the store cannot be used.

    Examples
    --------
    >>> import neardup as nd
    >>> index = nd.Index("ddd", window="24h")
    >>> index.add(nd.Document("a", "Oil prices rose in early trading on Monday.", "2012-03-01T08:00")).kind
    'original'
    >>> index.add(nd.Document("b", "Oil prices rose in early trading Monday.", "2012-03-01T09:30")).of
    'a'
    """

    def __init__(
        self,
        recipe: AnyRecipe | None = None,
        *,
        classifier: ClassifierLike | None = None,
        window: str | int | timedelta | None = "24h",
        window_by: str = "time",
        against: str = "originals",
        versions: str = "keep",
        path: str | PathLike[str] | None = None,
        keep_texts: bool = False,
        sample: Sequence[str] | Statistics | None = None,
        now: Callable[[], float] = time.time,
        force_domain: bool = False,
        **choices: Any,
    ) -> None:
        self.recipe, self.classifier = resolve_recipe(recipe, classifier, choices)
        #: Whether the warning about foreign documents was issued or is suppressed.
        self._has_warned = self.classifier is None or force_domain or self.classifier.force_domain
        check_keys(self.recipe)
        length = WindowLength.parse(window, window_by)
        if against not in _AGAINST:
            raise RecipeError(f"against {against!r} is unknown; choose originals or everything")
        if versions not in VERSIONS:
            raise RecipeError(f"versions {quoted(versions)} is unknown; choose keep, replace or refuse")
        if force_domain and self.classifier is None:
            raise RecipeError("force_domain=True is for a classifier; give one with classifier=, or leave it out")
        if keep_texts and path is None:
            raise RecipeError("keep_texts is for an index with a store; give it a path")
        #: The statistics that the features depend on, if any.
        self.sample = statistics_for(self.recipe, sample)
        #: ``_write_lock`` guards every change and the store's connection; ``_memory_lock`` guards the state in memory.
        #: Queries take ``_memory_lock`` only, so they do not wait for the disk.
        self._write_lock, self._memory_lock = threading.RLock(), threading.RLock()
        self._keep_texts, self._versions = keep_texts, versions
        self.reports_late = True  #: whether the first late document of each source is logged
        #: The last number of each repeated id, and the sources of which a late document was reported.
        self._last_version: dict[str, int] = {}
        self._late_origins: set[str] = set()
        #: The pages of which all text is compared, since this index was opened.
        self.failed_pages = 0
        self._length, self._now, self._against_everything = length, now, against == "everything"
        self._needs_titles = self.classifier is not None and self.classifier.vector.needs_titles
        self.store: Store | None = None
        #: Whether the memory has to be read from the store again before it is used.
        self._is_stale = False
        #: The oldest segment of the window when expired documents were forgotten last.
        self._oldest_segment = 0
        if path is None:
            self._reset()
        else:
            settings = {"window": str(length), "window_by": window_by, "against": against}
            identity = StoreIdentity(self.recipe.fingerprint, settings, self.recipe.dependencies)
            self.store = Store(path, identity)
            try:
                self._reset()
                # For reports, which are given the file of a classifier instead.
                if self.classifier is None and self.store.state("recipe") != (text := self.recipe.to_toml()):
                    self.store.set_state("recipe", text)
            except BaseException:
                self.store.close()
                raise

    def _reset(self) -> None:
        """Start from the content of the store, or empty."""
        matcher = Matcher(
            self.recipe,
            self._length,
            self._now,
            against_everything=self._against_everything,
            statistics=self.sample,
            classifier=self.classifier,
        )
        if self.store is not None:
            _restore(matcher, self.store)
        self._matcher = matcher
        self._judged: Store | RecentVerdicts = self.store or RecentVerdicts(matcher.documents.serials)
        self._is_stale = False

    @contextlib.contextmanager
    def _memory(self) -> Iterator[Matcher]:
        """Give the state in memory, which no other thread uses meanwhile.

        Raises ``StoreError`` if it has to be read from the store, and cannot.
        """
        while True:
            if self._is_stale:
                with self._write_lock, self._memory_lock:
                    if self._is_stale:
                        self._reset()
            with self._memory_lock:
                if not self._is_stale:
                    yield self._matcher
                    return

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Matcher]:
        """Give the state in memory for a change, of which the disk is the first part; other threads wait.

        If the change fails, memory follows the disk: the documents of the change leave it. What an interruption left
        half done, or what the disk has if nobody can say, is read from the store before it is used again.
        """
        with self._write_lock:
            if self._is_stale:
                with self._memory_lock:
                    self._reset()
            matcher = self._matcher
            first, before = self._judged.next_serial, matcher.state
            try:
                yield matcher
            except BaseException as error:
                with self._memory_lock:
                    if self.store is not None and not (isinstance(error, Exception) and self.store.is_certain):
                        self._is_stale = True
                    elif self._judged.next_serial == first:
                        matcher.withdraw(first, before)
                raise

    def add(self, document: Document) -> Verdict:
        """Judge a document and enter it; with a store, the verdict is on disk when this returns.

        The same id with the same text is known: its verdict is that of the first time, with ``known`` set. A document
        older than the window is compared by its exact text with all documents that have verdicts, and never entered.

        Raises
        ------
        InputError
            If its id belongs to another text, and ``versions`` is ``refuse``.
        StoreError
            If the verdict cannot be written; then nothing has changed, and the document may be added again.
        """
        return self.add_many([document])[0]

    def add_many(self, documents: Iterable[Document]) -> list[Verdict]:
        """Judge documents in order, as ``add`` does one by one; a store writes them in batches.

        After an error, the verdicts of the batches before are valid and stored: see ``verdict_of``.
        """
        verdicts: list[Verdict] = []
        for batch in batch_documents(documents):
            with self._write_lock:
                verdicts += self._judge(batch)
        return verdicts

    def _judge(self, documents: Sequence[Document]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        while len(verdicts) < len(documents):
            identified, replacing = self._identify(documents[len(verdicts) :])
            self._add([arrival for arrival, is_known in identified if not is_known])
            for arrival, is_known in identified:
                verdicts.append(arrival.verdict._replace(known=True) if is_known else arrival.verdict)
            if isinstance(self._judged, RecentVerdicts):
                self._judged.renew([arrival.id for arrival, is_known in identified if is_known])
            self._forget_expired()
            if replacing is not None:
                verdicts.append(self.replace(replacing))
        if self.reports_late:
            self._warn_of_late(documents, verdicts)
        return verdicts

    def _identify(self, documents: Sequence[Document]) -> tuple[list[tuple[Arrival, bool]], Document | None]:
        """Find out which documents are known, and which are versions of others.

        Returns the arrivals, each with whether it is known, up to the first document that replaces another, and that
        document. A known one is the arrival of the first time, from the store or from the same batch.
        """
        stored = self._judged.judged_documents(list({document.id: None for document in documents}))
        batch = dict[str, Arrival]()
        identified = list[tuple[Arrival, bool]]()
        for document in documents:
            arrival = Arrival.of(document)
            arrival.digest = text_digest(document.text)
            earlier = batch.get(document.id) or stored.get(document.id)
            if earlier is not None and self._digest_of(earlier) != arrival.digest:
                if self._versions == "replace":
                    return identified, document
                earlier = self._version(arrival, batch)
            identified.append((earlier or arrival, earlier is not None))
            if earlier is None:
                batch[arrival.id] = arrival
        return identified, None

    def _digest_of(self, arrival: Arrival) -> bytes:
        """Return the digest of the text of a document, empty if it is unknown."""
        if arrival.digest:
            return arrival.digest
        text = self.text_of(arrival.id)
        return b"" if text is None else text_digest(text)

    def _version(self, arrival: Arrival, batch: Mapping[str, Arrival]) -> Arrival | None:
        """Return the version of a document that has this text, None if the arrival is a new version, and name it so."""
        name = arrival.id
        if self._versions == "refuse":
            raise InputError(
                f"id {quoted(name)} already has a verdict on another text; give each document its own id, name another "
                "store, or let versions be kept or replaced"
            )
        for other in batch.values():
            if other.version_of == name and other.digest == arrival.digest:
                return other
        found = self._judged.version(name, arrival.digest)
        if found is None:
            arrival.id, arrival.version_of = self._free_version(name, batch), name
        return found

    def _free_version(self, name: str, batch: Mapping[str, Arrival]) -> str:
        """Return the id of a new version of a document."""
        number = self._last_version.get(name, 1) + 1
        while (found := f"{name}~{number}") in batch or self._judged.judged_ids([found]):
            number += 1
        if len(self._last_version) > _MAX_NUMBERED:
            self._last_version.clear()
        self._last_version[name] = number
        return found

    def _add(self, arrivals: Sequence[Arrival], removed: Arrival | None = None) -> None:
        """Judge new documents, enter them and store them."""
        if not arrivals:
            return
        with self._changing() as matcher:
            with self._memory_lock:
                failed = matcher.judge(arrivals, self._judged.next_serial)
                self._compare_late(arrivals, "" if removed is None else removed.id)
            # Without the lock, so that queries are answered while the disk works.
            self._record(arrivals, removed=removed)
        with self._memory_lock:
            matcher.expire()
        self._warn_of_failed_pages(arrivals, failed)
        self._warn_of_foreign()

    def _record(
        self, arrivals: Sequence[Arrival], *, removed: Arrival | None = None, released_by: str | None = None
    ) -> None:
        """Record documents and their verdicts, with a store on disk."""
        if self.store is not None:
            for arrival in arrivals:
                is_kept = arrival.is_held or self._keep_texts
                arrival.text = arrival.text if is_kept else None
                arrival.title = arrival.title if is_kept and self._needs_titles else ""
        state = {"clock": json.dumps(self._matcher.as_dict())} if self.store is not None else None
        self._judged.record(arrivals, state, removed=removed, released_by=released_by)

    def _forget_expired(self) -> None:
        """Forget what was kept of documents that have left the window."""
        oldest = self._matcher.clock.oldest_segment
        if oldest == self._oldest_segment:
            return
        first = self._matcher.documents.first
        # Texts that stay on disk longer change no result.
        with contextlib.suppress(StoreError):
            self._judged.forget(self._judged.next_serial if first is None else first, oldest)
            self._oldest_segment = oldest

    def _compare_late(self, arrivals: Sequence[Arrival], replaced: str = "") -> None:
        """Compare documents that are older than the window by their texts with all documents that have verdicts.

        ``replaced`` is the id of the document that makes room for the only arrival, which repeats neither it nor what
        repeats it.
        """
        if not any(arrival.verdict.flag == "late" for arrival in arrivals):
            return
        by_digest = dict[bytes, Verdict]()
        for arrival in arrivals:
            verdict, digest, size = arrival.verdict, arrival.digest, arrival.size
            if verdict.flag == "late" and not verdict.is_duplicate:
                stored = self._judged.first_equal(digest, replaced)
                equal = [] if stored is None or (replaced and stored.verdict.of == replaced) else [stored.verdict]
                equal += [by_digest[digest]] if digest in by_digest else []
                # An original before a duplicate, which names its own original.
                first = min(equal, key=lambda one: one.is_duplicate, default=None)
                if first is not None and not first.is_duplicate:
                    verdict = verdict._replace(kind="exact", of=first.id, similarity=1.0, counts=(size, size, size))
                elif first is not None:
                    verdict = first._replace(
                        id=arrival.id, time=verdict.time, flag="late", version_of=arrival.version_of, known=False
                    )
                arrival.verdict = verdict
            if digest not in by_digest or by_digest[digest].is_duplicate > verdict.is_duplicate:
                by_digest[digest] = verdict

    def _warn_of_late(self, documents: Sequence[Document], verdicts: Sequence[Verdict]) -> None:
        """Warn once for each source of documents that are older than the window."""
        for document, verdict in zip(documents, verdicts, strict=True):
            if verdict.flag == "late" and not verdict.known and document.origin not in self._late_origins:
                if len(self._late_origins) > _MAX_NUMBERED:
                    self._late_origins.clear()
                self._late_origins.add(document.origin)
                source = f" of {quoted(document.origin)}" if document.origin else ""
                _log.warning(
                    "document %s%s is older than the window of %s; such documents are compared by their exact text "
                    "only, and counted as late",
                    quoted(document.id),
                    source,
                    self._length,
                )

    def _warn_of_failed_pages(self, arrivals: Sequence[Arrival], failed: Mapping[int, str]) -> None:
        """Count and name pages of which all text is compared."""
        self.failed_pages += len(failed)
        for at, reason in failed.items():
            name = arrivals[at].id
            _log.warning("page without its main content: %s: %s; all of its text is compared", name, reason)

    def _warn_of_foreign(self) -> None:
        """Warn once of documents unlike the training data; stopping the flow would lose more than it saves."""
        if self._has_warned or self.classifier is None:
            return
        if complaint := self.classifier.domain_error(self._matcher.domain_counts):
            self._has_warned = True
            message = f"{complaint}; train one on labels of such documents, or silence this with "
            warnings.warn(message + option("--force-domain", "force_domain=True"), ForeignDocuments, stacklevel=4)

    def check(self, documents: Iterable[Document]) -> list[Verdict]:
        """Return the verdict that each document would get if it were added next; nothing is entered."""
        verdicts: list[Verdict] = []
        for batch in batch_documents(documents):
            arrivals = list(map(Arrival.of, batch))
            with self._memory() as matcher:
                matcher.check(arrivals)
            if late := [arrival for arrival in arrivals if arrival.verdict.flag == "late"]:
                with self._write_lock:
                    for arrival in late:
                        arrival.digest = text_digest(arrival.text or "")
                        # Each as the next one, so they do not know of each other.
                        self._compare_late([arrival])
            verdicts += [arrival.verdict for arrival in arrivals]
        return verdicts

    def query(self, document: Document | str, k: int | None = None) -> list[Similar]:
        """Return the documents in the window that a text matches, the most similar first; nothing is entered.

        A text without features matches nothing; in a flow that is not an error.

        Parameters
        ----------
        document : Document or str
            The text; title and timestamp matter only to classifiers that compare them.
        k : int, optional
            Return the k nearest by the first measure instead, whatever their similarity.
        """
        if k is not None and k < 1:
            raise RecipeError(f"k {k} is below 1; ask for one document at least")
        query = Arrival.of(Document("query", document) if isinstance(document, str) else document)
        with self._memory() as matcher:
            found = matcher.matches(query) if k is None else matcher.nearest(query)
        return [Similar(name, score) for name, score in found[:k]]

    def remove(self, name: str) -> None:
        """Remove a document from the window, so that nothing matches it any more; its verdict stays.

        Raises
        ------
        UnknownDocument
            If the window does not hold it.
        """
        with self._changing() as matcher, self._memory_lock:
            if name not in matcher.documents.serials:
                raise UnknownDocument(f"the window holds no document with the id {name!r}")
            if self.store is not None:
                self.store.delete_text(matcher.documents.serials[name])
            matcher.remove(name)

    def forget(self, name: str) -> None:
        """Forget a document: it leaves the window, its verdict and text are deleted, and its id may be used again.

        Verdicts of other documents that name it stay.

        Raises
        ------
        UnknownDocument
            If it has no verdict.
        StoreError
            If the store cannot be written; then nothing has changed.
        """
        with self._changing() as matcher, self._memory_lock:
            found = self._judged.find(name, text=False)
            if found is None:
                raise UnknownDocument(f"no document with the id {name!r} has a verdict")
            self._judged.record([], removed=found)
            matcher.remove(name)

    def replace(self, document: Document) -> Verdict:
        """Forget the document with this id, and judge and enter the new one; a store does both or neither.

        Raises
        ------
        UnknownDocument
            If no document has the id.
        StoreError
            If the store cannot be written; then nothing has changed.
        """
        arrival = Arrival.of(document)
        arrival.digest = text_digest(document.text)
        with self._write_lock, self._memory() as matcher:
            found = self._judged.find(document.id, text=False)
            if found is None:
                raise UnknownDocument(f"no document with the id {document.id!r} has a verdict, so none can be replaced")
            try:
                # It is not compared with what it replaces.
                matcher.remove(document.id)
                self._add([arrival], removed=found)
            except BaseException:
                self._is_stale = self.store is not None
                raise
            self._forget_expired()
            return arrival.verdict

    def release(self, document: Document | str, by: str = "") -> Verdict:
        """Release a duplicate: it becomes an original, and enters the window at the current time.

        Parameters
        ----------
        document : Document or str
            Its id; or, if the index does not keep its text, the document with text (and title, for classifiers that
            compare titles). An index that compares with originals keeps no text of duplicates.
        by : str
            Name of the person who releases it, for the store.

        Raises
        ------
        UnknownDocument
            If it has no verdict, or is not a duplicate.
        InputError
            If its text is neither passed nor kept.
        StoreError
            If the store cannot be written; then nothing has changed.
        """
        name = document if isinstance(document, str) else document.id
        with self._changing() as matcher, self._memory_lock:
            found = self._judged.find(name, text=False)
            if found is None or not found.verdict.is_duplicate:
                raise UnknownDocument(f"no document with the id {name!r} was stopped, so there is none to release")
            text, title = self._kept_text(name) if isinstance(document, str) else (document.text, document.title)
            if text is None:
                raise InputError(
                    f"the text of {name!r} is not kept; release it with its text: index.release(nd.Document(id, text))"
                )
            arrival = Arrival(name, text, title, found.origin, digest=text_digest(text))
            matcher.admit(arrival, self._judged.next_serial, found.verdict)
            self._record([arrival], removed=found, released_by=by)
            matcher.keep(arrival)
            return arrival.verdict

    def _kept_text(self, name: str) -> tuple[str | None, str]:
        """Return the text and the title of a document, None if its text is not kept."""
        documents = self._matcher.documents
        serial = documents.serials.get(name)
        if self.store is None:
            record = None if serial is None else documents.record(serial)
            return (None, "") if record is None else (record.text, record.title)
        stored = None if serial is None else self.store.find(name)
        if stored is not None:
            return stored.text, stored.title
        return self.store.stopped_text(name) or (None, "")

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, or None; without a store, verdicts expire with the window."""
        with self._write_lock:
            found = self._judged.find(name, text=False)
            return None if found is None else found.verdict

    def text_of(self, name: str) -> str | None:
        """Return the text of a document in the window, or None; only stores and second steps keep texts."""
        with self._write_lock, self._memory() as matcher:
            return self._kept_text(name)[0] if name in matcher.documents.serials else None

    @property
    def versions(self) -> str:
        """What happens to a document whose id belongs to another text."""
        return self._versions

    @property
    def length(self) -> WindowLength:
        """The window."""
        return self._length

    @property
    def statistics(self) -> IndexStatistics:
        """Counts and sizes."""
        with self._write_lock, self._memory() as matcher:
            counts = dict(self._judged.counts)
            return IndexStatistics(
                documents=counts.pop("arrived"),
                **counts,
                window_documents=len(matcher.documents),
                bytes=matcher.state.window.bytes,
                segments=matcher.state.window.segments,
                clock=matcher.clock.seconds,
                domain_counts=matcher.domain_counts,
            )

    def close(self) -> None:
        """Close the store, if there is one."""
        with self._write_lock, self._memory_lock:
            if self.store is not None:
                self.store.close()

    def __len__(self) -> int:
        with self._memory() as matcher:
            return len(matcher.documents)

    def __contains__(self, name: object) -> bool:
        with self._memory() as matcher:
            return name in matcher.documents.serials

    def __iter__(self) -> Iterator[str]:
        with self._memory() as matcher:
            return iter(matcher.documents)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Index of {len(self):,} documents, {self.recipe.in_words()}, window {self._length}>"


def _restore(matcher: Matcher, store: Store) -> None:
    """Bring a matcher into the state of a store."""
    state = store.state("clock")
    if state is None and not store.next_serial:
        return
    try:
        matcher.restore(_stored_numbers(json.loads(state or "")))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        # What a version of neardup without checksums wrote, and something else changed.
        raise damage_error(store.path, "the state of its clock is not what was written") from None
    # One thread reads the store, others extract features, and this one enters the documents.
    matcher.enter(read_ahead(store.window_documents()), default_threads())


def _stored_numbers(value: Any) -> Any:
    """Return a stored state; raises ``ValueError`` if it contains anything but whole numbers that fit into 63 bits."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _stored_numbers(part)
    elif value is not None and (type(value) is not int or abs(value) >= 1 << 63):
        raise ValueError
    return value


def read_stored_recipe(reader: StoreReader) -> Recipe:
    """Return the recipe of a store.

    Raises ``StoreError`` if a classifier filled the store, or a version of neardup that stored no recipe.
    """
    recipe = reader.state("recipe")
    if recipe is None:
        raise StoreError(
            f"{reader.path} does not contain the recipe that it was filled by; name a classifier with "
            f"{option('--classifier FILE', 'classifier=')}, or open the store once more"
        )
    return parse(recipe, "the store's recipe")


def latest_time() -> float:
    """Return the last second of the year 9999: a system clock by which no document is in the future."""
    return 253_402_300_799.0


_WARM_UP_TEXTS = (
    "a document to warm up with, before the first one comes",
    "ένα κείμενο για να ζεσταθεί η μηχανή πρώτα",
)


def warm_up(index: Index) -> None:
    """Run some documents through a separate window, to load the kernels before the first real document."""
    recipe = None if index.classifier else index.recipe
    forced = index.classifier is not None
    with Index(
        recipe, classifier=index.classifier, sample=index.sample, now=latest_time, force_domain=forced
    ) as scratch:
        scratch.reports_late = False
        for at in range(300):
            # Non-Latin scripts use other kernels for longer texts, and so does expiry.
            words = [
                f"{word}{at * place % 17}"
                for place, word in enumerate(_WARM_UP_TEXTS[at % len(_WARM_UP_TEXTS)].split())
            ]
            scratch.add(Document(str(at), " ".join(words) if at else _WARM_UP_TEXTS[1] * 1500, 1800.0 * at))


def matching_pairs(
    documents: Mapping[int, Document],
    recipe: Recipe,
    classifier: Classifier | None = None,
    statistics: Statistics | None = None,
) -> set[tuple[int, int]] | None:
    """Return the keys of the documents that match each other, the smaller key first; texts are compared as they are.

    None if that depends on missing data: frequencies, or pages of which only the contents are known.
    """
    if (classifier is not None and recipe.content) or (recipe.needs_statistics and statistics is None):
        return None
    options: dict[str, Any] = {"window": None, "against": "everything", "sample": statistics}
    arrivals = [replace(document, id=str(key)) for key, document in documents.items()]
    # Selected documents say nothing about the flow that they come from.
    with Index(
        None if classifier else recipe.changed(content=""),
        classifier=classifier,
        force_domain=classifier is not None,
        **options,
    ) as index:
        index.add_many(arrivals)
        found = [(int(document.id), int(other.id)) for document in arrivals for other in index.query(document)]
    return {(min(pair), max(pair)) for pair in found if pair[0] != pair[1]}
