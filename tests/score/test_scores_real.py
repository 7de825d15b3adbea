"""Relevance scores of real rankers, without any judgments."""

import gzip
import json
from itertools import islice

import pytest

from secondlook import Ranker
from secondlook.score.warm import make_warm

pytestmark = pytest.mark.real

CATS = [
    "Cats turn in the air and land on their feet.",
    "Dogs bark at strangers.",
    "The stock market fell today.",
]


@pytest.fixture(
    scope="module",
    params=[
        "all-MiniLM-L6-v2",
        pytest.param("e5-small", marks=pytest.mark.slow),
        "ms-marco-minilm-l12",
    ],
)
def ranker(request, tmp_path_factory):
    if request.param == "all-MiniLM-L6-v2":
        base = request.getfixturevalue("minilm_folder")
    else:
        base = request.getfixturevalue("shared_weights") / request.param
    if request.param == "ms-marco-minilm-l12":
        return Ranker.load(base, device="cpu")
    folder = tmp_path_factory.mktemp("warm") / "ranker"
    make_warm(base, folder)
    return Ranker.load(folder, device="cpu")


@pytest.fixture(scope="module")
def questions(shared_data):
    """Questions of SQuAD's test part, each with its own and with another article's paragraph."""
    folder = shared_data / "squad-passage"
    with gzip.open(folder / "corpus.jsonl.gz", "rt") as lines:
        texts = {one["_id"]: one for one in map(json.loads, lines)}
    own = dict(
        line.split("\t")[:2]
        for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1::350]
    )
    with gzip.open(folder / "queries.jsonl.gz", "rt") as lines:
        asked = [
            (one["text"], own[one["_id"]]) for one in map(json.loads, lines) if one["_id"] in own
        ]
    asked = list(islice(asked, 24))
    shifted = [doc for _, doc in asked[12:] + asked[:12]]
    related = [(text, texts[doc]["text"]) for text, doc in asked]
    unrelated = [(text, texts[doc]["text"]) for (text, _), doc in zip(asked, shifted, strict=True)]
    return related, unrelated


def test_cats_are_near_1_and_the_stock_market_near_0(ranker):
    cats, dogs, market = ranker.predict([("how do cats land", text) for text in CATS])
    assert cats > 0.85
    assert market < 0.1
    assert cats > dogs
    assert ranker.rank("how do cats land", CATS)[0]["corpus_id"] == 0


def test_related_texts_lie_above_one_half_and_unrelated_ones_below(ranker, questions):
    related, unrelated = (ranker.predict(pairs) for pairs in questions)
    assert (related > 0.5).mean() >= 0.7
    assert (unrelated > 0.5).mean() <= 0.05
    assert len({*related.tolist(), *unrelated.tolist()}) == 48
    assert related.max() < 1
