"""Texts that are made to keep a service busy: it goes on answering."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest
from serving import DOCUMENTS, FOX, Process, document

#: Far above the time of an answer on a busy machine, and far below the time of work that takes quadratic time.
LONGEST_PAUSE_S = 2.0

HOSTILE = {
    "marks": "e" + "\u0301\u0323" * 400_000,
    "joiners": "a" + "\u200d" * 1_000_000,
    "dots": "a.b." * 250_000,
    "no spaces": "x" * 5_000_000,
    "angles": "<" * 200_000,
    "line feeds": "\n" * 1_000_000,
    "ligatures": "\ufdfa" * 200_000,
}


@pytest.mark.parametrize("options", [(), ("--content", "tags"), ("--second-step", "edit >= 0.9")], ids=" ".join)
def test_a_hostile_text_does_not_stop_the_service(tmp_path: Path, options: tuple[str, ...]) -> None:
    with Process(tmp_path / "news.db", *options) as service:
        with httpx.Client(base_url=service.address, timeout=300) as client:
            client.post(DOCUMENTS, json={"documents": [document("first", FOX)]}).raise_for_status()
        pauses: list[float] = []
        ended = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.address, timeout=300) as client:
                while not ended.is_set():
                    begin = time.monotonic()
                    client.get("/healthz").raise_for_status()
                    pauses.append(time.monotonic() - begin)
                    time.sleep(0.01)

        asking = threading.Thread(target=ask)
        asking.start()
        longest = {}
        try:
            with httpx.Client(base_url=service.address, timeout=300) as client:
                for name, text in HOSTILE.items():
                    for query in ({"mode": "check"}, {}, {"mode": "check"}):
                        begin, first = time.monotonic(), len(pauses)
                        posted = document(name, f"{FOX} {text} {FOX}")
                        reply = client.post(DOCUMENTS, json={"documents": [posted]}, params=query)
                        assert reply.status_code in (200, 201, 413, 422), reply.text
                        took, pause = time.monotonic() - begin, max(pauses[first:], default=0.0)
                        longest[name, str(query), reply.status_code] = round(took, 2), round(pause, 2)
        finally:
            ended.set()
            asking.join()
        assert max(pause for _, pause in longest.values()) < LONGEST_PAUSE_S, longest
