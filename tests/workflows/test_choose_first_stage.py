"""Which first stage an index is tuned to: what judgments show to be better, and BM25 in doubt."""

from __future__ import annotations

import json
import random

import pytest

import tiny
from command_line import in_process as secondlook
from invented import write_deep_sea
from secondlook.errors import IndexProblem
from secondlook.retrieve.hybrid import read_choice
from secondlook.types import Hit, Ranking
from secondlook.workflows.choose_first_stage import choose_first_stage, compare_first_stages
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
    said = secondlook("fuse", "index", index, queries, qrels, "--json")
    told = json.loads(said)
    assert (told["by"], told["stored"]) == (tried.choice.by, True)
    assert read_choice(index) == tried.choice
    assert open_index(index).engine.choice.by == tried.choice.by
    assert "BM25" in secondlook("fuse", "index", index, queries, qrels, "--dry-run")
