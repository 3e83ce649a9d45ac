"""The index of a flow: it takes documents and returns verdicts, each on disk before it is returned."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier, ClassifierLike, classifier_recipe, resolve_classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.vector import NO_TIME
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
from neardup.kernels import Integers
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe.named import apply_flow_choices
from neardup.recipe.recipe import parse
from neardup.runtime import default_threads
from neardup.search.matches import Similar
from neardup.search.window import EventTime, FlowClock, WindowLength, check_keys
from neardup.stream.document import Document, Verdict
from neardup.stream.matcher import Matcher, RestoredDocument, WindowFindings
from neardup.stream.store import (
    JudgedDocument,
    Store,
    StoredDocument,
    StoreIdentity,
    StoreReader,
    damage_error,
    text_digest,
)
from neardup.stream.window_documents import RecentVerdicts, WindowDocuments
from neardup.stream.window_step import Record

_log = logging.getLogger("neardup.stream")
_SECOND = 1_000_000
#: The last microseconds of the year 9999 would round up to the year 10000, which no datetime can hold.
_LATEST = math.nextafter(253402300800.0, 0)
#: Documents and characters per batch.
_BATCH_DOCUMENTS = 1024
_BATCH_CHARACTERS = 1 << 23
#: The most ids whose last version is remembered, and the most sources; a full memory is emptied.
_MAX_NUMBERED = 10_000
#: Stands for the verdict on a document that is earlier in the same batch.
_PENDING = Verdict("", "original", None, None, 0.0, "", None)


def make_verdicts(
    names: Sequence[str],
    event_times: Sequence[EventTime],
    findings: WindowFindings,
    matcher: Matcher,
    name_of: Callable[[int], str | None],
) -> list[Verdict]:
    """Return the verdicts on documents by their ids; ``name_of`` returns the id of a document by its serial."""
    at = {place: k for k, place in enumerate(findings.places.tolist())}
    matches = findings.matches
    of, similarity, counts, equal = (column.tolist() for column in matches[:4])
    verdicts = []
    for i, (name, event_time, size) in enumerate(zip(names, event_times, findings.sizes.tolist(), strict=True)):
        time = min(event_time.microseconds / _SECOND, _LATEST)
        flag, k = event_time.flag if size else "undecidable", at.get(i)
        if k is None:
            verdicts.append(Verdict(name, "original", None, None, time, flag, None))
            continue
        kind, evidence = "exact" if equal[k] else "near", matcher.contributions(matches, k)
        verdicts.append(Verdict(name, kind, name_of(of[k]), similarity[k], time, flag, tuple(counts[k]), *evidence))
    return verdicts


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


def make_record(text: str, title: str, seconds: float | None) -> Record:
    """Return the record of a document for a second step; ``seconds`` since 1970, None if its time is unknown."""
    # Through seconds, so that a restart, which reads seconds, changes nothing.
    return Record(text, title, NO_TIME if seconds is None else round(seconds * _SECOND))


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


class Arrival(NamedTuple):
    """A document on its way into an index."""

    document: Document
    digest: bytes  #: of its text
    id: str  #: its id; a version of another document has ``~2``, ``~3`` at its end
    version_of: str | None = None  #: the id that it was given, if that belongs to another text
    verdict: Verdict | None = None  #: the verdict, if the index has it already


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
        self._next_serial = 0
        self._documents = WindowDocuments()
        #: Unused with a store, which has all verdicts.
        self._verdicts = RecentVerdicts(self._documents.serials)
        self._matcher = Matcher(
            self.recipe,
            FlowClock(self._length, self._now),
            against_everything=self._against_everything,
            statistics=self.sample,
            record_of=self._documents.record,
            classifier=self.classifier,
        )
        if self.store is not None:
            self._restore(self.store)

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
            arrivals, replacing = self._identify(documents[len(verdicts) :])
            new = iter(self._add([arrival for arrival in arrivals if arrival.verdict is None]))
            judged: dict[str, Verdict] = {}
            for arrival in arrivals:
                if arrival.verdict is None:
                    judged[arrival.id] = next(new)
                    verdicts.append(judged[arrival.id])
                else:
                    if self.store is None and arrival.id not in judged:
                        self._verdicts.renew(arrival.id)
                    verdicts.append(judged.get(arrival.id, arrival.verdict)._replace(known=True))
            if replacing is not None:
                verdicts.append(self.replace(replacing))
        if self.reports_late:
            self._warn_of_late(documents, verdicts)
        return verdicts

    def _identify(self, documents: Sequence[Document]) -> tuple[list[Arrival], Document | None]:
        """Find out which documents are known, and which are versions of others.

        Returns the arrivals up to the first document that replaces another, and that document.
        """
        names = [document.id for document in documents]
        known = self._judged.judged_documents(sorted(self._judged.judged_ids(names)))
        batch = dict[str, Arrival]()
        arrivals = list[Arrival]()
        for document in documents:
            digest = text_digest(document.text)
            earlier, stored = batch.get(document.id), known.get(document.id)
            if earlier is not None:
                arrival = self._again(document, digest, earlier.digest, None, batch)
            elif stored is not None:
                arrival = self._again(document, digest, self._digest_of(stored), stored.verdict, batch)
            else:
                arrival = Arrival(document, digest, document.id)
            if arrival is None:
                return arrivals, document
            arrivals.append(arrival)
            batch.setdefault(arrival.id, arrival)
        return arrivals, None

    @property
    def _judged(self) -> Store | RecentVerdicts:
        return self.store or self._verdicts

    def _digest_of(self, stored: JudgedDocument) -> bytes:
        """Return the digest of the text of a judged document, empty if it is unknown."""
        if stored.digest:
            return stored.digest
        text = self.text_of(stored.verdict.id)
        return b"" if text is None else text_digest(text)

    def _again(
        self, document: Document, digest: bytes, earlier: bytes, verdict: Verdict | None, batch: Mapping[str, Arrival]
    ) -> Arrival | None:
        """Return the arrival of a document whose id came before with a text of the digest ``earlier``.

        None if it replaces the earlier one. ``verdict``: the stored verdict; None if the id is in the same batch.
        """
        name = document.id
        if digest == earlier:
            return Arrival(document, digest, name, verdict=verdict or _PENDING)
        if self._versions == "replace":
            return None
        if self._versions == "refuse":
            raise InputError(
                f"id {quoted(name)} already has a verdict on another text; give each document its own id, or choose "
                f"{option('--versions')} keep or replace"
            )
        is_version = re.compile(re.escape(name) + "~[0-9]+").fullmatch
        for other in batch.values():
            if other.version_of == name and other.digest == digest:
                return Arrival(document, digest, other.id, verdict=other.verdict or _PENDING)
        for stored in self._judged.equal_texts(digest):
            if is_version(stored.verdict.id):
                return Arrival(document, digest, stored.verdict.id, verdict=stored.verdict)
        return Arrival(document, digest, self._free_version(name, batch), name)

    def _free_version(self, name: str, batch: Mapping[str, Arrival]) -> str:
        """Return the id of a new version of a document."""
        number = self._last_version.get(name, 1) + 1
        while (found := f"{name}~{number}") in batch or self._judged.judged_ids([found]):
            number += 1
        if len(self._last_version) > _MAX_NUMBERED:
            self._last_version.clear()
        self._last_version[name] = number
        return found

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

    def _warn_of_failed_pages(self, names: Sequence[str], failed: Mapping[int, str]) -> None:
        """Count and name pages of which all text is compared."""
        self.failed_pages += len(failed)
        for place, reason in failed.items():
            _log.warning("page without its main content: %s: %s; all of its text is compared", names[place], reason)

    def check(self, documents: Iterable[Document]) -> list[Verdict]:
        """Return the verdict that each document would get if it were added next; nothing is entered."""
        verdicts: list[Verdict] = []
        for batch in batch_documents(documents):
            with self._memory_lock:
                found, sizes = self._check(batch)
            if any(verdict.flag == "late" for verdict in found):
                # Each as the next one, so they do not know of each other.
                with self._write_lock:
                    for i, document in enumerate(batch):
                        digests = [text_digest(document.text)]
                        found[i : i + 1] = self._compare_late(found[i : i + 1], digests, sizes[i : i + 1])
            verdicts += found
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
        query = Document("query", document) if isinstance(document, str) else document
        with self._memory_lock:
            if k is None:
                clock, own = self._matcher.clock.seconds, query.microseconds
                record = make_record(query.text, query.title, clock if own is None else own / _SECOND)
                serials, scores = self._matcher.matches(record)
            else:
                serials, scores = self._matcher.nearest(query.text)
            names = map(self._documents.name, serials.tolist())
            named = (
                Similar(name, score) for name, score in zip(names, scores.tolist(), strict=True) if name is not None
            )
            return list(islice(named, k))

    def remove(self, name: str) -> None:
        """Remove a document from the window, so that nothing matches it any more; its verdict stays.

        Raises
        ------
        UnknownDocument
            If the window does not hold it.
        """
        with self._write_lock, self._memory_lock:
            if name not in self._documents.serials:
                raise UnknownDocument(f"the window holds no document with the id {name!r}")
            if self.store is not None:
                self.store.delete_text(self._documents.serials[name])
            self._remove_from_window(name)

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
        with self._write_lock, self._memory_lock:
            verdict = self.verdict_of(name)
            if verdict is None:
                raise UnknownDocument(f"no document with the id {name!r} has a verdict")
            if self.store is not None:
                state = self._matcher.state(excluded=self._documents.serials.get(name))
                self.store.record([], {"clock": json.dumps(state)}, removed=self.store.find(name, text=False))
            else:
                self._verdicts.forget(verdict)
            self._remove_from_window(name)

    def replace(self, document: Document) -> Verdict:
        """Forget the document with this id, and judge and enter the new one; a store does both or neither.

        Raises
        ------
        UnknownDocument
            If no document has the id.
        StoreError
            If the store cannot be written; then nothing has changed.
        """
        with self._write_lock, self._memory_lock:
            verdict = self.verdict_of(document.id)
            if verdict is None:
                raise UnknownDocument(f"no document with the id {document.id!r} has a verdict, so none can be replaced")
            removed = None if self.store is None else self.store.find(document.id, text=False)
            try:
                self._remove_from_window(document.id)
                if self.store is None:
                    self._verdicts.forget(verdict)
                return self._add([Arrival(document, text_digest(document.text), document.id)], removed)[0]
            except BaseException:
                if self.store is not None:
                    self._reset()
                raise

    def _remove_from_window(self, name: str) -> None:
        serial = self._documents.serials.get(name)
        if serial is not None:
            self._documents.remove([serial])
            self._matcher.remove(serial)

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
        with self._write_lock, self._memory_lock:
            verdict = self.verdict_of(name)
            if verdict is None or not verdict.is_duplicate:
                raise UnknownDocument(f"no document with the id {name!r} was stopped, so there is none to release")
            text, title = self._kept_text(name) if isinstance(document, str) else (document.text, document.title)
            if text is None:
                raise InputError(
                    f"the text of {name!r} is not kept; release it with its text: index.release(nd.Document(id, text))"
                )
            return self._release(verdict, text, title, by)

    def _kept_text(self, name: str) -> tuple[str | None, str]:
        """Return the text and the title of a document, None if its text is not kept."""
        serial = self._documents.serials.get(name)
        if self.store is None:
            record = None if serial is None else self._documents.record(serial)
            return (None, "") if record is None else (record.text, record.title)
        stored = None if serial is None else self.store.find(name)
        if stored is not None:
            return stored.text, stored.title
        return self.store.stopped_text(name) or (None, "")

    def _release(self, stopped: Verdict, text: str, title: str, by: str) -> Verdict:
        serial, before, event_time = self._next_serial, self._matcher.snapshot(), self._matcher.clock.next_event_time()
        seconds = self._matcher.clock.seconds
        time = stopped.time if seconds is None else min(seconds, _LATEST)
        verdict = Verdict(stopped.id, "original", None, None, time, stopped.flag, None)
        record = make_record(text, title, time)
        try:
            self._matcher.admit(record, event_time, serial)
            if self.store is not None:
                title = title if self._needs_titles else ""
                digest = text_digest(text)
                duplicate = self.store.find(verdict.id, text=False)
                origin = "" if duplicate is None else duplicate.origin
                row = StoredDocument(
                    serial, verdict, origin, event_time.time, event_time.expiry, True, text, title, digest
                )
                state = {"clock": json.dumps(self._matcher.state())}
                self.store.record([row], state, removed=duplicate, released_by=by)
        except BaseException:
            self._matcher.undo(serial, before)
            raise
        self._next_serial += 1
        self._remove_from_window(verdict.id)
        self._documents.add(serial, verdict.id, record if self._matcher.needs_records else None)
        if self.store is None:
            self._verdicts.replace(stopped, verdict)
        return verdict

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, or None; without a store, verdicts expire with the window."""
        with self._write_lock:
            return (self.store or self._verdicts).verdict_of(name)

    def text_of(self, name: str) -> str | None:
        """Return the text of a document in the window, or None; only stores and second steps keep texts."""
        with self._write_lock:
            return self._kept_text(name)[0] if name in self._documents.serials else None

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
        with self._write_lock, self._memory_lock:
            window = self._matcher.window
            counts = dict((self.store or self._verdicts).counts)
            return IndexStatistics(
                documents=counts.pop("arrived"),
                **counts,
                window_documents=len(self._documents),
                bytes=window.bytes,
                segments=window.segments,
                clock=self._matcher.clock.seconds,
                domain_counts=self._matcher.domain_counts,
            )

    def close(self) -> None:
        """Close the store, if there is one."""
        with self._write_lock, self._memory_lock:
            if self.store is not None:
                self.store.close()

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, name: object) -> bool:
        return name in self._documents.serials

    def __iter__(self) -> Iterator[str]:
        with self._memory_lock:
            return iter(self._documents)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Index of {len(self):,} documents, {self.recipe.in_words()}, window {self._matcher.clock.length}>"

    def _add(self, arrivals: Sequence[Arrival], removed: StoredDocument | None = None) -> list[Verdict]:
        """Judge new documents, and enter them."""
        if not arrivals:
            return []
        documents, names = [arrival.document for arrival in arrivals], [arrival.id for arrival in arrivals]
        with self._memory_lock:
            first, before, interrupted = self._next_serial, self._matcher.snapshot(), None
        try:
            with self._memory_lock:
                event_times = [self._matcher.clock.advance(document.microseconds) for document in documents]
                texts = pa.array([document.text for document in documents], pa.large_string())
                records: list[Record] = []
                if self._matcher.needs_records:
                    records = [
                        make_record(document.text, document.title, event_time.microseconds / _SECOND)
                        for document, event_time in zip(documents, event_times, strict=True)
                    ]
                findings = self._matcher.add(texts, records, event_times, first)
                self._warn_of_failed_pages(names, findings.failed)
                verdicts = make_verdicts(
                    names,
                    event_times,
                    findings,
                    self._matcher,
                    lambda number: names[number - first] if number >= first else self._documents.name(number),
                )
                verdicts = self._compare_late(verdicts, [arrival.digest for arrival in arrivals], findings.sizes)
                verdicts = [
                    verdict if arrival.version_of is None else verdict._replace(version_of=arrival.version_of)
                    for verdict, arrival in zip(verdicts, arrivals, strict=True)
                ]
                entered = findings.entered.tolist()
                state = "" if self.store is None else json.dumps(self._matcher.state())
                self._next_serial += len(documents)
                for i, has_entered in enumerate(entered):
                    if has_entered:
                        self._documents.add(first + i, names[i], records[i] if records else None)
            if self.store is not None:
                # Without the lock, so that queries are answered while the disk works.
                rows = self._stored_rows(first, arrivals, event_times, entered, verdicts)
                interrupted = self._record(self.store, rows, state, removed)
        except BaseException:
            with self._memory_lock:
                self._next_serial = first
                self._documents.remove(range(first, first + len(documents)))
                self._matcher.undo(first, before)
            raise
        with self._memory_lock:
            self._expire()
        if self.store is None:
            digests = [arrival.digest for arrival in arrivals]
            segments = [event_time.segment for event_time in event_times]
            self._verdicts.add(verdicts, digests, segments, event_times[-1].oldest)
        if interrupted is not None:
            raise interrupted
        self._warn_of_foreign()
        return verdicts

    def _compare_late(self, verdicts: Sequence[Verdict], digests: Sequence[bytes], sizes: Integers) -> list[Verdict]:
        """Compare documents that are older than the window by their texts with all documents that have verdicts."""
        found = list[Verdict]()
        by_digest = dict[bytes, Verdict]()
        has_late = any(verdict.flag == "late" for verdict in verdicts)
        for verdict, digest, size in zip(verdicts, digests, sizes.tolist(), strict=True):
            new = verdict
            if verdict.flag == "late" and not verdict.is_duplicate:
                equal = [stored.verdict for stored in self._judged.equal_texts(digest)]
                equal += [by_digest[digest]] if digest in by_digest else []
                # An original before a duplicate, which names its own original.
                first = min(equal, key=lambda one: one.is_duplicate, default=None)
                if first is not None and not first.is_duplicate:
                    new = verdict._replace(kind="exact", of=first.id, similarity=1.0, counts=(size, size, size))
                elif first is not None:
                    new = first._replace(
                        id=verdict.id, time=verdict.time, flag=verdict.flag, version_of=None, known=False
                    )
            found.append(new)
            if has_late and (digest not in by_digest or by_digest[digest].is_duplicate > new.is_duplicate):
                by_digest[digest] = new
        return found

    def _warn_of_foreign(self) -> None:
        """Warn once of documents unlike the training data; stopping the flow would lose more than it saves."""
        if self._has_warned or self.classifier is None:
            return
        if complaint := self.classifier.domain_error(self._matcher.domain_counts):
            self._has_warned = True
            message = f"{complaint}; train one on labels of such documents, or silence this with "
            warnings.warn(message + option("--force-domain", "force_domain=True"), ForeignDocuments, stacklevel=4)

    def _check(self, documents: Sequence[Document]) -> tuple[list[Verdict], Integers]:
        matcher, clock, before = self._matcher, self._matcher.clock, self._matcher.snapshot()
        event_times, records = list[EventTime](), list[Record]()
        try:
            # Each document is checked as the next one, so the clock goes back after it.
            for document in documents:
                event_times.append(clock.advance(document.microseconds))
                seconds = event_times[-1].microseconds / _SECOND
                records.append(make_record(document.text, document.title, seconds))
                if not event_times[-1].confirms:
                    clock.restore(before.clock)
                    continue
                # The document that it confirms would enter with its own time, and takes part in the check.
                texts = pa.array([document.text], pa.large_string())
                findings = matcher.add(
                    texts, records[-1:] if matcher.needs_records else [], event_times[-1:], self._next_serial
                )
                verdict = make_verdicts([document.id], event_times[-1:], findings, matcher, self._documents.name)
                matcher.undo(self._next_serial, before)
                earlier, sizes = self._check(documents[: len(event_times) - 1])
                later, later_sizes = self._check(documents[len(event_times) :])
                return [*earlier, *verdict, *later], np.concatenate([sizes, findings.sizes, later_sizes])
        finally:
            clock.restore(before.clock)
        if not documents:
            return [], np.empty(0, np.int64)
        texts = pa.array([document.text for document in documents], pa.large_string())
        findings, names = matcher.check(texts, records, event_times), [document.id for document in documents]
        return make_verdicts(names, event_times, findings, matcher, self._documents.name), findings.sizes

    def _stored_rows(
        self,
        first: int,
        arrivals: Sequence[Arrival],
        event_times: Sequence[EventTime],
        entered: Sequence[bool],
        verdicts: Sequence[Verdict],
    ) -> list[StoredDocument]:
        columns = zip(arrivals, event_times, entered, verdicts, strict=True)
        return [
            StoredDocument(
                number,
                verdict,
                arrival.document.origin,
                event_time.time,
                event_time.expiry,
                has_entered,
                arrival.document.text if has_entered or self._keep_texts else None,
                arrival.document.title if self._needs_titles and (has_entered or self._keep_texts) else "",
                arrival.digest,
            )
            for number, (arrival, event_time, has_entered, verdict) in enumerate(columns, first)
        ]

    def _record(
        self, store: Store, rows: Sequence[StoredDocument], state: str, removed: StoredDocument | None
    ) -> BaseException | None:
        """Write documents and verdicts; return an interruption that came when they were already on disk."""
        try:
            store.record(rows, {"clock": state}, removed=removed)
        except BaseException as error:
            if store.next_serial == rows[0].serial:
                raise
            return error
        return None

    def _restore(self, store: Store) -> None:
        self._next_serial = store.next_serial
        state = store.state("clock")
        if state is None and not self._next_serial:
            return
        try:
            self._matcher.restore(_stored_numbers(json.loads(state or "")))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            # What a version of neardup without checksums wrote, and something else changed.
            raise damage_error(store.path, "the state of its clock is not what was written") from None
        # One thread reads the store, others extract features, and this one enters the documents.
        self._matcher.enter(read_ahead(map(self._restored_documents, store.window_documents())), default_threads())
        self._expire()

    def _restored_documents(self, rows: Sequence[StoredDocument]) -> list[RestoredDocument]:
        for row in rows:
            record = make_record(row.text or "", row.title, row.verdict.time)
            self._documents.add(row.serial, row.id, record if self._matcher.needs_records else None)
        return [RestoredDocument(row.serial, row.text or "", row.time, row.expiry) for row in rows]

    def _expire(self) -> None:
        expired = self._matcher.expire()
        if not len(expired):
            return
        self._documents.remove(expired.tolist())
        if self.store is not None:
            first = self._documents.first
            # Texts that stay on disk longer change no result.
            with contextlib.suppress(StoreError):
                self.store.forget(self._next_serial if first is None else first)


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
