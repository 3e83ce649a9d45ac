"""The demo of ``make demo``: remove the near-duplicates of the newswire sample and explain one of them.

Everything goes through the command line, as a user would do it; the commands are printed before they run.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = "examples/newswire.jsonl"
OUTPUT = "demo-output"


def show(text: str) -> None:
    """Print a line at once, so that it stands before what the next command prints."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def neardup(*arguments: str) -> None:
    """Print a command and run it; end with its exit code when it fails."""
    show(f"\n$ {shlex.join(['neardup', *arguments])}")
    code = subprocess.run([sys.executable, "-m", "neardup", *arguments], check=False).returncode  # noqa: S603
    if code:
        sys.exit(code)


def corrected_pair(duplicates: str, sample: str) -> tuple[str, str]:
    """Return the ids of the first dropped correction and of its keeper; of any pair where there is none."""
    with open(sample, encoding="utf-8") as file:
        kinds = {item["id"]: item["kind"] for item in map(json.loads, file)}
    with open(duplicates, encoding="utf-8", newline="") as file:
        pairs = [(row["keeper"], row["dropped"]) for row in csv.DictReader(file)]
    return next((pair for pair in pairs if kinds[pair[1]] == "correction"), pairs[0])


def main() -> None:
    """Run the demo."""
    os.chdir(ROOT)
    Path(OUTPUT).mkdir(exist_ok=True)
    clean, duplicates = f"{OUTPUT}/clean.jsonl", f"{OUTPUT}/duplicates.csv"
    summary = f"{OUTPUT}/summary.json"
    outputs = ["-o", clean, "--duplicates", duplicates, "--summary", summary, "--force"]
    show("1. Remove the near-duplicates of 199 news items and write down which went, and why.")
    neardup("dedup", SAMPLE, *outputs)
    show("\n2. Ask why one of them went: a correction, which was sent again with another fact.")
    neardup("explain", SAMPLE, *corrected_pair(duplicates, SAMPLE))
    show(f"\nThe kept items are in {clean}, the dropped ones with their keepers in {duplicates},")
    show(f"all counts, times and the recipe in {summary}.")


if __name__ == "__main__":
    main()
