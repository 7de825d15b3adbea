"""Both engines on real collections: good enough, and alike."""

from __future__ import annotations

import pytest

from secondlook.data import read_corpus, read_qrels, read_queries
from secondlook.evaluate.measures import evaluate
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("name", "floor"), [("scifact", 0.66), pytest.param("nfcorpus", 0.31, marks=pytest.mark.slow)]
)
def test_the_engines_are_good_and_agree(shared_data, three_nodes, tmp_path, name, floor):
    folder = shared_data / name
    qrels = read_qrels(folder / "qrels" / "test.tsv")
    queries = [query for query in read_queries(folder) if query.id in qrels]
    here = Bm25Index.build(tmp_path / "here", read_corpus(folder), Bm25Settings())
    settings = OpenSearchSettings(urls=three_nodes.urls, name=name, shards=3, replicas=1)
    there = OpenSearchIndex.build(tmp_path / "there", read_corpus(folder), settings)
    assert here.card.fingerprint == there.card.fingerprint
    measured = [
        evaluate(qrels, engine.retrieve(queries, 20), ["nDCG@10"]).means["nDCG@10"]
        for engine in (here, there)
    ]
    assert min(measured) >= floor
    assert abs(measured[0] - measured[1]) <= 0.015
