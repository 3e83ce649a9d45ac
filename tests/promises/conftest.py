"""The folder stands alone: it knows the command and the public names, and nothing of what is inside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from promised_calls import call
from promised_cases import PREPARATIONS
from promised_corpora import require_corpus, write_corpus
from promised_records import Records


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="tests/promises: write down what the outputs are now")


def pytest_configure(config: pytest.Config) -> None:
    # Arrow remembers that there is no pandas when it is first asked while the command hides it.
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401
        import pyarrow as pa

        pa.array([1]).to_pandas()
    if config.getoption("record", default=False) and config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--record writes one file; leave out -n")


@pytest.fixture(scope="session")
def records(request: pytest.FixtureRequest) -> Iterator[Records]:
    """What was recorded; with --record what is found instead, written at the end."""
    found = Records.read(recording=request.config.getoption("record", default=False))
    yield found
    found.close()


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder of a corpus with its files; skips the test where there is none."""
    folder = tmp_path_factory.mktemp("corpora")

    def give(corpus: str) -> Path:
        require_corpus(corpus)
        return folder / corpus if (folder / corpus).exists() else write_corpus(corpus, folder / corpus)

    return give


@pytest.fixture(scope="session")
def prepared(corpus_folder: Callable[[str], Path]) -> Callable[[str, str], Path]:
    """Gives a file that another command makes first."""

    def give(corpus: str, name: str) -> Path:
        path = corpus_folder(corpus) / name
        if not path.exists():
            done = call(*PREPARATIONS[name], folder=path.parent)
            assert done.code == 0, done.err
        return path

    return give


@pytest.fixture(scope="session")
def model(prepared: Callable[[str, str], Path]) -> Path:
    """What was trained on the labels of the sample."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    return prepared("newswire", "learned.neardup")
