"""No text breaks the encoder, and what did not fit is always accounted for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondlook.encode.encoder import Encoder
from secondlook.encode.features import collate
from secondlook.encode.markers import add_markers, marker_tokens
from secondlook.encode.settings import EncodeSettings, MarkerSettings
from secondlook.encode.tokens import in_batches
from secondlook.types import Document, Query

NASTY = [
    "",
    " ",
    "\n\t\r\x00\x01\x1b\x7f\u200b\ufeff",
    "!?.,;:-'\"()[]{}<>@#$%^&*",
    "東京タワー ghost العربية हिन्दी Ελλάδα ไทย",
    "e\u0301\u0327\u0301 e\u0301 \u0344",
    "\ud800 \udfff\ud83d",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "[CLS] [SEP] [PAD] [UNK] [MASK] [e1] [/e1] [unused1] <s> </s> ## ##ue",
    "x" * 5_000,
    "ghost",
    "\u202eghost\u202c",
]
SETTINGS = {
    "plain": EncodeSettings(),
    "short": EncodeSettings(max_length=9, max_query_length=3, strm=True),
    "types": EncodeSettings(query_types=True, title_separator=None, max_length=40),
    "warm": EncodeSettings(form="warm", query_prompt="query: ", document_prompt="passage: "),
    "markers": EncodeSettings(markers=MarkerSettings(skip_stop_words=False), max_length=30),
    "all": EncodeSettings(
        markers=MarkerSettings(match="exact", max_terms=3),
        form="warm",
        query_types=True,
        max_length=24,
        max_query_length=7,
    ),
}
texts = st.sampled_from(NASTY) | st.text(st.characters(), max_size=60)


@pytest.fixture(scope="module", params=SETTINGS)
def encoder(request, family):
    settings = SETTINGS[request.param]
    add_markers(family, MarkerSettings())
    return Encoder(family, settings)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=4))
def test_any_texts_become_sound_features(encoder, family, parts):
    pairs = [
        (Query("q", query, "numeric"), Document("d", text, title)) for query, text, title in parts
    ]
    batch = encoder.encode(pairs)
    opened = [family.token_to_id(token) for token in marker_tokens(MarkerSettings())]
    for features in batch:
        assert 0 < features.first <= len(features) <= encoder.settings.longest_pair
        limit = encoder.settings.max_length
        assert max(features.first, len(features) - features.first) <= limit
        assert len(features.ids) == len(features.segments) == len(features.words)
        assert features.words[0] == 0
        assert set(np.diff(features.words).tolist()) <= {0, 1}
        assert features.cut >= 0
        assert features.cut_query >= 0
        assert_balanced([opened.index(i) for i in features.ids.tolist() if i in opened])
    assert collate(batch, pad_id=0)["input_ids"].shape[0] == len(pairs)


def assert_balanced(markers):
    """Opening markers are even, the closing one follows at once."""
    assert len(markers) % 2 == 0
    for opening, closing in zip(markers[::2], markers[1::2], strict=True):
        assert opening % 2 == 0
        assert closing == opening + 1


def test_a_document_of_100_000_words_is_cut_and_says_so(bert):
    pair = Query("q", "ghost town"), Document("d", "urban bogue " * 50_000)
    for settings in EncodeSettings(), EncodeSettings(form="warm"):
        [features] = Encoder(bert, settings).encode([pair])
        joint = settings.form == "joint"
        assert len(features) == 512 + (0 if joint else features.first)
        shown = len(features) - features.first - (1 if joint else 2)
        assert features.cut == 150_000 - shown


def test_long_texts_go_to_the_tokenizer_few_at_a_time():
    long, short = "x" * 2**20, "x"
    batches = in_batches([short, long, long, short, long * 3, short])
    assert [len(some) for some in batches] == [2, 2, 1, 1]
    assert list(in_batches([])) == []


def test_a_query_of_100_000_words_is_cut_and_says_so(bert):
    [features] = Encoder(bert, EncodeSettings()).encode(
        [(Query("q", "ghost " * 100_000), Document("d", "ghost"))]
    )
    assert features.cut_query == 100_000 - 64
    assert features.cut == 0
