"""Object stores and the Hub: real servers of S3 and Google's storage on this machine, and the Hub's API by hand."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from commands import neardup, refused
from input_files import ROWS, encode_rows
from pyarrow import fs
from sentences import says

import neardup as nd
from neardup.documents import check_output, open_writer, output, write_table
from neardup.errors import OutputError

_MAX_SECONDS = 120


def require_package(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{name} is not installed")


@contextmanager
def serving(*arguments: str) -> Iterator[int]:
    """Run a module that serves on a port of this machine, the last argument; give the port once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, "-W", "ignore", "-m", *arguments, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            for _ in range(10 * _MAX_SECONDS):
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield port
        finally:
            running.kill()


class Store:
    """A store with one bucket, ``shelf``: its filesystem, and the names of its places."""

    def __init__(self, uri: str, query: str = "") -> None:
        self._begin, self._end = f"{uri}shelf/", f"?{query}" if query else ""
        self.files, _ = fs.FileSystem.from_uri(self.uri(""))

    def uri(self, path: str) -> str:
        return f"{self._begin}{path}{self._end}"

    def write(self, path: str, data: bytes) -> None:
        with self.files.open_output_stream(f"shelf/{path}") as file:
            file.write(data)

    def read(self, path: str) -> bytes:
        with self.files.open_input_file(f"shelf/{path}") as file:
            return bytes(file.read())

    def names(self) -> list[str]:
        infos = self.files.get_file_info(fs.FileSelector("shelf", recursive=True))
        return sorted(info.path.removeprefix("shelf/") for info in infos if info.is_file)


@pytest.fixture(scope="module", params=["s3", "gs"])
def server(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "gs":
        require_package("gcp_storage_emulator", "gcp-storage-emulator, a server of Google's storage,")
        options = ("start", "--host", "127.0.0.1", "--in-memory", "--default-bucket", "shelf", "--port")
        with serving("gcp_storage_emulator", *options) as port:
            query = f"scheme=http&endpoint_override=127.0.0.1%3A{port}&retry_limit_seconds=5"
            yield Store("gs://anonymous@", query)
        return
    require_package("moto", "moto, an S3 server,")
    known = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"}
    with serving("moto.server", "-H", "127.0.0.1", "-p") as port, pytest.MonkeyPatch.context() as patch:
        url = f"http://127.0.0.1:{port}"
        for name, value in (known | {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1"}).items():
            patch.setenv(name, value)
        fs.S3FileSystem(endpoint_override=url, allow_bucket_creation=True).create_dir("shelf")
        yield Store("s3://")


@pytest.fixture
def store(server: Store) -> Store:
    """The store, with an empty bucket."""
    for name in server.names():
        server.files.delete_file(f"shelf/{name}")
    return server


def test_a_store_is_read_and_written(store: Store, tmp_path: Path) -> None:
    store.write("in/rows.jsonl", encode_rows([*ROWS, {**ROWS[3], "id": 99}], ".jsonl"))
    command = ("dedup", store.uri("in/rows.jsonl"), "--threshold", "1")
    remote = ("-o", store.uri("out/kept.jsonl.gz"), "--duplicates", store.uri("out/gone.csv"))
    neardup(*command, *remote)
    neardup(*command, "-o", tmp_path / "kept.jsonl.gz", "--duplicates", tmp_path / "gone.csv")
    for name in ("kept.jsonl.gz", "gone.csv"):
        assert store.read(f"out/{name}") == (tmp_path / name).read_bytes()
    assert says(refused(*command, *remote), "exists", "--force")
    neardup(*command, *remote, "--force")


def test_a_folder_in_a_store_gets_a_file_for_each_input(store: Store) -> None:
    for name in ("in/a.jsonl", "in/b.parquet"):
        store.write(name, encode_rows(ROWS, name[4:]))
    with nd.dedup_files(store.uri("in"), ids="rows") as result:
        result.write(store.uri("clean/"))
        assert store.names() == ["clean/a.jsonl", "clean/b.parquet", "in/a.jsonl", "in/b.parquet"]
        assert store.read("clean/a.jsonl") == encode_rows(ROWS, ".jsonl")
        with pytest.raises(OutputError, match=r"clean/.* new name"):
            result.write(store.uri("clean/"))


def test_a_failed_output_leaves_nothing_in_the_store(store: Store) -> None:
    table = pa.table({"text": ["a rose"] * 1000})
    writer = open_writer(store.uri("half.parquet"), table.schema)
    writer.write(table)
    writer.discard()
    assert store.names() == []
    write_table(table, store.uri("whole.parquet"))
    assert store.names() == ["whole.parquet"]


def test_a_failed_upload_removes_the_other_files_of_a_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [str(tmp_path / f"{number}.jsonl") for number in range(20)]
    for path in inputs:
        Path(path).write_bytes(encode_rows(ROWS, ".jsonl"))
    send = output._upload

    def failing(path: str, filesystem: Any, place: str) -> None:
        if place.endswith("/11.jsonl"):
            raise OSError("the line is dead")
        send(path, filesystem, place)

    monkeypatch.setattr(output, "_upload", failing)
    with pytest.raises(OutputError, match=r"clean/.* the line is dead"):
        nd.dedup_files(inputs, ids="rows").write(store.uri("clean/"))
    assert store.names() == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../nowhere/kept.jsonl", "there is no bucket nowhere.*make it"),
        ("kept", "no suffix.*jsonl"),
        ("in/rows.jsonl", "is an input"),
        ("in/k.jsonl", "is inside the input folder"),
        ("clean/", "choose a new name"),
        ("clean/kept.jsonl", "exists: .*force"),
        ("file:///tmp/kept.jsonl", "give its path alone"),
        ("nonsense://shelf/kept.jsonl", "nonsense://shelf/kept.jsonl names no place"),
    ],
)
def test_places_that_cannot_be_written_are_refused(store: Store, name: str, message: str) -> None:
    store.write("clean/kept.jsonl", b"")
    place = name if "://" in name else store.uri(name).replace("shelf/../", "")
    with pytest.raises(OutputError, match=message):
        check_output(place, [store.uri("in" if "inside" in message else "in/rows.jsonl")])


class Hub(BaseHTTPRequestHandler):
    """What the Hub answers about one data set: its tree, bytes of a file, and commits of others."""

    protocol_version, api = "HTTP/1.1", "/api/datasets/me/news"
    files: ClassVar[dict[str, bytes]] = {"in/rows.jsonl": encode_rows(ROWS, ".jsonl")}

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        place = path.removeprefix("/datasets/me/news/resolve/main/")
        if path == self.api:
            self._answer(200, {"id": "me/news", "sha": "a" * 40, "siblings": [], "tags": []})
        elif path.startswith(f"{self.api}/tree/main"):
            tree = list(self._tree(path.removeprefix(f"{self.api}/tree/main").strip("/")))
            self._answer(200 if tree else 404, tree or {})
        elif place in self.files:
            begin, end = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part, size = self.files[place][begin : end + 1], len(self.files[place])
            self._answer(206, part, f"bytes {begin}-{begin + len(part) - 1}/{size}")
        else:
            self._answer(404, {})

    def _tree(self, folder: str) -> Iterator[dict[str, Any]]:
        start = f"{folder}/" if folder else ""
        for place in self.files:
            name, *below = place.removeprefix(start).split("/")
            if place.startswith(start):
                what = {"type": "directory", "size": 0} if below else {"type": "file", "size": len(self.files[place])}
                yield what | {"oid": "b" * 40, "path": start + name}

    def do_POST(self) -> None:
        lines = [json.loads(line) for line in self.rfile.read(int(self.headers["Content-Length"])).splitlines()]
        if self.path == f"{self.api}/preupload/main":
            files = [{"path": file["path"], "uploadMode": "regular"} for file in lines[0]["files"]]
            self._answer(200, {"files": [file | {"shouldIgnore": False} for file in files]})
            return
        for line in lines:
            if line["key"] == "file":
                self.files[line["value"]["path"]] = b64decode(line["value"]["content"])
        self._answer(200, {"success": True, "commitOid": "d" * 40, "commitUrl": f"http://hub/{'d' * 40}"})

    def _answer(self, code: int, content: Any, part: str = "") -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if code == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *details: object) -> None:
        """Say nothing."""


def test_the_hub_is_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_package("huggingface_hub", "huggingface_hub")
    constants = importlib.import_module("huggingface_hub.constants")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(Hub.files["in/rows.jsonl"])
    with nd.dedup_files(rows, ids="rows") as result:
        result.write(tmp_path / "expected.jsonl")
    monkeypatch.setenv("HF_TOKEN", "a")
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{hub.server_port}"
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", url)
        neardup("dedup", "hf://datasets/me/news/in", "-o", "hf://datasets/me/news/out/kept.jsonl", "--ids", "rows")
        hub.shutdown()
    assert Hub.files.pop("out/kept.jsonl") == (tmp_path / "expected.jsonl").read_bytes()


def test_an_upload_that_a_python_filesystem_truncates_is_an_error() -> None:
    require_package("fsspec", "fsspec")
    fsspec: Any = importlib.import_module("fsspec")
    memory: Any = importlib.import_module("fsspec.implementations.memory")

    def opened(self: Any, path: str, mode: str = "rb", **options: Any) -> Any:
        file = memory.MemoryFileSystem._open(self, path, mode, **options)

        def refuse() -> None:
            file.close = lambda: None  # the garbage collector closes again
            self.rm(path)
            raise OSError("the quota is used up")

        file.close = refuse
        return file

    refusing = type("Refusing", (memory.MemoryFileSystem,), {"_open": opened})
    fsspec.register_implementation("refusing", refusing, clobber=True)
    with pytest.raises(OutputError, match=r"shelf/kept\.jsonl.*does not have all of it"):
        write_table(pa.table({"text": ["a rose"]}), "fsspec+refusing://shelf/kept.jsonl")
