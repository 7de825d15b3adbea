"""A search of the server that is re-ranked from the vectors of its index."""

from __future__ import annotations

import httpx
import pytest

import tiny
from invented import write_deep_sea
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend
from secondlook.serve.index import ServedIndex
from secondlook.serve.serving import Serving
from secondlook.workflows.index import build_index
from secondlook.workflows.warm import warm
from served import listening

WORDS = "what is the tide"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_deep_sea(folder)
    base = tiny.save(tiny.encoder(), folder / "base")
    warm(base, folder / "windows", separate_layers="all", window=4, stride=2)
    warm(base, folder / "half", separate_layers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
        build_index(folder / "corpus.jsonl", folder / "index", vectors=folder / "windows")
    return folder


def serving(data, name):
    source = str(data / name)
    load = lambda at: Ranker.load(at, device="cpu")  # noqa: E731
    return Serving({name: source}, load, index=ServedIndex.at(data / "index"))


def ask(served, **more):
    with listening(served) as url:
        answer = httpx.post(f"{url}/v1/search", json={"query": WORDS, "k": 5} | more, timeout=60)
        figures = httpx.get(f"{url}/metrics").text
    assert answer.status_code == 200, answer.text
    return answer.json(), figures


def test_scores_come_from_vectors_and_are_those_of_pairs(data, monkeypatch):
    calls = []
    logits = TorchBackend.logits
    monkeypatch.setattr(
        TorchBackend, "logits", lambda self, rows: calls.append(len(rows)) or logits(self, rows)
    )
    served = serving(data, "windows")
    calls.clear()  # what loading takes
    answer, figures = ask(served)
    assert answer["by_vectors"]
    assert calls == []
    assert 'secondlook_vector_documents_total{ranker="windows"}' in figures
    monkeypatch.setattr("secondlook.serve.by_vectors.stored_scorer", lambda *_: None)
    by_pairs, _ = ask(serving(data, "windows"))
    assert not by_pairs["by_vectors"]
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in by_pairs["hits"]]
    for one, other in zip(answer["hits"], by_pairs["hits"], strict=True):
        assert one["raw_score"] == pytest.approx(other["raw_score"], abs=1e-3)
        assert one["passage"] == other["passage"]


def test_another_ranker_reads_the_documents(data):
    answer, _ = ask(serving(data, "half"))
    assert not answer["by_vectors"]
    assert len(answer["hits"]) == 5


def test_the_first_stage_of_the_server_is_hybrid_where_there_are_vectors(data):
    answer, _ = ask(serving(data, "half"), query="bogus")  # no document has the word
    assert len(answer["hits"]) == 5
