"""The commands in the docs of the service work, and the example CMS saves new articles only."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from serving import EDITED, FOX, OTHER, served

from neardup.service.indexes import IndexOptions

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "service.md").read_text("utf-8")


def test_every_call_of_the_docs_is_answered(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    calls = [
        one
        for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
        for one in re.split(r"^(?=curl )", block, flags=re.MULTILINE)
        if one.startswith("curl ")
    ]
    assert len(calls) == 13
    with served(tmp_path, options=IndexOptions(recipe="ddd")) as client:
        address = str(client.base_url).rstrip("/")
        for call in calls:
            words = shlex.split(call.replace("http://127.0.0.1:8321", address))
            process = subprocess.run([*words, "-w", "\n%{http_code}"], capture_output=True, text=True, check=True)
            body, _, status = process.stdout.rpartition("\n")
            assert status in ("200", "201", "204"), (call, body)
            if call == calls[0]:
                verdict_kinds = [(one["id"], one["verdict"]["kind"]) for one in json.loads(body)["documents"]]
                assert verdict_kinds == [("wire-1", "original"), ("wire-2", "near")]


def test_the_example_saves_an_article_only_if_it_is_new(tmp_path: Path) -> None:
    database = tmp_path / "articles.db"
    with served(tmp_path) as service:
        command = [sys.executable, str(ROOT / "examples" / "cms" / "cms.py"), str(database), "--port", "0"]
        command += ["--service", str(service.base_url).rstrip("/")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            try:
                assert running.stdout is not None
                with httpx.Client(base_url=running.stdout.readline().strip(), timeout=60) as cms:
                    sent = [("a", FOX), ("b", EDITED), ("c", OTHER), ("a", FOX), ("a", OTHER)]
                    replies = [cms.post("/", json={"id": name, "text": text}) for name, text in sent]
                    assert [reply.status_code for reply in replies] == [201, 409, 201, 201, 422]
                    assert replies[1].json()["repeats"] == "a"
                    assert cms.post("/", content=b"{").status_code == 422
            finally:
                running.terminate()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT id, text FROM articles ORDER BY id").fetchall() == [("a", FOX), ("c", OTHER)]
