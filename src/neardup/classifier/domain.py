"""Where a classifier is at home: the ranges of its training pairs, and what lies outside of them in use."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.kernels import Bools, Floats

#: The numbers of a range: the least, where 1% and 99% lie below, the most.
_QUANTILES = (0.0, 0.01, 0.99, 1.0)
#: A measure is outside where it leaves its range by more than this share of it.
_WIDER = 0.1
#: A text is outside where it is shorter than 1% of the training texts, or longer than 99%, by more than this factor.
_TIMES = 2.0
#: Scripts of fewer training texts than this share, and measures unknown of fewer pairs, count as not met in training.
_RARE = 0.01
#: So many letters tell the script of a text.
_LETTERS = 40
#: With fewer candidates than this, shares say nothing.
_FEWEST = 20
#: At most this share of the candidates may lie outside. Folds of the labels cannot say it, for labels are alike: of
#: Reuters' 0.6% lie outside of the other folds' domain, of all its candidates 14%. From 31% on (r8), precision was
#: below that of a threshold (benchmarks/learned.py home).
MOST_OUTSIDE = 0.25
#: A run turns down at least this part of the share that was turned down in training: labels are chosen from what is
#: hard to tell, so that a run at home turns down more.
_LEAST_REFUSED = 1 / 3


class DomainCounts(NamedTuple):
    """What a classifier was asked."""

    #: How many pairs it judged, how many of them are unlike its training pairs, and how many passed.
    candidates: int = 0
    outside: int = 0
    passed: int = 0

    @classmethod
    def of(cls, search: Mapping[str, Any]) -> DomainCounts:
        """Return those of a run, of the counts of its search."""
        return cls(search["first_step_pairs"], search.get("outside", 0), search["pairs"])

    def plus(self, outside: Bools, passed: Bools) -> DomainCounts:
        """Return the counts with some pairs more: which of them lie outside, and which passed."""
        return DomainCounts(
            self.candidates + len(passed), self.outside + int(outside.sum()), self.passed + int(passed.sum())
        )

    @property
    def in_words(self) -> str:
        """The counts for people; empty where nothing was asked."""
        if not self.candidates:
            return ""
        return (
            f"{self.passed:,} of {self.candidates:,} candidate{'' if self.candidates == 1 else 's'} passed, "
            f"{self.outside / self.candidates:.0%} lie outside of what it was trained on"
        )


class Domain(NamedTuple):
    """What the training pairs of a classifier were like."""

    #: float64[r, 4]: of each measure the least value, the quantiles of 1 and 99%, and the highest value; NaN where it
    #: was never known.
    measures: Floats
    #: float64[r]: the share of pairs of which the measure was not known.
    unknown: Floats
    #: float64[4]: the same numbers of the characters of the texts.
    lengths: Floats
    #: float64[4]: the same of the candidate rule's measure.
    similarity: Floats
    #: The scripts of the texts, such as LATIN.
    scripts: tuple[str, ...]
    #: The share of the pairs that the machine lets pass, with the cut at 0.
    passed: float

    @classmethod
    def of(cls, x: Floats, texts: Sequence[str], similarity: Floats, passed: Bools) -> Domain:
        """Return the domain of training pairs.

        ``x`` (float64[n, r]) are their similarity vectors, and the machine takes those in ``passed`` for duplicates.
        """
        known = [column[~np.isnan(column)] for column in x.T]
        met = Counter(map(script_of, texts))
        return cls(
            np.array([_range(column) for column in known]).reshape(-1, len(_QUANTILES)),
            np.isnan(x).mean(axis=0),
            _range(np.array([len(text) for text in texts], np.float64)),
            _range(similarity),
            tuple(sorted(name for name, count in met.items() if name and count >= _RARE * len(texts))),
            float(passed.mean()),
        )

    def foreign(self, texts: Sequence[str]) -> Bools:
        """Return which texts are of a length or a script that was not met in training."""
        lengths = np.array([len(text) for text in texts], np.float64)
        scripts = np.array([name not in self.scripts for name in map(script_of, texts)], np.bool_)
        return np.asarray(scripts | (lengths * _TIMES < self.lengths[1]) | (lengths > self.lengths[2] * _TIMES))

    def outside(self, x: Floats) -> Bools:
        """Return which pairs have a measure outside of its range, or unknown where it hardly ever was."""
        least, most = self.measures[:, 0], self.measures[:, 3]
        margin = _WIDER * (most - least)
        missing = np.isnan(x)
        with np.errstate(invalid="ignore"):
            beyond = (x < least - margin) | (x > most + margin)
        return np.asarray((beyond | (missing & (self.unknown < _RARE))).any(axis=1))

    def reasons(self, x: Floats, texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
        """Return why one pair is unlike the training pairs, each reason in a few words; nothing where it is not."""
        found = []
        for text in texts:
            if (script := script_of(text)) not in self.scripts:
                found.append(f"{script or 'no'} letters, and training had {', '.join(self.scripts) or 'none'}")
            least, most = self.lengths[1] / _TIMES, self.lengths[2] * _TIMES
            if not least <= len(text) <= most:
                found.append(f"a text of {len(text):,} characters, and {least:,.0f} to {most:,.0f} are at home")
        for j, name in enumerate(names):
            alone = Domain(self.measures[[j]], self.unknown[[j]], *self[2:])
            if not alone.outside(x[np.newaxis, [j]])[0]:
                continue
            if np.isnan(x[j]):
                found.append(f"{name} is unknown, and in training it hardly ever was")
            else:
                found.append(f"{name} is {x[j]:.4g}, and was {self.measures[j, 0]:.4g} to {self.measures[j, 3]:.4g}")
        return tuple(dict.fromkeys(found))

    def complaint(self, candidates: int, outside: int, passed: int) -> str:
        """Return why a run is not at home, as a clause with its number and the rule; empty where it is."""
        if candidates < _FEWEST:
            return ""
        if outside > MOST_OUTSIDE * candidates:
            return (
                f"{outside / candidates:.0%} of {candidates:,} candidates lie outside of what it was trained on, and "
                f"at most {MOST_OUTSIDE:.0%} may"
            )
        most = 1 - _LEAST_REFUSED * (1 - self.passed)
        if passed > most * candidates:
            return (
                f"{passed / candidates:.1%} of {candidates:,} candidates pass, and at most {most:.1%} may, as "
                f"{self.passed:.1%} of its training pairs did"
            )
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON, what is not known as null."""
        numbers = ("measures", "unknown", "lengths", "similarity")
        return {name: _plain(getattr(self, name)) for name in numbers} | {
            "scripts": list(self.scripts),
            "passed": self.passed,
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], measures: int) -> Domain:
        """Return what ``as_dict`` made of one with so many measures."""
        found = cls(
            np.array(said["measures"], np.float64),
            np.array(said["unknown"], np.float64),
            np.array(said["lengths"], np.float64),
            np.array(said["similarity"], np.float64),
            tuple(map(str, said["scripts"])),
            float(said["passed"]),
        )
        wanted = [(measures, len(_QUANTILES)), (measures,), (len(_QUANTILES),), (len(_QUANTILES),)]
        if [part.shape for part in found[:4]] != wanted:
            raise ValueError("its domain has another shape")
        return found


def _range(values: Floats) -> Floats:
    return np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)


def _plain(values: Floats) -> Any:
    found = values.astype(object)
    found[np.isnan(values)] = None
    return found.tolist()


def script_of(text: str) -> str:
    """Return the script of most of the first letters of a text, such as LATIN; empty for a text without letters."""
    met: Counter[str] = Counter()
    for character in text:
        if character.isalpha():
            met[unicodedata.name(character, "").partition(" ")[0]] += 1
            if met.total() == _LETTERS:
                break
    return met.most_common(1)[0][0] if met else ""
