"""Re-ranking from stored vectors gives the run that reading every document gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from invented import write_deep_sea
from secondlook.data import read_run
from secondlook.retrieve.bm25 import Bm25Index
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.score.torch_backend import TorchBackend
from secondlook.workflows.index import build_index
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve
from secondlook.workflows.search import search
from secondlook.workflows.warm import warm


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_deep_sea(folder)
    base = tiny.save(tiny.encoder(), folder / "base")
    warm(base, folder / "separate", separate_layers="all")
    warm(base, folder / "windows", separate_layers="all", window=4, stride=2)
    warm(base, folder / "half", separate_layers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
        for name in ("separate", "windows", "half"):
            index = folder / f"{name}.index"
            build_index(folder / "corpus.jsonl", index, vectors=folder / name)
    retrieve(folder / "separate.index", folder / "queries.jsonl", folder / "bm25.trec", by="bm25")
    return folder


def run_of(data, output, index="separate.index", ranker="separate", **options):
    result = rerank(
        data / "bm25.trec", data / index, data / "queries.jsonl", data / ranker, output, **options
    )
    return result, list(read_run(str(output)))


@pytest.mark.parametrize(
    ("ranker", "raw"), [("separate", False), ("windows", False), ("windows", True)]
)
def test_the_run_is_the_same_without_reading_a_document(data, tmp_path, monkeypatch, ranker, raw):
    own = {"index": f"{ranker}.index", "ranker": ranker, "raw": raw}
    by_pairs, expected = run_of(data, tmp_path / "pairs.trec", stored_vectors=False, **own)

    def never(*_):
        raise AssertionError("a document was read")

    monkeypatch.setattr(TorchBackend, "logits", never)
    monkeypatch.setattr(Bm25Index, "fetch", never)
    by_vectors, found = run_of(data, tmp_path / "vectors.trec", **own)
    assert (by_pairs.by_vectors, by_vectors.by_vectors) == (False, True)
    assert "by stored vectors" in by_vectors.summary()
    assert "cut short" in by_pairs.summary()
    assert "cut short" not in by_vectors.summary()  # nobody read a text to know
    assert by_vectors.pairs == by_pairs.pairs > 0
    for one, other in zip(found, expected, strict=True):
        scores = {hit.doc_id: hit.score for hit in other.hits}
        assert {hit.doc_id: hit.score for hit in one.hits} == pytest.approx(scores, abs=1e-3)


@pytest.mark.parametrize(
    ("index", "ranker"),
    [("half.index", "half"), ("separate.index", "half"), ("windows.index", "separate")],
)
def test_vectors_of_another_ranker_or_of_open_layers_are_left_alone(data, tmp_path, index, ranker):
    result, _ = run_of(data, tmp_path / "out.trec", index=index, ranker=ranker)
    assert not result.by_vectors


def test_a_cascade_chooses_by_vectors_too(data, tmp_path, monkeypatch):
    _, expected = run_of(
        data,
        tmp_path / "a.trec",
        ranker="half",
        cascade=(data / "separate", 3),
        stored_vectors=False,
    )
    result, found = run_of(data, tmp_path / "b.trec", ranker="half", cascade=(data / "separate", 3))
    assert [[hit.doc_id for hit in one.hits] for one in found] == [
        [hit.doc_id for hit in one.hits] for one in expected
    ]
    assert not result.by_vectors


def test_a_search_is_re_ranked_by_vectors(data, monkeypatch):
    found = {}
    for ranker in ("separate", "windows"):
        index = data / f"{ranker}.index"
        found[ranker] = search(index, "what is the tide", ranker=data / ranker, by="hybrid")
    monkeypatch.setattr("secondlook.workflows.vectors.stored_scorer_of", lambda *_: None)
    for ranker, by_vectors in found.items():
        index = data / f"{ranker}.index"
        by_pairs = search(index, "what is the tide", ranker=data / ranker, by="hybrid")
        assert [hit.document.id for hit in by_vectors.hits] == [
            hit.document.id for hit in by_pairs.hits
        ]
        assert [hit.passage for hit in by_vectors.hits] == [hit.passage for hit in by_pairs.hits]
        assert [hit.raw_score for hit in by_vectors.hits] == pytest.approx(
            [hit.raw_score for hit in by_pairs.hits], abs=1e-3
        )


def test_a_search_reads_texts_that_changed_since_they_were_encoded(data, monkeypatch):
    """An attached index is written to by others; the best window of a vector may not be there."""
    fetch = HybridIndex.fetch
    monkeypatch.setattr(
        HybridIndex,
        "fetch",
        lambda self, ids: [replace(one, text="what the tide is now") for one in fetch(self, ids)],
    )
    index, ranker = data / "windows.index", data / "windows"
    by_vectors = search(index, "what is the tide", ranker=ranker, by="hybrid")
    monkeypatch.setattr("secondlook.workflows.vectors.stored_scorer_of", lambda *_: None)
    by_pairs = search(index, "what is the tide", ranker=ranker, by="hybrid")
    assert by_vectors.to_list() == by_pairs.to_list()
