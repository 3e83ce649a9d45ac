"""What a run found, and the answers to the questions that follow: who went, why, and what if."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.clock import Clock
from neardup.decision.evidence import Learned
from neardup.details import recipe_details
from neardup.documents import Corpus
from neardup.errors import RecipeError, UnknownDocument
from neardup.keep import Floats, Integers, families, keepers
from neardup.measures import measure, reaching, similarities, threshold_of
from neardup.pairs import Names, Pair, Pairs
from neardup.recipe import Recipe
from neardup.search.matches import Matches
from neardup.search.verify import texts_representative
from neardup.verdicts import Dropped, Family, family_list

if TYPE_CHECKING:
    from neardup.decision.decision import Decision
    from neardup.explain.explanation import Explanation
    from neardup.features.statistics import Statistics
    from neardup.vector.encoder import Encoder


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a run, by position: those that were read whole.

    Attributes
    ----------
    names : Names
        Their ids or row numbers.
    order : int64[n]
        Positions in keep order.
    text_marks : uint64[n]
        Equal for texts (of a recipe with ``content``, for contents) that are equal byte for byte.
    text_bytes : int64[n]
        The length of each text (or content).
    present : bool[n]
        False for those set aside later, as with repeated ids.
    """

    names: Names
    order: Integers
    text_marks: npt.NDArray[np.uint64]
    text_bytes: Integers
    present: npt.NDArray[np.bool_]


class Result:
    """What a run found. Nothing changes a result; ``at`` returns another one.

    Attributes
    ----------
    recipe : Recipe
        What was done.
    summary : dict
        Counts, stages, recipe and versions, ready for JSON.
    pairs : Pairs
        All pairs at or above the threshold; where ``summary["all_pairs"]`` is False, those of dropped documents with
        kept ones before them.
    """

    def __init__(
        self,
        corpus: Corpus,
        recipe: Recipe,
        documents: Documents,
        joined: Matches,
        details: dict[str, Any],
        clock: Clock,
        *,
        statistics: Statistics | None = None,
        encoder: Encoder | None = None,
        decision: Decision | None = None,
    ) -> None:
        self.recipe = recipe
        self._corpus, self._documents, self._joined, self._details = corpus, documents, joined, details
        self._clock = clock
        self._statistics, self._encoder, self._decision = statistics, encoder, decision
        if joined.second is not None and recipe.second_step is not None:
            similarity = similarities(recipe.second_step.measure, joined.second)
        else:
            similarity = similarities(recipe.measure, joined.counts, joined.unit)
        pairs = joined.representative, joined.left, joined.right, similarity
        self._learned = None
        if decision is not None and joined.vectors is not None:
            self._learned = partial(Learned, decision, joined.vectors)
        self.pairs = Pairs(documents.names, *pairs, more=self._columns if self._learned else None)
        self._kept = keepers(joined.representative, self.pairs.graph, documents.order)
        self._families = families(joined.representative, joined.left, joined.right, similarity)

    @property
    def _stays(self) -> npt.NDArray[np.bool_]:
        return ~self._kept.dropped & self._documents.present

    @property
    def _goes(self) -> npt.NDArray[np.bool_]:
        return self._kept.dropped & self._documents.present

    @property
    def kept(self) -> list[Any]:
        """The ids of the documents that stay, row numbers where there are none, in the order of the input."""
        return list(self._documents.names.of(self._stays).to_pylist())

    @property
    def undecidable(self) -> list[Any]:
        """The ids of documents without features, which match nothing: empty texts, or too few terms for I-Match."""
        alone = (self._joined.representative < 0) & self._documents.present
        return list(self._documents.names.of(alone).to_pylist())

    @property
    def dropped(self) -> Dropped:
        """The documents that go, each with its keeper."""
        return Dropped(self._documents.names, np.flatnonzero(self._goes), self._kept, self._families.family)

    @property
    def families(self) -> list[Family]:
        """The families, in the order of their first documents."""
        return family_list(self._families, self._documents.names)

    @property
    def texts(self) -> Integers:
        """For each document the first one with the same text, byte for byte; -1 for what matches nothing: int64[n]."""
        known = self._documents
        return texts_representative(known.text_marks, known.text_bytes, self._joined.representative < 0)

    @property
    def vectors(self) -> Floats | None:
        """The similarities that a learned decision went by, for each pair of representatives; None without one."""
        return self._joined.vectors

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, stages, recipe and versions, ready for JSON."""
        goes, present = self._goes, self._documents.present
        marks = self._documents.text_marks[present]
        equal = goes & (self._kept.similarity == 1.0)
        return {
            "documents": int(present.sum()),
            "kept": int(self._stays.sum()),
            "dropped": int(goes.sum()),
            "exact_copies": len(marks) - len(np.unique(marks)),
            "equal_content": int(equal.sum()),
            "families": len(self._families.documents),
            "largest_family": int(self._families.documents.max(initial=0)),
            "pairs": len(self.pairs),
            "all_pairs": self._joined.complete,
            "text_bytes": int(self._documents.text_bytes[present].sum()),
            "bytes_saved": int(self._documents.text_bytes[goes].sum()),
            "set_aside": dict(self._corpus.set_aside.counts),
            "stages": list(self._clock.stages),
        } | self._details

    def learned(self, left: Integers, right: Integers) -> Learned | None:
        """Return what a learned decision went by on matching documents, by position; None where none decided."""
        return self._learned(self.pairs.edge_of(left, right)) if self._learned else None

    def _columns(self, edges: Integers, full: bool) -> dict[str, pa.Array]:
        return self._learned(edges).columns(measures=full) if self._learned else {}

    def duplicates(self) -> pa.Table:
        """Return a table of the dropped documents: dropped, keeper (ids), similarity, family.

        Where a learned decision decided, g and the measures that pushed it follow (``Learned.columns``).
        """
        at = np.flatnonzero(self._goes)
        names = self._documents.names
        learned = self.learned(at, self._kept.keeper[at])
        return pa.table(
            {
                "dropped": names.of(at),
                "keeper": names.of(self._kept.keeper[at]),
                "similarity": pa.array(self._kept.similarity[at]),
                "family": pa.array(self._families.family[at]),
            }
            | ({} if learned is None else learned.columns())
        )

    def write(self, output: str, *, force: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """Write the documents that stay, with all columns, to a file whose name says the format."""
        mask = np.zeros(self._corpus.raw_rows, np.bool_)
        mask[self._documents.names.rows[self._stays]] = True
        with self._clock.stage("write"):
            self._corpus.copy(mask, output, force=force, progress=progress)

    def table(self) -> pa.Table:
        """Return the documents that stay, with all columns, as a table in memory."""
        return self._corpus.take(self._documents.names.rows[self._stays])

    def at(self, threshold: float) -> Result:
        """Return the result of a stricter threshold, without another search: higher, or lower for a distance.

        Raises
        ------
        RecipeError
            If the threshold is looser than this run's: the pairs beyond it were not looked for. Or if a learned
            decision decided, which has a cut in place of a threshold.
        """
        if self._decision is not None:
            raise RecipeError(
                "a learned decision has no threshold to move; choose its working point and run again, with "
                "decision.at_precision(0.99) or --precision 0.99"
            )
        asked, mine = threshold_of(self.recipe.measure, threshold), self.recipe.exact_threshold
        distance = measure(self.recipe.measure).distance
        if asked > mine if distance else asked < mine:
            side = "above" if distance else "below"
            raise RecipeError(
                f"threshold {threshold} is {side} this run's {self.recipe.threshold}: such pairs are unknown; "
                f"run again with threshold={threshold}"
            )
        if not self._joined.complete:
            raise RecipeError(
                f"the pairs of this run are too many to be all known, so its result at {threshold} is not; run again "
                f"with threshold={threshold}, or with pairs_per_document=None"
            )
        recipe = self.recipe.changed(threshold=threshold)
        joined = self._joined
        enough = reaching(recipe.measure, joined.counts, asked, joined.unit)
        narrowed = replace(
            joined,
            left=joined.left[enough],
            right=joined.right[enough],
            counts=joined.counts[enough],
            second=None if joined.second is None else joined.second[enough],
        )
        return Result(
            self._corpus,
            recipe,
            self._documents,
            narrowed,
            self._details | recipe_details(recipe),
            self._clock,
            statistics=self._statistics,
            encoder=self._encoder,
        )

    def borderline(self, count: int = 10) -> list[Pair]:
        """Return the pairs that only just match, the least similar first; with a decision, the least probable.

        Pairs that a decision turned down are not known any more; ``decision.everything()`` lets all of its net pass.
        """
        order = np.lexsort((self.pairs.right, self.pairs.left, self.pairs.similarity))[:count]
        names = self._documents.names
        return [
            Pair(names.one(self.pairs.left[i]), names.one(self.pairs.right[i]), float(self.pairs.similarity[i]))
            for i in order
        ]

    def explain(self, left: Any, right: Any) -> Explanation:
        """Return why two documents match or not.

        Parameters
        ----------
        left, right : id
            Ids of documents; row numbers where there are none.

        Raises
        ------
        UnknownDocument
            If there is no such document.
        """
        from neardup.explain.explanation import explain

        rows = [int(self._documents.names.rows[self._position(name)]) for name in (left, right)]
        taken = self._corpus.take(rows)
        texts = taken[self._corpus.text_column].to_pylist()
        records = self._decision.records(taken, texts) if self._decision else None
        asked = self.recipe, self._statistics, self._encoder, self._decision, records
        return explain(texts[0], texts[1], *asked)

    def _position(self, name: Any) -> int:
        names = self._documents.names
        if names.ids is None:
            found = np.flatnonzero(names.rows == name) if isinstance(name, int) else np.zeros(0, int)
            place = int(found[0]) if len(found) else -1
        else:
            try:
                place = pc.index(names.ids, pa.scalar(name, names.ids.type)).as_py()
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                place = -1
        if place < 0:
            raise UnknownDocument(f"no document has the id {name!r}; ids are those of result.kept and result.dropped")
        return place

    def close(self) -> None:
        """Put the quarantine file in its place and remove temporary files; no text can be read after."""
        self._corpus.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept)

    def __repr__(self) -> str:
        by = f"{self.recipe.features} {self.recipe.measure} >= {self.recipe.threshold}"
        if self._decision is not None:
            by = f"decision {self._decision.fingerprint}"
        return f"<neardup result: {int(self._stays.sum()):,} kept, {int(self._goes.sum()):,} dropped, {by}>"
