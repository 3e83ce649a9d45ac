"""The description of the service is checked in, and the service does what it says, whatever is sent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from serving import served

FILE = Path(__file__).parent.parent.parent / "docs" / "openapi.json"
EXAMPLES = 200 if os.environ.get("NEARDUP_LONG") == "1" else 8


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("described")) as made:
        yield made


def test_the_file_is_what_the_service_says(service: httpx.Client) -> None:
    # Which version of a library writes a title or a format is not ours; calls, statuses and names are.
    said, kept = service.get("/openapi.json").json(), json.loads(FILE.read_text("utf-8"))
    assert said["info"] == kept["info"]
    assert said["paths"].keys() == kept["paths"].keys()
    for path, methods in kept["paths"].items():
        assert said["paths"][path].keys() == methods.keys()
        for method, call in methods.items():
            now = said["paths"][path][method]
            assert {one["name"] for one in now.get("parameters", [])} == {
                one["name"] for one in call.get("parameters", [])
            }
            assert now["responses"].keys() == call["responses"].keys()
            assert now["description"] == call["description"], "python scripts/openapi.py writes the file anew"
    schemas = kept["components"]["schemas"]
    assert {name: one.get("properties", {}).keys() for name, one in schemas.items()} == {
        name: one.get("properties", {}).keys() for name, one in said["components"]["schemas"].items()
    }


schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text("utf-8")))


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_no_call_breaks_its_description(case: Any, service: httpx.Client) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as known

    case.call_and_validate(
        base_url=str(service.base_url).rstrip("/"),
        checks=[
            not_a_server_error,
            known.status_code_conformance,
            known.content_type_conformance,
            known.response_schema_conformance,
        ],
    )
