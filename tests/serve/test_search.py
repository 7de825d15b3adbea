"""Both looks in one call, and what happens when the engine fails."""

import time

import httpx
import pytest

from secondlook import Document, Query
from secondlook.errors import CheckpointProblem, WrongArgument
from secondlook.model.settings import FusionSettings
from secondlook.rank.searcher import Searcher
from secondlook.serve.breaker import Breaker
from secondlook.serve.limits import Limits
from served import TEXTS, Engine, Watched, listening, serving

LONG = "fish " * 30 + "the tide of the deep sea " + "river " * 30


@pytest.fixture
def engine():
    return Engine(Document(f"d{n}", text, title="a") for n, text in enumerate(TEXTS))


def search(url, words="tide river sea", **more):
    return httpx.post(f"{url}/v1/search", json={"query": words} | more)


def test_hits_have_both_ranks_and_scores(ranker, engine):
    with listening(serving(ranker, index=engine)) as url:
        answer = search(url, k=2).json()
        assert httpx.get(f"{url}/info").json()["engine"] == "bm25s"
    (first,) = engine.retrieve([Query("", "tide river sea")], 100)
    texts = engine.fetch([hit.doc_id for hit in first.hits])
    scores = ranker.score([(Query("", "tide river sea"), text) for text in texts])
    assert answer["found"] == len(first.hits) == 4
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2]
    assert answer["hits"][0]["raw_score"] == pytest.approx(max(scores), abs=1e-3)
    for hit in answer["hits"]:
        before = first.hits[hit["first_rank"] - 1]
        assert (hit["id"], hit["first_score"]) == (before.doc_id, before.score)
        assert hit["score"] == pytest.approx(
            float(ranker.relevance(scores)[hit["first_rank"] - 1]), abs=1e-3
        )
        assert hit["passage"] is None
    assert not answer["partial"]


@pytest.mark.parametrize("limits", [Limits(), Limits(documents=2)])
def test_hits_below_the_depth_follow_as_they_stood(ranker, engine, limits):
    depth = min(3, limits.documents)
    with listening(serving(ranker, index=engine, limits=limits)) as url:
        answer = search(url, k=4, depth=3).json()
        figures = httpx.get(f"{url}/metrics").text
    assert (answer["found"], answer["partial"]) == (depth, False)
    assert f'secondlook_documents_total{{ranker="tiny"}} {depth}.0' in figures
    hits = answer["hits"]
    assert {hit["first_rank"] for hit in hits[:depth]} == set(range(1, depth + 1))
    assert None not in [hit["score"] for hit in hits[:depth]]
    assert [hit["first_rank"] for hit in hits[depth:]] == list(range(depth + 1, 5))
    for name in ("score", "raw_score", "final_score"):
        assert {hit[name] for hit in hits[depth:]} == {None}


@pytest.fixture(scope="module")
def fused(ranker):
    return type(ranker)(
        ranker.settings.model_copy(update={"fusion": FusionSettings(weight=0.9)}),
        ranker.tokenizer,
        ranker.backend,
    )


def test_a_fused_ranker_ranks_as_rerank_does(fused, engine):
    with listening(serving(fused, index=engine)) as url:
        hits = search(url).json()["hits"]
        asked = {"query": "tide river sea", "documents": TEXTS}
        told = httpx.post(f"{url}/v2/rerank", json=asked).json()["meta"]["warnings"]
    assert "the order is by the ranker's scores alone" in told[0]
    query = Query("q", "tide river sea")
    (expected,) = Searcher(engine, engine, fused, fused.fusion).search([query], 10)
    assert [hit["id"] for hit in hits] == [hit.doc_id for hit in expected.hits]
    for hit, same in zip(hits, expected.hits, strict=True):
        assert hit["final_score"] == pytest.approx(same.score, abs=1e-3)


def test_first_stage_scores_make_the_rerank_routes_rank_as_search_does(fused):
    asked = "tide river sea"
    engine = Engine(Document(f"d{n}", text) for n, text in enumerate(TEXTS))  # a route has no title
    with listening(serving(fused, index=engine)) as url:
        hits = search(url, asked).json()["hits"]
        sent = sorted(hits, key=lambda hit: hit["id"])  # in an order of its own
        body = {
            "query": asked,
            "documents": [hit["text"] for hit in sent],
            "first_stage_scores": [hit["first_score"] for hit in sent],
        }
        answers = [httpx.post(f"{url}/{version}/rerank", json=body) for version in ("v1", "v2")]
        wrong = body | {"first_stage_scores": [1.0]}
        refused = [httpx.post(f"{url}/{version}/rerank", json=wrong) for version in ("v1", "v2")]
        infinite = httpx.post(f"{url}/v2/rerank", json=body | {"first_stage_scores": [1e300] * 4})
    assert len({hit["final_score"] for hit in hits}) == len(hits) == 4
    for answer in answers:
        results, told = answer.json()["results"], answer.json()["meta"].get("warnings", [])
        assert [sent[one["index"]]["id"] for one in results] == [hit["id"] for hit in hits]
        for one, hit in zip(results, hits, strict=True):
            assert one["final_score"] == pytest.approx(hit["final_score"], abs=1e-6)
            assert one["relevance_score"] == pytest.approx(hit["score"], abs=1e-6)
        assert not any("scores alone" in warning for warning in told)
    ranked = fused.rank(asked, body["documents"], first_stage_scores=body["first_stage_scores"])
    assert [sent[one["corpus_id"]]["id"] for one in ranked] == [hit["id"] for hit in hits]
    for answer in refused:
        assert answer.status_code == 422
        assert "1 scores for 4 documents" in answer.json()["message"]
    assert infinite.status_code == 422
    with pytest.raises(WrongArgument, match="1 `first_stage_scores` for 4 documents"):
        fused.rank(asked, body["documents"], first_stage_scores=[1.0])
    for wrong_score in (float("nan"), float("inf")):
        with pytest.raises(WrongArgument, match="infinite or no number"):
            fused.rank(asked, TEXTS[:2], first_stage_scores=[1.0, wrong_score])


def test_first_stage_scores_change_nothing_where_the_ranker_was_not_tuned_to_add_them(ranker):
    body = {"query": "tide", "documents": TEXTS}
    first = [float(place) for place in range(len(TEXTS))]
    with listening(serving(ranker)) as url:
        alone = httpx.post(f"{url}/v2/rerank", json=body).json()["results"]
        both = body | {"first_stage_scores": first, "raw_scores": True}
        results = httpx.post(f"{url}/v2/rerank", json=both).json()["results"]
    assert [one["index"] for one in results] == [one["index"] for one in alone]
    assert [one["final_score"] for one in results] == [one["raw_score"] for one in results]
    assert "final_score" not in alone[0]
    assert ranker.rank("tide", TEXTS, first_stage_scores=first) == ranker.rank("tide", TEXTS)


def test_what_the_first_stage_has_first_is_scored_first(ranker, monkeypatch):
    monkeypatch.setattr("secondlook.serve.queue._AT_ONCE", 1)
    monkeypatch.setattr("secondlook.serve.queue._FEWEST_TOKENS", 1)  # a pair at a time
    monkeypatch.setattr("secondlook.serve.queue._CHUNK_SECONDS", 0)

    class StopsAfterTwo(Watched):
        def score_encoded(self, encoded):
            if len(self.chunks) == 2:
                self.go.clear()
            return super().score_encoded(encoded)

    watched = StopsAfterTwo(ranker)
    body = {"query": "tide", "documents": TEXTS, "first_stage_scores": [1, 5, 2, 4, 3]}
    with listening(serving(watched, limits=Limits(deadline=2))) as url:
        answer = httpx.post(f"{url}/v2/rerank", json=body).json()
        watched.go.set()
    assert watched.chunks[:2] == [[TEXTS[1]], [TEXTS[3]]]
    results = answer["results"]
    assert {one["index"] for one in results if "final_score" in one} == {1, 3}
    assert [one["index"] for one in results[2:]] == [4, 2, 0]
    assert answer["meta"]["warnings"][0].startswith("partial: 2 of 5 documents were scored")


def test_at_the_deadline_documents_stand_by_their_first_stage_scores(fused):
    held = Watched(fused)
    held.go.clear()
    body = {"query": "tide", "documents": TEXTS[:3], "first_stage_scores": [1.0, 3.0, 2.0]}
    with listening(serving(held, limits=Limits(deadline=0.3))) as url:
        answer = httpx.post(f"{url}/v2/rerank", json=body).json()
        held.go.set()
    assert [one["index"] for one in answer["results"]] == [1, 2, 0]
    assert all("final_score" not in one for one in answer["results"])
    assert answer["meta"]["warnings"][0].endswith("the others stand last, by first_stage_scores")


def test_the_best_passage_of_a_long_document_is_shown(tiny_folder, ranker):
    from secondlook.encode.settings import WindowSettings

    encode = ranker.settings.encode.model_copy(
        update={"windows": WindowSettings(length=10, stride=5)}
    )
    windowed = type(ranker)(
        ranker.settings.model_copy(update={"encode": encode}),
        _tokenizer(tiny_folder),
        ranker.backend,
    )
    with listening(serving(windowed, index=Engine([Document("long", LONG)]))) as url:
        (hit,) = search(url, "tide").json()["hits"]
    passage = hit["passage"]
    assert LONG[passage["start"] : passage["end"]] == passage["text"]
    assert len(passage["text"].split()) == 10
    alone = windowed.score([(Query("", "tide"), Document("", passage["text"]))])
    assert hit["raw_score"] == pytest.approx(float(alone[0]), abs=1e-3)


def _tokenizer(folder):
    from secondlook.model.checkpoint import read_tokenizer

    return read_tokenizer(folder)


def test_at_the_deadline_the_first_looks_order_stands(ranker, engine):
    held = Watched(ranker)
    held.go.clear()
    with listening(serving(held, index=engine, limits=Limits(deadline=0.3))) as url:
        answer = search(url).json()
        held.go.set()
    assert answer["partial"]
    assert [hit["first_rank"] for hit in answer["hits"]] == [1, 2, 3, 4]
    assert {hit["score"] for hit in answer["hits"]} == {None}


def test_an_explainer_is_asked_for_the_hits_that_are_shown(ranker, engine):
    class Explainer:
        def explain(self, ranker, query, document, should_stop, until):
            return {"words": document.text.split()}

    with listening(serving(ranker, index=engine, explainer=Explainer())) as url:
        hits = search(url, k=2, explain=True).json()["hits"]
        assert [hit["explanation"] for hit in hits] == [{"words": h["text"].split()} for h in hits]
        [scored, below] = search(url, k=2, depth=1, explain=True).json()["hits"]
        assert (scored["explanation"] is None, below["explanation"]) == (False, None)
        assert search(url).json()["hits"][0]["explanation"] is None
    with listening(serving(ranker, index=engine)) as url:
        assert search(url, explain=True).status_code == 422


def test_a_ranker_that_cannot_be_explained_is_no_reason_to_ask_again(ranker):
    class Explainer:
        def explain(self, ranker, query, document, should_stop, until):
            raise CheckpointProblem("no attention to look at")

    with listening(serving(ranker, explainer=Explainer())) as url:
        answer = httpx.post(f"{url}/v1/explain", json={"query": "tide", "text": "a river"})
    assert (answer.status_code, answer.headers.get("retry-after")) == (500, None)


def test_nothing_found_is_an_answer(ranker, engine):
    with listening(serving(ranker, index=engine)) as url:
        answer = search(url, "zebra").json()
    assert (answer["hits"], answer["partial"]) == ([], False)


def test_without_an_index_there_is_no_search(url):
    answer = search(url)
    assert answer.status_code == 404
    assert "--index" in answer.json()["message"]


def test_an_engine_that_is_down_is_left_alone_and_found_again(ranker, engine):
    breaker = Breaker(failures=2, rest=3.0)
    engine.down = True
    with listening(serving(ranker, index=engine, breaker=breaker)) as url:
        for _ in range(2):
            answer = search(url)
            assert answer.status_code == 503
            assert "secret" not in answer.text
        refused = search(url)
        assert (refused.status_code, engine.asked) == (503, 2)
        assert int(refused.headers["retry-after"]) >= 1
        assert httpx.get(f"{url}/ready").json() == {"status": "ready", "engine": "failing"}
        assert "circuit_open 1.0" in httpx.get(f"{url}/metrics").text
        time.sleep(3.1)
        assert search(url).status_code == 503  # on trial, and failed
        assert engine.asked == 3
        engine.down = False
        time.sleep(3.1)
        assert search(url).status_code == 200
        assert httpx.get(f"{url}/ready").json()["engine"] == "ok"
        asked = {"query": "a", "texts": TEXTS}
        assert httpx.post(f"{url}/rerank", json=asked).status_code == 200


def test_a_slow_engine_is_a_504_within_the_deadline(ranker, engine):
    engine.seconds = 5.0
    with listening(serving(ranker, index=engine, limits=Limits(deadline=0.3))) as url:
        began = time.monotonic()
        answer = search(url)
        assert time.monotonic() - began < 4.5
    assert answer.status_code == 504
    assert "in time" in answer.json()["message"]


def test_clients_in_a_hurry_do_not_make_the_engine_look_broken(ranker, engine):
    engine.seconds = 0.3
    with listening(serving(ranker, index=engine, breaker=Breaker(failures=1, rest=60))) as url:
        hurried = httpx.post(
            f"{url}/v1/search", json={"query": "tide"}, headers={"X-Deadline-Seconds": "0.1"}
        )
        assert hurried.status_code == 504
        assert search(url).status_code == 200


def test_a_breaker_lets_one_try_after_its_rest():
    now = [0.0]
    breaker = Breaker(failures=2, rest=10, clock=lambda: now[0])
    breaker.failed()
    assert breaker.admit()
    breaker.failed()
    assert not breaker.admit()
    now[0] = 11
    assert breaker.state == "half-open"
    assert breaker.admit()
    assert not breaker.admit()
    breaker.left()
    assert breaker.admit()
    breaker.failed()
    assert breaker.state == "open"
    now[0] = 22
    assert breaker.admit()
    breaker.succeeded()
    assert breaker.state == "closed"
