"""Files and requests changed at random, and what must hold of each: it is read, or refused in one sentence.

``python tests/fuzzing.py --count 1000 [--seed 1] [--kinds csv,index]`` tries each kind with so many inputs, and prints
what was found. Inputs are tried in worker processes: one that dies or hangs costs one input, which is then named, and
``--kinds KIND --first NUMBER --count 1`` tries it again.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import resource
import selectors
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

#: Seconds for one input, bytes of memory beside those of the file, and how many for each byte of it.
LIMIT_SECONDS = 120.0
LIMIT_BYTES, BYTES_FOR_A_BYTE = 400_000_000, 2_000

WORDS = [
    "harbour",
    "board",
    "voted",
    "to",
    "widen",
    "the",
    "channel",
    "naïve",
    "中国股市",
    "فلم",
    "🌊",
    "e\u0301",
    "Ⅷ",
    "-",
]
#: What hostile and careless writers put into files.
TOKENS = [
    *(b"null", b"{}", b"[]", b'""', b"NaN", b"Infinity", b"-0", b"1e999", b"true", b"\\u0000", b"\\ud800", b"\\"),
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\r",
        b"\r\n",
        b"\n",
        b"\n\n",
    ),
    *(b'"', b'""', b"'", b",", b"\t", b";", b"{", b"}", b"[" * 3000, b'{"a":' * 3000, b"]", b":", b"=", b"#", b"[[a]]"),
    *(b"9" * 5000, b"-1", b"0", b"255", b"65536", b"4294967296", b"9223372036854775808", b"18446744073709551616"),
    *(b"1e400", b"0.1", b"\xff" * 8, b"\0" * 64, b"\x7f\xff\xff\xff", b"../../x", b"/dev/zero", b"a" * 10_000),
    *(b"<a>", b"</a>", b"<!--", b"-->", b"<![CDATA[", b"&lt;", b"&#0;", b"&#x110000;", b"<!ENTITY a 'b'>", b"<html>"),
    *(b"PK\x03\x04", b"PAR1", b"ARROW1\0\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9", b"SQLite format 3\0"),
]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def mutated(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Return data with one to four changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        data = rng.choice(CHANGES)(data, rng, others)
        if len(data) > 1_000_000:
            return data[:1_000_000]
    return data


def _place(data: bytes, rng: random.Random) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(rng.expovariate(1 / 20)) + 1)


def _flip(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8]) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    begin, end = _place(data, rng)
    return rng.choice([data[:begin], data[begin:], data[:begin] + data[end:]])


def _repeat(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    begin, end = _place(data, rng)
    return data[:begin] + data[begin:end] * rng.choice([2, 2, 3, 50]) + data[end:]


def _splice(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    (begin, end), (first, last) = _place(data, rng), _place(other, rng)
    return rng.choice([data[:begin] + other[first:], data[:begin] + other[first:last] + data[end:], data + other])


def _insert(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    begin, end = _place(data, rng)
    return data[:begin] + rng.choice(TOKENS) + data[rng.choice([begin, end]) :]


def _renumber(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    numbers = list(NUMBER.finditer(data))[:500]
    if not numbers:
        return _insert(data, rng, others)
    found = rng.choice(numbers)
    return data[: found.start()] + rng.choice(TOKENS) + data[found.end() :]


def _overwrite(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    begin, end = _place(data, rng)
    return data[:begin] + rng.choice([rng.randbytes(end - begin), bytes(end - begin)]) + data[end:]


CHANGES = (_flip, _flip, _cut, _repeat, _splice, _insert, _insert, _renumber, _overwrite)


class Subject(NamedTuple):
    """A kind of file: seeds, and what is done with a changed one.

    ``make`` makes the seeds in a folder; ``ask`` changes one, uses it in a folder, and raises ``AssertionError`` if
    what was found is wrong. Errors of the package are answers.
    """

    make: Callable[[Path], Any]
    ask: Callable[[Any, random.Random, Path], None]


def sample_texts(count: int = 30) -> list[str]:
    rng = random.Random(5)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(4, 25))) for _ in range(count)]
    return [*texts, *texts[:5], texts[0] + " today", ""]


def sample_rows() -> list[dict[str, Any]]:
    return [
        {"id": f"d{number}", "text": text, "date": f"2024-01-{number % 28 + 1:02d}", "score": number}
        for number, text in enumerate(sample_texts())
    ]


def _lines() -> bytes:
    return "".join(
        json.dumps(row, ensure_ascii=number % 2 == 0) + "\n" for number, row in enumerate(sample_rows())
    ).encode()


def _delimited(delimiter: str) -> bytes:
    import csv

    out = io.StringIO()
    writer = csv.DictWriter(out, ["id", "text", "date", "score"], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(sample_rows())
    return out.getvalue().encode()


def _arrow(kind: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(sample_rows())
    sink = io.BytesIO()
    if kind == "parquet":
        table = table.set_column(3, "score", table["score"].dictionary_encode())
        pq.write_table(table, sink, row_group_size=11, write_page_checksum=True)
    else:
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=11):
                writer.write_batch(batch)
    return sink.getvalue()


def _page() -> bytes:
    body = "".join(f"<p>{text}</p>\n" for text in sample_texts(6))
    head = "<!doctype html><html><head><title>A</title></head><body><nav>x</nav>"
    return f"{head}<main>{body}</main></body></html>".encode()


def _warc(kind: str) -> bytes:
    records = []
    for number, text in enumerate(sample_texts(8)):
        body = f"<html><head><title>{number}</title></head><body><p>{text}</p></body></html>".encode()
        content = (
            text.encode() if kind == "conversion" else b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
        )
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
            f"WARC-Target-URI: https://a.example/{number}\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n"
            f"Content-Type: {'text/plain' if kind == 'conversion' else 'application/http; msgtype=response'}\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        records.append(head.encode() + content + b"\r\n\r\n")
    return b"".join(records)


def _mail(number: int, text: str) -> bytes:
    from email.message import EmailMessage

    message = EmailMessage()
    message["From"], message["To"] = "a@x.example", "b@x.example"
    message["Subject"], message["Message-ID"] = f"Re: {text[:20]}", f"<{number}@x.example>"
    message["Date"] = "Tue, 02 Jan 2024 03:04:05 +0100"
    message.set_content(text + "\n", cte=("base64", "quoted-printable")[number % 2])
    if number % 3 == 0:
        message.add_alternative(f"<p>{text}</p>", subtype="html")
        message.add_attachment(b"x" * 100, maintype="image", subtype="png", filename="a.png")
    return bytes(message)


def _mbox() -> bytes:
    mails = [_mail(number, text) for number, text in enumerate(sample_texts(6))]
    return b"".join(b"From a@x.example Tue Jan  2 03:04:05 2024\n" + mail + b"\n" for mail in mails)


def _subtitles() -> bytes:
    return "".join(
        f"{number}\n00:00:{number:02d},000 --> 00:00:{number + 1:02d},000\n{text}\n\n"
        for number, text in enumerate(sample_texts(8), 1)
    ).encode()


def documents(name: str, data: Callable[[], bytes], **choices: Any) -> Subject:
    """A file of documents: every record is kept, dropped or rejected."""

    def ask(seeds: list[bytes], rng: random.Random, folder: Path) -> None:
        import neardup as nd

        data = mutated(seeds[0], rng, seeds)
        if name.endswith((".gz", ".zst", ".bz2", ".xz")) and rng.random() < 0.7:
            data = compressed(mutated(plain, rng, [plain]), name)
        path = folder / name
        path.write_bytes(data)
        how: dict[str, Any] = {"ids": rng.choice(["column", "rows", "rows"]), "allow_torn": rng.random() < 0.5}
        summary = nd.dedup_files(path, threads=1, features="words:2", **how, **choices).summary
        assert summary["kept"] + summary["dropped"] == summary["documents"], summary
        found = summary["documents"] + sum(summary.get("rejected", {}).values())
        # By their first bytes, some are not what their names say, and nothing can be read of them.
        if name in ("docs.csv", "docs.tsv") and b'"' not in data and b"\0" not in data[:4] and not summary.get("torn"):
            # The header is not a record.
            expected_records(found, max(sum(bool(line.strip(b"\r")) for line in data.split(b"\n")) - 1, 0))
        if name == "docs.jsonl" and not data.startswith((b"\xff", b"\xfe", b"\0")):
            expected = sum(bool(line.strip()) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
            expected_records(found, expected)

    plain = _delimited(",") if ".csv." in name else _lines()
    return Subject(lambda folder: [data(), plain], ask)


def expected_records(found: int, expected: int) -> None:
    assert found == expected, f"{found} of {expected} records"


def compressed(data: bytes, name: str) -> bytes:
    import zstandard

    if name.endswith(".gz"):
        return gzip.compress(data, 1)
    if name.endswith(".xz"):
        return lzma.compress(data, preset=0)
    return bz2.compress(data, 1) if name.endswith(".bz2") else zstandard.compress(data)


def make_commands(folder: Path) -> Any:
    return {
        "docs.jsonl": _lines(),
        "docs.csv": _delimited(","),
        "docs.tsv": _delimited("\t"),
        "docs.parquet": _arrow("parquet"),
        "docs.arrow": _arrow("arrow"),
        "docs.jsonl.gz": compressed(_lines(), ".gz"),
        "list.mbox": _mbox(),
        "crawl.warc": _warc("response"),
    }


def ask_commands(seeds: dict[str, bytes], rng: random.Random, folder: Path) -> None:
    """A command ends by 0, 2 or 3, says why in one line, and leaves no output if it is refused."""
    from click.testing import CliRunner

    from neardup.cli.app import app

    name = rng.choice(list(seeds))
    path, output = folder / name, folder / rng.choice(["out.jsonl", "out.csv", "out.parquet", "out.arrow"])
    path.write_bytes(mutated(seeds[name], rng, list(seeds.values())))
    more: list[list[str]] = [[], ["--ids", "rows"], ["--allow-torn", "--ids", "rows"], ["--strict"]]
    options = ["--threads", "1", *rng.choice(more)]
    commands = [
        *[["dedup"], ["dedup", "--json"], ["dedup", "--quarantine", str(folder / "no.jsonl")], ["dedup", "--annotate"]],
        *[["pairs"], ["similar", "--k", "2"]],
    ]
    command = [*rng.choice(commands), str(path), "-o", str(output), *options]
    result = CliRunner().invoke(app, command, prog_name="neardup")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 2, 3), result.output[-500:]
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        said = [line for line in result.stderr.splitlines() if not line.startswith("neardup: rejected: ")]
        assert said[-1].startswith("neardup: "), said
        assert not output.exists(), f"{output.name} was written"


def make_index(folder: Path) -> Any:
    import neardup as nd

    texts = sample_texts(120)
    kinds: dict[str, dict[str, Any]] = {
        "sets": {"features": "words:1", "threshold": 0.5},
        "bits": {"signature": "simhash", "measure": "hamming", "threshold": 6},
    }
    for name, choices in kinds.items():
        ids = [f"d{number}" for number in range(len(texts))]
        index = nd.build_index({"id": ids[:60], "text": texts[:60]}, folder / name, threads=1, **choices)
        index.add({"id": ids[60:], "text": texts[60:]}, threads=1).remove(["d2", "d70"])
    return folder


def ask_index(seeds: Path, rng: random.Random, folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent / "index"))
    from damage import answers, data_files, repair, seal

    from neardup.index.manifest import MANIFEST

    place = folder / "index"
    shutil.copytree(seeds / rng.choice(["sets", "sets", "bits"]), place)
    repaired = rng.random() < 0.7
    for _ in range(rng.choice([1, 1, 2])):
        files = data_files(place)
        file = rng.choice(files)
        data = file.read_bytes()
        same_size = rng.random() < 0.6
        changed = (_flip if same_size else mutated)(data, rng, [other.read_bytes() for other in files[:3]])
        if same_size and rng.random() < 0.5:
            at = rng.randrange(max(1, len(data) // 8)) * 8
            changed = (
                data[:at] + rng.choice([b"\xff" * 8, bytes(8), rng.randbytes(8), b"\xff\xff\xff\x7f"]) + data[at + 8 :]
            )
        file.write_bytes(changed)
        if file.name == MANIFEST and repaired:
            try:
                content = json.loads(changed)
                content.pop("digest", None)
                seal(place, content)
            except (ValueError, AttributeError, RecursionError, TypeError):
                pass
    if repaired:
        try:
            repair(place)
        except Exception:  # the manifest cannot be repaired
            repaired = False
    expected_errors_only(answers(place, sample_texts()[:4], folder / "copy"))


def expected_errors_only(found: dict[str, Any]) -> None:
    for answer in found.values():
        if isinstance(answer, Exception):
            one_sentence(answer)


def one_sentence(error: BaseException) -> None:
    text = str(error)
    assert text, "an error without words"
    assert "\n" not in text, f"more than one line: {text[:300]!r}"
    assert len(text) < 3000, f"a sentence of {len(text):,} characters: {text[:200]!r}"


def make_classifier_file(folder: Path) -> Any:
    from classifiers import DATED, FACTS, SETS, WEIGHED, make_classifier

    from neardup.classifier.classifier import pack_classifier

    made = [make_classifier(SETS), make_classifier(FACTS, "rbf"), make_classifier(WEIGHED), make_classifier(DATED)]
    return [pack_classifier(classifier) for classifier in made]


#: Values that no field expects.
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 1 << 31, 1 << 62, 1 << 63, 1 << 70, -(1 << 63), 10**30, 0.0, -0.0, 0.5, 1e-300),
    *(1e300, float("inf"), float("-inf"), float("nan"), "", " ", "a", "words:1", "words:999999999", "words:5:5:5"),
    *(
        "qgrams:3",
        "simhash",
        "minhash:1000000",
        "sketch:8",
        "terms:64",
        "idf",
        "jaccard",
        "hamming",
        "cosine",
        "euclidean",
    ),
    *(
        "jaccard(words:1) >= 0.5",
        "edit >= 0.9",
        "semantic >= 0.5",
        "df:1:0.5",
        "idf:0:1",
        "words",
        "raw",
        "compact",
        "lsh",
    ),
    *(
        "\0",
        "\ud7ff\U0010ffff",
        "a" * 5000,
        "9" * 30,
        "1/0",
        "nan",
        "en,de",
        "xx",
        "none",
        "spots",
        "checksum:md5",
        "html",
    ),
    *([], {}, [[]], {"a": 1}, [0] * 100, [float("nan")], "2024-01-01", "../../x"),
]


def changed_leaf(content: Any, rng: random.Random) -> Any:
    """Return JSON with another value at some place."""
    if isinstance(content, dict) and content and rng.random() < 0.9:
        name = rng.choice(list(content))
        if rng.random() < 0.1:
            return {key: value for key, value in content.items() if key != name}
        return content | {name: changed_leaf(content[name], rng)}
    if isinstance(content, list) and content and rng.random() < 0.9:
        at = rng.randrange(len(content))
        return [*content[:at], changed_leaf(content[at], rng), *content[at + 1 :]]
    return rng.choice(VALUES)


def sealed_classifier(entries: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Change the manifest or numbers of arrays, and write the fingerprint that fits, if it can be computed."""
    from neardup.classifier.classifier import _classifier

    manifest = json.loads(entries["manifest.json"])
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.6:
            manifest = changed_leaf(manifest, rng)
        else:
            name = rng.choice([name for name in entries if name.endswith(".npy")])
            data = bytearray(entries[name])
            at = rng.randrange(128, len(data)) if len(data) > 128 else 0
            data[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\0\0\0\0\0\0\xf8\x7f", rng.randbytes(8)])
            entries[name] = bytes(data)[: len(entries[name])]
    try:
        manifest["fingerprint"] = _classifier(manifest, entries).fingerprint
    except Exception:  # then it is refused as it is
        manifest = manifest if isinstance(manifest, dict) else {}
    return entries | {"manifest.json": json.dumps(manifest).encode()}


def ask_classifier(seeds: list[bytes], rng: random.Random, folder: Path) -> None:
    import zipfile

    import neardup as nd
    from neardup.classifier.classifier import _digest

    data = rng.choice(seeds)
    way = rng.randrange(4)
    if way == 0:
        data = mutated(data, rng, seeds)
    elif way == 1:
        body = mutated(data[:-64], rng, seeds)
        data = body + _digest(body)
    else:
        # Whole entries, with sizes that fit.
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        if rng.random() < 0.7:
            entries = sealed_classifier(entries, rng)
        else:
            name = rng.choice(list(entries))
            entries[name] = mutated(entries[name], rng, list(entries.values()))
        buffer = io.BytesIO()
        with zipfile.ZipFile(
            buffer, "w", zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
        ) as archive:
            archive.comment = b"0" * 64
            for name, content in entries.items():
                archive.writestr(name, content)
        body = buffer.getvalue()[:-64]
        data = body + _digest(body)
    path = folder / "classifier.neardup"
    path.write_bytes(data)
    classifier = nd.load_classifier(path)
    rows = {name: [row[name] for row in sample_rows()[:12]] for name in ("id", "text", "date")}
    rows["title"] = rows["id"]
    nd.dedup(rows, classifier=classifier, threads=1, force_domain=True)
    repr(classifier)
    assert classifier.working_point is not None


def make_recipes(folder: Path) -> Any:
    import neardup as nd
    from neardup.recipe.named import names

    return [nd.load_recipe(name).to_toml().encode() for name in names()]


def ask_recipe(seeds: list[bytes], rng: random.Random, folder: Path) -> None:
    import neardup as nd

    path = folder / "recipe.toml"
    data = mutated(rng.choice(seeds), rng, seeds)
    if rng.random() < 0.6:
        fields = tomllib.loads(rng.choice(seeds).decode())
        for _ in range(rng.choice([1, 1, 2])):
            fields[rng.choice(list(fields))] = rng.choice(VALUES)
        # JSON is nearly TOML; what is not is a test, too.
        data = "".join(f"{name} = {json.dumps(value).lower()}\n" for name, value in fields.items()).encode()
    path.write_bytes(data)
    recipe = nd.load_recipe(path)
    path.write_text(recipe.to_toml(), "utf-8")
    assert nd.load_recipe(path) == recipe, "it is not what it was written from"
    assert recipe.in_words()
    assert recipe.fingerprint
    nd.dedup(sample_texts(12), recipe=recipe.changed(keep="first"), threads=1)


def make_labels(folder: Path) -> Any:
    from neardup.labels.store import Judgement, LabelStore

    table = b'id1,id2,label,labeller\nd0,d30,1,anna\nd1,d31,same,bob\nd2,d3,0,anna\n"d4",d5,?,bob\nd6,d7,,anna\n'
    lines = b"".join(
        json.dumps(dict(zip(("id1", "id2", "label", "labeller"), row.split(","), strict=True))).encode() + b"\n"
        for row in table.decode().replace('"', "").splitlines()[1:]
    )
    with LabelStore(folder / "labels.db") as store:
        store.record([Judgement(("d0", "d30"), "anna", "same"), Judgement(("d2", "d3"), "anna", "different")])
        store.record([Judgement(("d1", "d31"), "bob", "skip"), Judgement(("d4", "d5"), "bob", "unsure")])
    return {
        "l.csv": table,
        "l.tsv": table.replace(b",", b"\t"),
        "l.jsonl": lines,
        "l.db": (folder / "labels.db").read_bytes(),
    }


def ask_labels(seeds: dict[str, bytes], rng: random.Random, folder: Path) -> None:
    import neardup as nd
    from neardup.labels.store import Judgement, LabelStore

    name = rng.choice(list(seeds))
    path = folder / name
    path.write_bytes(seeds[name])
    if name == "l.db" and rng.random() < 0.7:
        change_rows(path, rng)
    else:
        path.write_bytes(mutated(seeds[name], rng, list(seeds.values())))
        if rng.random() < 0.2 and name != "l.db":
            path = folder / f"{name}.gz"
            path.write_bytes(gzip.compress(mutated(seeds[name], rng, list(seeds.values()))))
    if name == "l.db":
        with LabelStore(path) as store:
            store.judgements()
            store.open_pairs()
            store.skipped("anna")
            store.record([Judgement(("d8", "d9"), "anna", "same")])
            store.undo("bob")
    data = {"id": [row["id"] for row in sample_rows()], "text": sample_texts()}
    nd.compare(data, path, recipes=["default"], threads=1, ignore_unknown=True)


def change_rows(path: Path, rng: random.Random) -> None:
    """Change some cells of a SQLite file, its schema or its header, by SQL."""
    values = [
        "NULL",
        "''",
        "x'ff00'",
        "-1",
        "9223372036854775807",
        "1e300",
        "'zzz'",
        "'{\"a\": [1]}'",
        "cast(x'ff' as text)",
        "0",
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for _ in range(rng.choice([1, 1, 2, 3])):
            table = rng.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            if not columns:  # it was dropped
                continue
            statement = rng.choice(
                [
                    f'UPDATE "{table}" SET "{rng.choice(columns)}" = {rng.choice(values)}',
                    f'UPDATE "{table}" SET "{rng.choice(columns)}" = {rng.choice(values)} WHERE rowid % 2 = 0',
                    f'DELETE FROM "{table}"',
                    f'DELETE FROM "{table}" WHERE rowid % 2 = 0',
                    f'DROP TABLE "{table}"',
                    f'ALTER TABLE "{table}" RENAME TO "other"',
                    f'ALTER TABLE "{table}" ADD COLUMN "other"',
                    f"PRAGMA user_version = {rng.choice(['0', '99', '-1'])}",
                    f'CREATE TRIGGER t{rng.randrange(9)} AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END',
                ]
            )
            try:
                connection.execute("PRAGMA ignore_check_constraints = ON")
                connection.execute("PRAGMA writable_schema = ON")
                connection.execute(statement)
            except sqlite3.Error:
                continue


FLOW: dict[str, Any] = {"features": "words:2", "threshold": 0.6, "window": "endless"}


def make_flow(folder: Path) -> Any:
    import neardup as nd

    with closing(nd.Index(path=folder / "flow.db", keep_texts=True, now=lambda: 1_700_000_000.0, **FLOW)) as index:
        for row in sample_rows():
            if row["text"]:
                index.add(nd.Document(row["id"], row["text"]))
    return (folder / "flow.db").read_bytes()


def ask_flow(seed: bytes, rng: random.Random, folder: Path) -> None:
    import neardup as nd

    path = folder / "flow.db"
    path.write_bytes(seed)
    if rng.random() < 0.6:
        change_rows(path, rng)
    else:
        path.write_bytes(mutated(seed, rng, [seed[:4096]]))
    with closing(nd.Index(path=path, keep_texts=True, now=lambda: 1_700_000_100.0, **FLOW)) as index:
        index.add(nd.Document("new", sample_texts()[0]))
        index.query(sample_texts()[1])
        for call in (
            lambda: index.verdict_of("d1"),
            lambda: index.text_of("d1"),
            lambda: index.release("d30", by="me"),
        ):
            try:
                call()
            except nd.NeardupError as error:
                one_sentence(error)


def ask_test_set(seeds: list[bytes], rng: random.Random, folder: Path) -> None:
    import neardup as nd

    path = folder / "test.jsonl"
    path.write_bytes(mutated(seeds[0], rng, seeds))
    nd.check_contamination(sample_texts(), nd.open_files(path), ngrams=3, min_words=3, threads=1)


def make_items(folder: Path) -> Any:
    sys.path.insert(0, str(Path(__file__).parent / "items"))
    from samples import SAMPLES

    return [
        (name, data if isinstance(data, bytes) else data.encode()) for name, (data, _, _) in sorted(SAMPLES.items())
    ]


def ask_items(seeds: list[tuple[str, bytes]], rng: random.Random, folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent / "items"))
    from samples import item_fields, read_file

    name, data = rng.choice(seeds)
    found, items = read_file(
        rng.choice([name, "x", "x.json", "x.xml"]), mutated(data, rng, [data for _, data in seeds])
    )
    item_fields(items)
    for part in found.broken_parts:
        assert "\n" not in str(part)


_SERVICE: list[Any] = []


def make_bodies(folder: Path) -> Any:
    import httpx

    from neardup.service.app import Service

    service = Service(str(folder / "news.db"))
    service.__enter__()
    _SERVICE.extend([service, httpx.Client(base_url=service.address, timeout=LIMIT_SECONDS)])
    documents = [
        {"id": row["id"], "text": row["text"] or "x", "timestamp": row["date"], "title": "t"} for row in sample_rows()
    ]
    return [json.dumps({"documents": documents[:5]}).encode(), json.dumps({"left": "a b", "right": "a c"}).encode()]


def ask_bodies(seeds: list[bytes], rng: random.Random, folder: Path) -> None:
    client = _SERVICE[1]
    path = rng.choice(
        ["/v1/indexes/main/documents", "/v1/indexes/main/documents?mode=check", "/v1/explain", "/v1/pairs"]
    )
    kind = rng.choice(["application/json"] * 5 + ["text/plain", "application/x-ndjson"])
    answer = client.post(path, content=mutated(rng.choice(seeds), rng, seeds), headers={"content-type": kind})
    assert answer.status_code < 500, (answer.status_code, answer.text[:300])
    assert "Traceback" not in answer.text
    if answer.status_code >= 400:
        assert "\n" not in answer.json()["detail"], answer.text[:300]
    assert client.get("/healthz").status_code == 200


SUBJECTS: dict[str, Subject] = {
    "jsonl": documents("docs.jsonl", _lines),
    "csv": documents("docs.csv", lambda: _delimited(",")),
    "tsv": documents("docs.tsv", lambda: _delimited("\t")),
    "parquet": documents("docs.parquet", lambda: _arrow("parquet")),
    "arrow": documents("docs.arrow", lambda: _arrow("arrow")),
    "arrows": documents("docs.arrows", lambda: _arrow("arrows")),
    "text": documents("docs.txt", lambda: "\n".join(sample_texts()).encode()),
    "html": documents("page.html", _page, content="tags"),
    "gz": documents("docs.jsonl.gz", lambda: compressed(_lines(), ".gz")),
    "zst": documents("docs.jsonl.zst", lambda: compressed(_lines(), ".zst")),
    "bz2": documents("docs.csv.bz2", lambda: compressed(_delimited(","), ".bz2")),
    "xz": documents("docs.jsonl.xz", lambda: compressed(_lines(), ".xz")),
    "warc": documents("crawl.warc", lambda: _warc("response"), content="tags"),
    "wet": documents("crawl.wet", lambda: _warc("conversion")),
    "mail": documents("mail.eml", lambda: _mail(3, sample_texts()[0])),
    "mbox": documents("list.mbox", _mbox),
    "subtitles": documents("film.srt", _subtitles),
    "commands": Subject(make_commands, ask_commands),
    "index": Subject(make_index, ask_index),
    "classifier": Subject(make_classifier_file, ask_classifier),
    "recipe": Subject(make_recipes, ask_recipe),
    "labels": Subject(make_labels, ask_labels),
    "flow": Subject(make_flow, ask_flow),
    "test set": Subject(lambda folder: [_lines()], ask_test_set),
    "items": Subject(make_items, ask_items),
    "bodies": Subject(make_bodies, ask_bodies),
}
#: What is wrong on purpose, to see that it is found.
WRONG: dict[str, Callable[[], object]] = {
    "error": lambda: [].pop(),
    "signal": os.abort,
    "hang": lambda: time.sleep(3000),
    "memory": lambda: len(b"x" * (LIMIT_BYTES + (1 << 28))),
    "lost": lambda: expected_records(1, 2),
}


def _wrong(fail: Callable[[], object]) -> Subject:
    def ask(seeds: Any, rng: random.Random, folder: Path) -> None:
        fail()

    return Subject(lambda folder: None, ask)


SUBJECTS_AND_WRONG = SUBJECTS | {name: _wrong(fail) for name, fail in WRONG.items()}


class Fault(NamedTuple):
    """An input that was neither read nor refused in one sentence."""

    kind: str
    number: int
    what: str


@contextmanager
def _scratch() -> Iterator[Path]:
    # In memory: nothing is lost if the power fails, and much is synced.
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def _peak_memory() -> int:
    """Return the most memory that this process held at a time, in bytes.

    Not ``ru_maxrss``, which a new process inherits from the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def try_one(kind: str, number: int, seed: int, seeds: Any) -> str:
    """Try an input; return what was wrong, or nothing."""
    from neardup.errors import NeardupError

    rng = random.Random(f"{kind} {number} {seed}")
    before = _peak_memory()
    with _scratch() as folder:
        try:
            SUBJECTS_AND_WRONG[kind].ask(seeds, rng, folder)
        except NeardupError as error:
            try:
                one_sentence(error)
            except AssertionError as wrong:
                return str(wrong)
        except AssertionError as wrong:
            return f"wrong: {wrong} ({traceback.extract_tb(wrong.__traceback__)[-1].name})"
        except BaseException as error:
            return "".join(traceback.format_exception(error)[-4:])[-1500:]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    grown = _peak_memory() - before
    if grown > LIMIT_BYTES + BYTES_FOR_A_BYTE * size:
        return f"took {grown:,} bytes of memory for {size:,}"
    return ""


def work(kinds: list[str], first: int, count: int, seed: int, skipped: int) -> None:
    """Try inputs in this process; tell the parent of each before it is tried, and what was found."""
    import warnings

    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with _scratch() as folder:
        for place, kind in enumerate(kinds):
            if skipped >= (place + 1) * count:
                continue
            (folder / str(place)).mkdir()
            seeds = SUBJECTS_AND_WRONG[kind].make(folder / str(place))
            for number in range(max(skipped - place * count, 0), count):
                out.write(f"{place * count + number}\n")
                if what := try_one(kind, first + number, seed, seeds):
                    out.write(json.dumps(what) + "\n")
        out.write("end\n")
        out.flush()
        # A service would wait for its threads.
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def fuzz(kinds: list[str], count: int, *, first: int = 0, seed: int = 1, limit: float = LIMIT_SECONDS) -> list[Fault]:
    """Try so many inputs of each kind in a process of its own, which is replaced if it dies; return what was found."""
    found: list[Fault] = []
    done = 0
    while done < count * len(kinds):
        numbers = ["--first", first, "--count", count, "--seed", seed, "--skipped", done]
        command = [sys.executable, __file__, "--work", "--kinds", ",".join(kinds), *map(str, numbers)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
            progress = _follow(process, limit)
            found += [Fault(kinds[at // count], first + at % count, what) for at, what in progress.wrong]
            if progress.end == "end":
                break
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-1500:]
        # Before its first input, it may have failed to make the seeds.
        at = done if progress.at is None else progress.at
        found.append(Fault(kinds[at // count], first + at % count, f"{progress.end}: {said}"))
        done = at + 1
    return found


class Progress(NamedTuple):
    """What a worker did: the input it was at, what was wrong with which, and its end."""

    at: int | None
    wrong: list[tuple[int, str]]
    end: str


def _follow(process: subprocess.Popen[bytes], limit: float) -> Progress:
    """Read what a worker says until it ends or hangs."""
    at: int | None = None
    wrong: list[tuple[int, str]] = []
    assert process.stdout is not None
    buffer = b""
    with process, selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while True:
            # Before the first input, kernels may be compiled.
            if not waiting.select(limit if at is not None else limit + 300):
                process.kill()
                return Progress(at, wrong, "it hangs")
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return Progress(at, wrong, f"its process ended by {process.wait()}")
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                if line == b"end":
                    return Progress(at, wrong, "end")
                if line.startswith(b'"'):
                    wrong.append((at or 0, json.loads(line)))
                else:
                    at = int(line)


def main() -> int:
    """Try what the arguments say; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("count", 100), ("first", 0), ("seed", 1), ("skipped", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kinds", default=",".join(SUBJECTS))
    parser.add_argument("--work", action="store_true")
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.kinds.split(","), chosen.first, chosen.count, chosen.seed, chosen.skipped)
    total = 0
    for kind in chosen.kinds.split(","):
        begin = time.monotonic()
        faults = fuzz([kind], chosen.count, first=chosen.first, seed=chosen.seed)
        total += len(faults)
        print(f"{kind}: {chosen.count:,} inputs, {len(faults)} faults, {time.monotonic() - begin:.0f} s", flush=True)
        for fault in faults:
            print(f"--- {fault.kind} {fault.number}\n{fault.what}", flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
