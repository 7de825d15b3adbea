"""Two real servers of the same weights, ours and Infinity, give the same scores by URL."""

import shutil

import numpy as np
import pytest

import tiny
from infinity_server import MISSING, infinity, is_installed
from secondlook import Ranker, open_ranker
from secondlook.types import Document, Query
from served import listening, serving

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not is_installed(), reason=MISSING),
]

QUERIES = ["where is the deep sea fish", "Wie tief ist die See?"]
TEXTS = [
    "the deep sea",
    "fish " * 700,
    "bogue is a fish in the river of insouci",
    "Cape Fear, a river: tides in; tides out!",
    "La marée descend à six heures.",
    "a",
]
PAIRS = [
    (Query(str(at), query), Document(str(place), text))
    for at, query in enumerate(QUERIES)
    for place, text in enumerate(TEXTS)
]


@pytest.fixture(scope="module", params=["tiny", "ms-marco-minilm-l12"])
def folder(request, tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    if request.param == "tiny":
        return tiny.save(tiny.classifier(), made / "tiny")
    weights = request.getfixturevalue("shared_weights") / request.param
    if not weights.is_dir():
        pytest.skip(f"no cross-encoder at {weights}")
    return shutil.copytree(weights, made / request.param)


@pytest.fixture(scope="module")
def servers(folder, tmp_path_factory):
    """Addresses of ours, in each of its APIs, and of theirs."""
    log = tmp_path_factory.mktemp("infinity") / "log"
    ranker = Ranker.load(folder, device="cpu")
    with listening(serving(ranker)) as url, infinity(folder, log) as theirs:
        yield f"{url}/rerank#cache=off", f"{theirs}#cache=off,batch=4", ranker


def test_both_give_the_scores_of_the_weights(servers):
    ours, theirs, ranker = servers
    local = ranker.score(PAIRS)
    here, there = open_ranker(ours), open_ranker(theirs)
    np.testing.assert_allclose(here.score(PAIRS), local, atol=1e-4)
    probabilities = there.relevance(there.score(PAIRS))
    np.testing.assert_allclose(probabilities, here.relevance(local), atol=1e-4)
    assert np.ptp(probabilities) > 0.01
    assert there.usage.requests == 4


def test_both_rank_alike(servers):
    ours, theirs, _ = servers
    ranked = [open_ranker(address).rank(QUERIES[0], TEXTS) for address in (ours, theirs)]
    orders = [[one["corpus_id"] for one in some] for some in ranked]
    assert orders[0] == orders[1]


def test_the_wrong_api_is_told_with_the_right_way(servers):
    from secondlook.errors import RemoteProblem

    _, theirs, _ = servers
    wrong = theirs.removeprefix("jina+")
    with pytest.raises(RemoteProblem, match=r"jina\+http"):
        open_ranker(wrong).rank(QUERIES[0], TEXTS)
