"""Requests to a remote service: their shape, batches, retries, limits and what is kept."""

import gc
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import formatdate

import httpx
import numpy as np
import pytest

from remote_service import Service, client, overlap, probability, ranker
from secondlook.errors import CostLimitReached, RemoteProblem, Unwritable
from secondlook.remote import sender
from secondlook.remote.score_cache import digest
from secondlook.remote.sender import (
    DeadlinePassed,
    RateLimitReached,
    RequestRate,
    RetryPolicy,
    Unanswered,
)
from secondlook.types import Document, Query

QUERY = "where is the tide"
TEXTS = ["the tide of the sea", "a river", "where is it", "the tide is where the sea is"]
PATHS = ["/v2/rerank", "/v1/rerank", "/rerank", "/score"]


def pairs(texts=TEXTS, query=QUERY):
    return [(Query("q", query), Document(str(at), text)) for at, text in enumerate(texts)]


@pytest.mark.parametrize("path", PATHS)
def test_every_api_gives_the_same_raw_scores_and_relevance(path, tmp_path):
    service = Service()
    remote = ranker(service, tmp_path, f"https://rank.example{path}#model=m")
    raw = [overlap(QUERY, text) for text in TEXTS]
    np.testing.assert_allclose(remote.score(pairs()), raw, atol=1e-5)
    relevance = remote.predict([(QUERY, text) for text in TEXTS])
    np.testing.assert_allclose(relevance, [probability(one) for one in raw], atol=1e-6)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/rerank", {"model": "m", "query": "q", "documents": ["a", "b"], "top_n": 2}),
        (
            "/v1/rerank",
            {
                "model": "m",
                "query": "q",
                "documents": ["a", "b"],
                "top_n": 2,
                "return_documents": False,
            },
        ),
        (
            "/rerank",
            {
                "query": "q",
                "texts": ["a", "b"],
                "truncate": True,
                "raw_scores": True,
                "return_text": False,
            },
        ),
        ("/score", {"model": "m", "text_1": "q", "text_2": ["a", "b"]}),
    ],
)
def test_requests_have_the_shape_of_their_api(path, body, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK_KEY", "s3cret")
    service = Service()
    address = f"https://rank.example{path}#model=m,key=RANK_KEY"
    ranker(service, tmp_path, address).score(pairs(["a", "b"], "q"))
    [(asked, headers, sent)] = service.asked
    assert (asked, sent) == (path, body)
    assert headers["authorization"] == "Bearer s3cret"


def test_title_and_text_are_sent_as_one(tmp_path):
    service = Service()
    ranker(service, tmp_path).score([(Query("", "q"), Document("d", "a text", "A title"))])
    assert service.asked[0][2]["documents"] == ["A title a text"]


def test_documents_go_in_batches_and_repeated_ones_once(tmp_path):
    service = Service()
    remote = ranker(service, tmp_path, "https://rank.example/v2/rerank#batch=3,concurrent=2")
    texts = [f"the tide {n % 7}" for n in range(10)]
    scores = remote.score(pairs(texts) + pairs(TEXTS, "a river"))
    expected = [overlap(QUERY, text) for text in texts] + [overlap("a river", t) for t in TEXTS]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert sorted(service.sizes) == [1, 1, 3, 3, 3]


def test_what_was_scored_is_not_asked_again_by_anybody(tmp_path):
    service = Service()
    first = ranker(service, tmp_path).score(pairs())
    again = ranker(service, tmp_path)
    np.testing.assert_array_equal(again.score(pairs()), first)
    assert len(service.asked) == 1
    assert again.usage.cached == len(TEXTS)
    other = ranker(service, tmp_path, "https://rank.example/v2/rerank#model=other")
    other.score(pairs())
    assert len(service.asked) == 2


def test_nothing_is_kept_where_the_address_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path / "cache"))
    service = Service()
    for _ in range(2):
        ranker(service, None, "https://rank.example/v2/rerank#cache=off").score(pairs())
    assert len(service.asked) == 2
    assert not (tmp_path / "cache").exists()
    ranker(service, None).score(pairs())
    assert (tmp_path / "cache" / "remote-scores.sqlite").is_file()


def test_scores_that_cannot_be_kept_are_given_all_the_same(tmp_path, caplog):
    remote = ranker(Service(), tmp_path)
    full(remote.client.open_cache())
    for query in (QUERY, "a river"):
        raw = [overlap(query, text) for text in TEXTS]
        np.testing.assert_allclose(remote.score(pairs(query=query)), raw, atol=1e-5)
    [told] = caplog.records
    assert "disk is full" in told.getMessage()
    assert "SECONDLOOK_CACHE" in told.getMessage()


def full(cache):
    """As on a full disk."""
    [[pages]] = cache._connection.execute("pragma page_count").fetchall()
    cache._connection.execute(f"pragma max_page_count = {pages}")
    number = 0
    with suppress(Unwritable):
        while True:
            cache.put([(digest(str(number := number + 1)), 0.5)])


def test_kept_scores_are_all_there_or_none_and_nothing_is_sent(tmp_path):
    service = Service()
    remote = ranker(service, tmp_path)
    assert remote.kept(pairs()) is None
    scores = remote.score(pairs(TEXTS[:3]))
    assert remote.kept(pairs()) is None
    np.testing.assert_array_equal(remote.kept(pairs(TEXTS[:3])), scores)
    assert (len(service.asked), remote.usage.cached) == (1, 3)


def test_no_text_is_in_the_cache(tmp_path):
    remote = ranker(Service(), tmp_path)
    remote.score(pairs(["xylophone quartet"], "zither"))
    remote.client.close()
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert b"xylophone" not in content
        assert b"zither" not in content


def test_failures_are_tried_again_with_longer_waits(tmp_path):
    waits = []
    refused = [httpx.Response(503), httpx.ConnectError("no route"), httpx.Response(500)]
    service = Service(script=[*refused])
    remote = client(service, tmp_path, waits=waits)
    [scores] = remote.score([(QUERY, TEXTS)])
    assert len(scores) == len(TEXTS)
    assert len(service.asked) == 4
    assert remote.usage.retries == 3
    assert remote.usage.requests == 1
    for failures, wait in enumerate(waits, start=1):
        assert 0.25 * 2 ** (failures - 1) <= wait <= 0.5 * 2 ** (failures - 1)


@pytest.mark.parametrize(
    ("status", "times"),
    [(425, 2), (500, 2), (507, 2), (520, 2), (522, 2), (524, 2), (599, 2), (501, 1), (505, 1)],
)
def test_all_failures_of_a_server_are_tried_again_but_those_that_last(status, times):
    service = Service(script=[httpx.Response(status)] * 2)
    address = "https://rank.example/v2/rerank#attempts=2,cache=off"
    with pytest.raises(RemoteProblem, match=f"answered {status}"):
        client(service, None, address).score([(QUERY, TEXTS)])
    assert len(service.asked) == times


def test_retry_after_counts_in_seconds_and_as_a_date(tmp_path):
    waits = []
    later = formatdate(time.time() + 20, usegmt=True)
    script = [
        httpx.Response(429, headers={"Retry-After": "7"}),
        httpx.Response(429, headers={"Retry-After": later}),
    ]
    client(Service(script=script), tmp_path, waits=waits).score([(QUERY, TEXTS)])
    assert waits[0] == 7
    assert 15 <= waits[1] <= 20


def test_a_retry_after_that_is_no_date_does_not_count(tmp_path):
    waits = []
    never = httpx.Response(429, headers={"Retry-After": "Mon, 01 Jan 99999999999 00:00:00 GMT"})
    client(Service(script=[never]), tmp_path, waits=waits).score([(QUERY, TEXTS)])
    assert 0.25 <= waits[0] <= 0.5


def test_a_service_that_asks_for_an_hour_has_failed(tmp_path):
    full = httpx.Response(429, headers={"Retry-After": "3600"})
    with pytest.raises(RemoteProblem, match="wait for 3,600 s"):
        client(Service(script=[full]), tmp_path).score([(QUERY, TEXTS)])


def test_after_the_last_attempt_it_fails_and_what_came_before_is_kept(tmp_path):
    address = "https://rank.example/v2/rerank#batch=2,concurrent=1,attempts=3"
    service = Service()
    broken = Service(script=[None, *[httpx.Response(502)] * 3])
    with pytest.raises(RemoteProblem, match=r"answered 502 Bad Gateway.*tried 3 times"):
        client(broken, tmp_path, address).score([(QUERY, TEXTS)])
    [scores] = client(service, tmp_path, address).score([(QUERY, TEXTS)])
    assert service.sizes == [2]
    np.testing.assert_allclose(scores, [probability(overlap(QUERY, text)) for text in TEXTS])


def row(index, score):
    """The JSON of an answer with one score."""
    return f'{{"results": [{{"index": {index}, "relevance_score": {score}}}]}}'


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.Response(401, json={"message": "no key"}), "#key=VARIABLE"),
        (httpx.Response(413), "#batch=N"),
        (httpx.Response(422, text="documents: Field required"), r"jina\+https://rank.example"),
        (httpx.Response(307, headers={"Location": "https://else.example"}), "not followed"),
        (httpx.Response(200, text="<html>"), "no JSON"),
        (httpx.Response(200, text="[" * 100_000), "no JSON"),
        (httpx.Response(200, text=row("Infinity", "0.5")), "not that of the API 'cohere'"),
        (httpx.Response(200, text=row("0.7", "0.5")), "not that of the API 'cohere'"),
        (httpx.Response(200, text=row("0", "1" + "0" * 400)), "not that of the API 'cohere'"),
        (
            httpx.Response(
                200,
                json={
                    "results": [{"index": n, "relevance_score": 0} for n in range(4)],
                    "partial": True,
                },
            ),
            "before it had scored all",
        ),
        (httpx.Response(200, json=[], headers={"X-Secondlook-Partial": "true"}), "longer deadline"),
        (httpx.Response(200, json={"data": []}), "not that of the API 'cohere'"),
        (httpx.Response(200, json={"results": []}), "0 of 4 documents"),
        (
            httpx.Response(200, json={"results": [{"index": 0, "relevance_score": 7}] * 4}),
            "1 of 4",
        ),
        (
            httpx.Response(
                200, json={"results": [{"index": n, "relevance_score": 7} for n in range(4)]}
            ),
            "add scores=raw",
        ),
    ],
)
def test_other_answers_fail_at_once_and_say_what_to_do(answer, told, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK_KEY", "s3cret")
    service = Service(script=[answer])
    with pytest.raises(RemoteProblem, match=told) as failed:
        client(service, tmp_path, "https://rank.example/v2/rerank#key=RANK_KEY").score(
            [(QUERY, TEXTS)]
        )
    assert len(service.asked) == 1
    assert "s3cret" not in str(failed.value)
    assert TEXTS[0] not in str(failed.value)


def test_a_request_that_cannot_be_sent_fails_at_once_and_shows_no_header(tmp_path):
    refused = httpx.LocalProtocolError("Illegal header value b'Bearer s3cret'")
    service = Service(script=[refused])
    with pytest.raises(RemoteProblem, match="can be sent: LocalProtocolError") as failed:
        client(service, tmp_path).score([(QUERY, TEXTS)])
    assert len(service.asked) == 1
    assert "s3cret" not in "".join(traceback.format_exception(failed.value))


def test_raw_scores_may_be_named(tmp_path):
    service = Service()
    service.answer = lambda path, body: httpx.Response(
        200, json={"results": [{"index": n, "relevance_score": -3.5 + n} for n in range(4)]}
    )
    remote = ranker(service, tmp_path, "https://rank.example/v2/rerank#scores=raw")
    assert remote.score(pairs()).tolist() == [-3.5, -2.5, -1.5, -0.5]


@pytest.mark.parametrize("score", ["1e39", "-1e39", "NaN", "Infinity"])
def test_a_score_that_is_not_finite_as_float32_is_refused_and_not_kept(score, tmp_path):
    service = Service(script=[httpx.Response(200, text=row("0", score))])
    remote = ranker(service, tmp_path, "https://rank.example/v2/rerank#scores=raw")
    with pytest.raises(RemoteProblem, match="no number, or too large"):
        remote.score(pairs(TEXTS[:1]))
    assert remote.kept(pairs(TEXTS[:1])) is None


def test_the_largest_scores_and_whole_floats_as_places_are_taken(tmp_path):
    largest = float(np.finfo(np.float32).max)
    service = Service(script=[httpx.Response(200, text=row("0.0", largest))])
    remote = ranker(service, tmp_path, "https://rank.example/v2/rerank#scores=raw")
    assert remote.score(pairs(TEXTS[:1])).tolist() == [largest]


def test_certainties_have_finite_raw_scores_in_order(tmp_path):
    service = Service()
    given = [1.0, 1 - 1e-12, 0.0, 1e-12]
    service.answer = lambda path, body: httpx.Response(
        200, json={"results": [{"index": n, "relevance_score": p} for n, p in enumerate(given)]}
    )
    raw = ranker(service, tmp_path).score(pairs())
    assert np.isfinite(raw).all()
    assert np.argsort(-raw).tolist() == [0, 1, 3, 2]


def test_requests_keep_their_pace():
    now = [100.0]
    rate = RequestRate(per_minute=30, clock=lambda: now[0])
    assert [rate.reserve() for _ in range(3)] == [0, 2, 4]
    now[0] += 60
    assert rate.reserve() == 0
    assert RequestRate(None).reserve() == 0


def test_a_turn_that_comes_too_late_is_not_taken():
    now = [100.0]
    rate = RequestRate(per_minute=30, clock=lambda: now[0])
    assert rate.reserve(until=101) == 0
    for _ in range(10):
        with pytest.raises(RateLimitReached, match="30 requests per minute"):
            rate.reserve(until=102)
    assert rate.reserve(until=103) == 2


def test_a_request_keeps_half_of_its_time_for_the_answer(tmp_path):
    waits, service = [], Service()
    address = "https://rank.example/v2/rerank#requests_per_minute=10,cache=off"
    remote = client(service, None, address, waits=waits)
    remote.score([(QUERY, TEXTS)])
    with pytest.raises(RateLimitReached):
        remote.score([(QUERY, TEXTS)], until=time.monotonic() + 10)
    assert len(service.asked) == 1
    remote.score([(QUERY, TEXTS)], until=time.monotonic() + 14)
    assert len(service.asked) == 2
    assert 5 < waits[0] <= 6


def test_a_failure_before_the_limit_is_the_services(tmp_path):
    service = Service(script=[httpx.Response(503)] * 9)
    remote = client(service, tmp_path, "https://rank.example/v2/rerank#requests_per_minute=10")
    with pytest.raises(RemoteProblem, match=r"503.*10 requests per minute") as failed:
        remote.score([(QUERY, TEXTS)], until=time.monotonic() + 9)
    assert not isinstance(failed.value, RateLimitReached)


def test_the_pace_is_that_of_the_address(tmp_path):
    waits = []
    address = "https://rank.example/v2/rerank#batch=1,concurrent=1,requests_per_minute=60"
    client(Service(), tmp_path, address, waits=waits).score([(QUERY, TEXTS)])
    assert len(waits) >= 2
    assert waits == sorted(waits)
    assert 0 < waits[0] <= 1


def test_waits_grow_to_a_bound():
    policy = RetryPolicy(first_wait=1, longest_wait=10)
    assert [policy.wait(n, 0.0) for n in (1, 2, 3, 4, 5, 50)] == [1, 2, 4, 8, 10, 10]
    assert policy.wait(3, 1.0) == 2


def test_spending_stops_at_its_limit_and_goes_on_with_a_higher_one(tmp_path):
    price = "price_per_1000_searches=1000,batch=1,concurrent=1"
    service = Service()
    poor = client(service, tmp_path, f"https://rank.example/v2/rerank#{price},max_cost=2")
    with pytest.raises(CostLimitReached, match="higher max_cost="):
        poor.score([(QUERY, TEXTS)])
    assert len(service.asked) == 2
    assert poor.usage.cost == 2
    rich = client(service, tmp_path, f"https://rank.example/v2/rerank#{price},max_cost=3")
    rich.score([(QUERY, TEXTS)])
    assert len(service.asked) == len(TEXTS)
    assert rich.usage.cost == 2


def test_cost_is_by_documents_or_by_what_was_billed(tmp_path):
    by_documents = client(
        Service(), None, "https://rank.example/rerank#price_per_1000_documents=500,cache=off"
    )
    by_documents.score([(QUERY, TEXTS)])
    assert by_documents.usage.cost == 2
    service = Service()
    billed = {"billed_units": {"search_units": 3}}
    rows = [{"index": n, "relevance_score": 0.5} for n in range(4)]
    service.script = [httpx.Response(200, json={"results": rows, "meta": billed})]
    dear = client(
        service, None, "https://rank.example/v2/rerank#price_per_1000_searches=10,cache=off"
    )
    dear.score([(QUERY, TEXTS)])
    assert dear.usage.cost == pytest.approx(0.03)


@pytest.mark.parametrize("units", ["1" + "0" * 400, "Infinity", "NaN", "-5", '"many"'])
def test_without_a_sensible_number_of_billed_searches_the_price_counts(units):
    meta = f'"meta": {{"billed_units": {{"search_units": {units}}}}}'
    answer = httpx.Response(200, text=f"{row('0', '0.5')[:-1]}, {meta}}}")
    address = "https://rank.example/v2/rerank#price_per_1000_searches=10,cache=off"
    remote = client(Service(script=[answer]), None, address)
    remote.score([(QUERY, TEXTS[:1])])
    assert remote.usage.cost == pytest.approx(0.01)


def test_several_requests_are_under_way_at_once(tmp_path):
    together = threading.Barrier(3, timeout=10)

    def meet(query, text):
        together.wait()
        return 0.0

    address = "https://rank.example/v2/rerank#batch=1,concurrent=3"
    client(Service(score=meet), tmp_path, address).score([(QUERY, TEXTS[:3])])


def test_nothing_is_sent_again_once_the_time_is_over(tmp_path):
    service = Service(script=[httpx.Response(503)] * 9)
    with pytest.raises(RemoteProblem, match="no time is left"):
        client(service, tmp_path).score([(QUERY, TEXTS)], until=time.monotonic() + 0.1)
    assert len(service.asked) == 1


def trickling(chunk=b" ", pause=0.02):
    """A service whose answer has no end."""

    def answer(request):
        def content():
            for _ in range(200):
                time.sleep(pause)
                yield chunk

        return httpx.Response(200, content=content())

    return answer


@pytest.mark.parametrize(("options", "until"), [("timeout=0.3", 9), ("timeout=9", 0.3)])
def test_an_answer_that_trickles_is_late(options, until):
    address = f"https://rank.example/v2/rerank#attempts=1,cache=off,{options}"
    remote, began = client(trickling(), None, address), time.monotonic()
    with pytest.raises(RemoteProblem, match=r"not complete in time|no time is left"):
        remote.score([(QUERY, TEXTS)], until=began + until)
    assert time.monotonic() - began < 2


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(sender, "_LARGEST_ANSWER", 2**20)
    remote = client(
        trickling(b" " * 2**19, 0), None, "https://rank.example/v2/rerank#attempts=1,cache=off"
    )
    with pytest.raises(RemoteProblem, match=r"more than 1 MB.*#batch=N"):
        remote.score([(QUERY, TEXTS)])


def test_a_call_ends_at_its_time_and_tells_how_long_the_service_was_silent(tmp_path):
    """Even where no timeout of a connection ends it, as while a host's name is looked up."""
    go, unanswered = threading.Event(), Unanswered()
    service = Service(score=lambda query, text: float(go.wait(30)))
    remote = client(service, tmp_path, "https://rank.example/v2/rerank#batch=1,concurrent=1")
    began = time.monotonic()
    with pytest.raises(DeadlinePassed, match="no time is left"):
        remote.score([(QUERY, TEXTS)], until=began + 0.3, unanswered=unanswered)
    assert time.monotonic() - began < 2
    assert unanswered.seconds() > 0.2
    not_sent = Unanswered()
    with pytest.raises(DeadlinePassed, match="no time is left"):
        remote.score([("another", TEXTS)], until=time.monotonic() + 0.1, unanswered=not_sent)
    assert not_sent.seconds() == 0
    go.set()
    remote.score([("a third", TEXTS)])
    assert [body["query"] for _, _, body in service.asked] == [QUERY, *["a third"] * len(TEXTS)]


def test_all_callers_together_have_so_many_requests_under_way(tmp_path):
    under_way, most, lock = 0, 0, threading.Lock()

    def score(query, text):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.02)
        with lock:
            under_way -= 1
        return 0.0

    address = "https://rank.example/v2/rerank#batch=1,concurrent=2"
    remote = client(Service(score=score), tmp_path, address)
    with ThreadPoolExecutor(4) as callers:
        for _ in callers.map(lambda n: remote.score([(f"query {n}", TEXTS)]), range(4)):
            pass
    assert most == 2


def test_requests_are_sent_in_the_order_they_came(tmp_path):
    go = threading.Event()
    service = Service(score=lambda query, text: float(go.wait(30)))
    remote = client(service, tmp_path, "https://rank.example/v2/rerank#batch=1,concurrent=1")
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(remote.score, [("first", TEXTS)])
        while not service.asked:
            time.sleep(0.005)
        second = callers.submit(remote.score, [("second", TEXTS)])
        while remote._threads._work.qsize() < 2 * len(TEXTS) - 1:
            time.sleep(0.005)
        go.set()
        first.result()
        second.result()
    asked = [body["query"] for _, _, body in service.asked]
    assert asked == ["first"] * len(TEXTS) + ["second"] * len(TEXTS)


def test_an_interruption_ends_waits_and_later_calls_are_sent(tmp_path):
    service, refused = Service(), threading.Event()

    def interrupted(request):
        if b"first" in request.content:
            assert refused.wait(10)
            raise KeyboardInterrupt
        if b"second" in request.content and not refused.is_set():
            refused.set()
            return httpx.Response(503, headers={"Retry-After": "60"})
        return service(request)

    remote = client(interrupted, tmp_path, "https://rank.example/v2/rerank#batch=1,concurrent=2")
    remote._sender._pause = None  # it does wait
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        remote.score([(QUERY, ["first", "second", "third"])])
    assert time.monotonic() - began < 20
    assert service.asked == []
    remote.score([(QUERY, ["second"])])
    assert service.sizes == [1]


@pytest.mark.parametrize("end", ["closed", "forgotten"])
def test_a_client_that_is_not_used_any_longer_has_no_threads(end, tmp_path):
    before = set(threading.enumerate())
    remote = client(Service(), tmp_path)
    remote.score([(QUERY, TEXTS)])
    own = set(threading.enumerate()) - before
    assert len(own) == 4
    if end == "closed":
        remote.close()
        with pytest.raises(RemoteProblem, match="stopped"):
            remote._sender.post({})
    else:
        del remote
        gc.collect()
    for thread in own:
        thread.join(10)
        assert not thread.is_alive()
