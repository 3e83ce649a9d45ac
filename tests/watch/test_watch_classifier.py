"""A watcher with a classifier: sidecars, events, and restarts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from classifiers import DATED, FACTS, make_classifier
from newsroom import Newsroom, edited, files_in, sidecar, text_of
from sentences import says

from neardup.errors import OutputError
from neardup.watch.placement import Placer

CLASSIFIER = make_classifier(FACTS, bias=0.4)
TIMED = make_classifier(DATED, bias=1.0)


@pytest.fixture
def room(tmp_path: Path) -> Newsroom:
    return Newsroom(tmp_path, classifier=CLASSIFIER)


def fill(room: Newsroom) -> None:
    room.deliver("first.txt", text_of(1))
    room.deliver("copy.txt", text_of(1))
    room.deliver("near.txt", edited(text_of(1)))
    room.deliver("other.txt", text_of(2))


def test_the_sidecar_contains_the_evidence_of_the_classifier(room: Newsroom) -> None:
    fill(room)
    counters = room.run_once()
    assert (counters.originals, counters.duplicates, counters.exact) == (2, 2, 1)
    near = sidecar(room.duplicates / "near.txt")
    assert near["measure"] == "learned"
    assert near["classifier"] == CLASSIFIER.fingerprint
    assert near["fingerprint"] == CLASSIFIER.recipe.fingerprint
    assert near["cut"] == 0.0
    assert near["score"] > 0
    assert near["similarity"] == pytest.approx(1 / (1 + 2.718281828459045 ** (-1.7 * near["score"] + 0.1)), abs=1e-8)
    assert {measure["measure"] for measure in near["measures"]} == set(CLASSIFIER.vector.names)
    amounts = [abs(measure["contribution"]) for measure in near["measures"]]
    assert amounts == sorted(amounts, reverse=True)
    first = near["measures"][0]
    numbers = f"score {near['score']:.4f} >= 0, probability {near['similarity']:.4f}"
    assert near["reason"].startswith(f"{numbers}; {first['measure']} {first['contribution']:+.2f}, ")
    assert near["passages"][0]["tokens"] == 54
    exact = sidecar(room.duplicates / "copy.txt")
    assert (exact["kind"], exact["similarity"], exact["score"], exact["measures"]) == ("exact", 1.0, None, [])
    assert says(exact["reason"], "equal texts", "no classifier")
    events = {event["id"]: event for event in room.events("duplicate")}
    assert events["near.txt"]["score"] == near["score"]
    assert near["reason"].endswith(events["near.txt"]["evidence"])
    assert "score" not in events["copy.txt"]


def test_a_restart_before_placement_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = [Newsroom(tmp_path / name, classifier=TIMED) for name in ("whole", "broken")]
    for room in rooms:
        fill(room)
    rooms[0].run_once()
    with monkeypatch.context() as broken:
        broken.setattr(Placer, "place", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left on device")))
        with pytest.raises(OutputError, match="nothing is lost, start again"):
            rooms[1].run_once()
    assert rooms[1].run_once().duplicates == 0
    assert rooms[1].events("resumed")
    found = [files_in(room.duplicates) for room in rooms]
    assert found[0].keys() == found[1].keys()
    for name in found[0]:
        if name.endswith(".neardup.json"):
            whole, resumed = (json.loads(files[name]) for files in found)
            # Texts without a time get their arrival time.
            for record in (whole, resumed):
                assert record["measures"] or record["kind"] == "exact"
                record["measures"] = [m["measure"] for m in record["measures"] if m["measure"] != "hours_apart"]
            unlike = {key for key in whole if whole[key] != resumed[key]}
            assert unlike <= {"time", "score", "similarity", "reason"}
