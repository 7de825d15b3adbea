"""What clients see when there is too much to do, when they leave, and when rankers change."""

import asyncio
import threading
import time

import httpx
import pytest

import tiny
from secondlook import Document, Ranker
from secondlook.errors import CheckpointProblem
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.serve.breaker import Breaker
from secondlook.serve.by_vectors import VectorScoring
from secondlook.serve.index import ServedIndex
from secondlook.serve.limits import Limits
from secondlook.serve.serving import Serving
from secondlook.types import Query
from served import QUERY, TEXTS, Engine, Watched, listening, serving

ASKED = {"query": QUERY, "documents": TEXTS}


def until(condition, seconds=10):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_beyond_the_queue_clients_are_told_when_to_come_back(ranker):
    held = Watched(ranker)
    held.go.clear()
    made = serving(held, limits=Limits(queue_pairs=8))
    with listening(made) as url:
        first = []
        waiting = threading.Thread(
            target=lambda: first.append(httpx.post(f"{url}/v2/rerank", json=ASKED))
        )
        waiting.start()
        until(lambda: made.queues["tiny"].waiting == 5)
        refused = httpx.post(f"{url}/v2/rerank", json=ASKED)
        overloaded = httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": TEXTS})
        held.go.set()
        waiting.join()
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert overloaded.json()["error_type"] == "Overloaded"
    assert first[0].status_code == 200


def test_what_a_client_that_left_had_asked_for_is_not_scored(ranker):
    held = Watched(ranker)
    made = serving(held)
    queue = made.queues["tiny"]
    with listening(made) as url:
        held.go.clear()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v2/rerank", json=ASKED, timeout=0.2)
        until(lambda: queue.waiting == 0)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v2/rerank", json={"query": "a", "documents": ["fish"]}, timeout=0.2)
        until(lambda: queue.waiting == 0)
        held.go.set()
        assert httpx.post(f"{url}/v2/rerank", json=ASKED).status_code == 200
    assert ["fish"] not in held.chunks


def test_a_deadline_can_be_the_clients_own(ranker):
    slow = Watched(ranker)
    slow.go.clear()
    with listening(serving(slow)) as url:
        began = time.monotonic()
        hurried = httpx.post(
            f"{url}/v2/rerank", json=ASKED, headers={"X-Deadline-Seconds": "0.2"}
        ).json()
        assert time.monotonic() - began < 2
        slow.go.set()
    assert hurried["partial"]
    assert "0 of 5 documents" in hurried["meta"]["warnings"][0]
    assert [one["index"] for one in hurried["results"]] == [0, 1, 2, 3, 4]


def test_a_reload_answers_old_requests_with_the_old_ranker_and_new_ones_with_the_new(
    tiny_folder, tmp_path
):
    other = tiny.save(tiny.classifier(seed=1), tmp_path / "other")
    old, new = (Ranker.load(folder, device="cpu") for folder in (tiny_folder, other))
    held = Watched(old)
    rankers = iter([held, new])
    made = Serving({"tiny": "tiny"}, lambda _: next(rankers))
    query = Query("", QUERY)
    documents = [Document("", text) for text in TEXTS]

    async def story():
        held.go.clear()
        soon = time.monotonic() + 20
        before = asyncio.create_task(made.second_stage.score("tiny", query, documents, soon))
        while not held.begun.is_set():
            await asyncio.sleep(0.005)
        await made.reload()
        after = await made.second_stage.score("tiny", query, documents, soon)
        held.go.set()
        return await before, after

    before, after = asyncio.run(story())
    pairs = [(query, document) for document in documents]
    assert before.outcome.scores == pytest.approx(old.score(pairs), abs=1e-4)
    assert after.outcome.scores == pytest.approx(new.score(pairs), abs=1e-4)
    assert after.ranker is new


def test_a_search_that_a_reload_overtakes_is_answered_by_the_new_ranker(ranker, monkeypatch):
    """While it asks whether the index has vectors, the queue of the old ranker is closed."""
    asked, go = threading.Event(), threading.Event()

    def outcome(*_):
        asked.set()
        assert go.wait(30)

    monkeypatch.setattr(VectorScoring, "outcome", outcome)
    documents = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    rankers = iter([ranker, Watched(ranker)])
    index = ServedIndex.of(Engine(documents))
    made = Serving({"tiny": "tiny"}, lambda _: next(rankers), index=index)

    async def story():
        soon = time.monotonic() + 20
        work = made.second_stage.score("tiny", Query("", QUERY), documents, soon, indexed=True)
        search = asyncio.create_task(work)
        old = made.queues["tiny"]
        while not asked.is_set():
            await asyncio.sleep(0.005)
        await made.reload()
        while old.alive:
            await asyncio.sleep(0.005)
        go.set()
        return await search

    answer = asyncio.run(story())
    assert answer.outcome.scored.all()
    assert answer.ranker is made.queues["tiny"].ranker


def test_requests_are_answered_while_a_new_ranker_is_fitted_to_its_scale(ranker):
    """Fitting scores pairs, which takes seconds on a busy machine."""
    fitting, go = threading.Event(), threading.Event()

    class Unfitted(Watched):
        @property
        def scale(self):
            fitting.set()
            assert go.wait(30)
            return super().scale

    rankers = iter([ranker, Unfitted(ranker)])
    made = Serving({"tiny": "tiny"}, lambda _: next(rankers))

    async def story():
        reload = asyncio.create_task(made.reload())
        while not fitting.is_set():
            await asyncio.sleep(0.005)
        soon = time.monotonic() + 20
        answer = await made.second_stage.score(
            "tiny", Query("", QUERY), [Document("", TEXTS[0])], soon
        )
        go.set()
        await reload
        return answer

    late = threading.Timer(10, go.set)  # where the loop itself waits, it goes on and fails
    late.start()
    answer = asyncio.run(asyncio.wait_for(story(), 25))
    late.cancel()
    assert answer.ranker is ranker
    assert answer.outcome.scored.all()


def test_a_reload_of_a_damaged_ranker_leaves_the_old_one(ranker):
    rankers = iter([ranker])

    def load(_):
        for one in rankers:
            return one
        raise CheckpointProblem("damaged")

    made = Serving({"tiny": "tiny"}, load)
    asyncio.run(made.reload())
    assert made.queues["tiny"].ranker is ranker
    assert made.queues["tiny"].alive
    assert b'secondlook_reloads_total{result="failed"} 1.0' in made.metrics.text()


@pytest.mark.real
def test_a_cluster_that_loses_one_node_serves_on_and_all_nodes_come_back(
    ranker, three_nodes, tmp_path
):
    index = OpenSearchIndex.build(
        tmp_path / "index",
        [Document(f"d{number}", text) for number, text in enumerate(TEXTS)],
        OpenSearchSettings(urls=three_nodes.urls, name="served", replicas=2),
    )
    made = serving(
        ranker, index=index, limits=Limits(deadline=8), breaker=Breaker(failures=2, rest=1)
    )
    with listening(made) as url, httpx.Client(timeout=30) as client:

        def search():
            return client.post(f"{url}/v1/search", json={"query": "tide"}).status_code

        assert search() == 200
        three_nodes.kill(2)
        statuses = [search() for _ in range(5)]
        assert statuses.count(200) >= 3  # while the loss is noticed, a search may time out
        assert search() == 200
        three_nodes.kill(0)
        three_nodes.kill(1)
        failed = [search() for _ in range(4)]
        assert set(failed) <= {503, 504}
        began = time.monotonic()
        assert search() in (503, 504)
        assert time.monotonic() - began < 9
        for node in range(3):
            three_nodes._launch(node)
        three_nodes.wait(nodes=3, status="green")
        until(lambda: search() == 200, seconds=60)
