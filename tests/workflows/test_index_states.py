"""An index that stores states: the run of a ranker that reads every document, without reading."""

from __future__ import annotations

import pytest

import tiny
from command_line import in_process
from invented import DEEP_SEA, write_deep_sea
from secondlook.data import read_run
from secondlook.errors import CheckpointProblem, WrongArgument
from secondlook.retrieve.bm25 import Bm25Index
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.retrieve.vector_files import read_vector_card
from secondlook.score.states import StateEncoder
from secondlook.score.torch_backend import TorchBackend
from secondlook.workflows import vectors as workflow
from secondlook.workflows.index import build_index
from secondlook.workflows.open_index import open_index
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve
from secondlook.workflows.search import search
from secondlook.workflows.vector_refusals import refuse_states
from secondlook.workflows.vectors import stored_scorer_of


@pytest.fixture(scope="module", autouse=True)
def _no_export():
    """What an export takes, a test of its own shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_deep_sea(folder)
    tiny.half_separate(folder / "half")
    tiny.half_separate(folder / "other", seed=1)
    made = in_process(
        "index", folder / "corpus.jsonl", folder / "index", "--vectors", folder / "half", "--states"
    )
    card = read_vector_card(folder / "index" / "vectors")
    assert card.state_tokens > 5 * len(DEEP_SEA)
    assert f"{card.state_tokens * 66 / len(DEEP_SEA):,.0f} bytes per passage" in made
    retrieve(folder / "index", folder / "queries.jsonl", folder / "bm25.trec", by="bm25")
    return folder


def run_of(data, output, ranker="half", **options):
    queries, index = data / "queries.jsonl", data / "index"
    result = rerank(data / "bm25.trec", index, queries, data / ranker, output, **options)
    return result, list(read_run(str(output)))


def test_the_run_is_the_same_without_reading_a_document(data, tmp_path, monkeypatch):
    by_pairs, expected = run_of(data, tmp_path / "pairs.trec", stored_vectors=False)

    def never(*_):
        raise AssertionError("a document was read")

    monkeypatch.setattr(TorchBackend, "logits", never)
    monkeypatch.setattr(Bm25Index, "fetch", never)
    by_states, found = run_of(data, tmp_path / "states.trec")
    assert (by_pairs.by_states, by_states.by_states, by_states.by_vectors) == (False, True, False)
    assert "from stored states" in by_states.summary()
    assert by_states.pairs == by_pairs.pairs > 0
    for one, other in zip(found, expected, strict=True):
        scores = {hit.doc_id: hit.score for hit in other.hits}
        assert {hit.doc_id: hit.score for hit in one.hits} == pytest.approx(scores, abs=1e-2)


def test_states_of_another_ranker_are_left_alone(data, tmp_path):
    result, _ = run_of(data, tmp_path / "out.trec", ranker="other")
    assert not result.by_states


def test_a_search_starts_from_states(data, monkeypatch):
    words = "what is the tide"
    by_states = search(data / "index", words, ranker=data / "half")
    monkeypatch.setattr("secondlook.workflows.vectors.stored_scorer_of", lambda *_: None)
    by_pairs = search(data / "index", words, ranker=data / "half")
    found, expected = ({h.document.id: h.raw_score for h in s.hits} for s in (by_states, by_pairs))
    assert found == pytest.approx(expected, abs=1e-2)
    assert found != expected  # to 16 bits


class Killed(BaseException):
    """Ends the work as a kill does."""


def test_killed_twice_the_states_end_with_the_same_bytes(data, tmp_path, monkeypatch):
    monkeypatch.setattr(workflow, "_AT_ONCE", 4)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    given = data / "corpus.jsonl", data / "half"
    for folder in (straight, killed):
        build_index(given[0], folder, vectors=given[1])
    without = read_vector_card(killed / "vectors")
    assert without.state_tokens == 0
    workflow.add_vectors(straight, *given, states=True)
    encode, calls = StateEncoder.documents, []

    def documents(self, some):
        calls.append([one.id for one in some])
        if len(calls) in (3, 5):
            raise Killed
        return encode(self, some)

    monkeypatch.setattr(StateEncoder, "documents", documents)
    for _ in range(2):
        with pytest.raises(Killed):
            workflow.add_vectors(killed, *given, states=True)
        assert read_vector_card(killed / "vectors") == without  # the old ones serve until then
    result = workflow.add_vectors(killed, *given, states=True)
    assert "bytes per passage" in result.summary()
    assert calls[2] == calls[3] != calls[0]  # the batch of the kill, then on from there
    one, other = (
        {p.name: p.read_bytes() for p in (folder / "vectors").iterdir() if p.is_file()}
        for folder in (straight, killed)
    )
    assert one == other
    assert {"states.bin", "state_words.bin", "state_counts.bin"} <= one.keys()
    calls.clear()
    for states in (True, False):  # what is there is not made again
        workflow.add_vectors(killed, *given, states=states)
    assert calls == []
    index = open_index(killed).engine
    assert isinstance(index, HybridIndex)
    assert index.vectors.states is not None


class OnACluster:
    """An engine that keeps vectors itself."""

    stores_vectors = True


@pytest.mark.parametrize(
    ("engine", "ray", "message"),
    [
        (Bm25Index, "local", "leave out ray"),
        ("attached", None, "attached.*leave out states"),
        (OnACluster, None, "index with bm25s"),
    ],
)
def test_where_states_cannot_be_stored_they_are_refused(data, engine, ray, message):
    with pytest.raises(WrongArgument, match=message):
        refuse_states(data / "half", engine=engine, ray=ray)


def test_nothing_is_indexed_where_states_are_refused(data, tmp_path):
    corpus, index = data / "corpus.jsonl", tmp_path / "index"
    with pytest.raises(WrongArgument, match="give vectors too"):
        build_index(corpus, index, states=True)
    with pytest.raises(WrongArgument, match="leave out ray"):
        build_index(corpus, index, vectors=data / "half", states=True, ray="local")
    with pytest.raises(WrongArgument, match="index with bm25s"):
        build_index(corpus, index, vectors=data / "half", states=True, engine="opensearch")
    with pytest.raises(CheckpointProblem, match="is a bi-encoder"):
        build_index(corpus, index, vectors=data / "half-base", states=True)
    assert not index.exists()


def test_a_folder_that_is_replaced_while_it_is_open_gives_no_scores(data, tmp_path):
    corpus, folder = data / "corpus.jsonl", tmp_path / "index"
    build_index(corpus, folder, vectors=data / "half", states=True)
    index = open_index(folder).engine
    assert stored_scorer_of(index, data / "half") is not None
    workflow.add_vectors(folder, corpus, data / "other", states=True)
    assert stored_scorer_of(index, data / "half") is None
    assert stored_scorer_of(open_index(folder).engine, data / "other") is not None
