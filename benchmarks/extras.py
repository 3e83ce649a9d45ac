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

from harness import ROOT, Row, print_progress, run_sections, section

#: The purpose of neardup itself and of each extra for users; extras for development are not measured.
PURPOSES = {
    "": "`dedup`, `pairs`, `similar`, `explain`, flows in Python",
    "report": "pages: `explore -o`, `--report`, `compare -o`, `audit --report`",
    "html": "`--html`: the main content of web pages",
    "warc": "WARC and WET files",
    "html-fast": "`--content html-fast`: main content in a tenth of the time",
    "watch": "`neardup watch`",
    "learn": "`neardup train`",
    "label": "`neardup label`, `audit --store`: pages in the browser",
    "serve": "`neardup serve`",
    "client": "`nd.Client`",
    "mcp": "`neardup serve --mcp`",
    "hf": "inputs and outputs named `hf://...`, on the Hugging Face Hub",
    "spark": "`--engine spark`; needs a Java 17 or newer besides",
    "pandas": "pandas tables in and out",
    "sklearn": "features and sketches as steps of scikit-learn",
    "docs": "`make docs`",
}


def install_into(folder: Path, *requirements: str) -> dict[str, int]:
    """Install packages with their dependencies into a folder, and return the bytes of each entry of the folder."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-compile"]
    subprocess.run([*pip, "--target", str(folder), *requirements], check=True, stdout=subprocess.DEVNULL)
    return {
        entry.name: sum(file.lstat().st_size for file in [entry, *entry.rglob("*")] if file.is_file())
        for entry in folder.iterdir()
    }


@section("extras", "extra | what for | brings | more MB", "{name} | {purpose} | {names} | {mb}")
def measure_extras(args: argparse.Namespace) -> Row:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = {"": project["dependencies"]} | project["optional-dependencies"]
    rows, core = [], set[str]()
    for extra in ["", "client"] if args.small else PURPOSES:
        print_progress(extra or "neardup")
        with tempfile.TemporaryDirectory(prefix="neardup-extras-") as folder:
            sizes = install_into(Path(folder), *(requirements[extra] if extra else [str(ROOT)]))
        core = core or set(sizes)
        megabytes = round(sum(size for package, size in sizes.items() if not extra or package not in core) / 1e6)
        names = ", ".join(re.split(r"[^\w.-]", package)[0] for package in requirements[extra])
        shown = {"name": f"`{extra}`", "mb": megabytes} if extra else {"name": "(none)", "mb": f"{megabytes} in all"}
        rows.append(shown | {"purpose": PURPOSES[extra], "names": names})
    return {"rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
