"""The report of a flow, replayed or watched: what arrived, what was stopped, and why."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from neardup import __version__
from neardup.decision.decision import Decision
from neardup.errors import option
from neardup.pages.parts import Chart
from neardup.recipe import Recipe
from neardup.reporting.extent import Extent
from neardup.reporting.families import DROPPED_LISTED
from neardup.reporting.flow import Flow, Integers, Sources
from neardup.reporting.flowsweep import Around, Swept, swept
from neardup.reporting.model import COPY, EQUAL, NEAR, Case, Report, Row, binned
from neardup.reporting.stopped import Chosen, Picked, Teller, chosen_of
from neardup.reporting.sweep import similarity_at
from neardup.reporting.telling import value_at
from neardup.reporting.wording import FLOW
from neardup.search.around import Scale, has_threshold, scale_of

#: Words of each text of a pair near the threshold, and of others.
_WORDS, _WORDS_ELSEWHERE = 300, 160
_UNKNOWN = (
    "Of pairs below the threshold nothing is known: a flow looks for a match, and of an item without one it does not "
    "find out what came nearest. neardup replay of the same items looks for them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a report says of a flow besides what arrived.

    Attributes
    ----------
    title, command : str
        The heading, and what was typed.
    inputs : sequence of str
        Where items came from.
    recipe : Recipe
        What a match is.
    decision : Decision or None
        In place of the recipe.
    window : str
        How far back the flow looks.
    everything : bool
        Whether items are compared with duplicates as well, and not with originals alone.
    gone : str
        What is said in the place of a text that is not there any more.
    quarantined : sequence of (str, int)
        What was set aside, by reason.
    stages : sequence of dict
        As ``Clock.stages`` has them.
    facts : mapping of str to str
        More to say.
    notes : sequence of str
        What is sampled or cut besides what the report itself cuts.
    curves : sequence of Chart
        More charts.
    """

    title: str
    command: str
    inputs: Sequence[str]
    recipe: Recipe
    decision: Decision | None
    window: str
    everything: bool
    gone: str
    quarantined: Sequence[tuple[str, int]] = ()
    stages: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    curves: Sequence[Chart] = ()


def flow_report(
    flow: Flow,
    about: About,
    sources: Sources,
    extent: Extent,
    around: Around | None = None,
) -> Report:
    """Return the report of a flow.

    Parameters
    ----------
    flow : Flow
        What arrived.
    about : About
        What else there is to say.
    sources : Sources
        Texts, and why two match.
    extent : Extent
        How much is listed.
    around : Around, optional
        The pairs that come near the threshold, where they are known.
    """
    scale = scale_of(about.recipe, about.decision)
    known = around or Around.nothing(scale.threshold, _UNKNOWN)
    chosen = chosen_of(flow, known, extent, everything=about.everything)
    teller = Teller(flow, sources.texts(chosen.places(flow)), sources, chosen.families, about.gone)
    moved = Swept(None, np.zeros(0), None)
    if _threshold(about, scale) is not None and has_threshold(about.recipe):
        # Of bands that are made for one threshold nothing follows for another one.
        whole = about.everything and about.recipe.search != "lsh"
        moved = swept(flow, scale, known, everything=about.everything, whole=whole)
    duplicates = flow.duplicates
    groups, reported = flow.groups, len(flow) - flow.before
    number = {int(root): at + 1 for at, root in enumerate(groups.roots.tolist())}
    alive = np.unique(groups.root[duplicates])
    sizes = groups.sizes[np.isin(groups.roots, alive)]
    recipe = about.recipe

    def cases(pairs: Sequence[Picked], words: int) -> list[Case]:
        return [
            teller.case(pair, _head(scale, pair), words, moved.matching(pair.similarity, matches=pair.matches))
            for pair in pairs
        ]

    def goes(place: int) -> str:
        return moved.goes(flow, place)

    return Report(
        title=about.title,
        documents=reported,
        kept=reported - len(duplicates),
        command=about.command,
        inputs=about.inputs,
        recipe=recipe.to_toml(),
        in_words=recipe.in_words(),
        fingerprint=recipe.fingerprint,
        versions={"neardup": __version__, "Python": platform.python_version()},
        reasons=_reasons(flow),
        quarantined=about.quarantined,
        similarity=binned(flow.similarity[duplicates]),
        similarity_of=_similarity_of(recipe, scale),
        threshold=_threshold(about, scale),
        families=[teller.family(listed, goes) for listed in chosen.families],
        families_total=len(alive),
        largest_family=int(sizes.max(initial=0)),
        cases_above=cases(chosen.above, _WORDS),
        cases_elsewhere=cases(chosen.elsewhere, _WORDS_ELSEWHERE),
        cases_below=cases(chosen.below, _WORDS),
        cases_note=known.note,
        sweep=moved.sweep,
        # As elsewhere, of pairs that differ in what is compared.
        pair_similarity=binned(known.similarity[known.similarity < 1]) if known.known else (),
        stages=about.stages,
        rows=_rows(flow, teller, duplicates[len(duplicates) - min(len(duplicates), extent.rows) :], number, sources),
        rows_total=len(duplicates),
        facts={"window": _window(about)} | dict(about.facts),
        notes=[*about.notes, *_notes(flow, about, chosen, extent, len(alive))],
        curves=about.curves,
        wording=FLOW,
    )


def _head(scale: Scale, pair: Picked) -> str:
    name = "probability" if scale.measure == "learned" else scale.measure
    return f"{name} {value_at(scale, pair.similarity)}: {'a match' if pair.matches else 'no match'}"


def _reasons(flow: Flow) -> list[tuple[str, int, str]]:
    places = flow.duplicates
    exact = flow.exact[places]
    equal = ~exact & flow.equal[places]
    return [
        (COPY, int(exact.sum()), "The text equals, byte for byte, that of the item it repeats."),
        (EQUAL, int(equal.sum()), "The text is written otherwise, but equal in all that is compared."),
        (NEAR, int((~exact & ~equal).sum()), "Other features, which match those of an item that the window held."),
    ]


def _similarity_of(recipe: Recipe, scale: Scale) -> str:
    if scale.measure == "learned":
        return "probability that both are near-duplicates"
    if scale.second:
        return recipe.then.split(">=")[0].split("<=")[0].strip()
    return f"{scale.measure} of {recipe.signature or recipe.features}"


def _threshold(about: About, scale: Scale) -> float | None:
    if about.decision is not None and not isfinite(about.decision.cut):
        return None
    return float(similarity_at(scale, scale.threshold))


def _rows(
    flow: Flow,
    teller: Teller,
    places: Integers,
    number: Mapping[int, int],
    sources: Sources,
) -> list[Row]:
    """Return the list that is searched, the latest first."""
    begins = sources.words(places)
    root = flow.groups.root
    return [
        Row(
            flow.id(place),
            flow.repeats(place),
            float(flow.similarity[place]),
            number.get(int(root[place]), 0),
            teller.why(place),
            begins.get(place, ""),
        )
        for place in places[::-1].tolist()
    ]


def _window(about: About) -> str:
    against = "everything in it" if about.everything else "the originals in it"
    return f"{about.window}; items are compared with {against}"


def _notes(flow: Flow, about: About, chosen: Chosen, extent: Extent, families: int) -> list[str]:
    found = []
    shown = len(chosen.families)
    if shown < families:
        others = shown - extent.families
        found.append(
            f"{shown:,} of {families:,} families are shown: the {extent.families:,} largest and a random {others:,} of "
            f"the others ({option('--report-families', 'families')})."
        )
    longest = max((listed.documents - 1 for listed in chosen.families), default=0)
    if longest > DROPPED_LISTED:
        found.append(
            f"Of each family at most {DROPPED_LISTED} duplicates are listed, those least like what they repeat."
        )
    if len(flow.duplicates) > extent.rows:
        found.append(
            f"The list of duplicates holds the latest {extent.rows:,} of {len(flow.duplicates):,} "
            f"({option('--report-rows', 'rows')})."
        )
    if not about.everything:
        found.append(
            "A flow does not compare duplicates with each other. Those that are listed with one original were compared "
            "for this page."
        )
    return found
