"""MarkedBERT's markers, worked out by hand and against a plain retelling of their rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondlook.encode.encoder import Encoder
from secondlook.encode.markers import add_markers, marker_tokens, term_reader
from secondlook.encode.settings import EncodeSettings, MarkerSettings
from secondlook.errors import UnusableTokenizer
from secondlook.types import Document, Query


def encode(tokenizer, query, text, markers=None, **settings):
    markers = markers or MarkerSettings()
    add_markers(tokenizer, markers)
    encoder = Encoder(tokenizer, EncodeSettings(markers=markers, **settings))
    [features] = encoder.encode([(Query("q", query), Document("d", text))])
    return features


def marked(tokenizer, query, text, markers=None, **settings):
    features = encode(tokenizer, query, text, markers, **settings)
    return " ".join(tokenizer.id_to_token(i) for i in features.ids.tolist())


def test_the_papers_example(bert):
    # Figure 1 shows "meaning" marked too; footnote 3: terms without a match were not.
    assert marked(
        bert,
        "ghost meaning urban",
        "ghost town, an urban area with a fixed boundary that is smaller than a city",
    ) == (
        "[CLS] [e1] ghost [/e1] meaning [e2] urban [/e2] [SEP] "
        "[e1] ghost [/e1] town , an [e2] urban [/e2] area with a fixed boundary that is "
        "smaller than a city [SEP]"
    )


def test_markers_are_words_of_one_token_and_stand_in_the_segment_of_their_word(bert):
    features = encode(bert, "bogue", "a bogue town")
    # [CLS] [e1] bog ##ue [/e1] [SEP] a [e1] bog ##ue [/e1] town [SEP]
    assert features.words.tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10]
    assert features.segments.tolist() == [0] * 6 + [1] * 7
    assert features.first == 6


def test_every_occurrence_is_marked_and_a_repeated_term_keeps_its_first_k(bert):
    assert marked(bert, "urban ghost urban", "ghost urban ghost") == (
        "[CLS] [e1] urban [/e1] [e2] ghost [/e2] [e1] urban [/e1] [SEP] "
        "[e2] ghost [/e2] [e1] urban [/e1] [e2] ghost [/e2] [SEP]"
    )


def test_stems_match_each_other_only_where_the_settings_say(bert):
    assert marked(bert, "Ghost town", "the ghosts of Towns") == (
        "[CLS] [e1] ghost [/e1] [e2] town [/e2] [SEP] "
        "the [e1] ghosts [/e1] of [e2] town ##s [/e2] [SEP]"
    )
    assert marked(bert, "Ghost town", "the ghosts of Town", MarkerSettings(match="exact")) == (
        "[CLS] ghost [e1] town [/e1] [SEP] the ghosts of [e1] town [/e1] [SEP]"
    )


def test_a_word_that_shares_only_a_piece_is_no_match(bert):
    assert marked(bert, "boga", "bogus") == "[CLS] bog ##a [SEP] bog ##us [SEP]"


def test_porter_takes_bogue_and_bogus_for_one_word_and_exact_does_not(bert):
    stems = "[CLS] [e1] bog ##ue [/e1] [SEP] [e1] bog ##us [/e1] [SEP]"
    assert marked(bert, "bogue", "bogus") == stems
    exact = MarkerSettings(match="exact")
    assert marked(bert, "bogue", "bogus", exact) == "[CLS] bog ##ue [SEP] bog ##us [SEP]"


def test_words_the_vocabulary_does_not_know_match_by_their_spelling(bert):
    assert marked(bert, "Ελλάδα", "ελλαδα Ρώμη") == (
        "[CLS] [e1] [UNK] [/e1] [SEP] [e1] [UNK] [/e1] [UNK] [SEP]"
    )


def test_a_word_of_more_than_a_hundred_letters_matches_nothing(bert):
    assert "[e1]" in marked(bert, "z" * 100, "z" * 100, max_query_length=100)
    assert "[e1]" not in marked(bert, "z" * 101, "z" * 101, max_query_length=101)


def test_stop_words_are_marked_only_where_the_settings_say_and_punctuation_never(bert):
    assert marked(bert, "what is the town ?", "the town is what ?") == (
        "[CLS] what is the [e1] town [/e1] ? [SEP] the [e1] town [/e1] is what ? [SEP]"
    )
    with_stop_words = MarkerSettings(skip_stop_words=False)
    assert marked(bert, "the town ?", "the ?", with_stop_words) == (
        "[CLS] [e1] the [/e1] town ? [SEP] [e1] the [/e1] ? [SEP]"
    )


def test_words_of_another_language_match_by_its_stems_and_not_by_its_stop_words(bert):
    german = MarkerSettings(analyzer="german")
    assert term_reader(bert, german)("Häuser,") == term_reader(bert, german)("haus") != 0
    assert term_reader(bert, german)("und") == term_reader(bert, german)("—") == 0
    assert term_reader(bert, MarkerSettings())("Häuser") != term_reader(bert, MarkerSettings())(
        "haus"
    )
    exact = MarkerSettings(analyzer="german", match="exact", skip_stop_words=False)
    assert term_reader(bert, exact)("Häuser") != term_reader(bert, exact)("haus")
    assert term_reader(bert, exact)("und") == term_reader(bert, exact)("Und") != 0


def test_at_most_so_many_terms_are_marked_the_first_of_the_query(bert):
    assert marked(bert, "ghost town urban", "urban town ghost", MarkerSettings(max_terms=2)) == (
        "[CLS] [e1] ghost [/e1] [e2] town [/e2] urban [SEP] "
        "urban [e2] town [/e2] [e1] ghost [/e1] [SEP]"
    )


def test_prompts_and_types_are_not_marked(bert):
    assert (
        marked(bert, "query", "passage query", query_prompt="query: ", document_prompt="passage: ")
        == "[CLS] query : [e1] query [/e1] [SEP] passage : passage [e1] query [/e1] [SEP]"
    )
    add_markers(bert, MarkerSettings())
    encoder = Encoder(bert, EncodeSettings(markers=MarkerSettings(), query_types=True))
    [features] = encoder.encode([(Query("q", "person", "hum"), Document("d", "a person"))])
    assert " ".join(map(bert.id_to_token, features.ids.tolist())) == (
        "[CLS] person [SEP] [e1] person [/e1] [SEP] a [e1] person [/e1] [SEP]"
    )


def test_the_warm_form_is_marked_too(bert):
    features = encode(bert, "ghost", "a ghost", form="warm")
    assert " ".join(map(bert.id_to_token, features.ids.tolist())) == (
        "[CLS] [e1] ghost [/e1] [SEP] [CLS] a [e1] ghost [/e1] [SEP]"
    )
    assert features.first == 5


def test_a_marked_word_that_does_not_fit_with_its_markers_is_left_out_whole(bert):
    text = "ghost town of ghosts in area"
    #           1    2    3     4     5     6    7     8     9   10   11   12   13     14    15
    whole = "[CLS] [e1] ghost [/e1] [SEP] [e1] ghost [/e1] town of [e1] ghosts [/e1] in area [SEP]"
    shown = {
        16: (whole, 0),
        15: (whole.replace(" area", ""), 1),
        14: (whole.replace(" in area", ""), 2),
        13: ("[CLS] [e1] ghost [/e1] [SEP] [e1] ghost [/e1] town of [SEP]", 3),
        11: ("[CLS] [e1] ghost [/e1] [SEP] [e1] ghost [/e1] town of [SEP]", 3),
        10: ("[CLS] [e1] ghost [/e1] [SEP] [e1] ghost [/e1] town [SEP]", 4),
    }
    for max_length, (expected, cut) in shown.items():
        assert marked(bert, "ghost", text, max_length=max_length) == expected
        assert encode(bert, "ghost", text, max_length=max_length).cut == cut


def test_a_term_whose_only_occurrence_was_cut_is_not_marked_in_the_query(bert):
    assert marked(bert, "urban town ghost", "ghost of a town urban", max_length=14) == (
        "[CLS] urban town [e1] ghost [/e1] [SEP] [e1] ghost [/e1] of a [SEP]"
    )


def test_a_first_occurrence_is_shown_only_with_room_for_the_markers_in_the_query(bert):
    assert marked(bert, "ghost town urban area", "ghost town urban area", max_length=12) == (
        "[CLS] [e1] ghost [/e1] town urban area [SEP] [e1] ghost [/e1] [SEP]"
    )


def test_a_query_word_cut_in_two_matches_nothing(bert):
    assert marked(bert, "town bogue", "bog bogue", max_query_length=2) == (
        "[CLS] town bog [SEP] bog bog ##ue [SEP]"
    )


def test_a_cased_byte_level_base_matches_whatever_case_and_space(roberta):
    features = encode(roberta, "ghost-town", "A Ghost, (Town)")
    spelled = roberta.decode(features.ids.tolist(), skip_special_tokens=False)
    assert spelled == (
        "<s>[e1]ghost[/e1]-[e2]town[/e2]</s></s>A[e1] Ghost[/e1], ([e2]Town[/e2])</s>"
    )


def test_unused_tokens_of_the_vocabulary_can_be_the_markers(bert):
    size = bert.get_vocab_size()
    assert marked(
        bert, "ghost town", "ghost town", MarkerSettings(tokens="unused", max_terms=5)
    ) == (
        "[CLS] [unused0] ghost [unused1] [unused2] town [unused3] [SEP] "
        "[unused0] ghost [unused1] [unused2] town [unused3] [SEP]"
    )
    assert bert.get_vocab_size() == size
    with pytest.raises(UnusableTokenizer, match=r"lower markers\.max_terms to 5"):
        marked(bert, "ghost", "ghost", MarkerSettings(tokens="unused", max_terms=6))


def test_added_tokens_have_to_be_in_the_vocabulary(bert):
    settings = MarkerSettings(max_terms=2)
    with pytest.raises(UnusableTokenizer, match="add_markers"):
        Encoder(bert, EncodeSettings(markers=settings))
    assert marker_tokens(settings) == ["[e1]", "[/e1]", "[e2]", "[/e2]"]
    assert add_markers(bert, settings) == 4
    assert add_markers(bert, settings) == 0


def test_a_marker_spelled_out_in_a_text_is_text(bert):
    features = encode(bert, "a", "[e1] fake [/e1]")
    assert not {bert.token_to_id("[e1]"), bert.token_to_id("[/e1]")} & set(features.ids.tolist())


STEMS = {"ghosts": "ghost", "towns": "town", "bogue": "bogu", "bogus": "bogu"}
PIECES = {"bogue": ["bog", "##ue"], "bogus": ["bog", "##us"], "towns": ["town", "##s"]}
words = st.lists(
    st.sampled_from(["ghost", "ghosts", "town", "towns", "bogue", "bogus", "the", "urban", ","]),
    max_size=12,
)


def retold(query, text, max_length, max_terms):
    """The rules once more, word by word."""

    def term(word):
        return STEMS.get(word, word)

    def wrapped(word, k):
        pieces = PIECES.get(word, [word])
        return [f"[e{k}]", *pieces, f"[/e{k}]"] if k else pieces

    while sum(len(wrapped(word, 0)) for word in text[:-1]) >= max_length:
        text = text[:-1]  # what begins beyond all room is not looked at
    in_query, in_text = [term(word) for word in query], [term(word) for word in text]
    held = [one for one in in_query if one in in_text and one not in ("the", ",")]
    matched = list(dict.fromkeys(held))[:max_terms]
    room = max_length - 3 - sum(len(wrapped(word, 0)) for word in query)
    shown, seen = [], []
    for word in text:
        pieces = wrapped(word, term(word) in matched)
        new = term(word) in matched and term(word) not in seen
        cost = len(pieces) + new * 2 * in_query.count(term(word))
        if cost > room and term(word) in matched:
            break
        shown.append((word, pieces[:room]))
        seen.append(term(word))
        room = max(room - cost, 0)
    k = {one: n for n, one in enumerate((one for one in matched if one in seen), start=1)}
    return " ".join(
        ["[CLS]"]
        + [token for word in query for token in wrapped(word, k.get(term(word)))]
        + ["[SEP]"]
        + [
            t
            for word, cut in shown
            for t in (wrapped(word, k[term(word)]) if term(word) in k else cut)
        ]
        + ["[SEP]"]
    )


@given(words.filter(lambda query: len(query) < 6), words, st.integers(13, 40), st.integers(1, 3))
def test_any_pair_is_marked_as_the_rules_say(marked_bert, query, text, max_length, max_terms):
    markers = MarkerSettings(max_terms=max_terms)
    found = marked(marked_bert, " ".join(query), " ".join(text), markers, max_length=max_length)
    assert found == retold(query, text, max_length, max_terms)


@given(words, words, st.integers(8, 60))
def test_markers_aside_a_pair_is_the_plain_pair_or_the_beginning_of_its_document(
    marked_bert, query, text, max_length
):
    with_markers = encode(marked_bert, " ".join(query), " ".join(text), max_length=max_length)
    pair = Query("q", " ".join(query)), Document("d", " ".join(text))
    [plain] = Encoder(marked_bert, EncodeSettings(max_length=max_length)).encode([pair])
    markers = [marked_bert.token_to_id(token) for token in marker_tokens(MarkerSettings())]
    left = with_markers.ids[~np.isin(with_markers.ids, markers)].tolist()
    assert len(with_markers) <= max_length
    assert left[:-1] == plain.ids.tolist()[: len(left) - 1]
    assert len(left) + with_markers.cut == len(plain) + plain.cut
