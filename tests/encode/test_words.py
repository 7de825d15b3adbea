"""Words are those of the text, whatever a tokenizer takes for a word; STRM's groups follow."""

import unicodedata

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from secondlook.encode.encoder import Encoder
from secondlook.encode.features import collate
from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings, MarkerSettings
from secondlook.encode.words import WordFinder
from secondlook.model.strm import visible
from secondlook.types import Document, Query

PUNCTUATED = "the tide, in bogue. (bogue)"


def words_of(tokenizer, text):
    """The tokens of each word, joined."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    begins = WordFinder(tokenizer).begins(text, encoding, np.array(encoding.ids, int))
    words = []
    for token, first in zip(encoding.tokens, begins.tolist(), strict=True):
        if first:
            words.append([])
        words[-1].append(token)
    return [" ".join(word) for word in words]


def marked(tokenizer, query, text):
    markers = MarkerSettings()
    add_markers(tokenizer, markers)
    encoder = Encoder(tokenizer, EncodeSettings(markers=markers))
    [features] = encoder.encode([(Query("q", query), Document("d", text))])
    return " ".join(map(tokenizer.id_to_token, features.ids.tolist()))


def test_words_that_touch_punctuation_are_marked_on_sentencepiece_bases(sentencepiece):
    start, end = (
        ("<s>", "</s> </s>") if sentencepiece.token_to_id("<s>") == 0 else ("[CLS]", "[SEP]")
    )
    assert marked(sentencepiece, "bogue town?", "the town, in bogue. (bogue)") == (
        f"{start} [e1] ▁bog ue [/e1] [e2] ▁town [/e2] ? {end} "
        "▁the [e2] ▁town [/e2] , ▁in [e1] ▁bog ue [/e1] . ▁( [e1] bog ue [/e1] ) " + end.split()[0]
    )


def test_words_that_touch_punctuation_are_marked_on_every_base(family):
    spelled = marked(family, "bogue town?", "the town, in bogue. (bogue)")
    assert (spelled.count("[e1]"), spelled.count("[e2]")) == (3, 2)
    for punctuation in "?.,()":  # of which some tokens hold a space too
        inside = [part.split("[/e")[0] for part in spelled.split("[e")[1:]]
        assert not any(punctuation in part for part in inside)


def test_punctuation_is_no_part_of_a_words_group(sentencepiece):
    assert words_of(sentencepiece, "the bogue. (bogue), bogue's") == (
        ["▁the", "▁bog ue", ".", "▁(", "bog ue", "),", "▁bog ue", "'s"]
    )


def test_a_piece_that_holds_word_and_punctuation_is_one_word_and_matches_by_its_letters(
    sentencepiece,
):
    assert words_of(sentencepiece, "a U.S. town...") == ["▁a", "▁U.S.", "▁town", "..."]
    letters = WordFinder(sentencepiece).letters
    assert [letters(word) for word in ("U.S.", "'s", "...", "bogue", "हिन्दी,")] == (
        ["U.S", "s", "", "bogue", "हिन्दी"]
    )


def test_where_a_script_has_no_spaces_a_piece_is_a_word_with_the_mark_before_it(sentencepiece):
    assert words_of(sentencepiece, "世界世 town") == ["▁ 世界", "世", "▁town"]


def test_byte_level_bases_keep_letters_digits_and_combining_marks_together(roberta):
    for word in ("covid19", "हिन्दी", "e\u0301te\u0301"):
        assert len(words_of(roberta, f"a {word}.")) == 3


def kinds_retold(text):
    """The number of each character's word; -1 is white space. One character at a time."""
    numbers, last = [], ""
    for character in text:
        category = unicodedata.category(character)
        if character.isspace():
            kind = " "
        elif category[0] == "M" or category == "Cf":
            kind = last if numbers else "?"
            numbers.append(numbers[-1] if numbers else 0)
            continue
        else:
            unspaced = "\u4e00" <= character <= "\u9fff"
            kind = "a" if category[0] in "LN" and not unspaced else "?"
        goes_on = kind == "a" and last == "a"
        numbers.append(numbers[-1] if goes_on else max(numbers, default=0) + 1)
        last = kind
    return [-1 if c.isspace() else n for c, n in zip(text, numbers, strict=True)]


def groups_retold(tokenizer, text):
    """The group of each token: those that share a word of the text are together."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    numbers = kinds_retold(text)
    held = [set(numbers[start:end]) - {-1} for start, end in encoding.offsets]
    groups, group = [], 0
    for place, words in enumerate(held):
        before = next((one for one in reversed(held[:place]) if one), set())
        blank_before = place > 0 and not held[place - 1]
        own_blank = blank_before and encoding.word_ids[place] == encoding.word_ids[place - 1]
        if place and not (words & before) and not own_blank:
            group += 1
        groups.append(group)
    return groups


texts = st.lists(
    st.sampled_from(
        [*"ab1.,?!()'-$", " ", "  ", "bogue", "town", "U.S.", "ghost", "世界", "é", "e\u0301", "19"]
    ),
    max_size=14,
).map("".join)


@settings(max_examples=60)
@given(texts, texts)
def test_strms_mask_is_what_the_words_of_the_text_say(family, query, text):
    tokenizer = Tokenizer.from_str(family.to_str())
    encoder = Encoder(tokenizer, EncodeSettings(strm=True, max_query_length=200, max_length=500))
    [features] = encoder.encode([(Query("q", query), Document("d", text))])
    batch = collate([features], pad_id=0)
    mask = visible(torch.from_numpy(batch["attention_mask"]), torch.from_numpy(batch["words"]))
    whole = tokenizer.encode(query, text)
    sides = {0: groups_retold(tokenizer, query), 1: groups_retold(tokenizer, text)}
    places = {0: iter(sides[0]), 1: iter(sides[1])}
    groups = [
        ("special", place) if side is None else (side, next(places[side]))
        for place, side in enumerate(whole.sequence_ids)
    ]
    for b, group in enumerate(groups):
        is_last = b + 1 == len(groups) or groups[b + 1] != group
        for a, other in enumerate(groups):
            assert (mask[0, 0, a, b].item() == 0) == (is_last or other == group), (a, b)


@pytest.mark.parametrize("text", ["", " ", "\u0301", "\u200b", "\u0301 a", " \n "])
def test_texts_without_a_letter_have_words_too(family, text):
    encoding = family.encode(text, add_special_tokens=False)
    begins = WordFinder(family).begins(text, encoding, np.array(encoding.ids, int))
    assert len(begins) == len(encoding.ids)
    assert begins[:1].all()
