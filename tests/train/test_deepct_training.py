"""A weigher learns which words queries hold."""

from __future__ import annotations

import pytest

import tiny
from secondlook.errors import SecondlookError
from secondlook.retrieve.weigh import FrequencySettings, PartReader, Weigher
from secondlook.score.word_weights import WordWeights
from secondlook.train.deepct import recalls, train_weigher
from secondlook.train.phase import Place
from secondlook.train.settings import WeigherTraining
from secondlook.types import Document, Query

WORDS = "cape fear river tide fish".split()
PASSAGES = [
    Document(f"d{n}", f"{one} {other} deep {one}")
    for n, (one, other) in enumerate((one, other) for one in WORDS for other in WORDS)
]
TARGETS = {
    passage.id: {word: float(word == "tide") for word in passage.text.split()}
    for passage in PASSAGES
}


def test_recall_is_the_share_of_relevant_queries_that_hold_the_term():
    queries = [Query("1", "the deep rivers"), Query("2", "river, river"), Query("3", "sea")]
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 2}, "3": {"b": 1}, "4": {"c": 1}}
    assert recalls(queries, qrels) == {"a": {"deep": 0.5, "river": 1.0}, "b": {"sea": 1.0}}


def test_a_weigher_learns_what_matters(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    settings = WeigherTraining(max_steps=80, batch=8, learning_rate=3e-3, dropout=0, max_length=40)
    made = train_weigher(settings, base, PASSAGES, TARGETS, Place(tmp_path / "work", 1, "cpu"))
    metrics = made.settings.lineage.phases[-1].metrics
    assert metrics["error"] < metrics["error of the mean"] / 2
    reader = PartReader(made.tokenizer, made.settings.max_length)
    weights = WordWeights(made.network, device="cpu")
    (weighed,) = Weigher(reader, weights, FrequencySettings()).weighed(
        [Document("x", "fish tide river")]
    )
    assert max(weighed.weights, key=weighed.weights.__getitem__) == "tide"


def test_too_few_passages_are_refused(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(SecondlookError, match="9 passages"):
        train_weigher(
            WeigherTraining(), base, PASSAGES[:9], TARGETS, Place(tmp_path / "work", 1, "cpu")
        )
