"""Pages of reports as files: refused before the work, there in full or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.documents.output import OutputFile, check_place
from neardup.errors import OutputError
from neardup.pages.frame import check_drawing
from neardup.reporting.model import Report
from neardup.reporting.page import report_page


def check_page(name: str, inputs: Sequence[str], *, force: bool) -> None:
    """Refuse a name that no page can have, and pages where the packages that draw charts are not installed.

    Raises
    ------
    OutputError
        If the name does not end in .html, is that of an input, or exists and ``force`` is not given.
    """
    if not name.endswith(".html"):
        raise OutputError(f"{name} does not end in .html, but a page is HTML: name it so")
    check_drawing(name)
    check_place(name, list(inputs), force)


def write_page(name: str, report: Report) -> None:
    """Write a report as a page: it is there as a whole or not at all."""
    content = report_page(report).encode()
    with OutputFile(name) as file:
        file.write(content + b"\n")
