"""The report of a watcher, made by a process of its own: ``python -m neardup.watch.report`` with a task on stdin.

It reads the store beside its writer and the folders that items go to, and gives way to whoever needs the processor.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from neardup.errors import NeardupError, RecipeError, command_running

if TYPE_CHECKING:
    from neardup.decision.decision import Decision
    from neardup.recipe import Recipe
    from neardup.reporting.model import Report
    from neardup.sidebyside.shown import Shown
    from neardup.watch.stored import StoredFlow

#: By how much it gives way.
_NICE = 10
#: Bytes of the folders of originals and duplicates that are read.
_READ = 64_000_000


def command() -> list[str]:
    """Return what starts the process."""
    # Not from the current folder, whatever lies there.
    return [sys.executable, "-P", "-m", "neardup.watch.report"]


def main() -> int:
    """Write the report that stdin asks for; print what it holds as JSON."""
    with suppress(OSError):
        os.nice(_NICE)
    task = json.loads(sys.stdin.buffer.read())
    try:
        with command_running():
            found = write_report(task)
    except (NeardupError, OSError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def write_report(task: Mapping[str, Any]) -> dict[str, Any]:
    """Write the page of a watcher's store: it is there as a whole or not at all.

    Parameters
    ----------
    task : mapping
        What ``watch.task.task_of`` returns.

    Returns
    -------
    dict
        What was written: file, bytes, items and duplicates.

    Raises
    ------
    NeardupError
        If the store cannot be read, or the page not be written.
    """
    from neardup.documents.output import OutputFile
    from neardup.flow.reader import StoreReader
    from neardup.reporting.page import report_page
    from neardup.watch.delivered import Delivered
    from neardup.watch.stored import StoredFlow

    recipe, decision = _judged_by(task)
    delivered = Delivered(task["originals"], task["duplicates"], task["content"], _READ)
    with StoreReader(task["store"]) as reader:
        stored = StoredFlow(reader, delivered, recipe.content, task["items"])
        report = _report_of(task, stored, reader.counts(), recipe, decision)
    data = report_page(report).encode() + b"\n"
    with OutputFile(task["output"]) as file:
        file.write(data)
    return {
        "file": task["output"],
        "bytes": len(data),
        "items": len(stored.flow) - stored.flow.before,
        "duplicates": len(stored.flow.duplicates),
    }


def _judged_by(task: Mapping[str, Any]) -> tuple[Recipe, Decision | None]:
    """Return the recipe of the watcher, and its decision, if the file still holds the same."""
    from neardup.decision.choosing import decision_of
    from neardup.recipe.recipe import parse

    recipe = parse(task["recipe"], "the watcher's recipe")
    if task["decision"] is None:
        return recipe, None
    decision = decision_of(task["decision"])
    if task["precision"] is not None:
        decision = decision.at_precision(task["precision"])
    if decision.recipe.fingerprint != recipe.fingerprint:
        raise RecipeError(f"{task['decision']} holds another decision than the watcher began with; bring it back")
    return recipe, decision


def _report_of(
    task: Mapping[str, Any],
    stored: StoredFlow,
    counts: Mapping[str, int],
    recipe: Recipe,
    decision: Decision | None,
) -> Report:
    from neardup.reporting.extent import Extent
    from neardup.reporting.flow import Sources, counts_in_words
    from neardup.reporting.flowcharts import by_lag, by_source, by_time
    from neardup.reporting.flowed import About, flow_report
    from neardup.watch.stored import flags_of

    flow = stored.flow
    reported = len(flow) - flow.before

    def evidence(place: int) -> str:
        verdict = stored.row(place).verdict
        return verdict.evidence if verdict.g is not None else counts_in_words(verdict.counts, recipe)

    def matching(texts: Mapping[int, Shown]) -> set[tuple[int, int]] | None:
        return _matching(stored, texts, recipe, decision)

    arrived = {
        "arrived since the store began": f"{counts['arrived']:,}: {counts['originals']:,} originals and "
        f"{counts['duplicates']:,} duplicates",
        "flags since then": flags_of(counts),
    }
    notes = []
    if reported < counts["arrived"]:
        notes.append(
            f"This page is about the latest {reported:,} items; {counts['arrived']:,} arrived since the store began. "
            "More of them with --report-items."
        )
    notes.append(
        "Texts are those of items that the window still holds, and of others that still lie where they were put; what "
        "has left is named without its text."
    )
    about = About(
        title="What was stopped, and why",
        command=task["command"],
        inputs=[task["inbox"]],
        recipe=recipe,
        decision=decision,
        window=task["window"],
        everything=task["against"] == "everything",
        gone="The text is not there any more: it has left the window, or was taken from where it was put.",
        quarantined=[(reason, count) for reason, count in task["quarantined"]],
        stages=task["stages"],
        facts={name: value for name, value in (task["facts"] | arrived).items() if value},
        notes=notes,
        curves=[*by_time(flow), *by_lag(flow), *by_source(flow)],
    )
    sources = Sources(texts=stored.texts, words=stored.words, evidence=evidence, matching=matching)
    return flow_report(flow, about, sources, Extent(**task["extent"]))


def _matching(
    stored: StoredFlow, texts: Mapping[int, Shown], recipe: Recipe, decision: Decision | None
) -> set[tuple[int, int]] | None:
    """Return which of some items match each other; None where that depends on what is not at hand."""
    # Frequencies of a collection, or pages of which only the contents are here.
    if recipe.needs_statistics or (decision is not None and recipe.content):
        return None
    from neardup.flow.document import Document
    from neardup.flow.together import matching
    from neardup.times import utc

    titles = stored.titles(list(texts)) if decision is not None and decision.vector.needs_titles else {}
    documents = {
        place: Document(
            str(place),
            shown.text,
            utc(round(stored.row(place).verdict.time * 1e6)),
            title=titles.get(place, shown.title),
        )
        for place, shown in texts.items()
    }
    # The texts are what is compared of the items already.
    return matching(documents, recipe.changed(content="") if decision is None else recipe, decision)


if __name__ == "__main__":
    sys.exit(main())
