"""The code of the README and of "Commands by task" is run as it stands, on a small sample.

In small means: a base of random weights under the name of the real one, `recipes/cpu.toml` with as
many tokens as that base reads, and a ranker that is put in place though it need not be better.
"""

import gzip
import json
import shlex
import sys
from itertools import product
from pathlib import Path

import pytest

import tiny
from command_line import in_process, secondlook
from markdown_code import fenced, shell_lines
from quickstart_sample import small_sample
from serve_command import free_port, served

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
LINES = [
    line for page in (README, COMMANDS) for line in shell_lines(page) if line.startswith("second")
]
CLUSTER = "http://localhost:9200"
EXPERIMENT = """
qrels = ["qrels/test.tsv"]
queries = ["queries.jsonl"]
base = ["bm25.trec"]
new = ["second.trec"]
corpus = "my.index"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the reader of the README has: data of their own, and the checkout."""
    small_sample(tmp_path)
    small_sample(tmp_path / "my-data")
    tiny.save(tiny.encoder(), tmp_path / "intfloat" / "e5-small")
    (tmp_path / "recipes").mkdir()
    recipe = (ROOT / "recipes" / "cpu.toml").read_text(encoding="utf-8")
    assert "max_length = 256" in recipe
    (tmp_path / "recipes" / "cpu.toml").write_text(recipe.replace("256", "64"), encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_what_was_judged_and_clicked(folder):
    """A log of clicks, and a run and judgments that tell good from bad: a reader has both."""
    queries, documents = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in ("queries", "corpus")
    )
    with gzip.open(folder / "log.jsonl.gz", "wt") as log:
        for number, query in enumerate(queries):
            wanted, *others = [documents[(number + n) % len(documents)]["_id"] for n in range(3)]
            for place, time in product(range(3), range(6)):
                shown = [*others[:place], wanted, *others[place:]]
                clicked = [wanted] if time < 6 / (1 + place) else []
                page = {"query": query["text"], "shown": shown, "clicked": clicked}
                log.write(json.dumps(page) + "\n")
    rows = [line.split() for line in (folder / "second.trec").read_text().splitlines()]
    dev = (folder / "qrels" / "dev.tsv").read_text()
    asked = {line.split()[0] for line in dev.splitlines()[1:]}
    known = {tuple(line.split()[:2]) for line in dev.splitlines()[1:]}
    judged = [row for row in rows if row[0] in asked]
    more = [(row[0], row[2], int(row[3]) <= 4) for row in judged if (row[0], row[2]) not in known]
    with (folder / "qrels" / "dev.tsv").open("a") as qrels:
        qrels.writelines(f"{query}\t{document}\t{good:d}\n" for query, document, good in more)


def test_every_command_of_the_readme_and_the_commands_by_task_runs(folder):
    pytest.importorskip("fastapi")
    pytest.importorskip("matplotlib")
    done = []
    lines = list(reversed(dict.fromkeys(reversed(LINES))))  # what stands on both pages, once
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if CLUSTER in words:
            continue  # below
        if words[0] == "serve":
            command = [sys.executable, "-m", "secondlook", *words, "--port", str(free_port())]
            with served(command, folder):
                continue
        if words[0] == "tune":
            words.append("--ship")
        if words[0] == "fuse":
            write_what_was_judged_and_clicked(folder)
        in_process(*words)
        done.append(words[0])
    assert {"index", "retrieve", "rerank", "compare", "tune", "train", "report"} <= set(done)
    assert len(done) == len(lines) - 2  # served, or below
    for made in ("better.ranker", "tuned/ranker", "by-clicks/ranker", "why.html", "report.html"):
        assert (folder / made).exists()


def test_the_python_of_the_readme_runs(folder, capsys):
    (program,) = fenced(README, "python")
    names = {}
    exec(program, names)
    assert {ranking.query_id for ranking in names["second"]} == {
        ranking.query_id for ranking in names["bm25"]
    }
    said = capsys.readouterr().out
    assert names["result"].verdict in said
    assert Path(names["result"].report).is_file()


@pytest.mark.real
def test_the_cluster_of_the_commands_by_task(folder, three_nodes):
    (line,) = (line for line in LINES if CLUSTER in line)
    secondlook(*shlex.split(line.replace(CLUSTER, three_nodes.urls[0]), comments=True)[1:])
    query = json.loads((folder / "queries.jsonl").read_text().splitlines()[0])["text"]
    assert secondlook("search", "cluster.index", query, "-k", 1)
