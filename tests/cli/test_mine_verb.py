"""`secondlook mine`, as a user calls it."""

import json

from command_line import secondlook
from secondlook.data import write_corpus, write_qrels, write_queries
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
    assert "give --run" in secondlook(*arguments, fails=True)
    assert "as in 1-100" in secondlook(*arguments, "--ranks", "5", fails=True)
