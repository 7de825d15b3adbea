"""Which first stage an index is tuned to: what judgments show to be better, and BM25 in doubt."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import tiny
from command_line import in_process as secondlook
from invented import write_deep_sea
from secondlook.data import read_qrels, write_qrels
from secondlook.errors import IndexProblem, SecondlookError
from secondlook.retrieve.hybrid import FirstStageChoice, HybridIndex, read_choice, write_choice
from secondlook.types import Hit, Query, Ranking
from secondlook.workflows.choose_first_stage import (
    FirstStageResult,
    choose_first_stage,
    compare_feedback,
    compare_first_stages,
)
from secondlook.workflows.index import build_index
from secondlook.workflows.open_index import open_index

QUERIES = [f"q{number}" for number in range(40)]
QRELS = {query: {"right": 1} for query in QUERIES}


def rankings(place: dict[str, int], other: str) -> list[Ranking]:
    """Ten hits for each query, the relevant one at its place; 10 is none."""
    made = []
    for query in QUERIES:
        names = [f"{other}{number}" for number in range(10)]
        if place[query] < 10:
            names[place[query]] = "right"
        hits = [Hit(name, float(10 - number)) for number, name in enumerate(names)]
        made.append(Ranking.of(query, hits))
    return made


def choose(words, near):
    """Both lists share no document but the relevant one."""
    lists = rankings(words, "a"), rankings(near, "b")
    return compare_first_stages(*lists, QRELS, 10, "nDCG@10", folds=5, seed=0)


def test_what_each_part_finds_alone_is_found_by_both():
    rng = random.Random(0)
    words = {query: 0 if rng.random() < 0.5 else 10 for query in QUERIES}
    near = {query: 0 if words[query] == 10 else 10 for query in QUERIES}
    choice, p = choose(words, near)
    assert choice.by == "hybrid"
    assert p < 0.01
    assert choice.figures["chosen, cross-validated"] > choice.figures["BM25"]
    assert choice.measure == "nDCG@10"


def test_vectors_alone_are_taken_where_words_only_mislead():
    choice, _ = choose(dict.fromkeys(QUERIES, 10), dict.fromkeys(QUERIES, 0))
    assert choice.figures["vectors"] == pytest.approx(1)
    assert choice.by == "vectors"


def test_in_doubt_it_stays_with_bm25():
    rng = random.Random(1)
    words = {query: rng.randrange(3) for query in QUERIES}
    same = rankings(words, "a")
    choice, p = compare_first_stages(same, same, QRELS, 10, "nDCG@10", folds=5, seed=0)
    assert choice.by == "bm25"
    assert p > 0.05


def test_an_index_is_searched_as_it_was_tuned(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
    corpus, queries, qrels = write_deep_sea(tmp_path)
    index = tmp_path / "index"
    build_index(corpus, index)
    with pytest.raises(IndexProblem, match="has no vectors"):
        choose_first_stage(index, queries, qrels)
    build_index(corpus, index, vectors=tiny.save(tiny.encoder(), tmp_path / "base"))
    tried = choose_first_stage(index, queries, qrels, dry_run=True)
    assert not tried.stored
    assert not (index / "vectors" / "first_stage.json").exists()
    never_searched = {"other": {"d1": 1}, "another": {"d2": 1}}
    write_qrels(tmp_path / "more.tsv", {**read_qrels(qrels), **never_searched})
    more = choose_first_stage(index, queries, tmp_path / "more.tsv", dry_run=True)
    assert (more.choice, more.queries, more.left_out) == (tried.choice, tried.queries, 2)
    assert "not among the queries given: 2 judged queries" in more.summary()
    write_qrels(tmp_path / "one.tsv", dict([next(iter(read_qrels(qrels).items()))]))
    with pytest.raises(SecondlookError, match="takes at least two"):
        choose_first_stage(index, queries, tmp_path / "one.tsv")
    said = secondlook("fuse", "index", index, queries, qrels, "--json")
    told = json.loads(said)
    assert (told["by"], told["stored"]) == (tried.choice.by, True)
    assert read_choice(index) == tried.choice
    assert open_index(index).engine.choice.by == tried.choice.by
    assert "BM25" in secondlook("fuse", "index", index, queries, qrels, "--dry-run", "--feedback")
    write_choice(index, tried.choice.model_copy(update={"feedback": 0.9}))  # of an earlier tuning
    assert choose_first_stage(index, queries, qrels, dry_run=True).choice == tried.choice


@pytest.mark.parametrize("by", ["vectors", "hybrid"])
def test_feedback_is_kept_only_where_it_is_surely_better(by):
    rng = random.Random(2)
    words = rankings(dict.fromkeys(QUERIES, 10), "a")
    near = rankings({query: rng.randrange(3, 6) for query in QUERIES}, "b")
    better = rankings({query: rng.randrange(2) for query in QUERIES}, "b")
    choice = FirstStageChoice(by=by, weight=0.05, scale="min-max", measure="nDCG@10")
    kept = compare_feedback(words, near, better, QRELS, 10, choice)
    assert kept.feedback == 0.3
    assert kept.figures["chosen, with feedback"] > kept.figures["chosen, without feedback"]
    for no_better in (near, rankings({query: rng.randrange(3, 6) for query in QUERIES}, "b")):
        assert compare_feedback(words, near, no_better, QRELS, 10, choice).feedback == 0


@pytest.mark.parametrize(
    ("feedback", "said", "of"),
    [(0.0, "", "as chosen"), (0.3, ", without feedback", "without feedback")],
)
def test_the_p_value_is_said_to_be_without_feedback(feedback, said, of):
    choice = FirstStageChoice(by="vectors", feedback=feedback, measure="nDCG@10")
    result = FirstStageResult(Path("index"), choice, 9, 0.01, stored=True)
    assert f"(p = 0.010 against BM25{said})" in result.summary()
    assert result.to_dict()["p_of"] == of


def test_feedback_moves_the_query_towards_its_nearest_documents(tmp_path):
    """Two clusters of vectors: what is near the nearest documents comes before what is not."""
    angles = {"a": 10, "b": 20, "c": 30, "d": -25}  # of the documents; the query's is 0
    vectors = Circle(angles)
    index = HybridIndex(
        None, FirstStageChoice(by="vectors"), lambda: vectors, lambda: Circle({"q": 0})
    )
    query = [Query("q", "anything")]
    assert [hit.doc_id for hit in index.retrieve(query, 4)[0].hits] == ["a", "b", "d", "c"]
    index.choice = FirstStageChoice(by="vectors", feedback=0.9)
    assert [hit.doc_id for hit in index.retrieve(query, 4)[0].hits] == ["a", "b", "c", "d"]
    assert np.linalg.norm(vectors.asked, axis=1) == pytest.approx([1.0])


class Circle:
    """Vectors of documents by their angles, in degrees."""

    def __init__(self, angles):
        self.ids = list(angles)
        turns = np.radians(list(angles.values()))
        self.rows = np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)

    def query_vectors(self, queries):
        return self.rows[: len(queries)]

    def retrieve(self, queries, vectors, k):
        self.asked = vectors
        scores = vectors @ self.rows.T
        return [
            Ranking.of(query.id, map(Hit, self.ids, own.tolist()))
            for query, own in zip(queries, scores, strict=True)
        ]

    def read(self, doc_ids):
        rows = self.rows[[self.ids.index(one) for one in doc_ids]]
        return rows, np.ones(len(rows), np.int64)
