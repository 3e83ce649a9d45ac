"""What other thresholds would have done: who stays and goes at each, from pairs that are known already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.classifier.evidence import Learned
from neardup.keep.keepers import Floats, Graph, Integers, graph, standing
from neardup.pages.diff import Block, Differences, Shown, differences, direction_of
from neardup.pages.diff_view import side_by_side
from neardup.pages.documents import Material
from neardup.pages.html import Html, clipped, escaped, excerpt
from neardup.pages.report import COPY, EQUAL_FEATURES, KEPT, NEAR, Case, Family, Member, Named, Sweep
from neardup.recipe import measures
from neardup.recipe.measures import SET_MEASURES
from neardup.search.findings import APART, EQUAL, Findings
from neardup.search.margin import Scale
from neardup.search.matches import Matches
from neardup.text.normalize import Token

Bools = npt.NDArray[np.bool_]

#: Thresholds of a similarity are so far apart; those of a distance that is no number of bits are such a share of it.
_STEP, _SHARE = Fraction(1, 100), Fraction(1, 20)


class Swept(NamedTuple):
    """A sweep, and what it says of documents and pairs that are watched.

    Attributes
    ----------
    sweep : Sweep
        The counts.
    goes : bool[t, w]
        Which documents go at each threshold.
    matches : bool[t, p]
        Which pairs match at each threshold.
    """

    sweep: Sweep
    goes: Bools
    matches: Bools


def known_pairs(found: Findings) -> tuple[Matches, Fraction]:
    """Return all pairs that are known, and the loosest threshold at which they are all there are."""
    if found.margin is not None and found.margin.matches is not None:
        return found.margin.matches, found.margin.loosest
    return found.matches, found.scale.threshold


def steps_of(scale: Scale, loosest: Fraction) -> list[Fraction]:
    """Return the thresholds of a sweep, from the loosest to the strictest, the own one among them."""
    own = scale.threshold
    if scale.measure == "hamming":
        return [Fraction(bits) for bits in range(int(loosest), -1, -1)]
    if scale.distance:
        step = own * _SHARE
        steps = {step * place for place in range(1, int(loosest / step) + 1)}
        return sorted(steps | {own, loosest}, reverse=True)
    first = int(loosest / _STEP) + 1
    steps = {_STEP * place for place in range(first, int(1 / _STEP) + 1)}
    return sorted(steps | {own} | ({loosest} if loosest > 0 else set()))


def swept(found: Findings, watched: Integers, edges: Integers, note: str = "") -> Swept:
    """Return what other thresholds would have done, each exactly as a run at that threshold.

    Parameters
    ----------
    found : Findings
        With all pairs at its own threshold.
    watched : int64[w]
        Documents, by position, whose own fate is of interest.
    edges : int64[p]
        Pairs of which it is, too, by their places among ``known_pairs``.
    note : str
        What the sweep is to say of itself.
    """
    scale = found.scale
    every, loosest = known_pairs(found)
    steps = steps_of(scale, loosest)
    representative, present = every.representative, int(found.documents.present.sum())
    copies = np.bincount(representative[representative >= 0], minlength=len(representative)).astype(np.int64)
    equal = int((copies * (copies - 1) // 2).sum())
    able = int(copies.sum())
    ranked = standing(representative, found.documents.order)
    places = _places(every)
    own = steps.index(scale.threshold)
    kept, pairs = [], []
    goes, matches = np.zeros((len(steps), len(watched)), np.bool_), np.zeros((len(steps), len(edges)), np.bool_)
    node = representative[watched]
    for at, threshold in enumerate(steps):
        # A decision goes by g, of which the probability is rounded: at its cut the run itself says what passes.
        chosen = own_pairs(found, every) if at == own else scale.reaching(every, threshold)
        stays = ranked.staying(_thinned(places, chosen))
        kept.append(present - able + int(stays.sum()))
        pairs.append(equal + int((copies[every.left[chosen]] * copies[every.right[chosen]]).sum()))
        matches[at] = chosen[edges]
        goes[at] = (node >= 0) & ~(stays[node] & (ranked.top[node] == watched))
    return Swept(
        Sweep(
            thresholds=[float(threshold) for threshold in steps],
            kept=kept,
            dropped=[present - number for number in kept],
            pairs=pairs,
            own=own,
            what="probability" if scale.measure == "learned" else scale.measure,
            distance=scale.distance,
            similarities=[similarity_at(scale, threshold) for threshold in steps],
            exact=scale.second or found.recipe.search != "lsh",
            note=note,
        ),
        goes,
        matches,
    )


def own_pairs(found: Findings, every: Matches) -> Bools:
    """Return which of all known pairs match in the run itself."""
    if every is found.matches:
        return np.ones(len(every.left), np.bool_)
    count = len(every.representative)
    return np.isin(every.left * count + every.right, found.matches.left * count + found.matches.right)


def _places(every: Matches) -> Graph:
    """Return the graph of pairs with their numbers in the place of similarities."""
    numbers = np.arange(len(every.left), dtype=np.float64)
    return graph(len(every.representative), every.left, every.right, numbers)


def _thinned(places: Graph, chosen: Bools) -> Graph:
    """Return the graph of the chosen pairs."""
    kept = chosen[places.similarity.astype(np.int64)]
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return Graph(before[places.heads], places.neighbours[kept], places.similarity[kept])


def similarity_at(scale: Scale, threshold: Fraction) -> float:
    """Return how similar a pair exactly at a threshold is."""
    return measures.similarity_at(scale.measure, threshold)


#: Of longer texts only so many characters are compared.
_COMPARED = 16_000
#: Equal words around a change; changes with fewer equal words between them stand together.
_CONTEXT = 6
#: So many words of a change are shown, and so many changes.
_WORDS, _CHANGES = 40, 6
#: Characters of what is shown of one text alone, of a change, and of the equal words between two.
_BEGINNING, _CHANGE, _EQUAL = 320, 480, 240
#: Characters of a title, or of how a text begins, in a list.
_NAME = 90
_GAP = '<span class="dim">…</span> '


class Changed(NamedTuple):
    """What differs, and how long the longest passage is that both texts have, in words."""

    look: Html
    passage: int


def changed(keeper: Shown, member: Shown) -> Changed:
    """Return what a document has otherwise than its keeper, as HTML that needs no script.

    What only the keeper has is marked as deleted, what only the member has as inserted.
    """
    texts = keeper.text[:_COMPARED], member.text[:_COMPARED]
    cut = max(len(keeper.text), len(member.text)) > _COMPARED
    found = differences(*texts)
    hunks = list(_hunks(found))
    shown = hunks[:_CHANGES]
    body = "".join(_pieces(shown, found, texts))
    said = []
    if not hunks:
        same = "the same text" if texts[0] == texts[1] else "the same words, written or parted otherwise"
        said.append(same + (f", as far as it was compared ({_COMPARED:,} characters)" if cut else ""))
    if len(hunks) > _CHANGES:
        said.append(f"{len(hunks) - _CHANGES:,} more changes are not shown")
    if hunks and cut:
        said.append(f"compared up to {_COMPARED:,} characters")
    note = f'<bdi class="dim" dir="ltr">({escaped("; ".join(said))})</bdi>' if said else ""
    passage = max((block.length for block in found.blocks), default=0)
    return Changed(Html(f'<p class="changes" dir="{direction_of(texts[1] or texts[0])}">{body} {note}</p>'), passage)


def beginning(document: Shown) -> Html:
    """Return how a document's text begins."""
    shown = escaped(clipped(document.text, _BEGINNING)) or '<span class="dim">an empty text</span>'
    return Html(f'<p class="changes" dir="{direction_of(document.text)}">{shown}</p>')


def named(document: Shown) -> str:
    """Return a document's title, or how its text begins, for a line of a list."""
    return clipped(document.title or document.text, _NAME)


class _Hunk(NamedTuple):
    """Words left[i:j] in the place of right[k:m]."""

    i: int
    j: int
    k: int
    m: int


def _hunks(found: Differences) -> Iterator[_Hunk]:
    blocks = [Block(0, 0, 0), *found.blocks]
    for one, other in pairwise(blocks):
        i, k = one.left + one.length, one.right + one.length
        if i < other.left or k < other.right:
            yield _Hunk(i, other.left, k, other.right)


def _pieces(hunks: Sequence[_Hunk], found: Differences, texts: tuple[str, str]) -> Iterator[str]:
    """Yield the changes and the equal words around them, of which a gap is left where they are many."""
    left, right = found.left, found.right
    at = 0
    for hunk in hunks:
        if hunk.k - at <= 2 * _CONTEXT:
            yield excerpt(_words(right, at, hunk.k, texts[1]), _EQUAL) + " "
        else:
            if at:
                yield excerpt(_words(right, at, at + _CONTEXT, texts[1]), _EQUAL) + " "
            yield _GAP + excerpt(_words(right, hunk.k - _CONTEXT, hunk.k, texts[1]), _EQUAL) + " "
        gone, come = _words(left, hunk.i, hunk.j, texts[0]), _words(right, hunk.k, hunk.m, texts[1])
        yield f"<del>{_cut(gone, hunk.j - hunk.i)}</del> " if gone else ""
        yield f"<ins>{_cut(come, hunk.m - hunk.k)}</ins> " if come else ""
        at = hunk.m
    end = len(right)
    if hunks and at < end:
        yield excerpt(_words(right, at, min(at + _CONTEXT, end), texts[1]), _EQUAL) + (
            f" {_GAP}" if at + _CONTEXT < end else ""
        )


def _words(words: list[Token], begin: int, end: int, text: str) -> str:
    if begin >= end:
        return ""
    last = min(end, begin + _WORDS)
    return " ".join(text[words[begin].start : words[last - 1].end].split())


def _cut(text: str, words: int) -> str:
    more = max(words - _WORDS, 0)
    rest = f' <bdi class="dim" dir="ltr">… {more:,} more words</bdi>' if more else ""
    return excerpt(text, _CHANGE) + rest


#: A spread of the families that are not among the largest: so many for each of these.
_SPREAD = 0.5
#: Members that are listed of a family: those that go, and those that stay.
DROPPED_LISTED, KEPT_LISTED = 8, 4


class Reasons(NamedTuple):
    """Why each document went, bool[n] each; no document has two.

    Attributes
    ----------
    copy : bool[n]
        It has the text, byte for byte, of a document before it in keep order.
    equal : bool[n]
        It has another text, and the features of a document before it in keep order.
    near : bool[n]
        It has features of its own.
    """

    copy: np.ndarray[tuple[int], np.dtype[np.bool_]]
    equal: np.ndarray[tuple[int], np.dtype[np.bool_]]
    near: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def of(self, position: int) -> str:
        """Return the reason of a document; that it is kept where there is none."""
        names = (COPY, self.copy), (EQUAL_FEATURES, self.equal), (NEAR, self.near)
        return next((name for name, holds in names if holds[position]), KEPT)


def reasons_of(found: Findings) -> Reasons:
    """Return why each document went."""
    copy, equal = found.copies, found.equals
    return Reasons(copy, equal & ~copy, found.goes & ~equal & ~copy)


class Listed(NamedTuple):
    """A family that is shown: its number, and the positions of the members that are listed, kept ones first.

    ``equal`` says whether all of its members have equal features.
    """

    number: int
    documents: int
    kept: int
    equal: bool
    stay: list[int]
    go: list[int]


def chosen_families(found: Findings, most: int, seed: int) -> list[Listed]:
    """Return the largest families, and a random spread of the others, the largest first.

    Parameters
    ----------
    found : Findings
        What the run found.
    most : int
        So many of the largest are shown, and half as many of the others.
    seed : int
        Another one draws others.
    """
    sizes = found.families.documents
    ranked = np.argsort(-sizes, kind="stable")
    rest = ranked[most:]
    drawn = np.random.default_rng(seed).choice(rest, min(len(rest), int(most * _SPREAD)), replace=False)
    chosen = [*ranked[:most].tolist(), *sorted(drawn.tolist(), key=lambda place: (-sizes[place], place))]
    family = found.families.family
    order = np.argsort(family, kind="stable")
    ends = np.cumsum(np.bincount(family, minlength=len(sizes) + 1))
    goes, kept = found.goes, found.kept
    listed = []
    for place in chosen:
        members = order[ends[place] : ends[place + 1]]
        going = members[goes[members]]
        # The least similar ones are those that one doubts.
        doubtful = going[np.argsort(kept.similarity[going], kind="stable")][:DROPPED_LISTED].tolist()
        staying = members[~goes[members]].tolist()
        named = list(dict.fromkeys(kept.keeper[doubtful].tolist()))
        others = [member for member in staying if member not in set(named)]
        equal = len(np.unique(found.matches.representative[members])) == 1
        listed.append(Listed(place + 1, len(members), len(staying), equal, [*named, *others][:KEPT_LISTED], doubtful))
    return listed


def family_of(
    listed: Listed,
    found: Findings,
    reasons: Reasons,
    material: Material,
    evidence: Callable[[int, int], str],
    goes: Callable[[int], str],
) -> Family:
    """Return a family as the page shows it.

    Parameters
    ----------
    listed : Listed
        Which one.
    found, reasons : Findings, Reasons
        What the run found.
    material : Material
        Its documents, loaded.
    evidence : callable
        What says in a line why a document, by position, matches its keeper; the second number is how many words
        in a row both have.
    goes : callable
        What says at which thresholds a document goes.
    """
    members = [
        Member(document=_named(material, place), why=KEPT, look=beginning(material.shown(place)), goes=goes(place))
        for place in listed.stay
    ]
    apart, marks = _apart(found, listed.go), found.documents.text_marks
    own = found.matches.representative
    for place in listed.go:
        keeper = int(found.kept.keeper[place])
        to_keeper = (
            COPY
            if np.array_equal(marks[place], marks[keeper])
            else EQUAL_FEATURES
            if own[place] == own[keeper]
            else NEAR
        )
        member = Member(
            document=_named(material, place),
            why=reasons.of(place),
            keeper=material.id(keeper),
            similarity=float(found.kept.similarity[place]),
            to_keeper=to_keeper,
            goes=goes(place),
        )
        if to_keeper != COPY:
            differs = changed(material.shown(keeper), material.shown(place))
            member = replace(member, look=differs.look, evidence=evidence(place, differs.passage))
        if apart is not None:
            member = replace(member, apart=[material.id(other) for other in apart[place]])
        members.append(member)
    at, pairs, complete = listed.number - 1, found.families.pairs, found.matches.complete
    every = listed.documents * (listed.documents - 1) // 2
    return Family(
        number=listed.number,
        documents=listed.documents,
        kept=listed.kept,
        lead=named(material.shown((listed.stay or listed.go)[0])),
        members=members,
        equal=listed.equal,
        pairs=int(pairs[at]) if complete else None,
        smallest=float(found.families.smallest[at]),
        mean=float(found.families.mean[at]) if complete else None,
        complete=int(pairs[at]) == every if complete else None,
        apart=None if apart is None else sum(map(len, apart.values())) // 2,
    )


def _named(material: Material, place: int) -> Named:
    shown = material.shown(place)
    return Named(shown.id, shown.title, shown.time)


def _apart(found: Findings, members: list[int]) -> dict[int, list[int]] | None:
    """Return for each dropped document those with the same keeper that it does not match; None if pairs are unknown."""
    if not found.matches.complete:
        return None
    keeper = found.kept.keeper
    pairs = [
        (one, other) for at, one in enumerate(members) for other in members[at + 1 :] if keeper[one] == keeper[other]
    ]
    apart: dict[int, list[int]] = {member: [] for member in members}
    if pairs:
        asked = np.array(pairs)
        for (one, other), edge in zip(pairs, found.edges(asked[:, 0], asked[:, 1]).tolist(), strict=True):
            if edge == APART:
                apart[one].append(other)
                apart[other].append(one)
    return apart


#: Pairs are drawn from bands so wide, so many from each.
_BANDS, _OF_EACH = 20, 2
#: Among so many of the nearest pairs it is looked for some that are no cases of one family.
_LOOKED_AT = 2000
_WORDS_OF_CASE, _WORDS_ELSEWHERE = 300, 160


class Picked(NamedTuple):
    """A pair that is shown: positions, similarity, whether it matches, and its place among all known pairs."""

    left: int
    right: int
    similarity: float
    matches: bool
    edge: int


class Cases(NamedTuple):
    """The pairs that a report shows."""

    above: list[Picked]
    below: list[Picked]
    elsewhere: list[Picked]

    @property
    def every(self) -> list[Picked]:
        """All of them."""
        return [*self.above, *self.below, *self.elsewhere]

    @property
    def positions(self) -> list[int]:
        """The documents that must be read."""
        return [place for picked in self.every for place in picked[:2]]


def chosen_cases(found: Findings, count: int, seed: int) -> Cases:
    """Choose the pairs to read.

    Parameters
    ----------
    found : Findings
        What the run found.
    count : int
        So many on each side of the threshold, the nearest first; on a side not two with one document, or of one
        family, while there are others.
    seed : int
        Of the draw elsewhere.
    """
    every = known_pairs(found)[0]
    similarity = found.scale.similarities(every)
    matching = own_pairs(found, every)
    family = found.families.family
    above, below = np.flatnonzero(matching), np.flatnonzero(~matching)
    above = above[np.argsort(similarity[above], kind="stable")]
    below = below[np.argsort(-similarity[below], kind="stable")]
    # Sides are apart from themselves only: the nearest pair of each is shown, whatever the other one shows.
    sides: tuple[set[int], set[int]] = set(), set()
    near = [
        _far_apart(every, places, count, family, taken) for places, taken in zip((above, below), sides, strict=True)
    ]
    rest = np.setdiff1d(np.arange(len(every.left)), np.array([*near[0], *near[1]], np.int64))
    elsewhere = _spread(every, rest, similarity, family, set.union(*sides), seed)

    def picked(places: Sequence[int]) -> list[Picked]:
        return [
            Picked(int(every.left[at]), int(every.right[at]), float(similarity[at]), bool(matching[at]), at)
            for at in places
        ]

    return Cases(picked(near[0]), picked(near[1]), picked(elsewhere))


def _far_apart(every: Matches, places: Integers, count: int, family: Integers, taken: set[int]) -> list[int]:
    """Return the first of the pairs that have no document, and no family, in common with others; then any."""
    chosen: list[int] = []
    for strict in (True, False):
        for at in places[:_LOOKED_AT].tolist():
            if len(chosen) >= count:
                break
            marks = _marks(every, at, family)
            if at in chosen or (strict and not taken.isdisjoint(marks)):
                continue
            chosen.append(at)
            taken |= marks
    wanted = set(chosen)
    return [at for at in places[:_LOOKED_AT].tolist() if at in wanted]


def _marks(every: Matches, at: int, family: Integers) -> set[int]:
    """Return what two pairs should not have in common: documents, and families as negative numbers."""
    ends = int(every.left[at]), int(every.right[at])
    return {*ends, *(-int(family[end]) for end in ends if family[end])}


def _spread(
    every: Matches, rest: Integers, similarity: Floats, family: Integers, taken: set[int], seed: int
) -> list[int]:
    """Return some of the pairs from each band of similarities, in rising order."""
    drawn = np.random.default_rng(seed).permutation(rest)
    chosen: list[int] = []
    band = np.ceil(similarity * _BANDS)
    for number in np.unique(band[rest]).tolist():
        inside = drawn[band[drawn] == number]
        chosen += _far_apart(every, inside, _OF_EACH, family, taken)
    return sorted(chosen, key=lambda at: (similarity[at], at))


def case_of(picked: Picked, material: Material, head: str, matching: str, *, near: bool) -> Case:
    """Return a pair as the page shows it.

    Parameters
    ----------
    picked : Picked
        Which one.
    material : Material
        Its documents, loaded.
    head : str
        How alike the two are.
    matching : str
        As in ``Case``.
    near : bool
        Whether it is near the threshold: more of its texts is shown then.
    """
    left, right = material.shown(picked.left), material.shown(picked.right)
    look = side_by_side(left, right, words=_WORDS_OF_CASE if near else _WORDS_ELSEWHERE, head=head)
    return Case(
        left=Named(left.id, left.title, left.time),
        right=Named(right.id, right.title, right.time),
        similarity=picked.similarity,
        matches=picked.matches,
        look=look,
        matching=matching,
    )


def shared_in_words(o: int, a: int, b: int) -> str:
    """Return how many features two sets of sizes a and b share; that is o of them."""
    inside = "one is wholly contained in the other: " if o == min(a, b) < max(a, b) else ""
    return f"{inside}{o:,} features shared, of {a:,} and {b:,}"


def similarity_of(found: Findings) -> str:
    """Return what the similarities of a run are of."""
    scale, recipe = found.scale, found.recipe
    if scale.measure == "learned":
        return "probability"
    shown = "1 / (1 + distance)" if scale.measure == "euclidean" else scale.measure
    shown = "1 - distance / 64" if scale.measure == "hamming" else shown
    if scale.measure in ("edit", "semantic"):
        return f"{shown} similarity"
    step = recipe.parsed_second_step
    features = step.features if step is not None else recipe.signature or recipe.features
    weights = f" weighted by {recipe.weights}" if recipe.weights and step is None and not recipe.signature else ""
    return f"{shown} of {features}{weights}"


def value_at(scale: Scale, similarity: float) -> str:
    """Return a similarity as people compare it with the threshold: a distance as a distance."""
    return value_of(scale.measure, similarity, distance=scale.distance)


def value_of(what: str, similarity: float, *, distance: bool) -> str:
    """Return the same for a measure of that name."""
    if what == "hamming":
        return f"{measures.threshold_at(what, similarity)} bits"
    if distance:
        return f"distance {measures.threshold_at(what, similarity):.4g}" if similarity else "no distance"
    return f"{similarity:.4f}"


def numbers_of(scale: Scale, matches: Matches, edge: int) -> str:
    """Return what is behind the similarity of a known pair, in numbers; empty where that says nothing more."""
    counts, unit = scale.counts(matches)
    o, a, b = counts[edge].tolist()
    if scale.measure == "hamming":
        return f"{64 - o} of 64 bits differ"
    if scale.measure == "edit":
        return f"{a - o:,} of {a:,} characters edited"
    if scale.measure in SET_MEASURES and unit == 1:
        return shared_in_words(o, a, b)
    return ""


def head_of(found: Findings, loose: Matches, picked: Picked) -> str:
    """Return how alike two documents are, and whether they match.

    Parameters
    ----------
    found : Findings
        What the run found.
    loose : Matches
        All pairs that are known.
    picked : Picked
        One of them.
    """
    scale = found.scale
    verdict = "a match" if picked.matches else "no match"
    value = value_at(scale, picked.similarity)
    numbers = numbers_of(scale, loose, picked.edge)
    what = "probability" if scale.measure == "learned" else scale.measure
    return f"{what} {value}: {verdict}" + (f"; {numbers}" if numbers else "")


class Telling:
    """Says in a line why a dropped document matches its keeper."""

    def __init__(self, found: Findings, places: list[int]) -> None:
        """Take the dropped documents that will be asked for."""
        self._found = found
        at = np.array(places, np.int64)
        edges = found.edges(at, found.kept.keeper[at])
        self._row = {place: number for number, place in enumerate(places)}
        self._edges = edges.tolist()
        self._learned = None
        if found.decision is not None and found.matches.vectors is not None:
            self._learned = Learned(found.decision, found.matches.vectors, edges)

    def __call__(self, place: int, passage: int) -> str:
        """Return why a document matches; ``passage`` words in a row are in both."""
        number = self._row[place]
        parts = [self._numbers(number), f"{passage:,} words in a row in common" if passage > 1 else ""]
        return "; ".join(part for part in parts if part)

    def _numbers(self, number: int) -> str:
        edge = self._edges[number]
        if edge == EQUAL:
            return "equal in all that is compared"
        if self._learned is not None:
            return f"pushed by {self._learned.evidence(number)}"
        return numbers_of(self._found.scale, self._found.matches, edge)
