"""Recipes: one choice for each step of the chain, frozen, self-checking, read from and written as TOML."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
import unicodedata
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from typing import Any, NamedTuple

from neardup.errors import RecipeError
from neardup.measures import exact_fraction, measure

#: Raised whenever the same recipe would give other features or pairs than before.
CHAIN_VERSION = 1
#: The longest n-gram and q-gram; beyond it nothing but whole texts would match.
LONGEST_GRAM = 100


class FeatureKind(NamedTuple):
    """A kind of feature: what it is, the normalizer that it takes by default, the n it takes by default."""

    meaning: str
    normalizer: str
    by_character: bool
    default_n: int


FEATURE_KINDS = {
    "words": FeatureKind("contiguous n-grams of tokens", "words", False, 4),
    "qgrams": FeatureKind("contiguous character q-grams of the normal form", "compact", True, 4),
}
NORMALIZER_NAMES = {
    "words": "NFKC, case folded, Unicode words; ideographs and scripts without spaces one token a character",
    "whitespace": "split on white space; case and punctuation kept",
    "compact": "white space and punctuation removed, case kept",
}
SEARCHES = {"exact": "every pair at or above the threshold"}
KEEP_ORDERS = {
    "first": "in the order of the input",
    "longest": "longest text first",
    "shortest": "shortest text first",
    "newest": "latest time first",
    "oldest": "earliest time first",
}
_FEATURES = re.compile(r"(?P<kind>[a-z_]+)(?::(?P<n>-?\d+))?(?P<multiset>:multiset)?")


class Features(NamedTuple):
    """What ``"words:5"`` or ``"qgrams:4:multiset"`` says."""

    kind: str
    n: int
    multiset: bool

    @classmethod
    def parse(cls, text: str) -> Features:
        """Return the features that a text like ``words:5`` names.

        Raises
        ------
        RecipeError
            If the kind is unknown or n is not in 1..100.
        """
        match = _FEATURES.fullmatch(text.strip())
        known = ", ".join(f"{name}:{kind.default_n}" for name, kind in FEATURE_KINDS.items())
        if match is None or match["kind"] not in FEATURE_KINDS:
            raise RecipeError(f"features {text!r} are not known; write them like {known} or words:4:multiset")
        n = int(match["n"]) if match["n"] else FEATURE_KINDS[match["kind"]].default_n
        if not 1 <= n <= LONGEST_GRAM:
            raise RecipeError(f"features {text!r}: n is {n}, outside 1..{LONGEST_GRAM}")
        return cls(match["kind"], n, match["multiset"] is not None)

    def __str__(self) -> str:
        return f"{self.kind}:{self.n}" + (":multiset" if self.multiset else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One choice for each step of the chain.

    Parameters
    ----------
    name, description : str
        For people; they do not change the answer.
    normalize : str
        How texts become comparable: ``words``, ``whitespace`` or ``compact``; empty takes what the features
        usually take.
    features : str
        ``words:N`` or ``qgrams:Q``, with ``:multiset`` to count repeats. Raising N makes a match mean more
        shared wording in a row, and one changed word cost more.
    measure : str
        ``jaccard``, ``overlap``, ``dice``, ``cosine`` or ``containment``.
    threshold : float
        Pairs at or above it are near-duplicates; in (0, 1].
    jaccard_floor : float
        The Jaccard that a pair must reach besides; 0 for none. Meant for ``containment``.
    search : str
        How pairs are found: ``exact``.
    keep : str
        Who stays of two that match: ``first``, ``longest``, ``shortest``, ``newest``, ``oldest``, or a column
        whose highest value stays (``COLUMN:lowest`` for the lowest).

    Raises
    ------
    RecipeError
        If a value is unknown or out of range.
    """

    name: str = "default"
    description: str = ""
    normalize: str = ""
    features: str = "words:5"
    measure: str = "jaccard"
    threshold: float = 0.85
    jaccard_floor: float = 0.0
    search: str = "exact"
    keep: str = "first"

    def __post_init__(self) -> None:
        for field in fields(self):
            value, expected = getattr(self, field.name), field.type
            if expected == "str" and not isinstance(value, str):
                raise RecipeError(f"{field.name} {value!r} is not a text")
            if expected == "float" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise RecipeError(f"{field.name} {value!r} is not a number")
        parsed = Features.parse(self.features)
        object.__setattr__(self, "features", str(parsed))
        normalizer = self.normalize or FEATURE_KINDS[parsed.kind].normalizer
        object.__setattr__(self, "normalize", normalizer)
        if normalizer not in NORMALIZER_NAMES:
            raise RecipeError(f"normalize {normalizer!r} is not known; choose one of {', '.join(NORMALIZER_NAMES)}")
        if normalizer == "compact" and not FEATURE_KINDS[parsed.kind].by_character:
            raise RecipeError(
                f"normalize 'compact' leaves no tokens for features {self.features!r}; "
                "choose qgrams or normalize 'words'"
            )
        measure(self.measure)
        exact_fraction(self.threshold, "threshold")
        exact_fraction(self.jaccard_floor, "jaccard_floor", zero=True)
        if self.search not in SEARCHES:
            raise RecipeError(f"search {self.search!r} is not known; choose one of {', '.join(SEARCHES)}")
        if not self.keep:
            raise RecipeError(f"keep is empty; choose one of {', '.join(KEEP_ORDERS)} or name a column")

    @property
    def parsed_features(self) -> Features:
        """The features, taken apart."""
        return Features.parse(self.features)

    def changed(self, **changes: Any) -> Recipe:
        """Return a recipe with other values; features of another kind bring their normalizer."""
        if "features" in changes and "normalize" not in changes:
            before = FEATURE_KINDS[self.parsed_features.kind]
            if Features.parse(changes["features"]).kind != self.parsed_features.kind and (
                self.normalize == before.normalizer
            ):
                changes["normalize"] = ""
        return replace(self, **changes)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of the choices and of the chain's and Unicode's versions."""
        choices = {k: v for k, v in asdict(self).items() if k not in ("name", "description")}
        choices |= {"threshold": float(self.threshold), "jaccard_floor": float(self.jaccard_floor)}
        choices |= {"chain": CHAIN_VERSION, "unicode": unicodedata.unidata_version}
        return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()[:16]

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


def names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    folder = resources.files("neardup") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name_or_file: str) -> Recipe:
    """Return a recipe by its name, or from a TOML file.

    Raises
    ------
    RecipeError
        If there is neither a recipe nor a file of that name, or the file is refused.
    """
    if name_or_file in names():
        shipped = resources.files("neardup") / "recipes" / f"{name_or_file}.toml"
        return parse(shipped.read_text("utf-8"), f"recipe {name_or_file}")
    if not os.path.isfile(name_or_file):
        raise RecipeError(f"recipe {name_or_file!r} is neither a file nor one of {', '.join(names())}")
    try:
        with open(name_or_file, encoding="utf-8") as file:
            return parse(file.read(), f"recipe {name_or_file}")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"recipe {name_or_file!r} cannot be read: {error}") from None
