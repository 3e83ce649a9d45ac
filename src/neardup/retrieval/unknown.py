"""What to say of an id that no document has: which ids are close to it."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.errors import option

#: As many ids are remembered to name the close ones when one is not found.
_REMEMBERED = 1000


def remember(alike: list[str], names: Sequence[str], missing: Sequence[str]) -> None:
    """Add to alike some of the names that may be meant: the first ones, and those that begin or end alike."""
    for name in names:
        if len(alike) >= _REMEMBERED:
            return
        begins = any(name[: len(m) // 2 + 1].casefold() == m[: len(m) // 2 + 1].casefold() for m in missing)
        if len(alike) < 3 or begins or any(m in name or name in m for m in missing):
            alike.append(name)


def unknown_id(wanted: str, alike: Sequence[str], documents: int, *, by_row: bool) -> str:
    """Return the sentence about an id that is not found.

    Parameters
    ----------
    wanted : str
        The id.
    alike : sequence of str
        What ``remember`` kept.
    documents : int
        How many documents there are.
    by_row : bool
        Whether documents have row numbers in place of ids.
    """
    import difflib

    if not documents:
        return f"no document has the id {wanted!r}: there is no document at all"
    if by_row:
        return (
            f"no document has the row number {wanted!r}: there are no ids, so name documents by row, counted "
            f"from 0, or name a column with {option('--id-column')}"
        )
    likeness = {name: difflib.SequenceMatcher(None, wanted, name).ratio() for name in alike}
    close = sorted((name for name in alike if likeness[name] >= 0.5), key=lambda name: (-likeness[name], name))[:3]
    if close:
        return f"no document has the id {wanted!r}; close ones are {', '.join(map(repr, close))}"
    return f"no document has the id {wanted!r}; ids look like {', '.join(map(repr, alike[:3]))}"
