r"""The corpora of the benchmarks: those of ../shared/bench and made ones, the same bytes every time.

A name like G100k is 100,000 documents of made-up words: two thirds have 60-300 words of their own, the rest
are copies of an earlier one with 0-12% of the words replaced. R20k is Reuters-21578; N100k and N500k are mixes of its
paragraphs and of documentation of Linux, which ../shared/bench/prepare makes; N1M is one more, made once there by

    cd $BENCH_HOME/corpora
    python ../shared/bench/make_corpus.py --pool pool_reuters.jsonl --pool pool_linuxdoc.jsonl \
        --n 1000000 --name N1M --seed 3 --out .
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
from measuring import BENCH_HOME, SHARED, note

MADE = BENCH_HOME / "made"
_GROUP = 20_000
_VOCABULARY = 60_000


def corpus(name: str) -> Path:
    """Return the Parquet file of a corpus; one that is made of words is made at its first use."""
    prepared = BENCH_HOME / "corpora" / f"{name}.parquet"
    if prepared.exists():
        return prepared
    size = re.fullmatch(r"G(\d+)k", name)
    if size is None:
        raise SystemExit(f"{name} is not in {BENCH_HOME.name}/corpora; prepare it with ../shared/bench/prepare")
    return write_corpus(name, edited_copies(1000 * int(size[1])))


def texts_of(file: Path) -> Iterator[str]:
    """Yield the texts of a corpus, of which few are in memory at a time."""
    for batch in pq.ParquetFile(file).iter_batches(4096, columns=["text"]):
        yield from batch.column(0).to_pylist()


def count_documents(file: Path) -> int:
    """Return how many documents a corpus has."""
    return int(pq.ParquetFile(file).metadata.num_rows)


def write_corpus(name: str, texts: Iterable[str]) -> Path:
    """Write texts with ids from 0 to a Parquet file of that name, unless it is there."""
    path = MADE / f"{name}.parquet"
    if not path.exists():
        note(f"making {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        schema = pa.schema({"id": pa.int64(), "text": pa.large_string()})
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            rest, first = iter(texts), 0
            while group := list(islice(rest, _GROUP)):
                ids = pa.array(range(first, first + len(group)), pa.int64())
                writer.write_table(pa.table([ids, pa.array(group, pa.large_string())], schema=schema))
                first += len(group)
        unfinished.rename(path)
    return path


class Words:
    """Texts of made-up words, common ones often and rare ones rarely, as in a language."""

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
        self._rng = np.random.default_rng(seed)

    def draw(self, count: int) -> list[str]:
        """Return that many words."""
        drawn = np.searchsorted(self._cumulative_shares, self._rng.random(count)).clip(max=_VOCABULARY - 1)
        return list(self._words[drawn])

    def draw_number(self, low: int, high: int) -> int:
        """Return a number from low to high - 1."""
        return int(self._rng.integers(low, high))

    def replace_share(self, words: list[str], share: float) -> list[str]:
        """Return the words with a share of them replaced."""
        copy = list(words)
        count = round(share * len(words))
        for place, word in zip(self._rng.choice(len(words), count, replace=False), self.draw(count), strict=True):
            copy[place] = word
        return copy

    def draw_share(self, high: float) -> float:
        """Return a share from 0 to ``high``."""
        return float(self._rng.random() * high)


def edited_copies(count: int, seed: int = 1) -> Iterator[str]:
    """Yield texts; a third are copies of one of the last thousand with 0-12% of the words replaced."""
    words = Words(seed)
    recent: list[list[str]] = []
    for i in range(count):
        if recent and i % 3 == 2:
            text = words.replace_share(recent[words.draw_number(0, len(recent))], words.draw_share(0.12))
        else:
            text = words.draw(words.draw_number(60, 300))
            recent = [*recent[-999:], text] if len(recent) >= 1000 else [*recent, text]
        yield " ".join(text)


def ten_documents(count: int, seed: int = 2) -> Iterator[str]:
    """Yield copies of ten documents of 200 words, in turn."""
    words = Words(seed)
    bodies = [" ".join(words.draw(200)) for _ in range(10)]
    return (bodies[i % 10] for i in range(count))


def one_footer(count: int, seed: int = 3) -> Iterator[str]:
    """Yield texts of 130-300 words of their own and one footer of 300 words that all have."""
    words = Words(seed)
    footer = " ".join(words.draw(300))
    return (f"{' '.join(words.draw(words.draw_number(130, 301)))} {footer}" for _ in range(count))


def near_copies(count: int, seed: int = 4) -> Iterator[str]:
    """Yield copies of one document of 300 words, one or two of them changed: every pair matches."""
    words = Words(seed)
    body = words.draw(300)
    return (" ".join(words.replace_share(body, words.draw_number(1, 3) / 300)) for _ in range(count))


def job_adverts(count: int, seed: int = 5) -> Iterator[str]:
    """Yield texts of about 1.5 KB, a tenth of them edited copies of an earlier one.

    They mix the sentences of the job adverts in ../shared/data; without it they are of made-up words.
    """
    rng, words = random.Random(seed), Words(seed)  # noqa: S311
    sentences = _sentences() or [" ".join(words.draw(words.draw_number(8, 30))) + "." for _ in range(60_000)]
    recent: list[list[str]] = []
    for i in range(count):
        if recent and i % 10 == 9:
            copy = rng.choice(recent).copy()
            for place in rng.sample(range(len(copy)), max(1, round(rng.uniform(0.01, 0.1) * len(copy)))):
                copy[place] = rng.choice(words.draw(1))
            yield " ".join(copy)
            continue
        text: list[str] = []
        length = 0
        while length < 1500:
            sentence = rng.choice(sentences)
            text.append(sentence)
            length += len(sentence) + 1
        split = " ".join(text).split()
        if len(recent) < 1000:
            recent.append(split)
        else:
            recent[i % 1000] = split
        yield " ".join(split)


def _sentences() -> list[str]:
    path = SHARED / "data" / "adzuna" / "adzuna.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    found = {sentence.strip() for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text)}
    return sorted(sentence for sentence in found if 20 <= len(sentence) <= 400)
