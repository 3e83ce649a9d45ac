"""The page of a report as a file: the same bytes for the same run, refused where it must not be written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import pyarrow as pa
import pytest

import neardup as nd
from neardup.pages.batch_report import report_of
from neardup.pages.report import Report
from neardup.pages.report_page import report_page
from neardup.pipeline.result import Result

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
TABLE = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "text": [BASE, BASE + ".", BASE.replace("tuesday", "wednesday"), "one"],
        "title": ["Harbour", "Harbour again", "Harbour on wednesday", "one word"],
    }
)


def result_of(**options: Any) -> Result:
    return nd.dedup(TABLE, features="words:2", threshold=0.75, margin=0.4, **options)


def shown(result: Result) -> str:
    report: Report = report_of(result._found, result.summary)
    assert len(report.stages) == 4
    return report_page(replace(report, stages=(), facts={}))


def test_the_same_run_has_the_same_page_with_any_threads(tmp_path: Path) -> None:
    pages = [shown(result_of(threads=threads)) for threads in (1, 2)]
    assert pages[0] == pages[1]
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    with nd.dedup_files(str(lines), features="words:2", threshold=0.75, margin=0.4) as result:
        told = shown(result).replace(str(lines), "")
    assert re.sub("<header.*?</header>", "", told) == re.sub("<header.*?</header>", "", pages[0])


def test_a_page_without_anything_to_tell_opens_and_says_so(tmp_path: Path) -> None:
    nd.dedup([]).report(tmp_path / "none.html")
    nd.dedup(["a rose", "a tulip"], margin=0.2).report(tmp_path / "few.html")
    for name in ("none.html", "few.html"):
        with browser.opened(tmp_path / name) as view:
            assert "How this was made" in view.inner_text("main")
            assert "Nothing to show: no dropped documents" in view.inner_text("main")
