"""Stored vectors: written so that a kill loses nothing, searched exactly and by graphs."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from secondlook.encode.settings import WindowSettings
from secondlook.errors import IndexProblem, MissingDocument, MissingExtra
from secondlook.retrieve import vector_graph
from secondlook.retrieve.digests import DIGESTS, without_digests
from secondlook.retrieve.id_list import IdList, IdPositions
from secondlook.retrieve.vector_files import (
    VectorCard,
    VectorFiles,
    VectorWriter,
    packed,
    write_vector_card,
)
from secondlook.retrieve.vector_graph import build_graphs, refuse_without_library
from secondlook.retrieve.vectors import DocumentVectors, verify_vectors
from secondlook.types import Query

DIMENSION = 24
JOB = {"ranker": "r", "corpus": "c"}


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def card(writer: VectorWriter, precision="fp32", windows=None, graphs=0) -> VectorCard:
    return VectorCard(
        ranker="r",
        source="s",
        fingerprint="f",
        dimension=DIMENSION,
        precision=precision,
        documents=writer.documents,
        rows=writer.rows,
        corpus="c",
        windows=windows,
        graphs=graphs,
    )


def written(index, rows, counts=None, precision="fp32", windows=None, *, graphs=0):
    """An index folder with these vectors, added in two batches, `graphs` built at once."""
    index.mkdir(exist_ok=True)
    counts = np.ones(len(rows), np.int64) if counts is None else np.array(counts)
    ids = [f"d{number}" for number in range(len(counts))]
    half = len(ids) // 2
    cut = int(counts[:half].sum())
    writer = VectorWriter(index, JOB, DIMENSION, precision)
    writer.add(ids[:half], counts[:half], rows[:cut])
    writer.add(ids[half:], counts[half:], rows[cut:])
    stored = writer.complete()
    made = 0
    if graphs:
        given = stored, writer.folder, precision, DIMENSION, lambda _: None
        made = build_graphs(*given, threads=graphs)
    writer.finish(card(writer, precision, windows, made))
    return index


def ids(ranking):
    return [hit.doc_id for hit in ranking.hits]


def nearest(rows, vector, k):
    return [f"d{place}" for place in np.argsort(-(rows @ vector))[:k]]


@pytest.mark.parametrize(
    ("precision", "farthest"), [("fp32", 1e-6), ("fp16", 1e-3), ("int8", 0.01)]
)
def test_rows_come_back_as_near_as_their_precision_allows(tmp_path, precision, farthest):
    rows = unit_vectors(50)
    files = VectorFiles(written(tmp_path / "index", rows, precision=precision) / "vectors")
    assert np.abs(files.rows.read(slice(None)) - rows).max() < farthest
    assert np.abs(files.rows.similarities(slice(3, 9), rows[:2]) - rows[3:9] @ rows[:2].T).max() < (
        10 * farthest
    )


def test_what_all_rows_have_in_common_costs_int8_no_precision(tmp_path):
    own = unit_vectors(60)
    rows = np.float32(0.2) * own + np.float32(0.9) * unit_vectors(1, seed=5)
    files = VectorFiles(written(tmp_path / "index", rows, precision="int8") / "vectors")
    rounded, scales = packed(rows, "int8")
    alone = np.abs(rounded * scales[:, None] - rows).mean()
    assert np.abs(files.rows.read(slice(None)) - rows).mean() < alone / 2


def test_a_row_of_zeros_has_a_scale():
    rows, scales = packed(np.zeros((1, 4), np.float32), "int8")
    assert (rows == 0).all()
    assert np.isfinite(scales).all()


def test_the_nearest_documents_are_found_with_their_cosines(tmp_path):
    rows = unit_vectors(300)
    vectors = DocumentVectors(written(tmp_path / "index", rows))
    queries = unit_vectors(3, seed=1)
    found = vectors.retrieve([Query(str(n), "") for n in range(3)], queries, 10)
    for number, ranking in enumerate(found):
        assert ranking.query_id == str(number)
        assert ids(ranking) == nearest(rows, queries[number], 10)
        assert ranking.hits[0].score == pytest.approx(float((rows @ queries[number]).max()), 1e-5)
    assert len(vectors.retrieve([Query("q", "")], queries[:1], 1000)[0].hits) == 300


@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_nearest_begin_the_nearest_of_more_where_documents_tie(tmp_path, k):
    rows = np.repeat(unit_vectors(4), 10, axis=0)
    vectors = DocumentVectors(written(tmp_path / "index", rows))
    (few,), (more,) = (vectors.retrieve([Query("q", "")], rows[:1], n) for n in (k, 40))
    assert few == more.top(k)


def test_windows_of_a_document_are_pooled(tmp_path):
    rows = unit_vectors(7)
    query = unit_vectors(1, seed=2)
    cosines = rows @ query[0]
    counts = [2, 1, 3, 1]
    for pooling, expected in (
        ("max", [max(cosines[:2]), cosines[2], max(cosines[3:6]), cosines[6]]),
        ("mean", [cosines[:2].mean(), cosines[2], cosines[3:6].mean(), cosines[6]]),
    ):
        index = tmp_path / pooling
        written(index, rows, counts, windows=WindowSettings(pooling=pooling))
        vectors = DocumentVectors(index)
        (ranking,) = vectors.retrieve([Query("q", "")], query, 4)
        assert ids(ranking) == [f"d{place}" for place in np.argsort(-np.array(expected))]
        (own,) = vectors.similarities(query, [["d2", "d0"]])
        assert own.counts.tolist() == [3, 2]
        assert own.rows == pytest.approx([*cosines[3:6], *cosines[:2]], abs=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_graphs_find_what_comparing_all_finds_and_are_the_same_each_time(
    tmp_path, monkeypatch, precision
):
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_graph, "PART_ROWS", 700)
    rows, queries = unit_vectors(2_000), unit_vectors(20, seed=3)
    asked = [Query(str(n), "") for n in range(len(queries))]
    index = written(tmp_path / "a", rows, precision=precision, graphs=1)
    again = written(tmp_path / "b", rows, precision=precision, graphs=2)
    graphs = sorted((index / "vectors").glob("graph-*"))
    assert len(graphs) == 3  # of 700 rows each, the last of fewer
    for path in graphs:
        assert path.read_bytes() == (again / "vectors" / path.name).read_bytes()
    exact = DocumentVectors(written(tmp_path / "c", rows, precision=precision))
    wanted = exact.retrieve(asked, queries, 10)
    found = DocumentVectors(index).retrieve(asked, queries, 10)
    shared = [len(set(ids(a)) & set(ids(b))) for a, b in zip(wanted, found, strict=True)]
    assert sum(shared) >= 0.95 * 10 * len(queries)
    best = {hit.doc_id: hit.score for hit in wanted[0].hits}
    for hit in found[0].hits:  # compared exactly, whatever precision the graph has
        if hit.doc_id in best:
            assert hit.score == pytest.approx(best[hit.doc_id], abs=1e-6)


def test_as_many_documents_are_found_where_a_few_have_all_of_the_nearest_rows(tmp_path):
    pytest.importorskip("faiss")
    query, long, many = unit_vectors(1, seed=7), 3, 100
    near = query + np.float32(0.3) * unit_vectors(long * many, seed=8)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    rows = np.concatenate([near, unit_vectors(400)])
    counts = [many] * long + [1] * 400
    index = written(tmp_path / "i", rows, counts, windows=WindowSettings(pooling="max"), graphs=1)
    vectors = DocumentVectors(index)
    for k in (10, 100, 1000):
        (ranking,) = vectors.retrieve([Query("q", "")], query, k)
        assert len(ranking.hits) == min(k, len(counts))
        assert set(ids(ranking)[:long]) <= {f"d{number}" for number in range(long)}


def test_many_queries_are_compared_some_at_a_time(tmp_path, monkeypatch):
    rows, queries = unit_vectors(30), unit_vectors(150, seed=4)
    vectors, compared = DocumentVectors(written(tmp_path / "index", rows)), list[int]()
    compare = vectors._compare_all
    monkeypatch.setattr(
        vectors, "_compare_all", lambda some: compared.append(len(some)) or compare(some)
    )
    found = vectors.retrieve([Query(str(n), "") for n in range(150)], queries, 3)
    assert compared == [64, 64, 22]
    assert [ranking.query_id for ranking in found] == [str(n) for n in range(150)]
    assert [ids(ranking) for ranking in found] == [nearest(rows, vector, 3) for vector in queries]


def test_a_graph_that_was_built_before_a_kill_is_not_built_again(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_graph, "PART_ROWS", 100)
    files = VectorFiles(written(tmp_path / "index", unit_vectors(250)) / "vectors")
    folder = tmp_path / "graphs"
    folder.mkdir()
    build_graphs(files.rows, folder, "fp32", DIMENSION, lambda _: None)
    (folder / "graph-0002.faiss").unlink()
    stamps = [(folder / f"graph-000{n}.faiss").stat().st_mtime_ns for n in (0, 1)]
    counted: list[int] = []
    assert build_graphs(files.rows, folder, "fp32", DIMENSION, counted.append) == 3
    assert sum(counted) == 250
    assert [(folder / f"graph-000{n}.faiss").stat().st_mtime_ns for n in (0, 1)] == stamps


def test_a_last_graph_is_built_again_where_rows_have_come_since(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_graph, "PART_ROWS", 100)
    rows, folder = unit_vectors(350), tmp_path / "index" / "vectors"
    fewer = VectorFiles(written(tmp_path / "fewer", rows[:250]) / "vectors")
    written(tmp_path / "index", rows)
    build_graphs(fewer.rows, folder, "fp32", DIMENSION, lambda _: None)
    stamps = [(folder / f"graph-000{n}.faiss").stat().st_mtime_ns for n in (0, 1)]
    made_of = VectorFiles(folder)
    build_graphs(made_of.rows, folder, "fp32", DIMENSION, lambda _: None)
    assert [(folder / f"graph-000{n}.faiss").stat().st_mtime_ns for n in (0, 1)] == stamps
    write_vector_card(folder, made_of.card.model_copy(update={"graphs": 4}))
    found = DocumentVectors(tmp_path / "index").retrieve(
        [Query(str(n), "") for n in range(350)], rows, 1
    )
    assert [ids(ranking) for ranking in found] == [[f"d{n}"] for n in range(350)]


def test_graphs_of_other_rows_are_refused(tmp_path):
    pytest.importorskip("faiss")
    index = written(tmp_path / "index", unit_vectors(60), graphs=1)
    other = written(tmp_path / "other", unit_vectors(50), graphs=1)
    (other / "vectors" / "graph-0000.faiss").replace(index / "vectors" / "graph-0000.faiss")
    with pytest.raises(IndexProblem, match=r"of other vectors than its rows.*--vectors RANKER"):
        DocumentVectors(index)


def test_graphs_that_cannot_be_built_are_told_before_anything_is_encoded(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)  # as if it was not installed
    refuse_without_library(vector_graph.EXACT_ROWS)
    with pytest.raises(MissingExtra, match=r"secondlook\[vectors\]"):
        refuse_without_library(vector_graph.EXACT_ROWS + 1)


def test_an_interruption_stops_all_graphs_and_leaves_only_whole_ones(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_graph, "PART_ROWS", 100)
    monkeypatch.setattr(vector_graph, "_BLOCK", 10)
    files = VectorFiles(written(tmp_path / "index", unit_vectors(450)) / "vectors")
    folder, counted = tmp_path / "graphs", list[int]()
    folder.mkdir()

    def interrupt(rows):
        counted.append(rows)
        if sum(counted) > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_graphs(files.rows, folder, "fp32", DIMENSION, interrupt, threads=2)
    assert sum(counted) < 300
    assert not list(folder.glob("*.half"))
    whole = sorted(folder.iterdir())
    assert len(whole) < 5
    before = [path.read_bytes() for path in whole]
    build_graphs(files.rows, folder, "fp32", DIMENSION, lambda _: None, threads=2)
    assert len(list(folder.iterdir())) == 5
    assert [path.read_bytes() for path in whole] == before


def test_what_was_saved_before_a_kill_is_kept_and_the_rest_made_again(tmp_path):
    index = tmp_path / "index"
    index.mkdir()
    rows = unit_vectors(10)
    writer = VectorWriter(index, JOB, DIMENSION, "int8")
    writer.add(["a", "ü"], np.array([1, 2]), rows[:3])
    writer.save()
    writer.add(["lost"], np.array([1]), rows[3:4])  # written, but not counted as safe
    for file in writer._files.values():
        file.close()
    del writer
    again = VectorWriter(index, JOB, DIMENSION, "int8")
    assert (again.documents, again.rows) == (2, 3)
    again.add(["c"], np.array([1]), rows[4:5])
    again.complete()
    again.finish(card(again, "int8", WindowSettings()))
    files = VectorFiles(index / "vectors")
    assert files.ids.at(np.arange(3)) == ["a", "ü", "c"]
    assert np.abs(files.rows.read(slice(None)) - rows[[0, 1, 2, 4]]).max() < 0.01
    assert not list(index.glob(".vectors*"))


@pytest.mark.parametrize("stored", ["folder", "cluster"])
@pytest.mark.parametrize("step", ["write_digests", "write_vector_card", "_set_aside"])
def test_an_end_that_is_interrupted_costs_no_vector(tmp_path, monkeypatch, step, stored):
    def stop(*_, **__):
        raise KeyboardInterrupt

    index, rows = tmp_path / "index", unit_vectors(4)
    index.mkdir()
    writer = VectorWriter(index, JOB, DIMENSION, "fp32")
    writer.add(["a", "b", "c"], np.array([1, 2, 1]), rows)
    writer.complete()
    made = card(writer, windows=WindowSettings()).model_copy(update={"stored": stored})
    with monkeypatch.context() as patched:
        patched.setattr(f"secondlook.retrieve.vector_files.{step}", stop)
        with pytest.raises(KeyboardInterrupt):
            writer.finish(made)
    del writer
    again = VectorWriter(index, JOB, DIMENSION, "fp32")
    assert (again.documents, again.rows) == (3, 4)
    assert np.array_equal(again.complete().read(slice(None)), rows)
    again.finish(made)
    verify_vectors(index / "vectors")
    left = {"digests.json", "row_ends.npy", "vectors.json"}
    if stored == "folder":
        left |= {"ids.utf8", "id_ends.npy", "id_order.npy", "rows.bin"}
    assert left == {path.name for path in (index / "vectors").iterdir()}


def test_another_job_starts_over(tmp_path):
    (tmp_path / "index").mkdir()
    writer = VectorWriter(tmp_path / "index", JOB, DIMENSION, "fp32")
    writer.add(["a"], np.array([1]), unit_vectors(1))
    writer.close()
    other = VectorWriter(tmp_path / "index", {"ranker": "x"}, DIMENSION, "fp32")
    assert other.documents == 0
    other.close()


def test_ids_are_found_by_position_and_positions_by_id(tmp_path, monkeypatch):
    files = VectorFiles(written(tmp_path / "index", unit_vectors(40)) / "vectors")
    assert files.positions.of(["d7", "d0", "d39"]).tolist() == [7, 0, 39]
    with pytest.raises(MissingDocument, match="'d40'"):
        files.positions.of(["d1", "d40"])
    # ids whose hashes are equal are told apart by the ids themselves
    folder = tmp_path / "index" / "vectors"
    same = lambda doc_ids: np.zeros(len(doc_ids), np.uint64)  # noqa: E731
    monkeypatch.setattr("secondlook.retrieve.id_list._hashes", same)
    IdPositions.write(folder, IdList(folder))
    positions = IdPositions(folder, IdList(folder))
    assert positions.of(["d7", "d0", "d39"]).tolist() == [7, 0, 39]
    with pytest.raises(MissingDocument, match="'x'"):
        positions.of(["x"])


def test_damaged_vectors_say_how_to_make_them_anew(tmp_path):
    index = written(tmp_path / "index", unit_vectors(5))
    whole = (index / "vectors" / "rows.bin").read_bytes()
    (index / "vectors" / "rows.bin").write_bytes(whole[:-8])
    with pytest.raises(IndexProblem, match=r"damaged.*--vectors RANKER"):
        DocumentVectors(index)
    (index / "vectors" / "vectors.json").write_text("{}")
    with pytest.raises(IndexProblem, match="damaged"):
        DocumentVectors(index)


def altered(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))


@pytest.mark.parametrize("name", ["rows.bin", "ids.utf8", "row_ends.npy", "encoder/weights.bin"])
def test_a_change_of_any_file_is_found_by_reading_all(tmp_path, name):
    index = tmp_path / "index"
    index.mkdir()
    writer = VectorWriter(index, JOB, DIMENSION, "fp32")
    (writer.folder / "encoder").mkdir()
    (writer.folder / "encoder" / "weights.bin").write_bytes(b"weights")
    writer.add(["a", "b"], np.array([1, 2]), unit_vectors(3))
    writer.complete()
    writer.finish(card(writer, windows=WindowSettings()))
    DocumentVectors(index).verify()
    altered(index / "vectors" / name)
    with pytest.raises(IndexProblem, match=r"damaged.*--vectors RANKER"):
        verify_vectors(index / "vectors")


def test_of_older_vectors_the_sizes_are_looked_at(tmp_path):
    index = written(tmp_path / "index", unit_vectors(5))
    assert without_digests(index, ["vectors", "bm25s"]) == []
    (index / "vectors" / DIGESTS).unlink()
    assert without_digests(index, ["vectors", "bm25s"]) == ["vectors"]
    rows = index / "vectors" / "rows.bin"
    altered(rows)
    verify_vectors(index / "vectors")
    rows.write_bytes(rows.read_bytes() + bytes(4))
    with pytest.raises(IndexProblem, match="has 484 bytes instead of 480"):
        verify_vectors(index / "vectors")


def test_no_documents_have_no_vectors(tmp_path):
    (tmp_path / "index").mkdir()
    writer = VectorWriter(tmp_path / "index", JOB, DIMENSION, "fp32")
    with pytest.raises(IndexProblem, match="no documents to make vectors of"):
        writer.complete()
