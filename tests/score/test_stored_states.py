"""States of single texts give the scores of the ranker that reads pairs."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tiny
from secondlook.errors import BackendProblem, CheckpointProblem
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import new_warm, save_model
from secondlook.score import state_scorer, vector_export
from secondlook.score.encoder_copy import copy_encoder
from secondlook.score.ranker import Ranker
from secondlook.score.state_scorer import StateScorer
from secondlook.score.states import StateEncoder, check_states, scores_by_states, torch_layers
from secondlook.score.vector_export import can_export_encoder
from secondlook.types import Document, Query

QUERIES = [Query("1", "what is the tide"), Query("2", "cape fear bogue river")]
DOCUMENTS = [
    Document("a", "the tide of the deep sea"),
    Document("b", "cape fear is a river mouth", "cape"),
    Document("c", ""),
    Document("d", "bogue insouci " * 9),
    Document("e", "deep sea " * 25 + "cape fear river tide " * 5 + "bogue mouth " * 20),  # cut
]
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS]


class InMemory:
    """Stored states, as the index gives them."""

    def __init__(self, ranker, documents=DOCUMENTS):
        self.ranker = ranker
        made = StateEncoder.load(ranker).documents(documents)
        self.states = {one.id: own for one, own in zip(documents, made, strict=True)}

    def read(self, doc_ids):
        return [self.states[doc_id] for doc_id in doc_ids]


OTHERS = [
    pytest.param(family, {"strm": True}, marks=pytest.mark.slow)
    for family in tiny.FAMILIES
    if family != "bert"
]


@pytest.mark.parametrize(
    ("family", "encode"),
    [
        ("bert", {}),
        ("bert", {"strm": True}),
        ("bert", {"query_prompt": "the ", "document_prompt": "a "}),
        *OTHERS,
    ],
)
def test_states_give_the_scores_of_pairs(tmp_path, family, encode):
    folder = tiny.half_separate(tmp_path / "ranker", family, **encode)
    expected = Ranker.load(folder, device="cpu").score(PAIRS)
    stored = InMemory(folder)
    assert {one.rows.dtype for one in stored.states.values()} == {np.dtype(np.float16)}
    scores = StateScorer.load(stored).score(PAIRS)
    assert np.ptp(expected) > 1
    assert scores == pytest.approx(expected, abs=1e-2)
    assert np.argsort(scores).tolist() == np.argsort(expected).tolist()
    assert len(StateScorer.load(stored).score([])) == 0


def test_graphs_make_the_states_and_the_scores_of_torch(tmp_path, monkeypatch):
    if not can_export_encoder():
        pytest.skip("no openvino to export to")
    monkeypatch.setattr("secondlook.score.encoder_copy.export_encoder", lambda _: None)  # not ours
    folder, copy = tiny.half_separate(tmp_path / "ranker", strm=True), tmp_path / "copy"
    assert copy_encoder(folder, copy, states=True)
    graphs = {path.name for path in (copy / "openvino").glob("*.xml")}
    assert graphs == {"lower.fp32.xml", "upper.fp32.xml"}
    fast, slow = StateEncoder.load(copy), StateEncoder.load(folder)
    assert type(fast._backend).__name__ == "OpenVinoBackend"
    assert type(slow._backend).__name__ == "TorchVectors"
    for one, other in zip(fast.queries(QUERIES), slow.queries(QUERIES), strict=True):
        assert one.rows == pytest.approx(other.rows, abs=1e-4)
    scorer = StateScorer.load(InMemory(copy))
    assert type(scorer._upper).__name__ == "OpenVinoBackend"
    expected = Ranker.load(folder, device="cpu").score(PAIRS)
    assert scorer.score(PAIRS) == pytest.approx(expected, abs=1e-2)


def test_graphs_with_other_scores_are_not_kept(tmp_path, monkeypatch):
    folder = tiny.half_separate(tmp_path / "ranker")
    other = tiny.half_separate(tmp_path / "other", seed=1)
    wrong = dict(zip(("lower", "upper"), torch_layers(other), strict=True))
    monkeypatch.setattr("secondlook.model.onnx_graph.write_onnx", lambda *_: None)
    monkeypatch.setattr(vector_export, "write_graph", lambda *_: None)
    monkeypatch.setattr(vector_export, "open_export", lambda made, _: wrong[made.part])
    with pytest.raises(BackendProblem, match="from torch's"):
        vector_export.export_layers(folder)
    assert not list((folder / "openvino").iterdir())


def test_at_a_deadline_the_first_pairs_have_scores(tmp_path, monkeypatch):
    scorer = StateScorer.load(InMemory(tiny.half_separate(tmp_path / "ranker")))
    monkeypatch.setattr(state_scorer, "_AT_ONCE", 3)
    whole = scorer.score(PAIRS)
    assert scorer.score_until(PAIRS, time.monotonic() + 60) == pytest.approx(whole, abs=1e-5)
    ticks = iter(range(100))  # a part takes one tick: one begins at 0, one at 2, none at 4
    monkeypatch.setattr(state_scorer, "monotonic", lambda: float(next(ticks)))
    assert scorer.score_until(PAIRS, 4.0) == pytest.approx(whole[:6], abs=1e-5)
    assert len(scorer.score_until(PAIRS, 0.0)) == 0


def test_states_that_16_bits_cannot_hold_are_refused(tmp_path):
    encoder = StateEncoder.load(tiny.half_separate(tmp_path / "ranker"))
    run = encoder._backend.run
    encoder._backend.run = lambda batch: 1e5 * run(batch)
    with pytest.raises(BackendProblem, match="vectors without states"):
        encoder.documents(DOCUMENTS)


@pytest.mark.parametrize(
    ("layers", "encode", "message"),
    [
        (0, {}, "no separate layers.*--separate N"),
        (2, {}, "all layers.*without states"),
        (1, {"windows": {"length": 9, "stride": 3}}, "windows.*without states"),
        (1, {"markers": {}}, "without markers"),
    ],
)
def test_rankers_whose_states_cannot_be_stored_are_refused(tmp_path, layers, encode, message):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    folder = tmp_path / "ranker"
    save_model(new_warm(base, separate_layers=layers, encode={"max_length": 60} | encode), folder)
    assert not scores_by_states(open_checkpoint(folder))
    with pytest.raises(CheckpointProblem, match=message):
        check_states(folder)


def test_a_bi_encoder_has_no_states(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match=r"bi-encoder.*secondlook warm .* --separate N"):
        check_states(base)
    check_states(tiny.half_separate(tmp_path / "ranker"))
