"""A server before a remote ranker: it passes requests on, and does without it where it fails."""

import asyncio
import threading
import time

import httpx
import pytest

from remote_service import Service, overlap, probability
from remote_service import ranker as remote_ranker
from secondlook import Document, Query
from secondlook.errors import RemoteProblem, Unwritable, WrongArgument
from secondlook.serve import remote_queue
from secondlook.serve.limits import Limits
from secondlook.serve.metrics import Metrics
from secondlook.serve.remote_queue import RemoteQueue
from secondlook.serve.serving import Serving
from served import QUERY, TEXTS, Engine, listening, serving

BEST = max(TEXTS, key=lambda text: overlap(QUERY, text))


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def ranker(service, tmp_path):
    address = "https://rank.example/v2/rerank#model=m,attempts=1,price_per_1000_searches=2"
    return remote_ranker(service, tmp_path, address)


def rerank(url, **more):
    body = {"query": QUERY, "documents": TEXTS} | more
    return httpx.post(f"{url}/v2/rerank", json=body)


def figures(url):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_all_apis_give_its_scores_and_the_service_is_asked_once(ranker, service):
    expected = [probability(overlap(QUERY, text)) for text in TEXTS]
    with listening(serving(ranker)) as url:
        cohere = rerank(url).json()
        jina = httpx.post(f"{url}/v1/rerank", json={"query": QUERY, "documents": TEXTS}).json()
        tei = httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": TEXTS}).json()
        info = httpx.get(f"{url}/info").json()["rankers"][0]
        told = figures(url)
    for results, name in (
        (cohere["results"], "relevance_score"),
        (jina["results"], "relevance_score"),
        (tei, "score"),
    ):
        given = {one["index"]: one[name] for one in results}
        assert [given[n] for n in range(len(TEXTS))] == pytest.approx(expected, abs=1e-6)
        assert [one[name] for one in results] == sorted(given.values(), reverse=True)
    assert "warnings" not in cohere["meta"]
    assert service.sizes == [len(TEXTS)]
    assert (info["form"], info["scores"], info["max_length"]) == ("remote", "remote service", None)
    assert told['secondlook_remote_requests_total{ranker="tiny"}'] == 1
    assert told['secondlook_remote_cached_total{ranker="tiny"}'] == 2 * len(TEXTS)
    assert told['secondlook_remote_cost_total{ranker="tiny"}'] == pytest.approx(0.002)
    assert told['secondlook_documents_total{ranker="tiny"}'] == 3 * len(TEXTS)


def test_where_it_fails_documents_stand_as_they_were_sent(ranker, service):
    service.script = [httpx.Response(503, text="our secret host")]
    with listening(serving(ranker)) as url:
        failed = rerank(url).json()
        again = rerank(url).json()
        told = figures(url)
    assert failed["partial"]
    assert [one["index"] for one in failed["results"]] == list(range(len(TEXTS)))
    assert {one["relevance_score"] for one in failed["results"]} == {0.0}
    [warning] = failed["meta"]["warnings"]
    assert warning.startswith("partial: the remote re-ranker failed")
    assert "secret" not in str(failed)
    assert "partial" not in again
    assert TEXTS[again["results"][0]["index"]] == BEST
    assert told['secondlook_scoring_errors_total{error="RemoteProblem",ranker="tiny"}'] == 1
    assert told['secondlook_partial_answers_total{ranker="tiny"}'] == 1


def test_what_a_service_repeats_of_a_request_is_not_logged(ranker, service, caplog):
    echo = [{"loc": ["body", "documents", 0], "msg": "too long", "input": TEXTS[0]}]
    service.script = [httpx.Response(422, json={"detail": echo}) for _ in range(3)]
    served = serving(ranker, explainer=_explainer())
    with listening(served) as url, caplog.at_level("INFO", "secondlook"):
        assert rerank(url).json()["partial"]
        asked = {"query": QUERY, "text": TEXTS[0]}
        assert httpx.post(f"{url}/v1/explain", json=asked).status_code == 503
    problems = [record.facts["problem"] for record in caplog.records if record.levelname == "ERROR"]
    assert len(problems) == 2
    assert all("rank.example/v2/rerank answered 422" in problem for problem in problems)
    assert TEXTS[0] not in str([vars(record) for record in caplog.records])
    with pytest.raises(RemoteProblem, match=TEXTS[0]):
        ranker.predict([("another", TEXTS[0])])


def test_it_takes_first_stage_scores_as_other_rankers_do(ranker):
    first = [float(place) for place in range(len(TEXTS))]
    assert ranker.rank(QUERY, TEXTS, first_stage_scores=first) == ranker.rank(QUERY, TEXTS)
    with pytest.raises(WrongArgument, match="1 `first_stage_scores` for 5 documents"):
        ranker.rank(QUERY, TEXTS, first_stage_scores=[1.0])
    with pytest.raises(WrongArgument, match="infinite or no number"):
        ranker.rank(QUERY, TEXTS, first_stage_scores=[*first[1:], float("nan")])


def test_a_search_falls_back_to_the_first_stage(ranker, service):
    engine = Engine(Document(f"d{n}", text) for n, text in enumerate(TEXTS))
    service.script = [httpx.ConnectError("gone")]
    with listening(serving(ranker, index=engine)) as url:
        asked = {"query": "tide river sea"}
        failed = httpx.post(f"{url}/v1/search", json=asked).json()
        ranked = httpx.post(f"{url}/v1/search", json=asked).json()
    assert failed["partial"]
    assert [hit["first_rank"] for hit in failed["hits"]] == [1, 2, 3, 4]
    assert {hit["score"] for hit in failed["hits"]} == {None}
    assert not ranked["partial"]
    scores = [hit["raw_score"] for hit in ranked["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert ranked["score_meaning"] == "Scores from 0 to 1, as rank.example m gives them."


def test_a_service_that_keeps_failing_is_left_alone(ranker, service):
    service.script = [httpx.Response(500)] * 5
    served = serving(ranker)
    served.queues["tiny"].breaker.rest = 3600
    with listening(served) as url:
        for n in range(8):
            assert rerank(url, query=f"tide {n}").json()["partial"]
        assert len(service.asked) == 5
        assert 'error="left alone"' in httpx.get(f"{url}/metrics").text


def test_kept_scores_need_no_service_and_say_nothing_of_it(ranker, service):
    served = serving(ranker)
    breaker = served.queues["tiny"].breaker
    breaker.rest = 0.5
    with listening(served) as url:
        rerank(url)
        service.script = [httpx.Response(500)] * 100
        for n in range(5):
            assert rerank(url, query=f"tide {n}").json()["partial"]
        until_half_open(breaker)
        asked = len(service.asked)
        again = rerank(url).json()
    assert "partial" not in again
    assert TEXTS[again["results"][0]["index"]] == BEST
    assert len(service.asked) == asked
    assert breaker.state == "half-open"


def until_half_open(breaker):
    assert breaker.state != "closed"
    while breaker.state == "open":
        time.sleep(0.05)


def test_a_folder_that_keeps_no_scores_is_refused_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path / "file"))
    with pytest.raises(Unwritable, match="SECONDLOOK_CACHE"):
        serving(remote_ranker(Service(), None))
    serving(remote_ranker(Service(), None, "https://rank.example/v2/rerank#cache=off"))


def test_kept_scores_that_cannot_be_read_are_no_failure_of_the_service(ranker, monkeypatch):
    served = serving(ranker)

    def unreadable(digests):
        raise Unwritable("scores.sqlite: disk I/O error")

    monkeypatch.setattr(ranker.client.open_cache(), "get", unreadable)
    with listening(served) as url:
        [warning] = rerank(url).json()["meta"]["warnings"]
    assert warning.startswith("partial: the kept scores cannot be read")
    assert not served.queues["tiny"].breaker.failing


def test_a_limit_of_requests_per_minute_is_no_failure_of_the_service(service, tmp_path):
    address = "https://rank.example/v2/rerank#requests_per_minute=1,attempts=1"
    served = serving(remote_ranker(service, tmp_path, address))
    with listening(served) as url:
        assert "partial" not in rerank(url).json()
        for n in range(8):
            [warning] = rerank(url, query=f"tide {n}").json()["meta"]["warnings"]
            assert warning.startswith("partial: the limit of requests to the remote re-ranker")
        assert len(service.asked) == 1
        assert 'error="RateLimitReached"' in httpx.get(f"{url}/metrics").text
    assert not served.queues["tiny"].breaker.failing


def test_requests_that_were_not_sent_do_not_make_the_service_look_broken(service, tmp_path):
    go = threading.Event()
    service.score = lambda query, text: float(go.wait(30))
    address = "https://rank.example/v2/rerank#concurrent=1,attempts=1"
    queue = RemoteQueue(remote_ranker(service, tmp_path, address), "tiny", 100, Metrics())
    pair = (Query("", QUERY), Document("", TEXTS[0]))

    async def story():
        first = asyncio.create_task(queue.score([pair], time.monotonic() + 30))
        while not service.asked:
            await asyncio.sleep(0.005)
        late = await queue.score([pair], time.monotonic() + 2.2)
        failing = queue.breaker.failing
        go.set()
        return late, failing, await first

    late, failing, first = asyncio.run(story())
    assert (late.partial, failing, first.partial) == (True, False, False)


def test_requests_that_wait_for_each_other_do_not_make_the_service_look_broken(
    service, tmp_path, monkeypatch
):
    monkeypatch.setattr(remote_queue, "_PATIENCE", 1.0)
    service.score = lambda query, text: float(time.sleep(0.05) or 0)
    address = "https://rank.example/v2/rerank#batch=1,concurrent=2,attempts=1"
    queue = RemoteQueue(remote_ranker(service, tmp_path, address), "tiny", 10_000, Metrics())

    def ask(number):
        pairs = [(Query("", f"query {number}"), Document("", f"text {n}")) for n in range(120)]
        return queue.score(pairs, time.monotonic() + 2)

    async def story():
        return await asyncio.gather(*(ask(number) for number in range(8)))

    outcomes = asyncio.run(story())
    assert all(outcome.partial for outcome in outcomes)
    assert service.asked
    assert not queue.breaker.failing


def test_a_service_that_is_silent_looks_broken(service, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_queue, "_PATIENCE", 0.2)
    go = threading.Event()
    service.score = lambda query, text: float(go.wait(30))
    queue = RemoteQueue(remote_ranker(service, tmp_path), "tiny", 100, Metrics())
    pair = (Query("", QUERY), Document("", TEXTS[0]))
    late = asyncio.run(queue.score([pair], time.monotonic() + 0.4))
    go.set()
    assert late.partial
    assert queue.breaker.failing


def test_a_limit_of_cost_is_no_failure_of_the_service(service, tmp_path):
    address = "https://rank.example/v2/rerank#price_per_1000_searches=1000,max_cost=1"
    served = serving(remote_ranker(service, tmp_path, address))
    with listening(served) as url:
        assert "partial" not in rerank(url).json()
        for n in range(8):
            [warning] = rerank(url, query=f"tide {n}").json()["meta"]["warnings"]
            assert warning.startswith("partial: the limit of what the remote re-ranker may cost")
        assert len(service.asked) == 1
    assert not served.queues["tiny"].breaker.failing


def test_a_reload_renews_no_limit_of_cost(service):
    address = "https://rank.example/v2/rerank#price_per_1000_searches=1000,max_cost=2,cache=off"
    served = Serving({"tiny": "tiny"}, lambda _: remote_ranker(service, None, address))

    async def failure(n):
        pair = (Query("", f"tide {n}"), Document("", TEXTS[0]))
        return (await served.queues["tiny"].score([pair], time.monotonic() + 20)).failure

    async def story():
        failures = [await failure(0)]
        await served.reload()
        failures += [await failure(1), await failure(2)]
        await served.drain(20)
        return failures

    first, second, third = asyncio.run(story())
    assert (first, second) == ("", "")
    assert third.startswith("the limit of what the remote re-ranker may cost")
    assert 'secondlook_remote_cost_total{ranker="tiny"} 2.0' in served.metrics.text().decode()


def test_a_request_that_fails_adds_nothing_to_the_cost_that_is_told(service):
    """Another one tells the cost while it is under way."""
    begun, go = threading.Event(), threading.Event()

    def score(query, text):
        if query == "fails":
            begun.set()
            assert go.wait(20)
            raise httpx.ConnectError("gone")
        return overlap(query, text)

    service.score = score
    address = "https://rank.example/v2/rerank#price_per_1000_searches=1000,cache=off,attempts=1"
    served = Serving({"tiny": "tiny"}, lambda _: remote_ranker(service, None, address))

    async def ask(text):
        pair = (Query("", text), Document("", TEXTS[0]))
        return await served.queues["tiny"].score([pair], time.monotonic() + 20)

    async def story():
        failing = asyncio.create_task(ask("fails"))
        await asyncio.to_thread(begun.wait, 20)
        await ask("tide")
        go.set()
        failed = await failing
        await ask("sea")
        await served.drain(20)
        return failed

    assert asyncio.run(story()).failure == "the remote re-ranker failed"
    assert 'secondlook_remote_cost_total{ranker="tiny"} 2.0' in served.metrics.text().decode()


@pytest.mark.parametrize(
    "answer", ["[" * 100_000, '[{"index": Infinity, "score": 1}]', '[{"index": 0, "score": 1e39}]']
)
def test_an_answer_that_cannot_be_used_is_a_failure_of_the_service(answer, service, tmp_path):
    service.script = [httpx.Response(200, text=answer)]
    served = serving(remote_ranker(service, tmp_path, "https://rank.example/rerank"))
    with listening(served) as url:
        failed = rerank(url, documents=TEXTS[:1], raw_scores=True)
    assert failed.status_code == 200
    assert failed.json()["partial"]
    assert failed.json()["results"][0]["raw_score"] is not None
    assert served.queues["tiny"].breaker.failing


def test_a_reload_leaves_no_threads_of_the_old_ranker(service, tmp_path):
    def load(_):
        return remote_ranker(service, tmp_path, "https://rank.example/v2/rerank#concurrent=8")

    before = set(threading.enumerate())
    served = Serving({"tiny": "tiny"}, load)
    document = Document("", TEXTS[0])

    def living():
        own = set(threading.enumerate()) - before
        return sum(thread.name.startswith(("engine", "request")) for thread in own)

    async def story():
        for n in range(3):
            pair = (Query("", f"tide {n}"), document)
            scored = await served.queues["tiny"].score([pair], time.monotonic() + 20)
            assert not scored.partial
            if n == 0:
                first = living()
            await served.reload()
            await asyncio.gather(*served._retired)
        return first

    most = asyncio.run(story())
    end = time.monotonic() + 10
    while living() > most and time.monotonic() < end:
        time.sleep(0.01)
    assert living() <= most


def test_a_slow_service_is_not_waited_for_beyond_the_deadline(ranker, service):
    go = threading.Event()
    service.score = lambda query, text: float(go.wait(5))
    with listening(serving(ranker, limits=Limits(deadline=0.4))) as url:
        began = time.monotonic()
        late = rerank(url).json()
        took = time.monotonic() - began
        go.set()
    assert late["partial"]
    assert "was late" in late["meta"]["warnings"][0]
    assert took < 2


def test_only_so_many_documents_wait(ranker, service):
    go = threading.Event()
    service.score = lambda query, text: float(go.wait(10))
    limits = Limits(queue_pairs=len(TEXTS) + 1)
    answers = []
    with listening(serving(ranker, limits=limits)) as url:
        first = threading.Thread(target=lambda: answers.append(rerank(url)))
        first.start()
        while not service.asked:
            time.sleep(0.01)
        full = rerank(url, query="another")
        go.set()
        first.join()
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")
    assert answers[0].status_code == 200


def test_words_are_explained_by_leaving_them_out(ranker, service):
    with listening(serving(ranker, explainer=_explainer())) as url:
        asked = {"query": "the tide", "text": "A tide, high."}
        answer = httpx.post(f"{url}/v1/explain", json=asked).json()["explanation"]
    words = {word["text"]: word for word in answer["document_words"]}
    assert list(words) == ["A", "tide", ",", "high", "."]
    assert answer["query_words"][1]["matched"] == words["tide"]["matched"] == "word"
    lost = overlap("the tide", "A tide, high.") - overlap("the tide", "A , high.")
    assert words["tide"]["attribution"] == pytest.approx(lost, abs=1e-4)
    assert words[","]["attribution"] == 0
    assert "shows no attention" in answer["attention_note"]


def test_an_explanation_that_fails_costs_no_hits(ranker, service):
    engine = Engine([Document("d", "tides of the sea")])
    with listening(serving(ranker, index=engine, explainer=_explainer())) as url:
        asked = {"query": "the sea"}
        found = httpx.post(f"{url}/v1/search", json=asked).json()
        service.script = [httpx.Response(503, text="our secret host")] * 2
        search = httpx.post(f"{url}/v1/search", json=asked | {"explain": True}).json()
        alone = httpx.post(f"{url}/v1/explain", json=asked | {"text": "a river"})
        again = httpx.post(f"{url}/v1/search", json=asked | {"explain": True}).json()
    assert search["hits"] == found["hits"]
    assert "log says why" in search["explanation_failure"]
    assert alone.status_code == 503
    assert "secret" not in f"{search}{alone.text}"
    assert again["explanation_failure"] is None
    assert again["hits"][0]["explanation"]["query_words"]


def test_a_silent_service_holds_no_explanation_up_beyond_the_deadline(service, tmp_path):
    """One thread explains: were it held, all others would get 504."""

    def silent(request):
        if b"silent" not in request.content:
            return service(request)
        time.sleep(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("silent")

    remote = remote_ranker(silent, tmp_path)
    served = serving(remote, explainer=_explainer(), limits=Limits(deadline=2))
    with listening(served) as url:

        def explain(query):
            asked = {"query": query, "text": TEXTS[0]}
            return httpx.post(f"{url}/v1/explain", json=asked, timeout=30).status_code

        assert explain("silent tide") in (503, 504)
        assert explain("deep tide") == 200


def test_marks_need_no_vocabulary(ranker):
    engine = Engine([Document("d", "tides of the sea")])
    with listening(serving(ranker, index=engine, explainer=_explainer())) as url:
        asked = {"query": "sea tide", "marks": True}
        answer = httpx.post(f"{url}/v1/search", json=asked).json()
    marks = [(m["start"], m["end"], m["matched"]) for m in answer["hits"][0]["marks"]]
    assert marks == [(0, 5, "stem"), (13, 16, "word")]


def test_a_ranker_that_is_down_when_the_server_starts_is_no_reason_not_to(ranker, service):
    service.script = [RemoteProblem("not asked before a request comes")]
    with listening(serving(ranker)) as url:
        assert httpx.get(f"{url}/ready").status_code == 200
    assert service.asked == []


def _explainer():
    from secondlook.serve.explaining import PairExplainer

    return PairExplainer()
