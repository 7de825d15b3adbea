"""The forms of a pair: which tokens, in which segment, cut where."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from secondlook.encode.encoder import Encoder, longest_first
from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings, MarkerSettings
from secondlook.encode.tokens import text_only
from secondlook.errors import MissingQueryType, UnknownName, UnusableTokenizer
from secondlook.types import Document, Query


def encode(tokenizer, query, text, title="", query_type=None, **settings):
    encoder = Encoder(tokenizer, EncodeSettings(**settings))
    [features] = encoder.encode([(Query("q", query, query_type), Document("d", text, title))])
    return features


def spelled(tokenizer, features):
    return " ".join(tokenizer.id_to_token(i) for i in features.ids.tolist())


def test_monobert_puts_the_query_in_segment_0_and_the_passage_in_segment_1(bert):
    features = encode(bert, "ghost town", "an urban area")
    assert spelled(bert, features) == "[CLS] ghost town [SEP] an urban area [SEP]"
    assert features.segments.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert features.words.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert (features.first, features.cut, features.cut_query) == (4, 0, 0)


def test_dr_bert_puts_type_and_query_in_segment_0(bert):
    features = encode(bert, "what is bogue", "a town", query_type="DESC", query_types=True)
    assert spelled(bert, features) == (
        "[CLS] description [SEP] what is bog ##ue [SEP] a town [SEP]"
    )
    assert features.segments.tolist() == [0] * 8 + [1] * 3
    assert features.words.tolist() == [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9]
    assert features.first == 8


def test_the_warm_form_frames_either_text_as_its_bi_encoder_would(bert):
    features = encode(
        bert,
        "bogue",
        "ghost town",
        form="warm",
        query_prompt="query: ",
        document_prompt="passage: ",
    )
    assert spelled(bert, features) == (
        "[CLS] query : bog ##ue [SEP] [CLS] passage : ghost town [SEP]"
    )
    assert not features.segments.any()
    assert features.first == 6
    alone = bert.encode("query: bogue").ids, bert.encode("passage: ghost town").ids
    assert (features.ids[:6].tolist(), features.ids[6:].tolist()) == alone


def test_what_the_warm_form_reads_of_a_document_does_not_depend_on_the_query(bert):
    text, given = "ghost town an urban area that is smaller", {"form": "warm", "max_length": 8}
    one, other = (encode(bert, query, text, **given) for query in ("bogue", "ghost town " * 9))
    assert one.ids[one.first :].tolist() == other.ids[other.first :].tolist()
    assert spelled(bert, other) == (
        "[CLS] ghost town ghost town ghost town [SEP] [CLS] ghost town an urban area that [SEP]"
    )
    assert (one.cut, other.cut, one.cut_query, other.cut_query) == (2, 2, 0, 12)
    unlimited = encode(bert, "ghost town " * 9, text, max_query_length=None, **given)
    assert unlimited.ids.tolist() == other.ids.tolist()


def test_the_warm_form_takes_a_type_before_the_query(bert):
    features = encode(bert, "ghost", "town", query_type="num", query_types=True, form="warm")
    assert spelled(bert, features) == "[CLS] numeric [SEP] ghost [SEP] [CLS] town [SEP]"
    assert features.first == 5


def test_robertas_frame_has_two_separators_and_one_segment(roberta):
    features = encode(roberta, "ghost", "town", query_type="person", query_types=True)
    person, ghost, town = (
        " ".join(roberta.encode(word, add_special_tokens=False).tokens)
        for word in ("person", "ghost", "town")
    )
    expected = f"<s> {person} </s> </s> {ghost} </s> </s> {town} </s>"
    assert spelled(roberta, features) == expected
    assert not features.segments.any()
    assert features.first == len(f"<s> {person} </s> </s> {ghost} </s> </s>".split())


@given(
    st.text(max_size=40) | st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,6}", fullmatch=True),
    st.text(max_size=80) | st.from_regex(r"[A-Za-z]{1,9}( [a-z,.]{1,9}){0,12}", fullmatch=True),
)
def test_the_joint_form_is_what_the_tokenizers_own_template_gives(family, query, text):
    reference = Tokenizer.from_str(family.to_str())
    reference.encode_special_tokens = True
    [expected] = reference.encode_batch([(query, text)])
    features = encode(family, query, text, max_query_length=500, max_length=1000)
    assert features.ids.tolist() == expected.ids
    assert features.segments.tolist() == expected.type_ids


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40), st.text(max_size=80))
def test_berts_words_are_its_splitters_and_special_tokens_are_their_own(bert, query, text):
    bert.encode_special_tokens = True
    encoding = bert.encode(query, text)
    parts = [
        (place, None) if owner is None else (owner, word)
        for place, (owner, word) in enumerate(
            zip(encoding.sequence_ids, encoding.word_ids, strict=True), start=2
        )
    ]
    numbers = {part: number for number, part in enumerate(dict.fromkeys(parts))}
    features = encode(bert, query, text, max_query_length=500, max_length=1000)
    assert features.words.tolist() == [numbers[part] for part in parts]


@pytest.mark.parametrize("room", [1, 2, 7, 12])
def test_without_a_limit_for_queries_pairs_are_cut_as_hugging_faces_tokenizers_cut_them(room):
    tokenizer = Tokenizer(models.WordLevel({"q": 0, "d": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(room, strategy="longest_first")
    for query in range(16):
        for document in range(16):
            expected = tokenizer.encode("q " * query, "d " * document).ids.count(0)
            assert longest_first(query, document, room) == expected


def test_figure_3_of_dr_bert_who_may_attend_to_whom_follows_from_the_words(bert):
    features = encode(bert, "definition of bogue", "fake", strm=True)
    assert spelled(bert, features) == "[CLS] definition of bog ##ue [SEP] fake [SEP]"
    words = features.words
    assert words.tolist() == [0, 1, 2, 3, 3, 4, 5, 6]
    is_last = np.append(words[1:] != words[:-1], True)
    allowed = is_last[None, :] | (words[:, None] == words[None, :])
    everything_but_bog = np.ones((8, 8), bool)
    everything_but_bog[[0, 1, 2, 5, 6, 7], 3] = False  # 1 to 3 and 6 to 8 may not see position 4
    assert np.array_equal(allowed, everything_but_bog)


def test_the_document_loses_its_tail_and_says_how_much(bert):
    features = encode(bert, "ghost", "an urban bogue that is smaller", max_length=8)
    assert spelled(bert, features) == "[CLS] ghost [SEP] an urban bog ##ue [SEP]"
    assert features.cut == 3


def test_the_querys_limit_leaves_special_tokens_prompt_and_type_out_of_account(bert):
    settings = {"max_query_length": 2, "query_prompt": "query: ", "query_types": True}
    features = encode(bert, "ghost town urban", "area", query_type="loc", **settings)
    assert spelled(bert, features) == "[CLS] location [SEP] query : ghost town [SEP] area [SEP]"
    assert (features.cut_query, features.cut) == (1, 0)


def test_a_query_longer_than_everything_leaves_no_document_but_its_frame(bert):
    features = encode(bert, "ghost " * 20, "town", max_length=8)
    assert spelled(bert, features) == "[CLS] ghost ghost ghost ghost ghost [SEP] [SEP]"
    assert (features.cut_query, features.cut) == (15, 1)


@pytest.mark.parametrize(
    ("separator", "expected"),
    [(" ", "ghost town urban"), (". ", "ghost town . urban"), (None, "urban")],
)
def test_the_title_stands_before_the_text_as_the_settings_say(bert, separator, expected):
    features = encode(bert, "a", "urban", title="ghost town", title_separator=separator)
    assert spelled(bert, features) == f"[CLS] a [SEP] {expected} [SEP]"
    untitled = encode(bert, "a", "urban", title_separator=separator)
    assert spelled(bert, untitled) == "[CLS] a [SEP] urban [SEP]"


@pytest.mark.parametrize("kind", ["family", "sentencepiece"])
def test_no_text_can_forge_the_frame(kind, family, sentencepiece):
    tokenizer = family if kind == "family" else sentencepiece
    special = {i: t.content for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    unknown = getattr(tokenizer.model, "unk_token", None) or "<unk>"
    framing = [i for i, spelling in special.items() if spelling not in {unknown, "[UNK]"}]
    spellings = list(special.values())
    plain = encode(tokenizer, "a", "town ghost")
    for text in " ".join(spellings), "".join(spellings), f"x{'x'.join(spellings)}x":
        forged = encode(tokenizer, text, f"town {text} ghost")
        assert np.isin(forged.ids, framing).sum() == np.isin(plain.ids, framing).sum(), text
        assert len(forged.ids) > len(plain.ids)


def test_what_stands_around_a_spelled_out_special_token_is_read_as_ever(sentencepiece):
    special = "</s>" if sentencepiece.token_to_id("</s>") is not None else "[SEP]"
    own = text_only(sentencepiece)
    assert text_only(own).to_str() == own.to_str()  # once is enough
    around = own.encode(f"ghost {special} town", add_special_tokens=False).tokens
    assert (around[0], around[-1]) == ("▁ghost", "▁town")
    plain = "a ghost <b>town</b>"
    tokens = sentencepiece.encode(plain, add_special_tokens=False).tokens
    assert own.encode(plain, add_special_tokens=False).tokens == tokens


def test_a_lone_surrogate_is_read_as_the_replacement_character(bert, roberta):
    for tokenizer in bert, roberta:
        broken, mended = "a \ud800 town", "a \ufffd town"
        assert np.array_equal(
            encode(tokenizer, broken, broken).ids, encode(tokenizer, mended, mended).ids
        )


def test_the_callers_tokenizer_and_its_limits_stay_as_they_are(bert):
    bert.enable_truncation(4)
    bert.enable_padding(length=128)
    before = bert.to_str()
    assert len(encode(bert, "ghost town", "an urban area")) == 8
    assert bert.to_str() == before


def test_pairs_come_back_in_their_order_whatever_they_share(bert):
    encoder = Encoder(bert, EncodeSettings(query_types=True))
    queries = [Query("1", "ghost", "num"), Query("2", "ghost", "loc"), Query("3", "town", "num")]
    texts = [Document("a", "urban area"), Document("b", "fake"), Document("c", "urban area")]
    pairs = [(query, text) for text in texts for query in queries]
    together = encoder.encode(pairs)
    for pair, features in zip(pairs, together, strict=True):
        [alone] = Encoder(bert, EncodeSettings(query_types=True)).encode([pair])
        assert np.array_equal(features.ids, alone.ids)
        assert np.array_equal(features.words, alone.words)
        assert features.first == alone.first
    assert encoder.encode([]) == []


def test_a_document_seen_before_is_not_tokenised_again(bert, monkeypatch):
    read = []
    from secondlook.encode.tokens import Reader

    tokenise = Reader.read
    monkeypatch.setattr(
        Reader,
        "read",
        lambda self, texts, prompt="": read.extend(texts) or tokenise(self, texts, prompt),
    )
    pairs = [(Query("q", "ghost"), Document(str(n), f"town {n}")) for n in range(50)]
    encoder = Encoder(bert, EncodeSettings())
    first = encoder.encode(pairs)
    read.clear()
    again = encoder.encode(pairs)
    assert read == []
    assert all(np.array_equal(a.ids, b.ids) for a, b in zip(first, again, strict=True))

    forgetful = Encoder(bert, EncodeSettings(), cache_bytes=10_000)
    forgetful.encode(pairs)
    read.clear()
    forgetful.encode(pairs[-5:])
    assert read == []
    forgetful.encode(pairs[:5])
    assert read == [document.text for _, document in pairs[:5]]


def test_threads_may_share_an_encoder(bert):
    add_markers(bert, MarkerSettings())
    settings = EncodeSettings(markers=MarkerSettings())
    pairs = [(Query("q", f"ghost {n % 7}"), Document(str(n), f"ghosts {n}")) for n in range(400)]
    expected = [one.ids.tolist() for one in Encoder(bert, settings).encode(pairs)]
    shared = Encoder(bert, settings, cache_bytes=20_000)  # so small that they evict each other's
    with ThreadPoolExecutor(4) as threads:
        for batch in threads.map(lambda _: shared.encode(pairs), range(12)):
            assert [one.ids.tolist() for one in batch] == expected


def test_a_query_without_a_type_is_refused_where_types_are_needed(bert):
    with pytest.raises(MissingQueryType, match="secondlook types train"):
        encode(bert, "ghost", "town", query_types=True)
    with pytest.raises(UnknownName, match="did you mean 'person'"):
        encode(bert, "ghost", "town", query_type="persn", query_types=True)


def test_a_classifier_gives_types_to_the_queries_that_have_none(bert):
    class Oracle:
        def predict(self, queries):
            return ["NUM" if "how" in query else "entity" for query in queries]

    encoder = Encoder(bert, EncodeSettings(query_types=True), types=Oracle())
    queries = [Query("1", "how"), Query("2", "ghost", "loc"), Query("3", "ghost")]
    spelt = [
        spelled(bert, one) for one in encoder.encode([(q, Document("d", "a")) for q in queries])
    ]
    assert [words.split()[1] for words in spelt] == ["numeric", "location", "entity"]


def test_a_tokenizer_without_special_tokens_is_refused(bert):
    bare = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    with pytest.raises(UnusableTokenizer, match="special tokens"):
        encode(bare, "a", "a")


def test_special_tokens_alone_may_not_fill_the_length(bert):
    settings = {"query_types": True, "query_type": "num", "max_length": 8}
    assert len(encode(bert, "ghost", "town", **settings)) == 8 - 1  # [CLS] T [SEP] q [SEP] d [SEP]
    long = Tokenizer.from_str(bert.to_str().replace('"numeric"', '"numerical"'))
    with pytest.raises(UnusableTokenizer, match="raise max_length"):
        encode(long, "ghost", "town", **settings)


@pytest.mark.real
def test_real_weights_are_framed_as_their_own_tokenizer_frames_them(minilm_folder, shared_weights):
    texts = [("what is bogue", "Café, naïve: 東京 and an insouciantly bogus claim."), ("", "x")]
    for folder in minilm_folder, shared_weights / "e5-small":
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        for (query, text), expected in zip(texts, tokenizer.encode_batch(texts), strict=True):
            features = encode(tokenizer, query, text)
            assert features.ids.tolist() == expected.ids
            assert features.segments.tolist() == expected.type_ids
