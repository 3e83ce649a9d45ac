"""Tables of figures on pages are those of benchmarks/results, and each script runs on small corpora."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
#: Scripts that need peers, corpora, a browser or a registry.
NEEDS_MORE = {"peers", "pictures", "learned", "main_content", "methods", "serve", "extras", "vowel_marks"}
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text("utf-8"))


def test_tables_on_pages_match_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import harness

    tables = harness.load_tables()
    for text in (page.read_text("utf-8") for page in PAGES):
        assert harness.update_tables(text, tables) == text


def test_the_benchmarks_page_names_every_script_and_result() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    named = set(re.findall(r"([\w-]+)\.json", text)) | set(re.findall(r"(\w+)\.py", text))
    assert named >= {path.stem for path in (BENCHMARKS / "results").glob("*.json")}
    assert named >= set(SCRIPTS)


@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="NEARDUP_LONG=1 runs the benchmarks on small corpora")
@pytest.mark.parametrize("script", sorted(set(SCRIPTS) - NEEDS_MORE - {"harness"}))
def test_each_script_runs_on_small_corpora(script: str, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), "--small"]
    subprocess.run(command, check=True, env=os.environ | {"BENCH_HOME": str(tmp_path)})
    for path in (BENCHMARKS / "results" / "quick").glob("*.json"):
        assert json.loads(path.read_text("utf-8"))["tables"]
