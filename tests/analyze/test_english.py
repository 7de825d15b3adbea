import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondlook.analyze import analyzer


# What Lucene's EnglishAnalyzer gives for the same texts.
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cats are running", ["cat", "run"]),
        ("A dog's life", ["dog", "life"]),
        ("the dog’s bowls", ["dog", "bowl"]),
        ("U.S. policy", ["u.", "polici"]),
        ("version 3.5, or 1,000", ["version", "3.5", "1,000"]),
        ("well-known co-operation", ["well", "known", "co", "oper"]),
        ("don't", ["don't"]),
        ("snake_case", ["snake_cas"]),
        ("naïve café", ["naïv", "café"]),
        ("", []),
        ("to be or not to be", []),
    ],
)
def test_terms_are_those_of_lucene(text, terms):
    assert analyzer().terms(text) == terms


@given(st.text())
def test_spans_cut_out_the_words_behind_the_terms(text):
    english = analyzer()
    spans = list(english.spans(text))
    assert [term for _, _, term in spans] == english.terms(text)
    assert all(english.terms(text[start:end]) == [term] for start, end, term in spans)
