"""Who matches whom: entries meet at their keys, and the feature sets of candidate pairs are compared exactly."""

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
from neardup.keep.keepers import build_graph, find_keepers, rank_documents
from neardup.kernels.counts import prefix_capacities
from neardup.kernels.prefixes import (
    KeyEntries,
    RankedSets,
    index_lengths,
    overlaps_of_pairs,
    pairs_by_key,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, rule
from neardup.runtime import Memory
from neardup.search.join import JoinContext, find_prefixes
from neardup.search.lsh import Bands, bands_of, keys_of
from neardup.search.second_step import check_classifier
from neardup.spark.documents import DocumentSource, piped
from neardup.spark.features import (
    FIRST_REFERENCE_ROW,
    Broadcast,
    FeatureCounts,
    RowFilter,
    SetBatch,
    count_table_bits,
    decode_sets,
    encode_sets,
    is_included,
    set_batches,
    sorted_contains,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Turns feature sets into batches, in a worker.
SetWorker = Callable[[Iterator[SetBatch]], Iterator[pa.RecordBatch]]
#: Compares the pairs of a part (pair, left, right), given the documents of that part, in a worker.
PairWorker = Callable[[pa.Table, pa.Table], pa.Table]

#: A set at one of its keys: the key before it in the set's prefix (0 for none), and how many of the set's features are
#: at this key or after it, negative where the set only waits for smaller ones.
_ENTRY = np.dtype([("key", "<u8"), ("previous", "<u8"), ("row", "<i8"), ("size", "<i4"), ("rest", "<i4")])
#: Entries as blobs; all entries of one key are in the same part.
ENTRY_COLUMNS = "part int, data binary"
PAIR_COLUMNS = "left bigint, right bigint"
#: o is the number of shared features.
EDGE_COLUMNS = "left bigint, right bigint, o bigint"
#: Bytes of entries that a worker joins at a time, and bytes of features that it compares.
_PART_BYTES = 64 << 20
_PAIRS_PER_BATCH = 1 << 18
#: Pairs that are compared in one pass over the documents: each worker holds all of them.
_PAIRS_PER_PASS = 1 << 22
#: A pair is listed a few times, and some listed pairs do not match. Beyond this many candidates for each pair that may
#: be found, the pairs are certainly too many.
_CANDIDATES_PER_PAIR = 8


def check_recipe(recipe: Recipe, classifier: Classifier | None = None) -> None:
    """Check, before anything is read, that Spark can search for what a recipe asks for.

    Raises
    ------
    RecipeError
        In one sentence that names the way out.
    """
    step = recipe.parsed_second_step
    choice = ""
    if recipe.measure in ("hamming", "semantic"):
        choice = f"measure {recipe.measure!r}"
    elif recipe.is_weighted:
        choice = f"weights {recipe.weights!r}"
    elif step is not None and step.measure == "semantic":
        choice = f"second_step {recipe.second_step!r}"
    if choice:
        raise RecipeError(
            f"{choice} is not searched on Spark, whose join compares sets by shared keys, not bits, weights or "
            "vectors; leave out the engine 'spark' to run it on this machine"
        )
    if recipe.search == "lsh":
        bands_of(recipe)
    if classifier is not None or (step is not None and step.measure == "learned"):
        check_classifier(classifier, recipe, None)


def part_count(size: int, workers: int) -> int:
    """Return into how many parts to divide work on ``size`` bytes."""
    return max(4 * workers, -(-size // _PART_BYTES))


class FeatureSource(NamedTuple):
    """The feature sets of documents. Workers make them anew in each pass, which is faster than to store them.

    Attributes
    ----------
    documents : DocumentSource
        The documents.
    recipe : Recipe
        What the features are.
    statistics : Broadcast or None
        The document frequencies, if the recipe needs them.
    slices : DataFrame
        slice, data: the count tables from ``features.digest_batches``.
    """

    documents: DocumentSource
    recipe: Recipe
    statistics: Broadcast[Statistics] | None
    slices: DataFrame

    def map(self, is_chosen: RowFilter, worker: SetWorker, schema: str) -> DataFrame:
        """Return what workers make of the sets of the chosen documents."""
        make = partial(piped, partial(set_batches, self.recipe, self.statistics, is_chosen), worker)
        return self.documents.map(make, ["row", "text"], schema)

    def counts(self) -> FeatureCounts:
        """Return the counts of all features."""
        return FeatureCounts.of(self.slices, count_table_bits(self.recipe, self.documents.text_bytes))


class Sides(NamedTuple):
    """Sets to search, on two sides: only sets of different sides are compared.

    Attributes
    ----------
    rows : int64[n]
        The rows of the sets, ascending.
    is_second : bool[n]
        The side of each set; empty if all sets are compared with each other.
    """

    rows: Integers
    is_second: Bools


class Candidates(NamedTuple):
    """Pairs of sets that may match: left and right, the smaller row on the left, each pair once.

    ``prefix`` begins the names of their stages. If they are ``truncated``, too many pairs match for all to be found.
    """

    prefix: str
    frame: DataFrame
    size: int
    truncated: bool


class PairSearch:
    """Finds the matching pairs of distinct sets.

    Parameters
    ----------
    source : FeatureSource
        The sets of all documents.
    excluded : int64[k]
        Rows, ascending, of documents that are rejected, have no features, or equal an earlier one.
    sizes : int64[n]
        The number of features of each distinct set.
    max_pairs : int or None
        How many pairs may be found in full; None for any number.

    Attributes
    ----------
    statistics : dict
        Counts of each step.
    """

    def __init__(
        self,
        recipe: Recipe,
        stages: Stages,
        source: FeatureSource,
        excluded: Integers,
        sizes: Integers,
        max_pairs: int | None,
    ) -> None:
        self._recipe, self._stages, self._source = recipe, stages, source
        self._spark = source.documents.frame.sparkSession
        self._rule = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
        self._excluded = excluded
        self._mean_bytes = 8 * int(sizes.sum()) // max(len(sizes), 1)
        self._max_candidates = None if max_pairs is None else _CANDIDATES_PER_PAIR * max_pairs
        self.statistics: dict[str, Any] = {"distinct_sets": len(sizes)}
        entries = np.empty(len(sizes), np.int64)
        if recipe.search == "lsh":
            entries[:] = bands_of(recipe).bands
        else:
            prefix_capacities(sizes, self._rule, entries)
        self._parts = part_count(_ENTRY.itemsize * int(entries.sum()), stages.workers)

    @cached_property
    def _written_entries(self) -> DataFrame:
        """The entries of all distinct sets, written as a stage, since a search on sides reads them repeatedly."""
        return self._stages.run("entries", self._entries)

    def _entries(self) -> DataFrame:
        if self._recipe.search == "lsh":
            make = partial(band_batches, self._parts, bands_of(self._recipe), self._recipe.seed)
        else:
            make = partial(prefix_batches, self._parts, self._rule, Broadcast(self._spark, self._source.counts()))
        excluded = Broadcast(self._spark, self._excluded)
        return self._source.map(partial(is_included, excluded), make, ENTRY_COLUMNS)

    def candidates(self, prefix: str = "", sides: Sides | None = None, *, complete: bool = False) -> Candidates:
        """Return the pairs that share a key and may match by their sizes.

        ``sides`` are the sets to search, by default all distinct sets. ``complete`` lists all pairs, however many.
        ``prefix`` begins the name of the stage.
        """
        from pyspark.sql import functions as F

        limit = None if complete else self._max_candidates

        def listed() -> DataFrame:
            sent = None if sides is None else Broadcast(self._spark, sides)
            entries = self._entries() if sides is None else self._written_entries
            parts = entries.repartitionById(self._parts, "part")
            return parts.mapInArrow(partial(candidate_batches, self._rule, sent, limit), PAIR_COLUMNS).distinct()

        frame = self._stages.run(f"{prefix}candidates", listed)
        size, cuts = frame.agg(F.count("*"), F.count_if(frame["left"] < 0)).first()
        self.statistics["candidates"] = self.statistics.get("candidates", 0) + size
        return Candidates(prefix, frame, size, limit is not None and (cuts > 0 or size > limit))

    def verify(self, candidates: Candidates) -> pa.Table:
        """Return the candidates that match, as ``EDGE_COLUMNS``."""
        from pyspark.sql import functions as F

        passes = -(-candidates.size // _PAIRS_PER_PASS)
        needed_sets = min(2 * candidates.size, self.statistics["distinct_sets"])
        parts = part_count(needed_sets * self._mean_bytes, self._stages.workers)

        def tables() -> Iterator[pa.Table]:
            if passes <= 1:
                yield self._stages.table(f"{candidates.prefix}candidates", ["left", "right"])
                return
            for number in range(passes):
                yield candidates.frame.where(F.pmod(F.xxhash64("left"), F.lit(passes)) == number).toArrow()

        def verified() -> DataFrame:
            worker = partial(verify_sets, self._rule)
            return compare_pairs(self._spark, tables(), parts, self._route, worker, EDGE_COLUMNS)

        name = f"{candidates.prefix}pairs"
        self._stages.run(name, verified)
        return self._stages.table(name, ["left", "right", "o"])

    def _route(self, placement: Broadcast[PairPlacement]) -> DataFrame:
        schema = "part int, row bigint, features binary"
        return self._source.map(partial(is_needed, placement), partial(route_sets, placement), schema)


class PairPlacement(NamedTuple):
    """Pairs to compare, each in one part, and the documents that each part needs for them.

    Attributes
    ----------
    rows : int64[e]
        The documents that are needed, ascending; one that several parts need occurs several times.
    parts : int32[e]
        The part that needs each.
    pairs : int64[k, 3]
        Number, left and right of each pair, ordered by part.
    begins : int64[parts + 1]
        Where the pairs of each part begin.
    """

    rows: Integers
    parts: npt.NDArray[np.int32]
    pairs: Integers
    begins: Integers

    @classmethod
    def of(cls, left: Integers, right: Integers, parts: int) -> PairPlacement:
        """Place pairs; the part of a pair follows from its left document."""
        part = left % parts
        order = np.argsort(part, kind="stable")
        rows, needed_by = np.concatenate([left, right]), np.concatenate([part, part]).astype(np.int32)
        by_row = np.lexsort((needed_by, rows))
        rows, needed_by = rows[by_row], needed_by[by_row]
        is_first = np.append(True, (rows[1:] != rows[:-1]) | (needed_by[1:] != needed_by[:-1]))
        pairs = np.column_stack([np.arange(len(left)), left, right])[order]
        begins = np.searchsorted(part[order], np.arange(parts + 1))
        return cls(rows[is_first], needed_by[is_first], pairs, begins)

    def destinations(self, rows: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Return the positions of the documents to send, once for each part that needs one, and those parts."""
        begins, ends = (np.searchsorted(self.rows, rows, side) for side in ("left", "right"))
        copies = ends - begins
        positions = np.repeat(np.arange(len(rows)), copies)
        offsets = np.arange(len(positions)) - np.repeat(np.cumsum(copies) - copies, copies)
        return positions, self.parts[begins[positions] + offsets]

    def pairs_of(self, part: int) -> pa.Table:
        """Return the pairs of a part: pair, left, right."""
        pairs = self.pairs[self.begins[part] : self.begins[part + 1]]
        return pa.table({name: np.ascontiguousarray(pairs[:, i]) for i, name in enumerate(("pair", "left", "right"))})


def is_needed(placement: Broadcast[PairPlacement], rows: Integers) -> Bools:
    """Return which documents some part needs; runs in a worker."""
    return sorted_contains(placement.value.rows, rows)


def route_sets(placement: Broadcast[PairPlacement], batches: Iterator[SetBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sets for the parts that need them: part, row, features; runs in a worker."""
    for sets in batches:
        positions, parts = placement.value.destinations(sets.rows)
        columns = [pa.array(parts), pa.array(sets.rows[positions]), encode_sets(sets).take(pa.array(positions))]
        yield pa.RecordBatch.from_arrays(columns, ["part", "row", "features"])


def compare_pairs(
    spark: SparkSession,
    tables: Iterable[pa.Table],
    parts: int,
    route: Callable[[Broadcast[PairPlacement]], DataFrame],
    worker: PairWorker,
    schema: str,
) -> DataFrame:
    """Compare pairs in the workers: each pair in one part, to which both its documents are sent.

    Parameters
    ----------
    spark : SparkSession
        The session.
    tables : iterable of pyarrow.Table
        left, right: rows of pairs. Each table takes one pass over all documents.
    parts : int
        The number of parts.
    route : callable
        Returns the needed documents: part, row and what ``worker`` compares.
    worker : callable
        Takes the documents and the pairs of a part, and returns rows of ``schema``.
    schema : str
        Names and types of the result's columns.
    """
    results = [spark.createDataFrame([], schema)]
    for table in tables:
        if len(table):
            placement = PairPlacement.of(table["left"].to_numpy(), table["right"].to_numpy(), parts)
            sent = Broadcast(spark, placement)
            documents = route(sent).repartitionById(parts, "part")
            results.append(documents.mapInArrow(partial(compare_parts, sent, worker), schema))
    return reduce(lambda left, right: left.union(right), results[1:] or results)


def compare_parts(
    placement: Broadcast[PairPlacement], worker: PairWorker, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what a worker finds about the pairs of the parts that it was sent; runs in a worker."""
    if documents := list(batches):
        table = pa.Table.from_batches(documents)
        for part in pc.unique(table["part"]).to_pylist():
            yield from worker(table.filter(pc.equal(table["part"], part)), placement.value.pairs_of(part)).to_batches()


def prefix_batches(
    parts: int, rule: Rule, counts: Broadcast[FeatureCounts], batches: Iterator[SetBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by their rare-first prefixes, without unshared features; runs in a worker."""
    table = counts.value.table
    shift = np.uint64(65 - len(table).bit_length())
    for sets in batches:
        context = JoinContext(sets.addresses, sets.sizes, rule, 1, Memory())
        prefixes = find_prefixes(context, np.arange(len(sets.sizes)), shift, table)
        able = np.flatnonzero(prefixes.lengths > 0)
        chosen = RankedSets(sets.addresses[able], sets.sizes[able], *prefixes.select(able))
        shared, lengths = chosen.shared, chosen.lengths
        indexed = np.empty(len(able), np.int64)
        index_lengths(chosen, rule, indexed)
        owner = np.repeat(np.arange(len(able)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rests = shared[owner] - place
        rests[place >= indexed[owner]] *= -1
        used_keys = chosen.keys[chosen.starts[owner] + place]
        previous = np.where(place > 0, np.roll(used_keys, 1), np.uint64(0))
        yield _entry_batch(parts, used_keys, previous, sets.rows[able][owner], chosen.sizes[owner], rests)


def band_batches(parts: int, plan: Bands, seed: int, batches: Iterator[SetBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by the bands of their sketches; parameters as in ``lsh.keys_of``; runs in a worker."""
    for sets in batches:
        keys = keys_of((sets.features, sets.sizes), plan, seed)
        rows, sizes = (np.repeat(array, plan.bands) for array in (sets.rows, sets.sizes))
        previous = np.zeros_like(keys)
        previous[:, 1:] = keys[:, :-1]
        yield _entry_batch(parts, keys.ravel(), previous.ravel(), rows, sizes, sizes)


def _entry_batch(
    parts: int, keys: Any, previous: Any, rows: Integers, sizes: Integers, rests: Integers
) -> pa.RecordBatch:
    entries = np.empty(len(keys), _ENTRY)
    for name, column in zip(_ENTRY.names or (), (keys, previous, rows, sizes, rests), strict=True):
        entries[name] = column
    # NumPy sorts numbers of 16 bits in one pass.
    part = (keys % np.uint64(parts)).astype(np.min_scalar_type(parts))
    order = np.argsort(part, kind="stable")
    numbers, begins = np.unique(part[order], return_index=True)
    blobs = [group.tobytes() for group in np.split(entries[order], begins[1:])] if len(numbers) else []
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), pa.array(blobs, pa.binary())], ["part", "data"])


def candidate_batches(
    rule: Rule, sides: Broadcast[Sides] | None, limit: int | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the candidate pairs of a part's entries, and (-1, -1) last if there are more than ``limit``.

    Runs in a worker.
    """
    entries = np.frombuffer(b"".join(blob for batch in batches for blob in batch["data"].to_pylist()), _ENTRY)
    if sides is not None:
        entries = entries[np.isin(entries["row"], sides.value.rows)]
    is_second = np.empty(0, np.bool_)
    if sides is not None and len(sides.value.is_second):
        is_second = sides.value.is_second[np.searchsorted(sides.value.rows, entries["row"])]
    columns = KeyEntries(*(entries[name] for name in _ENTRY.names or ()))
    order = np.argsort(np.ascontiguousarray(columns.keys))
    pairs, at, left = np.empty((_PAIRS_PER_BATCH, 2), np.int64), 0, limit
    while at < len(order):
        begin = at
        at, written = pairs_by_key(begin, order, columns, is_second, FIRST_REFERENCE_ROW, rule, pairs)
        if at == begin:
            pairs = np.empty((2 * len(pairs), 2), np.int64)
        listed = pairs[:written] if left is None else pairs[: min(written, left)]
        yield pa.RecordBatch.from_arrays([pa.array(listed[:, 0]), pa.array(listed[:, 1])], ["left", "right"])
        if left is not None and (left := left - written) < 0:
            yield pa.RecordBatch.from_pydict({"left": [-1], "right": [-1]})
            return


def verify_sets(rule: Rule, documents: pa.Table, pairs: pa.Table) -> pa.Table:
    """Return the pairs of a part that match, with their number of shared features; runs in a worker."""
    pairs = pairs.sort_by([("right", "ascending"), ("left", "ascending")])
    batches = [decode_sets(batch) for batch in documents.to_batches()]
    rows = np.concatenate([sets.rows for sets in batches])
    sizes = np.concatenate([sets.sizes for sets in batches])
    addresses = np.concatenate([sets.addresses for sets in batches])
    order = np.argsort(rows)
    left, right = (order[np.searchsorted(rows[order], pairs[side].to_numpy())] for side in ("left", "right"))
    shared = np.empty(len(left), np.int64)
    overlaps_of_pairs(left, right, addresses, sizes, rule, shared)
    return pairs.select(["left", "right"]).append_column("o", pa.array(shared)).filter(pa.array(shared >= 0))


#: Of at most this many sets all pairs are listed.
_FEW_SETS = 1000
#: Of sets that have too many pairs, one in this many is searched first: those have a 64th of the pairs.
_FIRST_SHARE = 8


class KeptPairSearch:
    """Finds the pairs of kept with dropped sets, where all pairs would be too many.

    It decides the first sets in keep order, drops those of the rest that match a kept one, and decides what remains.
    ``rows`` are the rows of all distinct sets, in keep order.
    """

    def __init__(self, search: PairSearch, rows: Integers) -> None:
        self._search, self._rows = search, rows
        self._by_row = np.argsort(rows)
        self._steps = 0

    def edges(self) -> pa.Table:
        """Return all pairs of a kept set with a dropped one, as ``EDGE_COLUMNS``."""
        kept = self._kept_in_steps(np.arange(len(self._rows)))
        dropped = np.delete(np.arange(len(self._rows)), kept)
        return self._search.verify(self._search.candidates("kept-", self._sides(kept, dropped), complete=True))

    def _kept_in_steps(self, places: Integers) -> Integers:
        """Return which sets are kept; places: in keep order, of sets that match no kept one before them."""
        begin = min(max(len(places) // _FIRST_SHARE, _FEW_SETS), (len(places) + 1) // 2)
        kept, rest = self._kept(places[:begin]), places[begin:]
        prefix = self._next_prefix()
        candidates = self._search.candidates(prefix, self._sides(kept, rest), complete=True)
        matched = self._places_of(self._search.verify(candidates))
        return np.concatenate([kept, self._kept(rest[~np.isin(rest, matched)])])

    def _kept(self, places: Integers) -> Integers:
        if not len(places):
            return places
        is_small = len(places) <= _FEW_SETS
        sides = Sides(np.sort(self._rows[places]), np.empty(0, np.bool_))
        candidates = self._search.candidates(self._next_prefix(), sides, complete=is_small)
        if candidates.truncated:
            return self._kept_in_steps(places)
        ends = np.searchsorted(places, self._places_of(self._search.verify(candidates)))
        left, right = ends.reshape(2, -1)
        pairs = build_graph(len(places), left, right, np.ones(len(left)))
        positions = np.arange(len(places))
        return places[~find_keepers(positions, pairs, positions).dropped]

    def _places_of(self, edges: pa.Table) -> Integers:
        """Return the places of all sets in pairs, those on the left before those on the right."""
        rows = np.concatenate([edges["left"].to_numpy(), edges["right"].to_numpy()])
        places: Integers = self._by_row[np.searchsorted(self._rows, rows, sorter=self._by_row)]
        return places

    def _sides(self, first: Integers, second: Integers) -> Sides:
        rows = self._rows[np.concatenate([first, second])]
        order = np.argsort(rows)
        return Sides(rows[order], np.repeat([False, True], [len(first), len(second)])[order])

    def _next_prefix(self) -> str:
        self._steps += 1
        return f"part-{self._steps}-"


def is_reported(representative: Integers, order: Integers, left: Integers, right: Integers) -> Bools:
    """Return which pairs the engine in memory reports where it does not find all: bool[k].

    Those are the pairs of a kept set with a later dropped one, and with an earlier dropped one that stands for several
    documents: some of these may come after the kept one.
    """
    count = len(representative)
    ranked = rank_documents(representative, order)
    stays = ranked.kept_nodes(build_graph(count, left, right, np.ones(len(left))))
    at = np.full(count, -1, np.int64)
    at[ranked.nodes] = ranked.places[ranked.firsts[ranked.nodes]]
    has_equals = np.bincount(representative[representative >= 0], minlength=count) > 1
    is_left_first = at[left] < at[right]
    early, late = np.where(is_left_first, left, right), np.where(is_left_first, right, left)
    reported: Bools = (stays[early] & ~stays[late]) | (stays[late] & ~stays[early] & has_equals[early])
    return reported
