"""Write the OpenAPI description of the service to docs/openapi.json, or to a given file.

python scripts/openapi.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from neardup.service.app import Service


def describe_service() -> str:
    """Return the OpenAPI description that a service gives of itself."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(f"{folder}/news.db") as service,
        urlopen(f"{service.address}/openapi.json", timeout=60) as response,  # noqa: S310 - the service of this process
    ):
        description = json.load(response)
    return json.dumps(description, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(*sys.argv[1:2] or ["docs/openapi.json"]).write_text(describe_service(), "utf-8")
