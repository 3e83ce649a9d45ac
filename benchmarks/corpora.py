"""The corpora of the benchmarks: prepared ones of ../shared, and generated ones with the same bytes every time.

G100k has 100,000 documents of made-up words: two thirds are new texts of 60-300 words, the rest are copies of an
earlier one with 0-12% of the words replaced. R20k is Reuters-21578; N100k and N500k are mixes of its paragraphs and of
documentation of Linux, which ../shared/bench/prepare makes; ../shared/bench/make_big.py makes M1M, M4M, M10M, L1M and
L15M.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import BENCH_HOME, SHARED, Row, print_progress

GENERATED = BENCH_HOME / "made"
_BATCH_ROWS = 20_000
_VOCABULARY = 60_000


class CorpusMissingError(SystemExit):
    """A corpus is not prepared; the message says how to prepare it."""


def corpus(name: str) -> Path:
    """Return the Parquet file of a corpus; a generated one is written at its first use."""
    prepared = BENCH_HOME / "corpora" / f"{name}.parquet"
    if prepared.exists():
        return prepared
    size = re.fullmatch(r"G(\d+)k", name)
    if size is None:
        raise CorpusMissingError(f"{name} is not in {BENCH_HOME.name}/corpora; prepare it with ../shared/bench/prepare")
    return write_corpus(name, edited_copies(1000 * int(size[1])))


def shared_file(name: str) -> Path:
    """Return the compressed JSON lines of a corpus of ../shared/data."""
    return SHARED / "data" / name / f"{name}.jsonl.gz"


def shared_records(name: str) -> list[Row]:
    with gzip.open(shared_file(name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def corpus_texts(file: Path) -> Iterator[str]:
    """Yield the texts of a corpus, with a few thousand in memory at a time."""
    for batch in pq.ParquetFile(file).iter_batches(4096, columns=["text"]):
        yield from batch.column(0).to_pylist()


def write_corpus(name: str, texts: Iterable[str]) -> Path:
    """Write texts with ids from 0 to the Parquet file of that name unless it exists, and return the file."""
    path = GENERATED / f"{name}.parquet"
    if not path.exists():
        print_progress(f"generating {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        schema = pa.schema({"id": pa.int64(), "text": pa.large_string()})
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            remaining, first = iter(texts), 0
            while batch := list(islice(remaining, _BATCH_ROWS)):
                ids = pa.array(range(first, first + len(batch)), pa.int64())
                writer.write_table(pa.table([ids, pa.array(batch, pa.large_string())], schema=schema))
                first += len(batch)
        unfinished.rename(path)
    return path


class Words:
    """Random made-up words whose frequencies follow Zipf's law."""

    def __init__(self, seed: int) -> None:
        spelling = random.Random(seed)  # noqa: S311
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        weights = [1 / (rank + 2) for rank in range(len(letters))]
        self._words = np.array(
            ["".join(spelling.choices(letters, weights, k=2 + min(rank // 400, 7))) for rank in range(_VOCABULARY)],
            object,
        )
        shares = 1 / np.arange(3, _VOCABULARY + 3)
        self._cumulative_shares = np.cumsum(shares / shares.sum())
        self.rng = np.random.default_rng(seed)

    def draw(self, count: int) -> list[str]:
        """Return that many words."""
        drawn = np.searchsorted(self._cumulative_shares, self.rng.random(count)).clip(max=_VOCABULARY - 1)
        return list(self._words[drawn])

    def replace_share(self, words: list[str], share: float) -> list[str]:
        """Return the words with a share of them replaced."""
        copy = list(words)
        count = round(share * len(words))
        for place, word in zip(self.rng.choice(len(words), count, replace=False), self.draw(count), strict=True):
            copy[place] = word
        return copy


def edited_copies(count: int, seed: int = 1) -> Iterator[str]:
    """Yield texts; a third are copies of one of the last thousand with 0-12% of the words replaced."""
    words = Words(seed)
    recent: list[list[str]] = []
    for i in range(count):
        if recent and i % 3 == 2:
            text = words.replace_share(recent[words.rng.integers(len(recent))], words.rng.random() * 0.12)
        else:
            text = words.draw(int(words.rng.integers(60, 300)))
            recent = [*recent[-999:], text] if len(recent) >= 1000 else [*recent, text]
        yield " ".join(text)


def ten_documents(count: int, seed: int = 2) -> Iterator[str]:
    """Yield copies of ten documents of 200 words, in turn."""
    words = Words(seed)
    bodies = [" ".join(words.draw(200)) for _ in range(10)]
    return (bodies[i % 10] for i in range(count))


def shared_footer(count: int, seed: int = 3) -> Iterator[str]:
    """Yield distinct texts of 130-300 words that end with the same footer of 300 words."""
    words = Words(seed)
    footer = " ".join(words.draw(300))
    return (f"{' '.join(words.draw(int(words.rng.integers(130, 301))))} {footer}" for _ in range(count))


def near_copies(count: int, seed: int = 4) -> Iterator[str]:
    """Yield copies of one document of 300 words with one or two words changed, so that every pair matches."""
    words = Words(seed)
    body = words.draw(300)
    return (" ".join(words.replace_share(body, words.rng.integers(1, 3) / 300)) for _ in range(count))


def job_adverts(count: int, seed: int = 5) -> Iterator[str]:
    """Yield texts of about 1.5 KB of sentences of job adverts, a tenth of them edited copies of an earlier one."""
    rng, words = random.Random(seed), Words(seed)  # noqa: S311
    texts = (record["text"] for record in shared_records("adzuna"))
    found = {sentence.strip() for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text)}
    sentences = sorted(sentence for sentence in found if 20 <= len(sentence) <= 400)
    recent: list[list[str]] = []
    for i in range(count):
        if recent and i % 10 == 9:
            copy = rng.choice(recent).copy()
            for place in rng.sample(range(len(copy)), max(1, round(rng.uniform(0.01, 0.1) * len(copy)))):
                copy[place] = rng.choice(words.draw(1))
            yield " ".join(copy)
            continue
        text: list[str] = []
        while sum(map(len, text)) + len(text) < 1500:
            text.append(rng.choice(sentences))
        split = " ".join(text).split()
        if len(recent) < 1000:
            recent.append(split)
        else:
            recent[i % 1000] = split
        yield " ".join(split)
