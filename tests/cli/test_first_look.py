"""Index, search, retrieve and eval, as a newcomer would call them."""

from __future__ import annotations

import json

import pytest

from command_line import in_process, secondlook

CORPUS = [
    {"_id": "cats", "title": "Cats", "text": "A cat lands on its feet by turning in the air."},
    {"_id": "dogs", "title": "Dogs", "text": "A dog wags its tail when it is glad."},
    {"_id": "owls", "title": "", "text": "Owls turn their heads to look behind."},
]
QUERIES = [
    {"_id": "1", "text": "how do cats land on their feet"},
    {"_id": "2", "text": "why do dogs wag their tails"},
    {"_id": "3", "text": "nothing to be found: xyzzy"},
]
QRELS = "query-id\tcorpus-id\tscore\n1\tcats\t1\n2\tdogs\t1\n"


@pytest.fixture
def data(tmp_path):
    for name, records in (("corpus", CORPUS), ("queries", QUERIES)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (tmp_path / "qrels.tsv").write_text(QRELS)
    return tmp_path


def test_from_a_corpus_to_a_measure(data):
    secondlook("index", data / "corpus.jsonl", data / "my.index")
    shown = secondlook("search", data / "my.index", "landing cats", "-k", "2")
    assert "cats" in shown
    assert "lands on its feet" in shown
    secondlook("retrieve", data / "my.index", data / "queries.jsonl", "-o", data / "bm25.trec")
    measured = json.loads(
        secondlook("eval", data / "qrels.tsv", data / "bm25.trec", "-m", "RR@10", "--json")
    )
    assert "1.0" in json.dumps(measured)


def test_search_for_machines(data):
    secondlook("index", data / "corpus.jsonl", data / "my.index")
    (hit,) = json.loads(secondlook("search", data / "my.index", "wagging", "--json"))
    assert hit["id"] == "dogs"
    assert hit["rank"] == 1
    assert hit["text"] == CORPUS[1]["text"]
    assert json.loads(secondlook("search", data / "my.index", "xyzzy", "--json")) == []


def test_only_judged_queries(data):
    secondlook("index", data / "corpus.jsonl", data / "my.index")
    run = data / "bm25.tsv.gz"
    arguments = ["--judged", data / "qrels.tsv", "-k", "1", "-o", run]
    said = secondlook("retrieve", data / "my.index", data / "queries.jsonl", *arguments)
    assert "2 queries" in said
    secondlook("convert", "run", run, data / "bm25.trec")
    assert (data / "bm25.trec").read_text().split()[:3] == ["1", "Q0", "cats"]


def test_an_index_is_not_built_over_by_accident(data):
    secondlook("index", data / "corpus.jsonl", data / "my.index")
    complaint = secondlook("index", data / "corpus.jsonl", data / "my.index", fails=True)
    assert "give --replace" in complaint
    secondlook("index", data / "corpus.jsonl", data / "my.index", "--replace", "--k1", "1.2")


def test_bad_input_is_one_line_that_says_what_to_do(data):
    assert "secondlook index" in secondlook("search", data / "no.index", "words", fails=True)
    assert "cannot be opened" in secondlook("index", data / "no.jsonl", data / "i", fails=True)
    (data / "bad.jsonl").write_text('{"_id": "1", "text": "fine"}\n{"_id": "2"}\n')
    complaint = secondlook("index", data / "bad.jsonl", data / "i", "--format", "beir", fails=True)
    assert complaint.count("\n") == 1
    assert "bad.jsonl:2" in complaint
    (data / "twice.jsonl").write_text('{"_id": "1", "text": "a"}\n' * 2)
    assert "'1'" in secondlook("index", data / "twice.jsonl", data / "i", fails=True)
    assert not (data / "i").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--url", "http://localhost:9200"), "need --engine opensearch"),
        (("--shards", "3"), "need --engine opensearch"),
        (("--precision", "int8"), "it needs --vectors"),
        (("--k1", "inf"), "k1: Input should be less than or equal to"),
    ],
)
def test_an_index_refuses_options_without_effect_or_sense(tmp_path, options, told):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "1", "text": "a word"}\n', encoding="utf-8")
    said = in_process("index", corpus, tmp_path / "index", *options, fails=True)
    assert told in " ".join(said.replace("│", " ").split())
    assert not (tmp_path / "index").exists()


def test_no_verb_overwrites_what_it_reads(tmp_path):
    queries = tmp_path / "queries.tsv"
    queries.write_text("1\ta word\n", encoding="utf-8")
    words = ("retrieve", tmp_path, queries, "-o", queries)
    assert "name another file to write" in in_process(*words, fails=True)
    words = ("mine", tmp_path, "none", queries, "-o", tmp_path / "." / "queries.tsv")
    assert "name another file to write" in in_process(*words, fails=True)
    assert queries.read_text(encoding="utf-8") == "1\ta word\n"
