"""The named indexes of a service, each with its own store, which also records its options."""

from __future__ import annotations

import os
import re
import resource
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neardup.classifier.classifier import Classifier, resolve_classifier
from neardup.errors import InputError, StoreError, option
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.recipe.named import names as recipe_names
from neardup.service.refusals import Problem
from neardup.stream.document import FLAGS, Verdict
from neardup.stream.index import Index, read_stored_recipe, resolve_recipe
from neardup.stream.store import StoreReader
from neardup.stream.window_step import Record

MAIN = "main"
_NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
#: The state under which a store records the name of its classifier.
_CLASSIFIER_STATE = "classifier"
#: Descriptors of the process for each index: an open store takes 6, and the rest is for connections and readers.
_DESCRIPTORS_PER_INDEX = 10
_NAME_RULE = "take up to 63 of the characters a-z, 0-9, - and _, the first a letter or digit"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """The options of an index, as for ``Index``."""

    recipe: str | Recipe | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)  #: changed fields of the recipe
    classifier: str | Classifier | None = None  #: or the name of a file in the folder of classifiers
    window: str = "endless"
    window_by: str = "time"
    against: str = "originals"
    sample: Statistics | None = None

    def make_index(self, path: Path | None = None) -> Index:
        """Return an index with these options; it keeps texts if it has a path."""
        recipe, classifier = resolve_recipe(self.recipe, self.classifier, self.choices)
        return Index(
            None if classifier else recipe,
            classifier=classifier,
            window=self.window,
            window_by=self.window_by,
            against=self.against,
            path=path,
            keep_texts=path is not None,
            sample=self.sample,
        )


def most_indexes() -> int:
    """Return the most indexes that the limit of the process on open files leaves room for."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit // _DESCRIPTORS_PER_INDEX, 1)


class NamedIndex:
    """An index with a name and a store; ``reader`` may be used while the thread of the writer changes the index."""

    def __init__(self, name: str, index: Index) -> None:
        if index.store is None:
            raise StoreError(f"index {name!r} has no store; give it a path")
        self.name, self.index, self.store = name, index, index.store
        #: How many documents were entered since the start, by verdict and by flag; the writer's thread counts.
        self.entered: Counter[str] = Counter()
        try:
            self.reader = StoreReader(self.store.path)
        except BaseException:
            index.close()
            raise

    def count_entered(self, verdicts: Iterable[Verdict]) -> None:
        """Count verdicts on documents that were entered."""
        for verdict in verdicts:
            self.entered[verdict.kind] += 1
            if verdict.flag:
                self.entered[verdict.flag] += 1

    def text_of(self, name: str) -> str | None:
        """Return the text of a document; as of `record_of`."""
        record = self.record_of(name)
        return None if record is None else record.text

    def record_of(self, name: str) -> Record | None:
        """Return the text, the title and the time of a document, None if they are no longer kept."""
        stored = self.reader.find(name)
        if stored is None:
            return None
        kept_text = (stored.text, stored.title) if name in self.index else self.reader.stopped_text(name)
        if kept_text is None or kept_text[0] is None:
            return None
        return Record(kept_text[0], kept_text[1], round(stored.verdict.time * 1e6))

    def verdict_of(self, name: str) -> Verdict:
        """Return the verdict on a document; raises ``Problem`` if the id is unknown."""
        stored = self.reader.verdict_of(name)
        if stored is None:
            raise Problem(404, f"Index {self.name!r} has no document with this id; enter it first")
        return stored

    def as_dict(self) -> dict[str, Any]:
        """Return its options and counts, for JSON."""
        index, counts = self.index, self.index.statistics
        return {
            "name": self.name,
            "recipe": index.recipe.name,
            "in_words": index.recipe.in_words(),
            "fingerprint": index.recipe.fingerprint,
            "classifier": None if index.classifier is None else index.classifier.fingerprint,
            **self.reader.settings,
            "documents": counts.documents,
            "originals": counts.originals,
            "duplicates": counts.duplicates,
            **{flag: getattr(counts, flag) for flag in FLAGS},
            "held": counts.window_documents,
        }

    def store_bytes(self) -> int:
        """Return the size of the store and its log on the disk."""
        path, total = self.store.path, 0
        for file in (path, path.with_name(f"{path.name}-wal")):
            with suppress(OSError):
                total += file.stat().st_size
        return total

    def close(self) -> None:
        """Close the store."""
        self.reader.close()
        self.index.close()


class Indexes:
    """All indexes of a service; ``main`` always exists.

    ``store`` and ``options`` are those of ``main``; the other stores are in a folder of the same name with the ending
    ``.indexes``. ``classifiers`` is a folder of classifiers for further indexes; no more are made than
    ``max_indexes``, with ``main``. Raises ``NeardupError`` if a store cannot be used, or has other options.
    """

    def __init__(
        self, store: str, options: IndexOptions, *, classifiers: str | None = None, max_indexes: int = sys.maxsize
    ) -> None:
        self._store, self._max_indexes = Path(os.path.realpath(store)), max_indexes
        self._classifiers = None if classifiers is None else os.path.realpath(classifiers)
        self._folder = self._store.with_name(f"{self._store.name}.indexes")
        self._lock = threading.Lock()
        self._address = ""
        self._open: dict[str, NamedIndex] = {}
        with ExitStack() as stack:
            stack.callback(self.close)
            self._open[MAIN] = NamedIndex(MAIN, options.make_index(self._store))
            for path in sorted(self._folder.glob("*.db")):
                if _NAME_PATTERN.fullmatch(path.stem):
                    self._reopen(path)
            stack.pop_all()

    def _reopen(self, path: Path) -> None:
        """Open an index with the options that its store records."""
        with StoreReader(path) as reader:
            classifier = reader.state(_CLASSIFIER_STATE)
            is_unfinished = classifier is None and reader.state("recipe") is None
            recipe = None if is_unfinished or classifier is not None else read_stored_recipe(reader)
            settings: dict[str, Any] = reader.settings
        if is_unfinished:
            # The process was killed while it made the index, so no caller knows of it.
            _remove(path)
            return
        options = IndexOptions(recipe=recipe, classifier=classifier and self._load_classifier(classifier), **settings)
        self._open[path.stem] = NamedIndex(path.stem, options.make_index(path))

    def _load_classifier(self, name: str) -> Classifier:
        if self._classifiers is None:
            raise InputError(
                f"classifier {name!r} is in no folder; start the service with {option('--classifiers FOLDER')}"
            )
        if Path(name).name != name or name.startswith("."):
            raise InputError(
                f"classifier {name!r} is not the name of a file in the folder of classifiers; give the name alone"
            )
        return resolve_classifier(Path(self._classifiers) / name)

    def record_address(self, address: str) -> None:
        """Record the address of the service for other processes that find a store in use."""
        with self._lock:
            self._address = address
            for named in self._open.values():
                self._record_address(named)

    def _record_address(self, named: NamedIndex) -> None:
        if self._address:
            named.store.record_address(f"{self._address}/v1/indexes/{named.name}")

    def get(self, name: str) -> NamedIndex:
        """Return an index; raises ``Problem`` if none has this name."""
        named = self._open.get(name)
        if named is None:
            raise Problem(404, f"There is no index {name[:80]!r}; PUT /v1/indexes/{{name}} makes one")
        return named

    def __iter__(self) -> Iterator[NamedIndex]:
        return iter(list(self._open.values()))

    def get_or_make(self, name: str, options: IndexOptions) -> tuple[NamedIndex, bool]:
        """Return the index of a name, and whether it was made now because none had this name.

        Raises ``Problem`` if the name is invalid, the index exists with other options, or there are too many, and
        ``NeardupError`` if an option is invalid.
        """
        if not _NAME_PATTERN.fullmatch(name):
            raise Problem(422, f"{name[:80]!r} cannot be the name of an index; {_NAME_RULE}")
        if isinstance(options.recipe, str) and options.recipe not in recipe_names():
            # A recipe could be a path, and callers must not read files of the server.
            raise Problem(422, f"Recipe {options.recipe[:80]!r} is not known; take one of {', '.join(recipe_names())}")
        classifier = options.classifier
        if isinstance(classifier, str):
            options = replace(options, classifier=self._load_classifier(classifier))
        recipe, _ = resolve_recipe(options.recipe, options.classifier, options.choices)
        if recipe.needs_statistics:
            raise Problem(
                422,
                f"Recipe {recipe.name!r} takes frequencies from a collection, which only the index 'main' can have; "
                "take another recipe",
            )
        with self._lock:
            if name in self._open:
                self._check_options(self._open[name], options)
                return self._open[name], False
            if len(self._open) >= self._max_indexes:
                raise Problem(
                    409,
                    f"The service has {len(self._open):,} indexes and may have {self._max_indexes:,}; delete one, or "
                    f"start it with a larger {option('--max-indexes')} and a larger limit on open files",
                )
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"{name}.db"
            is_new = not path.exists()
            try:
                named = NamedIndex(name, options.make_index(path))
                if isinstance(classifier, str):
                    named.store.set_state(_CLASSIFIER_STATE, classifier)
            except BaseException:
                # Nobody knows of it, and the next start would open it.
                if is_new:
                    _remove(path)
                raise
            self._record_address(named)
            self._open[name] = named
            return named, True

    def _check_options(self, named: NamedIndex, options: IndexOptions) -> None:
        new, existing = options.make_index(), named.as_dict()
        values = {
            "fingerprint": new.recipe.fingerprint,
            "classifier": None if new.classifier is None else new.classifier.fingerprint,
            "window": str(new.length),
            "window_by": options.window_by,
            "against": options.against,
        }
        for name, value in values.items():
            if value != existing[name]:
                raise Problem(
                    409,
                    f"Index {named.name!r} already exists, with {name} {existing[name]!r}, not {value!r}; take "
                    "another name, or delete it first",
                    index=existing,
                )

    def delete(self, name: str) -> None:
        """Remove an index and its store; raises ``Problem`` if no index has this name, or it is ``main``."""
        named = self.get(name)
        if name == MAIN:
            raise Problem(409, "Index 'main' belongs to the service; stop the service and remove its store instead")
        with self._lock:
            del self._open[name]
            named.close()
            _remove(named.store.path)

    def without_paths(self, sentence: str) -> str:
        """Return a sentence for callers, who need no paths of the server: an index stands for its store."""
        folder, store = (re.escape(str(path)) for path in (self._folder, self._store))
        below = r"(?:/[^\s;,()]*)?"
        sentence = re.sub(rf"{folder}/([a-z0-9_-]+)\.db{below}", r"the store of index '\1'", sentence)
        sentence = re.sub(f"{folder}{below}", "the folder of the stores", sentence)
        sentence = re.sub(f"{store}{below}", f"the store of index '{MAIN}'", sentence)
        if self._classifiers is not None:
            sentence = sentence.replace(f"{self._classifiers}/", "classifier ")
        return sentence

    def close(self) -> None:
        """Close all stores."""
        while self._open:
            self._open.popitem()[1].close()


def _remove(path: Path) -> None:
    # The store itself first: without it, the other files are ignored.
    for ending in ("", "-wal", "-shm", ".lock"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
