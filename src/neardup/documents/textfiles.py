"""Text files, one document per file: the id is the path below the folder, the text is the content."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents.column_paths import ColumnPath
from neardup.documents.columnar import TARGET_BYTES, fit_table
from neardup.documents.compression import codec_of_bytes, foreign_format, is_archive
from neardup.documents.inputs import FEED_SUFFIXES, SUBTITLE_SUFFIXES, InputFile, is_page_name, suffixes
from neardup.documents.records import Chunk, RawRecord, ReadOptions, Reason, RecordFault, invalid_utf8_offset
from neardup.documents.streams import Stream, largest_record
from neardup.text.encoding import (
    WINDOWS_1252,
    decode_page,
    decode_utf8,
    detect_encoding,
    is_guessed,
    is_windows_1252,
)

_MAX_FILES = 8192
#: The line of a cue's times in SubRip and WebVTT.
_CUE_TIMES = re.compile(r"^[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->[^\n]*$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_REMARKS = ("NOTE", "STYLE", "REGION")
_CUE_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|<[\d:.]{5,20}>|\{\\[^{}\n]{0,200}\}")
_BOM = b"\xef\xbb\xbf"
_SCHEMA = pa.schema([("id", pa.large_string()), ("text", pa.large_string())])


class TextFiles:
    """A series of text files; each file is a raw row. ``encodings`` are those that were guessed, by names of files."""

    def __init__(self, files: list[InputFile]) -> None:
        self.encodings: dict[str, str] = {}
        self.files = files
        self.file = files[0]
        self.page_count = sum(is_page_name(file.name) for file in files)

    def columns(self) -> dict[str, pa.DataType]:
        """Return the two columns id and text."""
        return {field.name: field.type for field in _SCHEMA}

    def find_column(self, name: str) -> ColumnPath | None:
        """Return one of the two columns; None for any other name."""
        return ColumnPath(name, kind=_SCHEMA.field(name).type) if name in _SCHEMA.names else None

    def has_fractions(self, name: str, text: str) -> bool:
        """Return False: ids are paths."""
        del name, text
        return False

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield the texts of several files per chunk."""
        yield from (_chunk_of(part, options, self.encodings) for part in _parts(self.files))

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return the schema of id and text."""
        del keep
        return _SCHEMA

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept files as rows of id and text."""
        files = [self.files[row] for row in np.flatnonzero(keep).tolist()]
        for part in _parts(files):
            texts = [read_text(file).text.decode(errors="replace") for file in part]
            ids = [id_of(file) for file in part]
            yield fit_table(pa.table([ids, texts], schema=_SCHEMA), schema, self.file.name)

    def records(self, keep: np.ndarray) -> Iterator[RawRecord]:
        """Yield the kept files one by one, their bytes unchanged."""
        for row in np.flatnonzero(keep).tolist():
            yield RawRecord(row, None, read_text(self.files[row]).content)


def _parts(files: list[InputFile]) -> Iterator[list[InputFile]]:
    """Yield files in parts of about ``TARGET_BYTES``."""
    first = size = 0
    for stop, file in enumerate(files, 1):
        size += file.size
        if size >= TARGET_BYTES or stop - first >= _MAX_FILES or stop == len(files):
            yield files[first:stop]
            first, size = stop, 0


def _chunk_of(files: list[InputFile], options: ReadOptions, encodings: dict[str, str]) -> Chunk:
    ids: list[str] = []
    texts: list[bytes] = []
    positions: list[int] = []
    faults: list[RecordFault] = []
    for row, file in enumerate(files):
        found = read_text(file)
        if found.reason:
            faults.append(RecordFault(row, found.reason, detail=found.detail, record=found.content))
            continue
        ids.append(id_of(file))
        texts.append(found.text)
        positions.append(row)
        if found.encoding:
            encodings[file.name] = found.encoding
    columns = {"id": pa.array(ids, pa.large_string()), "text": pa.array(texts, pa.large_binary())}
    return Chunk(
        len(files),
        columns["text"],
        columns["id"] if options.id else None,
        columns[options.order].cast(pa.large_string()) if options.order else None,
        np.array(positions, dtype=np.int64),
        faults,
        sum(file.size for file in files),
    )


def id_of(file: InputFile) -> str:
    """Return the id of a file's document: its path below the folder, or the name of a file that was named itself."""
    return file.relative or file.name


def spoken_words(content: bytes) -> bytes:
    """Return the words of subtitles, without numbers, names and times of cues, remarks, styles and tags.

    Bytes without times of cues, or that are not UTF-8, are returned as they are.
    """
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return content
    _, *cues = _CUE_TIMES.split(text)
    if not cues:
        return content
    is_web = text.startswith("WEBVTT")
    words: list[str] = []
    for number, cue in enumerate(cues, 1):
        first, *others = (block.strip("\n") for block in _BLANK_LINE.split(cue.removeprefix("\n")))
        others = [block for block in others if block.strip()]
        name = others[-1] if others and number < len(cues) and not cue.endswith("\n\n") else "\n"
        if "\n" not in name and (is_web or name.strip().isdigit()):
            # The name or number of the next cue, directly before its times.
            others.pop()
        words += [first, *(block for block in others if not (is_web and block.startswith(_REMARKS)))]
    return _CUE_TAG.sub("", "\n".join(filter(None, words))).encode()


def notes_on(files: list[InputFile]) -> list[str]:
    """Return what users may want to know about how text files are read."""
    subtitles = [file.name for file in files if suffixes(file.name)[0] in SUBTITLE_SUFFIXES]
    feeds = [file.name for file in files if suffixes(file.name)[0] in FEED_SUFFIXES]
    notes: list[str] = []
    if subtitles:
        notes.append(f"{_first_of(subtitles)}: of subtitles only the words are compared, not the numbers and times")
    if feeds:
        notes.append(f"{_first_of(feeds)}: each feed is one text here; neardup watch reads the items of feeds")
    return notes


def _first_of(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


class FoundText(NamedTuple):
    """The content of a text file."""

    content: bytes
    """Its bytes, decompressed and without byte order mark, as far as they were read."""
    text: bytes = b""
    """The same in UTF-8; empty if it is rejected."""
    encoding: str = ""
    """The encoding that was guessed; empty if none was."""
    reason: str = ""
    """Why it is rejected; empty if it is not."""
    detail: str = ""


#: Bytes of a rejected file that are kept.
_SHOWN = 1 << 10


def content_of(file: InputFile) -> FoundText:
    """Read the bytes of a file of one document, never more than the largest document allowed and its escapes take."""
    largest = largest_record(file.max_document)
    with closing(Stream(file, None)) as stream:
        content, damage = stream.read(min(largest, file.size) + 1), ""
    codec = codec_of_bytes(content[:_SHOWN], file.name)
    if codec is not None:
        with closing(Stream(file, codec)) as decompressed:
            content = decompressed.read(largest + 1)
            damage = decompressed.damage
    if len(content) > largest:
        return FoundText(content[:_SHOWN], reason=Reason.TOO_LONG, detail=f"{largest} bytes are allowed")
    if damage:
        return FoundText(content, reason=Reason.DAMAGED_COMPRESSION, detail=damage)
    content = content.removeprefix(_BOM)
    return FoundText(content, detail=foreign_format(content[:_SHOWN], codec, ""))


def read_text(file: InputFile) -> FoundText:
    """Read a text file."""
    found = content_of(file)
    if found.reason:
        return found
    content, foreign = found.content, found.detail
    if is_page_name(file.name):
        encoding = WINDOWS_1252 if is_guessed(content) else ""
        return FoundText(content, decode_page(content).encode("utf-8", "replace"), encoding)
    encoding, begin = detect_encoding(content)
    fault = invalid_utf8_offset(content)
    if encoding and (begin or not foreign):
        text = content[begin:].decode(encoding, "replace").encode("utf-8", "replace")
        encoding = "" if begin else encoding
    elif fault < 0 and not is_archive(content[:_SHOWN]):
        text, encoding = content, ""
    elif not foreign and is_windows_1252(content):
        text, encoding = decode_utf8(content)[0].encode(), WINDOWS_1252
    else:
        return FoundText(content, reason=Reason.NOT_UTF8, detail=foreign or f"byte {fault}")
    is_subtitle = suffixes(file.name)[0] in SUBTITLE_SUFFIXES
    return FoundText(content, spoken_words(text) if is_subtitle else text, encoding)
