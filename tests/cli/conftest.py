"""A small corpus, and kernels that are compiled before any clock or limit runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import DOCUMENTS, neardup, write_lines


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Five documents, two of them near-duplicates of the first."""
    return write_lines(tmp_path / "corpus.jsonl", DOCUMENTS)


@pytest.fixture(scope="session", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile the kernels, so that no command has to, nor says that it does, whatever the order of the tests."""
    corpus = write_lines(tmp_path_factory.mktemp("warm") / "corpus.jsonl", DOCUMENTS)
    neardup("dedup", corpus, "--dry-run")
