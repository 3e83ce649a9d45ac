"""What benchmarks/spark.py and spark_sizing.py make of figures."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from saying import says

from neardup.search.lsh import bands_for

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
STAGES = ("documents", "features", "repeated", "equal", "counts", "candidates", "routes", "pairs")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def cell(corpus: str, documents: int, what: str, search: str, digest: str = "same") -> dict[str, Any]:
    stages = [
        {
            "name": name,
            "wall_s": 1.0,
            "worker_s": documents / 1e5,
            "shuffle_bytes": 10 * documents,
            "spilled_bytes": 0,
            "bytes": 1000 * documents,
            "skew": 1.0,
        }
        for name in STAGES
    ]
    counted = {"entries": 8 * documents, "raw_candidates": documents, "in_candidates": documents // 10}
    counted |= {"features_sent": documents // 10, "verified": documents // 10, "pairs": documents // 20}
    counted |= {"distinct_sets": documents * 9 // 10, "longest_list": 7}
    return {
        "corpus": corpus,
        "what": what,
        "search": search,
        "run": 0,
        "code": 0,
        "wall_s": 10.0,
        "cpu_s": 12.0,
        "cpu_by": {"executors": 5.0, "python": 4.0},
        "peak_mb": 900.0,
        "largest_mb": {"python": 300.0},
        "documents": documents,
        "dropped": 5,
        "pairs": documents // 20,
        "text_bytes": 800 * documents,
        "counted": counted,
        "stages": stages,
        "sha256": {"kept.parquet": digest},
    }


def results_of(bench: Any, *more: dict[str, Any]) -> dict[str, Any]:
    cells = [
        cell(name, documents, what, search)
        for name, documents in (("small", 100_000), ("large", 500_000))
        for what in ("memory", "cluster")
        for search in ("exact", "lsh")
    ]
    derived: dict[str, Any] = bench("spark").derived([*cells, *more])
    return {"cells": [*cells, *more]} | derived


def test_bytes_that_differ_are_told(bench: Any) -> None:
    tables = bench("spark_tables")
    assert "**no**" not in tables.as_table(results_of(bench))
    odd = cell("large", 500_000, "local[2]", "exact", "other")
    assert "**no**" in tables.as_table(results_of(bench, odd))


def test_a_peer_that_was_ended_is_told(bench: Any) -> None:
    ended = {"corpus": "large", "what": "minhash", "search": "lsh", "run": 0, "code": -9, "limit_s": 900}
    ended |= {"wall_s": 900.4, "cpu_s": 1700.0, "peak_mb": 4000.0, "far": {"at": "pairs", "tasks_done": 3, "tasks": 8}}
    shown = bench("spark_tables").peers_table(results_of(bench, ended))
    (row,) = (row for row in shown.splitlines() if "900 s" in row)
    assert says(row, "ended", "pairs", "3 of 8 tasks")


def test_all_tables_are_made(bench: Any) -> None:
    results, sizing = results_of(bench), bench("spark_sizing")
    assert "| documents |" in bench("spark_tables").printed(results)
    for made in (sizing.given_table, sizing.as_table, sizing.work_table, sizing.driver_table):
        assert made(results).count("\n") > 4


def test_what_a_billion_takes_grows_with_them(bench: Any) -> None:
    results, sizing = results_of(bench), bench("spark_sizing")
    one, ten = (sizing.sized(results, "exact", sizing.Given(documents=n)) for n in (1e8, 1e9))
    assert sum(ten.work_s.values()) == pytest.approx(10 * sum(one.work_s.values()))
    assert [row[:2] for row in one.rows] == [row[:2] for row in ten.rows]


def test_others_get_as_many_bands_as_the_recall_asks_for(bench: Any) -> None:
    peers = bench("spark_peers")
    assert peers.bands_for(0.85, 0.95) == bands_for(0.85, 0.95, 128)[:2]
    assert peers.tables_for(0.85, 0.95) == 2
