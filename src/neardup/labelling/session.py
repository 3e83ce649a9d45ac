"""A session of labelling: asks pairs of several labellers at once, takes their answers, and tells what they come to."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from neardup.errors import InputError
from neardup.evaluation.agreement import Agreement, agreements
from neardup.evaluation.audit import Audit, Sample
from neardup.evaluation.audit_result import interval_text
from neardup.evaluation.population import votes_of_store
from neardup.labelling.index import LabelIndex
from neardup.labelling.queue import REASONS, Asked, Fact, FixedQueue, LabelQueue
from neardup.labels.store import ANSWERS, SKIP, Judgement, Open, PairOfIds, checked_name
from neardup.pages.diff_view import side_by_side

#: Nobody looks at a pair longer than a day.
_PATIENCE_S = 86_400.0
#: People judge whole texts.
_ALL_WORDS = 1 << 40


class Session:
    """Asks pairs and takes answers, of several labellers at once.

    Without a ``labeller`` the page asks for the name; ``goal`` answers of each labeller are enough.
    """

    def __init__(
        self,
        known: LabelIndex,
        chooser: LabelQueue,
        *,
        labeller: str | None = None,
        goal: int | None = None,
        heading: str = "Are these two the same?",
    ) -> None:
        self.labeller = None if labeller is None else checked_name(labeller)
        self.goal, self.heading = goal, heading
        self.finished = threading.Event()
        self._known, self._chooser = known, chooser
        self._lock = threading.RLock()
        self._given: Counter[str] = Counter()
        self._active: set[str] = set()
        self._looks: tuple[PairOfIds, dict[str, Any]] | None = None

    @property
    def given(self) -> int:
        """How many labels were given in this session and not taken back."""
        return sum(self._given.values())

    def state(self, labeller: str) -> dict[str, Any]:
        """Return what the page shows: the pair that is asked, counts, and what the labels say so far."""
        with self._lock:
            name = checked_name(labeller)
            self._active.add(name)
            asked = None if self._enough(name) else self._open(name)
            found: dict[str, Any] = {"labeller": name, "progress": self._progress(name), "heading": self.heading}
            found["facts"] = self._facts(name)
        # Long texts take some seconds, for which others need not wait.
        return found | {"pair": None if asked is None else self._pair(asked)}

    def answer(self, labeller: str, pair: PairOfIds, answer: str, seconds: float | None = None) -> dict[str, Any]:
        """Take an answer to the pair that is asked; it is on the disk when this returns the next state.

        An answer to another pair is not taken: that one was judged in another window.
        """
        with self._lock:
            name = checked_name(labeller)
            if answer not in (*ANSWERS, SKIP):
                raise InputError(f"answer {answer!r} is unknown; choose one of {', '.join((*ANSWERS, SKIP))}")
            asked = None if self._enough(name) else self._open(name)
            before: dict[str, Any] = {"behind": True}
            if asked is not None and self._known.pair_at(asked.left, asked.right) == pair:
                before = self._said(asked, answer)
                sums = {self._known.material.id(place): self._known.material.sum_of(place) for place in asked[:2]}
                one, other = (sums[part] for part in pair)
                self._known.store.record(
                    [Judgement(pair, name, answer, asked.reason, asked.similarity, _seconds(seconds), (one, other))]
                )
                self._given[name] += answer != SKIP
        return {"before": before} | self.state(name)

    def undo(self, labeller: str) -> dict[str, Any]:
        """Take back what the labeller did last, and ask that pair again."""
        with self._lock:
            name = checked_name(labeller)
            last = self._known.store.undo(name)
            if last is not None:
                self._given[name] -= last.answer != SKIP
                self._known.store.ask(name, Open(last.pair, last.reason, last.similarity))
        before = {"nothing": True} if last is None else {"undone": last.answer}
        return {"before": before} | self.state(name)

    def finish(self, labeller: str) -> None:
        """Note that a labeller has done what there was to do; the session ends with the last one."""
        with self._lock:
            self._active.discard(checked_name(labeller))
            if not self._active:
                self.finished.set()

    def _facts(self, labeller: str) -> list[dict[str, str]]:
        """Return what the labels say so far."""
        agreed = [one for one in agreements(self._known.answers) if labeller in one.labellers]
        told = [*self._chooser.facts(), *(agreement_fact(one, labeller) for one in agreed)]
        return [fact._asdict() for fact in told]

    def _enough(self, labeller: str) -> bool:
        return self.goal is not None and self._given[labeller] >= self.goal

    def _open(self, labeller: str) -> Asked | None:
        """Return the pair that the labeller is asked, the next one if there is none."""
        kept = self._known.store.asking(labeller)
        place = None if kept is None else self._known.place_of(kept.pair)
        if kept is not None and place is not None and self._chooser.asks(place):
            return Asked(*place, kept.reason, kept.similarity)
        asked = self._chooser.next_pair(labeller)
        if asked is not None:
            pair = self._known.pair_at(asked.left, asked.right)
            self._known.store.ask(labeller, Open(pair, asked.reason, asked.similarity))
        return asked

    def _pair(self, asked: Asked) -> dict[str, Any]:
        """Return the pair as the page shows it; nothing of its similarity or why it is asked."""
        pair = self._known.pair_at(asked.left, asked.right)
        held = self._looks
        if held is None or held[0] != pair:
            left, right = (self._known.material.shown(place) for place in sorted(asked[:2]))
            html = side_by_side(left, right, words=_ALL_WORDS)
            held = self._looks = pair, {"ids": list(pair), "html": html}
        return held[1]

    def _said(self, asked: Asked, answer: str) -> dict[str, Any]:
        """Return what is shown of a pair once it was judged."""
        says = self._chooser.says(asked) if answer != SKIP else []
        return {
            "answer": answer,
            "says": [one._asdict() for one in says],
            "reason": REASONS.get(asked.reason, asked.reason) if answer != SKIP else "",
        }

    def _progress(self, labeller: str) -> dict[str, Any]:
        store = self._known.store
        return {
            "mine": store.counts(labeller),
            "skipped": len(self._known.skipped(labeller)),
            "given": self._given[labeller],
            "goal": self.goal,
            "left": self._chooser.left(labeller),
        }


def agreement_fact(found: Agreement, labeller: str) -> Fact:
    """Return how far two labellers agree, as one of them is told it."""
    other = next(name for name in found.labellers if name != labeller)
    if not found.pairs:
        return Fact(f"with {other}", "none shared yet", f"You and {other} have judged no pair both.")
    agree = f"{found.observed:.0%}" if found.kappa is None else f"κ {found.kappa:.2f}"
    meaning = (
        f"You and {other} judged {found.pairs} pairs both and agree on {found.observed:.0%} of them. Cohen's kappa "
        "counts what is beyond chance: 1 is always, 0 is as by chance."
    )
    return Fact(f"with {other}", f"{agree} ({found.pairs} shared)", meaning)


def _seconds(seconds: float | None) -> float | None:
    """Return for how long a pair was looked at; None where it makes no sense."""
    usable = seconds is not None and np.isfinite(seconds) and 0 <= seconds <= _PATIENCE_S
    return round(float(seconds), 1) if usable and seconds is not None else None


class SampleQueue(FixedQueue):
    """Asks the drawn pairs of every labeller, in an order that tells nothing."""

    def __init__(self, drawn: Sample, known: LabelIndex) -> None:
        sides = zip(drawn.left.tolist(), drawn.right.tolist(), strict=True)
        super().__init__(known, [Asked(left, right, "sample") for left, right in sides])
        self._drawn, self._store = drawn, known.store

    @property
    def open_pairs(self) -> int:
        """How many of the pairs nobody has judged."""
        return sum(not self._known.answers.get(place) for place in self._pairs)

    def facts(self) -> list[Fact]:
        """Return precision and recall, as far as they are known."""
        drawn = self._drawn
        return [*_facts(drawn.audit(drawn.judged(votes_of_store(self._store.labels, drawn.places))))]


def _facts(found: Audit) -> Iterator[Fact]:
    shares = {
        "precision": (found.precision, "of the returned pairs are duplicates"),
        "recall": (found.recall, "of the duplicates among the candidates are returned"),
    }
    for name, (figure, meaning) in shares.items():
        if figure.value is not None:
            yield Fact(name, f"{figure.value:.2f}", f"{interval_text(figure)} {meaning}")
