"""A search of the server that is re-ranked from the vectors of its index."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest
import torch

import tiny
from invented import write_deep_sea
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.score.ranker import Ranker
from secondlook.score.state_scorer import StateScorer
from secondlook.score.torch_backend import TorchBackend
from secondlook.serve.by_vectors import VectorScoring
from secondlook.serve.index import ServedIndex
from secondlook.serve.metrics import Metrics
from secondlook.serve.queue import ScoringQueue
from secondlook.serve.serving import Serving
from secondlook.types import Document, Query
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
        given = {"vectors": tiny.half_separate(folder / "open"), "states": True}
        build_index(folder / "corpus.jsonl", folder / "states", **given)
    return folder


def serving(data, name, index="index"):
    source = str(data / name)
    load = lambda at: Ranker.load(at, device="cpu")  # noqa: E731
    return Serving({name: source}, load, index=ServedIndex.at(data / index))


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


def test_texts_that_changed_since_they_were_encoded_are_read(data, monkeypatch):
    """An attached index is written to by others; the best window of a vector may not be there."""
    fetch, changed = HybridIndex.fetch, "what the tide is now"
    monkeypatch.setattr(
        HybridIndex,
        "fetch",
        lambda self, ids: [replace(one, text=changed) for one in fetch(self, ids)],
    )
    answer, _ = ask(serving(data, "windows"))
    assert not answer["by_vectors"]
    ranker = Ranker.load(data / "windows", device="cpu")
    for hit in answer["hits"]:
        [read] = ranker.encode([(Query("q", WORDS), Document(hit["id"], changed, hit["title"]))])
        expected = ranker.score_encoded([read])
        assert hit["raw_score"] == pytest.approx(expected.scores[0], abs=1e-3)
        start, end = read.spans[expected.best[0]]
        assert hit["passage"] == {"start": start, "end": end, "text": changed[start:end]}


def test_scores_start_from_states_and_are_those_of_pairs(data, monkeypatch):
    answer, figures = ask(serving(data, "open", "states"), k=6)
    assert (answer["by_states"], answer["by_vectors"], answer["partial"]) == (True, False, False)
    assert 'secondlook_vector_documents_total{ranker="open"}' in figures
    ranker = Ranker.load(data / "open", device="cpu")
    texts = [Document(hit["id"], hit["text"], hit["title"]) for hit in answer["hits"]]
    expected = ranker.score([(Query("q", WORDS), text) for text in texts])
    assert [hit["raw_score"] for hit in answer["hits"]] == pytest.approx(expected, abs=1e-2)
    monkeypatch.setattr(StateScorer, "score_until", lambda self, pairs, _: self.score(pairs[:2]))
    partial, figures = ask(serving(data, "open", "states"), k=6)  # the deadline came after two
    assert partial["partial"]
    scored = [hit for hit in partial["hits"] if hit["raw_score"] is not None]
    assert {hit["first_rank"] for hit in scored} == {1, 2}
    assert [hit["first_rank"] for hit in partial["hits"][2:]] == [3, 4, 5, 6]
    assert 'secondlook_vector_documents_total{ranker="open"} 2.0' in figures


def test_vectors_of_a_ranker_that_was_not_loaded_are_not_scored_with(data, tmp_path):
    """Its folder and the index were made anew, and nobody has said so with SIGHUP."""
    for name in ("base", "windows", "index"):
        shutil.copytree(data / name, tmp_path / name)
    shutil.copy(data / "corpus.jsonl", tmp_path)
    served = serving(tmp_path, "windows")
    other = tiny.encoder()
    with torch.no_grad():
        for weights in other.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    tiny.save(other, tmp_path / "base")
    windows, made = {"window": 4, "stride": 2}, tmp_path / "windows"
    warm(tmp_path / "base", made, separate_layers="all", replace=True, **windows)
    build_index(tmp_path / "corpus.jsonl", tmp_path / "index", vectors=made, replace=True)
    loaded = served.queues["windows"].ranker
    answer, _ = ask(served)
    assert not answer["by_vectors"]
    texts = [Document(hit["id"], hit["text"], hit["title"]) for hit in answer["hits"]]
    expected = loaded.score([(Query("q", WORDS), text) for text in texts])
    assert [hit["raw_score"] for hit in answer["hits"]] == pytest.approx(expected, abs=1e-3)


def test_another_ranker_reads_the_documents(data):
    answer, _ = ask(serving(data, "half"))
    assert not answer["by_vectors"]
    assert len(answer["hits"]) == 5


def test_the_first_stage_of_the_server_is_hybrid_where_there_are_vectors(data):
    answer, _ = ask(serving(data, "half"), query="bogus")  # no document has the word
    assert len(answer["hits"]) == 5


def test_a_short_deadline_lets_vectors_choose_what_the_ranker_scores(data, monkeypatch):
    """The ranker scores two of the candidates: those nearest to the query's vector."""
    real = ScoringQueue.score

    async def only_two(self, pairs, until):
        outcome = await real(self, pairs, until)
        outcome.scored[2:] = False
        return outcome.first_scored()

    monkeypatch.setattr(ScoringQueue, "affordable", lambda *_: 2)
    monkeypatch.setattr(ScoringQueue, "score", only_two)
    served = serving(data, "half")
    answer, figures = ask(served, k=6)
    assert answer["cascade"] == 2
    assert answer["partial"]
    assert not answer["by_vectors"]
    texts = [Document(hit["id"], hit["text"], hit["title"]) for hit in answer["hits"]]
    query = Query("q", WORDS)
    order = VectorScoring(ServedIndex.at(data / "index")).nearest_first(query, texts)
    nearest = [texts[place].id for place in order]
    scored = [hit["id"] for hit in answer["hits"] if hit["raw_score"] is not None]
    assert set(scored) == set(nearest[:2])
    assert [hit["id"] for hit in answer["hits"][2:]] == nearest[2:]
    assert 'secondlook_cascade_documents_sum{ranker="half"} 2.0' in figures
    ranker = Ranker.load(data / "half", device="cpu")
    by_id = {one.id: one for one in texts}
    expected = ranker.score([(query, by_id[doc_id]) for doc_id in scored])
    given = [hit["raw_score"] for hit in answer["hits"][:2]]
    assert given == pytest.approx(expected, abs=1e-4)


def test_with_time_for_all_there_is_no_cascade(data, monkeypatch):
    answer, figures = ask(serving(data, "half"), k=6)
    assert answer["cascade"] is None
    assert not answer["partial"]
    assert "secondlook_cascade_documents_sum" not in figures
    monkeypatch.setattr(ScoringQueue, "affordable", lambda *_: 2)  # a bad guess changes nothing
    again, _ = ask(serving(data, "half"), k=6)
    assert again["cascade"] is None
    assert again["hits"] == answer["hits"]


def test_what_can_be_scored_in_a_time_goes_by_the_speed_seen():
    queue = ScoringQueue(SimpleNamespace(), "r", 100, Metrics())
    try:
        assert queue.affordable(time.monotonic() + 5) is None
        queue._speed.learn(seconds=2.0, pairs=100, tokens=1, characters=1)
        assert queue.affordable(time.monotonic() + 2) == pytest.approx(80, abs=2)
        queue._waiting = 40
        assert queue.affordable(time.monotonic() + 2) == pytest.approx(60, abs=2)
        assert queue.affordable(time.monotonic() - 1) == 1
    finally:
        queue.close()
