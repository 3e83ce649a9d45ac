"""How much of a flow a report lists; the rest is counted, and the page says so."""

from __future__ import annotations

from dataclasses import dataclass, fields

from neardup.errors import RecipeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of a flow a report lists.

    Attributes
    ----------
    families : int
        So many of the largest families, and half as many of the others, drawn at random. Raising it makes pages larger.
    cases : int
        So many pairs just above the threshold.
    rows : int
        So many duplicates in the list to search: the latest ones.
    seed : int
        Of what is drawn at random; another one draws others.

    Raises
    ------
    RecipeError
        If a number is below 0.
    """

    families: int = 50
    cases: int = 10
    rows: int = 2000
    seed: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0:
                raise RecipeError(f"{field.name} {value} of a report is below 0; give 0 or more")
