"""The outputs of commands: checked before the work begins, and named if an interruption leaves some of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from neardup.errors import OutputError

#: Refuses an output by its name, the inputs, and whether an existing file may be replaced.
Check = Callable[[str, Sequence[str], bool], None]


def check_outputs(
    inputs: Sequence[str],
    outputs: Mapping[str, str | Sequence[str] | None],
    *,
    force: bool = False,
    checks: Mapping[str, Check] | None = None,
) -> None:
    """Refuse, before the work begins, outputs that cannot or must not be written, or that share a name.

    Parameters
    ----------
    inputs : sequence of str
        The names of what will be read.
    outputs : mapping
        The names of the outputs by their options; None for an option that was not given.
    force : bool
        Whether existing files may be replaced.
    checks : mapping, optional
        Checks by option, for outputs that are not tables. Summaries, quarantines and reports have theirs.
    """
    from neardup.documents import check_output

    checks = _CHECKS | dict(checks or {})
    option_of: dict[str, str] = {}
    for option, names in outputs.items():
        for name in [names] if isinstance(names, str) else names or ():
            checks.get(option, check_output)(name, inputs, force)
            place = name if name == "-" or "://" in name else os.path.realpath(name)
            if place in option_of:
                raise OutputError(f"{name} is given for {option_of[place]} and for {option}: name two files")
            option_of[place] = option


def ending_check(reason: str, *endings: str) -> Check:
    """Return a check that refuses names with none of the endings; the reason ends its sentence."""
    *first, last = (ending for ending in endings if not ending.endswith((".gz", ".zst")))
    listed = f"{', '.join(first)} or {last}" if first else last

    def check(name: str, inputs: Sequence[str], force: bool) -> None:
        from neardup.documents import check_output

        if not name.endswith(endings):
            raise OutputError(f"{name} does not end in {listed}, but {reason}: name it so")
        check_output(name, inputs, force)

    return check


def check_nothing(name: str, inputs: Sequence[str], force: bool) -> None:
    """Accept any name: a store is checked when it is opened."""


def check_local_file(name: str, inputs: Sequence[str], force: bool) -> None:
    """Refuse a place where no file can be, whatever its format."""
    from neardup.documents.output import check_place

    if name == "-":
        raise OutputError("- is stdout, and this is written to a file: name one")
    check_place(name, inputs, force)


def _check_page(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.pages.report_page import check_page

    check_page(name, inputs, force=force)


_CHECKS: dict[str, Check] = {
    "--summary": ending_check("a summary is JSON", ".json"),
    "--quarantine": ending_check(
        "a quarantine is JSON lines",
        *(f".{kind}{codec}" for kind in ("jsonl", "ndjson") for codec in ("", ".gz", ".zst")),
    ),
    "--report": _check_page,
}


@contextmanager
def written_files(*names: str | None) -> Iterator[list[str]]:
    """Give the list of files written so far, to be appended to; an interruption of the block names them.

    ``names`` are those that were written before.
    """
    written = [name for name in names if name is not None]
    try:
        yield written
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"written: {', '.join(written)}" if written else "nothing was written") from None


def write_json(content: Any, name: str) -> None:
    """Write JSON to a file."""
    from neardup.documents.output import OutputFile

    with OutputFile(name) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n")
