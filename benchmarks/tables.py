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
    """Return the line below a table: command, commit, machine, package versions and date."""
    line = f"`{results['command']}` of commit {results['commit']}"
    if "machine" not in results:
        return f"{line}."
    environment = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    parts = [f"{environment['cpu']}, {environment['cores']} cores", f"Python {environment['python']}", versions]
    return f"{line}: {', '.join([*parts, environment['date']])}."


def load_tables() -> dict[str, str]:
    """Return all tables of the results by name, each with its provenance line."""
    tables = {}
    for path in sorted(RESULTS.glob("*.json")):
        results = json.loads(path.read_text("utf-8"))
        for name, lines in results["tables"].items():
            tables[name] = "\n".join([*lines, "", provenance_line(results)])
    return tables


def update_tables(text: str, tables: dict[str, str]) -> str:
    """Return the text of a page with each table replaced by its current version."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{tables[found['name']]}\n\n{found[3]}", text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(update_tables(page.read_text("utf-8"), load_tables()), "utf-8")
