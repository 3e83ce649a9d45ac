"""An extension of the reference: parameters that a docstring describes together get their own types and defaults."""

from __future__ import annotations

import re
from typing import Any

import griffe

_GROUP = re.compile(r"^(?P<names>[*\w]+(?:, [*\w]+)+)(?P<type> : [^\n]*)?\n(?P<text>(?:[ ]+[^\n]*\n?)+)", re.MULTILINE)


class SeparateParameters(griffe.Extension):
    """Without it, all parameters of a group show the type and the default of the first."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Divide the groups in the docstring of a function."""
        if func.docstring is not None:
            func.docstring.value = _GROUP.sub(_divide, func.docstring.value)


def _divide(group: re.Match[str]) -> str:
    names = group["names"].split(", ")
    return "".join(f"{name}{group['type'] or ''}\n{group['text'].rstrip()}\n" for name in names)
