"""How much room neardup takes when it is installed, alone and with each of its extras.

extras.py [--small]

neardup and what each extra asks for are installed into folders of their own, from the registry that pip is set up for.
Sizes are those of all files of the packages, not compiled; what neardup brings itself does not count for an extra.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from measuring import HERE, Section, note, run_sections, table

ROOT = HERE.parent
#: What users of an extra get by it; extras that only those need who work on neardup are not measured.
PURPOSES = {
    "report": "pages: `explore -o`, `--report`, `compare -o`, `audit --report`",
    "html": "`--html`: the main content of web pages",
    "watch": "`neardup watch`",
    "learn": "`neardup train`",
    "label": "`neardup label`, `audit --store`: pages in the browser",
    "serve": "`neardup serve`",
    "client": "`nd.Client`",
    "mcp": "`neardup mcp`",
    "hf": "inputs and outputs named `hf://...`, on the Hugging Face Hub",
    "spark": "`--engine spark`; needs a Java 17 or newer besides",
    "pandas": "pandas tables in and out",
    "sklearn": "features and sketches as steps of scikit-learn",
    "docs": "`make docs`",
}
_ALONE = "`dedup`, `pairs`, `neighbors`, `query`, `explain`, flows in Python"
_NAME = re.compile(r"[\w.-]+")


def installed(folder: Path, *wanted: str) -> dict[str, int]:
    """Install packages and all that they need into a folder, and return the bytes of each entry there."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-compile"]
    subprocess.run([*pip, "--target", str(folder), *wanted], check=True, stdout=subprocess.DEVNULL)
    return {
        entry.name: sum(file.lstat().st_size for file in [entry, *entry.rglob("*")] if file.is_file())
        for entry in folder.iterdir()
    }


def extras(args: argparse.Namespace) -> dict[str, Any]:
    """Return the packages and the size of neardup alone and of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {"": project["dependencies"]} | project["optional-dependencies"]
    rows, alone = [], set[str]()
    for name in ["", *(["client"] if args.small else PURPOSES)]:
        note(name or "neardup")
        with tempfile.TemporaryDirectory(prefix="neardup-extras-") as folder:
            sizes = installed(Path(folder), *(asked[name] if name else [str(ROOT)]))
        alone = alone or set(sizes)
        found = {package: size for package, size in sizes.items() if not name or package not in alone}
        brings = [_NAME.match(package)[0] for package in asked[name]]  # type: ignore[index]
        rows.append({"extra": name, "brings": brings, "bytes": sum(found.values())})
    return {"rows": rows}


def _table(results: dict[str, Any]) -> str:
    lines = []
    for row in results["rows"]:
        megabytes = f"{row['bytes'] / 1e6:.0f}"
        name, what, size = f"`{row['extra']}`", PURPOSES.get(row["extra"], ""), megabytes
        if not row["extra"]:
            name, what, size = "(none)", _ALONE, f"{megabytes} in all"
        lines.append([name, what, ", ".join(row["brings"]), size])
    return table(["extra", "what for", "brings", "more MB"], lines)


if __name__ == "__main__":
    run_sections(__doc__, {"extras": Section(extras, {"extras": _table})})
