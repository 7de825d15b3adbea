"""Every way to a score gives the same number."""

import httpx
import numpy as np
import pytest

from secondlook import Document, Ranker
from secondlook.model.settings import FittedOn, PlattCalibration
from served import QUERY, TEXTS, Engine, listening, serving

DOCUMENTS = [f"{text} the tide" for text in TEXTS]  # all are found


def scaled(ranker, source):
    on = FittedOn(source=source, pairs=20, relevant=10)
    scale = PlattCalibration(slope=0.7, intercept=-0.3, fitted_on=on)
    settings = ranker.settings.model_copy(update={"calibration": scale})
    return Ranker(settings, ranker.tokenizer, ranker.backend)


@pytest.fixture(scope="module")
def reference(ranker):
    return scaled(ranker, "reference pairs")


@pytest.fixture(scope="module")
def url(reference):
    index = Engine(Document(f"d{n}", text) for n, text in enumerate(DOCUMENTS))
    with listening(serving(reference, index=index)) as url:
        yield url


def post(url, path, **body):
    answer = httpx.post(f"{url}{path}", json={"query": QUERY} | body)
    assert answer.status_code == 200
    return answer


def test_python_and_every_route_give_the_same_number(url, reference):
    expected = reference.predict([(QUERY, text) for text in DOCUMENTS])
    raw = reference.predict([(QUERY, text) for text in DOCUMENTS], raw_scores=True)
    np.testing.assert_allclose(expected, 1 / (1 + np.exp(-(0.7 * raw - 0.3))), atol=1e-6)
    given = {
        "rank": {one["corpus_id"]: one["score"] for one in reference.rank(QUERY, DOCUMENTS)},
        "tei": {one["index"]: one["score"] for one in post(url, "/rerank", texts=DOCUMENTS).json()},
        "search": {
            int(hit["id"][1:]): hit["score"] for hit in post(url, "/v1/search").json()["hits"]
        },
    }
    for version in ("v1", "v2"):
        results = post(url, f"/{version}/rerank", documents=DOCUMENTS).json()["results"]
        given[version] = {one["index"]: one["relevance_score"] for one in results}
    for scores in given.values():
        assert sorted(scores) == list(range(len(DOCUMENTS)))
        shown = [scores[place] for place in range(len(DOCUMENTS))]
        np.testing.assert_allclose(shown, expected, atol=1e-6)


def test_raw_scores_are_given_on_request(url, reference):
    raw = reference.predict([(QUERY, text) for text in DOCUMENTS], raw_scores=True)
    ranked = reference.rank(QUERY, DOCUMENTS, raw_scores=True)
    given = [{one["corpus_id"]: one["score"] for one in ranked}]
    answer = post(url, "/rerank", texts=DOCUMENTS, raw_scores=True)
    given.append({one["index"]: one["score"] for one in answer.json()})
    assert answer.headers["X-Secondlook-Scores"] == "raw"
    hits = post(url, "/v1/search").json()["hits"]
    given.append({int(hit["id"][1:]): hit["raw_score"] for hit in hits})
    for version in ("v1", "v2"):
        body = {"documents": DOCUMENTS, "raw_scores": True}
        results = post(url, f"/{version}/rerank", **body).json()["results"]
        given.append({one["index"]: one["raw_score"] for one in results})
        assert all(0 <= one["relevance_score"] <= 1 for one in results)
        plain = post(url, f"/{version}/rerank", documents=DOCUMENTS).json()["results"]
        assert all("raw_score" not in one for one in plain)
    for scores in given:
        shown = [scores[place] for place in range(len(DOCUMENTS))]
        np.testing.assert_allclose(shown, raw, atol=1e-5)


def test_scores_that_no_judgment_made_say_so(url, reference):
    for version in ("v1", "v2"):
        meta = post(url, f"/{version}/rerank", documents=DOCUMENTS).json()["meta"]
        (warning,) = meta["warnings"]
        assert "not calibrated on judgments" in warning
    tei = post(url, "/rerank", texts=DOCUMENTS)
    assert tei.headers["X-Secondlook-Scores"] == "reference pairs"
    assert post(url, "/v1/search").json()["score_meaning"] == reference.score_meaning
    (info,) = httpx.get(f"{url}/info").json()["rankers"]
    assert info["scores"] == "reference pairs"
    assert info["score_meaning"] == reference.score_meaning


@pytest.mark.parametrize(("source", "warn"), [("judgments", True), ("corpus", False)])
def test_no_warning_where_judgments_made_them_or_it_is_silenced(ranker, source, warn):
    served = serving(scaled(ranker, source), score_warnings=warn)
    with listening(served) as url:
        answer = post(url, "/v2/rerank", documents=DOCUMENTS)
    assert "warnings" not in answer.json()["meta"]
