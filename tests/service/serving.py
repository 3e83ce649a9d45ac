"""A service in this process or in a separate one, and requests to it."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from commands import forked

from neardup.__main__ import main
from neardup.service.app import Service

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
EDITED = f"{FOX} today"
OTHER = "Oil prices rose in early trading on Monday after two ports in the north were closed by a storm"
WORDS = [f"{start}{end}" for start in ("oil", "port", "storm", "bank", "frost") for end in ("s", "ed", "ing", "ish")]

MAIN = "/v1/indexes/main"
DOCUMENTS = f"{MAIN}/documents"


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[httpx.Client]:
    """Yield a client of a service on a store in a folder."""
    with (
        Service(str(folder / "news.db"), **options) as service,
        httpx.Client(base_url=service.address, timeout=300) as client,
    ):
        yield client


def document(name: str, text: str = FOX, **more: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **more}


def enter(client: httpx.Client, *documents: dict[str, Any], **query: Any) -> httpx.Response:
    return client.post(DOCUMENTS, json={"documents": list(documents)}, params=query)


def problem(reply: httpx.Response, status: int, sentence: str = "") -> dict[str, Any]:
    """Check that an answer is a refusal with a sentence, and return it."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = reply.json()
    assert found["status"] == status
    assert found["type"] == "about:blank"
    assert sentence in found["detail"], found
    assert "Traceback" not in reply.text
    return found


def texts(count: int, seed: int = 0) -> list[str]:
    """Return texts of which every third or so repeats an earlier one, some with one more word."""
    dice = random.Random(seed)
    client: list[str] = []
    for _ in range(count):
        if client and dice.random() < 0.35:
            client.append(dice.choice(client) + dice.choice(["", " again"]))
        else:
            client.append(" ".join(dice.choice(WORDS) + str(dice.randrange(90)) for _ in range(30)))
    return client


class Process:
    """The command ``neardup serve`` in a process of its own, from its first line of output on."""

    def __init__(self, store: Path, *options: str) -> None:
        self._output = store.with_name("output")
        self._output.unlink(missing_ok=True)
        self._process = forked(_serve, str(self._output), ["--store", str(store), *options])
        self.pid = self._process.pid or 0
        until(lambda: self._output.exists() and "\n" in self._output.read_text())
        self.address = self._output.read_text().splitlines()[0]

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; return the exit code and everything that was printed."""
        os.kill(self.pid, number)
        self._process.join(120)
        return self._process.exitcode or 0, self._output.read_text()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.join()
        self._output.unlink()


def _serve(output: str, options: list[str]) -> None:
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    os.dup2(1, 2)
    sys.argv = ["neardup", "serve", "--port", "0", *options]
    # The fork inherited buffers of its own stdout and stderr.
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - as long as the process
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    main()


def until(holds: Any, seconds: float = 300) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
