"""The corpora, as the files that the commands read: all of them made anew in a folder of the test run."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Corpora whose licences keep them out of the project.
DATA = ROOT.parent / "shared" / "data"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """How many documents of a corpus beside the project are taken, from its first on; all where None.

    Repeats of a news item or a job stand near it, so a beginning has pairs where every k-th document has hardly any.
    """

    file: str
    first: int | None = None


#: Enough of each that every recipe finds something, and few enough that all recipes run in seconds.
PARTS = {
    "adzuna": Part("adzuna.jsonl.gz", first=600),
    "clough": Part("clough.jsonl"),
    "msrp": Part("msrp.jsonl.gz", first=2000),
    "peps": Part("peps.jsonl.gz", first=80),
    "r8": Part("r8.jsonl.gz"),
    "reuters": Part("reuters.jsonl.gz", first=2400),
    "saudinews": Part("saudinews.jsonl.gz", first=1500),
}
#: Corpora that are folders of files.
FOLDERS = {"cornell": "docs", "html": "pages"}
CORPORA = ("newswire", *PARTS, *FOLDERS)


def require_corpus(corpus: str) -> None:
    """Skip the test where a corpus is not there."""
    if corpus != "newswire" and not (DATA / corpus).is_dir():
        pytest.skip(f"the corpus {corpus} is not in ../shared/data, which is no part of the project")


@cache
def rows_of(corpus: str) -> Rows:
    """Return the documents of a corpus that are taken."""
    if corpus == "newswire":
        return list(_lines(EXAMPLES / "newswire.jsonl"))
    if corpus in FOLDERS:
        files = sorted((DATA / corpus / FOLDERS[corpus]).iterdir())
        return [{"id": file.name, "text": file.read_text("utf-8", "replace")} for file in files]
    part = PARTS[corpus]
    return list(islice(_lines(DATA / corpus / part.file), part.first))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def write_corpus(corpus: str, folder: Path) -> Path:
    """Write the files of a corpus into a folder, and return the folder."""
    folder.mkdir()
    if corpus in FOLDERS:
        (folder / FOLDERS[corpus]).symlink_to((DATA / corpus / FOLDERS[corpus]).resolve(), target_is_directory=True)
    else:
        _write_lines(folder / f"{corpus}.jsonl", rows_of(corpus))
    if corpus in _EXTRA_FILES:
        _EXTRA_FILES[corpus](folder)
    return folder


def _write_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _newswire(folder: Path) -> None:
    """The sample in every format that is read, in parts of odd sizes, and with what is asked about it."""
    shutil.copy(EXAMPLES / "newswire.jsonl", folder / "newswire.jsonl")
    data, rows = (folder / "newswire.jsonl").read_bytes(), rows_of("newswire")
    (folder / "newswire.jsonl.gz").write_bytes(gzip.compress(data, mtime=0))
    with pa.output_stream(str(folder / "newswire.jsonl.zst"), compression="zstd") as compressed:
        compressed.write(data)
    table = pa.Table.from_pylist(rows)
    with (folder / "newswire.csv").open("w", encoding="utf-8", newline="") as text:
        _write_csv(csv.writer(text), rows)
    with (folder / "newswire.tsv").open("w", encoding="utf-8", newline="") as text:
        _write_csv(csv.writer(text, delimiter="\t"), rows)
    pyarrow.parquet.write_table(table, folder / "newswire.parquet", row_group_size=17)
    pyarrow.feather.write_feather(table, folder / "newswire.feather", chunksize=23)
    with pa.ipc.new_file(str(folder / "newswire.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=29)
    (folder / "parts").mkdir()
    for name, begin, end in (("a", 0, 1), ("b", 1, 50), ("c", 50, 199)):
        _write_lines(folder / "parts" / f"{name}.jsonl", rows[begin:end])
    shutil.copy(EXAMPLES / "newswire-labels.csv", folder / "labels.csv")
    _families(folder / "families.csv", rows)
    # Asked about the sample: an item of its own, one with other words in it, and one that nothing is like.
    first = rows[0]["text"]
    (folder / "same.txt").write_text(first, encoding="utf-8")
    (folder / "like.txt").write_text(first.replace("police", "officers").replace("Monday", "Sunday"), encoding="utf-8")
    (folder / "unlike.txt").write_text("Nothing of this was ever in the news at all.", encoding="utf-8")


def _families(path: Path, rows: Rows) -> None:
    """Labels of all pairs, by the families that the sample was written with."""
    with path.open("w", encoding="utf-8", newline="") as text:
        out = csv.writer(text)
        out.writerow(["id1", "id2", "label"])
        for j, right in enumerate(rows):
            for left in rows[:j]:
                out.writerow([left["id"], right["id"], int(left["family"] == right["family"] != "")])


def _write_csv(out: Any, rows: Rows) -> None:
    out.writerow(rows[0])
    out.writerows(row.values() for row in rows)


def _labels(corpus: str) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        shutil.copyfile(DATA / corpus / "pairs.csv", folder / "pairs.csv")

    return copy


def _reuters(folder: Path) -> None:
    (folder / "whole.jsonl.gz").symlink_to((DATA / "reuters" / "reuters.jsonl.gz").resolve())


_EXTRA_FILES: dict[str, Callable[[Path], None]] = {
    "newswire": _newswire,
    "clough": _labels("clough"),
    "cornell": _labels("cornell"),
    "msrp": _labels("msrp"),
    "reuters": _reuters,
}
