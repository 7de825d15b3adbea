"""Vectors of single texts give the scores of the ranker that reads pairs."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from secondlook.encode.settings import WindowSettings
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import new_joint, new_warm, save_model
from secondlook.score.cores import threads
from secondlook.score.encoder_copy import copy_encoder, identity
from secondlook.score.ranker import Ranker
from secondlook.score.vector_export import can_export_encoder
from secondlook.score.vector_scorer import VectorScorer
from secondlook.score.vectors import VectorEncoder, scores_by_vectors, vector_fingerprint
from secondlook.types import Document, Query

QUERIES = [Query("1", "what is the tide"), Query("2", "cape fear river " * 6)]
DOCUMENTS = [
    Document("a", "the tide of the deep sea"),
    Document("b", "cape fear is a river mouth", "cape"),
    Document("c", ""),
    Document("d", "bogue " * 9),
    Document("e", "deep sea " * 25 + "cape fear river tide " * 5 + "bogue mouth " * 20),  # cut
]
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS]


def save_ranker(folder, *, separate_layers=2, seed=0, **encode):
    base = tiny.save(tiny.encoder(seed=seed), folder.with_name(f"{folder.name}-base"))
    made = new_warm(base, separate_layers=separate_layers, encode={"max_length": 60} | encode)
    made.network.head.weight.data.normal_(std=0.3)
    made.network.head.bias.data.fill_(0.7)
    save_model(made, folder)
    return folder


class InMemory:
    """Stored vectors, as the index gives them."""

    def __init__(self, encoder, documents):
        made = encoder.documents(documents)
        parts = np.split(made.rows, np.cumsum(made.counts)[:-1])
        self.rows = {one.id: own for one, own in zip(documents, parts, strict=True)}

    def similarities(self, vectors, doc_ids):
        from secondlook.retrieve.vectors import Similarities

        return [
            Similarities(
                np.concatenate([self.rows[one] for one in own]) @ vector,
                np.array([len(self.rows[one]) for one in own]),
            )
            for vector, own in zip(vectors, doc_ids, strict=True)
        ]


@pytest.mark.parametrize(
    "encode", [{}, {"strm": True}, {"query_prompt": "the ", "document_prompt": "a "}]
)
def test_dot_products_give_the_scores_of_pairs(tmp_path, encode):
    folder = save_ranker(tmp_path / "ranker", **encode)
    encoder, ranker = VectorEncoder.load(folder), Ranker.load(folder, device="cpu")
    scorer = VectorScorer(encoder, InMemory(encoder, DOCUMENTS), None)
    assert scorer.score(PAIRS) == pytest.approx(ranker.score(PAIRS), abs=1e-4)
    assert np.linalg.norm(encoder.query_vectors(QUERIES), axis=1) == pytest.approx(1)


@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
def test_windows_are_pooled_as_the_ranker_pools_them(tmp_path, pooling):
    windows = {"length": 4, "stride": 2, "pooling": pooling}
    folder = save_ranker(tmp_path / "ranker", windows=windows)
    encoder, ranker = VectorEncoder.load(folder), Ranker.load(folder, device="cpu")
    scorer = VectorScorer(
        encoder, InMemory(encoder, DOCUMENTS), WindowSettings.model_validate(windows)
    )
    by_pairs, by_vectors = ranker.scored(PAIRS), scorer.scored(PAIRS)
    assert by_vectors.scores == pytest.approx(by_pairs.scores, abs=1e-4)
    assert by_vectors.best.tolist() == by_pairs.best.tolist()
    every = (scored.scored_windows(PAIRS).windows for scored in (scorer, ranker))
    for one, other in zip(*every, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert max(map(len, scorer.scored_windows(PAIRS).windows)) > 1


def test_no_pairs_no_scores(tmp_path):
    encoder = VectorEncoder.load(save_ranker(tmp_path / "ranker"))
    assert len(VectorScorer(encoder, InMemory(encoder, DOCUMENTS), None).score([])) == 0


def test_only_a_ranker_whose_layers_are_all_separate_scores_by_vectors(tmp_path):
    for layers, expected in ((0, False), (1, False), (2, True)):
        folder = save_ranker(tmp_path / str(layers), separate_layers=layers)
        assert scores_by_vectors(open_checkpoint(folder)) is expected


def test_a_ranker_with_open_layers_makes_the_vectors_of_its_bi_encoder(tmp_path):
    whole = VectorEncoder.load(save_ranker(tmp_path / "separate", separate_layers=2))
    open_ = VectorEncoder.load(save_ranker(tmp_path / "open", separate_layers=0))
    assert open_.query_vectors(QUERIES) == pytest.approx(whole.query_vectors(QUERIES), abs=1e-5)


def test_fingerprints_tell_rankers_apart_but_not_poolings(tmp_path):
    folder = save_ranker(tmp_path / "ranker", windows={"length": 9, "stride": 3})
    plain = vector_fingerprint(open_checkpoint(folder))
    text = (folder / "secondlook.json").read_text()
    (folder / "secondlook.json").write_text(text.replace('"max"', '"mean"'))
    assert vector_fingerprint(open_checkpoint(folder)) == plain
    (folder / "secondlook.json").write_text(text.replace('"stride": 3', '"stride": 4'))
    assert vector_fingerprint(open_checkpoint(folder)) != plain
    (folder / "secondlook.json").write_text(text)
    other = save_ranker(tmp_path / "other", seed=1, windows={"length": 9, "stride": 3})
    assert vector_fingerprint(open_checkpoint(other)) != plain


def test_rankers_that_read_pairs_only_are_refused(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    save_model(new_joint(base), tmp_path / "joint")
    with pytest.raises(CheckpointProblem, match=r"together.*secondlook warm"):
        identity(tmp_path / "joint")
    marked = save_ranker(tmp_path / "marked", markers={})
    with pytest.raises(CheckpointProblem, match="markers"):
        identity(marked)
    with pytest.raises(CheckpointProblem, match="cross-encoder"):
        identity(tiny.save(tiny.classifier(), tmp_path / "cross"))


def test_a_copy_of_a_bi_encoder_is_a_ranker_of_separate_layers(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    assert not copy_encoder(base, tmp_path / "copy")
    assert scores_by_vectors(open_checkpoint(tmp_path / "copy"))
    assert not list(tmp_path.glob("*.half"))


def test_an_exported_encoder_makes_the_same_vectors_without_torch(tmp_path):
    if not can_export_encoder():
        pytest.skip("no openvino to export to")
    folder = save_ranker(tmp_path / "ranker", strm=True)
    assert copy_encoder(folder, tmp_path / "copy")
    assert (tmp_path / "copy" / "openvino" / "encoder.fp32.xml").is_file()
    fast, slow = VectorEncoder.load(tmp_path / "copy"), VectorEncoder.load(folder)
    assert type(fast._backend).__name__ == "OpenVinoBackend"
    one, other = fast.documents(DOCUMENTS), slow.documents(DOCUMENTS)
    assert one.rows == pytest.approx(other.rows, abs=1e-4)
    assert fast.queries(QUERIES).intercepts == pytest.approx(
        slow.queries(QUERIES).intercepts, abs=1e-3
    )
    fingerprints = [vector_fingerprint(open_checkpoint(at)) for at in (folder, tmp_path / "copy")]
    assert fingerprints[0] == fingerprints[1]
    single = VectorEncoder.load_for_queries(tmp_path / "copy")  # all cores work on each batch
    assert (single._backend.workers, single._backend.batch_threads) == (1, threads())
    assert single.query_vectors(QUERIES) == pytest.approx(fast.query_vectors(QUERIES), abs=1e-6)
