"""The manifest of an index on disk, the only file that is ever replaced, and the lock of its writer."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from neardup import files
from neardup.documents.inputs import INDEX_MANIFEST
from neardup.errors import InputError, OutputError, RecipeError, StoreError, quoted
from neardup.recipe import Recipe
from neardup.recipe.recipe import difference
from neardup.version import __version__

MANIFEST = INDEX_MANIFEST
_LOCK = "lock"
#: Format version. Raise it with every change to the bytes of a segment, or to how kernels read them.
FORMAT = 3
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
        files.write_file(os.path.join(folder, MANIFEST), _json(content | {"digest": _digest(_json(content))}))


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def digest_of(path: str) -> str:
    """Return the BLAKE2b digest of the bytes of a file."""
    found = blake2b(digest_size=_DIGEST_BYTES)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
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
        form = int(content["format"])
        if form != FORMAT:
            alternative = ", or a newer one" if form > FORMAT else ", or build the index again"
            raise StoreError(
                f"{folder} has format {form}, and this neardup reads {FORMAT}: use the neardup that wrote it "
                f"({quoted(content['neardup'])}){alternative}"
            )
        if content.pop("digest") != _digest(_json(content)):
            raise damaged
        del content["format"], content["neardup"]
        parts = [
            SegmentEntry(**(part | {"files": {path: FileEntry(*of) for path, of in part["files"].items()}}))
            for part in content.pop("segments")
        ]
        return Manifest(**content, segments=parts)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise damaged from None


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
