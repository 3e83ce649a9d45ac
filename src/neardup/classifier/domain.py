"""The domain of a classifier: the ranges of its training pairs, and counts of pairs outside."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.kernels import Bools, Floats

#: The numbers of a range: minimum, 1st and 99th percentile, maximum.
_QUANTILES = (0.0, 0.01, 0.99, 1.0)
#: A measure is outside its range if it exceeds it by more than this share of the range.
_RANGE_MARGIN = 0.1
#: A text is outside the domain if it is shorter than the 1st percentile of the training texts, or longer than the
#: 99th, by more than this factor.
_LENGTH_FACTOR = 2.0
#: A script in fewer training texts than this share, or a measure unknown for fewer pairs, counts as not trained on.
_MIN_SHARE = 0.01
#: The number of first letters that determine the script of a text.
_SCRIPT_LETTERS = 40
#: With fewer candidates, shares are meaningless.
_MIN_CANDIDATES = 20
#: The largest share of the candidates that may lie outside. Cross-validation cannot give it, because labelled pairs
#: resemble each other: 0.6% of Reuters' labelled pairs lie outside the domain of the other folds, but 14% of all its
#: candidates. From 31% on (r8), precision was below that of a threshold (benchmarks/results/home.json).
MAX_OUTSIDE_SHARE = 0.25
#: A run must reject at least this part of the share that was rejected in training. Labels are chosen among hard pairs,
#: so a run in the domain rejects more.
_MIN_REJECTED_SHARE = 1 / 3


class DomainCounts(NamedTuple):
    """Counts of the pairs that a classifier judged."""

    candidates: int = 0
    outside: int = 0  #: candidates outside its domain
    passed: int = 0  #: candidates that pass its cut

    @classmethod
    def from_search(cls, search: Mapping[str, Any]) -> DomainCounts:
        """Return the counts of a run from the statistics of its search."""
        return cls(search["first_step_pairs"], search.get("outside", 0), search["pairs"])

    def add(self, outside: Bools, passed: Bools) -> DomainCounts:
        """Return the counts with k more candidates: which lie outside (bool[k]), and which passed (bool[k])."""
        return DomainCounts(
            self.candidates + len(passed), self.outside + int(outside.sum()), self.passed + int(passed.sum())
        )

    @property
    def description(self) -> str:
        """The counts as a sentence; empty without candidates."""
        if not self.candidates:
            return ""
        return (
            f"{self.passed:,} of {self.candidates:,} candidate{'' if self.candidates == 1 else 's'} passed, "
            f"{self.outside / self.candidates:.0%} lie outside its training domain"
        )


class Domain(NamedTuple):
    """Ranges of the training pairs of a classifier with r measures.

    A range (float64[4]) holds the minimum, the 1st and 99th percentile, and the maximum.
    """

    measure_ranges: Floats  #: float64[r, 4]: a range for each measure; NaN if it was always unknown
    unknown_shares: Floats  #: float64[r]: the share of pairs for which each measure was unknown
    length_range: Floats  #: the range of text lengths in characters
    similarity_range: Floats  #: the range of the candidate rule's measure
    scripts: tuple[str, ...]  #: scripts of the texts, such as LATIN, sorted
    pass_share: float  #: the share of the training pairs that pass with the cut at 0

    @classmethod
    def from_training(cls, x: Floats, texts: Sequence[str], similarity: Floats, passed: Bools) -> Domain:
        """Return the domain of n training pairs.

        ``x`` (float64[n, r]) holds their measures, ``similarity`` (float64[n]) that of the candidate rule, and
        ``passed`` (bool[n]) the decisions of the machine with the cut at 0.
        """
        script_counts = Counter(map(main_script, texts))
        return cls(
            np.array([_range(column[~np.isnan(column)]) for column in x.T]).reshape(-1, len(_QUANTILES)),
            np.isnan(x).mean(axis=0),
            _range(np.array([len(text) for text in texts], np.float64)),
            _range(similarity),
            tuple(sorted(name for name, count in script_counts.items() if name and count >= _MIN_SHARE * len(texts))),
            float(passed.mean()),
        )

    @property
    def _length_bounds(self) -> tuple[float, float]:
        return float(self.length_range[1] / _LENGTH_FACTOR), float(self.length_range[2] * _LENGTH_FACTOR)

    def outside_texts(self, texts: Sequence[str]) -> Bools:
        """Return which texts have a length or a script outside the domain: bool[n]."""
        shortest, longest = self._length_bounds
        lengths = np.array([len(text) for text in texts], np.float64)
        other_script = np.array([main_script(text) not in self.scripts for text in texts], np.bool_)
        return np.asarray(other_script | (lengths < shortest) | (lengths > longest))

    def outside_pairs(self, x: Floats) -> Bools:
        """Return which pairs (float64[n, r]) have a measure outside its range, or unexpectedly unknown: bool[n]."""
        low, high = self.measure_ranges[:, 0], self.measure_ranges[:, 3]
        margin = _RANGE_MARGIN * (high - low)
        with np.errstate(invalid="ignore"):
            exceeds = (x < low - margin) | (x > high + margin)
        return np.asarray((exceeds | (np.isnan(x) & (self.unknown_shares < _MIN_SHARE))).any(axis=1))

    def outside_reasons(self, x: Floats, texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
        """Return each reason why a pair (float64[r]) with these texts lies outside; none if it does not."""
        reasons = []
        shortest, longest = self._length_bounds
        for text in texts:
            if (script := main_script(text)) not in self.scripts:
                reasons.append(f"{script or 'no'} letters, but training had {', '.join(self.scripts) or 'none'}")
            if not shortest <= len(text) <= longest:
                reasons.append(
                    f"a text of {len(text):,} characters, but training allows {shortest:,.0f} to {longest:,.0f}"
                )
        for j, name in enumerate(names):
            column = Domain(self.measure_ranges[[j]], self.unknown_shares[[j]], *self[2:])
            if not column.outside_pairs(x[np.newaxis, [j]])[0]:
                continue
            if np.isnan(x[j]):
                reasons.append(f"{name} is unknown, which was rare in training")
            else:
                low, high = self.measure_ranges[j, 0], self.measure_ranges[j, 3]
                reasons.append(f"{name} is {x[j]:.4g}, and was {low:.4g} to {high:.4g}")
        return tuple(dict.fromkeys(reasons))

    def mismatch(self, counts: DomainCounts) -> str:
        """Return the reason why a run with these counts is outside the domain, with value and rule; empty if inside."""
        candidates, outside, passed = counts
        if candidates < _MIN_CANDIDATES:
            return ""
        if outside > MAX_OUTSIDE_SHARE * candidates:
            return (
                f"{outside / candidates:.0%} of {candidates:,} candidates lie outside its training domain, more than "
                f"the {MAX_OUTSIDE_SHARE:.0%} allowed"
            )
        max_share = 1 - _MIN_REJECTED_SHARE * (1 - self.pass_share)
        if passed > max_share * candidates:
            return (
                f"{passed / candidates:.1%} of {candidates:,} candidates pass, more than the {max_share:.1%} allowed, "
                f"because only {self.pass_share:.1%} of its training pairs did"
            )
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Return the domain for JSON, with null for NaN."""
        return {
            "measures": _json_list(self.measure_ranges),
            "unknown": _json_list(self.unknown_shares),
            "lengths": _json_list(self.length_range),
            "similarity": _json_list(self.similarity_range),
            "scripts": list(self.scripts),
            "passed": self.pass_share,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], measures: int) -> Domain:
        """Return the domain that ``as_dict`` wrote, of a classifier with this number of measures.

        Raises ``ValueError`` or ``LookupError`` or ``TypeError`` if the record is not a domain.
        """
        width = len(_QUANTILES)
        shapes = {"measures": (measures, width), "unknown": (measures,), "lengths": (width,), "similarity": (width,)}
        ranges, unknown, lengths, similarity = arrays = [np.array(record[name], np.float64) for name in shapes]
        if [array.shape for array in arrays] != list(shapes.values()):
            raise ValueError("its domain has another shape")
        scripts, passed = tuple(map(str, record["scripts"])), float(record["passed"])
        return cls(ranges, unknown, lengths, similarity, scripts, passed)


def _range(values: Floats) -> Floats:
    return np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)


def _json_list(values: Floats) -> Any:
    objects = values.astype(object)
    objects[np.isnan(values)] = None
    return objects.tolist()


def main_script(text: str) -> str:
    """Return the script of most of a text's first letters, such as LATIN; empty for a text without letters."""
    counts: Counter[str] = Counter()
    for character in text:
        if character.isalpha():
            counts[unicodedata.name(character, "").partition(" ")[0]] += 1
            if counts.total() == _SCRIPT_LETTERS:
                break
    return counts.most_common(1)[0][0] if counts else ""
