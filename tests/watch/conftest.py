"""A newsroom for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from newsroom import Newsroom


@pytest.fixture
def room(tmp_path: Path) -> Newsroom:
    return Newsroom(tmp_path)
