"""The verbs on a real cluster, as a search engineer would call them."""

from __future__ import annotations

import json

import pytest

from command_line import secondlook

CORPUS = [
    {"_id": "cats", "title": "Cats", "text": "A cat lands on its feet by turning in the air."},
    {"_id": "dogs", "title": "Dogs", "text": "A dog wags its tail when it is glad."},
]


@pytest.fixture
def corpus(tmp_path):
    def write(name, records):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write


def found(folder, words):
    return [hit["id"] for hit in json.loads(secondlook("search", folder, words, "--json"))]


@pytest.mark.real
def test_an_index_on_a_cluster_is_built_searched_and_changed(three_nodes, corpus, tmp_path):
    folder = tmp_path / "verbs.index"
    urls = [word for url in three_nodes.urls for word in ("--url", url)]
    options = ["--engine", "opensearch", *urls, "--shards", "2", "--replicas", "1"]
    said = secondlook("index", corpus("corpus.jsonl", CORPUS), folder, *options)
    assert "2 documents, opensearch" in said
    assert found(folder, "landing cats") == ["cats"]
    news = [
        {"_id": "owls", "text": "Owls turn their heads."},
        {**CORPUS[1], "text": "A dog barks."},
    ]
    assert "3 documents" in secondlook("add", folder, corpus("news.jsonl", news))
    assert found(folder, "owl") == ["owls"]
    assert found(folder, "wagging") == []
    assert "1 documents" in secondlook("remove", folder, "owls", "cats")
    assert found(folder, "owl cat") == []
    assert "'owls'" in secondlook("remove", folder, "owls", fails=True)


def test_an_index_in_process_says_how_to_change_it(corpus, tmp_path):
    path, folder = corpus("corpus.jsonl", CORPUS), tmp_path / "my.index"
    secondlook("index", path, folder)
    assert "--replace" in secondlook("add", folder, path, fails=True)
    assert "--replace" in secondlook("remove", folder, "cats", fails=True)


def test_a_cluster_that_is_not_there_is_one_line(corpus, tmp_path):
    path = corpus("corpus.jsonl", CORPUS)
    options = ["--engine", "opensearch", "--name", "x", "--url", "http://127.0.0.1:9"]
    complaint = secondlook("index", path, tmp_path / "i", *options, fails=True)
    assert complaint.count("\n") == 1
    assert "cannot reach the cluster at http://127.0.0.1:9" in complaint


def test_a_password_is_neither_taken_from_a_url_nor_shown(corpus, tmp_path):
    path = corpus("corpus.jsonl", CORPUS)
    options = ["--engine", "opensearch", "--url", "https://eve:s3cret@localhost:9200"]
    complaint = secondlook("index", path, tmp_path / "i", *options, fails=True)
    assert "OPENSEARCH_PASSWORD" in complaint
    assert "s3cret" not in complaint


def test_a_folder_whose_name_no_index_can_have_asks_for_a_name(corpus, tmp_path):
    path = corpus("corpus.jsonl", CORPUS)
    complaint = secondlook(
        "index", path, tmp_path / "My Index", "--engine", "opensearch", fails=True
    )
    assert "choose a --name" in complaint
