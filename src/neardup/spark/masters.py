"""Addresses of clusters: what may be one, whether it is this machine, and whether anybody answers there."""

from __future__ import annotations

import asyncio
import re

from neardup.errors import RecipeError
from neardup.spark.faults import first_line

_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|spark://\S+:\d+|yarn|k8s://\S+")
_LOOPBACK = re.compile(r"local\b.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
#: Seconds that a master has to answer in.
_PATIENCE = 10


def check_address(master: str) -> None:
    """Refuse what is no address of a cluster.

    Raises
    ------
    RecipeError
        In one sentence.
    """
    if not _MASTER.fullmatch(master):
        raise RecipeError(
            f"master {master!r} is no address of a cluster: give local[N], spark://HOST:PORT, yarn or k8s://..."
        )


def is_here(master: str) -> bool:
    """Return whether all workers of a master are on this machine."""
    return _LOOPBACK.fullmatch(master) is not None


def check_master(master: str) -> None:
    """Refuse a standalone cluster whose master cannot be reached; Spark itself tries for a minute.

    Raises
    ------
    RecipeError
        In one sentence.
    """
    if not master.startswith("spark://"):
        return
    error: Exception | None = None
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            asyncio.run(asyncio.wait_for(_connected(host.strip("[]"), int(port)), _PATIENCE))
        except (OSError, ValueError) as caught:
            error = caught
        else:
            return
    raise silent(master, first_line(str(error)) or f"nothing within {_PATIENCE} s")


async def _connected(host: str, port: int) -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


def silent(master: str, why: str) -> RecipeError:
    """Return what is said of a master that does not answer."""
    return RecipeError(
        f"no master of Spark answers at {master} ({why}): check the address, and that it runs (scripts/cluster start "
        "runs one here)"
    )
