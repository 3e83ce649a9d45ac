"""Recipes compared on Spark, against the same in memory; and those that it refuses."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from saying import says
from typer.testing import CliRunner

from neardup.documents import open_corpus
from neardup.errors import RecipeError
from neardup.evaluation.comparison import check_for_engine, compare
from neardup.recipe.named import load_recipe
from neardup.spark.search import check_recipe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORY = "the harbour of velmora was closed on monday night after a silver astrolabe was stolen"
TIMES = ("wall_ms_per_document", "cpu_ms_per_document")


def labelled(folder: Path) -> tuple[str, str]:
    """Documents with a broken line before some that match, and labels."""
    texts = {"a": STORY, "b": STORY + " police said", "c": STORY, "d": "snow fell all day", "e": "snow fell all night"}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    lines[1:1] = ["not json"]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "labels.csv").write_text("id1,id2,label\na,b,1\na,c,1\nb,c,1\nd,e,0\na,d,0\n")
    return str(folder / "in.jsonl"), str(folder / "labels.csv")


def figures(found: Any) -> dict[str, Any]:
    """What is told, without times."""
    told: dict[str, Any] = found.to_dict()
    for recipe in told["recipes"]:
        assert all(recipe.pop(name) >= 0 for name in TIMES)
    return told


def test_scores_and_what_is_set_aside_are_those_of_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neardup.spark import command as comparing
    from neardup.spark.command import Engine

    monkeypatch.setattr(comparing, "started", lambda engine, corpus: nullcontext(spark))
    given, labels = labelled(tmp_path)
    options: dict[str, Any] = {"recipes": [load_recipe("default").changed(features="words:2"), load_recipe("checksum")]}
    options["thresholds"] = ".3,.6,.9"
    with open_corpus([given]) as corpus:
        expected = figures(compare(corpus, labels, **options)), dict(corpus.rejected.counts)
    engine = Engine(stages=str(tmp_path / "stages"))
    with open_corpus([given]) as corpus, comparing.Compared(corpus, engine) as elsewhere:
        found = figures(compare(corpus, labels, engine=elsewhere, **options)), dict(corpus.rejected.counts)
    assert found == expected
    assert expected[1] == {"not valid JSON": 1}
    folders = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "stages").iterdir())
    assert folders == ["", "checksum", "default"]


def test_recipes_that_spark_cannot_compare_are_named_together() -> None:
    edited = load_recipe("default").changed(then="edit >= 0.8", name="edited")
    recipes = [load_recipe("default"), load_recipe("simhash"), edited, load_recipe("terms")]
    with pytest.raises(RecipeError) as caught:
        check_for_engine(recipes, ".5:.9:.1", check_recipe)
    refused = ("simhash (measure 'hamming'", "edited (then 'edit >= 0.8'", "terms (weights 'tfidf'")
    assert says(caught.value, *refused, "recipes default", "leave out engine")
    assert "default (" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ("engine", "simhash (", "leave out --engine")),
        (["--recipes", "default", "--memory", "1GB"], ("--memory", "engine in memory")),
        (["--recipes", "default", "--resume"], ("--resume", "--stages DIR")),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, options: list[str], parts: tuple[str, ...]) -> None:
    from neardup.cli.app import app

    given, labels = labelled(tmp_path)
    found = CliRunner().invoke(app, ["compare", given, "--labels", labels, "--engine", "spark", *options])
    assert found.exit_code == 2, found.output
    assert says(found.output, *parts)
