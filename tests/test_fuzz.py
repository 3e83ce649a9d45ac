"""Changed files and requests of every kind are read, or refused in one sentence: nothing crashes, hangs or vanishes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import fuzzing
import pytest
from fuzzing import SUBJECTS, WRONG, fuzz

LONG = os.environ.get("NEARDUP_LONG") == "1"
#: 100,000 inputs; those of some kinds take a second, and the others about a hundredth.
COUNTS = dict.fromkeys(SUBJECTS, 4_700) | {
    "index": 2_000,
    "labels": 2_000,
    "flow": 2_000,
    "bodies": 2_000,
    "commands": 2_000,
}


@pytest.mark.parametrize("kinds", [[kind] for kind in SUBJECTS] if LONG else [list(SUBJECTS)], ids=",".join)
def test_changed_inputs_are_read_or_refused(kinds: list[str]) -> None:
    assert fuzz(kinds, COUNTS[kinds[0]] if LONG else 15) == []


def test_unchanged_inputs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise their changes would try nothing but refusals."""
    monkeypatch.setattr(fuzzing, "mutated", lambda data, rng, others: data)
    for kind in (
        "jsonl",
        "csv",
        "tsv",
        "parquet",
        "arrow",
        "arrows",
        "text",
        "html",
        "gz",
        "zst",
        "bz2",
        "warc",
        "wet",
    ):
        seeds = SUBJECTS[kind].make(tmp_path)
        SUBJECTS[kind].ask(seeds, random.Random(1), tmp_path)
    for kind in ("mail", "mbox", "subtitles", "test set", "items"):
        SUBJECTS[kind].ask(SUBJECTS[kind].make(tmp_path), random.Random(1), tmp_path)


def test_the_long_run_tries_a_hundred_thousand() -> None:
    assert sum(COUNTS.values()) >= 100_000


def test_what_is_wrong_on_purpose_is_found_and_named() -> None:
    """Also by a process that dies, after which the next input is tried."""
    found = fuzz(list(WRONG), 1, limit=30)
    assert [fault.kind for fault in found] == list(WRONG)
    signs = ["IndexError: pop from empty list", "ended by -6", "it hangs", "bytes of memory", "1 of 2 records"]
    for fault, sign in zip(found, signs, strict=True):
        assert sign in fault.what
