"""Runs in which no pair reaches the second step, a classifier, or anybody's eyes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from commands import neardup, read_lines, write_lines
from trained_classifiers import DATED, trained

import neardup as nd

KINDS: dict[str, list[dict[str, Any]]] = {
    "distinct": [{"id": str(i), "text": " ".join(f"w{i}x{j}" for j in range(20))} for i in range(5)],
    "blank": [{"id": str(i), "text": ""} for i in range(4)],
    "none": [],
}
SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])


def _csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"], delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], object]] = {
    ".jsonl": write_lines,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path),
    ".arrow": lambda path, rows: feather.write_feather(pa.Table.from_pylist(rows, SCHEMA), str(path)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", WRITERS)
def test_no_pair_reaches_the_second_step(suffix: str, kind: str, tmp_path: Path) -> None:
    source, output = tmp_path / f"in{suffix}", tmp_path / "out.jsonl"
    WRITERS[suffix](source, KINDS[kind])
    neardup("dedup", source, "--second-step", "edit >= 0.9", "-o", output)
    assert [row["id"] for row in read_lines(output)] == [row["id"] for row in KINDS[kind]]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_every_record_is_rejected(suffix: str, tmp_path: Path) -> None:
    source, output = tmp_path / f"in{suffix}", tmp_path / "out.jsonl"
    source.write_text("{broken\n" if suffix == ".jsonl" else "id,text\n1\n")
    neardup("dedup", source, "--second-step", "edit >= 0.9", "-o", output)
    assert output.read_bytes() == b""


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_reaches_a_classifier(kind: str, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", KINDS[kind])
    classifier = tmp_path / "some.classifier"
    trained().save(classifier)
    output, page = tmp_path / "out.jsonl", tmp_path / "report.html"
    neardup("dedup", source, "--classifier", classifier, "-o", output, "--report", page)
    assert len(read_lines(output)) == len(KINDS[kind])
    assert page.stat().st_size > 1000
    stderr = neardup("audit", source, "--classifier", classifier, "--sample-to", tmp_path / "sheet.csv", code=2).stderr
    assert "no pair" in stderr
    assert not (tmp_path / "sheet.csv").exists()


def test_titles_may_be_missing_from_all_candidates(tmp_path: Path) -> None:
    text = "oslo port: 200 ships came in, up 30 from last week"
    rows = [
        {"id": 1, "text": "nothing of the kind was seen anywhere near here", "title": "Other", "time": "2024-03-01"},
        {"id": 2, "text": text},
        {"id": 3, "text": text.replace("200", "300")},
    ]
    source = write_lines(tmp_path / "in.jsonl", rows)
    with nd.dedup_files(source, classifier=trained(DATED)) as result:
        assert result.summary["search"]["candidates"] == 1


def test_nothing_kept_has_the_columns_of_the_input(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", [{"id": 1, "text": "abc", "tags": ["a"], "more": {"a": 1}, "no": None}])
    output = tmp_path / "out.parquet"
    neardup("dedup", source, "--max-document", "1", "-o", output)
    assert pq.read_table(output).column_names == ["id", "text", "tags", "more", "no"]
    neardup("dedup", output, "--dry-run")
