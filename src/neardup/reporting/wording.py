"""What a report calls things: of a run over a corpus, and of a flow, whose documents are items that come and go on."""

from __future__ import annotations

from typing import NamedTuple


class Wording(NamedTuple):
    """Words and sentences of a report that depend on what it reports.

    Attributes
    ----------
    documents, document : str
        What came in.
    kept, gone : str
        Documents that stay, and those that do not, as a list has them.
    stays, goes : str
        What one does that stays, and one that does not.
    keeper : str
        What a document that goes has in its place.
    run : str
        What was done.
    kept_means : str
        Why documents stay.
    tiles : (str, str)
        What is said of how many stay, and of how many do not.
    sections : (str, str)
        The headings of the tables of reasons and of documents that go.
    alike, moved, points : str
        The titles of the charts of similarities and of thresholds, and what a point of the latter is.
    families : str
        What families are, and how their members are shown.
    pairs : str
        Which pairs the chart of them counts.
    """

    documents: str = "documents"
    document: str = "document"
    kept: str = "kept"
    gone: str = "dropped"
    stays: str = "stays"
    goes: str = "goes"
    keeper: str = "keeper"
    run: str = "run"
    kept_means: str = "no document that stays matches them"
    tiles: tuple[str, str] = ("stayed", "went")
    sections: tuple[str, str] = ("What stayed, and what went", "Dropped documents")
    alike: str = "How alike dropped documents and their keepers are"
    moved: str = "Dropped documents by threshold"
    points: str = "each point is what a run at that threshold drops; the line is the slider's threshold"
    families: str = (
        "Documents that matching pairs connect, the largest family first. Each dropped one is shown by what it has "
        "otherwise than its keeper: struck out what only the keeper has, underlined what only the document has."
    )
    pairs: str = "pairs of documents that differ in what is compared"


#: Of a run over a corpus.
BATCH = Wording()
#: Of a flow.
FLOW = Wording(
    documents="items",
    document="item",
    kept="passed",
    gone="duplicates",
    stays="passes",
    goes="is stopped",
    keeper="original",
    run="flow",
    kept_means="the window held nothing that they match",
    tiles=("passed", "were stopped"),
    sections=("What passed, and what was stopped", "Duplicates"),
    alike="How alike duplicates and what they repeat are",
    moved="Duplicates by threshold",
    points="duplicates that each threshold leaves, as the text above says; the line is the slider's threshold",
    families=(
        "Items that go back to one original, the largest family first. Each duplicate is shown by what it has "
        "otherwise than what it repeats: struck out what only that one has, underlined what only the duplicate has."
    ),
    pairs="pairs of items with a similarity below 1",
)
