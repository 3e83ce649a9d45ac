"""A package that is not installed is missed before anything is written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from commands import names_in, neardup, write_lines
from labelled_stories import labelled, write_labels

import neardup as nd
from neardup.errors import NeardupError
from neardup.service.server import check_packages
from neardup.text import html

WITH_TABLES = "--duplicates", "{out}/dups.csv", "--quarantine", "{out}/q.jsonl"


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("uvicorn", "label", ("label", "{corpus}", "--store", "{out}/labels.db", "--no-browser")),
        ("fastapi", "label", ("label", "{corpus}", "--store", "{out}/labels.db", "--no-browser")),
        ("sklearn", "label", ("label", "{corpus}", "--store", "{out}/labels.db", "--no-browser")),
        (
            "uvicorn",
            "label",
            ("audit", "{corpus}", "--candidate-rule", "0.2", "--store", "{out}/labels.db", "--no-browser"),
        ),
        (
            "fastapi",
            "label",
            ("audit", "{corpus}", "--candidate-rule", "0.2", "--store", "{out}/labels.db", "--no-browser"),
        ),
        ("altair", "report", ("dedup", "{corpus}", "-o", "{out}/o.jsonl", *WITH_TABLES, "--report", "{out}/r.html")),
        ("vl_convert", "report", ("audit", "{corpus}", "--report", "{out}/r.html")),
        ("altair", "report", ("explore", "{corpus}", "-o", "{out}/r.html")),
        ("altair", "report", ("replay", "{corpus}", "--report", "{out}/r.html", "--store", "{out}/s.db")),
        ("altair", "report", ("compare", "{corpus}", "--labels", "{labels}", "-o", "{out}/r.html")),
        ("trafilatura", "html", ("dedup", "{corpus}", "--html", "-o", "{out}/o.jsonl", *WITH_TABLES)),
        ("sklearn", "learn", ("train", "{corpus}", "--labels", "{labels}", "--quarantine", "{out}/q.jsonl")),
    ],
)
def test_a_missing_package_is_reported_before_anything_is_written(
    package: str, extra: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, pairs = labelled(mistakes=9)
    corpus = write_lines(tmp_path / "corpus.jsonl", [*texts.rows, {"id": "no text"}])
    out = tmp_path / "out"
    out.mkdir()
    places = {"corpus": corpus, "labels": write_labels(tmp_path / "labels.csv", pairs), "out": out}
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("neardup.kernels.compilation.kernels_are_compiled", lambda *kernels: False)
    # Another test of this process may have found it.
    html._article_extractor.cache_clear()
    stderr = neardup(*(part.format_map(places) for part in command), code=2).stderr
    *_, last = stderr.splitlines()
    if command[0] == "train":
        # What takes ten seconds is not begun in vain.
        assert stderr == f"{last}\n"
    assert f"neardup[{extra}]" in last
    # What the command would refuse is no way out.
    assert "or write" not in last
    assert names_in(out) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("label", "{missing}", "--store", "{out}/labels.db"),
        ("label", "{corpus}", "--store", "{out}/labels.db", "--import", "{missing}", "--labeller", "anna"),
        ("label", "{missing}", "--store", "{out}/labels.db", "--import", "{labels}", "--labeller", "anna"),
        ("label", "{corpus}", "--store", "{out}/labels.db", "--import", "{corpus}", "--labeller", "anna"),
        ("label", "{corpus}", "--store", "{out}/labels.db", "--import", "{labels}"),
        ("audit", "{missing}", "--store", "{out}/labels.db"),
        ("audit", "{corpus}", "--store", "{out}/labels.db", "--labels", "{missing}"),
        ("audit", "{corpus}", "--store", "{out}/labels.db", "--candidate-rule", "nonsense"),
    ],
)
def test_a_store_is_created_only_when_there_is_a_label_to_keep(command: tuple[str, ...], tmp_path: Path) -> None:
    texts, _ = labelled(mistakes=9)
    corpus = write_lines(tmp_path / "corpus.jsonl", texts.rows)
    labels = tmp_path / "labels.csv"
    labels.write_text("id1,id2,label\nd0,d1,1\n")
    out = tmp_path / "out"
    out.mkdir()
    places = {"corpus": corpus, "labels": labels, "out": out, "missing": tmp_path / "missing.csv"}
    neardup(*(part.format_map(places) for part in command), code=2)
    assert names_in(out) == set()


def test_extras_are_named_in_one_way() -> None:
    sources = [path.read_text("utf-8") for path in Path(nd.__file__).parent.rglob("*.py")]
    named = [found for source in sources for found in re.findall(r"pip install.*", source)]
    assert len(named) > 8
    assert [one for one in named if not re.match(r"pip install 'neardup\[[a-z{}]+\]'(``)? brings", one)] == []
    with pytest.raises(NeardupError, match=r"^the tools need nothing_of_that_name, which is not installed;"):
        check_packages("mcp", "nothing_of_that_name")
