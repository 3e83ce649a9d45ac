"""Insert the tables of the results into pages, between <!-- table NAME --> and <!-- end -->.

tables.py PAGE.md ...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
_BLOCK = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def provenance_line(results: dict[str, Any]) -> str:
    """Return the line below a table: command, commit, machine, versions, date."""
    line = f"`{results['command']}` of commit {results['commit']}"
    if "machine" not in results:
        return f"{line}."
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return f"{line}: {where['cpu']}, {where['cores']} cores, Python {where['python']}, {versions}, {where['date']}."


def known_tables() -> dict[str, str]:
    """Return all tables by name, each with its provenance line."""
    known = {}
    for path in sorted(RESULTS.glob("*.json")):
        results = json.loads(path.read_text("utf-8"))
        for name, lines in results["tables"].items():
            known[name] = "\n".join([*lines, "", provenance_line(results)])
    return known


def update_tables(text: str, known: dict[str, str]) -> str:
    """Return the text of a page with the current tables."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{known[found['name']]}\n\n{found[3]}", text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(update_tables(page.read_text("utf-8"), known_tables()), "utf-8")
