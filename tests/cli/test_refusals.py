"""What commands refuse: one sentence with the value, the rule and the way out, exit code 2, and no file changed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from commands import DOCUMENTS, FOX, refused, write_lines
from sentences import says

#: Command lines, and the parts of their messages.
REFUSED = [
    ("dedup '*.nothing' -o o.jsonl", ("*.nothing", "no file")),
    ("dedup corpus.jsonl --text-column text,text -o o.jsonl", ("'text,text'", "--text-column", "once")),
    ("dedup corpus.jsonl --ignore missing.txt -o o.jsonl", ("missing.txt", "--ignore", "text file")),
    ("dedup corpus.jsonl --ignore blank.txt -o o.jsonl", ("blank.txt", "no text", "--ignore")),
    ("dedup corpus.jsonl --ignore bare -o o.jsonl", ("bare", "--ignore", "text file")),
    ("dedup corpus.jsonl --ignore odd.txt -o o.jsonl", ("odd.txt", "UTF-8", "byte 0")),
    ("dedup corpus.jsonl --ignore taken.jsonl --features checksum -o o.jsonl", ("ignore", "checksum", "words")),
    ("dedup corpus.jsonl --set 'ignore=a b' -o o.jsonl", ("--ignore FILE",)),
    ("dedup corpus.jsonl -o file:///kept.jsonl", ("file:///kept.jsonl", "path")),
    ("dedup corpus.jsonl --measure jacard -o o.jsonl", ("measure", "'jacard'", ", semantic; do you mean jaccard?")),
    ("dedup corpus.jsonl --features word:5 -o o.jsonl", ("features", "'word:5'", "qgrams", "mean words?")),
    ("dedup corpus.jsonl --recipe defualt -o o.jsonl", ("recipe", "'defualt'", "checksum, cornell, ", "mean default?")),
    ("dedup corpus.jsonl --keep newst -o o.jsonl", ("column 'newst'", "--keep", "longest", "newest", "columns are id")),
    ("dedup corpus.jsonl --keep newest --time-column tiem -o o.jsonl", ("column 'tiem' for --time-column;", "date")),
    ("dedup corpus.jsonl --keep newest --time-column text -o o.jsonl", ("'text'", "readable time", "ISO 8601")),
    ("dedup corpus.jsonl --time-column date -o o.jsonl", ("--time-column", "--keep", "newest", "oldest")),
    ("dedup folder -o folder/out.jsonl", ("folder/out.jsonl", "input folder folder")),
    ("dedup corpus.jsonl --summary summary.txt -o o.jsonl", ("summary.txt", ".json")),
    ("dedup corpus.jsonl --quarantine bad.csv -o o.jsonl", ("bad.csv", ".jsonl")),
    ("dedup corpus.jsonl -o - --json", ("-o -", "--json", "stdout")),
    ("dedup corpus.jsonl --annotate-prefix x -o o.jsonl", ("--annotate-prefix", "--annotate")),
    ("dedup corpus.jsonl --against corpus.jsonl -o o.jsonl", ("corpus.jsonl", "leave it out of --against")),
    ("dedup corpus.jsonl --against broken.jsonl -o broken.jsonl --force", ("broken.jsonl", "another file")),
    ("dedup corpus.jsonl --against bodies.jsonl --text-column text -o o.jsonl", ("bodies.jsonl", "'text'")),
    ("dedup corpus.jsonl --against broken.jsonl --strict -o o.jsonl", ("broken.jsonl", "line 2", "JSON")),
    ("dedup corpus.jsonl --within id --engine spark -o o.jsonl", ("--within",)),
    ("dedup corpus.jsonl --dry-run --report report.txt", ("report.txt", ".html", "name it")),
    ("dedup corpus.jsonl --dry-run --report mine.html", ("mine.html", "exists", "--force")),
    ("dedup corpus.jsonl --dry-run --report-families 3", ("--report-families 3", "--report FILE.html")),
    ("dedup corpus.jsonl --dry-run --report p.html --report-margin far", ("--report-margin", "not a number")),
    ("dedup corpus.jsonl --dry-run --report p.html --report-margin 0.9", ("margin 0.9", "nothing")),
    ("dedup corpus.jsonl --dry-run --title-column id", ("--title-column id", "--classifier FILE")),
    ("replay corpus.jsonl --report mine.html", ("mine.html", "exists", "--force")),
    ("replay corpus.jsonl --report s.html --store s.html", ("s.html", "--report", "--store", "two files")),
    ("compare corpus.jsonl --labels sure.jsonl --report page.json", ("page.json", ".html")),
    ("compare corpus.jsonl --labels sure.jsonl --report mine.html", ("mine.html", "exists", "--force")),
    ("audit corpus.jsonl --report mine.html", ("mine.html", "exists", "--force")),
    ("audit corpus.jsonl --report-pairs 3", ("--report-pairs 3", "--report FILE.html")),
    ("compare corpus.jsonl --clusters famly", ("column 'famly' for --clusters;", "columns are id")),
    ("replay corpus.jsonl --time-column tiem", ("column 'tiem' for --time-column;", "columns are id")),
    ("pairs corpus.jsonl", ("no output", "-o FILE", "--print")),
    ("compare corpus.jsonl --labels labels.csv --clusters kind", ("--labels", "--clusters kind", "leave out one")),
    ("compare corpus.jsonl --clusters kind --positive 2", ("--positive", "not for --clusters")),
    ("compare corpus.jsonl --labels labels.csv --id-column kind", ("labels.csv", "not in the corpus")),
    ("compare corpus.jsonl --labels labels.csv --thresholds 2", ("threshold", "2", "(0, 1]")),
    ("compare corpus.jsonl --labels labels.csv -o c.txt", ("c.txt", "format", ".html")),
    ("compare corpus.jsonl --labels labels.csv -o c.csv -o ./c.csv", ("c.csv", "two files")),
    ("compare corpus.jsonl --labels labels.csv -o labels.csv", ("labels.csv", "input")),
    ("compare corpus.jsonl --labels labels.csv --title-column text", ("--title-column text", "--classifier")),
    ("compare corpus.jsonl --labels labels.csv --classifier none.neardup", ("none.neardup", "read", "neardup train")),
    ("train corpus.jsonl --labels nowhere.csv", ("nowhere.csv", "read")),
    ("train corpus.jsonl --labels labels.csv --positive 2", ("labels.csv", "no label", "2")),
    ("train corpus.jsonl --labels labels.csv --only split", ("--only", "'split'", "column and value", "split=")),
    ("train corpus.jsonl --labels labels.csv --only split=train", ("labels.csv", "column 'split'", "id1, id2")),
    ("train corpus.jsonl --labels labels.csv --label-column mine", ("column 'mine'", "--label-column", "id1, id2")),
    ("train corpus.jsonl --labels labels.csv --kernel poly", ("--kernel", "'poly'", "linear, rbf or both")),
    ("train corpus.jsonl --labels labels.csv --folds 50", ("folds 50", "2 to 20")),
    ("train corpus.jsonl --labels labels.csv --vector unheard", ("'unheard'", "one of default")),
    ("train corpus.jsonl --labels labels.csv --title-column heading --vector title", ("'heading'", "--title-column")),
    ("train corpus.jsonl --labels labels.csv -o -", ("- ", "stdout", "name one")),
    ("train corpus.jsonl --labels labels.csv -o labels.csv", ("labels.csv", "input")),
    ("train corpus.jsonl --labels labels.csv -o d.json --summary ./d.json", ("d.json", "-o", "--summary")),
    ("train corpus.jsonl --labels labels.csv -o mine.html", ("mine.html", "exists", "--force")),
    ("audit corpus.jsonl --candidate-rule 0.9", ("candidate rule", "0.9", "threshold")),
    ("audit corpus.jsonl --candidate-rule nonsense", ("candidate rule", "'nonsense'")),
    ("audit corpus.jsonl --sample-to s.parquet", ("s.parquet", ".csv, .tsv, .jsonl or .ndjson")),
    ("audit corpus.jsonl --sample-to corpus.jsonl", ("corpus.jsonl", "input")),
    ("audit corpus.jsonl --precision 0.9", ("--precision 0.9", "classifier", "--classifier")),
    ("replay corpus.jsonl --time-column text", ("column 'text'", "no readable time")),
    ("replay corpus.jsonl --speed 0", ("speed 0 ", "above 0")),
    ("replay corpus.jsonl --window-by day", ("--window-by 'day'", "time or hour")),
    ("replay corpus.jsonl --against nobody", ("--against 'nobody'", "originals or everything")),
    ("replay corpus.jsonl -o -", ("- is stdout", "name a file")),
    ("replay corpus.jsonl -o v.txt", ("v.txt", "suffix", ".parquet")),
    ("replay corpus.jsonl -o v.jsonl --originals ./v.jsonl", ("v.jsonl", "-o", "--originals")),
    ("explore corpus.jsonl -o found.txt", ("found.txt", ".html or .json", "leave out -o")),
    ("explore corpus.jsonl --lengths 0-3", ("--lengths", "'0-3'", "1-7, 4 or 1,3,5", "from 1")),
    ("explore corpus.jsonl --lengths a,b", ("--lengths", "'a,b'", "1-7, 4 or 1,3,5")),
    ("explore corpus.jsonl --lengths none", ("--lengths none", "--qgrams 3-6", "--recipe NAME")),
    ("explore corpus.jsonl --lowest 0", ("--lowest 0.0 ", "(0, 1]", "0.2")),
    ("similar - -d -", ("stdin", "input", "document", "name a file")),
    ("similar corpus.jsonl -d folder", ("folder", "is a directory", "text file", "- for stdin")),
    ("similar corpus.jsonl -d empty.txt", ("empty.txt", "is empty", "with words")),
    ("similar corpus.jsonl -d dots.txt", ("dots.txt", "no features by words:5", "longer")),
    ("similar corpus.jsonl -d latin1.txt", ("latin1.txt", "UTF-8", "byte 3", "iconv")),
    ("similar corpus.jsonl -d new.txt --k 6", ("k 6", "5 documents", "at most 5")),
    ("similar corpus.jsonl -d new.txt -o new.txt", ("new.txt",)),
    ("similar corpus.jsonl -d new.txt -o o.jsonl --second-step 'semantic >= 0.9'", ("semantic", "needs an encoder")),
    ("similar corpus.jsonl --print --k 5", ("k 5", "5 documents", "at most 4")),
    ("similar corpus.jsonl --print --of fox-agian", ("no document", "'fox-agian'", "close", "'fox-again', ")),
    ("similar corpus.jsonl --print --of fox --first 1", ("--of", "--first 1", "one of the two")),
    ("dedup corpus.jsonl --dry-run --search lsh --set clop=df:2:0.5", ("--set", "'clop'", "clip")),
    ("dedup corpus.jsonl --dry-run --search lsh --set zzz=1", ("--set", "'zzz'", "not a field", "num_perm")),
    ("dedup corpus.jsonl --dry-run --search lsh --set nope=1", ("--set 'nope'", "not a field", "fields are normalize")),
    ("dedup corpus.jsonl --dry-run --search lsh --set clip", ("--set", "'clip'", "no value", "clip=df:2:0.5")),
    ("dedup corpus.jsonl --dry-run --search lsh --set seed=1 --set seed=2", ("--set", "seed", "twice", "'1'", "'2'")),
    ("dedup corpus.jsonl --dry-run --search lsh --set threshold=0.5", ("--set threshold", "--threshold 0.5")),
    ("dedup corpus.jsonl --dry-run --search lsh --set num_perm=many", ("--set num_perm", "'many'", "whole number")),
    ("dedup corpus.jsonl --dry-run --search lsh --set recall=most", ("--set recall", "'most'", "not a number")),
    ("dedup in --treshold 0.8", ("--treshold", "--threshold?")),
    ("dedup in --recall 0.9", ("--recall", "--set recall=0.9")),
    ("dedup in --num-perm=64", ("--num-perm", "--set num_perm=64")),
    ("similar in --text cocoa", ("--text", "mean --text-column?")),
    ("similar in --txt cocoa", ("--txt", "mean --text-column?")),
    ("similar in --quar cocoa", ("--quar", "mean --quarantine?")),
    ("dedup corpus.jsonl --measure hamming -o o.jsonl", ("'hamming'", "--set signature=simhash --threshold 3")),
    ("train in --report x", ("--report", "train --help-all lists them")),
    ("dedup in --zzz", ("--zzz", "dedup --help-all")),
    ("dedup in --force=3", ("--force", "no value", "alone")),
    ("dedup in --threshold", ("--threshold", "no value", "--threshold NUMBER")),
    ("deddup in", ("'deddup'", "no command", "dedup?")),
    ("recipe sho", ("'sho'", "no command of recipe", "show?")),
    ("query in --document x", ("query has a new name: neardup similar INPUT --document FILE",)),
    ("recipe check x", ("recipe check has a new name: neardup recipe show FILE",)),
    ("similar in --document x --of a", ("--of a", "--document", "leave out one")),
    ("similar in --title x", ("--title x", "--document FILE", "leave it out")),
    ("similar in --classifier x", ("--classifier x", "--document FILE", "leave it out")),
    ("serve --store s.db --url http://127.0.0.1:9", ("--url http://127.0.0.1:9", "--mcp")),
    ("serve --mcp --store s.db --port 9", ("--port 9", "HTTP", "leave out one")),
    ("replay in --downstream nan", ("--downstream", "'nan'", "from 0")),
    ("audit in --port 99999", ("--port", "'99999'", "from 0 to 65,535")),
    ("dedup in --threshold high", ("--threshold", "'high'", "number", "0.8")),
    ("dedup in --wait soon", ("--wait", "'soon'", "time", "30s")),
    ("dedup in --engine other", ("--engine", "'other'", "memory or spark")),
    ("--vrsion", ("--vrsion", "--version?")),
    ("dedup corpus.jsonl --dry-run --set recall=0.9", ("--set recall=0.9", "'lsh'")),
    ("dedup corpus.jsonl --dry-run --set seed=4", ("--set seed=4", "'lsh'", "min-hash")),
    ("dedup corpus.jsonl --dry-run --memory 1", ("--memory 1 ", "--memory 500MB")),
    ("dedup corpus.jsonl --dry-run --wait 5s", ("--wait 5s", "--engine spark")),
    ("dedup corpus.jsonl --dry-run --spark-conf spark.a=b", ("--spark-conf spark.a=b is", "--engine spark")),
    ("dedup corpus.jsonl --dry-run --strict --allow-torn", ("--allow-torn", "--strict", "one of the two")),
    (
        "dedup corpus.jsonl --dry-run --within kind --pairs-per-document 3",
        ("--pairs-per-document 3", "--within", "one of the two"),
    ),
    ("explore corpus.jsonl --no-curve --lowest 0.5", ("--lowest 0.5", "--no-curve", "leave out one")),
    ("serve --mcp --store memory.db --index other", ("--index other", "--url URL")),
    ("serve --mcp --store memory.db --token-file missing", ("--token-file missing", "--url URL")),
    ("serve --mcp --url http://127.0.0.1:9 --threshold 0.7", ("--threshold 0.7", "store", "leave it out")),
    ("serve --mcp --url http://127.0.0.1:9 --window 24h", ("--window 24h", "store", "leave it out")),
    ("similar corpus.jsonl --search lsh", ("--search lsh", "leave it out")),
    ("similar corpus.jsonl --second-step 'edit >= 0.9'", ("--second-step edit >= 0.9", "leave it out")),
    ("explain corpus.jsonl a b --quarantine q.jsonl", ("--quarantine q.jsonl", "leave it out")),
    ("compare corpus.jsonl --clusters id --complete", ("--complete", "not for --clusters")),
    ("label corpus.jsonl --store labels.db --agreement --port 80", ("--port 80", "leave it out")),
    ("label corpus.jsonl --store labels.db --force", ("--force", "--export", "leave it out")),
    ("audit corpus.jsonl --labeller anna", ("--labeller anna", "--store FILE")),
    ("audit corpus.jsonl --ignore-unknown", ("--ignore-unknown", "--labels FILE")),
    ("watch bare --originals out --store store.db --sample corpus.jsonl", ("--sample ", "'ddd'", "leave it out")),
    ("watch folder --originals folder/out --store news.db", ("folder/out", "--originals", "inbox folder")),
    ("watch folder --store folder/news.db --originals out", ("folder/news.db", "--store", "inbox folder", "outside")),
    (
        "watch folder --duplicates out --store news.db --originals out",
        ("out ", "--originals", "--duplicates", "two folders"),
    ),
    ("watch folder --poll 0 --store news.db --originals out", ("--poll 0 ", "[0.05, 86400]")),
    ("watch folder --place copy --store news.db --originals out", ("--place", "'copy'", "move or link")),
    ("watch folder --content best --store news.db --originals out", ("--content 'best'", "html-fast, tags or plain")),
    (
        "watch folder --html --content tags --store news.db --originals out",
        ("--html", "--content", "'tags'", "one of the two"),
    ),
]
FILES = {
    "taken.jsonl": b"mine",
    "mine.html": b"mine",
    "new.txt": FOX.encode(),
    "empty.txt": b"",
    "dots.txt": b"... !\n",
    "latin1.txt": "caf\u00e9".encode("latin-1"),
    "blank.txt": "\ufeff \n".encode(),
    "odd.txt": b"\xff",
    "broken.jsonl": b'{"id": 1, "text": "a"}\n{"id": 2\n',
    "labels.csv": b"id1,id2,label\nfox,fox-again,1\nfox-edited,fox,1\nrose,fox,0\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good and bad inputs and outputs that exist, as the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("bare", "folder"):
        (tmp_path / name).mkdir()
    write_lines(tmp_path / "corpus.jsonl", [row | {"kind": str(row["id"])[:4]} for row in DOCUMENTS])
    write_lines(tmp_path / "folder" / "a.jsonl", [{"id": 1, "text": FOX}])
    write_lines(tmp_path / "bodies.jsonl", [{"id": 1, "body": FOX}])
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("line", "parts"), REFUSED, ids=[line for line, _ in REFUSED])
def test_commands_refuse_what_does_not_fit_in_one_sentence(line: str, parts: tuple[str, ...], folder: Path) -> None:
    before = contents(folder)
    assert says(refused(*shlex.split(line)), *parts)
    assert contents(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_files_and_folders_without_permission_are_refused(corpus: Path, tmp_path: Path) -> None:
    corpus.chmod(0)
    assert says(refused("dedup", corpus, "--dry-run"), str(corpus), "read", "user")
    corpus.chmod(0o600)
    locked = tmp_path / "locked"
    locked.mkdir(0o500)
    assert says(refused("dedup", corpus, "-o", locked / "out.jsonl"), str(locked), "written", "user")
