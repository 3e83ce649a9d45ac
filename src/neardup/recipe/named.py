"""Load recipes by name or from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, TypedDict

from neardup.errors import InputError, RecipeError, option, quoted, suggestion
from neardup.files import read_file
from neardup.recipe.recipe import OPTIONS, Recipe, command_words, parse

#: Methods that need training on labelled pairs before they are a recipe, by the names of their vectors.
LEARNED = ("terms-svm", "terms-svm-sentence")
#: The most bytes of a recipe file: a million characters of ``ignore``, each escaped.
_LONGEST_FILE = 16_000_000
#: A recipe, its name, or its TOML file.
AnyRecipe = Recipe | str | os.PathLike[str]


def names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    files = _definition_folder().iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _definition_folder() -> Traversable:
    return resources.files("neardup.recipe") / "definitions"


def recipe_sources(name: str) -> str:
    """Return the sources of a named recipe as BibTeX.

    Raises ``RecipeError`` if no recipe of the package has this name.
    """
    if name not in names():
        raise RecipeError(f"recipe {name!r} has no sources here; give one of {', '.join(names())}")
    text = (_definition_folder() / "sources.bib").read_text("utf-8")
    entries = re.findall(r"^@.*?^}$", text, re.DOTALL | re.MULTILINE)
    return "\n\n".join(entry for entry in entries if re.search(rf"keywords .*\b{name}\b", entry))


def load_recipe(name_or_file: str | os.PathLike[str]) -> Recipe:
    """Return a recipe by its name, or from a TOML file.

    Raises
    ------
    RecipeError
        If there is neither a recipe nor a file of that name, or the file is invalid.
    """
    if not isinstance(name_or_file, str):
        return _load_file(os.fspath(name_or_file))
    if name_or_file in LEARNED and not os.path.isfile(name_or_file):
        raise RecipeError(
            f"recipe {name_or_file!r} is learned from labelled pairs: "
            + option(
                f"neardup train INPUT --labels pairs.csv --vector {name_or_file} -o FILE makes it, and --classifier "
                "FILE takes it",
                f"nd.train(data, labels, vector={name_or_file!r}).classifier makes it, and classifier= takes it",
            )
        )
    if name_or_file in names():
        definition = _definition_folder() / f"{name_or_file}.toml"
        return parse(definition.read_text("utf-8"), f"recipe {name_or_file}")
    if not os.path.isfile(name_or_file):
        similar_name = suggestion(name_or_file, names())
        raise RecipeError(f"recipe {name_or_file!r} is neither a file nor one of {', '.join(names())}{similar_name}")
    return _load_file(name_or_file)


def resolve_recipe(recipe: AnyRecipe) -> Recipe:
    """Return a recipe, given itself, its name or its TOML file.

    Raises ``RecipeError`` if it cannot be found or is invalid.
    """
    if not isinstance(recipe, Recipe | str | os.PathLike):
        raise RecipeError(f"recipe {recipe!r} is no recipe; give a Recipe, one of {', '.join(names())}, or a TOML file")
    return recipe if isinstance(recipe, Recipe) else load_recipe(recipe)


def _load_file(name: str) -> Recipe:
    try:
        data = read_file(name, "give a TOML file", largest=_LONGEST_FILE)
        return parse(data.decode().replace("\r\n", "\n"), f"recipe {name}")
    except UnicodeDecodeError:
        classifier = option("--classifier", "classifier=...")
        raise RecipeError(
            f"recipe {name!r} is not a text file; give a TOML file, or a classifier with {classifier}"
        ) from None
    except InputError as error:
        raise RecipeError(f"recipe {error}") from None


def apply_choices(recipe: AnyRecipe, choices: Mapping[str, Any]) -> Recipe:
    """Return a recipe with other values for some of its fields; None keeps a field.

    Raises ``RecipeError`` if the recipe cannot be found, a field does not exist, or a value is invalid or would have no
    effect.
    """
    for name in choices:
        if name not in OPTIONS:
            hint = suggestion(name, [*OPTIONS, *_OTHER_OPTIONS]) or f"; a recipe's fields are {', '.join(OPTIONS)}"
            raise RecipeError(f"{quoted(name)} is neither a field of a recipe nor another option{hint}")
    resolved = resolve_recipe(recipe).changed(**{name: value for name, value in choices.items() if value is not None})
    if resolved.search != "lsh":
        refuse_fields(choices, ("recall", "num_perm"), "is for search 'lsh'; choose that search, or leave it out")
        signature = resolved.parsed_signature
        if signature is None or not signature.minima:
            refuse_fields(
                choices, ("seed",), "is for min-hash signatures and search 'lsh'; choose one of them, or leave it out"
            )
    return resolved


def pick_recipe(index: Recipe | None, recipe: AnyRecipe | None, choices: Mapping[str, Any]) -> AnyRecipe:
    """Return the requested recipe; without one, that of the index used as reference, else the default."""
    if recipe is None and index is not None and not set(choices) - {"keep"}:
        return index
    return "default" if recipe is None else recipe


def refuse_fields(choices: Mapping[str, Any], names: Iterable[str], reason: str) -> None:
    """Check that no field was chosen that would have no effect.

    ``choices`` has fields and their values, None for a field that was not chosen. Raises ``RecipeError`` for the first
    of ``names`` that was chosen, with the reason and the way out.
    """
    for name in names:
        if choices.get(name) is not None:
            choice = option(" ".join(command_words(name, choices[name])), f"{name} {choices[name]}")
            raise RecipeError(f"{choice} {reason}")


#: Options of the functions that take fields of a recipe as well, for the suggestion after a slip of the keyboard.
_OTHER_OPTIONS = (
    *("recipe", "classifier", "force_domain", "against", "text_column", "id_column", "time_column", "title_column"),
    *("threads", "memory", "pairs_per_document", "margin", "within", "prefer", "drop_by", "drop_share", "encoder"),
    *("progress", "strict", "quarantine", "ids", "allow_torn", "window", "window_by", "sample", "labels", "first"),
    *("path", "keep_texts", "candidate_rule", "label_column", "positive", "ignore_unknown", "columns", "ngrams"),
)


class Choices(TypedDict, total=False):
    """Fields of ``Recipe`` that override those of a recipe."""

    content: str
    normalize: str
    features: str
    stop_words: str
    antecedents: str
    ignore: str
    clip: str
    weights: str
    signature: str
    measure: str
    threshold: float
    jaccard_floor: float
    search: str
    recall: float
    num_perm: int
    seed: int
    second_step: str
    keep: str


#: What a flow takes for its recipe without another choice: 4-grams, at the threshold whose F1 is the highest against
#: the labels of docs/flow.md (0.87).
FLOW_RECIPE, FLOW_THRESHOLD = "ddd", 0.8


def apply_flow_choices(recipe: AnyRecipe | None, choices: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a flow: without a recipe and features of its own, that of `FLOW_RECIPE` at its threshold."""
    if recipe is not None:
        return apply_choices(recipe, choices)
    if "features" in choices or "signature" in choices:
        return apply_choices("default", choices)
    return apply_choices(FLOW_RECIPE, {"threshold": FLOW_THRESHOLD} | dict(choices))
