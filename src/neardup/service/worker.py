"""The two workers of a service, one that writes and one that checks: what arrives together is judged as one batch."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from neardup.errors import StoreError
from neardup.service.guard import Problem
from neardup.service.indexes import NamedIndex
from neardup.stream.document import Document, Verdict
from neardup.stream.store import Given, text_digest

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


@dataclass(slots=True)
class _Task:
    """Documents to enter in an index, or work of another kind, and where the result goes."""

    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    index: NamedIndex | None = None
    documents: Sequence[Document] = ()
    work: Callable[[], Any] | None = None
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        """Hand over the result, to whoever still waits for it."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


#: Judges documents for an index, and says of each what became of it.
Judge = Callable[[NamedIndex, Sequence[Document]], list[Entered]]


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
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closed = False
        #: Why the last batch could not be stored; empty if it could.
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name=judge.__name__, daemon=True)
        self._thread.start()

    @property
    def works(self) -> bool:
        """Whether it can take on anything."""
        return self._thread.is_alive() and not self._closed

    async def judge(self, index: NamedIndex, documents: Sequence[Document]) -> list[Entered]:
        """Judge documents; where they are entered, their verdicts are on the disk when this returns.

        Raises
        ------
        StoreError
            If the store cannot be written or read; asking again is safe.
        """
        found: list[Entered] = await self._do(index=index, documents=documents)
        return found

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do something else that changes an index, when its turn comes."""
        return await self._do(work=work)

    async def _do(self, **what: Any) -> Any:
        if not self.works:
            raise Problem(503, "The service is stopping; ask again when it is back")
        loop = asyncio.get_running_loop()
        task = _Task(loop.create_future(), loop, **what)
        self._tasks.put(task)
        return await task.future

    def close(self) -> None:
        """Finish what was asked, and end."""
        self._closed = True
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            batch, documents, last = [task], len(task.documents), False
            while documents < _AT_ONCE:
                try:
                    following = self._tasks.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    last = True
                    break
                batch.append(following)
                documents += len(following.documents)
            self._process(batch)
            if last:
                return

    def _process(self, batch: list[_Task]) -> None:
        """Do the tasks in their order, those in a row that enter documents into one index at once."""
        begin = 0
        while begin < len(batch):
            end = begin + 1
            if batch[begin].work is None:
                while end < len(batch) and batch[end].work is None and batch[end].index is batch[begin].index:
                    end += 1
            self._finish(batch[begin:end])
            begin = end

    def _finish(self, tasks: list[_Task]) -> None:
        first = tasks[0]
        try:
            if first.work is not None:
                first.result = first.work()
            elif first.index is not None:
                found = iter(self._judge(first.index, [document for task in tasks for document in task.documents]))
                for task in tasks:
                    task.result = [next(found) for _ in task.documents]
            self.failure = ""
        except BaseException as error:  # whatever it is, who asked is told
            for task in tasks:
                task.error = error
            if isinstance(error, StoreError):
                self.failure = str(error)

        def resolve() -> None:
            for task in tasks:
                task.resolve()

        first.loop.call_soon_threadsafe(resolve)


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
    known = named.store.given([document.id for document in documents])
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


def _is_same(named: NamedIndex, document: Document, given: Given) -> bool:
    """Return whether a document has the text that was given under its id before, as far as that is known."""
    if given.digest:
        return text_digest(document.text) == given.digest
    # It came before the store kept digests.
    text = named.index.text_of(document.id)
    return text is None or text == document.text
