"""The calls of the service on its indexes, and their answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from neardup.classifier.vector import NO_TIME, Records
from neardup.documents import corpus_of
from neardup.errors import ClosedStore, InputError, StoreError, option
from neardup.pipeline.explanation import explain as explain_texts
from neardup.pipeline.pipeline import run
from neardup.service import bodies
from neardup.service.guard import Limits
from neardup.service.indexes import Indexes, IndexOptions, NamedIndex
from neardup.service.metrics import Metrics
from neardup.service.refusals import Answer, Problem
from neardup.service.worker import JudgedResult, Worker, put_document
from neardup.stream.document import Document
from neardup.stream.window_step import Record
from neardup.times import TIME_FORMS, microseconds_of
from neardup.version import __version__

#: Bytes of an answer around its entries.
_FRAME_BYTES = 100
_ID_TAKEN = (
    "This id belongs to another text; take another id, or replace that document with PUT (Client.replace in Python)"
)

T = TypeVar("T")


class Reply(NamedTuple):
    """An answer: what becomes JSON, or an ``Answer``; its status; and what to do if it is too large."""

    content: Any
    status: int = 200
    way_out: str = f"start the service with a larger {option('--max-answer', 'max_answer')}"


def _document(name: str, body: bodies.DocumentText) -> Document:
    # 0 as well, because a program that has no date sends it.
    return Document(name, body.text, body.timestamp or None, title=body.title)


def _item(result: JudgedResult, *, evidence: bool) -> bodies.ItemAnswer:
    verdict = bodies.verdict_answer(result.verdict, evidence=evidence)
    return bodies.ItemAnswer(result.verdict.id, result.status, verdict, _ID_TAKEN if result.status == 409 else "")


def _reply_of(item: bodies.ItemAnswer, content: Any) -> Reply:
    """Return the answer about one document, which has its status."""
    if item.status >= 400:
        raise Problem(item.status, item.detail, id=item.id, verdict=item.verdict)
    return Reply(content, item.status)


class Calls:
    """The calls of a service on its indexes."""

    def __init__(self, indexes: Indexes, writer: Worker, checker: Worker, metrics: Metrics, limits: Limits) -> None:
        self._indexes, self._metrics, self._limits = indexes, metrics, limits
        self._writer, self._checker = writer, checker

    def _check_batch(self, documents: Sequence[bodies.DocumentBody]) -> None:
        if len(documents) > self._limits.max_batch:
            raise Problem(
                413, f"The batch has {len(documents):,} documents; send up to {self._limits.max_batch:,} at a time"
            )

    async def enter(self, name: str, body: bodies.DocumentsBody, query: bodies.EnterQuery, rights: str) -> Reply:
        """Judge documents in their order and enter them, or only check them.

        A verdict is on the disk before it is answered. A repeated id with the same text gets the stored verdict; with
        another text it is refused, and the stored verdict is returned. Each document has its own status; the status of
        a single document is also that of the answer.
        """
        self._check_batch(body.documents)
        is_entered = query.mode == "enter"
        if is_entered:
            check_may_write(rights)
        named = self._indexes.get(name)
        items: list[bodies.ItemAnswer | None] = []
        documents: list[Document] = []
        for given in body.documents:
            try:
                documents.append(_document(given.id, given))
                items.append(None)
            except InputError as error:
                items.append(bodies.ItemAnswer(given.id, 422, None, str(error)))
        worker = self._writer if is_entered else self._checker
        results = iter(await worker.judge(named, documents) if documents else [])
        answered = [item or _item(next(results), evidence=query.evidence) for item in items]
        if len(answered) == 1:
            return _reply_of(answered[0], bodies.DocumentsAnswer(answered))
        way_out = "send fewer documents at a time"
        if is_entered:
            way_out = f"the documents were entered: for their verdicts, send them again, but {way_out[5:]}"
        return Reply(bodies.DocumentsAnswer(answered), way_out=way_out)

    def document(self, name: str, id: str, query: bodies.EvidenceQuery) -> Reply:
        """Return a document and its verdict."""
        named = self._indexes.get(name)
        verdict = bodies.verdict_answer(named.verdict_of(id), evidence=query.evidence)
        way_out = f"read the store itself, or {Reply(None).way_out}"
        return Reply(bodies.DocumentAnswer(id, verdict, id in named.index, named.text_of(id)), way_out=way_out)

    async def replace(self, name: str, id: str, body: bodies.DocumentText, query: bodies.ReplaceQuery) -> Reply:
        """Enter a document under this id, in place of one with another text unless the query says otherwise."""
        named, document = self._indexes.get(name), _document(id, body)

        result = await self._writer.run(lambda: put_document(named, document, query.versions))
        item = _item(result, evidence=query.evidence)
        return _reply_of(item, item)

    async def forget(self, name: str, id: str) -> Reply:
        """Remove a document, its text and its verdict. Its id is free again."""
        named = self._indexes.get(name)
        named.verdict_of(id)
        await self._writer.run(lambda: named.index.forget(id))
        return Reply(None, 204)

    async def release(self, name: str, id: str, body: bodies.ReleaseBody, query: bodies.EvidenceQuery) -> Reply:
        """Release a stopped document: it is an original from now on, and its copies are stopped."""
        named = self._indexes.get(name)
        named.verdict_of(id)
        try:
            named.reader.stopped_document(id)
        except InputError as error:
            raise Problem(409, str(error), id=id) from None
        document = id if body.text is None else Document(id, body.text, title=body.title)
        verdict = await self._writer.run(lambda: named.index.release(document, body.by))
        return Reply(_item(JudgedResult(verdict, 200), evidence=query.evidence))

    async def query(self, name: str, body: bodies.QueryBody) -> Reply:
        """Return the documents in the window that a text matches, the most similar first; nothing is entered."""
        named, document = self._indexes.get(name), _document("query", body)
        k = None if body.k is None else int(body.k)
        # One query at a time, because many threads at the lock of the index would delay the writer.
        rows = await self._checker.run(lambda: named.index.query(document, k))
        similar = self._fitting(bodies.SimilarAnswer(row.id, row.similarity) for row in rows)
        return Reply(bodies.QueryAnswer(similar, len(similar) < len(rows)))

    def _fitting(self, entries: Iterable[T]) -> list[T]:
        """Return the first entries of an answer, as many as its limit of bytes allows, and at least one."""
        found, size = list[T](), _FRAME_BYTES
        for entry in entries:
            size += len(msgspec.json.encode(entry)) + 1
            if found and size > self._limits.max_answer:
                break
            found.append(entry)
        return found

    def _record(self, named: NamedIndex, side: bodies.Side) -> Record:
        if (side.text is None) == (side.id is None):
            raise Problem(422, "A side is a text or the id of a document: give one of the two")
        if side.id is None:
            document = Document("side", side.text or "", side.timestamp, title=side.title)
            moment = NO_TIME if document.microseconds is None else document.microseconds
            return Record(document.text, document.title, moment)
        named.verdict_of(side.id)
        record = named.record_of(side.id)
        if record is None:
            raise Problem(404, "The text of this document is no longer kept; give the text itself", id=side.id)
        return record

    def explain(self, body: bodies.ExplainBody) -> Reply:
        """Explain why two texts match or not: what they share, and what would change the verdict."""
        index = (named := self._indexes.get(body.index)).index
        left, right = (self._record(named, side) for side in (body.left, body.right))
        records = Records(
            [left.text, right.text], [left.title or None, right.title or None], np.array([left.time, right.time])
        )
        explanation = explain_texts(
            left.text, right.text, index.recipe, index.sample, classifier=index.classifier, records=records
        )
        return Reply(explanation.as_dict(), way_out="send shorter texts")

    def pairs(self, body: bodies.PairsBody) -> Reply:
        """Return the pairs of documents that match; nothing is entered.

        413 if the answer would be too large: with n equal documents it has n (n - 1) / 2 pairs.
        """
        self._check_batch(body.documents)
        index = self._indexes.get(body.index).index
        documents = [_document(item.id, item) for item in body.documents]
        if len({document.id for document in documents}) < len(documents):
            raise Problem(422, "Two documents have the same id; give each its own id")
        if not documents:
            return Reply(bodies.PairsAnswer([]))
        columns = {name: [getattr(document, name) for document in documents] for name in ("id", "text", "title")}
        times = pa.array([document.microseconds for document in documents], pa.timestamp("us", "UTC"))
        corpus = corpus_of(columns | {"time": times}, text_column="text", id_column="id")
        classifier = index.classifier and replace(index.classifier, title_column="title", time_column="time")
        recipe = index.recipe.changed(keep="first")
        result = run(corpus, recipe, classifier=classifier, pairs_per_document=None, threads=1)
        # The ids repeat in each pair, so the answer may be a thousand times larger than the request.
        pairs = self._fitting(bodies.PairAnswer(pair.left, pair.right, pair.similarity) for pair in result.pairs)
        if len(pairs) < len(result.pairs):
            raise Problem(
                413,
                f"The answer, with {len(result.pairs):,} pairs, is larger than {self._limits.max_answer:,} bytes; "
                "send fewer documents, or shorter ids",
            )
        return Reply(bodies.PairsAnswer(pairs))

    def stopped(self, name: str, query: bodies.StoppedQuery) -> Reply:
        """Return the stopped documents with their verdicts, in the order of their arrival."""
        start = float("-inf")
        if query.since is not None:
            moment = microseconds_of(query.since)
            if moment is None:
                raise Problem(422, f"since {query.since[:60]!r} is not a time; give {TIME_FORMS}")
            start = moment / 1e6
        reader, after, limit = self._indexes.get(name).reader, int(query.cursor or -1), int(query.limit)
        rows = list(islice(reader.stopped_documents(start, after=after), limit))
        items = self._fitting(bodies.stopped_item(row.verdict, evidence=query.evidence) for row in rows)
        # A page ends where the answer would be too large; the next one continues there.
        is_last = len(items) == len(rows) < limit
        return Reply(bodies.StoppedAnswer(items, None if is_last else str(rows[len(items) - 1].serial)))

    def index(self, name: str) -> Reply:
        """Return the options and the counts of an index."""
        return Reply(self._indexes.get(name).as_dict())

    async def make_index(self, name: str, body: bodies.IndexBody) -> Reply:
        """Make an index; documents of different indexes are never compared."""
        if body.recipe is not None and body.classifier is not None:
            raise Problem(422, "A recipe and a classifier both decide what matches; give one of the two")
        options = IndexOptions(**msgspec.structs.asdict(body))
        named, is_new = await self._writer.run(lambda: self._indexes.get_or_make(name, options))
        return Reply(named.as_dict(), 201 if is_new else 200)

    async def delete_index(self, name: str) -> Reply:
        """Remove an index and all its documents."""
        await self._writer.run(lambda: self._indexes.delete(name))
        return Reply(None, 204)

    def info(self) -> Reply:
        """Return the version, the indexes and the limits."""
        found = []
        for named in self._indexes:
            # Another request may delete it at the same time.
            with suppress(ClosedStore):
                found.append(named.as_dict())
        return Reply({"name": "neardup", "version": __version__, "indexes": found, "limits": asdict(self._limits)})

    async def healthy(self) -> Reply:
        """Confirm that the service answers."""
        return Reply({"ok": True})

    async def ready(self) -> Reply:
        """Return whether documents can be entered."""
        if self._writer.failure is not None:
            # The disk may have room again.
            store = next(iter(self._indexes)).store
            with suppress(StoreError):
                await self._writer.run(lambda: store.set_state("probe", str(round(time.time()))))
        if self._writer.failure is not None:
            raise self._writer.failure
        if not self._writer.accepts_work:
            raise Problem(503, "The service is stopping")
        return Reply({"ready": True})

    def metrics(self) -> Reply:
        """Return the metrics in the text format of Prometheus."""
        return Reply(Answer(self._metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8"))


def check_may_write(rights: str) -> None:
    """Raise ``Problem`` if a caller may only read."""
    if rights != "write":
        raise Problem(403, "This token may only read; use one that may write")
