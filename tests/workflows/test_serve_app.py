"""The server as an app, as a program makes it."""

import pytest
from fastapi.testclient import TestClient

import tiny
from secondlook.errors import SecondlookError
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.types import Document
from secondlook.workflows.serve import create_app


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    return tiny.save(tiny.classifier(), tmp_path_factory.mktemp("served") / "tiny")


def test_an_app_answers_in_a_server_of_ones_own(ranker, tmp_path, capsys):
    Bm25Index.build(tmp_path / "index", [Document("d", "the tide")], Bm25Settings())
    rankers = {"tiny": ranker, "other": str(ranker)}
    app = create_app(rankers, index=str(tmp_path / "index"), max_documents=2)
    with TestClient(app, base_url="http://localhost") as client:
        body = {"query": "the tide", "documents": ["a river", "the tide"]}
        ranked = client.post("/v2/rerank", json=body | {"model": "other"}).json()["results"]
        assert sorted(hit["index"] for hit in ranked) == [0, 1]
        too_many = client.post("/v2/rerank", json=body | {"documents": ["a"] * 3})
        assert too_many.status_code == 413
        assert client.post("/v1/search", json={"query": "tide"}).json()["hits"][0]["id"] == "d"
    assert capsys.readouterr() == ("", "")


def test_other_machines_need_keys(ranker):
    with pytest.raises(SecondlookError, match="give `keys`, a file"):
        create_app(str(ranker), host="0.0.0.0")
    with pytest.raises(TypeError, match="max_docs"):
        create_app(ranker, max_docs=2)
