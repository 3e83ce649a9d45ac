"""Write the description of the service to docs/openapi.json, or to the file that is named.

python scripts/openapi.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from neardup.service.app import Service


def text() -> str:
    """Return what a service says of itself."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(f"{folder}/news.db") as service,
        urlopen(f"{service.address}/openapi.json", timeout=60) as reply,  # noqa: S310 - it is ours
    ):
        found = json.load(reply)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(*sys.argv[1:2] or ["docs/openapi.json"]).write_text(text(), "utf-8")
