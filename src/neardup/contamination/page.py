"""The page of a contamination check: shares, and each contaminated item beside the training text that contains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neardup.contamination.contamination import Contamination, Finding
from neardup.documents.column_paths import column_words
from neardup.documents.output import OutputFile, check_place
from neardup.pages import html
from neardup.pages.diff import ShownDocument
from neardup.pages.diff_view import side_by_side
from neardup.pages.html import Html, text
from neardup.pages.numbers import format_count, format_share, format_size
from neardup.pages.page import page
from neardup.version import __version__

_TITLE = "Contamination"
#: The most items shown with their texts, and those that are open at first.
_MAX_ITEMS, _OPEN_ITEMS = 200, 3


def write_page(
    found: Contamination, output: str, *, force: bool = False, fail_over: float | None = None, typed: str = ""
) -> None:
    """Write the page of a contamination check; ``fail_over`` is the largest allowed share, ``typed`` the command.

    Raises ``OutputError`` if it cannot be written there.
    """
    check_place(output, (), force, remote=True)
    with OutputFile(output) as file:
        file.write(_build_page(found, fail_over, typed).encode())


def _build_page(found: Contamination, fail_over: float | None, typed: str) -> str:
    summary = found.summary
    rule = (
        f"An item is contaminated if one training text has at least {summary['at_least']:.4g} of its "
        f"{summary['ngrams']}-grams of words."
    )
    by_item: dict[int, Finding] = {}
    # An item with several columns shows the most contaminated one, of equals the longest.
    order = sorted(found.findings.values(), key=lambda finding: (-finding.containment, -finding.grams, finding.passage))
    for finding in order:
        by_item.setdefault(int(found.passages.item[finding.passage]), finding)
    findings = sorted(by_item.values(), key=lambda finding: (-finding.containment, finding.passage))
    body = [
        html.opening(
            _TITLE,
            html.fill("{} in {}", html.named_inputs(found.test_inputs), html.named_inputs(found.inputs)),
            rule,
            text(f"Test set: {column_words(found.test_columns)}. Training: {column_words(found.train_columns)}."),
        ),
        html.tiles(list(_tiles(found, fail_over))),
        html.notes(list(_notes(found)), title="Not searched"),
        html.section("columns", "By column", _columns(found)),
        html.section("items", "Contaminated items", *_items(found, findings), intro=_intro(findings)),
        html.section("reading", "How to read this", _glossary()),
        html.closing(*([html.command(typed)] if typed else []), f"neardup {__version__}"),
    ]
    return page(f"{_TITLE} - neardup", "\n".join(filter(None, body)), scripts=["search.js"])


def _tiles(found: Contamination, fail_over: float | None) -> Iterator[tuple[str, str, str]]:
    has_columns = len(found.items.columns) > 1
    yield (
        f"{len(found.contaminated):,}",
        "contaminated items",
        f"of {found.searched_items:,} that were searched" + (", in a column or in all together" if has_columns else ""),
    )
    allowed = ""
    if fail_over is not None:
        allowed = f"{'more than' if found.share > fail_over else 'within'} the {format_share(fail_over, 1)}"
    yield format_share(len(found.contaminated), found.searched_items), "of the items", allowed and f"{allowed} allowed"
    yield (
        f"{found.contaminated_documents:,}",
        "training texts contain an item",
        f"of {found.documents:,} texts; {format_size(found.bytes_read)} were read",
    )


def _notes(found: Contamination) -> Iterator[str]:
    short = len(found.items.names) - found.searched_items
    if short:
        yield f"{format_count(short, 'item')} with too few words: short texts occur everywhere and would prove nothing."
    for name, rejected in (("test set", found.items.rejected), ("training texts", found.rejected)):
        if rejected:
            reasons = ", ".join(f"{reason}: {number:,}" for reason, number in sorted(rejected.items()))
            yield f"Rejected records of the {name}: {reasons}."


def _columns(found: Contamination) -> Html:
    rows = []
    for name, counts in found.summary["columns"].items():
        share = format_share(counts["contaminated"], counts["searched"])
        drawn = "" if counts["share"] is None else html.bar(counts["share"], share)
        rows.append([text(name), counts["searched"], counts["contaminated"], drawn, counts["too_short"]])
    return html.table(["column", "searched", "contaminated", "share", "too few words"], rows)


def _intro(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No training text contains an item."
    return (
        "Each item is shown beside the training text with most of its n-grams. Differences are "
        "marked; case, punctuation and line breaks do not count."
        + (f" The first {_MAX_ITEMS:,} of {len(findings):,} are shown." if len(findings) > _MAX_ITEMS else "")
    )


def _items(found: Contamination, findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield html.search_field("items", label="Find an item", noun="items")
    passages, items = found.passages, found.items
    for at, finding in enumerate(findings[:_MAX_ITEMS]):
        name = str(items.names[int(passages.item[finding.passage])])
        column = items.columns[int(passages.column[finding.passage])]
        heading = (
            f"{finding.shared:,} of {format_count(finding.grams, 'n-gram')} "
            f"({format_share(finding.shared, finding.grams)})"
        )
        item = ShownDocument(f"item {name}, {column}", "", passages.text(finding.passage))
        training_text = ShownDocument(
            f"training text {finding.document}{'' if finding.is_whole else ', in part'}", "", finding.excerpt
        )
        yield html.fold(
            text(f"{name} · {column} · {format_share(finding.shared, finding.grams)} · in {finding.document}"),
            side_by_side(item, training_text, head=heading),
            is_open=at < _OPEN_ITEMS,
            search_text=f"{name} {column} {finding.document}",
        )


def _glossary() -> Html:
    return html.facts(
        {
            "containment": "Of the distinct n-grams of an item, the share that occurs in one training text. An item "
            "with fewer words than an n-gram is one n-gram of all its words: it is found completely or not at all.",
            "all": "With several columns, their texts one after the other, such as a prompt with its answer.",
            "share": "Contaminated items among those that were searched.",
        }
    )
