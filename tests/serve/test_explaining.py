"""Marked words and explanations over HTTP."""

import threading
import time

import httpx
import pytest

from secondlook import Document
from secondlook.explain import Stopped, explain
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.limits import Limits
from served import Engine, Watched, listening, serving

TEXT = "🐟 Rivers, the deep bogue."
QUERY = "bogue river tide"


@pytest.fixture(scope="module")
def url(ranker):
    index = Engine([Document("fish", TEXT), Document("sea", "the tide of the sea")])
    with listening(serving(ranker, index=index, explainer=PairExplainer())) as url:
        yield url


def marked(text, marks):
    return [(text[m["start"] : m["end"]], m["matched"], m["outside"]) for m in marks]


def test_words_of_both_texts_and_words_outside_the_vocabulary_are_marked(url):
    answer = httpx.post(f"{url}/v1/search", json={"query": QUERY, "marks": True}).json()
    fish, sea = sorted(answer["hits"], key=lambda hit: hit["id"])
    assert marked(TEXT, fish["marks"]) == [("Rivers", "stem", True), ("bogue", "word", True)]
    assert marked(sea["text"], sea["marks"]) == [("tide", "word", False)]
    assert marked(QUERY, answer["query_marks"]) == [
        ("bogue", "word", True),
        ("river", "stem", False),
        ("tide", "word", False),
    ]


def test_marks_come_only_where_they_are_asked_for(url):
    answer = httpx.post(f"{url}/v1/search", json={"query": QUERY}).json()
    assert answer["query_marks"] is None
    assert {hit["marks"] for hit in answer["hits"]} == {None}


def test_a_text_is_explained_as_offline(url, ranker):
    answer = httpx.post(f"{url}/v1/explain", json={"query": QUERY, "text": TEXT})
    said, expected = answer.json()["explanation"], explain(QUERY, TEXT, ranker)
    assert said["score"] == pytest.approx(expected.score, abs=1e-4)
    for word, right in zip(said["document_words"], expected.document_words, strict=True):
        assert (word["text"], word["outside"]) == (right.text, right.outside)
        assert word["attribution"] == pytest.approx(right.attribution, abs=1e-4)
    assert [one["as_trained"] for one in said["attention"]] == [True, False]


def test_a_hit_is_explained_with_the_score_it_has(url, ranker):
    index = Engine([Document("fish", TEXT, "the deep sea")])
    with listening(serving(ranker, index=index, explainer=PairExplainer())) as titled:
        asked = {"query": QUERY, "explain": True}
        (hit,) = httpx.post(f"{titled}/v1/search", json=asked).json()["hits"]
    said = hit["explanation"]
    assert said["score"] == pytest.approx(hit["raw_score"], abs=1e-3)
    assert said["score"] != pytest.approx(explain(QUERY, TEXT, ranker).score, abs=1e-3)
    assert said["document_words"][0]["text"] == "🐟"  # the title is read, but not taken apart
    asked = {"query": QUERY, "text": TEXT, "title": "the deep sea"}
    alone = httpx.post(f"{url}/v1/explain", json=asked).json()["explanation"]
    assert alone["score"] == pytest.approx(said["score"], abs=1e-3)


def test_a_text_without_words_is_explained(url):
    answer = httpx.post(f"{url}/v1/explain", json={"query": "?", "text": ""})
    assert answer.status_code == 200
    assert answer.json()["explanation"]["document_words"] == []


def test_explanations_have_a_deadline_and_limits(ranker):
    class Slow(PairExplainer):
        def explain(self, ranker, query, document, should_stop, until):
            time.sleep(0.5)
            return {}

    limits = Limits(deadline=0.2, text_characters=100)
    with listening(serving(ranker, explainer=Slow(), limits=limits)) as url:
        asked = {"query": "tide", "text": "sea"}
        assert httpx.post(f"{url}/v1/explain", json=asked).status_code == 504
        asked["text"] = "sea " * 100
        assert httpx.post(f"{url}/v1/explain", json=asked).status_code == 413


def test_an_explanation_ends_with_its_request(ranker):
    """One that nobody waits for must not hold up the next."""
    words = " ".join(["tide"] * 400)

    class Counted(Watched):
        scored_pairs = 0

        def score(self, pairs):
            type(self).scored_pairs += len(pairs)
            time.sleep(0.005 * len(pairs))
            return self.ranker.score(pairs)

        def __getattr__(self, name):
            return getattr(self.ranker, name)

    slow = Counted(ranker)
    index = Engine([Document(f"d{number}", words) for number in range(30)])
    limits = Limits(deadline=1)
    with listening(serving(slow, index=index, explainer=PairExplainer(), limits=limits)) as url:
        asked = {"query": "tide", "k": 30, "explain": True}
        hits = httpx.post(f"{url}/v1/search", json=asked, timeout=60).json()["hits"]
        assert len(hits) == 30
        assert hits[-1]["explanation"] is None
        began = time.monotonic()
        asked = {"query": "tide", "text": "sea"}
        assert httpx.post(f"{url}/v1/explain", json=asked).status_code == 200
        assert time.monotonic() - began < 1
    assert Counted.scored_pairs < 400


def test_only_the_first_hits_are_explained_and_late_ones_left_out(ranker):
    class Timed(PairExplainer):
        def explain(self, ranker, query, document, should_stop, until):
            if document.text.startswith("late"):
                while not should_stop():
                    time.sleep(0.01)
                raise Stopped("late")
            return {"of": document.id}

    texts = ["tide", "tide tide", "tide tide tide"]
    for first, explained, limits in (
        ("", 2, Limits(explained_hits=2)),
        ("late ", 0, Limits(deadline=1)),
    ):
        index = Engine([Document(text, first + text) for text in texts])
        with listening(serving(ranker, index=index, explainer=Timed(), limits=limits)) as url:
            asked = {"query": "tide", "explain": True}
            hits = httpx.post(f"{url}/v1/search", json=asked).json()["hits"]
        said = [hit["explanation"] for hit in hits]
        expected = [{"of": hit["id"]} for hit in hits[:explained]] + [None] * (3 - explained)
        assert said == expected


def test_a_search_does_not_wait_for_another_ones_explanation(ranker):
    begun, go = threading.Event(), threading.Event()

    class Held(PairExplainer):
        def explain(self, ranker, query, document, should_stop, until):
            begun.set()
            assert go.wait(60)
            return {}

    index = Engine([Document("fish", TEXT)])
    limits = Limits(deadline=60)
    with listening(serving(ranker, index=index, explainer=Held(), limits=limits)) as url:
        asked = {"query": "tide", "text": "sea"}
        other = threading.Thread(
            target=httpx.post, args=(f"{url}/v1/explain",), kwargs={"json": asked, "timeout": 60}
        )
        other.start()
        assert begun.wait(60)
        answer = httpx.post(
            f"{url}/v1/search", json={"query": QUERY, "marks": True}, timeout=60
        ).json()
        assert other.is_alive()
        go.set()
        other.join()
    assert len(answer["query_marks"]) == 2


def test_late_marks_cost_no_hits(ranker):
    class Slow(PairExplainer):
        def mark(self, ranker, query, texts, should_stop):
            time.sleep(3)
            return super().mark(ranker, query, texts, should_stop)

    index = Engine([Document("fish", TEXT)])
    with listening(
        serving(ranker, index=index, explainer=Slow(), limits=Limits(deadline=2))
    ) as url:
        answer = httpx.post(f"{url}/v1/search", json={"query": QUERY, "marks": True}).json()
    assert [hit["id"] for hit in answer["hits"]] == ["fish"]
    assert answer["hits"][0]["marks"] is None


def test_a_server_that_explains_nothing_says_so(ranker):
    with listening(serving(ranker, index=Engine([Document("fish", TEXT)]))) as url:
        for path, body in (("explain", {"text": TEXT}), ("search", {"marks": True})):
            answer = httpx.post(f"{url}/v1/{path}", json={"query": QUERY} | body)
            assert (answer.status_code, "explains nothing" in answer.text) == (422, True)
