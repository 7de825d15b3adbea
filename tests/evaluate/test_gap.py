from unittest.mock import patch

import pytest

from secondlook.errors import MalformedInput
from secondlook.evaluate import gap
from secondlook.evaluate.gap import MOST_FREQUENT, domain_gap

GENERAL = "the time of the people and the way of the world"
STRANGE = "xyzzification 12 of the qwertoid, the qwertoid"


def test_general_words_are_no_strangers():
    gap = domain_gap([GENERAL] * 3)
    assert (gap.documents, gap.words, gap.distinct) == (3, 33, 7)
    assert gap.compared == 7
    assert gap.split is None
    assert "there are only 7" in gap.advice


def test_words_that_general_english_lacks_are_counted_and_named_first():
    gap = domain_gap([STRANGE], strangers=2)
    assert gap.words == 6  # the number is no word
    assert gap.share >= 0.5
    assert [word for word, _, _ in gap.strangers] == ["qwertoid", "xyzzification"]
    _, times, ratio = gap.strangers[0]
    assert times == 2
    assert ratio == pytest.approx(2 / 6 / 1e-9)
    assert "adapting is worth its time" in gap.advice


def test_words_a_tokenizer_splits_are_counted_by_how_often_they_are_used():
    gap = domain_gap([STRANGE], lambda words: [1 + (len(word) > 5) for word in words])
    assert gap.split == pytest.approx(3 / 6)  # xyzzification, and qwertoid twice
    assert gap.split_distinct == pytest.approx(2 / 4)


def test_ten_thousand_are_compared_with_ten_thousand():
    letters = "abcdefghij"
    words = [
        f"z{a}{b}{c}{d}{e}"
        for a in "ab"
        for b in letters
        for c in letters
        for d in letters
        for e in letters
    ]
    gap = domain_gap([" ".join(words)])
    assert gap.compared == MOST_FREQUENT
    assert gap.share > 0.99


def test_a_corpus_without_words_is_refused():
    with pytest.raises(MalformedInput, match="it holds no words"):
        domain_gap(["12 ... 34"])


def test_two_corpora_are_compared_as_drbert_does():
    web = ["the price of the car and the loan"] * 2
    books = ["the king and the price of the horse"]
    gap = domain_gap(web, against=("books.jsonl", books))
    # of price, of, the, car, and, loan: car and loan are not among the six of the other
    assert (gap.compared, gap.share) == (6, pytest.approx(2 / 6))
    assert {word for word, _, _ in gap.strangers} == {"car", "loan"}
    assert "33.3% of the most frequent words are not books.jsonl's" in gap.advice
    assert gap.to_dict()["against"] == "books.jsonl"


def test_only_as_many_of_the_other_count_as_of_this_one():
    gap = domain_gap(["sea sea tide"], against=("other", ["sea sea sea fish fish tide"]))
    assert gap.share == 0.5  # "tide" is the third of the other, and two are compared


def test_words_are_split_some_at_a_time():
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(26 * 26)]
    asked = []

    def pieces(some):
        asked.append(len(some))
        return [2 if word.endswith("z") else 1 for word in some]

    with patch.object(gap, "_AT_ONCE", 100):
        assert domain_gap([" ".join(words)], pieces).split == pytest.approx(1 / 26)
    assert asked == [100] * 6 + [76]
