"""Whether machine code was made or fetched while something ran: its time is not the work's."""

from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.event import install_recorder


@contextmanager
def compilations() -> Iterator[list]:
    """Give a list that gets an entry for each kernel that is compiled or loaded inside the block, in any thread."""
    with install_recorder("numba:compile") as recorder:
        yield recorder.buffer
