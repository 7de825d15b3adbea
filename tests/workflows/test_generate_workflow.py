"""Training queries made of a corpus, as a program calls it."""

from __future__ import annotations

import pytest

import tiny
from secondlook.data import read_qrels, read_queries, write_corpus
from secondlook.errors import SecondlookError, Unwritable
from secondlook.model.doc2query import new_expander, save_expander
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.hybrid import FirstStageChoice, write_choice
from secondlook.types import Document
from secondlook.workflows.generate import generate
from secondlook.workflows.index import build_index

CORPUS = [Document(f"d{n}", " ".join("bcdfghjk"[n:])) for n in range(8)]


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A corpus, its index, an expander, and what it asks: a passage itself, and nonsense."""
    write_corpus(tmp_path / "corpus.jsonl", CORPUS)
    Bm25Index.build(tmp_path / "index", CORPUS, Bm25Settings())
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    save_expander(new_expander(base, 40, 8), tmp_path / "expander")
    answers = {document.id: (document.text, "zzz") for document in CORPUS}

    class Asks:
        def __init__(self, *_, **__):
            pass

        def __call__(self, passages):
            return [answers[doc_id] for doc_id, _ in passages]

    monkeypatch.setattr("secondlook.score.predicted_queries.PredictedQueries", Asks)
    names = ("corpus.jsonl", "index", "expander", "made")
    return answers, [tmp_path / name for name in names]


def test_queries_that_find_their_passage_are_kept(given, capsys):
    _, (corpus, index, expander, made) = given
    seen = []
    result = generate(
        str(corpus), index, str(expander), made, progress=lambda *step: seen.append(step)
    )
    kept = {query.text for query in read_queries(made)}
    assert (len(kept), result.queries, result.generated) == (8, 8, 16)
    assert "zzz" not in kept
    assert read_qrels(made).keys() == {query.id for query in read_queries(made)}
    assert result.summary() == f"{made}: {result.origin}"
    assert result.to_dict()["generated"] == 16
    assert ("generating queries", 8, 8) in seen
    assert capsys.readouterr() == ("", "")


def test_a_passage_counts_as_found_if_a_search_of_the_index_finds_it(given, monkeypatch):
    """Only vectors find a passage by a word that it does not have."""
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
    _, (corpus, index, expander, made) = given
    build_index(corpus, index, vectors=expander.parent / "base")
    result = generate(corpus, index, expander, made)
    assert "zzz" in {query.text for query in read_queries(made)}
    assert result.origin.endswith("is in the top 10 of BM25 and vectors")
    write_choice(index, FirstStageChoice(by="bm25"))
    result = generate(corpus, index, expander, made)
    assert "zzz" not in {query.text for query in read_queries(made)}
    assert result.origin.endswith("is in the top 10 of BM25")


def test_judgments_of_people_are_refused_before_anything_is_generated(given):
    _, (corpus, index, _, made) = given
    made.mkdir()
    (made / "queries.jsonl").write_text("hours of work")
    with pytest.raises(Unwritable, match="another folder as `output`"):
        generate(corpus, index, "no such expander", made)


def test_where_none_is_kept_the_arguments_to_change_are_named(given):
    answers, files = given
    answers.update({document.id: ("zzz",) for document in CORPUS})
    with pytest.raises(SecondlookError, match="raise `within`") as problem:
        generate(*files)
    assert "--" not in str(problem.value)
