"""Outputs on an object store: a real S3 server on this machine, where the packages of one are installed."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from making import ROWS, encoded
from pyarrow import fs
from saying import says

import neardup as nd
from neardup.documents import check_output, open_writer, write_table
from neardup.errors import OutputError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="moto, an S3 server, is not installed")

_WAITED = 120


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        for _ in range(10 * _WAITED):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        running.kill()


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The filesystem of a store with one empty bucket, ``shelf``."""
    known = {"AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in (known | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}).items():
        monkeypatch.setenv(name, value)
    found = fs.S3FileSystem(endpoint_override=server, allow_bucket_creation=True, allow_bucket_deletion=True)
    if found.get_file_info("shelf").type != fs.FileType.NotFound:
        found.delete_dir("shelf")
    found.create_dir("shelf")
    return found


def content(store: Any, path: str) -> bytes:
    with store.open_input_file(path) as file:
        return bytes(file.read())


def names(store: Any) -> list[str]:
    return sorted(info.path for info in store.get_file_info(fs.FileSelector("shelf", recursive=True)) if info.is_file)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "neardup", *arguments], capture_output=True, text=True, check=False)


def test_from_a_store_and_to_it(store: Any, tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[3], "id": 99}]
    for suffix in (".jsonl", ".parquet"):
        with store.open_output_stream(f"shelf/in/rows{suffix}") as file:
            file.write(encoded(rows, suffix))
    whole = ["dedup", "s3://shelf/in/rows.jsonl", "--duplicates", "s3://shelf/out/gone.csv", "--threshold", "1"]
    done = command(*whole, "-o", "s3://shelf/out/kept.jsonl.gz")
    assert done.returncode == 0, done.stderr
    local = command(
        *whole[:2], *whole[4:], "-o", str(tmp_path / "kept.jsonl.gz"), "--duplicates", str(tmp_path / "g.csv")
    )
    assert local.returncode == 0, local.stderr
    assert content(store, "shelf/out/kept.jsonl.gz") == (tmp_path / "kept.jsonl.gz").read_bytes()
    assert content(store, "shelf/out/gone.csv") == (tmp_path / "g.csv").read_bytes()
    again = command(*whole, "-o", "s3://shelf/out/kept.jsonl.gz")
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
    assert says(again.stderr, "exists", "--force")
    assert command(*whole, "-o", "s3://shelf/out/kept.jsonl.gz", "--force").returncode == 0


def test_a_file_for_each_input(store: Any, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.parquet"):
        (tmp_path / name).write_bytes(encoded(ROWS, name[1:]))
    inputs = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.parquet")]
    result = nd.dedup_files(inputs, ids="rows")
    result.write("s3://shelf/clean/")
    assert names(store) == ["shelf/clean/a.jsonl", "shelf/clean/b.parquet"]
    assert content(store, "shelf/clean/a.jsonl") == encoded(ROWS, ".jsonl")
    with pytest.raises(OutputError) as caught:
        result.write("s3://shelf/clean/")
    assert says(caught.value, "s3://shelf/clean/", "new name")


def test_nothing_is_there_of_what_failed(store: Any) -> None:
    table = pa.table({"text": ["a rose"] * 1000})
    writer = open_writer("s3://shelf/half.parquet", table.schema)
    writer.write(table)
    writer.discard()
    assert names(store) == []
    write_table(table, "s3://shelf/whole.parquet")
    assert names(store) == ["shelf/whole.parquet"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("s3://nowhere/kept.jsonl", ("bucket nowhere", "make it")),
        ("s3://shelf/kept", ("no suffix", ".jsonl")),
        ("file:///tmp/kept.jsonl", ("path",)),
        ("nonsense://shelf/kept.jsonl", ("nonsense://shelf/kept.jsonl",)),
        ("s3://shelf/in/rows.jsonl", ("is an input",)),
    ],
)
def test_places_that_cannot_be_written(store: Any, name: str, said: tuple[str, ...]) -> None:
    with pytest.raises(OutputError) as caught:
        check_output(name, ["s3://shelf/in/rows.jsonl"])
    assert says(caught.value, *said)
    assert "\n" not in str(caught.value)
