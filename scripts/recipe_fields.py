"""Write docs/recipe-fields.md from the metadata of the fields of a recipe."""

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


def format_row(name: str, field: Option) -> str:
    """Return the row of a field."""
    flag = f"--{name.replace('_', '-')} {field.values}" if field.common else f"--set {name}={field.values}"
    bounds = f" From {field.bounds[0]:,} to {field.bounds[1]:,}." if field.bounds else ""
    default = f"`{field.default}`" if field.default != "" else ""
    flag = flag.replace("|", "\\|")
    return f"| {field.group} | `{name}` | {default} | `{flag}` | {field.help} {field.detail}{bounds} |".replace(
        "  ", " "
    )


def format_page() -> str:
    """Return the page."""
    rows = (format_row(name, field) for name, field in OPTIONS.items())
    return (
        _HEAD + "| step | field | default | option | what it does |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(format_page(), "utf-8")
