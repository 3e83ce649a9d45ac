"""Make Markdown tables from the results, and put them where a page asks for them.

    tables.py                     print the table of every file in results/
    tables.py PAGE.md ...         renew the blocks between <!-- table NAME --> and <!-- end --> in pages

NAME is a file of results without its ending, one of the tables of the study of the default recipe, or method-PAGE for a
page of docs/methods.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import blog_job
import choosing
import default_recipe
import explore
import first_run
import growth
import hard
import learned
import memory
import methods
import neighbors
import peers
import sketches
import spark_sizing
import spark_stream
import spark_tables
import vector_cost
import watch_report
import window
import window_day
import window_store
from measuring import RESULTS

Table = Callable[[Any], str]

TABLES: dict[str, tuple[str, Table]] = {
    "peers": ("peers", peers.as_table),
    "sketches": ("sketches", sketches.as_table),
    "neighbors": ("neighbors", neighbors.as_table),
    "growth": ("growth", growth.as_table),
    "memory": ("memory", memory.as_table),
    "hard": ("hard", hard.as_table),
    "first_run": ("first_run", first_run.as_table),
    "blog_job": ("blog_job", blog_job.as_table),
    "window": ("window", window.as_table),
    "window-million": ("window", window.million_table),
    "window-fill": ("window", window.fill_table),
    "window-store": ("window_store", window_store.as_table),
    "window-restart": ("window_store", window_store.restart_table),
    "window-day": ("window_day", window_day.as_table),
    "watch-report": ("watch_report", watch_report.as_table),
    "watch-report-late": ("watch_report", watch_report.lateness_table),
    "window-hours": ("window_day", window_day.hours_table),
    "choosing-windows": ("choosing", choosing.as_table),
    "choosing-stopped": ("choosing", choosing.stopped_table),
    "choosing-half": ("choosing", choosing.half_table),
    "choosing-most": ("choosing", choosing.most_table),
    "explore": ("explore", explore.as_table),
    "explore-curve": ("explore", explore.curve_table),
    "explore-pages": ("explore", explore.page_table),
    "explore-report": ("explore", explore.report_table),
    "learned": ("learned", learned.as_table),
    "learned-every": ("learned", learned.every_table),
    "learned-untouched": ("learned", learned.untouched_table),
    "vector-cost": ("vector_cost", vector_cost.as_table),
    "deciding-cost": ("vector_cost", vector_cost.deciding_table),
    "spark": ("spark", spark_tables.as_table),
    "spark-stages": ("spark", spark_tables.stages_table),
    "spark-shuffle": ("spark", spark_tables.shuffle_table),
    "spark-peers": ("spark", spark_tables.peers_table),
    "spark-faults": ("spark_faults", spark_tables.faults_table),
    "spark-stream": ("spark_stream", spark_stream.shown),
    "spark-given": ("spark", spark_sizing.given_table),
    "spark-sizing": ("spark", spark_sizing.as_table),
    "spark-work": ("spark", spark_sizing.work_table),
    "spark-driver": ("spark", spark_sizing.driver_table),
    "strata": ("default_recipe", default_recipe.strata_table),
    "read_whole": ("default_recipe", default_recipe.read_whole_table),
    "thresholds": ("default_recipe", default_recipe.threshold_table),
    "candidates": ("default_recipe", default_recipe.candidate_table),
    "adverts": ("default_recipe", default_recipe.advert_table),
    "revisions": ("default_recipe", default_recipe.revision_table),
    "method-overview": ("methods", methods.as_table),
    "method-recipes": ("methods", methods.recipes_table),
    "method-corpora": ("methods", methods.corpora_table),
    "method-times": ("methods", methods.times_table),
    "method-lengths": ("methods", methods.lengths_table),
    **{f"method-{page}": ("methods", methods.page_table(page)) for page in methods.PAGES},
}
_BLOCK = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def made_by(results: dict[str, Any]) -> str:
    """Return the line below a table: command, machine, versions, date."""
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    computer = f"{where['cpu']}, {where['cores']} cores, Python {where['python']}"
    return f"`{results['command']}`: {computer}, {versions}, {where['date']}."


def render(name: str, folder: Path = RESULTS) -> str:
    """Return a table and the line that says where it comes from.

    Raises
    ------
    SystemExit
        If there is no table of that name or its results are not there.
    """
    if name not in TABLES:
        raise SystemExit(f"no table {name!r}; there are {', '.join(TABLES)}")
    file, as_table = TABLES[name]
    path = folder / f"{file}.json"
    if not path.exists():
        raise SystemExit(f"{path.name} is not in {folder.name}; run benchmarks/{file}.py")
    results = json.loads(path.read_text("utf-8"))
    made = made_by(results) if "machine" in results else f"`python benchmarks/{file}.py`."
    return f"{as_table(results)}\n\n{made}"


def renew(page: Path) -> None:
    """Write the tables of a page anew."""
    text = page.read_text("utf-8")
    page.write_text(_BLOCK.sub(lambda found: f"{found[1]}\n{render(found['name'])}\n\n{found[3]}", text), "utf-8")


def main() -> None:
    if sys.argv[1:]:
        for page in sys.argv[1:]:
            renew(Path(page))
        return
    for name, (file, _) in TABLES.items():
        if (RESULTS / f"{file}.json").exists():
            print(f"## {name}\n\n{render(name)}\n")


if __name__ == "__main__":
    main()
