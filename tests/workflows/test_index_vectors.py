"""An index with vectors: made in the same command or later, searched by words, vectors or both."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

import secondlook as sl
import tiny
from command_line import in_process
from fake_cluster import NAME, folder_of, listening
from invented import DEEP_SEA, write_deep_sea
from no_cluster import in_this_process
from secondlook.data import read_run, write_corpus
from secondlook.errors import (
    CheckpointProblem,
    EngineProblem,
    IndexProblem,
    MissingExtra,
    WrongArgument,
)
from secondlook.progress import Progress
from secondlook.retrieve.cluster import OpenSearchSettings
from secondlook.retrieve.hybrid import HybridIndex, write_choice
from secondlook.retrieve.vector_files import VectorWriter, has_vectors, read_vector_card
from secondlook.score import encoder_copy
from secondlook.score.vectors import VectorEncoder
from secondlook.train.groups import Groups
from secondlook.types import Document, Query
from secondlook.workflows import vectors as workflow
from secondlook.workflows.bakeoff import bakeoff
from secondlook.workflows.doctor import verified
from secondlook.workflows.explain import explain
from secondlook.workflows.index import build_index
from secondlook.workflows.mine import mine
from secondlook.workflows.open_index import open_index
from secondlook.workflows.retrieve import retrieve
from secondlook.workflows.search import search
from secondlook.workflows.warm import warm

TEXTS = [Query("1", "what is the tide"), Query("2", "cape fear river")]


@pytest.fixture(scope="module", autouse=True)
def _no_export(module_patch):
    """What an export takes, a test of its own shows."""
    module_patch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)


@pytest.fixture(scope="module")
def module_patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_deep_sea(folder)
    base = tiny.save(tiny.encoder(), folder / "base")
    warm(base, folder / "ranker", separate_layers=2)
    return folder


@pytest.fixture(scope="module")
def index(data):
    folder = data / "index"
    build_index(data / "corpus.jsonl", folder, vectors=data / "ranker")
    return folder


def rankings(folder, by):
    return open_index(folder, by=by).engine.retrieve(TEXTS, 10)


def test_an_index_with_vectors_is_searched_by_both_unless_told_otherwise(index):
    words, near, both = (rankings(index, by) for by in ("bm25", "vectors", "hybrid"))
    assert words != near != both
    assert rankings(index, None) == both
    for query, ranking in zip(TEXTS, near, strict=True):
        encoder = VectorEncoder.load(index / "vectors" / "encoder")
        vector = encoder.query_vectors([query])[0]
        cosines = {one.id: float(encoder.documents([one]).rows[0] @ vector) for one in DEEP_SEA}
        for hit in ranking.hits:
            assert hit.score == pytest.approx(cosines[hit.doc_id], abs=1e-5)
        assert ranking.hits[0].score == pytest.approx(max(cosines.values()), abs=1e-5)


def test_an_explanation_tells_the_places_that_a_search_shows(index, data):
    found = search(index, "tide", ranker=data / "ranker", k=10, depth=10)
    assert found.by == "hybrid"
    for hit in (found.hits[0], found.hits[-1]):
        told = explain(data / "ranker", "tide", hit.document.id, index=index, depth=10).standing
        assert (told.first_rank, told.rank) == (hit.first_rank, hit.rank)
        assert told.first_score == pytest.approx(hit.first_score, abs=1e-6)


def test_the_verbs_search_as_told(index, data, tmp_path):
    for by in ("bm25", "vectors", "hybrid", None):
        retrieve(index, data / "queries.jsonl", tmp_path / f"{by}.trec", k=5, by=by)
    runs = {by: list(read_run(str(tmp_path / f"{by}.trec"))) for by in ("bm25", "vectors")}
    assert runs["bm25"] != runs["vectors"]
    assert (tmp_path / "None.trec").read_text() == (tmp_path / "hybrid.trec").read_text()
    found = search(index, "what is the tide", k=3, by="vectors")
    assert [hit.document.id for hit in found.hits] == [
        hit.doc_id for hit in rankings(index, "vectors")[0].hits[:3]
    ]


def found_by(run):
    return {found.query_id: [hit.doc_id for hit in found.hits] for found in read_run(run)}


@pytest.fixture
def run(index, data, tmp_path):
    """What searches find."""
    retrieve(index, data / "queries.jsonl", tmp_path / "run.trec", k=5)
    return tmp_path / "run.trec"


def test_groups_are_mined_from_what_searches_find(index, data, run, tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.scale.ray_job.run", in_this_process)
    given, searched = (data / "queries.jsonl", data / "qrels.tsv"), found_by(run)
    for name, ray in (("here", None), ("there", "somewhere")):
        groups = tmp_path / f"{name}.parquet"
        mine(index, *given, groups, ranks=(1, 5), keep_all=True, ray=ray)
        for group in Groups([groups]):
            assert [one.id for one in group.documents] == searched[group.query.id]
        assert Groups([groups]).about[0]["first stage"] == "hybrid"
    mine(index, *given, groups, ranks=(1, 5), keep_all=True, run=run)
    assert "first stage" not in Groups([groups]).about[0]


def test_what_searches_find_is_re_ranked_and_compared(index, data, run, tmp_path):
    ranker, page = tiny.save(tiny.classifier(), tmp_path / "ranker"), tmp_path / "report.html"
    files = data / "qrels.tsv", index, data / "queries.jsonl", [ranker], page
    runs = bakeoff(*files, depth=5).runs
    assert found_by(runs / "first-stage.trec") == found_by(run)
    assert "BM25 and vectors" in page.read_text()
    bakeoff(*files, depth=5, run=run)
    assert f"the run {run}" in page.read_text()
    assert "BM25 and vectors" not in page.read_text()


@pytest.mark.parametrize("by", ["bm25", "vectors", "hybrid"])
def test_an_empty_query_finds_nothing_and_the_others_what_they_did(index, by):
    queries = [Query("none", ""), TEXTS[0], Query("blank", " \n"), TEXTS[1]]
    found = open_index(index, by=by).engine.retrieve(queries, 10)
    assert [ranking.query_id for ranking in found] == ["none", "1", "blank", "2"]
    assert (found[0].hits, found[2].hits) == ((), ())
    assert [found[1], found[3]] == rankings(index, by)
    assert open_index(index, by=by).engine.retrieve([], 10) == []


def test_the_terminal_says_what_the_first_stage_went_by(index):
    assert "first stage, by BM25 and vectors" in in_process("search", index, "tide")
    assert "first stage, by vectors" in in_process("search", index, "tide", "--by", "vectors")
    assert in_process("search", index, " ") == ""


def test_what_the_index_was_tuned_to_is_the_default(index):
    from secondlook.retrieve.hybrid import FirstStageChoice

    try:
        write_choice(index, FirstStageChoice(by="bm25"))
        assert rankings(index, None) == rankings(index, "bm25")
        write_choice(index, FirstStageChoice(by="hybrid", weight=0.9, scale="min-max"))
        tuned = rankings(index, None)
        assert tuned != rankings(index, "bm25")
    finally:
        (index / "vectors" / "first_stage.json").unlink()
    assert tuned != rankings(index, None)


def test_vectors_are_added_to_an_index_of_the_same_corpus(data, tmp_path, index):
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder)
    with pytest.raises(IndexProblem, match=r"has no vectors.*--vectors RANKER"):
        open_index(folder, by="vectors")
    assert not isinstance(open_index(folder).engine, HybridIndex)
    made = build_index(data / "corpus.jsonl", folder, vectors=data / "ranker")
    assert "vectors by ranker" in made.summary()
    assert rankings(folder, "vectors") == rankings(index, "vectors")
    other = tmp_path / "other.jsonl"
    write_corpus(other, DEEP_SEA[:5])
    with pytest.raises(IndexProblem, match="other documents"):
        build_index(other, folder, vectors=data / "ranker")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"language": "german"}, r"indexed with language english, .*leave out `language`"),
        ({"k1": 1.2}, "indexed with k1 0.9"),
        ({"b": 0.75}, "indexed with b 0.4"),
        ({"engine": "opensearch"}, "indexed with engine bm25s"),
    ],
)
def test_settings_that_an_index_does_not_have_are_refused_when_vectors_are_added(
    data, tmp_path, given, said
):
    folder = tmp_path / "index"
    same = {"engine": "bm25s", "k1": 0.9, "b": 0.4, "language": "english"}
    build_index(data / "corpus.jsonl", folder, **same)
    with pytest.raises(WrongArgument, match=said):
        build_index(data / "corpus.jsonl", folder, vectors=data / "ranker", **given)
    assert not has_vectors(folder)
    build_index(data / "corpus.jsonl", folder, vectors=data / "ranker", **same)
    assert has_vectors(folder)


def test_vectors_that_are_there_are_not_made_again(data, index, monkeypatch):
    def never(*_, **__):
        raise AssertionError("encoded again")

    monkeypatch.setattr(VectorEncoder, "documents", never)
    build_index(data / "corpus.jsonl", index, vectors=data / "ranker")


def test_a_bi_encoder_serves_as_it_is(data, tmp_path, index):
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder, vectors=data / "base", vector_precision="fp16")
    card = read_vector_card(folder / "vectors")
    assert (card.ranker, card.precision, card.rows) == ("base", "fp16", len(DEEP_SEA))
    for one, other in zip(rankings(folder, "vectors"), rankings(index, "vectors"), strict=True):
        assert one.hits[0].score == pytest.approx(other.hits[0].score, abs=1e-3)


def test_a_ranker_without_vectors_is_refused_before_anything_is_indexed(data, tmp_path):
    cross = tiny.save(tiny.classifier(), tmp_path / "cross")
    with pytest.raises(CheckpointProblem, match="cross-encoder"):
        build_index(data / "corpus.jsonl", tmp_path / "index", vectors=cross)
    assert not (tmp_path / "index").exists()


class Killed(BaseException):
    """Ends the work as a kill does."""


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_killed_twice_the_vectors_end_with_the_same_bytes(
    data, tmp_path, monkeypatch, index, precision
):
    monkeypatch.setattr(workflow, "_AT_ONCE", 4)
    monkeypatch.setattr("secondlook.retrieve.vector_files._SECONDS_BETWEEN_SAVES", 0.0)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    for folder in (straight, killed):
        build_index(data / "corpus.jsonl", folder)
    add = workflow.add_vectors
    add(straight, data / "corpus.jsonl", data / "ranker", precision=precision)
    encode, calls = VectorEncoder.documents, []

    def documents(self, some):
        calls.append([one.id for one in some])
        if len(calls) in (3, 5):
            raise Killed
        return encode(self, some)

    monkeypatch.setattr(VectorEncoder, "documents", documents)
    for _ in range(2):
        with pytest.raises(Killed):
            add(killed, data / "corpus.jsonl", data / "ranker", precision=precision)
        assert not isinstance(open_index(killed).engine, HybridIndex)  # half of them are none
    add(killed, data / "corpus.jsonl", data / "ranker", precision=precision)
    assert calls[2] == calls[3] != calls[0]  # the batch of the kill, then on from there
    assert files_of(killed) == files_of(straight)


def test_killed_while_an_index_is_replaced_the_vectors_go_on_too(
    data, tmp_path, monkeypatch, index
):
    monkeypatch.setattr(workflow, "_AT_ONCE", 4)
    folder = tmp_path / "index"
    encode, calls = VectorEncoder.documents, []

    def documents(self, some):
        calls.append([one.id for one in some])
        if len(calls) == 3:
            raise Killed
        return encode(self, some)

    monkeypatch.setattr(VectorEncoder, "documents", documents)
    given = {"vectors": data / "ranker", "replace": True}
    with pytest.raises(Killed):
        build_index(data / "corpus.jsonl", folder, **given)
    build_index(data / "corpus.jsonl", folder, **given)
    assert calls[2] == calls[3] != calls[0]  # the batch of the kill, then on from there
    assert not list(folder.glob(".vectors*"))


def test_vectors_in_the_making_go_with_the_documents_they_were_made_of(data, tmp_path):
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder)
    (folder / ".vectors.half").mkdir()
    build_index(data / "corpus.jsonl", folder, replace=True)
    assert (folder / ".vectors.half").is_dir()
    write_corpus(tmp_path / "other.jsonl", DEEP_SEA[:5])
    build_index(tmp_path / "other.jsonl", folder, replace=True)
    assert not list(folder.glob(".vectors*"))


def files_of(folder):
    """The bytes of an index's vectors, without those of their encoder."""
    files = {p.name: p.read_bytes() for p in (folder / "vectors").iterdir() if p.is_file()}
    assert "rows.bin" in files
    return files


@pytest.fixture
def small_parts(monkeypatch):
    """Batches of four documents, each a part of a cluster's job, and all saved at once."""
    monkeypatch.setattr(workflow, "_AT_ONCE", 4)
    monkeypatch.setattr("secondlook.retrieve.vector_files._SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr("secondlook.scale.documents.run", in_this_process)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("precision", "window"), [("fp32", None), ("int8", None), ("fp16", 4)])
def test_parts_of_a_cluster_make_the_vectors_that_one_process_makes(
    data, tmp_path, precision, window
):
    warm(data / "base", tmp_path / "ranker", separate_layers=2, window=window)
    given = ["--vectors", tmp_path / "ranker", "--precision", precision]
    in_process("index", data / "corpus.jsonl", tmp_path / "here", *given)
    in_process("index", data / "corpus.jsonl", tmp_path / "there", *given, "--ray", "somewhere")
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    card = read_vector_card(tmp_path / "there" / "vectors")
    assert (card.rows > card.documents) == (window is not None)
    assert not list((tmp_path / "there").glob(".vectors*"))


@pytest.mark.usefixtures("small_parts")
def test_a_job_on_a_cluster_resumes_wherever_it_was_killed(data, tmp_path, monkeypatch):
    """Killed on one machine, then while workers encode, then while their parts are gathered."""
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    for folder in (straight, killed):
        build_index(data / "corpus.jsonl", folder)
    given = (data / "corpus.jsonl", data / "ranker")
    workflow.add_vectors(straight, *given)
    encode, add, copy = VectorEncoder.documents, VectorWriter.add, encoder_copy.copy_encoder
    encoded, copied, dies_after = [], [], [0]

    def documents(self, some):
        if len(encoded) == 4 * dies_after[0]:
            raise Killed
        encoded.extend(one.id for one in some)
        return encode(self, some)

    def add_up_to_twelve(self, *batch):
        if self.documents >= 12:
            raise Killed
        add(self, *batch)

    monkeypatch.setattr(VectorEncoder, "documents", documents)
    monkeypatch.setattr(encoder_copy, "copy_encoder", lambda *c, **_: copied.append(c) or copy(*c))
    for dies_after[0], ray in ((0, None), (2, None), (2, "somewhere"), (4, "somewhere")):
        with pytest.raises(Killed):
            workflow.add_vectors(killed, *given, ray=ray)
    dies_after[0] = len(DEEP_SEA)  # never
    with monkeypatch.context() as patch:
        patch.setattr(VectorWriter, "add", add_up_to_twelve)
        with pytest.raises(Killed):
            workflow.add_vectors(killed, *given, ray="somewhere")
    assert not isinstance(open_index(killed).engine, HybridIndex)
    workflow.add_vectors(killed, *given, ray="somewhere")
    assert encoded == [one.id for one in DEEP_SEA]  # each once
    assert len(copied) == 1
    assert files_of(killed) == files_of(straight)
    assert not list(killed.glob(".vectors*"))


@pytest.mark.usefixtures("small_parts")
def test_an_engine_that_keeps_the_vectors_itself_gets_those_of_one_process(data, tmp_path):
    loaded = []

    class Engine:
        @staticmethod
        def prepare(folder, settings, dimension):
            assert (settings.name, dimension) == ("sea", 32)
            assert not folder.exists()

        @staticmethod
        def build(_folder, documents, settings, *, vectors):
            assert settings.vectors.dimension == vectors.read(slice(1)).shape[1]
            loaded.append([[one.id for one in documents], vectors.read(slice(None)).tolist()])

    options = OpenSearchSettings(name="sea")
    for ray in (None, "somewhere"):
        given = tmp_path / str(ray), Engine, options, lambda: iter(DEEP_SEA), data / "ranker"
        assert workflow.build_with_vectors(*given, Progress(), ray=ray).card.stored == "cluster"
    assert loaded[0] == loaded[1]
    assert len(loaded[0][1]) == len(DEEP_SEA)
    assert not (tmp_path / "somewhere" / ".vectors.parts").exists()


@pytest.mark.usefixtures("small_parts")
def test_documents_that_were_cut_are_counted_on_a_cluster_too(data, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    write_corpus(corpus, [*DEEP_SEA[:5], *(Document(f"l{n}", "tide " * 600) for n in range(2))])
    build_index(corpus, tmp_path / "index")
    result = workflow.add_vectors(tmp_path / "index", corpus, data / "ranker", ray="somewhere")
    assert result.cut == 2


def test_what_a_cluster_cannot_take_is_refused_before_anything_is_encoded(
    data, tmp_path, monkeypatch
):
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    monkeypatch.setattr(workflow, "encode_corpus", lambda *_, **__: pytest.fail("encoded"))
    corpus, ranker = data / "corpus.jsonl", data / "ranker"
    with listening() as node:
        given = {"engine": "opensearch", "vectors": ranker, "url": node.url, "discover": False}
        with pytest.raises(EngineProblem, match="1 replicas need 2 data nodes"):
            build_index(corpus, tmp_path / "index", name=NAME, replicas=1, **given)
        with pytest.raises(WrongArgument, match="keeps vectors in fp32, not int8"):
            build_index(corpus, tmp_path / "index", vector_precision="int8", **given)
        folder = folder_of(tmp_path / "made", node.url, discover=False)
        with pytest.raises(WrongArgument, match="keeps vectors in fp32, not fp16"):
            workflow.add_vectors(folder, corpus, ranker, precision="fp16")


def test_a_cluster_without_vectors_to_make_is_refused(data, tmp_path):
    with pytest.raises(WrongArgument, match="give vectors too"):
        build_index(data / "corpus.jsonl", tmp_path / "index", ray="local")
    assert not (tmp_path / "index").exists()


def test_a_replaced_index_leaves_no_vectors_of_the_old_one(data, tmp_path):
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder, vectors=data / "ranker")
    write_corpus(tmp_path / "other.jsonl", DEEP_SEA[:5])
    build_index(tmp_path / "other.jsonl", folder, replace=True)
    assert not isinstance(open_index(folder).engine, HybridIndex)


def test_vectors_of_other_documents_are_refused(data, tmp_path):
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder, vectors=data / "ranker")
    path = folder / "vectors" / "vectors.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"corpus": "sha256:other"}))
    with pytest.raises(IndexProblem, match="other documents than its index"):
        open_index(folder)


@pytest.mark.parametrize("name", ["rows.bin", "encoder/config.json"])
def test_damaged_vectors_are_found_by_doctor(data, index, tmp_path, name):
    folder = shutil.copytree(index, tmp_path / "index")
    assert "as it was made: 25 documents" in verified(folder)
    with sl.open_index(folder) as opened:
        opened.verify()
    path = folder / "vectors" / name
    path.write_bytes(path.read_bytes().replace(b"0", b"1") + b" " * (name != "rows.bin"))
    with pytest.raises(IndexProblem, match=f"not as they were written: {name}"):
        verified(folder)
    with sl.open_index(folder, by="bm25") as opened, pytest.raises(IndexProblem, match=name):
        opened.verify()
    rows = folder / "vectors" / "rows.bin"
    rows.write_bytes(rows.read_bytes()[:100])
    with pytest.raises(IndexProblem, match=r"damaged \(rows.bin has 100 bytes"):
        verified(folder)


def test_of_an_older_index_doctor_says_what_it_did_not_compare(index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    for part in ("bm25s", "vectors"):
        (folder / part / "digests.json").unlink()
    told = verified(folder)
    assert "as it was made" not in told
    assert "content of bm25s/ and vectors/ was not compared" in told


def test_a_missing_package_is_named_before_anything_is_encoded(data, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("encoded first")

    monkeypatch.setattr(VectorEncoder, "documents", never)
    monkeypatch.setattr("secondlook.retrieve.vector_graph.EXACT_ROWS", 10)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match="more than 10 vectors"):
        build_index(data / "corpus.jsonl", tmp_path / "index", vectors=data / "ranker")


def test_long_documents_have_a_vector_for_each_window(data, tmp_path):
    warm(data / "base", tmp_path / "ranker", separate_layers=2, window=4, stride=2)
    folder = tmp_path / "index"
    build_index(data / "corpus.jsonl", folder, vectors=tmp_path / "ranker")
    card = read_vector_card(folder / "vectors")
    assert card.rows > card.documents == len(DEEP_SEA)
    (ranking,) = open_index(folder, by="vectors").engine.retrieve(TEXTS[:1], 3)
    encoder = VectorEncoder.load(folder / "vectors" / "encoder")
    vector = encoder.query_vectors(TEXTS[:1])[0]
    best = max(float((encoder.documents([one]).rows @ vector).max()) for one in DEEP_SEA)
    assert ranking.hits[0].score == pytest.approx(best, abs=1e-5)


def test_it_is_public(index):
    with sl.open_index(index, by="vectors") as opened:
        run = opened.retrieve(["what is the tide"], k=2)
    assert len(next(iter(run)).hits) == 2
    assert np.isfinite(next(iter(run)).hits[0].score)
