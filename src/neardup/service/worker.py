"""The two workers of a service, one to write and one to check; documents that arrive together form one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from neardup.errors import ClosedStore, StoreError
from neardup.service.indexes import NamedIndex
from neardup.service.refusals import Problem
from neardup.stream.document import Arrival, Document, Verdict
from neardup.stream.store import text_digest

#: The most waiting documents that are judged and stored at once.
_BATCH_DOCUMENTS = 1024


class JudgedResult(NamedTuple):
    """The result of judging one document."""

    verdict: Verdict  #: the stored verdict of its id
    status: int  #: 201 entered now, 200 entered before, 409 the id belongs to another text


#: Judges documents for an index, with one result for each.
Judge = Callable[[NamedIndex, Sequence[Document]], list[JudgedResult]]


@dataclass(slots=True)
class _Task:
    """Documents to judge for an index, or other work, and the future of the result."""

    future: asyncio.Future[Any]
    index: NamedIndex | None = None
    documents: Sequence[Document] = ()
    work: Callable[[], Any] | None = None


class Worker:
    """A thread that judges documents in the order of arrival; those that arrive while it judges form its next batch.

    ``judge`` is ``enter_documents``, which stores them in one transaction, or ``check_documents``.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._tasks: deque[_Task] = deque()
        self._thread = ThreadPoolExecutor(1, judge.__name__)
        self._loop_task: asyncio.Task[None] | None = None
        #: Whether it accepts work; False while it stops.
        self.accepts_work = True
        #: Why the last batch could not be stored; None if it could.
        self.failure: StoreError | None = None

    async def judge(self, index: NamedIndex, documents: Sequence[Document]) -> list[JudgedResult]:
        """Judge documents; if they are entered, their verdicts are on the disk when this returns.

        Raises ``StoreError`` if the store cannot be written or read; asking again is safe.
        """
        results: list[JudgedResult] = await self._submit(index=index, documents=documents)
        return results

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run other work that changes an index, in the order of arrival."""
        return await self._submit(work=work)

    def close(self) -> None:
        """Finish the current batch, and stop."""
        self.accepts_work = False
        self._thread.shutdown()

    async def _submit(self, **fields: Any) -> Any:
        if not self.accepts_work:
            raise Problem(503, "The service is stopping; ask again when it is back")
        loop = asyncio.get_running_loop()
        task = _Task(loop.create_future(), **fields)
        self._tasks.append(task)
        if self._loop_task is None:
            self._loop_task = loop.create_task(self._run_batches(loop))
        return await task.future

    async def _run_batches(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._tasks:
            # Requests that have already arrived are read first, and join the batch.
            await asyncio.sleep(0)
            batch, documents = [self._tasks.popleft()], 0
            # A batch is for one index.
            while self._tasks and batch[-1].work is self._tasks[0].work is None:
                documents += len(batch[-1].documents)
                if self._tasks[0].index is not batch[0].index or documents >= _BATCH_DOCUMENTS:
                    break
                batch.append(self._tasks.popleft())
            results: list[Any] | Exception
            try:
                results = await loop.run_in_executor(self._thread, self._results, batch)
                self.failure = None
            except Exception as error:
                results = error
                # An index that was deleted says nothing about the disk.
                if isinstance(error, StoreError) and not isinstance(error, ClosedStore):
                    self.failure = error
            for at, task in enumerate(batch):
                # The caller may have disconnected.
                if not task.future.done():
                    if isinstance(results, Exception):
                        task.future.set_exception(results)
                    else:
                        task.future.set_result(results[at])
        self._loop_task = None

    def _results(self, batch: Sequence[_Task]) -> list[Any]:
        first = batch[0]
        if first.work is not None or first.index is None:
            return [first.work and first.work()]
        results = iter(self._judge(first.index, [document for task in batch for document in task.documents]))
        return [[next(results) for _ in task.documents] for task in batch]


def check_documents(named: NamedIndex, documents: Sequence[Document]) -> list[JudgedResult]:
    """Return the verdict that each document would get as the next one; nothing is entered."""
    return [JudgedResult(verdict, 200) for verdict in named.index.check(documents)]


def enter_documents(named: NamedIndex, documents: Sequence[Document]) -> list[JudgedResult]:
    """Enter documents in their order, except those whose ids are known already; ids may be repeated."""
    stored_documents = named.store.judged_documents([document.id for document in documents])
    new: dict[str, Document] = {}
    for document in documents:
        if document.id not in stored_documents:
            new.setdefault(document.id, document)
    verdicts = {verdict.id: verdict for verdict in named.index.add_many(new.values())}
    named.count_entered(verdicts.values())
    results = []
    for document in documents:
        if document.id in stored_documents:
            stored = stored_documents[document.id]
            results.append(JudgedResult(stored.verdict, 200 if _is_same(named, document, stored) else 409))
        else:
            first = new[document.id]
            status = 201 if first is document else 200 if first.text == document.text else 409
            results.append(JudgedResult(verdicts[document.id], status))
    return results


def put_document(named: NamedIndex, document: Document, versions: str) -> JudgedResult:
    """Enter a document; ``versions`` says what happens if its id belongs to another text: replace, keep or refuse."""
    (result,) = enter_documents(named, [document])
    if result.status != 409 or versions == "refuse":
        return result
    verdict = named.index.replace(document) if versions == "replace" else named.index.add(document)
    if not verdict.known:
        named.count_entered([verdict])
    return JudgedResult(verdict, 200 if verdict.known else 201)


def _is_same(named: NamedIndex, document: Document, stored: Arrival) -> bool:
    """Return whether a document has the text that was entered under its id; True if that text is no longer known."""
    if stored.digest:
        return text_digest(document.text) == stored.digest
    # It was entered before the store kept digests.
    text = named.index.text_of(document.id)
    return text is None or text == document.text
