"""The kernels are compiled before the first command runs, so that no command says that it compiles them."""

from __future__ import annotations

import neardup
import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_kernels() -> None:
    neardup.dedup(["one text of a few words", "another text of a few words", "one text of a few words"])
