"""The clients people have, unchanged, against a real server."""

import cohere
import httpx
import numpy as np
import pytest

from secondlook import Document, Query, Ranker
from secondlook.encode.settings import WindowSettings
from secondlook.serve.serving import Serving
from served import QUERY, TEXTS, listening, serving


@pytest.fixture(scope="module")
def expected(ranker):
    return ranker.predict([(QUERY, text) for text in TEXTS])


@pytest.fixture(scope="module")
def connection():
    """The SDKs leave closing to the garbage collector, unless they are given what they ask with."""
    with httpx.Client() as client:
        yield client


def best_first(expected):
    return np.argsort(-expected, kind="stable").tolist()


def test_cohere_v2_sdk(url, expected, connection):
    client = cohere.ClientV2(api_key="any", base_url=url, httpx_client=connection)
    answer = client.rerank(model="tiny", query=QUERY, documents=TEXTS)
    assert [one.index for one in answer.results] == best_first(expected)
    scores = [one.relevance_score for one in answer.results]
    assert scores == pytest.approx(sorted(expected, reverse=True), abs=1e-3)
    assert answer.meta.api_version.version == "2"
    assert answer.meta.billed_units.search_units == 1
    assert "not calibrated on judgments" in answer.meta.warnings[0]
    top = client.rerank(model="tiny", query=QUERY, documents=TEXTS, top_n=2)
    assert [one.index for one in top.results] == best_first(expected)[:2]


def test_cohere_v1_sdk_with_documents_as_objects(url, expected, connection):
    client = cohere.Client(api_key="any", base_url=url, httpx_client=connection)
    documents = [{"text": text} for text in TEXTS[:3]] + TEXTS[3:]
    answer = client.rerank(model="tiny", query=QUERY, documents=documents, return_documents=True)
    assert [one.index for one in answer.results] == best_first(expected)
    assert [one.document.text for one in answer.results] == [TEXTS[i] for i in best_first(expected)]


def test_cohere_sdk_raises_its_own_errors(url, connection):
    client = cohere.ClientV2(api_key="any", base_url=url, httpx_client=connection)
    with pytest.raises(cohere.BadRequestError, match="nothing to rank"):
        client.rerank(model="tiny", query=QUERY, documents=[])
    with pytest.raises(cohere.UnprocessableEntityError):
        client.rerank(model="tiny", query="", documents=TEXTS)


def test_langchain_cohere_rerank(url, expected, connection):
    from langchain_cohere import CohereRerank
    from langchain_core import documents as langchain

    documents = [langchain.Document(page_content=text) for text in TEXTS]
    client = cohere.ClientV2(api_key="any", base_url=url, httpx_client=connection)
    reranker = CohereRerank(client=client, model="rerank-v3.5", top_n=3)
    kept = reranker.compress_documents(documents, QUERY)
    assert [one.page_content for one in kept] == [TEXTS[i] for i in best_first(expected)[:3]]
    assert kept[0].metadata["relevance_score"] == pytest.approx(max(expected), abs=1e-3)


def test_jina_shape(url, expected):
    asked = {"model": "tiny", "query": QUERY, "documents": TEXTS, "top_n": 1}
    answer = httpx.post(f"{url}/v1/rerank", json=asked | {"return_documents": True}).json()
    assert answer["model"] == "tiny"
    assert answer["usage"]["total_tokens"] > 5 * len(TEXTS)
    (best,) = answer["results"]
    assert best["index"] == best_first(expected)[0]
    assert best["document"] == {"text": TEXTS[best["index"]]}


def test_tei_shape(url, ranker, expected):
    asked = {"query": QUERY, "texts": TEXTS, "truncate": True, "truncation_direction": "Right"}
    ranks = httpx.post(f"{url}/rerank", json=asked).json()
    assert [one["index"] for one in ranks] == best_first(expected)
    assert [one["score"] for one in ranks] == pytest.approx(sorted(expected)[::-1], abs=1e-3)
    assert "text" not in ranks[0]
    ranks = httpx.post(
        f"{url}/rerank", json=asked | {"raw_scores": True, "return_text": True}
    ).json()
    raw = {one["text"]: one["score"] for one in ranks}
    (one, *_) = ranks
    pairs = [(Query("", QUERY), Document("", text)) for text in TEXTS]
    assert [raw[text] for text in TEXTS] == pytest.approx(ranker.score(pairs).tolist(), abs=1e-3)
    assert one["score"] == max(raw.values())


def test_tei_errors(url):
    empty = httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": []})
    assert (empty.status_code, empty.json()["error_type"]) == (400, "Empty")
    shape = httpx.post(f"{url}/rerank", json={"query": QUERY})
    assert (shape.status_code, shape.json()["error_type"]) == (422, "Validation")
    long = {"query": QUERY, "texts": ["the sea " * 500], "truncate": False}
    refused = httpx.post(f"{url}/rerank", json=long)
    assert (refused.status_code, refused.json()["error_type"]) == (413, "Validation")
    assert httpx.post(f"{url}/rerank", json=long | {"truncate": True}).status_code == 200
    query = {"query": "the sea " * 500, "texts": ["a"], "truncate": False}
    assert httpx.post(f"{url}/rerank", json=query).status_code == 413


def test_whole_numbers_stay_floats_for_opensearch(url):
    answer = httpx.post(f"{url}/v2/rerank", json={"query": QUERY, "documents": TEXTS})
    assert '"search_units":1.0' in answer.text.replace(" ", "")


def test_what_a_client_might_not_expect_is_a_warning(url):
    asked = {"model": "rerank-v3.5", "query": QUERY, "documents": ["the sea " * 500, "a"]}
    meta = httpx.post(f"{url}/v2/rerank", json=asked | {"max_tokens_per_doc": 4}).json()["meta"]
    told = " ".join(meta["warnings"])
    assert "'tiny' answered" in told
    assert "1 of 2 documents were longer" in told
    assert "max_tokens_per_doc was not applied" in told
    assert "the query was longer" not in told
    long = {"query": "the sea " * 500, "documents": ["a"]}
    told = httpx.post(f"{url}/v2/rerank", json=long).json()["meta"]["warnings"]
    assert "truncated: the query was longer than the ranker reads" in told


def test_of_several_rankers_the_named_one_answers(ranker):
    two = Serving({"tiny": "one", "other": "two"}, lambda _: ranker)
    with listening(two) as url:
        asked = {"query": QUERY, "documents": TEXTS}
        named = httpx.post(f"{url}/v1/rerank", json=asked | {"model": "other"})
        assert named.json()["model"] == "other"
        assert httpx.post(f"{url}/v1/rerank", json=asked).json()["model"] == "tiny"
        unknown = httpx.post(f"{url}/v2/rerank", json=asked | {"model": "none"})
        assert unknown.status_code == 404
        assert "tiny, other" in unknown.json()["message"]


def test_info_and_probes(url):
    info = httpx.get(f"{url}/info").json()
    assert info["model_id"] == "tiny"
    assert "reranker" in info["model_type"]
    assert info["max_client_batch_size"] == 1000
    assert info["rankers"][0]["scores"] == "reference pairs"
    assert httpx.get(f"{url}/health").json()["status"] == "ok"
    assert httpx.get(f"{url}/ready").json() == {"status": "ready", "engine": None}
    assert "<title>secondlook</title>" in httpx.get(url).text


def test_windows_that_do_not_count_are_told_as_truncation(ranker):
    windows = WindowSettings(length=4, stride=4, pooling="first")
    encode = ranker.settings.encode.model_copy(update={"windows": windows})
    settings = ranker.settings.model_copy(update={"encode": encode})
    first = Ranker(settings, ranker.tokenizer, ranker.backend)
    texts = ["the tide of the deep sea", "fish"]
    with listening(serving(first)) as url:
        answer = httpx.post(f"{url}/v2/rerank", json={"query": "tide", "documents": texts})
        told = answer.json()["meta"]["warnings"]
        assert "truncated: 1 of 2 documents were longer than the ranker reads" in told
        whole = {"query": "tide", "texts": texts, "truncate": False}
        assert httpx.post(f"{url}/rerank", json=whole).status_code == 413


def test_an_unknown_path_is_404_and_another_method_405(url):
    for method in ("get", "post"):
        for path in ("/nowhere", "/v2/rerank/", "/page", "/index.html"):
            assert getattr(httpx, method)(url + path).status_code == 404, (method, path)
    for path, said in (("/v2/rerank", "message"), ("/v1/search", "message"), ("/rerank", "error")):
        answer = httpx.get(url + path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert answer.json()[said]
    page = httpx.post(url)
    assert (page.status_code, "POST" in page.headers["allow"]) == (405, False)


def test_the_page_is_kept_by_the_browser_and_its_files_are_there(url):
    page = httpx.get(url)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    again = httpx.get(url, headers={"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    assert httpx.head(url).status_code == 200
    assert httpx.get(f"{url}/page/page.js").status_code == 200
