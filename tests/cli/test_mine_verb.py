"""`secondlook mine`, as a user calls it."""

import json

import pytest
from typer.testing import CliRunner

from command_line import in_process, secondlook
from invented import write_deep_sea
from no_cluster import in_this_process
from secondlook.cli import app
from secondlook.data import write_corpus, write_qrels, write_queries
from secondlook.terminal.problems import WRONG_OPTION, exit_code
from secondlook.train.groups import Groups
from secondlook.types import Document, Query


def collection(folder):
    documents = [Document(f"d{n}", f"the tide at cape number {n}") for n in range(9)]
    write_corpus(folder / "corpus.jsonl", documents)
    write_queries(folder / "queries.jsonl", [Query("q", "tide at cape"), Query("r", "nothing")])
    write_qrels(folder / "qrels.tsv", {"q": {"d3": 1}})
    return folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels.tsv"


def test_groups_come_from_an_index_or_a_run(tmp_path):
    corpus, queries, qrels = collection(tmp_path)
    index, groups = tmp_path / "index", tmp_path / "train.parquet"
    secondlook("index", corpus, index)
    shown = secondlook("mine", index, queries, qrels, "-o", groups, "--negatives", 4)
    assert "1 queries" in shown
    (group,) = Groups([groups])
    assert sorted(group.labels) == [-1, -1, -1, -1, 1]
    assert all(group.ranks)

    run = tmp_path / "lists.tsv"
    run.write_text("q\td1 d3 d2\n")
    arguments = ["mine", corpus, queries, qrels, "--run", run, "--all", "--json", "-o", groups]
    counts = json.loads(secondlook(*arguments))
    assert (counts["queries"], counts["positives"], counts["negatives"]) == (1, 1, 2)
    (group,) = Groups([groups])
    assert [document.id for document in group.documents] == ["d1", "d3", "d2"]
    assert Groups([groups]).about[0]["run"] == "lists.tsv"


def test_what_it_cannot_do_is_said(tmp_path):
    arguments = ["mine", *collection(tmp_path), "-o", tmp_path / "train.parquet"]
    assert "give a run" in secondlook(*arguments, fails=True)
    for ranks, said in {"5": "as in 1-100", "9-3": "--ranks 9-3: they count from 1"}.items():
        refused = CliRunner().invoke(app, [*map(str, arguments), "--ranks", ranks]).exception
        assert said in str(refused)
        assert exit_code(refused) == WRONG_OPTION


@pytest.fixture
def deep_sea(tmp_path, monkeypatch):
    """An index of the sea, mined in parts of four queries by workers that are this process."""
    given = write_deep_sea(tmp_path)
    in_process("index", given[0], tmp_path / "index")
    monkeypatch.setattr("secondlook.workflows.mine._AT_ONCE", 4)
    monkeypatch.setattr("secondlook.scale.ray_job.run", in_this_process)
    return given


@pytest.mark.parametrize("asked", ["the index", "a run"])
def test_parts_of_a_cluster_make_the_file_that_one_process_makes(tmp_path, deep_sea, asked):
    _, queries, qrels = deep_sea
    given = ["mine", tmp_path / "index", queries, qrels, "--json", "--random", 1, "--negatives", 3]
    if asked == "a run":
        run = tmp_path / "run.trec"
        found = (f"q{n} Q0 d{m} 1 {m}.5 x\n" for n in (30, 7, *range(20)) for m in (7, n % 25, 3)
                 if n != 7 or m != 7)  # fmt: skip
        run.write_text("".join(dict.fromkeys(found)).replace("q30", "unjudged"))
        given += ["--run", run]
    there = in_process(*given, "-o", tmp_path / "there.parquet", "--ray", "somewhere")
    here = in_process(*given, "-o", tmp_path / "here.parquet")
    assert json.loads(there) == json.loads(here)
    assert json.loads(here)["queries"] > 8
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()
    assert not list(tmp_path.glob(".*parts"))


def test_what_is_mined_is_not_mined_again(tmp_path, deep_sea, monkeypatch):
    asked = []

    def half(address, missing, open_tools, *, advance):
        asked.append(len(missing))
        in_this_process(address, missing[:4], open_tools, advance=advance)
        if missing[4:]:
            raise KeyboardInterrupt

    monkeypatch.setattr("secondlook.scale.ray_job.run", half)
    given = ["mine", tmp_path / "index", *deep_sea[1:], "-o", tmp_path / "train.parquet"]
    in_process(*given, "--ray", "somewhere", fails=True)
    in_process(*given, "--ray", "somewhere")
    assert asked == [7, 3]
    assert len(Groups([tmp_path / "train.parquet"])) == 25


def test_workers_need_an_index(tmp_path, deep_sea):
    said = in_process("mine", *deep_sea, "--ray", "local", "-o", tmp_path / "x.parquet", fails=True)
    assert "create it with: secondlook index" in said
