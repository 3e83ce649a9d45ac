"""Every writer on a full disk: one sentence that names the file and the way out, exit code 2, and nothing is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, ROSE, neardup, write_lines
from sentences import says

#: No file may grow beyond these bytes.
FULL = 100
#: A text that no compression makes shorter than that.
LONG = " ".join(f"{number:x}" for number in range(7, 10**6, 4211))
PAIRS = [(f"a{number}", f"{kind}{number}", kind) for number in range(6) for kind in "bc"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with inputs of every kind, made before the disk is full."""
    folder = tmp_path_factory.mktemp("made")
    rows: list[dict[str, Any]] = []
    for number in range(6):
        words = " ".join(f"w{number}x{place * place}" for place in range(30))
        texts = {"a": words, "b": f"{words} {FOX[: 5 + number]}", "c": f"{words[:60]} {ROSE}"}
        rows += [
            {"id": f"{kind}{number}", "text": text, "date": f"2024-01-0{number + 1}"} for kind, text in texts.items()
        ]
    write_lines(folder / "in.jsonl", rows)
    write_lines(folder / "new.jsonl", [{"id": "new", "text": LONG}])
    # What is kept of it still fits.
    same = [f'{{"id": {number}, "text": "a b c d e f"}}\n' for number in range(9)]
    (folder / "same.jsonl").write_text("".join([*same, '{"text": broken, and longer than a full disk takes}\n' * 9]))
    labels = [f"{first},{second},{int(kind == 'b')}" for first, second, kind in PAIRS]
    (folder / "labels.csv").write_text("\n".join(["id1,id2,label", *labels, ""]))
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text(LONG)
    (folder / "inbox").mkdir()
    (folder / "inbox" / "a.txt").write_text(LONG)
    (folder / "ids.txt").write_text("a1\n")
    neardup("index", "build", folder / "in.jsonl", "-o", folder / "index")
    neardup("label", folder / "in.jsonl", "--store", folder / "l.db", "--import", folder / "labels.csv", *ME)
    neardup("replay", folder / "in.jsonl", "--window", "24h", "--store", folder / "flow.db")
    return folder


ME = ("--labeller", "me")
TRAIN = (
    "train",
    "in.jsonl",
    "--labels",
    "labels.csv",
    "--vector",
    "cheap",
    "--candidate-rule",
    "jaccard(words:1)>=0.01",
)
COMPARE = ("compare", "in.jsonl", "--labels", "labels.csv", "--recipes", "default")
REPLAY = ("replay", "in.jsonl", "--window", "24h")
ADD = ("--against", "index", "--add", "-o", "out/k.jsonl")
SAME = ("dedup", "same.jsonl", "--features", "words:3", "-o", "out/k.jsonl")
ALL = ("--features", "words:1", "--threshold", "0.1")
#: A command, and the name that its message begins with.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    **{
        ending: (("dedup", "in.jsonl", "-o", f"out/k.{ending}"), f"out/k.{ending}")
        for ending in ("jsonl", "csv", "tsv", "parquet", "arrow", "jsonl.gz", "jsonl.zst", "jsonl.xz", "csv.gz")
    },
    "folder": (("dedup", "texts", "-o", "out/k/"), "out/k/"),
    **{
        f"duplicates {ending}": ((*SAME, "--duplicates", f"out/d.{ending}"), f"out/d.{ending}")
        for ending in ("csv", "jsonl", "parquet")
    },
    "summary": ((*SAME, "--summary", "out/s.json"), "out/s.json"),
    "quarantine": ((*SAME, "--quarantine", "out/q.jsonl"), "out/q.jsonl"),
    **{
        f"pairs {ending}": (("pairs", "in.jsonl", *ALL, "-o", f"out/p.{ending}"), f"out/p.{ending}")
        for ending in ("csv", "jsonl", "parquet")
    },
    "similar": (("similar", "in.jsonl", "-o", "out/s.csv"), "out/s.csv"),
    "contamination": (("contamination", "in.jsonl", "--test", "in.jsonl", "-o", "out/c.csv"), "out/c.csv"),
    "explore": (("explore", "in.jsonl", "--no-curve", "-o", "out/e.json"), "out/e.json"),
    "compare": ((*COMPARE, "-o", "out/c.csv"), "out/c.csv"),
    "audit": (("audit", "in.jsonl", "--sample-to", "out/a.csv"), "out/a.csv"),
    "train summary": ((*TRAIN, "-o", "out/c.neardup", "--summary", "out/s.json"), "out/s.json"),
    "label store": (("label", "in.jsonl", "--store", "out/l.db", "--import", "labels.csv", *ME), "out/l.db"),
    "label export": (("label", "in.jsonl", "--store", "l.db", "--export", "out/l.csv"), "l.db"),
    "index build": (("index", "build", "in.jsonl", "-o", "out/i"), "out/i"),
    "index add": (("index", "add", "index", "new.jsonl"), "index"),
    "index remove": (("index", "remove", "index", "--ids", "ids.txt"), "index/neardup-index.json"),
    "add": (("dedup", "new.jsonl", *ADD), "index"),
    "replay": ((*REPLAY, "-o", "out/v.csv"), "out/v.csv"),
    "replay originals": ((*REPLAY, "--originals", "out/o.jsonl"), "out/o.jsonl"),
    "replay store": ((*REPLAY, "--store", "out/s.db"), "out/s.db"),
    "watch store": (
        ("watch", "inbox", "--once", "--originals", "out/o", "--store", "out/w.db", "--settle", "0"),
        "out/w.db",
    ),
    "store report": (("store", "report", "flow.db", "-o", "out/f.html"), "flow.db"),
    "demo": (("demo", "out/demo"), "out/demo/newswire.jsonl"),
}


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder but the locks, what SQLite has in memory, and empty ones."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("lock", "-shm"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.stat().st_size}


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the inputs, which is the working folder, with a folder for outputs."""
    shutil.copytree(made, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    os.mkdir("out")
    return tmp_path / "place"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    name: str, place: Path, full_disk: Callable[[int | None], None]
) -> None:
    command, target = COMMANDS[name]
    before = contents(place)
    full_disk(FULL)
    message = neardup(*command, code=2).stderr.splitlines()[-1]
    full_disk(None)
    assert says(message, f"{target} cannot be written: the disk is full or a limit is reached; free some space")
    assert "None" not in message
    assert contents(place) == before
