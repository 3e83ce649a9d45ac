"""Reading one item ahead in a second thread, while the caller works on the one before."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Give the items in order, each made while the one before is in use.

    Arrow and the codecs release the interpreter's lock, so reading and what is done with it overlap. At most
    two items are alive at a time; what an item raises is raised in its place.

    Parameters
    ----------
    items : iterator
        Used in one other thread only, and no longer once this generator is closed.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="neardup-read") as pool:
        coming: Future[list[T]] = pool.submit(_some, items)
        try:
            while item := coming.result():
                coming = pool.submit(_some, items)
                yield item[0]
        finally:
            wait([coming])


def _some(items: Iterator[T]) -> list[T]:
    """Return the next item in a list, which is empty at the end."""
    for item in items:
        return [item]
    return []
