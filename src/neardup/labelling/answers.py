"""What a labeller may say of a pair, and how often two labellers say the same."""

from __future__ import annotations

import re

from neardup.errors import RecipeError

SAME, DIFFERENT, UNSURE = "same", "different", "unsure"
#: What is kept as a label; of these the first two are a class.
ANSWERS = (SAME, DIFFERENT, UNSURE)
#: No answer: the pair is put aside, and asked again when nothing else is left.
SKIP = "skip"
#: The longest name of a labeller.
_LONGEST_NAME = 60

#: How answers are written in files, besides their own names. An empty cell is none: nobody has answered.
WRITTEN = {
    **{name: name for name in ANSWERS},
    **dict.fromkeys(("1", "1.0", "yes", "duplicate", "true"), SAME),
    **dict.fromkeys(("0", "0.0", "no", "other", "false"), DIFFERENT),
    "?": UNSURE,
}


def checked_name(name: str) -> str:
    """Return a labeller's name without spaces around it.

    Raises
    ------
    RecipeError
        If it is empty, long, or has characters that cannot be seen.
    """
    found = re.sub(r"\s+", " ", name).strip()
    if not found or len(found) > _LONGEST_NAME or not found.isprintable():
        raise RecipeError(
            f"labeller {name[:_LONGEST_NAME]!r} is no name; give one of 1 to {_LONGEST_NAME} characters, all visible"
        )
    return found
