"""From a document to the frequencies it is indexed by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from secondlook.analyze import analyzer
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.contents import contents
from secondlook.retrieve.weigh import FrequencySettings, PartReader, Weigher
from secondlook.types import Document, Query


def reader(max_length=40):
    return PartReader(tiny.tokenizer(), max_length)


def test_words_are_those_the_engine_indexes_and_tokens_know_theirs():
    ((part,),) = reader().read([Document("d", "Bogue's the tide, is it bogus?", title="Cape Fear")])
    assert part.spelled == ("Cape", "Fear", "Bogue's", "tide", "bogus")
    assert part.terms == tuple(analyzer().terms("Cape Fear Bogue's tide bogus"))
    ids = [tiny.VOCABULARY[i] for i in part.features.ids]
    owned = [
        (token, part.spelled[word])
        for token, word in zip(ids, part.features.words, strict=True)
        if word >= 0
    ]
    assert owned == [
        ("cape", "Cape"), ("fear", "Fear"),
        ("bog", "Bogue's"), ("##ue", "Bogue's"), ("[UNK]", "Bogue's"), ("s", "Bogue's"),
        ("tide", "tide"), ("bog", "bogus"), ("##us", "bogus"),
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from("bogue bogus tide insouci the sea o'clock . u.s".split())),
    st.integers(10, 20),
)
def test_a_long_document_is_read_in_parts_and_no_word_is_lost(words, max_length):
    text = " ".join(words)
    (parts,) = reader(max_length).read([Document("d", text)])
    assert all(len(part.features) <= max_length for part in parts)
    assert [term for part in parts for term in part.terms] == analyzer().terms(text)


def test_frequencies_are_rounded_and_never_below_zero():
    root, linear = FrequencySettings(), FrequencySettings(scale=10, shape="linear")
    assert [root.frequency(weight) for weight in (-0.1, 0.0, 0.25, 1.0)] == [0, 0, 50, 100]
    assert [linear.frequency(weight) for weight in (0.04, 0.05, 0.34)] == [0, 1, 3]


def test_the_largest_weight_of_a_term_counts_and_words_of_none_are_left_out():
    def weigh(parts):
        return [np.array([0.04, 0.0, 0.16, -1.0], np.float32) for _ in parts]

    document = Document("d", "tides river tide sea")
    (weighed,) = Weigher(reader(), weigh, FrequencySettings()).weighed([document])
    assert weighed.weights == {"tides": 40}
    assert (weighed.id, weighed.text) == (document.id, document.text)


def test_a_document_without_words_weighs_nothing():
    (weighed,) = Weigher(reader(), lambda parts: [], FrequencySettings()).weighed(
        [Document("d", "...")]
    )
    assert weighed.weights == {}


def test_the_engine_finds_by_weights_and_gives_the_text_as_it_was(tmp_path):
    documents = [
        Document("a", "tide and river", weights={"tide": 30, "river": 1}),
        Document("b", "tide and river", weights={"river": 30}),
        Document("c", "the sea", "Cape Fear", queries=("where do fish live",)),
    ]
    index = Bm25Index.build(tmp_path / "index", documents, Bm25Settings(k1=10))
    tide, river, fish = index.retrieve(
        [Query("1", "tides"), Query("2", "river"), Query("3", "fish")], 10
    )
    assert [hit.doc_id for hit in tide.hits] == ["a"]
    assert [hit.doc_id for hit in river.hits] == ["b", "a"]
    assert [hit.doc_id for hit in fish.hits] == ["c"]
    assert index.fetch(["b", "c"]) == [
        Document("b", "tide and river"),
        Document("c", "the sea", "Cape Fear"),
    ]


@pytest.mark.parametrize(
    ("document", "indexed"),
    [
        (Document("d", "text"), "text"),
        (Document("d", "text", "title", ("one query", "two")), "title text one query two"),
        (Document("d", "text", "title", ("q",), {"b": 2, "a": 1}), "b b a"),
        (Document("d", "text", weights={}), ""),
    ],
)
def test_contents_are_what_is_indexed(document, indexed):
    assert contents(document) == indexed
