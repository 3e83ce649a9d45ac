"""Recipes: one choice for each step of the chain, frozen, self-checking, read from and written as TOML."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import Any

from neardup.errors import RecipeError
from neardup.measures import exact_fraction, measure, threshold_of
from neardup.recipe.fitting import check_fit
from neardup.recipe.kinds import NORMALIZER_NAMES, Clip, Features, Signature
from neardup.recipe.second import SecondStep

#: Raised whenever the same recipe would give other features or pairs than before. 3: a text of NULs keeps its tokens.
#: 4: points are left out, later characters are letters.
CHAIN_VERSION = 4

CONTENTS = {
    "": "the text as it is",
    "html": "the main content of the page, without navigation and the like",
    "tags": "all text of the page; only tags are taken away",
}
SEARCHES = {
    "exact": "every pair that matches",
    "lsh": "pairs that share a band of their sketches, verified; a stated share of those at the threshold",
}
WEIGHTS = {
    "": "none: sets",
    "tf": "how often a document holds the feature",
    "idf": "ln(1 + N / df), for N documents of which df hold the feature",
    "tfidf": "tf times idf",
}
KEEP_ORDERS = {
    "first": "in the order of the input",
    "longest": "longest text first",
    "shortest": "shortest text first",
    "newest": "latest time first",
    "oldest": "earliest time first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One choice for each step of the chain.

    Parameters
    ----------
    name, description : str
        For people; they do not change the answer.
    content : str
        What of a text is compared: ``html`` for the main content of a page, ``tags`` for all of its text; empty for
        the text as it is.
    normalize : str
        How texts become comparable: ``words``, ``whitespace``, ``compact``, ``strip`` or ``raw``; empty takes what the
        features usually take.
    features : str
        ``words:N``, ``qgrams:Q`` and the other kinds of ``neardup.recipe.kinds.FEATURE_KINDS``, with ``:multiset`` to
        count repeats. Raising N makes a match mean more shared wording in a row, and one changed word cost more.
    stop_words : str
        Languages (``en`` or ``en,de``) whose stop words are left out (``words``, ``skips``, ``sentence_words``,
        ``terms``) or begin signatures (``spots``).
    antecedents : str
        For ``spots``: the words at which signatures begin, parted by spaces; empty for those of the languages
        (``neardup.text.stop_words.antecedents``).
    clip : str
        ``df:2:0.5`` or ``idf:0.2:0.8``: drop features outside these bounds. Raising the lower bound drops rare ones.
    weights : str
        ``tf``, ``idf`` or ``tfidf``; empty for sets.
    signature : str
        What takes the place of the features: ``minhash:K``, ``sketch:K``, ``supershingle:S:G``, ``simhash`` or
        ``imatch:T``; empty for nothing.
    measure : str
        A name of ``neardup.measures.MEASURES``.
    threshold : float
        Pairs at or above it are near-duplicates, in (0, 1]; for a distance those at or below it.
    jaccard_floor : float
        The Jaccard that a pair must reach besides; 0 for none. Meant for ``containment``.
    search : str
        How pairs are found: ``exact`` or ``lsh``.
    recall : float
        For ``lsh``: the share of the pairs at the threshold to be found, in (0, 1). Raising it takes more candidates.
    num_perm : int
        For ``lsh``: at most so many minima a document. Raising it allows longer rows, so fewer candidates.
    seed : int
        Of all that is random: sketches and bands.
    then : str
        A second, more accurate measure for the pairs that passed, such as ``edit >= 0.9``,
        ``jaccard(words:2) >= 0.6`` or ``semantic >= 0.8``; empty for none.
    keep : str
        Who stays of two that match: ``first``, ``longest``, ``shortest``, ``newest``, ``oldest``, or a column
        whose highest value stays (``COLUMN:lowest`` for the lowest).

    Raises
    ------
    RecipeError
        If a value is unknown or out of range, or two values do not fit each other.
    """

    name: str = "default"
    description: str = ""
    content: str = ""
    normalize: str = ""
    features: str = "words:5"
    stop_words: str = ""
    antecedents: str = ""
    clip: str = ""
    weights: str = ""
    signature: str = ""
    measure: str = "jaccard"
    threshold: float = 0.85
    jaccard_floor: float = 0.0
    search: str = "exact"
    recall: float = 0.99
    num_perm: int = 256
    seed: int = 1
    then: str = ""
    keep: str = "first"

    def __post_init__(self) -> None:
        self._check_types()
        parsed = Features.parse(self.features)
        object.__setattr__(self, "features", str(parsed))
        object.__setattr__(self, "normalize", self.normalize or parsed.traits.normalizer)
        object.__setattr__(self, "stop_words", self.stop_words or parsed.traits.stop_words)
        if self.signature:
            object.__setattr__(self, "signature", str(Signature.parse(self.signature)))
        if self.clip:
            Clip.parse(self.clip)
        if self.then:
            object.__setattr__(self, "then", str(SecondStep.parse(self.then)))
        named = {"content": CONTENTS, "normalize": NORMALIZER_NAMES, "weights": WEIGHTS, "search": SEARCHES}
        for field, known in named.items():
            if getattr(self, field) not in known:
                choices = ", ".join(name for name in known if name)
                raise RecipeError(f"{field} {getattr(self, field)!r} is not known; choose one of {choices}")
        threshold_of(measure(self.measure).name, self.threshold)
        exact_fraction(self.jaccard_floor, "jaccard_floor", zero=True)
        if not 0 < self.recall < 1:
            raise RecipeError(f"recall {self.recall} is outside (0, 1); for every pair choose search 'exact'")
        if not 1 <= self.num_perm <= 4096:
            raise RecipeError(f"num_perm {self.num_perm} is outside 1..4096")
        if not 0 <= self.seed < 1 << 32:
            raise RecipeError(f"seed {self.seed} is outside 0..4294967295")
        if not self.keep:
            raise RecipeError(f"keep is empty; choose one of {', '.join(KEEP_ORDERS)} or name a column")
        check_fit(self)

    def _check_types(self) -> None:
        for field in fields(self):
            value, expected = getattr(self, field.name), field.type
            if expected == "str" and not isinstance(value, str):
                raise RecipeError(f"{field.name} {value!r} is not a text")
            if expected == "float" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise RecipeError(f"{field.name} {value!r} is not a number")
            if expected == "int" and (isinstance(value, bool) or not isinstance(value, int)):
                raise RecipeError(f"{field.name} {value!r} is not a whole number")

    @property
    def parsed_features(self) -> Features:
        """The features, taken apart."""
        return Features.parse(self.features)

    @property
    def parsed_signature(self) -> Signature | None:
        """The signature, taken apart; None where there is none."""
        return Signature.parse(self.signature) if self.signature else None

    @property
    def parsed_clip(self) -> Clip | None:
        """The bounds on df, taken apart; None where there are none."""
        return Clip.parse(self.clip) if self.clip else None

    @property
    def second_step(self) -> SecondStep | None:
        """The second measure, taken apart; None where there is none."""
        return SecondStep.parse(self.then) if self.then else None

    @property
    def exact_threshold(self) -> Fraction:
        """The threshold as a fraction."""
        return threshold_of(self.measure, self.threshold)

    @property
    def needs_statistics(self) -> bool:
        """Whether a document's features depend on the collection."""
        return bool(
            self.clip
            or self.weights in ("idf", "tfidf")
            or self.parsed_features.kind == "terms"
            or self.signature.startswith("sketch")
        )

    @property
    def is_weighted(self) -> bool:
        """Whether documents are compared as weighted vectors."""
        return bool(self.weights) and not self.signature

    def in_words(self) -> str:
        """Return what matches, on one line: the choices that differ from none."""
        parts = [f"content {self.content}"] if self.content else []
        parts.append(f"{self.features} ({self.normalize})")
        what = "stop words" if self.parsed_features.kind == "spots" else "without stop words"
        parts += [f"{what} of {self.stop_words}"] if self.stop_words not in ("", "none") else []
        parts += [f"clip {self.clip}"] if self.clip else []
        parts += [f"weights {self.weights}"] if self.weights else []
        parts += [self.signature] if self.signature else []
        sign = "<=" if measure(self.measure).distance else ">="
        parts.append(f"{self.measure} {sign} {self.threshold:g}")
        parts += [f"Jaccard floor {self.jaccard_floor:g}"] if self.jaccard_floor else []
        parts += [f"then {self.then}"] if self.then else []
        parts += (
            [f"search lsh (recall {self.recall:g}, at most {self.num_perm} minima)"] if self.search == "lsh" else []
        )
        return ", ".join(parts)

    def changed(self, **changes: Any) -> Recipe:
        """Return a recipe with other values; features of another kind bring their normalizer and stop words."""
        if "features" in changes:
            before, after = self.parsed_features, Features.parse(changes["features"])
            for field, usual in (("normalize", before.traits.normalizer), ("stop_words", before.traits.stop_words)):
                if field not in changes and after.kind != before.kind and getattr(self, field) == usual:
                    changes[field] = ""
        return replace(self, **changes)

    def without_statistics(self) -> Recipe:
        """Return a recipe for the same features as sets, before the collection has a say in them."""
        return self.changed(
            clip="",
            weights="",
            signature="",
            measure="jaccard",
            threshold=1.0,
            jaccard_floor=0.0,
            search="exact",
            then="",
        )

    @property
    def dependencies(self) -> dict[str, str]:
        """What the answer depends on, as short texts by name: the choices, and what they are carried out with.

        Raises
        ------
        RecipeError
            If a language has no stop words.
        """
        from neardup.recipe.dependencies import dependencies_of

        return dependencies_of(self)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of all that the answer depends on."""
        return hashlib.sha256(json.dumps(self.dependencies, sort_keys=True).encode()).hexdigest()[:16]

    def to_toml(self) -> str:
        """Return the recipe as TOML; ``load`` reads it back."""
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in asdict(self).items())


def parse(text: str, where: str) -> Recipe:
    """Return the recipe written in TOML; ``where`` names it in messages.

    Raises
    ------
    RecipeError
        If it is not TOML, holds an unknown key, or a value is refused.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where} is not TOML: {error}") from None
    known = [field.name for field in fields(Recipe)]
    for key in values:
        if key not in known:
            raise RecipeError(f"{where}: unknown key {key!r}; a recipe's keys are {', '.join(known)}")
    try:
        return Recipe(**values)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from None
