"""How work on Spark is cut, and which recipes Spark has a search for."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.decision.decision import Decision
from neardup.errors import RecipeError
from neardup.recipe import Recipe
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.search.learned import check_decision
from neardup.search.lsh import bands_of

#: Bytes of features that a worker holds at a time, so the number of parts of large collections.
_PART_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the work is cut; none of it changes a verdict.

    Attributes
    ----------
    partitions : int or None
        Parts in which entries and features meet; None for as many as workers, more where they would not fit these.
    driver_pairs : int
        Up to so many pairs of distinct sets, the driver decides who stays; more are decided in rounds, in the workers.
        Raising it takes memory of the driver, some 100 bytes a pair.
    count_bits : int
        The table of counts has 2**count_bits bytes at most. Raising it sends fewer entries in large collections; each
        worker holds the table.
    send_bytes : int
        Where the features of all candidates are more than this, sketches of them are sent first. Raising it spares
        small collections a round.
    pairs_per_document : float or None
        As in ``neardup.dedup``: where more pairs match, only those of dropped documents with kept ones are told.
    block : int
        A list of more sets that share a key than this is cut into blocks of so many. Raising it gives fewer and larger
        pieces of work.
    """

    partitions: int | None = None
    driver_pairs: int = 2_000_000
    count_bits: int = 27
    send_bytes: int = 64 << 20
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT
    block: int = 4096

    def parts(self, size: int, workers: int) -> int:
        """Return how many parts so many bytes are cut into where there are so many workers."""
        return self.partitions or max(workers, -(-size // _PART_BYTES))


def check_recipe(recipe: Recipe, decision: Decision | None = None) -> None:
    """Refuse a recipe that Spark has no search for, before anything is read.

    Raises
    ------
    RecipeError
        In one sentence that names the way out.
    """
    step = recipe.second_step
    what = ""
    if recipe.measure in ("hamming", "semantic"):
        what = f"measure {recipe.measure!r}"
    elif recipe.is_weighted:
        what = f"weights {recipe.weights!r}"
    elif step is not None and step.measure == "semantic":
        what = f"then {recipe.then!r}"
    if what:
        raise RecipeError(f"{what} is not searched on Spark; leave out the engine 'spark' to run it on this machine")
    if recipe.search == "lsh":
        bands_of(recipe)
    if decision is not None or (step is not None and step.measure == "learned"):
        check_decision(decision, recipe, None)
