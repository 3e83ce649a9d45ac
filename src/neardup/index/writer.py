"""The one writer of an index: its additions, removals and merges take effect together."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Corpus
from neardup.errors import InputError, option
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, text_pieces
from neardup.features.store import row_heads
from neardup.files import placed_output, write_error
from neardup.index.known import DocumentKeys, find_known, repeats_in
from neardup.index.manifest import Manifest, SegmentEntry, read_manifest, recipe_of, write_lock
from neardup.index.segment import (
    IndexPiece,
    MatchRule,
    Segment,
    SegmentWriter,
    is_full,
    removed_bytes,
    sync_file,
)
from neardup.kernels import Bools, Integers
from neardup.pipeline.pipeline import thread_count
from neardup.runtime import map_in_order

#: Names of files that a writer creates; such a file that is in no manifest remains of a writer that was killed.
_WRITER_FILES = re.compile(r"\.?(segment|removed)-\d{6}.*|\.neardup-index\.json\.partial-.*")


class IndexWriter:
    """The one writer of an index: its changes take effect with ``commit``, which writes ``manifest``."""

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path, self.manifest, self._committed = path, manifest, manifest
        self.recipe = recipe_of(manifest, path)
        self._match_rule, self._extractor = MatchRule.from_recipe(self.recipe), Extractor(self.recipe)

    def add(
        self,
        corpus: Corpus,
        *,
        keep: Bools | None = None,
        strict_ids: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Add the documents of a corpus, in its order, and return how many were known already.

        Known documents, with an id of the index (or of an earlier document) and its text, are skipped; ``strict_ids``
        refuses them.

        ``keep``: the raw rows to add (bool[rows]), of a corpus that was read before and is read again. ``threads``
        changes the time, never the bytes. ``progress`` is called with ("index", bytes done, total bytes).
        """
        before, keys = self.manifest, DocumentKeys()
        parts = list(self._segments(self._pieces(corpus, keep, keys, threads, progress)))
        names = keys.ids
        kind = "rows" if corpus.id_column is None else "string" if pa.types.is_large_string(names.type) else "int64"
        self._check_kind(len(names), kind)
        is_known = np.zeros(len(names), np.bool_)
        if kind != "rows":
            is_known = repeats_in(corpus, keys, strict=strict_ids)
            segments = map(self._segment, self._committed.segments)
            is_known |= find_known(self.path, segments, keys, strict=strict_ids)[0]
        if is_known.any():
            # Rare, so nothing is read twice to find out whether it is so.
            for part in parts:
                shutil.rmtree(os.path.join(self.path, part.name))
            self.manifest, is_new = before, np.zeros(corpus.raw_rows, np.bool_)
            is_new[keys.rows[~is_known]] = True
            parts = list(self._segments(self._pieces(corpus, is_new, DocumentKeys(), threads, progress)))
            if not parts:
                return len(names)
        kind = self.manifest.ids or (kind if len(names) else "")
        rows = self.manifest.rows + corpus.raw_rows
        self.manifest = replace(self.manifest, segments=[*self.manifest.segments, *parts], rows=rows, ids=kind)
        return int(is_known.sum())

    def _pieces(
        self,
        corpus: Corpus,
        keep: Bools | None,
        keys: DocumentKeys,
        threads: int | None,
        progress: Progress | None,
    ) -> Iterator[IndexPiece]:
        """Yield the documents with their features; adds them to ``keys``."""

        def parts() -> Iterator[tuple[pa.Array, pa.LargeStringArray]]:
            consumed = 0
            for batch in corpus.scan() if keep is None else corpus.rescan(input_only=True):
                consumed += batch.bytes_read
                if progress is not None:
                    progress("index", consumed, corpus.total_bytes)
                rows, names = batch.rows, batch.ids
                if names is None:
                    names = pa.array(rows + self.manifest.rows)
                begin = 0
                for texts in text_pieces(batch, self.recipe.content):
                    text_rows, text_ids = rows[begin : begin + len(texts)], names.slice(begin, len(texts))
                    begin += len(texts)
                    if keep is not None:
                        chosen = keep[text_rows]
                        mask = pa.array(chosen)
                        text_rows, texts, text_ids = text_rows[chosen], texts.filter(mask), text_ids.filter(mask)
                    if len(texts):
                        keys.add(text_ids, text_rows, texts)
                        yield text_ids, texts

        yield from map_in_order(self._extract, parts(), thread_count(threads))

    def _extract(self, documents: tuple[pa.Array, pa.LargeStringArray]) -> IndexPiece:
        return IndexPiece(*documents, self._extractor(documents[1]))

    def _segments(self, pieces: Iterable[IndexPiece]) -> Iterator[SegmentEntry]:
        """Write documents into segments; yield the manifest entry of each."""
        with ExitStack() as stack:
            current: SegmentWriter | None = None
            name = ""

            def finish(writer: SegmentWriter) -> SegmentEntry:
                part = writer.finish(name)
                stack.close()
                return part

            for piece in pieces:
                heads, begin = row_heads(piece.block.sizes), 0
                while begin < len(piece.ids):
                    if current is None:
                        name = self._next_name("segment")
                        output = stack.enter_context(placed_output(os.path.join(self.path, name), folder=True))
                        current = SegmentWriter(output.path, self._match_rule)
                        stack.callback(current.close)
                    end = begin + current.room(piece.block.sizes[begin:])
                    current.add(piece.between(begin, end, heads))
                    begin = end
                    if is_full(current.features, current.documents):
                        yield finish(current)
                        current = None
            if current is not None:
                yield finish(current)

    def _next_name(self, what: str) -> str:
        self.manifest = replace(self.manifest, sequence=self.manifest.sequence + 1)
        return f"{what}-{self.manifest.sequence:06d}"

    def _check_kind(self, count: int, kind: str) -> None:
        """Check that the ids of new documents are of the same kind as those of the index."""
        old_kind = self.manifest.ids
        if count and old_kind and old_kind != kind:
            nouns = {"rows": "row numbers", "int64": "whole numbers as ids", "string": "strings as ids"}
            raise InputError(
                f"the documents of {self.path} have {nouns[old_kind]}, and the new ones {nouns[kind]}: name the column "
                f"with {option('--id-column')}, or number the rows with {option('--ids rows', 'id_column=' + repr(''))}"
            )

    def _segment(self, part: SegmentEntry) -> Segment:
        return Segment(self.path, part, self._match_rule)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove the documents with some ids; return how many there were."""
        ids_to_remove = pa.array([str(name) for name in ids], pa.large_string())
        parts, count = [], 0
        for part in self.manifest.segments:
            segment = self._segment(part)
            same = pc.is_in(segment.ids().cast(pa.large_string()), ids_to_remove)
            newly_removed = np.setdiff1d(np.flatnonzero(same.to_numpy(zero_copy_only=False)), segment.removed)
            parts.append(
                part if not len(newly_removed) else self._mark_removed(part, np.union1d(segment.removed, newly_removed))
            )
            count += len(newly_removed)
        self.manifest = replace(self.manifest, segments=parts)
        return count

    def _mark_removed(self, part: SegmentEntry, removed: Integers) -> SegmentEntry:
        name = self._next_name("removed")
        with placed_output(os.path.join(self.path, name)) as output, open(output.handle, "wb", closefd=False) as file:
            file.write(removed_bytes(removed))
        arrays = {path: file for path, file in part.files.items() if path.startswith(f"{part.name}/")}
        return replace(part, removed=len(removed), files=arrays | {name: sync_file(os.path.join(self.path, name))})

    def compact(self, *, threads: int | None = None, progress: Progress | None = None) -> None:
        """Merge runs of small segments, and rewrite those with removed documents; full segments stay unchanged."""
        parts: list[SegmentEntry] = []
        run: list[SegmentEntry] = []

        def merge_run() -> Iterator[SegmentEntry]:
            if len(run) == 1 and not run[0].removed:
                yield run[0]
            elif run:
                yield from self._segments(self._present_pieces(run, threads, progress))
            run.clear()

        for part in self.manifest.segments:
            if part.removed or not is_full(part.features, part.documents):
                run.append(part)
            else:
                parts += [*merge_run(), part]
        parts += merge_run()
        self.manifest = replace(self.manifest, segments=parts)

    def _present_pieces(
        self, parts: Sequence[SegmentEntry], threads: int | None, progress: Progress | None
    ) -> Iterator[IndexPiece]:
        """Yield the remaining documents of segments, with recomputed features."""
        total = sum(part.documents - part.removed for part in parts)

        def parts_of_texts() -> Iterator[tuple[pa.Array, pa.LargeStringArray]]:
            count = 0
            for part in parts:
                segment = self._segment(part)
                documents, begin = segment.present_documents(), 0
                ids = segment.ids().take(pa.array(documents))
                for texts in segment.texts(documents):
                    yield ids.slice(begin, len(texts)), texts
                    begin += len(texts)
                    count += len(texts)
                    if progress is not None:
                        progress("compact", count, total)

        yield from map_in_order(self._extract, parts_of_texts(), thread_count(threads))

    def commit(self) -> None:
        """Make all changes the state of the index, atomically, and remove files that it no longer uses."""
        self.manifest.write(self.path)
        self._committed = self.manifest
        self.sweep()

    def sweep(self) -> None:
        """Remove files of writers, this one or a killed one, that are not part of the index."""
        used = {path.partition("/")[0] for path in self._committed.files}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if _WRITER_FILES.fullmatch(entry.name) and entry.name not in used:
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        with suppress(OSError):
                            os.unlink(entry.path)


@contextmanager
def open_writer(path: str | PathLike[str]) -> Iterator[IndexWriter]:
    """Open the one writer of an index; without its ``commit`` nothing changes.

    Raises ``StoreError`` if another process writes to it or it is damaged, and ``OutputError`` if it cannot be written.
    """
    folder = os.fspath(path)
    read_manifest(folder)
    with write_lock(folder):
        writer = IndexWriter(folder, read_manifest(folder))
        writer.sweep()
        try:
            yield writer
        except OSError as error:
            raise write_error(folder, error) from None
        finally:
            writer.sweep()
