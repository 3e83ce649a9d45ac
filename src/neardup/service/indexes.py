"""The named indexes of a service: each a store of its own, which also says how it was made."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from neardup.classifier.classifier import Classifier, resolve_classifier
from neardup.errors import InputError, StoreError, option
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.recipe.named import names as recipe_names
from neardup.service.guard import Problem
from neardup.stream.document import Verdict
from neardup.stream.index import Index, read_stored_recipe
from neardup.stream.parts import Record
from neardup.stream.store import StoreReader

MAIN = "main"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
#: What the store of an index made with a classifier notes.
_CLASSIFIER = "classifier"
_ANY_NAME = "take up to 63 of the characters a-z, 0-9, - and _, the first a letter or digit"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """How an index is made.

    Attributes
    ----------
    recipe : str or Recipe
        What matches: a named recipe, or one by itself.
    choices : mapping
        Fields of the recipe that take another value.
    classifier : str or Classifier, optional
        In place of a recipe: the name of a file in the folder of classifiers, or one by itself.
    window, window_by, against : str
        As of ``Index``.
    sample : Statistics, optional
        As of ``Index``.
    """

    recipe: str | Recipe | None = None
    choices: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    classifier: str | Classifier | None = None
    window: str = "24h"
    window_by: str = "time"
    against: str = "originals"
    sample: Statistics | None = None

    def index(self, path: Path | None = None) -> Index:
        """Return such an index; it keeps texts where it has a path."""
        return Index(
            self.recipe,
            classifier=self.classifier,
            window=self.window,
            window_by=self.window_by,
            against=self.against,
            path=path,
            keep_texts=path is not None,
            sample=self.sample,
            **self.choices,
        )


class NamedIndex:
    """An index, its store for readers, and its name.

    Attributes
    ----------
    name : str
        By which it is asked.
    index : Index
        Only the writer's thread adds to it and takes from it.
    reader : StoreReader
        Reads what is on the disk while others write.
    """

    def __init__(self, name: str, index: Index) -> None:
        if index.store is None:
            raise StoreError(f"index {name!r} has no store; give it a path")
        self.name, self.index, self.store = name, index, index.store
        try:
            self.reader = StoreReader(self.store.path)
        except BaseException:
            index.close()
            raise

    def text_of(self, name: str) -> str | None:
        """Return the text of a document, None where it is not kept any more."""
        found = self.record_of(name)
        return None if found is None else found.text

    def record_of(self, name: str) -> Record | None:
        """Return the text, the title and the time of a document, None where they are not kept any more."""
        found = self.reader.find(name)
        if found is None:
            return None
        kept = (found.text, found.title) if name in self.index else self.reader.stopped_text(name)
        if kept is None or kept[0] is None:
            return None
        return Record(kept[0], kept[1], round(found.verdict.time * 1e6))

    def verdict_of(self, name: str) -> Verdict:
        """Return the verdict on a document.

        Raises
        ------
        Problem
            If it has none.
        """
        found = self.reader.verdict_of(name)
        if found is None:
            raise Problem(404, f"Index {self.name!r} has no document with this id; enter it first")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return what it is and holds, for JSON."""
        index, settings = self.index, ("window", "window_by", "against")
        counts = index.statistics
        return {
            "name": self.name,
            "recipe": index.recipe.name,
            "in_words": index.recipe.in_words(),
            "fingerprint": index.recipe.fingerprint,
            "classifier": None if index.classifier is None else index.classifier.fingerprint,
            **{name: self.reader.meta(f"setting {name}") for name in settings},
            "documents": counts.arrived,
            "originals": counts.originals,
            "duplicates": counts.duplicates,
            "held": counts.held,
        }

    def bytes(self) -> int:
        """Return what the store takes on the disk, its log with it."""
        path = self.store.path
        sizes = 0
        for one in (path, path.with_name(f"{path.name}-wal")):
            with suppress(OSError):
                sizes += one.stat().st_size
        return sizes

    def close(self) -> None:
        """Let go of the store."""
        self.reader.close()
        self.index.close()


class Indexes:
    """All indexes of a service; ``main`` is there always.

    Parameters
    ----------
    store : str
        The store of ``main``. Those of others lie in the folder beside it that is named like it, with ``.indexes``.
    options : IndexOptions
        How ``main`` is made.
    classifiers : str, optional
        A folder of classifiers that other indexes may be made with.

    Raises
    ------
    NeardupError
        If a store cannot be used, or was made otherwise.
    """

    def __init__(self, store: str, options: IndexOptions, *, classifiers: str | None = None) -> None:
        self._store, self._classifiers = Path(store), classifiers
        self._folder = self._store.with_name(f"{self._store.name}.indexes")
        self._lock = threading.Lock()
        self._address = ""
        self._open: dict[str, NamedIndex] = {}
        with ExitStack() as stack:
            stack.callback(self.close)
            self._open[MAIN] = NamedIndex(MAIN, options.index(self._store))
            for path in sorted(self._folder.glob("*.db")):
                if _NAME.fullmatch(path.stem):
                    self._reopen(path)
            stack.pop_all()

    def _reopen(self, path: Path) -> None:
        """Open an index as its store says that it was made."""
        with StoreReader(path) as reader:
            classifier = reader.state(_CLASSIFIER)
            unfinished = classifier is None and reader.state("recipe") is None
            recipe = None if unfinished or classifier is not None else read_stored_recipe(reader)
            window, window_by, against = (
                reader.meta(f"setting {of}") or "" for of in ("window", "window_by", "against")
            )
        if unfinished:
            # A process that was killed while it made it; nobody was told that it is there.
            _remove(path)
            return
        found = None if classifier is None else self._classifier(classifier)
        options = IndexOptions(recipe=recipe, classifier=found, window=window, window_by=window_by, against=against)
        self._open[path.stem] = NamedIndex(path.stem, options.index(path))

    def _classifier(self, name: str) -> Classifier:
        if self._classifiers is None:
            raise InputError(
                f"classifier {name!r} is in no folder; start the service with {option('--classifiers FOLDER')}"
            )
        if Path(name).name != name or name.startswith("."):
            raise InputError(
                f"classifier {name!r} is no name of a file in the folder of classifiers; give its name alone"
            )
        return resolve_classifier(Path(self._classifiers) / name)

    def note_address(self, address: str) -> None:
        """Tell other processes that find a store in use where the service answers."""
        with self._lock:
            self._address = address
            for named in self._open.values():
                self._note_address(named)

    def _note_address(self, named: NamedIndex) -> None:
        if self._address:
            named.store.note_address(f"{self._address}/v1/indexes/{named.name}")

    def get(self, name: str) -> NamedIndex:
        """Return an index.

        Raises
        ------
        Problem
            If there is none of that name.
        """
        found = self._open.get(name)
        if found is None:
            raise Problem(404, f"There is no index {name[:80]!r}; PUT /v1/indexes/{{name}} makes one")
        return found

    def __iter__(self) -> Iterator[NamedIndex]:
        return iter(list(self._open.values()))

    def make(self, name: str, options: IndexOptions) -> tuple[NamedIndex, bool]:
        """Return the index of a name, made now if there is none, and whether it was.

        Raises
        ------
        Problem
            If the name cannot be one, or the index is there and was made otherwise.
        NeardupError
            If an option is refused.
        """
        if not _NAME.fullmatch(name):
            raise Problem(422, f"{name[:80]!r} cannot be the name of an index; {_ANY_NAME}")
        if isinstance(options.recipe, str) and options.recipe not in recipe_names():
            # Files of the server are nobody's to name.
            raise Problem(422, f"Recipe {options.recipe[:80]!r} is not known; take one of {', '.join(recipe_names())}")
        noted = options.classifier
        if isinstance(noted, str):
            options = replace(options, classifier=self._classifier(noted))
        with self._lock:
            if name in self._open:
                self._check_same(self._open[name], options)
                return self._open[name], False
            self._folder.mkdir(exist_ok=True)
            made = NamedIndex(name, options.index(self._folder / f"{name}.db"))
            if isinstance(noted, str):
                made.store.set_state(_CLASSIFIER, noted)
            self._note_address(made)
            self._open[name] = made
            return made, True

    def _check_same(self, there: NamedIndex, options: IndexOptions) -> None:
        """Refuse options by which an index was not made."""
        asked, is_like = options.index(), there.as_dict()
        new = {
            "fingerprint": asked.recipe.fingerprint,
            "classifier": None if asked.classifier is None else asked.classifier.fingerprint,
            "window": str(asked.length),
            "window_by": options.window_by,
            "against": options.against,
        }
        for name, value in new.items():
            if value != is_like[name]:
                raise Problem(
                    409,
                    f"Index {there.name!r} is there already, with {name} {is_like[name]!r}, not {value!r}; take "
                    "another name, or delete it first",
                    index=is_like,
                )

    def delete(self, name: str) -> None:
        """Remove an index and its store.

        Raises
        ------
        Problem
            If there is none of that name, or it is ``main``.
        """
        found = self.get(name)
        if name == MAIN:
            raise Problem(409, "Index 'main' belongs to the service; stop the service and remove its store instead")
        with self._lock:
            del self._open[name]
            found.close()
            _remove(found.store.path)

    def close(self) -> None:
        """Let go of all stores."""
        while self._open:
            self._open.popitem()[1].close()


def _remove(path: Path) -> None:
    # The store itself first: what stands beside it alone is nothing.
    for ending in ("", "-wal", "-shm", ".lock"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
