"""The back ends agree on real weights and real pairs: TREC DL 2019's BM25 top-100."""

from __future__ import annotations

from itertools import islice

import ir_measures
import numpy as np
import pytest
import torch
from ir_measures import nDCG
from scipy.stats import kendalltau

from secondlook import data
from secondlook.model.network import Model, new_joint, new_warm, save_model
from secondlook.score.export import export_ranker
from secondlook.score.ranker import Ranker

pytestmark = pytest.mark.real

SWITCHES = {
    "plain": {},
    "STRM": {"strm": True},
    "markers": {"markers": {"tokens": "unused"}},
    "STRM and markers": {"strm": True, "markers": {"tokens": "unused"}},
}


@pytest.fixture(scope="module")
def candidates(shared_data):
    """Query id → its 100 pairs, best of BM25 first."""
    folder = shared_data / "msmarco-dl"
    queries = {query.id: query for query in data.read_queries(folder / "queries.jsonl")}
    documents = {document.id: document for document in data.read_corpus(folder / "corpus.jsonl.gz")}
    return {
        ranking.query_id: [(queries[ranking.query_id], documents[h.doc_id]) for h in ranking.hits]
        for ranking in data.read_run(folder / "runs" / "dl19.bm25.trec.gz")
    }


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("plain", marks=pytest.mark.slow),
        pytest.param("STRM", marks=pytest.mark.slow),
        pytest.param("markers", marks=pytest.mark.slow),
        "STRM and markers",
    ],
)
def joint(request, minilm_folder, tmp_path_factory):
    """A cross-encoder with a head that is random, and large enough for logits to differ."""
    torch.manual_seed(0)
    made = new_joint(minilm_folder, SWITCHES[request.param])
    made.network.classifier.classifier.weight.data.normal_()
    settings = made.settings.model_copy(update={"trained": True})
    folder = tmp_path_factory.mktemp("joint") / "ranker"
    save_model(Model(made.network, made.tokenizer, settings, made.files), folder)
    return folder


@pytest.fixture(scope="module")
def warm(shared_weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("warm") / "ranker"
    save_model(new_warm(shared_weights / "e5-small"), folder)
    return folder


@pytest.mark.slow  # re-measures; every export is held against torch when it is made
def test_float32_logits_are_those_of_torch(joint, candidates):
    some = [pair for ranked in candidates.values() for pair in ranked][::2][:2000]
    expected = Ranker.load(joint, backend="torch").score(some)
    assert np.ptp(expected) > 1
    for engine in ("onnx", "openvino"):
        export_ranker(joint, engine, "fp32")
        scores = Ranker.load(joint, backend=engine, precision="fp32").score(some)
        print(engine, "largest difference", np.abs(scores - expected).max())  # noqa: T201
        np.testing.assert_allclose(scores, expected, atol=1e-3)


@pytest.fixture(scope="module", params=[1, pytest.param(43, marks=pytest.mark.slow)])
def exact(request, warm, candidates):
    """Query id → scores in float32, for some queries and for all."""
    export_ranker(warm, "openvino", "fp32")
    some = dict(islice(candidates.items(), request.param))
    return reranked(Ranker.load(warm, backend="openvino", precision="fp32"), some)


@pytest.mark.slow  # re-measures; every export is held against torch when it is made
@pytest.mark.parametrize("kind", [("openvino", "bf16"), ("openvino", "int8"), ("onnx", "int8")])
def test_rounded_precisions_keep_the_order(warm, exact, candidates, shared_data, kind):
    export_ranker(warm, *kind)
    some = {query: candidates[query] for query in exact}
    rounded = reranked(Ranker.load(warm, backend=kind[0], precision=kind[1]), some)
    taus = [kendalltau(exact[query], rounded[query]).statistic for query in exact]
    assert min(taus) >= 0.98
    qrels = data.read_qrels(shared_data / "msmarco-dl" / "qrels" / "dl19.tsv")
    before, after = ndcg(exact, some, qrels), ndcg(rounded, some, qrels)
    print(f"{kind}: tau {min(taus):.4f} to {max(taus):.4f}, nDCG@10 {before:.4f}, {after:.4f}")  # noqa: T201
    if len(exact) == 43:
        assert after == pytest.approx(before, abs=0.003)


def reranked(ranker, candidates):
    """Query id → the scores of its candidates."""
    scores = ranker.score([pair for pairs in candidates.values() for pair in pairs])
    ends = np.cumsum([len(pairs) for pairs in candidates.values()])
    return dict(zip(candidates, np.split(scores, ends[:-1]), strict=True))


def ndcg(scores, candidates, qrels):
    run = {
        query: {d.id: float(s) for (_, d), s in zip(candidates[query], scores[query], strict=True)}
        for query in candidates
    }
    judged = {query: qrels[query] for query in candidates}
    return ir_measures.calc_aggregate([nDCG @ 10], judged, run)[nDCG @ 10]
