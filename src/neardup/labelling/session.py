"""A labelling session: it shows pairs to one or more labellers, stores their answers, and reports figures."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from neardup.errors import InputError
from neardup.evaluation.agreement import Agreement, pairwise_agreements
from neardup.evaluation.audit import Audit, Sample
from neardup.evaluation.audit_result import interval_text
from neardup.evaluation.population import store_votes
from neardup.labelling.label_index import LabelIndex
from neardup.labelling.queue import REASONS, Fact, FixedQueue, LabelQueue, Question
from neardup.labels.store import ANSWERS, SKIP, IdPair, Judgement, OpenPair, labeller_name
from neardup.pages.diff_view import side_by_side
from neardup.pages.numbers import format_count

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
        self._rendered_pair: tuple[IdPair, dict[str, Any]] | None = None

    @property
    def label_count(self) -> int:
        """The number of labels given in this session and not undone."""
        return sum(self._label_counts.values())

    def state(self, labeller: str) -> dict[str, Any]:
        """Return the content of the page: the current pair, counts, and figures."""
        with self._lock:
            name = labeller_name(labeller)
            self._active.add(name)
            question = None if self._has_reached_goal(name) else self._current_question(name)
            progress, facts = self._progress(name), self._facts(name)
        # Outside the lock: long texts take seconds, and other labellers need not wait.
        pair = None if question is None else self._pair_view(question)
        return {"labeller": name, "progress": progress, "heading": self.heading, "facts": facts, "pair": pair}

    def answer(self, labeller: str, pair: IdPair, answer: str, seconds: float | None = None) -> dict[str, Any]:
        """Store an answer to the current pair and return the next state; the answer is on the disk by then.

        An answer to any other pair is ignored: that pair was judged in another window.
        """
        with self._lock:
            name = labeller_name(labeller)
            if answer not in (*ANSWERS, SKIP):
                raise InputError(f"answer {answer!r} is unknown; choose one of {', '.join((*ANSWERS, SKIP))}")
            question = None if self._has_reached_goal(name) else self._current_question(name)
            answer_line: dict[str, Any] = {"behind": True}
            if question is not None and self._labels.id_pair_at(question.left, question.right) == pair:
                answer_line = self._answer_line(question, answer)
                circumstances = question.reason, question.similarity, _plausible_seconds(seconds)
                judgement = Judgement(pair, name, answer, *circumstances, self._labels.checksums(pair))
                self._labels.store.record([judgement])
                self._label_counts[name] += answer != SKIP
        return {"before": answer_line} | self.state(name)

    def undo(self, labeller: str) -> dict[str, Any]:
        """Undo the labeller's last answer and return the state with that pair."""
        with self._lock:
            name = labeller_name(labeller)
            last = self._labels.store.undo(name)
            if last is not None:
                self._label_counts[name] -= last.answer != SKIP
                self._labels.store.set_open_pair(name, OpenPair(last.pair, last.reason, last.similarity))
        answer_line = {"nothing": True} if last is None else {"undone": last.answer}
        return {"before": answer_line} | self.state(name)

    def finish(self, labeller: str) -> None:
        """End the session for a labeller; the last one ends it for all."""
        with self._lock:
            self._active.discard(labeller_name(labeller))
            if not self._active:
                self.finished.set()

    def _facts(self, labeller: str) -> list[dict[str, str]]:
        agreements = [a for a in pairwise_agreements(self._labels.answers) if labeller in a.labellers]
        facts = [*self._queue.facts(), *(agreement_fact(agreement, labeller) for agreement in agreements)]
        return [fact._asdict() for fact in facts]

    def _has_reached_goal(self, labeller: str) -> bool:
        return self.goal is not None and self._label_counts[labeller] >= self.goal

    def _current_question(self, labeller: str) -> Question | None:
        open_pair = self._labels.store.open_pair(labeller)
        positions = None if open_pair is None else self._labels.position_pair(open_pair.pair)
        if open_pair is not None and positions is not None and self._queue.contains(positions):
            return Question(*positions, open_pair.reason, open_pair.similarity)
        question = self._queue.next_pair(labeller)
        if question is not None:
            pair = self._labels.id_pair_at(question.left, question.right)
            self._labels.store.set_open_pair(labeller, OpenPair(pair, question.reason, question.similarity))
        return question

    def _pair_view(self, question: Question) -> dict[str, Any]:
        """Return the pair as the page shows it, without its similarity or its reason."""
        pair = self._labels.id_pair_at(question.left, question.right)
        rendered = self._rendered_pair
        if rendered is None or rendered[0] != pair:
            left, right = (self._labels.reader.document(at) for at in sorted(question[:2]))
            html = side_by_side(left, right, words=_ALL_WORDS)
            rendered = self._rendered_pair = pair, {"ids": list(pair), "html": html}
        return rendered[1]

    def _answer_line(self, question: Question, answer: str) -> dict[str, Any]:
        if answer == SKIP:
            return {"answer": answer, "says": [], "reason": ""}
        notes = [note._asdict() for note in self._queue.pair_notes(question)]
        return {"answer": answer, "says": notes, "reason": REASONS.get(question.reason, question.reason)}

    def _progress(self, labeller: str) -> dict[str, Any]:
        store = self._labels.store
        return {
            "mine": store.counts(labeller),
            "skipped": len(self._labels.skipped(labeller)),
            "given": self._label_counts[labeller],
            "goal": self.goal,
            "left": self._queue.remaining(labeller),
        }


def agreement_fact(agreement: Agreement, labeller: str) -> Fact:
    """Return the agreement of two labellers, addressed to one of them."""
    other = next(name for name in agreement.labellers if name != labeller)
    if not agreement.pairs:
        return Fact(f"with {other}", "none shared yet", f"You and {other} have not judged the same pair yet.")
    agree = f"{agreement.observed:.0%}" if agreement.kappa is None else f"κ {agreement.kappa:.2f}"
    meaning = (
        f"You and {other} both judged {format_count(agreement.pairs, 'pair')}; you agree on {agreement.observed:.0%}. "
        "Cohen's kappa measures agreement beyond chance: 1 is full agreement, 0 is chance."
    )
    return Fact(f"with {other}", f"{agree} ({agreement.pairs} shared)", meaning)


def _plausible_seconds(seconds: float | None) -> float | None:
    if seconds is None or not 0 <= seconds <= _MAX_SECONDS:
        return None
    return round(float(seconds), 1)


class SampleQueue(FixedQueue):
    """The pairs of a random sample, in random order for every labeller."""

    def __init__(self, sample: Sample, labels: LabelIndex) -> None:
        pairs = zip(sample.left.tolist(), sample.right.tolist(), strict=True)
        super().__init__(labels, [Question(left, right, "sample") for left, right in pairs])
        self._sample, self._store = sample, labels.store

    @property
    def open_pairs(self) -> int:
        """The number of pairs that nobody has judged."""
        return sum(not self._labels.answers.get(pair) for pair in self._pairs)

    def facts(self) -> list[Fact]:
        """Return precision and recall, as far as they are known."""
        sample = self._sample
        return [*_facts(sample.audit(sample.resolve_votes(store_votes(self._store.labels, sample.positions))))]


def _facts(audit: Audit) -> Iterator[Fact]:
    shares = {
        "precision": (audit.precision, "of the returned pairs are duplicates"),
        "recall": (audit.recall, "of the duplicates among the candidates are returned"),
    }
    for name, (figure, meaning) in shares.items():
        if figure.value is not None:
            yield Fact(name, f"{figure.value:.2f}", f"{interval_text(figure)} {meaning}")
