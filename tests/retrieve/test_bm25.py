from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondlook.errors import IndexProblem, UnknownName
from secondlook.retrieve import open_index
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings, _best
from secondlook.types import Document, Query

DOCUMENTS = [
    Document("1", "apple apple banana"),
    Document("2", "banana cherry"),
    Document("3", "cherry cherry cherry durian elderberry fig grape"),
]


def test_scores_are_lucenes_bm25_worked_by_hand(tmp_path):
    index = Bm25Index.build(tmp_path / "index", DOCUMENTS, Bm25Settings(k1=0.9, b=0.4))
    (ranking,) = index.retrieve([Query("q", "apple banana")], 10)
    average = (3 + 2 + 7) / 3

    def weight(df, tf, length):
        idf = math.log(1 + (3 - df + 0.5) / (df + 0.5))
        return idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * length / average))

    expected = {"1": weight(1, 2, 3) + weight(2, 1, 3), "2": weight(2, 1, 2)}
    assert {hit.doc_id: hit.score for hit in ranking.hits} == pytest.approx(expected, rel=1e-6)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=500), st.integers(1, 600), st.integers(0, 9)
)
def test_the_best_are_found_whatever_the_scores(small, k, seed):
    scores = np.array(small * 7, np.float32)
    np.random.default_rng(seed).shuffle(scores)
    best = _best(scores, k)
    assert len(set(best.tolist())) == len(best) == min(k, len(scores))
    assert sorted(scores[best], reverse=True) == sorted(scores, reverse=True)[:k]


@pytest.mark.parametrize("k", [1, 9, 10, 60, 300])
def test_the_best_begin_the_best_of_more_where_documents_tie(tmp_path, k):
    documents = [
        Document(f"d{n:03}", f"tide {'sea' if n % 7 else 'low low'} {'cat' if n % 2 else 'dog'}")
        for n in range(300)
    ]
    index = Bm25Index.build(tmp_path / "index", documents, Bm25Settings())
    for text in ("low tide", "tide", "cat"):
        (few,), (all_of_them,) = (index.retrieve([Query("q", text)], n) for n in (k, 1000))
        assert few == all_of_them.top(k)
    assert len(index.retrieve([Query("q", "cat")], 1000)[0].hits) == 150


def test_what_an_index_takes_is_told_without_its_vectors(tmp_path):
    index = Bm25Index.build(tmp_path / "index", DOCUMENTS, Bm25Settings())
    before = index.stored_bytes()
    assert before > (tmp_path / "index" / "corpus.sqlite").stat().st_size
    for folder in ("vectors", ".vectors.half"):
        (tmp_path / "index" / folder / "encoder").mkdir(parents=True)
        (tmp_path / "index" / folder / "encoder" / "weights.bin").write_bytes(b"w" * 1000)
    assert index.stored_bytes() == before


def test_a_folder_is_all_one_needs(tmp_path):
    built = Bm25Index.build(tmp_path / "index", DOCUMENTS, Bm25Settings(k1=1.2))
    opened = open_index(tmp_path / "index")
    assert opened.card == built.card
    assert opened.card.documents == 3
    assert opened.card.settings == {"k1": 1.2, "b": 0.4, "analyzer": "english"}
    assert opened.card.fingerprint.startswith("sha256:")
    queries = [Query("q", "cherry figs")]
    assert opened.retrieve(queries, 2) == built.retrieve(queries, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_corpus_without_a_word_is_refused(tmp_path):
    with pytest.raises(IndexProblem, match="no word"):
        Bm25Index.build(tmp_path / "index", [Document("1", "…"), Document("2", "")], Bm25Settings())
    assert list(tmp_path.iterdir()) == []


def test_a_failing_corpus_leaves_nothing(tmp_path):
    def documents():
        yield DOCUMENTS[0]
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        Bm25Index.build(tmp_path / "index", documents(), Bm25Settings())
    assert list(tmp_path.iterdir()) == []


def test_a_killed_build_leaves_the_old_index_and_the_next_one_succeeds(tmp_path):
    folder = tmp_path / "index"
    Bm25Index.build(folder, DOCUMENTS, Bm25Settings())
    program = f"""
import os, signal
from pathlib import Path
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.types import Document
def documents():
    for number in range(1000):
        yield Document(str(number), "some text")
    os.kill(os.getpid(), signal.SIGKILL)
Bm25Index.build(Path({str(folder)!r}), documents(), Bm25Settings())
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -9
    assert open_index(folder).card.documents == 3
    again = Bm25Index.build(folder, [*DOCUMENTS, Document("4", "honeydew")], Bm25Settings())
    assert again.card.documents == 4
    assert again.retrieve([Query("q", "honeydew")], 5)[0].hits[0].doc_id == "4"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_folder_that_is_no_index_is_never_replaced(tmp_path):
    folder = tmp_path / "holiday-photos"
    folder.mkdir()
    (folder / "beach.jpg").write_bytes(b"precious")
    with pytest.raises(IndexProblem):
        Bm25Index.build(folder, DOCUMENTS, Bm25Settings())
    assert (folder / "beach.jpg").read_bytes() == b"precious"
    assert [path.name for path in tmp_path.iterdir()] == ["holiday-photos"]


def test_an_index_may_be_made_in_the_folder_one_is_in(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    built = Bm25Index.build(Path(), DOCUMENTS, Bm25Settings())
    assert built.card.documents == 3
    assert open_index(Path()).fetch(["2"]) == [DOCUMENTS[1]]
    assert (tmp_path / "here").samefile(Path())  # which was not put aside
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    with pytest.raises(IndexProblem, match="run it from another folder"):
        Bm25Index.build(Path(), DOCUMENTS[:1], Bm25Settings())
    (tmp_path / "here" / "index.json").unlink()
    with pytest.raises(IndexProblem, match="holds something else"):
        Bm25Index.build(Path(), DOCUMENTS, Bm25Settings())


@pytest.mark.parametrize(
    "card", ["", "[]", "{}", json.dumps({"engine": "grep"}), json.dumps({"engin": "bm25s"})]
)
def test_a_broken_card_says_how_to_mend_it(tmp_path, card):
    (tmp_path / "index.json").write_text(card)
    with pytest.raises(IndexProblem, match="secondlook index CORPUS"):
        open_index(tmp_path)


@pytest.fixture
def index(tmp_path):
    return Bm25Index.build(tmp_path / "index", DOCUMENTS, Bm25Settings())


def arrays(index):
    return index.store.path.parent / "bm25s"


@pytest.mark.parametrize("document", [3, 2**30])
def test_postings_of_documents_that_do_not_exist_are_told(index, document):
    path = arrays(index) / "indices.csc.index.npy"
    np.save(path, np.full_like(np.load(path), document))
    opened = open_index(index.store.path.parent)
    with pytest.raises(IndexProblem, match=r"is damaged.*secondlook index CORPUS"):
        opened.retrieve([Query("q", "cherry")], 2)
    with pytest.raises(IndexProblem, match="postings of documents that do not exist"):
        opened.verify()


def test_a_negative_posting_is_found_by_reading_all(index):
    path = arrays(index) / "indices.csc.index.npy"
    np.save(path, -np.load(path) - 1)
    with pytest.raises(IndexProblem, match="postings of documents that do not exist"):
        open_index(index.store.path.parent).verify()


@pytest.mark.parametrize(
    "name",
    [
        "bm25s/data.csc.index.npy",
        "bm25s/indices.csc.index.npy",
        "bm25s/indptr.csc.index.npy",
        "bm25s/vocab.index.json",
        "bm25s/params.index.json",
        "ids.utf8",
        "id_ends.npy",
        "corpus.sqlite",
        "index.json",
    ],
)
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99, None])
def test_a_file_that_is_cut_short_or_gone_is_one_line(index, name, kept):
    path = index.store.path.parent / name
    whole = path.read_bytes()
    if kept is None:
        path.unlink()
    else:
        path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(IndexProblem, match="secondlook index"):
        open_index(index.store.path.parent)


def test_parts_of_two_indices_are_not_taken_for_one(index, tmp_path):
    other = Bm25Index.build(tmp_path / "other", [*DOCUMENTS, Document("4", "x")], Bm25Settings())
    other.store.path.replace(index.store.path)
    with pytest.raises(IndexProblem, match="do not belong together"):
        open_index(index.store.path.parent)


def test_ids_that_are_not_those_of_the_texts_are_found_by_reading_all(index):
    index.verify()
    (index.store.path.parent / "ids.utf8").write_bytes(b"124")
    with pytest.raises(IndexProblem, match="other document ids"):
        open_index(index.store.path.parent).verify()


def zeroed(path):
    np.save(path, np.zeros_like(np.load(path)))


def swapped(path):
    words = json.loads(path.read_text("utf-8"))
    first, second, *_ = words
    words[first], words[second] = words[second], words[first]
    path.write_text(json.dumps(words), "utf-8")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("data.csc.index.npy", zeroed),
        ("indices.csc.index.npy", zeroed),
        ("vocab.index.json", swapped),
    ],
)
def test_postings_and_words_are_compared_with_what_was_written(index, name, damage):
    folder = index.store.path.parent
    index.verify()
    damage(folder / "bm25s" / name)
    with pytest.raises(IndexProblem, match=f"not as it was written: {name}"):
        open_index(folder).verify()
    (folder / "bm25s" / "digests.json").unlink()  # as in an older index, which stays readable
    open_index(folder).verify()


def test_an_index_made_before_languages_could_be_chosen_is_english(index):
    folder = index.store.path.parent
    card = json.loads((folder / "index.json").read_text())
    del card["settings"]["analyzer"]
    (folder / "index.json").write_text(json.dumps(card))
    old = open_index(folder)
    assert old.card.analyzer == "english"
    queries = [Query("q", "apple bananas")]
    assert old.retrieve(queries, 3) == index.retrieve(queries, 3)
    assert old.retrieve(queries, 3)[0].hits


def test_the_language_of_the_texts_is_kept_and_used(tmp_path):
    texts = [Document("haus", "Die alten Häuser der Stadt"), Document("mouse", "the house")]
    settings = Bm25Index.options(tmp_path, analyzer="german", shards=3, k1=None)
    assert settings == Bm25Settings(analyzer="german")
    Bm25Index.build(tmp_path / "index", texts, settings)
    index = open_index(tmp_path / "index")
    assert index.card.analyzer == "german"
    found = index.retrieve([Query("q", "altes Haus"), Query("s", "die der")], 3)
    assert [[hit.doc_id for hit in ranking.hits] for ranking in found] == [["haus"], []]


def test_an_unknown_language_is_refused_before_the_corpus_is_read(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'german'"):
        Bm25Index.options(tmp_path, analyzer="gernan")
