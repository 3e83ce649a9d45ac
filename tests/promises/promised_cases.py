"""The command lines whose outputs are promised, in one table: a renamed command or option is one changed line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from promised_corpora import PARTS
from promised_digests import LEARNED_DIGITS

#: Fields of a recipe without an option of their own.
_RARE_FIELDS = (
    *("antecedents", "clip", "jaccard_floor", "normalize", "num_perm", "recall", "signature", "stop_words"),
    "weights",
)
#: The names of options in the cases that are not those of the command line.
_FLAGS = {"all_rows": "--all", "import_": "--import", "sketch_seed": "--set seed", "until_empty": "--once"}


def flag_of(option: str) -> str:
    """Return the flag of an option by its name in the cases."""
    if option in _RARE_FIELDS:
        return f"--set {option}"
    return _FLAGS.get(option, f"--{option.replace('_', '-')}")


#: The recipes that come by name.
RECIPES = (
    *("checksum", "cornell", "ddd", "default", "imatch", "jaccard"),
    *("lsh", "manber", "simhash", "spotsigs", "supershingle", "terms"),
)

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A call of the command, and which of its outputs are promised.

    Attributes
    ----------
    corpus, name : str
        What it is recorded under.
    command : str
        The command.
    inputs : tuple of str
        Arguments that are no options.
    options : mapping
        By their names; True for one without a value, a list for one that is given several times.
    files : mapping
        Options that name outputs, and the names of these.
    prints : str
        What standard output is recorded as; empty where it is not.
    stdin : str
        The file that standard input is.
    needs : tuple of str
        What other cases make for it: see ``PREPARATIONS``.
    same_as : str
        A case of the same corpus whose tables of duplicates and pairs are the same to the last byte.
    digits : int, optional
        How many digits of numbers are recorded, where not all of them are ours.
    """

    corpus: str
    name: str
    command: str
    inputs: tuple[str, ...] = ()
    options: Options = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    prints: str = ""
    stdin: str = ""
    needs: tuple[str, ...] = ()
    same_as: str = ""
    digits: int | None = None

    def arguments(self, outputs: str) -> list[str]:
        """Return the arguments, with outputs in a folder."""
        named = dict(self.options) | {option: f"{outputs}/{name}" for option, name in self.files.items()}
        return command_line(self.command, *self.inputs, **named)


#: The commands of functions that have another name.
_COMMANDS = {"neighbors": "similar", "query": "similar"}


def command_line(command: str, *inputs: str, **options: Any) -> list[str]:
    """Return the arguments of a command, its options by their names."""
    words = [*_COMMANDS.get(command, command).split(), *inputs]
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            flag, _, field = flag_of(option).partition(" ")
            words += [flag] if one is True else [flag, f"{field}={one}" if field else str(one)]
    return words


SIMILAR_IDS, DIFFERENT_IDS = ("nw-0001", "nw-0004"), ("nw-0001", "nw-0005")
_MODEL = "learned.neardup"
_VECTOR = "jaccard(words:4), containment(words:4), containment(words:1), length_ratio, numbers, names"
_TRAINED: dict[str, Any] = {"labels": "labels.csv", "only": "labeller=anna", "vector": _VECTOR}
#: What cases need besides the files of their corpus: the command that makes it, there.
PREPARATIONS = {
    _MODEL: command_line("train", "newswire.jsonl", **_TRAINED, kernel="linear", output=_MODEL),
    "archive.index": command_line("index build", "parts/a.jsonl", threshold=0.5, output="archive.index"),
    "labels.db": command_line("label", "newswire.jsonl", store="labels.db", import_="labels.csv"),
}

_DEDUP = {"output": "kept.jsonl", "duplicates": "duplicates.csv", "summary": "summary.json"}


def _dedup(corpus: str, name: str, *inputs: str, files: Options | None = None, **more: Any) -> Case:
    given = {key: more.pop(key) for key in ("stdin", "needs", "same_as", "digits", "prints") if key in more}
    inputs = inputs or (f"{corpus}.jsonl",)
    return Case(corpus, f"dedup {name}", "dedup", inputs, more, _DEDUP if files is None else files, **given)


def _pairs(corpus: str, name: str, *inputs: str, **more: Any) -> Case:
    given = {key: more.pop(key) for key in ("stdin", "needs", "same_as", "digits") if key in more}
    inputs = inputs or (f"{corpus}.jsonl",)
    return Case(corpus, f"pairs {name}", "pairs", inputs, more, {"output": "pairs.csv"}, **given)


#: Recipes by their options: each is run by dedup and by pairs on the sample.
CHOICES: dict[str, dict[str, Any]] = {
    **{f"recipe {name}": {"recipe": name} for name in RECIPES},
    **{f"threshold {value}": {"threshold": value} for value in (0.3, 0.5, 0.7, 0.95, 1)},
    "overlap": {"measure": "overlap", "threshold": 0.7},
    "dice": {"measure": "dice", "threshold": 0.8},
    "cosine": {"measure": "cosine", "threshold": 0.8},
    "containment": {"measure": "containment", "threshold": 0.9},
    "containment with a floor": {"measure": "containment", "threshold": 0.9, "jaccard_floor": 0.3},
    "extended jaccard": {"measure": "extended_jaccard", "threshold": 0.8},
    "euclidean": {"measure": "euclidean", "threshold": 4},
    "words:1": {"features": "words:1", "threshold": 0.8},
    "words:3 multiset": {"features": "words:3:multiset", "threshold": 0.6},
    "qgrams": {"features": "qgrams:3", "threshold": 0.6},
    "qgrams positional": {"features": "qgrams:3:positional", "threshold": 0.6},
    "skips": {"features": "skips:3:1", "threshold": 0.6},
    "clauses": {"features": "clauses", "threshold": 0.5},
    "sentence words": {"features": "sentence_words:3", "threshold": 0.6},
    "spots": {"features": "spots:1:2", "stop_words": "en,de,es", "threshold": 0.44},
    "spots with antecedents": {"features": "spots:2:2", "stop_words": "en", "antecedents": "is the", "threshold": 0.4},
    "windows": {"features": "windows:30:16", "threshold": 0.5},
    "checksum md5": {"features": "checksum:md5", "normalize": "whitespace", "threshold": 1},
    "stop words": {"features": "words:2", "stop_words": "en,de,fr,es", "threshold": 0.6},
    **{f"normalize {name}": {"normalize": name, "threshold": 0.7} for name in ("words", "whitespace", "strip")},
    "normalize compact": {"normalize": "compact", "features": "qgrams:5", "threshold": 0.7},
    "clip df": {"features": "words:2", "clip": "df:2:0.5", "threshold": 0.7},
    "clip idf": {"features": "words:1", "clip": "idf:0.2:0.8", "threshold": 0.7},
    "tf": {"features": "words:1", "weights": "tf", "measure": "cosine", "threshold": 0.9},
    "idf weighted jaccard": {"features": "words:2", "weights": "idf", "measure": "weighted_jaccard", "threshold": 0.6},
    "idf dice": {"features": "words:3", "weights": "idf", "measure": "dice", "threshold": 0.7},
    "tf-idf cosine": {"features": "words:1", "weights": "tfidf", "measure": "cosine", "threshold": 0.8},
    "tf-idf euclidean": {"features": "words:1", "weights": "tfidf", "measure": "euclidean", "threshold": 20},
    "terms by sentence": {
        "features": "terms:8:sentence", "stop_words": "en", "weights": "tfidf", "measure": "cosine", "threshold": 0.8
    },
    "minhash": {"signature": "minhash:64", "measure": "overlap", "threshold": 0.7},
    "minhash of another seed": {"signature": "minhash:64", "measure": "overlap", "threshold": 0.7, "sketch_seed": 7},
    "sketch": {"signature": "sketch:32", "measure": "overlap", "threshold": 0.6},
    "super shingles": {"signature": "supershingle:4:8", "measure": "overlap", "threshold": 0.5},
    "i-match": {"features": "words:1", "clip": "idf:0.1:0.9", "signature": "imatch:3", "threshold": 1},
    "simhash 6": {"recipe": "simhash", "threshold": 6},
    "simhash of q-grams": {
        "features": "qgrams:4", "weights": "tf", "signature": "simhash", "measure": "hamming", "threshold": 4
    },
    "lsh": {"search": "lsh", "recall": 0.9, "threshold": 0.6},
    "lsh of few minima": {"search": "lsh", "recall": 0.8, "num_perm": 32, "threshold": 0.6, "sketch_seed": 5},
    "second step edit": {"threshold": 0.5, "second_step": "edit >= 0.9"},
    "second step by words": {"features": "qgrams:4", "threshold": 0.5, "second_step": "jaccard(words:2) >= 0.6"},
}  # fmt: skip
KEEPS: dict[str, dict[str, Any]] = {
    **{order: {"keep": order, "threshold": 0.6} for order in ("first", "longest", "shortest")},
    **{order: {"keep": order, "time_column": "timestamp", "threshold": 0.6} for order in ("newest", "oldest")},
}


def _sample() -> Iterator[Case]:
    for name, choices in CHOICES.items():
        yield _dedup("newswire", name, **choices)
        yield _pairs("newswire", name, **choices)
    for order, choices in KEEPS.items():
        yield _dedup("newswire", f"keep {order}", **choices)


def _run_variants() -> Iterator[Case]:
    """One recipe in every way to read, to cut and to run it: the answer is that of the plain run."""
    plain = "newswire.jsonl"
    same: dict[str, Any] = {"same_as": "dedup recipe default"}
    for ending in ("jsonl.gz", "jsonl.zst", "csv", "tsv", "parquet", "feather", "arrow"):
        files = _DEDUP | {"output": f"kept.{ending}"}
        yield _dedup("newswire", f"of {ending}", f"newswire.{ending}", files=files, **same)
    yield _dedup("newswire", "of a folder", "parts", **same)
    yield _dedup("newswire", "of a glob", "parts/*.jsonl", **same)
    yield _dedup("newswire", "of three files", "parts/a.jsonl", "parts/b.jsonl", "parts/c.jsonl", **same)
    yield _dedup("newswire", "of stdin", "-", stdin=plain, **same)
    for threads in (1, 2, 3):
        yield _dedup("newswire", f"threads {threads}", plain, threads=threads, **same)
    yield _dedup("newswire", "with a budget", plain, memory="100MB", **same)
    yield _dedup("newswire", "by columns that are named", plain, text_column="text", id_column="id", **same)
    yield _dedup("newswire", "by row numbers", plain, id_column="")
    delivery = ("parts/b.jsonl", "parts/c.jsonl")
    yield _dedup("newswire", "against files", *delivery, against=["parts/a.jsonl"], threshold=0.5)
    yield _dedup("newswire", "against an index", *delivery, against=["archive.index"], needs=("archive.index",))
    yield _dedup("newswire", "by titles and texts", plain, text_column="title,text", threshold=0.5)
    yield _dedup("newswire", "without what is known", plain, ignore="parts/a.jsonl", threshold=0.5)
    yield _dedup("newswire", "by titles", plain, text_column="title", features="words:2", threshold=0.6)
    for ending in ("csv", "tsv", "parquet", "arrow", "feather", "csv.gz"):
        yield _dedup("newswire", f"to {ending}", plain, files={"output": f"kept.{ending}"})
    for ending in ("tsv", "jsonl", "parquet", "arrow", "feather", "csv.gz"):
        files = {"output": "kept.jsonl", "duplicates": f"duplicates.{ending}"}
        yield _dedup("newswire", f"duplicates to {ending}", plain, files=files)
    yield _dedup("newswire", "to stdout", plain, files={}, output="-", prints="kept.jsonl")
    yield _dedup("newswire", "counted alone", plain, files={}, dry_run=True, json=True, prints="summary.json")
    for ending in ("tsv", "jsonl", "parquet", "arrow"):
        yield Case("newswire", f"pairs to {ending}", "pairs", (plain,), {}, {"output": f"pairs.{ending}"})
    yield Case("newswire", "pairs printed", "pairs", (plain,), {"print": True}, prints="pairs.tsv")
    yield Case("newswire", "pairs printed as JSON", "pairs", (plain,), {"json": True}, prints="pairs.jsonl")


def _questions() -> Iterator[Case]:
    """Asking about single documents."""
    plain = "newswire.jsonl"
    explained: dict[str, dict[str, Any]] = {
        **{f"recipe {name}": {"recipe": name} for name in RECIPES},
        "containment with a floor": CHOICES["containment with a floor"],
        "idf": CHOICES["idf weighted jaccard"],
        "clip df": CHOICES["clip df"],
        "minhash": CHOICES["minhash"],
        "second step edit": CHOICES["second step edit"],
        "multiset": CHOICES["words:3 multiset"],
    }
    for name, choices in explained.items():
        for what, two in (("a pair", SIMILAR_IDS), ("no pair", DIFFERENT_IDS)):
            if what == "a pair" or name in ("recipe default", "recipe ddd", "second step edit"):
                options = choices | {"json": True}
                yield Case("newswire", f"explain {what}, {name}", "explain", (plain, *two), options, prints="why.json")
    queries: dict[str, dict[str, Any]] = {
        "like": {"document": "like.txt", "threshold": 0.6},
        "same": {"document": "same.txt"},
        "unlike": {"document": "unlike.txt"},
        "nearest": {"document": "like.txt", "k": 5},
        **{f"like, {name}": {"document": "like.txt", "recipe": name} for name in ("ddd", "lsh", "terms")},
        "like, simhash": {"document": "like.txt", "recipe": "simhash", "threshold": 16},
        "second step": {"document": "like.txt", "threshold": 0.5, "second_step": "edit >= 0.8"},
    }
    for name, options in queries.items():
        yield Case("newswire", f"query {name}", "query", (plain,), options, {"output": "found.csv"})
    options = {"document": "-", "json": True, "threshold": 0.6}
    yield Case("newswire", "query stdin", "query", (plain,), options, prints="found.jsonl", stdin="like.txt")
    near: dict[str, dict[str, Any]] = {
        "of all": {},
        "of two": {"of": ["nw-0001", "nw-0100"], "k": 5},
        "of the first": {"first": 20, "k": 2},
        **{f"{name}": {"recipe": name} for name in ("ddd", "jaccard", "simhash", "terms")},
        "containment": {"measure": "containment", "threshold": 0.9},
        "idf": CHOICES["idf weighted jaccard"],
        "clip": CHOICES["clip df"],
    }
    for name, options in near.items():
        yield Case("newswire", f"neighbors {name}", "neighbors", (plain,), options, {"output": "neighbors.csv"})
    yield Case("newswire", "neighbors printed", "neighbors", (plain,), {"first": 20, "json": True}, prints="near.jsonl")


def _studies() -> Iterator[Case]:
    """Comparing recipes, looking at a corpus, labels, audits."""
    plain, steps = "newswire.jsonl", ".3:.9:.2"
    by_family = {"clusters": "family", "thresholds": steps, "json": True}
    recipes = "default,ddd,jaccard,spotsigs,simhash,terms"
    compared: dict[str, dict[str, Any]] = {
        "on families": by_family | {"recipes": recipes},
        "on labels": {"labels": "labels.csv", "only": "labeller=anna", "recipes": "default,ddd", "thresholds": steps},
        "at all thresholds": by_family | {"recipes": "default", "all_rows": True, "thresholds": ".5,.7,.9"},
    }
    for name, options in compared.items():
        options = options | {"json": True}
        yield Case("newswire", f"compare {name}", "compare", (plain,), options, prints="compared.json")
    options = {"clusters": "family", "thresholds": steps, "recipes": recipes}
    yield Case("newswire", "compare to a table", "compare", (plain,), options, {"output": "compared.csv"})
    looked: dict[str, dict[str, Any]] = {
        "all": {},
        "a part": {"sample": 60, "seed": 3, "lengths": "1-3", "qgrams": "3-4", "examples": 1},
        "a recipe besides": {"lengths": "5", "recipe": ["ddd", "terms"], "examples": 0},
        "multisets": {"lengths": "1,3", "multiset": True, "no_curve": True, "examples": 0},
        "from a half": {"lengths": "5", "lowest": 0.5, "examples": 2},
    }
    for name, options in looked.items():
        options = options | {"json": True}
        yield Case("newswire", f"explore {name}", "explore", (plain,), options, prints="explored.json")
    store = {"store": "labels.db"}
    needs: dict[str, Any] = {"needs": ("labels.db",)}
    yield Case("newswire", "label export", "label", (plain,), store, {"export": "labels.csv"}, **needs)
    each = store | {"each": True}
    yield Case("newswire", "label export each", "label", (plain,), each, {"export": "each.csv"}, **needs)
    agreed = store | {"agreement": True, "json": True}
    yield Case("newswire", "label agreement", "label", (plain,), agreed, prints="agreement.json", **needs)
    drawn: dict[str, dict[str, Any]] = {
        "": {"sample": 40},
        " of another seed": {"sample": 40, "sample_seed": 2},
        " above another candidate rule": {"sample": 30, "candidate_rule": "jaccard(words:3) >= 0.2", "recipe": "ddd"},
        " of simhash": {"sample": 30, "recipe": "simhash"},
    }
    for name, options in drawn.items():
        yield Case("newswire", f"audit sample{name}", "audit", (plain,), options, {"sample_to": "sample.csv"})
        options = options | {"labels": "families.csv", "ignore_unknown": True, "json": True}
        yield Case("newswire", f"audit{name}", "audit", (plain,), options, prints="audit.json")
    yield Case("newswire", "recipe list", "recipe list", (), {"json": True}, prints="recipes.json")


_REPLAYED: dict[str, dict[str, Any]] = {
    "a day": {"window": "24h"},
    "six hours, ddd": {"window": "6h", "recipe": "ddd"},
    "by the hour": {"window": "12h", "window_by": "hour", "recipe": "jaccard"},
    "fifty documents": {"window": "50 documents"},
    "endless": {"window": "endless", "threshold": 0.6},
    "against everything": {"window": "24h", "against": "everything", "threshold": 0.6},
    "as listed": {"window": "endless", "as_listed": True, "recipe": "cornell"},
    "simhash": {"window": "24h", "recipe": "simhash"},
    "lsh": {"window": "24h", "recipe": "lsh"},
    "imatch": {"window": "24h", "recipe": "imatch"},
    "second step": {"window": "24h", "threshold": 0.5, "second_step": "edit >= 0.8"},
}


def _flows() -> Iterator[Case]:
    both = {"output": "verdicts.csv", "originals": "originals.jsonl"}
    for name, options in _REPLAYED.items():
        yield Case("newswire", f"replay {name}", "replay", ("newswire.jsonl",), options, both)
    files = {"output": "verdicts.parquet", "originals": "originals.parquet"}
    yield Case("newswire", "replay to Parquet", "replay", ("newswire.parquet",), {"window": "24h"}, files)


def _learned() -> Iterator[Case]:
    """What was trained on the labels of the sample, and all commands that take it."""
    plain = "newswire.jsonl"
    files = {"output": _MODEL, "summary": "trained.json"}
    for kernel in ("linear", "rbf"):
        options = _TRAINED | {"kernel": kernel}
        yield Case("newswire", f"train {kernel}", "train", (plain,), options, files, digits=LEARNED_DIGITS)
    used: Any = {"needs": (_MODEL,), "digits": LEARNED_DIGITS}
    model: dict[str, Any] = {"classifier": _MODEL}
    yield _dedup("newswire", "learned", **model, **used)
    yield _dedup("newswire", "learned, precise", **model, precision=0.99, **used)
    yield _dedup("newswire", "learned, keep longest", **model, keep="longest", **used)
    yield _pairs("newswire", "learned", **model, **used)
    for what, two in (("a pair", SIMILAR_IDS), ("no pair", DIFFERENT_IDS)):
        options = model | {"json": True}
        yield Case("newswire", f"explain {what}, learned", "explain", (plain, *two), options, prints="why.json", **used)
    query = model | {"document": "like.txt"}
    yield Case("newswire", "query learned", "query", (plain,), query, {"output": "found.csv"}, **used)
    flow = model | {"window": "24h"}
    yield Case("newswire", "replay learned", "replay", (plain,), flow, {"output": "verdicts.csv"}, **used)
    options = model | {"clusters": "family", "recipes": "default", "thresholds": ".5,.7,.9", "json": True}
    yield Case("newswire", "compare learned", "compare", (plain,), options, prints="compared.json", **used)
    options = model | {"sample": 40, "labels": "families.csv", "ignore_unknown": True, "json": True}
    yield Case("newswire", "audit learned", "audit", (plain,), options, prints="audit.json", **used)


#: Recipes whose pairs are recorded on every corpus, each of another engine or kind of features.
_WIDE = ("ddd", "default", "jaccard", "simhash", "terms")


def _other_corpora() -> Iterator[Case]:
    """Every recipe on every other corpus."""
    for corpus in PARTS:
        for name in RECIPES:
            files = {"duplicates": "duplicates.csv", "summary": "summary.json"}
            files |= {"output": "kept.jsonl"} if name == "default" else {}
            more = {} if name == "default" else {"output": "-"}
            yield _dedup(corpus, f"recipe {name}", files=files, recipe=name, **more)
        for name in _WIDE:
            yield _pairs(corpus, f"recipe {name}", recipe=name)
    for name in RECIPES:
        yield _dedup("cornell", f"recipe {name}", "docs", recipe=name)
    for content in ("html", "tags"):
        alike: dict[str, Any] = {"content": content, "features": "words:1", "threshold": 0.25}
        yield _dedup("html", f"content {content}", "pages", **alike)
        near = {"content": content, "features": "words:2"}
        yield Case("html", f"neighbors content {content}", "neighbors", ("pages",), near, {"output": "neighbors.csv"})
    yield _pairs("html", "main content", "pages", html=True, features="words:1", threshold=0.2)
    yield _pairs("html", "all that a page is", "pages", recipe="ddd")


def _labelled() -> Iterator[Case]:
    """Corpora with labels, times or columns that the sample has not."""
    steps: dict[str, Any] = {"recipes": "default,ddd,cornell", "thresholds": ".3:.9:.2", "json": True}
    labelled: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("clough", "clough.jsonl", {"label_column": "level", "positive": 2}),
        ("cornell", "docs", {"label_column": "label", "complete": True}),
        ("msrp", "msrp.jsonl", {"only": "split=train", "ignore_unknown": True}),
    )
    for corpus, inputs, options in labelled:
        options = options | steps | {"labels": "pairs.csv"}
        yield Case(corpus, "compare on labels", "compare", (inputs,), options, prints="compared.json")
    for order in ("newest", "oldest"):
        yield _dedup("peps", f"keep {order}", keep=order, time_column="timestamp", threshold=0.6)
    yield _dedup("peps", "keep the highest version", keep="version", threshold=0.6)
    yield _dedup("peps", "keep the lowest version", keep="version:lowest", threshold=0.6)
    yield _dedup("adzuna", "keep longest", keep="longest", recipe="jaccard")
    yield _dedup("saudinews", "stop words", features="words:2", stop_words="ar", threshold=0.6)
    for name, options in (("a day", {"window": "24h"}), ("six hours, ddd", {"window": "6h", "recipe": "ddd"})):
        verdicts = {"output": "verdicts.csv"}
        yield Case("reuters", f"replay {name}", "replay", ("reuters.jsonl",), options, verdicts)
        yield Case("saudinews", f"replay {name}", "replay", ("saudinews.jsonl",), options, verdicts)
    yield _dedup("reuters", "whole", "whole.jsonl.gz")
    narrow: dict[str, Any] = {"threads": 1, "memory": "10MB"}
    yield _dedup("reuters", "whole, with a budget", "whole.jsonl.gz", **narrow, same_as="dedup whole")
    looked: dict[str, Any] = {"sample": 150, "lengths": "3-5", "examples": 0, "json": True}
    yield Case("reuters", "explore", "explore", ("reuters.jsonl",), looked, prints="explored.json")
    yield Case("adzuna", "explore", "explore", ("adzuna.jsonl",), looked, prints="explored.json")
    nearest = {"first": 50, "k": 4}
    for corpus in ("adzuna", "saudinews", "r8"):
        files = {"output": "neighbors.csv"}
        yield Case(corpus, "neighbors", "neighbors", (f"{corpus}.jsonl",), nearest, files)


CASES = (
    *(*_sample(), *_run_variants(), *_questions(), *_studies(), *_flows(), *_learned()),
    *(*_other_corpora(), *_labelled()),
)
