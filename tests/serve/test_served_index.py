"""An index that is replaced, or out of reach, under a server."""

import asyncio
import shutil
import threading
import time
from types import SimpleNamespace

import httpx
import pytest

from secondlook import Document, Query, Ranker
from secondlook.errors import EngineProblem, IndexProblem, SecondlookError
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.serve.breaker import Breaker
from secondlook.serve.index import ServedIndex
from secondlook.serve.serving import Serving
from secondlook.workflows.fuse import set_fusion
from served import TEXTS, Engine, listening

TIDE = Query("", "tide")


def build(folder, *texts):
    documents = [Document(f"{at}", text) for at, text in enumerate(texts)]
    Bm25Index.build(folder, documents, Bm25Settings())


def found(index):
    ranking, texts, _ = index.look(TIDE, 10)
    assert [hit.doc_id for hit in ranking.hits] == [text.id for text in texts]
    return sorted(text.text for text in texts)


def serve(ranker, index, **more):
    return Serving({"tiny": "tiny"}, lambda _: ranker, index=index, **more)


def search(client):
    answer = client.post("/v1/search", json={"query": "tide"})
    hits = [hit["text"] for hit in answer.json().get("hits", ())]
    return answer.status_code, hits


def test_a_replaced_folder_is_searched_from_the_next_request_on(ranker, tmp_path):
    folder = tmp_path / "index"
    build(folder, "the old tide", "fish")
    made = serve(ranker, ServedIndex.at(folder))
    with listening(made) as url, httpx.Client(base_url=url) as client:
        for number in range(2):
            build(folder, f"tide {number}", "fish", *["sea"] * number)
            for _ in range(20):  # more than once for every thread that may answer
                assert search(client) == (200, [f"tide {number}"])
        assert client.get("/ready").json() == {"status": "ready", "engine": "ok"}


def test_replaced_again_and_again_under_load_no_search_fails(ranker, tmp_path):
    folder = tmp_path / "index"
    build(folder, "tide 0", "fish")
    index, over, problems = ServedIndex.at(folder), threading.Event(), []

    def look():
        while not over.is_set():
            try:
                (text,) = found(index)
                assert text.startswith("tide")
            except (AssertionError, SecondlookError, ValueError, OSError) as error:
                problems.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 9):
        build(folder, f"tide {number}", *["fish"] * number)
        time.sleep(0.05)
    over.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert found(index) == ["tide 8"]


def test_replaced_once_more_while_the_next_index_is_opened_a_search_is_answered():
    class Replaced(Engine):
        def fetch(self, doc_ids):
            nonlocal version
            version += 1
            raise IndexProblem("it holds another corpus than when it was opened")

    version, last = 0, Engine([Document("d", "tide")])
    engines = [Replaced([Document("d", "old tide")]) for _ in range(3)]
    index = ServedIndex(lambda: [*engines, last][version], lambda: version)
    assert found(index) == ["tide"]
    assert version == 3


def test_an_index_that_nothing_replaces_fails_at_once():
    class Damaged(Engine):
        asked = 0

        def retrieve(self, queries, k):
            self.asked += 1
            raise IndexProblem("its parts do not belong together")

    damaged = Damaged([Document("d", "tide")])
    with pytest.raises(IndexProblem):
        ServedIndex(lambda: damaged, lambda: 1).look(TIDE, 1)
    assert damaged.asked == 1


def test_a_folder_that_was_broken_leaves_the_old_index(ranker, tmp_path):
    folder = tmp_path / "index"
    build(folder, "the old tide")
    index = ServedIndex.at(folder)
    assert found(index) == ["the old tide"]
    (folder / "index.json").write_text("{}")
    assert found(index) == ["the old tide"]
    made = serve(ranker, index)
    asyncio.run(made.reload())
    assert found(index) == ["the old tide"]
    assert b'reloads_total{result="failed"} 1.0' in made.metrics.text()
    with pytest.raises(IndexProblem):
        ServedIndex.at(folder)


def test_a_re_ranker_without_weight_in_searches_is_logged(tiny_folder, tmp_path, log):
    """Also one that a reload put in place."""
    own = shutil.copytree(tiny_folder, tmp_path / "own")

    def load(source):
        return Ranker.load(source, device="cpu")

    index = ServedIndex.of(Engine([Document("d", "tide")]))
    made = [Serving({"own": str(own)}, load, index=one) for one in (None, index)]
    set_fusion(own, 1.0, "min-max")
    for one in made:
        one.note_unused_scores()
    assert log() == []
    for one in made:
        asyncio.run(one.reload())
    (line,) = [line for line in log() if line["level"] == "warning"]
    assert (line["event"], line["model"]) == ("a re-ranker without weight", "own")
    assert f"secondlook fuse clear {own}" in line["advice"]


def test_a_reload_opens_the_index_anew_and_the_old_is_closed_behind_its_last_search():
    class Closing(Engine):
        closed = False

        def retrieve(self, queries, k):
            found = super().retrieve(queries, k)
            begun.set()
            assert go.wait(20)
            assert not self.closed
            return found

        def close(self):
            self.closed = True

    begun, go = threading.Event(), threading.Event()
    old, new = Closing([Document("old", "tide")]), Closing([Document("new", "tide")])
    engines = iter([old, new])
    index = ServedIndex(lambda: next(engines))
    answers = []
    asking = threading.Thread(target=lambda: answers.append(index.look(TIDE, 1)[1][0].id))
    asking.start()
    assert begun.wait(20)
    index.reopen()
    assert not old.closed
    go.set()
    asking.join()
    assert index.look(TIDE, 1)[1][0].id == "new"
    assert (answers, old.closed, new.closed) == (["old"], True, False)


def test_a_server_starts_without_its_engine_and_finds_it_later(ranker):
    engine = Engine([Document("d", "tide")])
    up = threading.Event()

    def open_():
        if not up.is_set():
            raise EngineProblem("cannot reach the cluster at http://secret:9200")
        return engine

    index = ServedIndex(open_, engine="opensearch")
    made = serve(ranker, index, breaker=Breaker(failures=2, rest=0.2))
    with listening(made) as url, httpx.Client(base_url=url) as client:
        assert client.get("/ready").json() == {"status": "ready", "engine": "failing"}
        assert client.get("/info").json()["engine"] == "opensearch"
        asked = {"query": "tide", "texts": TEXTS}
        assert client.post("/rerank", json=asked).status_code == 200
        assert {search(client)[0] for _ in range(4)} == {503}
        up.set()
        time.sleep(0.3)
        assert search(client) == (200, ["tide"])
        assert client.get("/ready").json() == {"status": "ready", "engine": "ok"}


def test_a_new_index_whose_engine_is_away_for_a_moment_is_tried_again(monkeypatch):
    version, away, opened, now = 0, False, 0, 0.0
    clock = SimpleNamespace(monotonic=lambda: now, sleep=time.sleep)
    monkeypatch.setattr("secondlook.serve.index.time", clock)

    def open_():
        nonlocal opened
        opened += 1
        if away:
            raise EngineProblem("cannot reach the cluster")
        return Engine([Document("d", f"tide {version}")])

    index = ServedIndex(open_, lambda: version)
    version, away = 1, True
    assert [found(index) for _ in range(3)] == [["tide 0"]] * 3
    assert opened == 2  # a search may wait for the engine: not every one tries
    away, now = False, 5.0
    assert [found(index) for _ in range(3)] == [["tide 1"]] * 3
    assert opened == 3
