"""Documents that left a live index between retrieval and re-ranking."""

import numpy as np
import pytest

from secondlook.errors import MissingDocument, VanishedDocuments
from secondlook.rank import rerank, with_tails
from secondlook.rank.present import fetch_present
from secondlook.train.mine import Miner, MineSettings
from secondlook.types import Document, Hit, Query, Ranking

QUERY = Query("q", "tide")
FIRST = Ranking("q", tuple(Hit(f"d{n}", 9.0 - n) for n in range(4)))


class LiveIndex:
    """Holds these documents now, whatever it held before."""

    def __init__(self, *doc_ids):
        self._there = {doc_id: Document(doc_id, f"text of {doc_id}") for doc_id in doc_ids}

    def fetch(self, doc_ids):
        gone = [doc_id for doc_id in doc_ids if doc_id not in self._there]
        found = {d: self._there[d] for d in reversed(doc_ids) if d in self._there}
        if gone:
            raise VanishedDocuments(gone, "the live index", found)
        return [found[doc_id] for doc_id in doc_ids]


class Backwards:
    """Prefers what the first stage ranked last."""

    def score(self, pairs):
        return np.array([float(document.id[1:]) for _, document in pairs], np.float32)


def test_vanished_hits_are_not_scored_and_stay_at_the_end_of_a_run():
    (ranking,) = rerank([QUERY], [FIRST], LiveIndex("d0", "d2", "d3"), Backwards())
    assert [hit.doc_id for hit in ranking.hits] == ["d3", "d2", "d0"]
    (whole,) = with_tails([ranking], [FIRST])
    assert [hit.doc_id for hit in whole.hits] == ["d3", "d2", "d0", "d1"]
    nothing = Ranking("q", ())
    (tail,) = with_tails([nothing], [FIRST])  # all of them vanished, and other queries' did not
    assert [hit.doc_id for hit in tail.hits] == ["d0", "d1", "d2", "d3"]


def test_ids_of_another_corpus_are_an_error_and_one_that_vanished_is_not():
    with pytest.raises(MissingDocument, match="another corpus"):
        fetch_present(LiveIndex("x"), ["d0", "d1"])
    assert fetch_present(LiveIndex("x"), ["d0"]) == {}


def test_mining_goes_on_without_them():
    settings = MineSettings(negatives=3, ranks=(1, 4), seed=1)
    miner = Miner({"q": QUERY}, {"q": {"d0": 1, "d9": 1}}, LiveIndex("d0", "d3"), settings)
    (group,) = miner.groups([FIRST])
    assert [document.id for document in group.documents] == ["d0", "d3"]
    assert miner.counts.positives_without_text == 1
