"""The drawn pairs as questions on the page of labels, with what the answers say so far beside them."""

from __future__ import annotations

from collections.abc import Iterator

from neardup.auditing.audit import Drawing
from neardup.auditing.finding import Audit, interval_text
from neardup.auditing.judging import votes_of_store
from neardup.labelling.choosing import Asked, Fact, FixedChooser
from neardup.labelling.known import Known


class SampleChooser(FixedChooser):
    """Asks the drawn pairs of every labeller, in an order that tells nothing.

    Parameters
    ----------
    drawing : Drawing
        The sample.
    known : Known
        Store and documents.
    """

    def __init__(self, drawing: Drawing, known: Known) -> None:
        sides = zip(drawing.left.tolist(), drawing.right.tolist(), strict=True)
        super().__init__(known, [Asked(left, right, "sample") for left, right in sides])
        self._drawing, self._store = drawing, known.store
        self._seen = -1
        self._facts: list[Fact] = []

    @property
    def open_pairs(self) -> int:
        """How many of the pairs nobody has judged."""
        return sum(not self._known.answers.get(place) for place in self._pairs)

    def facts(self) -> tuple[list[Fact], bool]:
        """Return precision and recall, as far as they are known."""
        version = self._store.version
        if version != self._seen:
            drawing = self._drawing
            found = drawing.audit(drawing.judged(votes_of_store(self._store.labels, drawing.places)))
            self._facts, self._seen = [*_facts(found)], version
        return self._facts, False


def _facts(found: Audit) -> Iterator[Fact]:
    shares = {
        "precision": (found.precision, "of the returned pairs are duplicates"),
        "recall": (found.recall, "of the duplicates above the net are returned"),
    }
    for name, (figure, meaning) in shares.items():
        if figure.value is not None:
            yield Fact(name, f"{figure.value:.2f}", f"{interval_text(figure)} {meaning}")
