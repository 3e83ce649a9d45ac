"""The random sample: the documents of the smallest hashes, however the corpus is read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neardup.documents import corpus_of, open_corpus
from neardup.exploration.sample import draw_sample, row_hashes

TEXTS = [f"document {n} says {'moon ' * (n % 7)}日本 \u0627\u0644 😀" for n in range(500)]


def written(folder: Path, rows: Iterable[dict[str, Any]], *sizes: int) -> list[str]:
    """Rows as JSON lines: so many in each file, the rest in the last."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    names = []
    for number, size in enumerate((*sizes, len(lines))):
        name = folder / f"part-{number}.jsonl"
        name.write_text("".join(lines[:size]), "utf-8")
        names.append(str(name))
        lines = lines[size:]
    return names


def test_the_smallest_hashes_are_drawn() -> None:
    keys = row_hashes(np.arange(500), 7)
    assert len(set(keys.tolist())) == 500
    with corpus_of(TEXTS) as corpus:
        found, _ = draw_sample(corpus, sample=40, seed=7)
    assert found.positions.tolist() == sorted(np.argsort(keys)[:40].tolist())
    assert found.texts == [TEXTS[place] for place in found.positions]


def test_broken_records_do_not_change_the_sample(tmp_path: Path) -> None:
    """A document is drawn by its row, so that a record that is mended later does not change the sample."""
    rows: list[dict[str, Any]] = [{"id": n, "text": text} for n, text in enumerate(TEXTS)]
    broken = [row if number % 50 else {"id": row["id"]} for number, row in enumerate(rows)]
    with open_corpus(written(tmp_path, rows)) as corpus:
        whole, _ = draw_sample(corpus, sample=500)
        by_row = dict(zip(whole.names.rows[whole.positions].tolist(), whole.texts, strict=True))
    with open_corpus(written(tmp_path, broken)) as corpus:
        found, survey = draw_sample(corpus, sample=100)
        rows_drawn = found.names.rows[found.positions].tolist()
    keys = row_hashes(survey.names.rows, 0)
    assert rows_drawn == sorted(survey.names.rows[np.argsort(keys)[:100]].tolist())
    assert [by_row[row] for row in rows_drawn] == found.texts


def test_the_survey_has_sizes_digests_and_sources(tmp_path: Path) -> None:
    rows = [{"id": n, "text": text} for n, text in enumerate(TEXTS[:30] + TEXTS[:5])]
    names = written(tmp_path, rows, 10)
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for name, text in (("a.txt", "one"), ("b.txt", ""), ("deep/c.txt", "three")):
        (folder / name).write_text(text)
    with open_corpus([*names, str(folder)]) as corpus:
        found, survey = draw_sample(corpus, sample=2000, threads=2)
    texts = [row["text"] for row in rows] + ["one", "", "three"]
    assert survey.text_bytes.tolist() == [len(str(text).encode()) for text in texts]
    assert found.bytes == survey.text_bytes.sum()
    marks = [tuple(mark) for mark in survey.text_digests.tolist()]
    assert marks[:5] == marks[30:35]
    assert len(set(marks)) == 33
    assert [survey.sources[code] for code in survey.source.tolist()] == (
        [names[0]] * 10 + [names[1]] * 25 + [str(folder)] * 2 + [str(folder / "deep")]
    )
