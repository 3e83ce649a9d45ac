"""The options that commands share: a command that takes such a record takes an option for each field."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_type_hints

import typer

from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.documents import Corpus
    from neardup.recipe import Recipe

_MATCH, _READ, _RUN = "What matches", "Reading", "Running"
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<prefix>[KMGT]?)(?P<binary>I?)B?", re.IGNORECASE)
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Parquet, JSON lines, CSV, TSV or Arrow, plain, .gz or .zst; folders and globs of them or of "
        "text files; URIs; - for stdin.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions:
    """A recipe, and the fields of it that take another value: one option for each field of ``Recipe``."""

    recipe: Annotated[
        str,
        typer.Option(metavar="NAME|FILE", rich_help_panel=_MATCH, help="A recipe's name or TOML file."),
    ] = "default"
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_MATCH,
            help="Pairs at or above it match; in (0, 1], such as 0.8. For a distance, those at or below it.",
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_MATCH,
            help="On sets jaccard, overlap, dice, cosine, containment, extended_jaccard, euclidean; on weights "
            "weighted_jaccard, dice, cosine, extended_jaccard, euclidean; on simhash hamming.",
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:N",
            rich_help_panel=_MATCH,
            help="words:5, qgrams:4[:positional], skips:3:1, clauses, sentence_words:3, spots:1:2, "
            "terms:64[:sentence][:positional], windows:50:8, checksum:sha1; :multiset behind it counts repeats.",
        ),
    ] = None
    normalize: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_MATCH, help="words, whitespace, compact, strip or raw."),
    ] = None
    stop_words: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGES",
            rich_help_panel=_MATCH,
            help="Leave out stop words of en, or en,de and so on; none for none.",
        ),
    ] = None
    antecedents: Annotated[
        str | None,
        typer.Option(metavar="WORDS", rich_help_panel=_MATCH, help="Where spot signatures begin, such as 'is the'."),
    ] = None
    clip: Annotated[
        str | None,
        typer.Option(
            metavar="BY:LOW:HIGH",
            rich_help_panel=_MATCH,
            help="Drop features by how many documents hold them: df:2:0.5 (counts, or shares with a point) or "
            "idf:0.2:0.8.",
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_MATCH, help="Weigh features by tf, idf or tfidf."),
    ] = None
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:N",
            rich_help_panel=_MATCH,
            help="Compare simhash, minhash:128, sketch:25, supershingle:6:14 or imatch:5 in place of the features.",
        ),
    ] = None
    jaccard_floor: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_MATCH,
            help="Jaccard that a pair must reach besides; for containment.",
        ),
    ] = None

    search: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_MATCH, help="exact finds every pair; lsh a stated share of them."
        ),
    ] = None
    recall: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_MATCH, help="For lsh: the share at the threshold, as 0.99."),
    ] = None
    num_perm: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_MATCH, help="For lsh: the most minima of a document."),
    ] = None
    seed: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_MATCH, help="Of sketches and bands."),
    ] = None
    then: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_MATCH,
            help="A second, more accurate measure for pairs that pass: 'edit >= 0.9', 'jaccard(words:2) >= 0.6'.",
        ),
    ] = None

    def chosen(self, **others: str | None) -> Recipe:
        """Return the recipe with the given values in it.

        Raises
        ------
        RecipeError
            If there is no such recipe or a value is refused.
        """
        from neardup.recipe import load

        changes: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recipe"}
        changes = {name: value for name, value in (changes | others).items() if value is not None}
        for name in ("threshold", "jaccard_floor", "recall"):
            if name in changes:
                changes[name] = parse_number(changes[name], "--" + name.replace("_", "-"))
        for name in ("num_perm", "seed"):
            if name in changes:
                changes[name] = parse_whole(changes[name], "--" + name.replace("_", "-"))
        return load(self.recipe).changed(**changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How documents are read."""

    text_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_READ, help="Column of the texts; found by itself when obvious."),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_READ,
            help="Column of the ids; found by itself when obvious, else row numbers from 0.",
        ),
    ] = None
    max_document: Annotated[
        str | None,
        typer.Option(metavar="SIZE", rich_help_panel=_READ, help="Set larger texts aside, such as 10MB."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", rich_help_panel=_READ, help="Stop at the first broken record.")
    ] = False
    quarantine: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=_READ, help="Write broken records there, as JSON lines."),
    ] = None

    def open(self, inputs: list[str], *, order_column: str | None = None, write: bool = True) -> Corpus:
        """Open the inputs; without ``write``, nothing goes to the quarantine file."""
        from neardup.documents import open_corpus

        return open_corpus(
            inputs,
            text_column=self.text_column,
            id_column=self.id_column,
            order_column=order_column,
            strict=self.strict,
            quarantine=self.quarantine if write else None,
            max_document=parse_size(self.max_document, "--max-document"),
        )


class Limits(TypedDict):
    """What ``pipeline.run`` takes of ``RunOptions``."""

    threads: int | None
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run may use."""

    threads: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_RUN, help="Threads; all processors by default."),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            rich_help_panel=_RUN,
            help="Memory to stay within, such as 2GB; the rest goes to disk.",
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """Threads and memory for ``pipeline.run``."""
        threads = None
        if self.threads is not None:
            if not self.threads.isascii() or not self.threads.isdigit() or int(self.threads) < 1:
                raise RecipeError(f"--threads {self.threads!r} is not a whole number from 1 on")
            threads = int(self.threads)
        return {"threads": threads, "memory": parse_size(self.memory, "--memory")}


def parse_number(text: str, option: str) -> float:
    """Return a number from the command line.

    Raises
    ------
    RecipeError
        If it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise RecipeError(f"{option} {text!r} is not a number; write it like 0.8") from None


def parse_whole(text: str, option: str) -> int:
    """Return a whole number from the command line.

    Raises
    ------
    RecipeError
        If it is none.
    """
    if not text.isascii() or not text.isdigit():
        raise RecipeError(f"{option} {text!r} is not a whole number from 0 on")
    return int(text)


def parse_size(text: str | None, option: str) -> int | None:
    """Return the bytes that a text like ``512MB`` (10**6), ``1.5GiB`` (2**30) or ``9`` means; None for None.

    Raises
    ------
    RecipeError
        If it is no size, or none of at least one byte.
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    bare = match is not None and match["binary"] and not match["prefix"]
    size = 0
    if match is not None and not bare:
        base = 1024 if match["binary"] else 1000
        size = int(float(match["number"]) * base ** _POWER[match["prefix"].upper()])
    if size < 1:
        raise RecipeError(f"{option} {text!r} is not a size; write it like 512MB, 2GB or 1.5GiB")
    return size


def check_outputs(tables: dict[str, str | None], summary: str | None, inputs: list[str], *, force: bool) -> None:
    """Refuse, before the work starts, outputs that cannot or must not be written, or two of one name.

    Parameters
    ----------
    tables : dict of str to str or None
        Names of tables by the option that gave them.
    summary : str or None
        A name for JSON.
    """
    import os

    from neardup.documents import check_output

    if summary is not None and not summary.endswith(".json"):
        raise OutputError(f"{summary} does not end in .json, but a summary is JSON: name it so")
    quarantine = tables.get("--quarantine")
    if quarantine is not None and not re.search(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", quarantine):
        raise OutputError(f"{quarantine} does not end in .jsonl, but a quarantine is JSON lines: name it so")
    taken: dict[str, str] = {}
    for option, name in (tables | {"--summary": summary}).items():
        if name is None:
            continue
        check_output(name, inputs, force)
        place = name if name == "-" else os.path.realpath(name)
        if place in taken:
            raise OutputError(f"{name} is given for {taken[place]} and for {option}: name two files")
        taken[place] = option


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the records that it takes."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        records[name] = kind
        field_hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=field_hints[field.name],
                )
            )

    def call(**values: Any) -> None:
        made = {name: kind(**{f.name: values.pop(f.name) for f in fields(kind)}) for name, kind in records.items()}
        command(**values, **made)

    call.__doc__, call.__name__ = command.__doc__, command.__name__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
