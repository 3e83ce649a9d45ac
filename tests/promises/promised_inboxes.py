"""Folders of files as they arrive, for the watcher; and what it made of them, as rows."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from promised_corpora import Rows, rows_of
from promised_digests import JSON_DIGITS, stable

_BEGIN = 1_700_000_000
_PAGE = (
    "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{title}</title></head><body>"
    "<nav><a href='/a'>News</a> <a href='/b'>Sport</a> <a href='/c'>Weather</a></nav>"
    "<article><h1>{title}</h1>{body}</article><footer>All rights reserved</footer></body></html>"
)
_FEED = "<?xml version='1.0' encoding='UTF-8'?><rss version='2.0'><channel><title>Wire</title>{items}</channel></rss>"
_ITEM = (
    "<item><guid>{guid}</guid><title>{title}</title><pubDate>{date}</pubDate><description>{body}</description></item>"
)


def inbox_of(kind: str, folder: Path) -> Path:
    """Write an inbox of a kind; files have times of change in the order they are written."""
    folder.mkdir()
    for number, (name, content) in enumerate(_INBOXES[kind](rows_of("newswire")).items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (_BEGIN + number, _BEGIN + number))
    return folder


def _wire(rows: Rows) -> dict[str, str | bytes]:
    """Items of a wire that state their times: one a file, many a file; and what is no item."""
    return {
        "desk/first.json": json.dumps(rows[0]),
        "hour.jsonl": _lines(rows[1:40]),
        "desk/second.json": json.dumps(rows[41], ensure_ascii=False),
        "day.jsonl": _lines(rows[42:120]),
        "cut.json": '{"id": "cut off',
        "partly.jsonl": _lines(rows[120:122]) + "{broken\n" + _lines(rows[122:130]),
        ".hidden.json": json.dumps(rows[150]),
        "coming.json.tmp": json.dumps(rows[151]),
    }


def _texts(rows: Rows) -> dict[str, str | bytes]:
    """Plain texts, which state no time."""
    return {f"{row['id']}.txt": f"{row['title']}\n\n{row['text']}\n" for row in rows[:12]}


def _pages(rows: Rows) -> dict[str, str | bytes]:
    """Web pages and a feed with the same articles."""
    articles = {"a": rows[0], "b": rows[4], "c": rows[0], "d": rows[7]}
    found: dict[str, str | bytes] = {
        f"{name}.html": _PAGE.format(title=row["title"], body=f"<p>{row['text']}</p>") for name, row in articles.items()
    }
    date = "Tue, 11 Mar 2025 08:0{}:00 GMT"
    items = "".join(
        _ITEM.format(guid=f"g{i}", title=row["title"], date=date.format(i), body=row["text"])
        for i, row in enumerate(rows[7:9])
    )
    return found | {"feed.xml": _FEED.format(items=items)}


def _lines(rows: Rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


_INBOXES = {"pages": _pages, "texts": _texts, "wire": _wire}


def verdicts_of(store: Path, *, timed: bool) -> list[str]:
    """Return the verdicts of a store in order of arrival; with the times of items, where they state them."""
    columns = "id, origin, kind, of, similarity, o, a, b, flag" + (", time" if timed else "")
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        found = database.execute(f"SELECT {columns} FROM documents ORDER BY serial").fetchall()  # noqa: S608
    return [_line([name, _file(origin), *more]) for name, origin, *more in found]


def _file(origin: str) -> Any:
    """Of what the store says of a file, its path; size and times are the run's."""
    with contextlib.suppress(ValueError):
        return json.loads(origin)[0]
    return origin


def _line(row: list[Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def files_in(*folders: Path) -> list[str]:
    """Return the names of all files that lie in folders."""
    return [f"{folder.name}/{path.relative_to(folder)}" for folder in folders for path in _files(folder)]


def sidecars_in(folder: Path) -> list[str]:
    """Return the evidence beside files, without the times of the run."""
    found = []
    for path in _files(folder):
        if ".neardup.json" in path.name:
            text = path.read_text("utf-8")
            for one in [json.loads(text)] if path.suffix == ".json" else map(json.loads, text.splitlines()):
                evidence = stable({key: value for key, value in one.items() if key != "time"}, JSON_DIGITS)
                found.append(_line([str(path.relative_to(folder)), evidence]))
    return found


def items_in(folder: Path) -> list[str]:
    """Return all lines of all files in a folder, each with the name of its file."""
    return [
        _line([str(path.relative_to(folder)), line])
        for path in _files(folder)
        for line in path.read_bytes().decode().splitlines()
    ]


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
