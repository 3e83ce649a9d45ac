"""Who matches whom: rows of keys, a join of these with themselves, and the features of what meets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.classifier import Classifier
from neardup.errors import RecipeError
from neardup.features.statistics import Statistics
from neardup.kernels.counts import prefix_rooms, prefixes
from neardup.kernels.prefixes import Entries, Sets, index_lengths, key_pairs, overlaps_of_pairs, partner_sizes
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, rule
from neardup.search.lsh import Bands, bands_of, keys_of
from neardup.search.second_step import check_classifier
from neardup.spark.documents import Read
from neardup.spark.features import (
    REFERENCE,
    Choice,
    Counts,
    Held,
    Shared,
    as_binary,
    count_bits,
    counts_of,
    held,
    is_other,
    set_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Makes batches of sets, in a worker.
SetWorker = Callable[[Iterator[Held]], Iterator[pa.RecordBatch]]

#: A set at a key: the key before it, 0 for none, and how many of its features stand at the key or behind it, negative
#: where the set is not looked for there.
_ENTRY = np.dtype([("key", "<u8"), ("before", "<u8"), ("row", "<i8"), ("size", "<i4"), ("rest", "<i4")])
#: Entries as a blob, whose keys are all in one part.
ENTRIES = "part int, data binary"
PAIRS = "left bigint, right bigint"
#: o is how many features both have.
EDGES = "left bigint, right bigint, o bigint"
#: Bytes of entries that a worker joins, and of features that it verifies, at a time.
_PART_BYTES = 64 << 20
#: Pairs that a worker gives at a time.
_PAIRS_AT_A_TIME = 1 << 18
#: Pairs that are looked at while documents are gone through once: each worker knows of all of them.
_PAIRS_AT_ONCE = 1 << 22
#: A pair is listed a few times, and some that are listed do not match: beyond so many times the pairs that may all be
#: found, they are surely more.
_LISTED = 8


def check_recipe(recipe: Recipe, classifier: Classifier | None = None) -> None:
    """Refuse a recipe that Spark has no search for, before anything is read.

    Raises
    ------
    RecipeError
        In one sentence that names the way out.
    """
    step = recipe.parsed_second_step
    what = ""
    if recipe.measure in ("hamming", "semantic"):
        what = f"measure {recipe.measure!r}"
    elif recipe.is_weighted:
        what = f"weights {recipe.weights!r}"
    elif step is not None and step.measure == "semantic":
        what = f"second_step {recipe.second_step!r}"
    if what:
        raise RecipeError(
            f"{what} is not searched on Spark, whose join compares sets by the keys that they share, not bits, weights "
            "or vectors; leave out the engine 'spark' to run it on this machine"
        )
    if recipe.search == "lsh":
        bands_of(recipe)
    if classifier is not None or (step is not None and step.measure == "learned"):
        check_classifier(classifier, recipe, None)


def parts_of(size: int, workers: int) -> int:
    """Return in how many parts so many bytes are worked on where there are so many workers."""
    return max(4 * workers, -(-size // _PART_BYTES))


class FeatureSource(NamedTuple):
    """The feature sets of documents: workers make them each time, which is faster than to write and read them.

    Attributes
    ----------
    documents : Read
        The documents.
    recipe : Recipe
        What features are.
    statistics : Shared or None
        The document frequencies, where the recipe goes by them.
    slices : DataFrame
        slice, data: the tables of ``features.known_batches``.
    """

    documents: Read
    recipe: Recipe
    statistics: Shared[Statistics] | None
    slices: DataFrame

    def map(self, choice: Choice, worker: SetWorker, schema: str) -> DataFrame:
        """Return what workers make of the sets of chosen documents."""
        make = partial(_sets_mapped, partial(set_batches, self.recipe, self.statistics, choice), worker)
        return self.documents.map(make, ["row", "text"], schema)

    def counts(self) -> Counts:
        """Return the counts of all features."""
        return counts_of(self.slices, count_bits(self.recipe, self.documents.text_bytes))


def _sets_mapped(
    make: Callable[[Iterator[pa.RecordBatch]], Iterator[Held]], worker: SetWorker, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from worker(make(batches))


class Sides(NamedTuple):
    """Sets that are looked at.

    Attributes
    ----------
    rows : int64[n]
        Their rows, ascending.
    second : bool[n]
        Of which two that are equal are not compared; empty where all are.
    """

    rows: Integers
    second: Bools


class Candidates(NamedTuple):
    """Pairs of sets that may match.

    Attributes
    ----------
    name : str
        With what the names of their stages begin.
    frame : DataFrame
        left, right: rows, the smaller one on the left, each pair once.
    number : int
        How many there are.
    too_many : bool
        Whether there are more, which were not listed: surely more match than may all be found.
    """

    name: str
    frame: DataFrame
    number: int
    too_many: bool


class Search:
    """Finds the pairs of distinct sets that match.

    Parameters
    ----------
    recipe : Recipe
        Its measure, threshold and search.
    stages : Stages
        Where candidates and pairs are written.
    source : FeatureSource
        The sets of all documents.
    others : int64[k]
        The rows, ascending, of documents that are rejected, have no features, or equal another one that stands for
        them.
    sizes : int64[n]
        How many features each distinct set has.
    most : int or None
        So many pairs may all be found.

    Attributes
    ----------
    statistics : dict
        Counts of what each step did.
    """

    def __init__(
        self,
        recipe: Recipe,
        stages: Stages,
        source: FeatureSource,
        others: Integers,
        sizes: Integers,
        most: int | None,
    ) -> None:
        self._recipe, self._stages, self._source = recipe, stages, source
        self._spark = source.documents.source.sparkSession
        self._rule = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
        self._mean = 8 * int(sizes.sum()) // max(len(sizes), 1)
        self._most = None if most is None else _LISTED * most
        self.statistics: dict[str, Any] = {"distinct_sets": len(sizes)}
        rooms = np.empty(len(sizes), np.int64)
        if recipe.search == "lsh":
            rooms[:] = bands_of(recipe).bands
        else:
            prefix_rooms(sizes, self._rule, rooms)
        self._parts = parts_of(_ENTRY.itemsize * int(rooms.sum()), stages.workers)
        self._make = partial(self._made, others)

    @cached_property
    def _entries(self) -> DataFrame:
        """The entries of all distinct sets, written: who asks for some of them will ask again."""
        return self._stages.run("entries", self._make)

    def _made(self, others: Integers) -> DataFrame:
        if self._recipe.search == "lsh":
            make = partial(band_batches, self._parts, bands_of(self._recipe), self._recipe.seed)
        else:
            make = partial(prefix_batches, self._parts, self._rule, Shared(self._spark, self._source.counts()))
        return self._source.map(partial(is_other, Shared(self._spark, others)), make, ENTRIES)

    def candidates(self, name: str = "", some: Sides | None = None, *, every: bool = False) -> Candidates:
        """Return the pairs that share a key and may match by their sizes.

        Parameters
        ----------
        name : str
            With what the names of stages begin.
        some : Sides, optional
            The sets that are looked at.
        every : bool
            Whether all are listed, however many.
        """
        from pyspark.sql import functions as F

        most = None if every else self._most

        def made() -> DataFrame:
            sides = None if some is None else Shared(self._spark, some)
            entries = self._make() if some is None else self._entries
            parts = entries.repartitionById(self._parts, "part")
            return parts.mapInArrow(partial(listed_pairs, self._rule, sides, most), PAIRS).distinct()

        found = self._stages.run(f"{name}candidates", made)
        count, cut = found.agg(F.count("*"), F.count_if(found["left"] < 0)).first()
        self.statistics["candidates"] = self.statistics.get("candidates", 0) + count
        return Candidates(name, found, count, most is not None and (cut > 0 or count > most))

    def verified(self, candidates: Candidates) -> DataFrame:
        """Return the candidates that match, as ``EDGES``."""
        from pyspark.sql import functions as F

        name, pairs, number, _ = candidates
        times = -(-number // _PAIRS_AT_ONCE)
        parts = parts_of(min(2 * number, self.statistics["distinct_sets"]) * self._mean, self._stages.workers)

        def tables() -> Iterator[pa.Table]:
            for time in range(times):
                yield (pairs.where(F.pmod(F.xxhash64("left"), F.lit(times)) == time) if times > 1 else pairs).toArrow()

        def made() -> DataFrame:
            check = partial(check_sets, self._rule)
            return brought_together(self._spark, tables(), parts, self._sent, check, EDGES)

        return self._stages.run(f"{name}pairs", made)

    def _sent(self, asked: Shared[Asked]) -> DataFrame:
        schema = "place int, row bigint, features binary"
        return self._source.map(partial(is_asked, asked), partial(sent_sets, asked), schema)


class Asked(NamedTuple):
    """Pairs that are looked at by those who see what both documents hold, each in its home.

    Attributes
    ----------
    rows : int64[e]
        The documents that are needed, ascending: one that several homes need is there several times.
    places : int32[e]
        The home of each.
    pairs : int64[k, 3]
        Number, left and right of each pair, by homes.
    begins : int64[homes + 1]
        Where the pairs of each home begin.
    """

    rows: Integers
    places: npt.NDArray[np.int32]
    pairs: Integers
    begins: Integers

    @classmethod
    def of(cls, left: Integers, right: Integers, homes: int) -> Asked:
        """Return the pairs, whose homes are those of their left documents."""
        home = left % homes
        order = np.argsort(home, kind="stable")
        rows, places = np.concatenate([left, right]), np.concatenate([home, home]).astype(np.int32)
        ordered = np.lexsort((places, rows))
        rows, places = rows[ordered], places[ordered]
        first = np.append(True, (rows[1:] != rows[:-1]) | (places[1:] != places[:-1]))
        pairs = np.column_stack([np.arange(len(left)), left, right])[order]
        begins = np.searchsorted(home[order], np.arange(homes + 1))
        return cls(rows[first], places[first], pairs, begins)

    def sent(self, rows: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Return which of some documents go where: their positions, once for each home."""
        begins, ends = (np.searchsorted(self.rows, rows, side) for side in ("left", "right"))
        each = ends - begins
        of_each = np.repeat(np.arange(len(rows)), each)
        within = np.arange(len(of_each)) - np.repeat(np.cumsum(each) - each, each)
        return of_each, self.places[begins[of_each] + within]

    def at(self, home: int) -> pa.Table:
        """Return the pairs of a home: pair, left, right."""
        own = self.pairs[self.begins[home] : self.begins[home + 1]]
        return pa.table({name: np.ascontiguousarray(own[:, i]) for i, name in enumerate(("pair", "left", "right"))})


def is_asked(asked: Shared[Asked], rows: Integers) -> Bools:
    """Return which documents are needed somewhere; in a worker."""
    known = asked.value.rows
    found: Bools = known[np.minimum(np.searchsorted(known, rows), len(known) - 1)] == rows
    return found


def sent_sets(asked: Shared[Asked], sets: Iterator[Held]) -> Iterator[pa.RecordBatch]:
    """Yield sets for the homes that need them: place, row, features; in a worker."""
    for some in sets:
        which, places = asked.value.sent(some.rows)
        columns = [pa.array(places), pa.array(some.rows[which]), as_binary(some).take(pa.array(which))]
        yield pa.RecordBatch.from_arrays(columns, ["place", "row", "features"])


def brought_together(
    spark: SparkSession,
    tables: Iterable[pa.Table],
    homes: int,
    send: Callable[[Shared[Asked]], DataFrame],
    check: Callable[[pa.Table, pa.Table], pa.Table],
    schema: str,
) -> DataFrame:
    """Return what is said of pairs by those who see what both documents hold.

    A pair is looked at in one of some homes. What the documents hold goes to each home that needs it, once.

    Parameters
    ----------
    spark : SparkSession
        The session.
    tables : iterable of pyarrow.Table
        left, right: rows of pairs. For each table all documents are gone through.
    homes : int
        How many homes there are.
    send : callable
        It gives place, row and more of the documents that are asked for.
    check : callable
        It is given the documents and the pairs of a home as tables, in a worker, and returns rows of ``schema``.
    schema : str
        Names and types of what is said.
    """
    said = [spark.createDataFrame([], schema)]
    for table in tables:
        if len(table):
            asked = Shared(spark, Asked.of(table["left"].to_numpy(), table["right"].to_numpy(), homes))
            held_there = send(asked).repartitionById(homes, "place")
            said.append(held_there.mapInArrow(partial(_checked, asked, check), schema))
    return reduce(lambda one, other: one.union(other), said[1:] or said)


def _checked(
    asked: Shared[Asked], check: Callable[[pa.Table, pa.Table], pa.Table], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if documents := list(batches):
        table = pa.Table.from_batches(documents)
        for home in pc.unique(table["place"]).to_pylist():
            own = table.filter(pc.equal(table["place"], home))
            yield from check(own, asked.value.at(home)).to_batches()


def prefix_batches(parts: int, wanted: Rule, counts: Shared[Counts], given: Iterator[Held]) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by their rare-first prefixes, without features that nobody shares; in a worker."""
    table = counts.value.table
    shift = np.uint64(65 - len(table).bit_length())
    for sets in given:
        count = len(sets.sizes)
        rooms = np.empty(count, np.int64)
        prefix_rooms(sets.sizes, wanted, rooms)
        shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
        bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(rooms.sum()), np.uint64)
        results = shared, lengths, bitmaps, starts, keys, 0
        prefixes(sets.addresses, sets.sizes, np.arange(count), shift, table, wanted, results)
        able = np.flatnonzero(lengths > 0)
        shared, lengths, starts = shared[able], lengths[able], starts[able]
        found = Sets(sets.addresses[able], sets.sizes[able], shared, lengths, bitmaps[able], starts, keys)
        indexed = np.empty(len(able), np.int64)
        index_lengths(found, wanted, indexed)
        owner = np.repeat(np.arange(len(able)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rests = shared[owner] - place
        rests[place >= indexed[owner]] *= -1
        used = keys[starts[owner] + place]
        befores = np.where(place > 0, np.roll(used, 1), np.uint64(0))
        yield _entries(parts, used, befores, sets.rows[able][owner], found.sizes[owner], rests)


def band_batches(parts: int, plan: Bands, seed: int, given: Iterator[Held]) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by the bands of their sketches; in a worker. Parameters as in ``lsh.keys_of``."""
    for sets in given:
        keys = keys_of((sets.features, sets.sizes), plan, seed)
        rows, sizes = (np.repeat(array, plan.bands) for array in (sets.rows, sets.sizes))
        befores = np.zeros_like(keys)
        befores[:, 1:] = keys[:, :-1]
        yield _entries(parts, keys.ravel(), befores.ravel(), rows, sizes, sizes)


def _entries(parts: int, keys: Any, befores: Any, rows: Integers, sizes: Integers, rests: Integers) -> pa.RecordBatch:
    found = np.empty(len(keys), _ENTRY)
    for name, column in zip(_ENTRY.names or (), (keys, befores, rows, sizes, rests), strict=True):
        found[name] = column
    part = (keys % np.uint64(parts)).astype(np.int32)
    order = np.argsort(part, kind="stable")
    numbers, begins = np.unique(part[order], return_index=True)
    blobs = [some.tobytes() for some in np.split(found[order], begins[1:])] if len(numbers) else []
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(blobs, pa.binary())], ["part", "data"])


def listed_pairs(
    wanted: Rule, some: Shared[Sides] | None, most: int | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a part's entries; beyond so many, (-1, -1) as the last one; in a worker."""
    entries = np.frombuffer(b"".join(blob for batch in batches for blob in batch["data"].to_pylist()), _ENTRY)
    if some is not None:
        entries = entries[np.isin(entries["row"], some.value.rows)]
    if not len(entries):
        return
    keys = np.ascontiguousarray(entries["key"])
    order = np.argsort(keys)
    keys = keys[order]
    # A set that is alone at a key meets nobody there.
    again = np.append(False, keys[1:] == keys[:-1])
    entries = entries[order[again | np.append(again[1:], False)]]
    if not len(entries):
        return
    entries = entries[np.lexsort((entries["size"], entries["key"]))]
    keys, befores, rows, sizes, rests = (np.ascontiguousarray(entries[name]) for name in _ENTRY.names or ())
    second = np.empty(0, np.bool_)
    if some is not None and len(some.value.second):
        second = some.value.second[np.searchsorted(some.value.rows, rows)]
    high, reach = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    partner_sizes(sizes, rests, wanted, high, reach)
    given = Entries(keys, befores, rows, sizes, high, reach)
    largest = int(np.diff(np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))).max())
    pairs, at, left = np.empty((max(_PAIRS_AT_A_TIME, largest), 2), np.int64), 0, most
    while at < len(keys):
        at, written = key_pairs(at, given, second, REFERENCE, pairs)
        found = pairs[:written] if left is None else pairs[: min(written, left)]
        yield pa.RecordBatch.from_arrays([pa.array(found[:, 0]), pa.array(found[:, 1])], ["left", "right"])
        if left is not None and (left := left - written) < 0:
            yield pa.RecordBatch.from_pydict({"left": [-1], "right": [-1]})
            return


def check_sets(wanted: Rule, sets: pa.Table, pairs: pa.Table) -> pa.Table:
    """Return the pairs of a home that match, and how many features each has in common; in a worker."""
    pairs = pairs.sort_by([("right", "ascending"), ("left", "ascending")])
    parts: list[Held] = [held(batch) for batch in sets.to_batches()]
    rows, sizes, addresses = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(rows)
    left, right = (order[np.searchsorted(rows[order], pairs[side].to_numpy())] for side in ("left", "right"))
    shared = np.empty(len(left), np.int64)
    overlaps_of_pairs(left, right, addresses, sizes, wanted, shared)
    matching = pa.array(shared >= 0)
    return pairs.select(["left", "right"]).append_column("o", pa.array(shared)).filter(matching)
