"""Writes the table of a recipe's fields, in docs/recipe-fields.md, from what the fields say of themselves."""

from __future__ import annotations

from pathlib import Path

from neardup.recipe.recipe import OPTIONS, Option

PAGE = Path(__file__).resolve().parent.parent / "docs" / "recipe-fields.md"
_HEAD = """# Fields of a recipe

A recipe has one field for each choice. In Python they are keywords (`nd.dedup(texts, threshold=0.7)`), in a TOML recipe
they are keys. On the command line the common ones have an option of their own; the others are set with
`--set FIELD=VALUE`, which may be given several times.
`neardup recipe show NAME` prints all of them for a recipe.

"""


def row(name: str, known: Option) -> str:
    """Return the row of a field."""
    flag = f"--{name.replace('_', '-')} {known.values}" if known.common else f"--set {name}={known.values}"
    bounds = f" From {known.bounds[0]:,} to {known.bounds[1]:,}." if known.bounds else ""
    default = f"`{known.default}`" if known.default != "" else ""
    flag = flag.replace("|", "\\|")
    return f"| {known.group} | `{name}` | {default} | `{flag}` | {known.help} {known.detail}{bounds} |".replace(
        "  ", " "
    )


def table() -> str:
    """Return the page."""
    rows = (row(name, known) for name, known in OPTIONS.items())
    return (
        _HEAD + "| step | field | default | option | what it does |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(table(), "utf-8")
