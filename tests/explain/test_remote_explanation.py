"""Why a remote ranker scores as it does: by leaving out words, which works for any scorer."""

import time

import httpx
import pytest

from remote_service import Service, overlap
from remote_service import ranker as remote_ranker
from secondlook.errors import RemoteProblem, SecondlookError
from secondlook.explain import explain


@pytest.fixture
def service():
    return Service()


def test_each_word_is_left_out_once_and_requests_are_few(service, tmp_path):
    ranker = remote_ranker(service, tmp_path)
    said = explain("deep tide", "the tide, deep and slow", ranker, title="sea")
    assert said.score == pytest.approx(overlap("deep tide", "sea the tide, deep and slow"))
    assert [word.text for word in said.document_words] == [
        "the",
        "tide",
        ",",
        "deep",
        "and",
        "slow",
    ]
    by_word = {word.text: word.attribution for word in said.document_words}
    assert by_word["deep"] > 0.9
    assert abs(by_word["slow"]) < 0.1
    assert said.query_words[0].attribution > 0.9
    assert len(service.asked) == 1 + 2 + 1  # the pair, the query without each word, the document's
    assert "no attention" in said.attention_note
    assert "<html" in said.to_html()


def test_of_a_long_text_only_the_first_words_are_paid_for(service, tmp_path):
    text = " ".join(f"word{n}" for n in range(1000))
    said = explain("tide", text, remote_ranker(service, tmp_path))
    assert sum(service.sizes) == 1 + 400
    assert "first 400 of 1,000 words of the document" in said.attention_note


def test_of_a_long_query_only_the_first_words_are_paid_for(service, tmp_path):
    """Every word of a query is a request."""
    query = " ".join(f"word{n}" for n in range(500))
    said = explain(query, "the tide", remote_ranker(service, tmp_path))
    assert len(service.asked) == 1 + 30 + 1  # the pair, the query's words, the document's
    assert service.asked[0][2]["query"] == query
    assert len(said.query_words) == 30
    assert "first 30 of 500 words of the query" in said.attention_note


def test_a_word_that_is_its_whole_text_is_not_left_out(service, tmp_path):
    """Services refuse empty queries and documents."""
    said = explain(" tide ", "sea", remote_ranker(service, tmp_path))
    assert service.sizes == [1]
    assert [word.attribution for word in (*said.query_words, *said.document_words)] == [0, 0]
    assert "its whole text was not left out" in said.attention_note
    titled = explain("tide?", "sea", remote_ranker(service, tmp_path), title="deep")
    bodies = [body for _, _, body in service.asked[1:]]
    assert [(body["query"], body["documents"]) for body in bodies] == [
        ("tide?", ["deep sea"]),
        ("?", ["deep sea"]),
        ("tide?", ["deep "]),
    ]
    assert "its whole text" not in titled.attention_note


def test_a_service_is_asked_no_longer_than_until(service, tmp_path):
    service.script = [httpx.Response(503)] * 9
    with pytest.raises(RemoteProblem, match="no time is left"):
        explain("the tide", "sea", remote_ranker(service, tmp_path), until=time.monotonic() + 0.1)
    assert len(service.asked) == 1


def test_there_is_no_layer_to_choose(service, tmp_path):
    with pytest.raises(SecondlookError, match="no attention"):
        explain("tide", "sea", remote_ranker(service, tmp_path), layer=1)
    assert service.asked == []
