"""The options that choose a recipe: its name, and one option for each of its fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.numbers import parse_number, whole_number
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.recipe import Recipe

_PANEL = "What matches"

#: Options that are no fields of ``Recipe`` by these names.
_NO_FIELDS = ("recipe", "html")

Html = Annotated[
    bool,
    typer.Option("--html", rich_help_panel=_PANEL, help="The texts are web pages: compare their main content alone."),
]
Content = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_PANEL,
        help="What of the texts is compared: html, the main content of pages (short: --html); tags, all of their text.",
    ),
]


def chosen_content(html: bool, content: str | None) -> str | None:
    """Return what ``--html`` and ``--content`` say together; None where neither is given.

    Raises
    ------
    RecipeError
        If they contradict each other.
    """
    if html and content not in (None, "html"):
        raise RecipeError(f"--html is short for --content html, but --content is {content!r}: give one of the two")
    return "html" if html else content


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions:
    """A recipe, and the fields of it that take another value: one option for each field of ``Recipe``; ``--html``."""

    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", rich_help_panel=_PANEL, help="A recipe's name or TOML file; 'default' by default."
        ),
    ] = None
    html: Html = False
    content: Content = None
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_PANEL,
            help="Pairs at or above it match; in (0, 1], such as 0.8. For a distance, those at or below it.",
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_PANEL,
            help="On sets jaccard, overlap, dice, cosine, containment, extended_jaccard, euclidean; on weights "
            "weighted_jaccard, dice, cosine, extended_jaccard, euclidean; on simhash hamming; on texts semantic (in "
            "Python, with an encoder), and edit as a second step.",
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:N",
            rich_help_panel=_PANEL,
            help="words:5, qgrams:4[:positional], skips:3:1, clauses, sentence_words:3, spots:1:2, "
            "terms:64[:sentence][:positional], windows:50:8, checksum:sha1; :multiset behind it counts repeats.",
        ),
    ] = None
    normalize: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_PANEL, help="words, whitespace, compact, strip or raw."),
    ] = None
    stop_words: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGES",
            rich_help_panel=_PANEL,
            help="Leave out stop words of en, or en,de and so on; none for none.",
        ),
    ] = None
    antecedents: Annotated[
        str | None,
        typer.Option(metavar="WORDS", rich_help_panel=_PANEL, help="Where spot signatures begin, such as 'is the'."),
    ] = None
    clip: Annotated[
        str | None,
        typer.Option(
            metavar="BY:LOW:HIGH",
            rich_help_panel=_PANEL,
            help="Drop features by how many documents hold them: df:2:0.5 (counts, or shares with a point) or "
            "idf:0.2:0.8.",
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_PANEL, help="Weigh features by tf, idf or tfidf."),
    ] = None
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:N",
            rich_help_panel=_PANEL,
            help="Compare simhash, minhash:128, sketch:25, supershingle:6:14 or imatch:5 in place of the features.",
        ),
    ] = None
    jaccard_floor: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_PANEL,
            help="Jaccard that a pair must reach besides; for containment.",
        ),
    ] = None

    search: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_PANEL, help="exact finds every pair; lsh a stated share of them."
        ),
    ] = None
    recall: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_PANEL, help="For lsh: the share at the threshold, as 0.99."),
    ] = None
    num_perm: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_PANEL, help="For lsh: the most minima of a document."),
    ] = None
    seed: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_PANEL, help="Of sketches and bands."),
    ] = None
    then: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_PANEL,
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
        from neardup.recipe.choosing import chosen

        changes: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NO_FIELDS}
        changes["content"] = chosen_content(self.html, self.content)
        changes = {name: value for name, value in (changes | others).items() if value is not None}
        for name in ("threshold", "jaccard_floor", "recall"):
            if name in changes:
                changes[name] = parse_number(changes[name], "--" + name.replace("_", "-"))
        for name in ("num_perm", "seed"):
            if name in changes:
                changes[name] = whole_number(changes[name], "--" + name.replace("_", "-"), 0)
        return chosen(self.recipe or "default", changes)

    @property
    def given(self) -> dict[str, str]:
        """What was asked for, by the names of fields, the recipe among them."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "html"}
        values["content"] = chosen_content(self.html, self.content)
        return {name: value for name, value in values.items() if value is not None}
