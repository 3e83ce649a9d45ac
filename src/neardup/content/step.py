"""The first step of the chain, ``content``: what of a document's text is compared."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

#: Gives what of a text is compared.
Method = Callable[[str], str]


def _main_text() -> Method:
    from neardup.content.html import check_extraction, main_text

    check_extraction()
    return main_text


def _all_text() -> Method:
    from neardup.content.tags import strip_tags

    return strip_tags


#: What loads each method, by the names of ``neardup.recipe.recipe.CONTENTS``.
_METHODS: dict[str, Callable[[], Method]] = {"html": _main_text, "tags": _all_text}


def method_of(name: str) -> Method:
    """Return what makes the content of a text.

    Parameters
    ----------
    name : str
        The ``content`` of a recipe, not empty.

    Raises
    ------
    NeardupError
        If it needs a library that is not installed.
    """
    return _METHODS[name]()


def content_of(text: str, name: str) -> str:
    """Return what of one text is compared.

    Parameters
    ----------
    text : str
        Any text.
    name : str
        The ``content`` of a recipe; empty for the text as it is.
    """
    return _whole(method_of(name)(text)) if name else text


def contents(texts: pa.LargeStringArray, method: Method) -> pa.LargeStringArray:
    """Return what of each text is compared.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray
        Valid UTF-8, no nulls.
    method : callable
        From ``method_of``.
    """
    return pa.array([_whole(method(text)) for text in texts.to_pylist()], pa.large_string())


def _whole(text: str) -> str:
    """Return a text that UTF-8 can write: a reference such as ``&#xD800;`` may stand for half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
