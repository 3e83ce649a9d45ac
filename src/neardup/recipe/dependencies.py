"""What the answer of a recipe depends on, as short texts by name: its choices, and what they are carried out with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from types import MappingProxyType
from typing import Any

from neardup.recipe.recipe import CHAIN_VERSION, Recipe
from neardup.recipe.word_lists import word_lists
from neardup.text.normalize import tables_digest

CHOICES = "choices"
CHAIN = "chain"
TABLES = "Unicode tables"
WORDS = "stop words"
CONTENT = "trafilatura"

#: What is said of something that was made with the same choices where something else was another.
_SAID = {
    CHAIN: "by a neardup that makes other features (chain of steps {before}, here {now})",
    TABLES: "by a Python whose Unicode tables differ ({before}, here {now})",
    WORDS: "with other stop words (lists {before}, here {now})",
    CONTENT: "with another trafilatura ({before}, here {now})",
}


def dependencies_of(*recipes: Recipe, tables: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return what the answer of recipes, used together, depends on.

    Parameters
    ----------
    *recipes : Recipe
        At least one.
    tables : mapping of str to str
        Digests of further tables, by name.

    Returns
    -------
    dict of str to str
        A digest of the choices that matter; the version of the chain; digests of the tables of the normalizers and of
        the words in the lists; the version of the library that finds the content of pages. What none of the recipes
        uses is left out.

    Raises
    ------
    RecipeError
        If a language has no stop words.
    """
    made = [*recipes, *(step for step in map(_of_second_step, recipes) if step is not None)]
    found = {CHOICES: _digest([_choices(one) for one in recipes]), CHAIN: str(CHAIN_VERSION)}
    tables = {**{one.normalize: tables_digest(one.normalize) for one in made}, **tables}
    if any(tables.values()):
        found[TABLES] = ", ".join(f"{name} {digest}" for name, digest in sorted(tables.items()) if digest)
    lists = [[sorted(words) for words in word_lists(one)] for one in made]
    if any(any(words) for words in lists):
        found[WORDS] = _digest(lists)
    if any(one.content == "html" for one in recipes):
        found[CONTENT] = _version_of(CONTENT)
    return found


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return by what or with what something was made that this installation does not have.

    It is empty where all is equal, and where the choices differ: then it was another recipe.

    Parameters
    ----------
    before, now : mapping of str to str
        Dependencies, as they were and as they are.
    """
    if now and not before:
        return f"by an older neardup that makes other features (chain of steps {now[CHAIN]} here)"
    if before.get(CHOICES) != now.get(CHOICES):
        return ""
    for name, said in _SAID.items():
        if before.get(name) != now.get(name):
            return said.format(before=before.get(name, "none"), now=now.get(name, "none"))
    return ""


def _choices(recipe: Recipe) -> dict[str, Any]:
    """Return the choices that can change the answer."""
    # Which words are in the lists is told by the words, by whatever languages they are named.
    without = {"name", "description", "stop_words", "antecedents"}
    signature = recipe.parsed_signature
    if recipe.search == "exact":
        without |= {"recall", "num_perm"}
        if signature is None or not signature.minima:
            without.add("seed")
    # A field that is empty is as good as none, so that recipes older than a field keep their fingerprint.
    choices = {name: value for name, value in asdict(recipe).items() if name not in without and value != ""}
    for name in {"threshold", "jaccard_floor", "recall"} & set(choices):
        choices[name] = float(choices[name])
    return choices


def _digest(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _of_second_step(recipe: Recipe) -> Recipe | None:
    step = recipe.second_step
    if step is None or not step.features or step.measure == "learned":
        return None
    return Recipe(features=step.features)


def _version_of(library: str) -> str:
    """Return the version of a library; empty where it is not installed."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
