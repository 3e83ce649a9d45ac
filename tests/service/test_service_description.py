"""The checked-in description of the service is current, and the service keeps to it, whatever is sent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from serving import served

FILE = Path(__file__).parent.parent.parent / "docs" / "openapi.json"
EXAMPLES = 200 if os.environ.get("NEARDUP_LONG") == "1" else 4


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("described")) as client:
        yield client


def test_the_checked_in_description_is_that_of_the_service(service: httpx.Client) -> None:
    # Titles and formats depend on versions of libraries; calls, statuses and names do not.
    current, checked_in = service.get("/openapi.json").json(), json.loads(FILE.read_text("utf-8"))
    assert current["info"] == checked_in["info"]
    assert current["paths"].keys() == checked_in["paths"].keys()
    for path, methods in checked_in["paths"].items():
        assert current["paths"][path].keys() == methods.keys()
        for method, call in methods.items():
            now = current["paths"][path][method]
            assert {one["name"] for one in now.get("parameters", [])} == {
                one["name"] for one in call.get("parameters", [])
            }
            assert now["responses"].keys() == call["responses"].keys()
            assert now["description"] == call["description"], "python scripts/openapi.py writes the file anew"
    schemas = checked_in["components"]["schemas"]
    assert {name: one.get("properties", {}).keys() for name, one in schemas.items()} == {
        name: one.get("properties", {}).keys() for name, one in current["components"]["schemas"].items()
    }


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
