"""``neardup demo``: the commands on the newswire sample that comes with the package."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shlex
from importlib.resources import files
from typing import Annotated

import click

from neardup.cli.command import argument
from neardup.cli.options import Force
from neardup.cli.screen import TYPED_ARGUMENTS, print_message
from neardup.errors import OutputError

#: The sample, labels of its pairs, and training and test texts for ``contamination``.
_SAMPLES = ("newswire.jsonl", "newswire-labels.csv", "train.jsonl", "test.jsonl")
_OUTPUTS = ("kept.jsonl", "duplicates.csv", "summary.json", "report.html")


def demo(
    folder: Annotated[
        str, argument("[FOLDER]", "Folder for the sample and the outputs; created if missing.")
    ] = "neardup-demo",
    force: Force = False,
) -> None:
    """Remove the near-duplicates of 199 sample news items, and explain one of them.

    The commands are printed as they run, and can be repeated. neardup demo examples writes all files that the
    tutorials use.
    """
    kept, duplicates, summary, report = outputs = [os.path.join(folder, name) for name in _OUTPUTS]
    copies = {name: os.path.join(folder, name) for name in _SAMPLES}
    sample = copies[_SAMPLES[0]]
    existing = [path for path in (*copies.values(), *outputs) if os.path.exists(path)]
    if existing and not force:
        raise OutputError(f"{existing[0]} exists: name another folder, or allow it to be replaced with --force")
    _copy_samples(folder, copies)

    can_draw = all(importlib.util.find_spec(name) is not None for name in ("altair", "jinja2", "vl_convert"))
    options = ["-o", kept, "--duplicates", duplicates, "--summary", summary]
    _run("dedup", sample, *options, *(["--report", report] if can_draw else []), "--force")
    _run("explain", sample, *_corrected_pair(duplicates, sample))

    click.echo()
    if can_draw:
        print_message(
            f"open {os.path.abspath(report)} in a browser: what was dropped, why, and what other thresholds would drop"
        )
    else:
        print_message(f"the demo is complete: kept.jsonl, duplicates.csv and summary.json are in {folder}")
        print_message("pip install 'neardup[report]' brings the page report.html, too: what was dropped and why")
    print_message(f"next, try your own documents: neardup explore {sample}, with your file instead")


def _copy_samples(folder: str, copies: dict[str, str]) -> None:
    from neardup.files import write_file

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be created ({error.strerror}); name another folder") from None
    for name, place in copies.items():
        write_file(place, files("neardup").joinpath("samples", name).read_bytes())


def _run(*words: str) -> None:
    from neardup.cli.app import load_command

    click.echo(f"\n$ {shlex.join(['neardup', *words])}")
    TYPED_ARGUMENTS.set(words)
    load_command(words[0]).main(list(words[1:]), prog_name=f"neardup {words[0]}", standalone_mode=False)


def _corrected_pair(duplicates: str, sample: str) -> tuple[str, str]:
    """Return the ids of the first dropped correction and its keeper, or of the first pair if there is none."""
    with open(sample, encoding="utf-8") as lines:
        kinds = {item["id"]: item["kind"] for item in map(json.loads, lines)}
    with open(duplicates, encoding="utf-8", newline="") as rows:
        pairs = [(row["keeper"], row["dropped"]) for row in csv.DictReader(rows)]
    return next((pair for pair in pairs if kinds[pair[1]] == "correction"), pairs[0])
