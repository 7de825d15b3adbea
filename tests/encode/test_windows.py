"""Long documents as windows, and the pooling of their scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from secondlook.encode.encoder import Encoder
from secondlook.encode.settings import EncodeSettings, WindowSettings
from secondlook.encode.windows import pool, split
from secondlook.types import Document, Query


def texts(tokenizer, text, **settings):
    [windows] = split([Document("d", text)], WindowSettings(**settings), tokenizer)
    return [window.document.text for window in windows]


def test_windows_overlap_and_the_last_reaches_back_to_full_length(bert):
    assert texts(bert, "a b c d e f", length=4, stride=2) == ["a b c d", "c d e f"]
    assert texts(bert, "a b c d e f g", length=4, stride=2) == ["a b c d", "c d e f", "d e f g"]
    assert texts(bert, "a b c d e", length=2, stride=2) == ["a b", "c d", "d e"]


def test_a_short_document_is_its_own_only_window(bert):
    for text in "", "  ", " a  b\n", "a b c d":
        [[window]] = split([Document("d", text)], WindowSettings(length=4, stride=4), bert)
        assert window.document == Document("d", text)
        assert (window.start, window.end) == (0, len(text))


def test_token_windows_hold_whole_words_of_the_tokenizers(bert):
    text = "bogue, bogus ghost"  # bog ##ue | , | bog ##us | ghost
    assert texts(bert, text, unit="tokens", length=3, stride=2) == [
        "bogue,",
        ", bogus",
        "bogus ghost",
    ]
    assert texts(bert, text, unit="tokens", length=6, stride=2) == [text]


def test_a_word_of_more_tokens_than_a_window_is_a_window(bert):
    text = "a xxxxx b"
    assert texts(bert, text, unit="tokens", length=2, stride=2) == ["a", "xxxxx", "b"]


def test_id_and_title_travel_with_each_window(bert):
    whole = Document("d", "ghost town of an urban area", "Bogue")
    settings = EncodeSettings(windows=WindowSettings(length=3, stride=3))
    encoder = Encoder(bert, settings)
    [windows] = encoder.windows([whole])
    assert {(window.document.id, window.document.title) for window in windows} == {("d", "Bogue")}
    assert [whole.text[window.start : window.end] for window in windows] == [
        "ghost town of",
        "an urban area",
    ]
    features = encoder.encode([(Query("q", "a"), window.document) for window in windows])
    for one in features:
        assert one.ids[3:5].tolist() == [bert.token_to_id("bog"), bert.token_to_id("##ue")]


def test_without_window_settings_a_document_is_one_window(bert):
    document = Document("d", "a b c " * 500)
    [[window]] = Encoder(bert, EncodeSettings()).windows([document])
    assert window.document is document


@given(
    st.text(st.characters() | st.sampled_from(" \n"), max_size=200),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from(["words", "tokens"]),
)
def test_every_word_is_in_a_window_and_no_window_is_too_long(family, text, length, stride, unit):
    settings = WindowSettings(unit=unit, length=length, stride=min(stride, length))
    [windows] = split([Document("d", text)], settings, family)
    covered = np.zeros(len(text), bool)
    for window in windows:
        covered[window.start : window.end] = True
        assert window.document.text == text[window.start : window.end]
        if unit == "words":
            assert len(window.document.text.split()) <= length
    starts = [window.start for window in windows]
    assert starts == sorted(set(starts))
    if unit == "words":
        assert all(covered[i] for i, character in enumerate(text) if not character.isspace())
        if len(windows) > 1:
            assert all(len(window.document.text.split()) == length for window in windows)
    else:
        surrogates_mended = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        encoding = family.encode(surrogates_mended, add_special_tokens=False)
        assert all(covered[start:end].all() for start, end in encoding.offsets)


SCORES = np.array([1, 5, 3, -2, 4, 8], np.float32)  # of a document with 3 windows, of 1, of 2
COUNTS = [3, 1, 2]


@pytest.mark.parametrize(
    ("pooling", "weights", "expected"),
    [
        ("first", (), [1, -2, 4]),
        ("max", (), [5, -2, 8]),
        ("mean", (), [3, -2, 6]),
        ("top", (1.0,), [5, -2, 8]),
        # 5·.5 + 3·.3 + 1·.2; then .5 alone, and .8 of 1, scaled up to the whole
        ("top", (0.5, 0.3, 0.2), [3.6, -2, (8 * 0.5 + 4 * 0.3) / 0.8]),
        ("top", (2.0, 2.0, 2.0, 2.0), [24, -16, 48]),
    ],
)
def test_pooling(pooling, weights, expected):
    pooled = pool(SCORES, COUNTS, WindowSettings(pooling=pooling, weights=weights))
    assert pooled.dtype == np.float32
    assert pooled.tolist() == pytest.approx(expected)


def test_pooling_of_no_documents_is_no_scores():
    assert pool(np.empty(0, np.float32), [], WindowSettings()).tolist() == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"length": 20, "stride": 30}, "at most 20"),
        ({"pooling": "top"}, "needs weights"),
        ({"pooling": "top", "weights": [0.5, -0.5]}, "needs weights"),
        ({"pooling": "max", "weights": [0.5]}, "weights are for"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings, problem):
    with pytest.raises(ValidationError, match=problem):
        WindowSettings(**settings)
