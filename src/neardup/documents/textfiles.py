"""Text files, one document a file: the id is the path below the folder, the text is the content."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa

from neardup.documents.columnar import TARGET, fitted
from neardup.documents.inputs import Found, codec_of_bytes, is_page_name, readable
from neardup.documents.records import CUT_SHORT, NOT_UTF8, Broken, Chunk, Raw, Wanted, utf8_fault
from neardup.documents.streams import LARGEST_RECORD, Stream
from neardup.errors import InputError
from neardup.text.encoding import decode_page

_MOST_FILES = 8192
_BOM = b"\xef\xbb\xbf"
_SCHEMA = pa.schema([("id", pa.large_string()), ("text", pa.large_string())])


class TextFiles:
    """A run of text files, in order; a raw row is a file."""

    def __init__(self, files: list[Found]) -> None:
        self.files = files
        self.found = files[0]
        self.pages = sum(is_page_name(file.name) for file in files)

    def columns(self) -> dict[str, pa.DataType]:
        """Two columns: id and text."""
        return {field.name: field.type for field in _SCHEMA}

    def chunks(self, wanted: Wanted) -> Generator[Chunk, None, None]:
        """Pass one: the texts of some files a chunk."""
        first = size = 0
        for stop, found in enumerate(self.files, 1):
            size += found.size
            if size >= TARGET or stop - first >= _MOST_FILES or stop == len(self.files):
                yield _chunk_of(self.files[first:stop], wanted)
                first, size = stop, 0

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Two columns: id and text."""
        del keep
        return _SCHEMA

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: the kept files as rows of id and text."""
        ids: list[str] = []
        texts: list[str] = []
        size = 0
        for row in np.flatnonzero(keep).tolist():
            content, _ = content_of(self.files[row])
            size += len(content)
            ids.append(name_of(self.files[row]))
            texts.append(_in_utf8(self.files[row], content).decode(errors="replace"))
            if size >= TARGET:
                yield fitted(pa.table([ids, texts], schema=_SCHEMA), schema, self.found.name)
                ids, texts, size = [], [], 0
        if ids:
            yield fitted(pa.table([ids, texts], schema=_SCHEMA), schema, self.found.name)

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """Give the kept files one by one, their bytes as they are."""
        for row in np.flatnonzero(keep).tolist():
            yield Raw(row, None, content_of(self.files[row])[0])


def _chunk_of(files: list[Found], wanted: Wanted) -> Chunk:
    ids: list[str] = []
    texts: list[bytes] = []
    positions: list[int] = []
    broken: list[Broken] = []
    for row, found in enumerate(files):
        content, damage = content_of(found)
        text = _in_utf8(found, content)
        fault = utf8_fault(text)
        if damage:
            broken.append(Broken(row, CUT_SHORT, detail=damage, record=content))
        elif fault >= 0:
            broken.append(Broken(row, NOT_UTF8, detail=f"byte {fault}", record=content))
        else:
            ids.append(name_of(found))
            texts.append(text)
            positions.append(row)
    columns = {"id": pa.array(ids, pa.large_string()), "text": pa.array(texts, pa.large_binary())}
    return Chunk(
        len(files),
        columns["text"],
        columns["id"] if wanted.id else None,
        columns[wanted.order].cast(pa.large_string()) if wanted.order else None,
        np.array(positions, dtype=np.int64),
        broken,
        sum(found.size for found in files),
    )


def name_of(found: Found) -> str:
    """Id of a file's document: its path below the folder, or the name it was given by."""
    return found.relative or found.name


def _in_utf8(found: Found, content: bytes) -> bytes:
    """Return the bytes of a text file; those of a web page, which says itself how to read it, as UTF-8."""
    return decode_page(content).encode("utf-8", "replace") if is_page_name(found.name) else content


def content_of(found: Found) -> tuple[bytes, str]:
    """Content of a text file without byte order mark, and what broke it when it is compressed."""
    with readable(found.name), found.filesystem.open_input_file(found.path) as file:
        content: bytes = file.read()
    damage = ""
    codec = codec_of_bytes(content[:8])
    if codec is not None:
        stream = Stream(found, codec)
        content = stream.read(LARGEST_RECORD)
        damage = stream.damage
        stream.close()
    if len(content) >= LARGEST_RECORD:
        raise InputError(f"{found.name} is larger than {LARGEST_RECORD >> 20} MiB, the largest text allowed")
    return content.removeprefix(_BOM), damage
