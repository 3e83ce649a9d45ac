"""Installed size of neardup, alone and with each of its extras.

extras.py [--small]

neardup and the requirements of each extra are installed into separate folders, from the registry of pip.
A size is that of all files, without bytecode; packages that neardup itself requires do not count for an extra.
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

from measuring import HERE, Section, markdown_table, print_progress, run_sections

ROOT = HERE.parent
#: The purpose of each extra for users; extras for development are not measured.
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
_CORE_PURPOSE = "`dedup`, `pairs`, `neighbors`, `query`, `explain`, flows in Python"
_NAME = re.compile(r"[\w.-]+")


def install_into(folder: Path, *requirements: str) -> dict[str, int]:
    """Install packages with their dependencies into a folder, and return the bytes of each entry of the folder."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-compile"]
    subprocess.run([*pip, "--target", str(folder), *requirements], check=True, stdout=subprocess.DEVNULL)
    return {
        entry.name: sum(file.lstat().st_size for file in [entry, *entry.rglob("*")] if file.is_file())
        for entry in folder.iterdir()
    }


def measure_extras(args: argparse.Namespace) -> dict[str, Any]:
    """Return the requirements and the size of neardup alone and of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = {"": project["dependencies"]} | project["optional-dependencies"]
    rows, core = [], set[str]()
    for name in ["", *(["client"] if args.small else PURPOSES)]:
        print_progress(name or "neardup")
        with tempfile.TemporaryDirectory(prefix="neardup-extras-") as folder:
            sizes = install_into(Path(folder), *(requirements[name] if name else [str(ROOT)]))
        core = core or set(sizes)
        added = [size for package, size in sizes.items() if not name or package not in core]
        brings = [_NAME.match(package)[0] for package in requirements[name]]  # type: ignore[index]
        rows.append({"extra": name, "brings": brings, "bytes": sum(added)})
    return {"rows": rows}


def extras_table(results: dict[str, Any]) -> str:
    lines = []
    for row in results["rows"]:
        megabytes = f"{row['bytes'] / 1e6:.0f}"
        name, purpose, size = f"`{row['extra']}`", PURPOSES.get(row["extra"], ""), megabytes
        if not row["extra"]:
            name, purpose, size = "(none)", _CORE_PURPOSE, f"{megabytes} in all"
        lines.append([name, purpose, ", ".join(row["brings"]), size])
    return markdown_table(["extra", "what for", "brings", "more MB"], lines)


if __name__ == "__main__":
    run_sections(__doc__, {"extras": Section(measure_extras, {"extras": extras_table})})
