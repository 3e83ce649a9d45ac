"""The manifest of an index on disk, the only file that is ever replaced, and the lock of its writer."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple, Self

from neardup import files
from neardup.documents.inputs import INDEX_MANIFEST
from neardup.errors import InputError, OutputError, RecipeError, StoreError, quoted
from neardup.recipe import Recipe
from neardup.recipe.recipe import difference
from neardup.version import __version__

MANIFEST = INDEX_MANIFEST
_LOCK = "lock"
#: Format version. Raise it with every change to the bytes of a segment, or to how kernels read them.
FORMAT = 4
_DIGEST_BYTES = 16
_PIECE = 1 << 22


class FileEntry(NamedTuple):
    """A file of an index: its size and the BLAKE2b digest of its bytes."""

    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """The entry of a segment in the manifest."""

    name: str  #: its folder
    #: Number of its documents, and of those removed since.
    documents: int
    removed: int
    #: Bytes of its texts, and number of their features.
    text_bytes: int
    features: int
    files: Mapping[str, FileEntry]  #: files by path relative to the index

    @property
    def bytes(self) -> int:
        """Total size of its files."""
        return sum(file.bytes for file in self.files.values())


@dataclass(frozen=True, slots=True)
class Manifest:
    """One state of an index."""

    recipe: Mapping[str, Any]  #: the fields of the recipe
    dependencies: Mapping[str, str]  #: everything that the features depend on (``Recipe.dependencies``)
    ids: str = ""  #: kind of document ids: ``rows``, ``int64`` or ``string``; empty before the first document
    rows: int = 0  #: number of rows ever added; it numbers documents without ids
    sequence: int = 0  #: number of segments and removal lists ever written, so that no name is used twice
    segments: Sequence[SegmentEntry] = ()  #: in keep order

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Self:
        """Return the manifest of an empty index."""
        return cls({name: value for name, value in asdict(recipe).items() if value != ""}, dict(recipe.dependencies))

    @property
    def documents(self) -> int:
        """Number of documents, without removed ones."""
        return sum(part.documents - part.removed for part in self.segments)

    @property
    def files(self) -> dict[str, FileEntry]:
        """All files except the manifest, by path relative to the index."""
        return {path: file for part in self.segments for path, file in part.files.items()}

    def write(self, folder: str) -> None:
        """Make this the state of the index in a folder, atomically."""
        content = {"format": FORMAT, "neardup": __version__, **asdict(self)}
        files.write_file(os.path.join(folder, MANIFEST), _json(content | {"digest": digest_of(_json(content))}))


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def digest_of(data: bytes | BinaryIO) -> str:
    """Return the BLAKE2b digest of some bytes, or of those of an open file."""
    found = blake2b(digest_size=_DIGEST_BYTES)
    if isinstance(data, bytes):
        found.update(data)
    else:
        while piece := data.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def is_index(path: object) -> bool:
    """Return whether a path is an index on disk."""
    return isinstance(path, str | os.PathLike) and os.path.isfile(os.path.join(os.fspath(path), MANIFEST))


def read_manifest(folder: str) -> Manifest:
    """Return the last state of an index.

    Raises ``InputError`` if there is none, and ``StoreError`` if the manifest is damaged or of another format.
    """
    if not is_index(folder):
        raise InputError(f"{folder} is not an index: make one with neardup index build CORPUS -o INDEX")
    data = files.read_file(os.path.join(folder, MANIFEST), "name an index that this user may read")
    damaged = StoreError(
        f"the manifest of {folder} is damaged: restore {MANIFEST} from a copy, or build the index again"
    )
    try:
        content = json.loads(data)
        form = _count(content["format"])
        if form != FORMAT:
            alternative = ", or a newer one" if form > FORMAT else ", or build the index again"
            raise StoreError(
                f"{folder} has format {form}, and this neardup reads {FORMAT}: use the neardup that wrote it "
                f"({quoted(content['neardup'])}){alternative}"
            )
        if content.pop("digest") != digest_of(_json(content)):
            raise damaged
        del content["format"], content["neardup"]
        return _manifest(**content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None


def _count(value: object) -> int:
    """Return a value of the manifest that counts something; raises ``ValueError`` if it is not a usable number."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError
    return value


def _is_names(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(word, str) for word in value.values())


def _manifest(recipe: Any, dependencies: Any, ids: Any, rows: Any, sequence: Any, segments: Any) -> Manifest:
    """Return the manifest with these fields; raises ``ValueError`` or ``TypeError`` if one is not what it must be."""
    if not isinstance(segments, list):
        raise ValueError
    parts = [_segment_entry(**part) for part in segments]
    named = [f"{part.name}/id_ends" in part.files for part in parts]
    if not isinstance(recipe, dict) or not _is_names(dependencies) or ids not in ("", "rows", "int64", "string"):
        raise ValueError
    if parts and named != [ids == "string"] * len(parts):
        raise ValueError
    return Manifest(recipe, dependencies, ids, _count(rows), _count(sequence), parts)


def _segment_entry(
    name: Any, documents: Any, removed: Any, text_bytes: Any, features: Any, files: Mapping[str, Any]
) -> SegmentEntry:
    """Return the entry with these fields; a file is in the folder of its segment, or a list of removed documents."""
    if not re.fullmatch(r"segment-\d{6,12}", name) or _count(removed) > _count(documents):
        raise ValueError
    entries = {}
    for path, (size, digest) in files.items():
        if not re.fullmatch(rf"{name}/[a-z_]+(\.zstd)?|removed-\d{{6,12}}", path) or not isinstance(digest, str):
            raise ValueError
        entries[path] = FileEntry(_count(size), digest)
    if sum(path.startswith("removed") for path in entries) != (removed > 0):
        raise ValueError
    return SegmentEntry(name, documents, removed, _count(text_bytes), _count(features), entries)


def recipe_of(manifest: Manifest, folder: str) -> Recipe:
    """Return the recipe of an index; raises ``StoreError`` if this installation makes other features by it."""
    field_names = {field.name for field in fields(Recipe)}
    try:
        if not set(manifest.recipe) <= field_names:
            raise RecipeError("it has unknown fields")
        recipe = Recipe(**manifest.recipe)
    except RecipeError as error:
        raise StoreError(
            f"{folder} was made by another version of neardup, whose recipe is unknown here: {error}"
        ) from None
    if clause := difference(manifest.dependencies, recipe.dependencies):
        raise StoreError(f"{folder} was made {clause}; use what it was made with, or build the index again")
    return recipe


@contextmanager
def write_lock(folder: str) -> Iterator[None]:
    """Hold the lock of the one writer of an index while the block runs.

    Raises ``StoreError`` if another process writes to it, and ``OutputError`` if it is not writable.
    """
    try:
        handle = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if files.is_full(error):
            raise files.write_error(folder, error) from None
        raise OutputError(
            f"{folder} cannot be written to ({error.strerror}): change its permissions, or copy it"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"another process writes to {folder}: wait until it has finished") from None
        yield
    finally:
        os.close(handle)
