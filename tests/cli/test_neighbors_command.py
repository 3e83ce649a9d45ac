"""``neardup neighbors``: what it prints and writes, whose neighbours it shows, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import FOX, ROSE, RULES, neardup, refused, write_lines
from sentences import says

EDITED = pytest.approx(17 / 18)


def lines_of(*arguments: str | Path) -> list[list[str]]:
    header, *lines = neardup("neighbors", *arguments, "--print", *RULES).stdout.splitlines()
    assert header == "document\trank\tneighbor\tsimilarity"
    return [line.split("\t") for line in lines]


def test_neighbours_of_every_document(corpus: Path) -> None:
    result = neardup("neighbors", corpus, *RULES)
    rows = [line.split("\t") for line in result.stdout.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["fox", "1", "fox-again"],
        ["fox", "2", "fox-edited"],
        ["fox-again", "1", "fox"],
        ["fox-again", "2", "fox-edited"],
        ["fox-edited", "1", "fox"],
        ["fox-edited", "2", "fox-again"],
    ]
    assert [float(row[3]) for row in rows] == [1.0, EDITED, 1.0, EDITED, EDITED, EDITED]
    told, fewer = result.stderr.splitlines()[:2]
    assert says(told, "6 neighbours of 5 documents", "among 5")
    assert says(fewer, "9 fewer", "no other document")


def test_three_nearest_of_files_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(1, 7):
        words = FOX.split()
        (folder / f"file{number:02}.txt").write_text(" ".join(words[: 20 - 2 * number]))
    rows = neardup("neighbors", folder, "--recipe", "cornell", "--first", "1", "--print").stdout.splitlines()
    assert [row.split("\t")[:2] for row in rows[1:]] == [["file01.txt", "1"], ["file01.txt", "2"], ["file01.txt", "3"]]
    similarity = [float(row.split("\t")[3]) for row in rows[1:]]
    assert similarity == sorted(similarity, reverse=True)


def test_repeated_ids_are_refused_and_told_apart_by_their_files(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": FOX}, {"id": "b", "text": ROSE}]
    shards = [write_lines(tmp_path / f"{number}.jsonl", rows) for number in (1, 2)]
    command: list[str | Path] = ["neighbors", *shards, "--print", "--k", "1", *RULES]
    assert says(refused(*command), "2 documents", "'a'", "1.jsonl, row 0", "2.jsonl, row 0", "--ids rows", "file+id")
    one, two = (f"{shard}:a" for shard in shards)
    assert f"{one}\t1\t{two}\t1.0" in neardup(*command, "--ids", "file+id").stdout.splitlines()
    assert "0\t1\t2\t1.0" in neardup(*command, "--ids", "rows").stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--print", "--k", "5"], ("k 5", "5 documents", "at most 4")),
        (["--print", "--of", "fox-agian"], ("no document", "'fox-agian'", "close", "'fox-again', ")),
        (["--print", "--of", "zzz"], ("no document", "'zzz'", "'fox', 'rose', 'fox-again'")),
        (["--print", "--of", "fox", "--first", "1"], ("--of", "--first 1", "one of the two")),
        (["--print", "--measure", "nope"], ("measure", "'nope'", " jaccard, ")),
        (["-o", "out.xlsx"], ("out.xlsx", "suffix", ".parquet")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refusals(
    arguments: list[str], parts: tuple[str, ...], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says(refused("neighbors", corpus, *arguments), *parts)
