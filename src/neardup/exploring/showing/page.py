"""The page of an exploration: what is advised, the histograms behind it, pairs to read, what the corpus is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.exploring import telling
from neardup.exploring.showing import contents, similarities, whole
from neardup.exploring.showing.reading import reading
from neardup.pages.frame import check_drawing, page
from neardup.pages.parts import (
    Chart,
    Html,
    command,
    escaped,
    facts,
    fold,
    joined,
    notes,
    opening,
    section,
    table,
    text,
    tiles,
)

if TYPE_CHECKING:
    from neardup.exploring.exploration import Exploration

#: So many inputs are named.
_INPUTS = 4


def exploration_page(exploration: Exploration) -> str:
    """Return the page of an exploration.

    Raises
    ------
    OutputError
        If the packages that draw are not installed.
    """
    check_drawing("a page")
    charts: list[Chart] = []
    body = [
        opening("How similar is this corpus to itself?", _basis(exploration)),
        _headline(exploration),
        _advice(exploration),
        notes(exploration.notes, title="What was not looked at, or not as asked"),
        similarities.histograms(exploration, charts),
        similarities.cutoffs(exploration, charts),
        similarities.weights(exploration, charts),
        whole.thresholds(exploration, charts),
        whole.growing(exploration, charts),
        reading(exploration),
        contents.contents(exploration.makeup, charts),
        _how_to_read(exploration),
        _about(exploration),
    ]
    named = exploration.inputs[0] if len(exploration.inputs) == 1 else "A corpus"
    title = f"{named} explored - neardup"
    return page(title, "\n".join(filter(None, body)), charts, scripts=("search.js",), styles=("explore.css",))


def _basis(exploration: Exploration) -> Html:
    return joined([_inputs(exploration), f": {telling.compared(exploration.sample)}."])


def _inputs(exploration: Exploration) -> Html:
    """Return the names of the first inputs, and how many more there are."""
    if not exploration.inputs:
        return Html("documents in memory")
    more = len(exploration.inputs) - _INPUTS
    named = joined(map(text, exploration.inputs[:_INPUTS]), ", ")
    return joined([named, f" and {more:,} more" if more > 0 else ""])


def _headline(exploration: Exploration) -> Html:
    sample, advice, copies = exploration.sample, exploration.advice, exploration.makeup.copies
    drawn = "of all documents" if len(sample) == sample.documents else f"of {len(sample):,} drawn at random"
    rows = [
        (f"{sample.documents:,}", "documents", f"{telling.sized(sample.bytes)} of text"),
        (f"{sample.pairs:,}", "pairs compared", drawn),
        (advice.features, "advised", f"{advice.measure} from {advice.threshold:g} on"),
    ]
    point = telling.at_advised(exploration)
    if point is not None:
        families = "" if point.families is None else f" in {telling.counted(point.families, 'family', 'families')}"
        part = telling.share(point.dropped, sample.documents)
        rows.append((part, "would be dropped", f"{telling.counted(point.dropped, 'document')}{families}"))
    rows.append((f"{copies.copies:,}", "exact copies", f"of {telling.counted(copies.groups, 'text')}"))
    return tiles(rows)


def _advice(exploration: Exploration) -> Html:
    advice = exploration.advice
    others = table(["instead", "why not"], [[text(name), text(why)] for name, why in advice.alternatives], left=2)
    return section(
        "advice",
        "Where to begin",
        Html(
            f'<p class="begin">Begin with <strong>{escaped(telling.advised_rule(advice))}</strong>. '
            f"{escaped(telling.would_drop(exploration))}</p>"
        ),
        advice.reason,
        command(telling.advised_command(advice)),
        fold("Why not others", others) if advice.alternatives else "",
    )


def _how_to_read(exploration: Exploration) -> Html:
    sample = exploration.sample
    said: dict[str, object] = {
        "similarity": "Of two documents as sets of n-grams, by the measure that is named. Jaccard: n-grams that both "
        "have, of all that either has. 1: the same n-grams; 0: none in common.",
        "words:4, qgrams:5": "Every run of four words, of five characters. A longer one is shared by chance less "
        "often, and one changed word breaks more of them.",
        "logarithmic": "Each line up the axis is ten times more pairs. Nearly all pairs of a corpus are unrelated, so "
        "on a plain axis the related ones could not be seen.",
        "unrelated, alike": "Unrelated pairs are the bulk; what the most similar one of the whole corpus is expected "
        "to have is read off how fast their number falls. Alike pairs are the closest of the sample. The wider the gap "
        "between what the ones reach and nine in ten of the others have, the better a view parts them.",
        "valley": "The stretch behind the unrelated pairs in which pairs are sparse, with the related ones above it. "
        "Where it is not clear (a question mark), pairs thin out slowly there, or too few lie above it: no cut is "
        "sharp.",
        "exact": "Nothing here is estimated by sketches. Figures of the sample are exact for the sample; those of the "
        "whole corpus are what neardup dedup does with that threshold.",
        "the cutoffs": "A share of pairs, not of documents: 6 pairs in a million are few, but a corpus of a million "
        "documents has three million of them.",
        "the whole corpus": "Dropped documents each match a kept one. Their number can fall where the threshold does, "
        "for one that goes no longer keeps others out.",
        "the advice": "A place to begin. Read the pairs around it, then label some: no threshold is right for all.",
    }
    if len(sample) == sample.documents:
        said["exact"] = "Nothing here is estimated: all pairs of all documents were compared."
    return section("how-to-read", "How to read this", facts(said))


def _about(exploration: Exploration) -> Html:
    sample = exploration.sample
    known: dict[str, object] = {
        "input": _inputs(exploration),
        "documents": f"{sample.documents:,}, {telling.sized(sample.bytes)} of text",
        "sample": f"{telling.compared(sample)}; seed {sample.seed}",
        "compared": text(", ".join(dict.fromkeys(view.name for view in exploration.views))),
        "neardup": exploration.version,
    }
    costs: dict[str, list[float]] = {}
    for stage in exploration.stages:
        wall, cpu, _ = costs.get(stage["name"], (0.0, 0.0, 0.0))
        costs[stage["name"]] = [wall + stage["wall_s"], cpu + stage["cpu_s"], stage["peak_memory_bytes"]]
    rows = [[name, f"{wall:.2f}", f"{cpu:.2f}", telling.sized(peak)] for name, (wall, cpu, peak) in costs.items()]
    times = table(["stage", "seconds", "of processors", "memory up to then"], rows, caption="Time and memory")
    return section("about", "What was looked at, and how long it took", facts(known), times if rows else "")
