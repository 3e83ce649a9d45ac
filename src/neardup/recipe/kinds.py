"""The kinds of features and signatures, and the short texts that name them: ``words:5``, ``simhash``, ``df:2:0.5``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

from neardup.errors import RecipeError, suggestion

#: The longest n-gram and q-gram; longer ones would only match whole texts.
MAX_GRAM_LENGTH = 100
#: The maximum number of minima of a sketch.
MAX_MINIMA = 4096
Unit = Literal["sentence", "clause"]
ALGORITHMS = ("md5", "sha1", "sha256")


class Number(NamedTuple):
    """A number in the name of a kind: its letter, its default, and its range."""

    letter: str
    default: int
    low: int = 1
    high: int = MAX_GRAM_LENGTH


class FeatureKind(NamedTuple):
    """A kind of feature.

    Attributes
    ----------
    meaning : str
        A description of the feature.
    source : str
        The publication that it comes from.
    normalizer : str
        The default normalizer.
    by_character : bool
        Whether features consist of characters rather than tokens.
    numbers : tuple of Number
        The numbers after the name, in order.
    flags : tuple of str
        The flags that may follow the numbers.
    unit : {"sentence", "clause"}, optional
        The unit into which texts are split first.
    stop_words : str
        The default languages of stop words; empty for none.
    """

    meaning: str
    source: str
    normalizer: str = "words"
    by_character: bool = False
    numbers: tuple[Number, ...] = ()
    flags: tuple[str, ...] = ("multiset",)
    unit: Unit | None = None
    stop_words: str = ""


FEATURE_KINDS = {
    "words": FeatureKind(
        "contiguous n-grams of tokens", "Manning, Raghavan & Schuetze 2008, 19.6", numbers=(Number("n", 4),)
    ),
    "qgrams": FeatureKind(
        "contiguous character q-grams of the normal form",
        "Montanari & Puglisi 2012, 3.2 and 3.3",
        "compact",
        by_character=True,
        numbers=(Number("q", 4),),
        flags=("multiset", "positional"),
    ),
    "skips": FeatureKind(
        "k tokens with a gap of tokens skipped between each two",
        "Li et al. 2007, in ICGICT 2014, II",
        numbers=(Number("k", 3), Number("gap", 1)),
    ),
    "clauses": FeatureKind(
        "the strings between two pause symbols", "Li et al. 2007, in ICGICT 2014, II", unit="clause"
    ),
    "sentence_words": FeatureKind(
        "k-grams of tokens inside each sentence",
        "Wang & Chang 2009, in ICGICT 2014, II",
        numbers=(Number("k", 3),),
        unit="sentence",
    ),
    "spots": FeatureKind(
        "at each antecedent, the next c tokens that are no stop words, d apart",
        "Theobald, Siddharth & Paepcke, SIGIR 2008",
        numbers=(Number("d", 1), Number("c", 2)),
        stop_words="en",
    ),
    "terms": FeatureKind(
        "the k heaviest terms by tf-idf",
        "ICGICT 2014, 3.2.1",
        numbers=(Number("k", 4, high=100_000),),
        flags=("sentence", "positional"),
        stop_words="en",
    ),
    "windows": FeatureKind(
        "fingerprints of every window of w characters, one in m of them kept",
        "Manber 1994, in Montanari & Puglisi 2012, 3.1 [4]",
        "compact",
        by_character=True,
        numbers=(Number("w", 50, high=1000), Number("m", 8, high=1 << 20)),
    ),
    "checksum": FeatureKind(
        "one cryptographic hash of the whole text", "Montanari & Puglisi 2012, 3.1 [1, 14]", flags=ALGORITHMS
    ),
}
NORMALIZER_NAMES = {
    "words": "NFKC, case folded, Unicode words without the vowel marks of Arabic, Hebrew and Syriac; ideographs and "
    "scripts without spaces one token a character",
    "whitespace": "split on white space; case and punctuation kept",
    "compact": "the characters of words, folded in the same way, without spaces",
    "strip": "split on single spaces; white space and ASCII punctuation stripped from the ends of the text; case kept",
    "raw": "the text as it is, for checksums",
}


class SignatureKind(NamedTuple):
    """A kind of signature: a few 64-bit values computed from a document's features, which replace them."""

    meaning: str
    source: str
    measure: str
    numbers: tuple[Number, ...] = ()


SIGNATURE_KINDS = {
    "minhash": SignatureKind(
        "the minima of K hash functions (fast similarity sketching)",
        "Broder 1997; Dahlgaard, Knudsen & Thorup, FOCS 2017",
        "overlap",
        (Number("K", 128, high=MAX_MINIMA),),
    ),
    "sketch": SignatureKind(
        "the minima of K functions (a x + b) mod p, p the prime closest to the number of features",
        "Cornell INFO 4300, 2012",
        "overlap",
        (Number("K", 25, high=MAX_MINIMA),),
    ),
    "supershingle": SignatureKind(
        "hashes of S groups of G minima each",
        "Broder 1997; 2000",
        "overlap",
        (Number("S", 6, high=256), Number("G", 14, high=256)),
    ),
    "simhash": SignatureKind(
        "64 bits, each the majority among the features", "Charikar 2002; Manku et al. 2007", "hamming"
    ),
    "imatch": SignatureKind(
        "SHA-1 over the sorted distinct terms of a lexicon; fewer than T of them decide nothing",
        "Chowdhury et al. 2002",
        "jaccard",
        (Number("T", 5, high=100_000),),
    ),
}
_FEATURES = re.compile(r"(?P<kind>[a-z_]+)(?P<numbers>(?::-?[0-9]{1,15})*)(?P<flags>(?::[a-z][a-z0-9]*)*)")
_CLIP = re.compile(r"(?P<by>df|idf):(?P<low>[0-9]{1,15}(?:\.[0-9]{1,15})?):(?P<high>[0-9]{1,15}(?:\.[0-9]{1,15})?)")


class Features(NamedTuple):
    """Parsed features such as ``"words:5"`` or ``"terms:64:sentence"``: the kind, its numbers and its flags."""

    kind: str
    numbers: tuple[int, ...]
    flags: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Features:
        """Parse features such as ``words:5``.

        Raises ``RecipeError`` if the kind is unknown, a number is out of its range, or a flag does not belong to the
        kind.
        """
        match = _FEATURES.fullmatch(text.strip())
        if match is None or match["kind"] not in FEATURE_KINDS:
            forms = ", ".join(str(cls.parse(name)) for name in FEATURE_KINDS)
            similar = suggestion(text.partition(":")[0], FEATURE_KINDS)
            raise RecipeError(f"features {text!r} are not known; write them like {forms}, or words:4:multiset{similar}")
        kind = FEATURE_KINDS[match["kind"]]
        numbers = _numbers(f"features {text!r}", match["numbers"], kind.numbers)
        flags = match["flags"].split(":")[1:]
        for flag in flags:
            if flag not in kind.flags:
                allowed = ", ".join(kind.flags)
                raise RecipeError(
                    f"features {text!r}: {flag!r} is nothing that {match['kind']} take; they take {allowed}"
                )
        if match["kind"] == "checksum":
            if len(flags) > 1:
                raise RecipeError(f"features {text!r} name {len(flags)} algorithms; name one")
            flags = flags or ["sha1"]
        return cls(match["kind"], numbers, tuple(flag for flag in kind.flags if flag in flags))

    @property
    def n(self) -> int:
        """The number of tokens or characters in a gram; 1 for features that are not grams of a fixed length."""
        return self.numbers[0] if self.kind in ("words", "qgrams", "skips", "sentence_words", "windows") else 1

    @property
    def multiset(self) -> bool:
        """Whether repeats count."""
        return "multiset" in self.flags

    @property
    def positional(self) -> bool:
        """Whether the position of a feature is part of it."""
        return "positional" in self.flags

    @property
    def traits(self) -> FeatureKind:
        """The properties of the kind."""
        return FEATURE_KINDS[self.kind]

    @property
    def unit(self) -> Unit | None:
        """The unit into which texts are split first, None for none."""
        return "sentence" if "sentence" in self.flags else self.traits.unit

    def __str__(self) -> str:
        return ":".join([self.kind, *map(str, self.numbers), *self.flags])


class Signature(NamedTuple):
    """A parsed signature such as ``"simhash"`` or ``"minhash:128"``."""

    kind: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a signature such as ``minhash:128``.

        Raises ``RecipeError`` if the kind is unknown or a number is out of its range.
        """
        match = _FEATURES.fullmatch(text.strip())
        if match is None or match["kind"] not in SIGNATURE_KINDS or match["flags"]:
            forms = ", ".join(str(cls.parse(name)) for name in SIGNATURE_KINDS)
            raise RecipeError(f"signature {text!r} is not known; write it like {forms}, or leave it out")
        numbers = _numbers(f"signature {text!r}", match["numbers"], SIGNATURE_KINDS[match["kind"]].numbers)
        return cls(match["kind"], numbers)

    @property
    def minima(self) -> int:
        """The number of minima; 0 for other signatures."""
        if self.kind == "supershingle":
            return self.numbers[0] * self.numbers[1]
        return self.numbers[0] if self.kind in ("minhash", "sketch") else 0

    def __str__(self) -> str:
        return ":".join([self.kind, *map(str, self.numbers)])


class Clip(NamedTuple):
    """Bounds on the df or the normalised idf of features; features outside [low, high] are dropped.

    ``df:2:0.5`` keeps features of at least 2 documents and of at most half of them; a bound with a decimal point is a
    share of the documents. ``idf:0.2:0.8`` keeps features with ln(N / df) / ln(N) in that interval.
    """

    by: str
    low: Fraction
    high: Fraction
    shares: tuple[bool, bool]

    @classmethod
    def parse(cls, text: str) -> Clip:
        """Parse bounds such as ``df:2:0.5``.

        Raises ``RecipeError`` if they are not two numbers, or out of range or order.
        """
        match = _CLIP.fullmatch(text.strip())
        if match is None:
            raise RecipeError(f"clip {text!r} is not known; write it like df:2:0.5 or idf:0.2:0.8, or leave it out")
        low, high = Fraction(match["low"]), Fraction(match["high"])
        shares = "." in match["low"], "." in match["high"]
        if match["by"] == "idf":
            shares = True, True
        if any(share and bound > 1 for share, bound in zip(shares, (low, high), strict=True)):
            raise RecipeError(f"clip {text!r}: a bound with a decimal point is a share, at most 1.0; counts have none")
        if high == 0 or (shares[0] == shares[1] and low > high):
            raise RecipeError(f"clip {text!r} leaves nothing; give a lower bound and a higher one above 0")
        return cls(match["by"], low, high, shares)


def _numbers(subject: str, text: str, numbers: tuple[Number, ...]) -> tuple[int, ...]:
    parsed = [int(number) for number in text.split(":")[1:]]
    if len(parsed) > len(numbers):
        raise RecipeError(f"{subject}: {len(parsed)} numbers are too many; give at most {len(numbers)}")
    values = parsed + [number.default for number in numbers[len(parsed) :]]
    for value, number in zip(values, numbers, strict=True):
        if not number.low <= value <= number.high:
            raise RecipeError(f"{subject}: {number.letter} is {value}, outside {number.low}..{number.high}")
    return tuple(values)
