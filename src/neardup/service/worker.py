"""The two workers of a service, one that writes and one that checks: what arrives together is judged as one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from neardup.errors import StoreError
from neardup.service.guard import Problem
from neardup.service.indexes import NamedIndex
from neardup.stream.document import Document, Verdict
from neardup.stream.store import JudgedDocument, text_digest

#: Documents that are judged and stored at once, if so many wait.
_AT_ONCE = 1024


class Entered(NamedTuple):
    """What became of a document that was to be entered.

    Attributes
    ----------
    verdict : Verdict
        What is stored of its id.
    status : int
        201 where it was entered now, 200 where it had been before, 409 where the id belongs to another text.
    """

    verdict: Verdict
    status: int


#: Judges documents for an index, and says of each what became of it.
Judge = Callable[[NamedIndex, Sequence[Document]], list[Entered]]


@dataclass(slots=True)
class _Task:
    """Documents to judge for an index, or work of another kind, and where the result goes."""

    future: asyncio.Future[Any]
    index: NamedIndex | None = None
    documents: Sequence[Document] = ()
    work: Callable[[], Any] | None = None


class Worker:
    """A thread that judges documents, in the order in which it is asked.

    While it judges some, more come; they are its next batch.

    Parameters
    ----------
    judge : callable
        ``entered``, which stores them in one transaction, or ``checked``.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._tasks: deque[_Task] = deque()
        self._thread = ThreadPoolExecutor(1, judge.__name__)
        self._turns: asyncio.Task[None] | None = None
        #: Whether it can take on anything.
        self.works = True
        #: Why the last batch could not be stored; empty if it could.
        self.failure = ""

    async def judge(self, index: NamedIndex, documents: Sequence[Document]) -> list[Entered]:
        """Judge documents; where they are entered, their verdicts are on the disk when this returns.

        Raises
        ------
        StoreError
            If the store cannot be written or read; asking again is safe.
        """
        found: list[Entered] = await self._done(index=index, documents=documents)
        return found

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do something else that changes an index, when its turn comes."""
        return await self._done(work=work)

    def close(self) -> None:
        """Finish what was begun, and end."""
        self.works = False
        self._thread.shutdown()

    async def _done(self, **what: Any) -> Any:
        if not self.works:
            raise Problem(503, "The service is stopping; ask again when it is back")
        loop = asyncio.get_running_loop()
        task = _Task(loop.create_future(), **what)
        self._tasks.append(task)
        if self._turns is None:
            self._turns = loop.create_task(self._take_turns(loop))
        return await task.future

    async def _take_turns(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._tasks:
            # What has arrived by now is read first, and comes along.
            await asyncio.sleep(0)
            batch, documents = [self._tasks.popleft()], 0
            # Those in a row that are for one index.
            while self._tasks and batch[-1].work is self._tasks[0].work is None:
                documents += len(batch[-1].documents)
                if self._tasks[0].index is not batch[0].index or documents >= _AT_ONCE:
                    break
                batch.append(self._tasks.popleft())
            found: list[Any] | Exception
            try:
                found = await loop.run_in_executor(self._thread, self._results, batch)
                self.failure = ""
            except Exception as error:
                found = error
                self.failure = str(error) if isinstance(error, StoreError) else self.failure
            for at, task in enumerate(batch):
                # Whoever asked may have hung up.
                if not task.future.done():
                    if isinstance(found, Exception):
                        task.future.set_exception(found)
                    else:
                        task.future.set_result(found[at])
        self._turns = None

    def _results(self, batch: Sequence[_Task]) -> list[Any]:
        first = batch[0]
        if first.work is not None or first.index is None:
            return [first.work and first.work()]
        found = iter(self._judge(first.index, [document for task in batch for document in task.documents]))
        return [[next(found) for _ in task.documents] for task in batch]


def checked(named: NamedIndex, documents: Sequence[Document]) -> list[Entered]:
    """Say what would be said of each document if it were the next one; nothing is entered."""
    return [Entered(verdict, 200) for verdict in named.index.check(documents)]


def entered(named: NamedIndex, documents: Sequence[Document]) -> list[Entered]:
    """Enter documents in their order, but those whose ids are known already.

    Parameters
    ----------
    named : NamedIndex
        Where.
    documents : sequence of Document
        They may repeat ids.
    """
    known = named.store.judged_documents([document.id for document in documents])
    new: dict[str, Document] = {}
    for document in documents:
        if document.id not in known and document.id not in new:
            new[document.id] = document
    verdicts = {verdict.id: verdict for verdict in named.index.add_many(new.values())}
    found = []
    for document in documents:
        if document.id in known:
            given = known[document.id]
            found.append(Entered(given.verdict, 200 if _is_same(named, document, given) else 409))
        elif new[document.id] is document:
            found.append(Entered(verdicts[document.id], 201))
        else:
            found.append(Entered(verdicts[document.id], 200 if new[document.id].text == document.text else 409))
    return found


def _is_same(named: NamedIndex, document: Document, given: JudgedDocument) -> bool:
    """Return whether a document has the text that was given under its id before, as far as that is known."""
    if given.digest:
        return text_digest(document.text) == given.digest
    # It came before the store kept digests.
    text = named.index.text_of(document.id)
    return text is None or text == document.text
