"""An API of another package: one file, one line that registers it."""

from __future__ import annotations

import acme_api
import httpx
import pytest

import tiny
from secondlook import Ranker
from secondlook.errors import SecondlookError
from secondlook.serve import tei
from secondlook.serve.api_shapes import API_SHAPES, all_shapes
from served import QUERY, TEXTS, listening, serving


@pytest.fixture
def ranker(tmp_path):
    return Ranker.load(tiny.save(tiny.classifier(), tmp_path / "tiny"), device="cpu")


def test_it_answers_beside_ours_and_refuses_in_its_own_shape(ranker):
    API_SHAPES.add("acme", acme_api.SHAPE)
    with listening(serving(ranker)) as url, httpx.Client(base_url=url) as client:
        asked = {"query": QUERY, "input": TEXTS, "top_k": 2}
        found = client.post("/acme/v9/rerank", json=asked).json()["data"]
        expected = ranker.predict([(QUERY, text) for text in TEXTS])
        assert [one["index"] for one in found] == (-expected).argsort(kind="stable")[:2].tolist()
        assert found[0]["score"] == pytest.approx(expected.max(), abs=1e-3)
        empty = client.post("/acme/v9/rerank", json=asked | {"input": []})
        assert (empty.status_code, empty.json()["error"]["code"]) == (400, 400)
        wrong = client.post("/acme/v9/rerank", json={"query": QUERY})
        assert "input" in wrong.json()["error"]["reason"]
        ours = client.post("/rerank", json={"query": QUERY, "texts": []})
        assert ours.json()["error_type"] == "Empty"
        assert client.post("/acme/v9/nothing", json={}).json().keys() == {"message"}


def test_its_errors_keep_their_shape_where_a_key_is_missing(ranker, tmp_path):
    API_SHAPES.add("acme", acme_api.SHAPE)
    keys = tmp_path / "keys"
    keys.write_text("me sha256:" + 64 * "0")
    with listening(serving(ranker, keys=keys)) as url:
        refused = httpx.post(f"{url}/acme/v1/rerank", json={})
    assert refused.status_code == 401
    assert "needs a key" in refused.json()["error"]["reason"]


def test_two_apis_of_one_path_are_refused():
    API_SHAPES.add("another", tei.SHAPE)
    with pytest.raises(SecondlookError, match="'tei' and 'another' both answer /rerank"):
        all_shapes()
