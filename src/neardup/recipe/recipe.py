"""The recipe: its options, their meaning, and the checks of their combinations."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from importlib import metadata
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from neardup.errors import RecipeError, option
from neardup.recipe.kinds import FEATURE_KINDS, MAX_MINIMA, NORMALIZER_NAMES, SIGNATURE_KINDS, Clip, Features, Signature
from neardup.recipe.measures import MEASURES, exact_fraction, measure, parse_threshold
from neardup.recipe.second_step import SecondStep

#: Maximum characters of ``ignore``, for a recipe is stored with its results.
_LONGEST_IGNORED = 1_000_000
#: The kinds whose stop words are left out of the tokens.
_WITHOUT_STOP_WORDS = ("words", "skips", "sentence_words", "terms")


def check_fit(recipe: Recipe) -> None:
    """Check that the choices of a recipe can be combined.

    Raises ``RecipeError`` if they cannot.
    """
    _check_normalizer(recipe)
    _check_ignore(recipe)
    _check_words(recipe)
    _check_weights(recipe)
    _check_measure(recipe)
    parse_threshold(recipe.measure, recipe.threshold)
    _check_search(recipe)


def _check_normalizer(recipe: Recipe) -> None:
    features = recipe.parsed_features
    if recipe.normalize == "compact" and not features.traits.by_character and features.kind != "checksum":
        raise RecipeError(
            f"normalize 'compact' leaves no tokens for features {recipe.features!r}; choose qgrams or normalize 'words'"
        )
    if recipe.normalize == "raw" and features.kind != "checksum":
        raise RecipeError(
            f"normalize 'raw' is for checksums, not for features {recipe.features!r}; choose 'whitespace'"
        )


def _check_ignore(recipe: Recipe) -> None:
    if not recipe.ignore:
        return
    if len(recipe.ignore) > _LONGEST_IGNORED:
        raise RecipeError(
            f"ignore is of {len(recipe.ignore):,} characters, and {_LONGEST_IGNORED:,} are allowed: give boilerplate "
            "alone, not documents"
        )
    features = recipe.parsed_features
    if recipe.measure == "semantic" and not recipe.signature:
        raise RecipeError("ignore is for features, and measure 'semantic' compares texts; leave it out")
    if features.kind in ("checksum", "terms") or features.positional:
        raise RecipeError(
            f"ignore takes features away one by one, and features {recipe.features!r} depend on all of a text; take "
            "words or qgrams"
        )
    second_features(recipe)


def _check_words(recipe: Recipe) -> None:
    kind = recipe.parsed_features.kind
    if recipe.antecedents and kind != "spots":
        raise RecipeError(f"antecedents are for spots, not for features {recipe.features!r}; leave them out")
    if recipe.clip and kind == "checksum":
        raise RecipeError(f"clip {recipe.clip!r} means nothing to features {recipe.features!r}; leave it out")
    if recipe.stop_words == "none" and kind == "spots" and not recipe.antecedents:
        raise RecipeError("stop_words 'none' leave spots without antecedents; name languages, or give antecedents")
    if recipe.stop_words == "none":
        return
    if recipe.stop_words and kind not in (*_WITHOUT_STOP_WORDS, "spots"):
        raise RecipeError(
            f"stop_words {recipe.stop_words!r} mean nothing to features {recipe.features!r}; leave them out, or take "
            f"one of {', '.join(_WITHOUT_STOP_WORDS)}, spots"
        )
    if recipe.stop_words and recipe.normalize != "words":
        raise RecipeError(
            f"stop_words {recipe.stop_words!r} are case-folded words, which normalize {recipe.normalize!r} does not "
            "give; choose normalize 'words'"
        )


def _check_weights(recipe: Recipe) -> None:
    features = recipe.parsed_features
    if not recipe.weights:
        return
    if features.multiset:
        raise RecipeError(
            f"weights {recipe.weights!r} count repeats, and so does features {recipe.features!r}: leave one out"
        )
    if features.kind == "checksum" or features.positional:
        raise RecipeError(f"weights {recipe.weights!r} mean nothing to features {recipe.features!r}; leave them out")
    if recipe.signature and not recipe.signature.startswith("simhash"):
        raise RecipeError(
            f"weights {recipe.weights!r} mean nothing to a {recipe.signature}; leave them out, or take simhash"
        )


def _check_measure(recipe: Recipe) -> None:
    definition = measure(recipe.measure)
    signature = recipe.parsed_signature
    if signature is not None:
        fitting = [SIGNATURE_KINDS[signature.kind].measure]
        subject = f"signature {recipe.signature!r}"
        if recipe.parsed_features.kind == "checksum":
            raise RecipeError(f"{subject} needs several features, and a checksum is one; leave the signature out")
    elif recipe.is_weighted:
        fitting = [name for name, m in MEASURES.items() if "weights" in m.takes]
        subject = f"weights {recipe.weights!r}"
    else:
        fitting = [name for name, m in MEASURES.items() if "sets" in m.takes]
        subject = f"features {recipe.features!r} without weights"
    if recipe.measure == "semantic" and not recipe.signature:
        for field in ("weights", "clip", "jaccard_floor"):
            if value := getattr(recipe, field):
                raise RecipeError(
                    f"{field} {value!r} is for features, and measure 'semantic' compares texts; leave it out"
                )
        return
    if definition.name not in fitting:
        hints = {
            "edit": "; for edit distance give second_step 'edit >= 0.9'",
            "weighted_jaccard": "; for weighted_jaccard give weights, such as 'idf'",
            "hamming": "; for hamming give "
            + option("--set signature=simhash --threshold 3", "signature='simhash', threshold=3"),
            "learned": f"; for a classifier give {option('--classifier FILE', 'classifier=')}",
        }
        raise RecipeError(
            f"measure {recipe.measure!r} does not fit {subject}; choose {'one of ' if len(fitting) > 1 else ''}"
            f"{', '.join(fitting)}{hints.get(recipe.measure, '')}"
        )
    if recipe.jaccard_floor and (signature is not None or recipe.is_weighted or definition.distance):
        raise RecipeError(f"jaccard_floor {recipe.jaccard_floor} is for feature sets, not for {subject}; leave it out")


def _check_search(recipe: Recipe) -> None:
    if recipe.search != "lsh":
        return
    definition = measure(recipe.measure)
    compared = recipe.measure if recipe.measure == "semantic" else recipe.features
    if (
        recipe.signature
        or recipe.is_weighted
        or recipe.parsed_features.kind == "checksum"
        or recipe.measure == "semantic"
    ):
        raise RecipeError(
            "search 'lsh' makes its own sketches of feature sets, not of "
            f"{recipe.signature or recipe.weights or compared}; choose search 'exact'"
        )
    if not max(definition.least_jaccard(parse_threshold(definition.name, recipe.threshold)), recipe.jaccard_floor):
        raise RecipeError(
            f"search 'lsh' needs a least Jaccard, which {definition.name} does not bound; give jaccard_floor, or "
            "choose search 'exact'"
        )


#: Incremented whenever the same recipe gives other features or pairs than before. 3: a text of NULs keeps its tokens.
#: 4: points are left out, later characters are letters. 5: `compact` folds case and compatibility.
CHAIN_VERSION = 5

CONTENTS = {
    "": "the text as it is",
    "html": "the main content of the page, without navigation and the like",
    "html-fast": "the same by a library that takes a tenth of the time and is less accurate",
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


Group = Literal["texts", "features", "comparison", "search", "result"]


@dataclass(frozen=True, slots=True)
class Option:
    """The metadata of a field of ``Recipe``.

    Attributes
    ----------
    default : str, float or int
        The value of the default recipe, which also gives the type.
    group : str
        The step of the chain to which the field belongs.
    values : str
        A placeholder for the value.
    detail : str
        Further help for the reference.
    common : bool
        Whether the field has its own command-line option; others are set with ``--set``.
    choices : mapping of str to str, optional
        The allowed values with their meanings.
    bounds : tuple of int, optional
        The lowest and the highest value of a whole number.
    """

    default: str | float | int
    help: str
    group: Group
    values: str
    detail: str = ""
    common: bool = False
    choices: Mapping[str, str] | None = None
    bounds: tuple[int, int] | None = None


def _field(
    default: str | float | int,
    help: str,
    group: Group,
    values: str,
    detail: str = "",
    *,
    common: bool = False,
    choices: Mapping[str, str] | None = None,
    bounds: tuple[int, int] | None = None,
) -> Any:
    option = Option(default, help, group, values, detail, common, choices, bounds)
    return field(default=default, metadata={"option": option})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One choice for each step of the chain.

    ``name`` and ``description`` are for readers and do not change the result.
    """

    name: str = "default"
    description: str = ""
    content: str = _field(
        "",
        "Compare the main content of pages (html, html-fast) or their text (tags).",
        "texts",
        "html|html-fast|tags",
        "Empty for the text as it is.",
        common=True,
        choices=CONTENTS,
    )
    normalize: str = _field(
        "",
        "How texts become comparable: words, whitespace, compact, strip or raw.",
        "texts",
        "NAME",
        "Empty takes what the features usually take.",
        choices=NORMALIZER_NAMES,
    )
    features: str = _field(
        "words:5",
        "What is compared, such as words:5.",
        "features",
        "KIND:N",
        f"The kinds are {', '.join(FEATURE_KINDS)}; `:multiset` counts repeats. Raising N makes a match mean more "
        "shared wording in a row, and one changed word cost more.",
        common=True,
    )
    stop_words: str = _field(
        "",
        "Languages whose stop words are left out, such as en,de; none for none.",
        "features",
        "LANGUAGES",
        "For words, skips, sentence_words and terms; the signatures of spots begin at them.",
    )
    antecedents: str = _field(
        "",
        "For spots: the words at which signatures begin, separated by spaces.",
        "features",
        "WORDS",
        "Empty for those of the languages.",
    )
    ignore: str = _field(
        "",
        "Known boilerplate, such as a notice; its features are not compared.",
        "features",
        "FILE",
        "A text file; in Python and in recipe files the text itself, up to a million characters. What is left of a "
        "document is compared. Features over the edge of the known text stay.",
        common=True,
    )
    clip: str = _field(
        "",
        "Drop features by how many documents contain them: df:2:0.5 or idf:0.2:0.8.",
        "features",
        "BY:LOW:HIGH",
        "Bounds of df are counts, or shares with a decimal point. Raising the lower one drops rare features.",
    )
    weights: str = _field(
        "", "Weigh features by tf, idf or tfidf; empty for sets.", "features", "NAME", choices=WEIGHTS
    )
    signature: str = _field(
        "",
        "Compare a signature of the features: simhash, minhash:K, sketch:K, imatch:T, ...",
        "features",
        "KIND:N",
        f"The kinds are {', '.join(SIGNATURE_KINDS)}; empty for the features themselves.",
    )
    measure: str = _field(
        "jaccard",
        "How similarity is measured. Usual are jaccard, overlap and containment.",
        "comparison",
        "NAME",
        f"On sets {', '.join(name for name, m in MEASURES.items() if 'sets' in m.takes)}; on weights "
        f"{', '.join(name for name, m in MEASURES.items() if 'weights' in m.takes)}; hamming on simhash; semantic "
        "on texts, in Python, with an encoder.",
        common=True,
    )
    threshold: float = _field(
        0.85,
        "Pairs at or above it match. For a distance, those at or below it.",
        "comparison",
        "NUMBER",
        "In (0, 1], for a distance in the range of the measure.",
        common=True,
    )
    jaccard_floor: float = _field(
        0.0,
        "The Jaccard that a pair must also reach; 0 for none.",
        "comparison",
        "NUMBER",
        "In [0, 1]. Meant for containment.",
    )
    search: str = _field(
        "exact",
        "exact finds every pair; lsh, a stated share.",
        "search",
        "exact|lsh",
        common=True,
        choices=SEARCHES,
    )
    recall: float = _field(
        0.99,
        "For lsh: the share of the pairs at the threshold to find.",
        "search",
        "NUMBER",
        "In (0, 1). Raising it takes more candidates.",
    )
    num_perm: int = _field(
        256,
        "For lsh: the maximum number of hash values per document.",
        "search",
        "NUMBER",
        "Raising it allows longer rows, so fewer candidates.",
        bounds=(1, MAX_MINIMA),
    )
    seed: int = _field(1, "Random seed of sketches and bands.", "search", "NUMBER", bounds=(0, (1 << 32) - 1))
    second_step: str = _field(
        "",
        "A second test, such as 'edit >= 0.9'.",
        "comparison",
        "MEASURE>=NUMBER",
        "Or `jaccard(words:2) >= 0.6`, or in Python `semantic >= 0.8`; empty for none.",
        common=True,
    )
    keep: str = _field(
        "first",
        "Which of two to keep: first, longest, newest, ... Also shortest and oldest.",
        "result",
        "ORDER",
        "Or a column whose highest value is kept; `COLUMN:lowest` for the lowest.",
        common=True,
    )

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
        if self.second_step:
            object.__setattr__(self, "second_step", str(SecondStep.parse(self.second_step)))
        for name, entry in OPTIONS.items():
            value = getattr(self, name)
            if entry.choices is not None and value not in entry.choices:
                choices = ", ".join(choice for choice in entry.choices if choice)
                raise RecipeError(f"{name} {value!r} is not known; choose one of {choices}")
            if entry.bounds is not None and not entry.bounds[0] <= value <= entry.bounds[1]:
                raise RecipeError(f"{name} {value} is outside {entry.bounds[0]}..{entry.bounds[1]}")
        exact_fraction(self.jaccard_floor, "jaccard_floor", zero=True)
        if not 0 < self.recall < 1:
            raise RecipeError(f"recall {self.recall} is outside (0, 1); for every pair choose search 'exact'")
        if not self.keep:
            raise RecipeError(f"keep is empty; choose one of {', '.join(KEEP_ORDERS)} or name a column")
        check_fit(self)

    def _check_types(self) -> None:
        for name, expected in ((entry.name, entry.type) for entry in fields(self)):
            value = getattr(self, name)
            if expected == "str" and not isinstance(value, str):
                raise RecipeError(f"{name} {value!r} is not a text")
            if expected == "float" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise RecipeError(f"{name} {value!r} is not a number")
            if expected == "int" and (isinstance(value, bool) or not isinstance(value, int)):
                raise RecipeError(f"{name} {value!r} is not a whole number")
            if isinstance(value, int) and abs(value) >= 1 << 63:
                raise RecipeError(f"{name} has more than 63 bits; give a smaller number")

    @property
    def parsed_features(self) -> Features:
        """The parsed features."""
        return Features.parse(self.features)

    @property
    def parsed_signature(self) -> Signature | None:
        """The parsed signature, None for none."""
        return Signature.parse(self.signature) if self.signature else None

    @property
    def parsed_clip(self) -> Clip | None:
        """The parsed bounds on df, None for none."""
        return Clip.parse(self.clip) if self.clip else None

    @property
    def parsed_second_step(self) -> SecondStep | None:
        """The parsed second step, None for none."""
        return SecondStep.parse(self.second_step)._replace(ignore=self.ignore) if self.second_step else None

    @property
    def exact_threshold(self) -> Fraction:
        """The threshold as a fraction."""
        return parse_threshold(self.measure, self.threshold)

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
        """Return the choices that are made, on one line."""
        parts = [f"content {self.content}"] if self.content else []
        parts.append(f"{self.features} ({self.normalize})")
        words = "stop words" if self.parsed_features.kind == "spots" else "without stop words"
        parts += [f"{words} of {self.stop_words}"] if self.stop_words not in ("", "none") else []
        parts += (
            [f"without {len(self.ignore):,} characters of known text ({_digest(self.ignore)[:8]})"]
            if self.ignore
            else []
        )
        parts += [f"clip {self.clip}"] if self.clip else []
        parts += [f"weights {self.weights}"] if self.weights else []
        parts += [self.signature] if self.signature else []
        sign = "<=" if measure(self.measure).distance else ">="
        parts.append(f"{self.measure} {sign} {self.threshold:g}")
        parts += [f"Jaccard floor {self.jaccard_floor:g}"] if self.jaccard_floor else []
        parts += [f"then {self.second_step}"] if self.second_step else []
        parts += (
            [f"search lsh (recall {self.recall:g}, at most {self.num_perm} minima)"] if self.search == "lsh" else []
        )
        return ", ".join(parts)

    def changed(self, **changes: Any) -> Recipe:
        """Return a recipe with other values; another kind of features brings its default normalizer and stop words."""
        if "features" in changes:
            old, new = self.parsed_features, Features.parse(changes["features"])
            for field, default in (("normalize", old.traits.normalizer), ("stop_words", old.traits.stop_words)):
                if field not in changes and new.kind != old.kind and getattr(self, field) == default:
                    changes[field] = ""
        return replace(self, **changes)

    def without_statistics(self) -> Recipe:
        """Return a recipe for the same features as sets, independent of the collection."""
        return self.changed(
            clip="",
            weights="",
            signature="",
            measure="jaccard",
            threshold=1.0,
            jaccard_floor=0.0,
            search="exact",
            second_step="",
        )

    @property
    def dependencies(self) -> dict[str, str]:
        """What the result depends on, as short texts by name: the choices, tables and versions.

        Raises ``RecipeError`` if a language has no stop words.
        """
        return dependencies_of(self)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits: a digest of all dependencies of the result."""
        return hashlib.sha256(json.dumps(self.dependencies, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def values(self) -> dict[str, Any]:
        """All fields by name; ``ignore``, which is rarely used, only if it is not empty."""
        return {name: value for name, value in asdict(self).items() if value != "" or name != "ignore"}

    def to_toml(self) -> str:
        """Return the recipe as TOML; ``load`` reads it back."""
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in self.values.items())


#: The metadata of each field that can change the result.
OPTIONS: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(Recipe) if one.metadata}


def _parameters() -> str:
    types = {entry.name: entry.type for entry in fields(Recipe)}
    entries = (
        f"    {name} : {types[name]}\n        {entry.help} {entry.detail}".rstrip() for name, entry in OPTIONS.items()
    )
    return "Parameters\n    ----------\n" + "\n".join(entries)


Recipe.__doc__ = f"""{(Recipe.__doc__ or "").rstrip()}

    {_parameters()}

    Raises
    ------
    RecipeError
        If a value is unknown or out of range, or two values do not fit each other.
    """


def command_words(name: str, value: object) -> list[str]:
    """Return the command-line arguments that set a field of a recipe."""
    if name == "ignore":
        return ["--ignore", "FILE"]
    if OPTIONS[name].common:
        return [f"--{name.replace('_', '-')}", str(value)]
    return ["--set", f"{name}={value}"]


#: What may be long in a recipe file: strings, also those that do not end, comments and space.
_STRINGS_AND_SPACES = re.compile(
    r'''"""(?:[^\\]|\\.?)*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|"(?:[^"\\\n]|\\[^\n]?)*"?|\'[^\'\n]*\'?|\#[^\n]*|\s+''',
    re.DOTALL,
)
_LONGEST_KEYS = 4000


def parse(text: str, where: str) -> Recipe:
    """Return the recipe written in TOML; ``where`` names it in messages.

    Raises ``RecipeError`` if it is not TOML, has an unknown key, or a value is invalid.
    """
    # The parser takes time quadratic in the length of a key, and one call for each bracket.
    if sum(map(len, _STRINGS_AND_SPACES.split(text))) > _LONGEST_KEYS:
        raise RecipeError(f"{where} is not a recipe: its keys and numbers have more than {_LONGEST_KEYS:,} characters")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{where} is not TOML: {error}") from None
    keys = [field.name for field in fields(Recipe)]
    for key in values:
        if key not in keys:
            raise RecipeError(f"{where}: unknown key {key!r}; a recipe's keys are {', '.join(keys)}")
    try:
        return Recipe(**values)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from None


class WordLists(NamedTuple):
    """The stop words of a recipe's languages, as tokens, and for ``spots`` the antecedents: its own, or theirs."""

    stops: frozenset[str]
    antecedents: frozenset[str]


def word_lists(recipe: Recipe) -> WordLists:
    """Return the words of a recipe.

    Raises ``RecipeError`` if a language has no stop words.
    """
    from neardup.text.normalize import tokens
    from neardup.text.stop_words import antecedents, stop_words

    languages = "" if recipe.stop_words == "none" else recipe.stop_words
    stops = stop_words(languages)
    if recipe.parsed_features.kind != "spots":
        return WordLists(stops, frozenset())
    if recipe.antecedents:
        return WordLists(stops, frozenset(token.text for token in tokens(recipe.antecedents, recipe.normalize)))
    return WordLists(stops, antecedents(languages))


CHOICES = "choices"
CHAIN = "chain"
TABLES = "Unicode tables"
WORDS = "stop words"
#: The library that finds the main content of pages, by the name of the content.
CONTENT_LIBRARIES = {"html": "trafilatura", "html-fast": "resiliparse"}

#: Descriptions of a difference in a dependency other than the choices.
_DIFFERENCES = {
    CHAIN: "by a neardup that makes other features (chain of steps {stored}, here {current})",
    TABLES: "by a Python whose Unicode tables differ ({stored}, here {current})",
    WORDS: "with other stop words (lists {stored}, here {current})",
    **{library: f"with another {library} ({{stored}}, here {{current}})" for library in CONTENT_LIBRARIES.values()},
}


def dependencies_of(*recipes: Recipe, tables: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the dependencies of the result of recipes that are used together.

    These are a digest of the choices that matter; the version of the chain; digests of the tables of the normalizers,
    of further ``tables``, and of the words in the lists; the version of the library that extracts the content of pages.
    Dependencies that no recipe uses are left out. Raises ``RecipeError`` if a language has no stop words.
    """
    from neardup.text.normalize import tables_digest

    used = [*recipes, *(step for step in map(second_features, recipes) if step is not None)]
    dependencies = {CHOICES: _digest([_choices(one) for one in recipes]), CHAIN: str(CHAIN_VERSION)}
    tables = {**{one.normalize: tables_digest(one.normalize) for one in used}, **tables}
    if any(tables.values()):
        dependencies[TABLES] = ", ".join(f"{name} {digest}" for name, digest in sorted(tables.items()) if digest)
    lists = [[sorted(words) for words in word_lists(one)] for one in used]
    if any(any(words) for words in lists):
        dependencies[WORDS] = _digest(lists)
    for content, library in CONTENT_LIBRARIES.items():
        if any(one.content == content for one in recipes):
            dependencies[library] = _version_of(library)
    return dependencies


def difference(stored: Mapping[str, str], current: Mapping[str, str]) -> str:
    """Describe how the dependencies of a stored result differ from those of this installation.

    Returns an empty text if they are equal, or if the choices differ: then it is another recipe.
    """
    if current and not stored:
        return f"by an older neardup that makes other features (chain of steps {current[CHAIN]} here)"
    if stored.get(CHOICES) != current.get(CHOICES):
        return ""
    for name, description in _DIFFERENCES.items():
        if stored.get(name) != current.get(name):
            return description.format(stored=stored.get(name, "none"), current=current.get(name, "none"))
    return ""


_DIGEST_NAMES = {"second_step": "then"}


def _choices(recipe: Recipe) -> dict[str, Any]:
    """Return the choices that can change the result."""
    # The words themselves are digested, so the names of their languages do not matter.
    omitted = {"name", "description", "stop_words", "antecedents"}
    signature = recipe.parsed_signature
    if recipe.search == "exact":
        omitted |= {"recall", "num_perm"}
        if signature is None or not signature.minima:
            omitted.add("seed")
    # Empty fields are left out, so that a new field does not change the fingerprints of older recipes.
    choices = {name: value for name, value in asdict(recipe).items() if name not in omitted and value != ""}
    # A renamed field keeps its old name in the digest.
    choices = {_DIGEST_NAMES.get(name, name): value for name, value in choices.items()}
    for name in {"threshold", "jaccard_floor", "recall"} & set(choices):
        choices[name] = float(choices[name])
    return choices


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def second_features(recipe: Recipe) -> Recipe | None:
    """Return the recipe of the features of a second step on feature sets, None if there is no such step."""
    step = recipe.parsed_second_step
    if step is None or not step.features or step.measure == "learned":
        return None
    return Recipe(features=step.features, ignore=recipe.ignore)


def _version_of(library: str) -> str:
    """Return the version of a library, empty if it is not installed."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
