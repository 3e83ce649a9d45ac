"""The docs of the service: its checked-in description is current and kept, its commands and the example CMS work."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from serving import EDITED, FOX, OTHER, served

from neardup.service.indexes import IndexOptions

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "service.md").read_text("utf-8")
FILE = ROOT / "docs" / "openapi.json"
EXAMPLES = 200 if os.environ.get("NEARDUP_LONG") == "1" else 4


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
                with httpx.Client(base_url=running.stdout.readline().strip(), timeout=300) as cms:
                    sent = [("a", FOX), ("b", EDITED), ("c", OTHER), ("a", FOX), ("a", OTHER)]
                    replies = [cms.post("/", json={"id": name, "text": text}) for name, text in sent]
                    assert [reply.status_code for reply in replies] == [201, 409, 201, 200, 422]
                    assert replies[1].json()["repeats"] == "a"
                    assert cms.post("/", content=b"{").status_code == 422
            finally:
                running.terminate()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT id, text FROM articles ORDER BY id").fetchall() == [("a", FOX), ("c", OTHER)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("described")) as client:
        yield client


def test_the_checked_in_description_is_that_of_the_service(service: httpx.Client) -> None:
    def stable(description: dict[str, Any]) -> Any:
        """Titles and formats depend on versions of libraries; calls, statuses and names do not."""
        calls = {
            (path, method): (
                call["description"],
                {one["name"] for one in call.get("parameters", [])},
                call["responses"].keys(),
            )
            for path, methods in description["paths"].items()
            for method, call in methods.items()
        }
        schemas = description["components"]["schemas"]
        return description["info"], calls, {name: one.get("properties", {}).keys() for name, one in schemas.items()}

    checked_in = json.loads(FILE.read_text("utf-8"))
    assert stable(service.get("/openapi.json").json()) == stable(checked_in), "python scripts/openapi.py writes it anew"


def test_no_call_breaks_its_description(service: httpx.Client) -> None:
    """Examples, coverage cases and random cases of each call; one test, so that one process imports the library."""
    import schemathesis
    from schemathesis.checks import load_all_checks, not_a_server_error
    from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
    from schemathesis.specs.openapi import checks

    load_all_checks()
    promises = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    address = str(service.base_url).rstrip("/")

    def check(case: Any) -> None:
        case.call_and_validate(base_url=address, checks=promises)

    schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text("utf-8")))
    config = HypothesisTestConfig(
        schema.config,
        list(HypothesisTestMode),
        explicit_settings=settings(
            max_examples=EXAMPLES,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) == sum(map(len, json.loads(FILE.read_text("utf-8"))["paths"].values()))
    for operation in operations:
        create_test(operation=operation, test_func=check, config=config)()
