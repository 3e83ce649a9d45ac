"""A labelling session: it asks several labellers at once, stores their answers, and reports figures."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from neardup.errors import InputError
from neardup.evaluation.agreement import Agreement, pairwise_agreements
from neardup.evaluation.audit import Audit, Sample
from neardup.evaluation.audit_result import interval_text
from neardup.evaluation.population import store_votes
from neardup.labelling.index import LabelIndex
from neardup.labelling.queue import REASONS, Fact, FixedQueue, LabelQueue, Question
from neardup.labels.store import ANSWERS, SKIP, IdPair, Judgement, OpenPair, labeller_name
from neardup.pages.diff_view import side_by_side

#: Longer times are not plausible.
_MAX_SECONDS = 86_400.0
#: No limit: people judge whole texts.
_ALL_WORDS = 1 << 40


class Session:
    """A labelling session of one or more labellers.

    Without a ``labeller``, the page asks for the name. The session of a labeller ends after ``goal`` answers.
    """

    def __init__(
        self,
        labels: LabelIndex,
        queue: LabelQueue,
        *,
        labeller: str | None = None,
        goal: int | None = None,
        heading: str = "Are these two the same?",
    ) -> None:
        self.labeller = None if labeller is None else labeller_name(labeller)
        self.goal, self.heading = goal, heading
        self.finished = threading.Event()
        self._labels, self._queue = labels, queue
        self._lock = threading.RLock()
        self._label_counts: Counter[str] = Counter()
        self._active: set[str] = set()
        self._shown_pair: tuple[IdPair, dict[str, Any]] | None = None

    @property
    def label_count(self) -> int:
        """The number of labels given in this session and not undone."""
        return sum(self._label_counts.values())

    def state(self, labeller: str) -> dict[str, Any]:
        """Return what the page shows: the current pair, counts, and figures."""
        with self._lock:
            name = labeller_name(labeller)
            self._active.add(name)
            asked = None if self._has_reached_goal(name) else self._current_question(name)
            found: dict[str, Any] = {"labeller": name, "progress": self._progress(name), "heading": self.heading}
            found["facts"] = self._facts(name)
        # Outside the lock: long texts take seconds, and other labellers need not wait.
        return found | {"pair": None if asked is None else self._pair_view(asked)}

    def answer(self, labeller: str, pair: IdPair, answer: str, seconds: float | None = None) -> dict[str, Any]:
        """Store an answer to the current pair and return the next state; the answer is on the disk by then.

        An answer to any other pair is ignored: that pair was judged in another window.
        """
        with self._lock:
            name = labeller_name(labeller)
            if answer not in (*ANSWERS, SKIP):
                raise InputError(f"answer {answer!r} is unknown; choose one of {', '.join((*ANSWERS, SKIP))}")
            asked = None if self._has_reached_goal(name) else self._current_question(name)
            before: dict[str, Any] = {"behind": True}
            if asked is not None and self._labels.id_pair_at(asked.left, asked.right) == pair:
                before = self._answer_line(asked, answer)
                checksums = {
                    self._labels.material.id(place): self._labels.material.text_checksum(place) for place in asked[:2]
                }
                one, other = (checksums[part] for part in pair)
                self._labels.store.record(
                    [Judgement(pair, name, answer, asked.reason, asked.similarity, _seconds(seconds), (one, other))]
                )
                self._label_counts[name] += answer != SKIP
        return {"before": before} | self.state(name)

    def undo(self, labeller: str) -> dict[str, Any]:
        """Undo the labeller's last answer and ask that pair again."""
        with self._lock:
            name = labeller_name(labeller)
            last = self._labels.store.undo(name)
            if last is not None:
                self._label_counts[name] -= last.answer != SKIP
                self._labels.store.set_open_pair(name, OpenPair(last.pair, last.reason, last.similarity))
        before = {"nothing": True} if last is None else {"undone": last.answer}
        return {"before": before} | self.state(name)

    def finish(self, labeller: str) -> None:
        """End the session for a labeller; the last one ends it for all."""
        with self._lock:
            self._active.discard(labeller_name(labeller))
            if not self._active:
                self.finished.set()

    def _facts(self, labeller: str) -> list[dict[str, str]]:
        """Return the figures of the labels so far."""
        agreed = [one for one in pairwise_agreements(self._labels.answers) if labeller in one.labellers]
        facts = [*self._queue.facts(), *(agreement_fact(one, labeller) for one in agreed)]
        return [fact._asdict() for fact in facts]

    def _has_reached_goal(self, labeller: str) -> bool:
        return self.goal is not None and self._label_counts[labeller] >= self.goal

    def _current_question(self, labeller: str) -> Question | None:
        """Return the labeller's open question, or the next one."""
        kept = self._labels.store.open_pair(labeller)
        place = None if kept is None else self._labels.position_pair(kept.pair)
        if kept is not None and place is not None and self._queue.contains(place):
            return Question(*place, kept.reason, kept.similarity)
        asked = self._queue.next_pair(labeller)
        if asked is not None:
            pair = self._labels.id_pair_at(asked.left, asked.right)
            self._labels.store.set_open_pair(labeller, OpenPair(pair, asked.reason, asked.similarity))
        return asked

    def _pair_view(self, asked: Question) -> dict[str, Any]:
        """Return the pair as the page shows it, without its similarity or the reason for asking it."""
        pair = self._labels.id_pair_at(asked.left, asked.right)
        held = self._shown_pair
        if held is None or held[0] != pair:
            left, right = (self._labels.material.document(place) for place in sorted(asked[:2]))
            html = side_by_side(left, right, words=_ALL_WORDS)
            held = self._shown_pair = pair, {"ids": list(pair), "html": html}
        return held[1]

    def _answer_line(self, asked: Question, answer: str) -> dict[str, Any]:
        """Return the page's line about the last answer."""
        says = self._queue.pair_notes(asked) if answer != SKIP else []
        return {
            "answer": answer,
            "says": [one._asdict() for one in says],
            "reason": REASONS.get(asked.reason, asked.reason) if answer != SKIP else "",
        }

    def _progress(self, labeller: str) -> dict[str, Any]:
        store = self._labels.store
        return {
            "mine": store.counts(labeller),
            "skipped": len(self._labels.skipped(labeller)),
            "given": self._label_counts[labeller],
            "goal": self.goal,
            "left": self._queue.remaining(labeller),
        }


def agreement_fact(found: Agreement, labeller: str) -> Fact:
    """Return the agreement of two labellers, addressed to one of them."""
    other = next(name for name in found.labellers if name != labeller)
    if not found.pairs:
        return Fact(f"with {other}", "none shared yet", f"You and {other} have not judged the same pair yet.")
    agree = f"{found.observed:.0%}" if found.kappa is None else f"κ {found.kappa:.2f}"
    meaning = (
        f"You and {other} both judged {found.pairs} pairs and agree on {found.observed:.0%} of them. Cohen's kappa "
        "measures agreement beyond chance: 1 is full agreement, 0 is chance."
    )
    return Fact(f"with {other}", f"{agree} ({found.pairs} shared)", meaning)


def _seconds(seconds: float | None) -> float | None:
    """Return the time that a labeller looked at a pair; None if it is not plausible."""
    usable = seconds is not None and np.isfinite(seconds) and 0 <= seconds <= _MAX_SECONDS
    return round(float(seconds), 1) if usable and seconds is not None else None


class SampleQueue(FixedQueue):
    """The pairs of a random sample, asked of every labeller in random order."""

    def __init__(self, sample: Sample, labels: LabelIndex) -> None:
        sides = zip(sample.left.tolist(), sample.right.tolist(), strict=True)
        super().__init__(labels, [Question(left, right, "sample") for left, right in sides])
        self._sample, self._store = sample, labels.store

    @property
    def open_pairs(self) -> int:
        """The number of pairs that nobody has judged."""
        return sum(not self._labels.answers.get(place) for place in self._pairs)

    def facts(self) -> list[Fact]:
        """Return precision and recall, if they are known."""
        sample = self._sample
        return [*_facts(sample.audit(sample.resolve_votes(store_votes(self._store.labels, sample.positions))))]


def _facts(found: Audit) -> Iterator[Fact]:
    shares = {
        "precision": (found.precision, "of the returned pairs are duplicates"),
        "recall": (found.recall, "of the duplicates among the candidates are returned"),
    }
    for name, (figure, meaning) in shares.items():
        if figure.value is not None:
            yield Fact(name, f"{figure.value:.2f}", f"{interval_text(figure)} {meaning}")
