"""An answer at the very end of a long document."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tiny
from secondlook.encode.settings import EncodeSettings, WindowSettings
from secondlook.model.network import new_warm, save_model
from secondlook.model.settings import Lineage, RankerSettings
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query

WORDS = 9_000
ROOM = 60
"""Tokens of a document beside the query "fish", within 64."""


class Sees:
    """A back end that likes one word, and never forgets it."""

    def __init__(self, word):
        self.token = tiny.tokenizer().token_to_id(word)

    def logits(self, features):
        return np.array([float((one.ids == self.token).sum()) for one in features], np.float32)


def with_windows(pooling="max", weights=(), unit="words"):
    windows = WindowSettings(length=40, stride=20, pooling=pooling, weights=weights, unit=unit)
    encode = EncodeSettings(max_length=64, windows=windows)
    settings = RankerSettings(encode=encode, lineage=Lineage(base="none"))
    return Ranker(settings, tiny.tokenizer(), Sees("tide"))


@pytest.mark.parametrize(
    ("pooling", "weights"), [("max", ()), ("mean", ()), ("top", (0.5, 0.3, 0.2))]
)
def test_the_last_of_9000_words_counts(pooling, weights):
    filler = ["river"] * (WORDS - 1)
    pairs = [
        (Query("q", "fish"), Document("with", " ".join([*filler, "tide"]))),
        (Query("q", "fish"), Document("without", " ".join([*filler, "river"]))),
    ]
    ranker = with_windows(pooling, weights)
    found, other = ranker.score(pairs)
    assert found > other
    encoded = ranker.encode(pairs[:1])
    start, end = encoded[0].spans[ranker.score_encoded(encoded).best[0]]
    assert pairs[0][1].text[start:end].endswith("tide")


def test_cut_short_it_is_not_seen():
    settings = RankerSettings(encode=EncodeSettings(max_length=64), lineage=Lineage(base="none"))
    ranker = Ranker(settings, tiny.tokenizer(), Sees("tide"))
    text = " ".join([*["river"] * (WORDS - 1), "tide"])
    assert ranker.score([(Query("q", "fish"), Document("d", text))]).tolist() == [0.0]


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_what_stands_behind_the_first_window_is_cut_where_only_that_one_counts(unit):
    ranker = with_windows("first", unit=unit)
    texts = " ".join(["bogue"] * 100), " ".join(["river"] * 20)
    pairs = [(Query("q", "fish"), Document("d", text)) for text in texts]
    scored = ranker.scored(pairs)
    seen = ROOM if unit == "words" else 40  # "bogue" is two tokens: 40 of them do not fit
    assert scored.cut.tolist() == [200 - seen, 0]
    assert [len(own) for own in scored.windows] == [1, 1]
    every = ranker.scored_windows(pairs)  # these are all seen
    assert len(every.windows[0]) > 1
    assert every.cut.tolist() == with_windows("max", unit=unit).scored(pairs).cut.tolist()


def test_a_tokenizer_that_truncates_hides_nothing_of_what_is_cut():
    tokenizer = tiny.tokenizer()
    tokenizer.enable_truncation(8)
    ranker = with_windows("first")
    truncating = Ranker(ranker.settings, tokenizer, ranker.backend)
    pair = Query("q", "fish"), Document("d", " ".join(["river"] * 100))
    assert truncating.scored([pair]).cut.tolist() == [60]
    assert tokenizer.truncation["max_length"] == 8


FACT = (
    "Hedgehogs curl into a tight ball when they are frightened, so that only their spines face "
    "the attacker."
)
FILLER = (
    "The council met on Tuesday to discuss the new tram line.",
    "Prices of copper fell again in the autumn.",
    "She tuned the violin before the concert began.",
    "The bridge was closed for repairs until the spring.",
    "A committee was asked to report on the harbour dues.",
    "Rain delayed the final match by two hours.",
)


@pytest.mark.real
def test_a_real_ranker_finds_the_answer_in_the_last_window(minilm_folder, tmp_path):
    draw = random.Random(5)

    def article():
        words: list[str] = []
        while len(words) < 500 - len(FACT.split()):
            words += draw.choice(FILLER).split()
        return words[: 500 - len(FACT.split())]

    encode = {"windows": {"length": 150, "stride": 75}}
    save_model(new_warm(minilm_folder, encode=encode), tmp_path / "ranker")
    ranker = Ranker.load(tmp_path / "ranker", device="cpu")
    query = Query("q", "what does a hedgehog do when it is afraid?")
    last = " ".join([*article(), FACT])
    pairs = [(query, Document("last", last)), (query, Document("none", " ".join(article())))]
    encoded = ranker.encode(pairs)
    scored = ranker.score_encoded(encoded)
    assert scored.scores[0] > scored.scores[1] + 1
    start, end = encoded[0].spans[scored.best[0]]
    assert last[start:end].endswith(FACT)
