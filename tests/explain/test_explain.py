import json
from threading import Thread

import numpy as np
import pytest

import tiny
from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings, MarkerSettings, WindowSettings
from secondlook.encode.type_classifier import TypeClassifier
from secondlook.errors import SecondlookError
from secondlook.explain import Stopped, explain
from secondlook.explain.attention import attend
from secondlook.explain.words import WordReader
from secondlook.model.joint import Joint
from secondlook.model.settings import Lineage, RankerSettings, WarmSettings
from secondlook.model.warm import Warm
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend
from secondlook.types import Document, Query

QUERY, DOCUMENT = "where is bogue", "The tide in Bogue is deep. Bogus fish, zz!"


def joint(family="bert", *, strm=False, **encode):
    settings = EncodeSettings(max_length=64, strm=strm, **encode)
    tokenizer = tiny.tokenizer()
    network = tiny.classifier(family)
    if settings.markers is not None:
        add_markers(tokenizer, settings.markers)
        network.resize_token_embeddings(tokenizer.get_vocab_size())
    card = RankerSettings(encode=settings, lineage=Lineage(base="tiny"))
    backend = TorchBackend(Joint(network, strm=strm), device="cpu")
    return Ranker(card, tokenizer, backend)


def warm(*, strm=False, separate_layers=0, **encode):
    settings = EncodeSettings(form="warm", max_length=64, strm=strm, **encode)
    shape = {"strm": strm, "separate_layers": separate_layers}
    network = Warm(tiny.encoder(), pooling="mean", **shape)
    network.gate.data.fill_(1.0)
    network.head.weight.data.fill_(0.1)
    card = RankerSettings(encode=settings, warm=WarmSettings(), lineage=Lineage(base="tiny"))
    return Ranker(card, tiny.tokenizer(), TorchBackend(network, device="cpu"))


def texts(words):
    return [word.text for word in words]


def named(words, text):
    return next(word for word in words if word.text == text)


def test_words_are_whole_and_say_what_is_special_about_them():
    said = explain(QUERY, DOCUMENT, joint())
    assert texts(said.query_words) == ["where", "is", "bogue"]
    assert texts(said.document_words)[:6] == ["The", "tide", "in", "Bogue", "is", "deep"]
    bogue = named(said.document_words, "Bogue")
    assert (bogue.pieces, bogue.outside, bogue.matched) == (("bog", "##ue"), True, "word")
    assert DOCUMENT[bogue.start : bogue.end] == "Bogue"
    bogus = named(said.document_words, "Bogus")
    assert (bogus.pieces, bogus.matched) == (("bog", "##us"), "stem")  # Porter makes both "bogu"
    assert named(said.document_words, "is").matched == ""  # a stop word
    assert not named(said.document_words, "tide").outside


def test_words_touch_punctuation_on_a_sentencepiece_base():
    card = RankerSettings(encode=EncodeSettings(max_length=64), lineage=Lineage(base="tiny"))
    backend = TorchBackend(Joint(tiny.classifier("xlm-roberta"), strm=False), device="cpu")
    said = explain("tide?", "the tide, (bogue).", Ranker(card, tiny.sentence_pieces(), backend))
    assert texts(said.query_words) == ["tide", "?"]
    assert texts(said.document_words)[:3] == ["the", "tide", ","]
    assert named(said.document_words, "tide").matched == "word"
    assert named(said.document_words, "bogue").attribution != 0.0


def test_an_attribution_is_what_the_score_loses_without_the_word():
    ranker = joint()
    said = explain(QUERY, DOCUMENT, ranker)
    without = DOCUMENT.replace("tide", "")
    whole, less = ranker.score(
        [(Query("", QUERY), Document("", text)) for text in (DOCUMENT, without)]
    )
    assert said.score == pytest.approx(whole, abs=1e-5)
    assert named(said.document_words, "tide").attribution == pytest.approx(whole - less, abs=1e-5)
    assert named(said.document_words, "!").attribution == 0.0


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("strm", [False, True])
def test_attention_is_that_of_the_network_as_it_scores(family, strm):
    ranker = joint(family, strm=strm)
    pair = Query("", QUERY), Document("", DOCUMENT)
    [features] = ranker.encoder.encode([pair])
    score, attention = attend(ranker.backend.network, features, strm=strm)
    assert attention.shape == (2, 4, len(features), len(features))
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    assert score == pytest.approx(ranker.score([pair])[0], abs=1e-4)
    assert ranker.score([pair])[0] == pytest.approx(score, abs=1e-4)  # and all is as before


def test_pairs_scored_meanwhile_wait_until_attention_was_looked_at():
    ranker = joint()
    encoder = ranker.backend.network.encoder
    pair = Query("", QUERY), Document("", DOCUMENT)
    expected, scored = ranker.score([pair]), []
    elsewhere = Thread(target=lambda: scored.append(ranker.score([pair])))

    def start_scoring(*_):
        if encoder.config._attn_implementation == "eager" and elsewhere.ident is None:
            elsewhere.start()
            elsewhere.join(0.2)
            assert elsewhere.is_alive()

    encoder.register_forward_pre_hook(start_scoring)
    explain(QUERY, DOCUMENT, ranker)
    elsewhere.join()
    np.testing.assert_array_equal(scored, [expected])


@pytest.mark.parametrize("make", [joint, warm])
def test_both_maps_stand_side_by_side_the_rankers_own_first(make):
    said = explain(QUERY, DOCUMENT, make(strm=True))
    own, other = said.attention
    assert (own.strm, own.as_trained, other.strm, other.as_trained) == (True, True, False, False)
    assert own.score == pytest.approx(said.score, abs=1e-4)
    assert other.score != pytest.approx(said.score, abs=1e-4)
    shape = len(said.query_words), len(said.document_words)
    assert np.array(own.query_to_document).shape == shape
    assert np.array(own.document_to_query).shape == shape[::-1]


@pytest.mark.parametrize("gate", [6e-6, 0.0])
def test_attention_that_carries_nothing_is_not_drawn_and_the_page_says_so(gate):
    ranker = warm()
    ranker.backend.network.gate.data.fill_(gate)
    said = explain(QUERY, DOCUMENT, ranker)
    assert said.attention == ()
    assert said.attention_note.startswith("query and document hardly attend to each other")
    largest = float(said.attention_note.split("largest weight ")[1].split(")")[0])
    assert 0 <= largest < 1e-3
    page = said.to_html()
    assert "<svg" not in page
    assert "Query and document hardly attend to each other" in page
    assert "its score is a comparison of two vectors" in page


def test_a_warm_ranker_that_learned_to_attend_has_its_maps_drawn():
    said = explain(QUERY, DOCUMENT, warm())  # its gate is open
    assert (len(said.attention), said.attention_note) == (2, "")
    assert said.to_html().count("<svg") == 2


def test_of_two_maps_that_look_the_same_one_is_drawn():
    said = explain("tide", "the deep sea", joint())  # no word is split: STRM changes nothing
    assert [one.as_trained for one in said.attention] == [True]
    assert "one map is shown" in said.to_html()
    assert said.to_html().count("<svg") == 1


def test_with_strm_no_word_looks_at_the_first_piece_of_another():
    ranker = joint(strm=True)
    [features] = ranker.encoder.encode([(Query("", QUERY), Document("", DOCUMENT))])
    _, attention = attend(ranker.backend.network, features, strm=True)
    first_pieces = np.flatnonzero(features.ids == tiny.VOCABULARY.index("bog"))
    in_query, in_document = first_pieces[0], first_pieces[1]
    assert attention[:, :, in_query, in_document].max() < 1e-6
    _, plain = attend(ranker.backend.network, features, strm=False)
    assert plain[:, :, in_query, in_document].max() > 1e-4


def test_a_layer_and_a_head_can_be_chosen_and_the_mean_is_theirs():
    ranker = joint()
    all_heads = [
        np.array(
            explain(QUERY, "deep sea", ranker, layer=2, head=head).attention[0].query_to_document
        )
        for head in range(1, 5)
    ]
    mean = explain(QUERY, "deep sea", ranker, layer=2).attention[0].query_to_document
    np.testing.assert_allclose(np.mean(all_heads, axis=0), mean, atol=1e-6)
    with pytest.raises(SecondlookError, match="there is no layer 3; this ranker has 1 to 2"):
        explain(QUERY, "deep sea", ranker, layer=3)


def test_the_parts_of_a_warm_score_are_its_sum():
    said = explain(QUERY, DOCUMENT, warm())
    assert sum(said.parts.values()) == pytest.approx(said.score, abs=1e-3)
    assert said.parts["what the head read"] != 0.0
    assert explain(QUERY, DOCUMENT, joint()).parts == {}


@pytest.mark.parametrize(
    ("pooling", "told"), [("max", True), ("first", True), ("mean", False), ("top", False)]
)
def test_parts_are_told_only_where_their_sum_is_the_score(pooling, told):
    weights = (0.5, 0.4) if pooling == "top" else ()
    windows = WindowSettings(length=4, stride=4, pooling=pooling, weights=weights)
    ranker = warm(windows=windows)
    for document in ("tide is a deep sea fish in the cape fear river what a tide", "deep sea"):
        said = explain(QUERY, document, ranker)
        assert bool(said.parts) is (told or (pooling == "mean" and len(said.windows) == 1))
        if said.parts:
            assert sum(said.parts.values()) == pytest.approx(said.score, abs=1e-3)


def test_prompts_markers_and_types_are_not_taken_for_words_of_the_texts():
    plain = explain(QUERY, DOCUMENT, joint())
    dressed = joint(
        query_prompt="what a ",
        document_prompt="sea: ",
        markers=MarkerSettings(max_terms=4),
        query_types=True,
    )
    said = explain(QUERY, DOCUMENT, dressed, query_type="location")
    assert texts(said.query_words) == texts(plain.query_words)
    assert texts(said.document_words) == texts(plain.document_words)
    [features] = dressed.encoder.encode([(Query("", QUERY, "location"), Document("", DOCUMENT))])
    _, attention = attend(dressed.backend.network, features, strm=False)
    tide = tiny.VOCABULARY.index("tide")
    column = texts(said.document_words).index("tide")
    where = np.flatnonzero(features.ids == tiny.VOCABULARY.index("where"))[-1]
    expected = attention.mean(axis=(0, 1))[where, np.flatnonzero(features.ids == tide)[0]]
    assert said.attention[0].query_to_document[0][column] == pytest.approx(expected, abs=1e-6)


def test_words_that_were_cut_off_are_not_shown_and_are_counted():
    said = explain("sea", "deep " * 90, joint())
    assert said.cut > 0
    assert len(said.document_words) == 90 - said.cut


def test_of_a_long_document_the_best_window_is_explained():
    windows = WindowSettings(length=4, stride=4, pooling="max")
    document = "tide is a deep sea fish in the cape fear river what a tide"
    ranker = joint(windows=windows)
    said = explain(QUERY, document, ranker)
    assert len(said.windows) == 4
    best = said.windows[said.window]
    assert best.score == max(window.score for window in said.windows)
    assert said.score == pytest.approx(best.score, abs=1e-5)
    first = said.document_words[0]
    assert first.start == best.start
    assert document[first.start : first.end] == first.text


LONG = "tide is a deep sea fish in the cape fear river what a tide"
SPLIT = {
    "max": WindowSettings(length=4, stride=4, pooling="max"),
    "mean": WindowSettings(length=4, stride=4, pooling="mean"),
    "top": WindowSettings(length=4, stride=4, pooling="top", weights=(0.6, 0.5)),
    "first": WindowSettings(length=4, stride=4, pooling="first"),
}


@pytest.mark.parametrize("pooling", SPLIT)
def test_each_window_is_scored_once_and_their_scores_are_pooled_as_always(pooling, monkeypatch):
    ranker = joint(windows=SPLIT[pooling])
    expected = ranker.scored([(Query("", QUERY), Document("", LONG))])
    assert ranker.scale  # what fitting it takes is not counted
    logits, rows = TorchBackend.logits, []
    monkeypatch.setattr(
        TorchBackend, "logits", lambda self, some: rows.append(len(some)) or logits(self, some)
    )
    said = explain(QUERY, LONG, ranker)
    assert said.score == pytest.approx(expected.scores[0], abs=1e-5)
    assert said.cut == expected.cut[0]
    assert sum(rows) == 4 + len(said.query_words) + len(said.document_words)
    best = Document("", LONG[said.windows[said.window].start : said.windows[said.window].end])
    [alone] = ranker.score([(Query("", QUERY), best)])
    assert said.windows[said.window].score == pytest.approx(alone, abs=1e-5)


def test_of_a_long_document_nothing_is_scored_for_nobody(monkeypatch):
    ranker = joint(windows=SPLIT["max"])
    monkeypatch.setattr(TorchBackend, "logits", lambda *_: pytest.fail("it scored"))
    with pytest.raises(Stopped):
        explain(QUERY, LONG, ranker, should_stop=lambda: True)


def test_the_tokens_of_a_text_are_listed_once_however_many_words_it_has():
    """The library makes the list anew each time: minutes for a long text, if for every word."""

    class Counted:
        listed = 0

        def __init__(self, encoding):
            self.encoding = encoding

        def __getattr__(self, name):
            Counted.listed += name == "tokens"
            return getattr(self.encoding, name)

    reader, plain = WordReader(tiny.tokenizer(), EncodeSettings()), tiny.tokenizer()
    reader._tokenizer = type(
        "Tokenizer", (), {"encode": lambda _, *text, **how: Counted(plain.encode(*text, **how))}
    )()
    assert [word.pieces for word in reader.read(LONG + " bogus")[-2:]] == [
        ("tide",),
        ("bog", "##us"),
    ]
    assert Counted.listed == 1


def test_where_only_the_first_window_counts_it_is_the_one_explained():
    windows = WindowSettings(length=4, stride=4, pooling="first")
    document = "tide is a deep sea fish in the cape fear river what a tide"
    for text in (document, " ".join(reversed(document.split()))):
        said = explain(QUERY, text, joint(windows=windows))
        assert said.window == 0
        assert said.score == pytest.approx(said.windows[0].score, abs=1e-5)


def test_a_back_end_without_a_network_gives_everything_but_attention():
    ranker = joint()
    network = ranker.backend
    ranker.backend = type("Graph", (), {"logits": staticmethod(network.logits)})()
    said = explain(QUERY, DOCUMENT, ranker)
    assert said.attention == ()
    assert named(said.query_words, "bogue").attribution != 0.0
    with pytest.raises(SecondlookError, match="no layer or head to choose"):
        explain(QUERY, DOCUMENT, ranker, layer=1)


def test_a_family_whose_layers_are_not_known_is_explained_without_attention():
    ranker = joint()
    ranker.backend.network.encoder.config.model_type = "albert"
    said = explain(QUERY, DOCUMENT, ranker)
    assert said.attention == ()
    assert "not shown for models of the family 'albert'" in said.attention_note
    assert named(said.query_words, "bogue").attribution != 0.0
    with pytest.raises(SecondlookError, match="family 'albert'"):
        explain(QUERY, DOCUMENT, ranker, head=1)


def test_a_query_type_is_predicted_where_the_ranker_can():
    labelled = [("where is it", "location"), ("who is it", "person")]
    typed = joint(query_types=True)
    classified = Ranker(
        typed.settings, typed.tokenizer, typed.backend, TypeClassifier.train(labelled)
    )
    assert explain("where is bogue", DOCUMENT, classified).query_words[0].text == "where"


@pytest.mark.parametrize(
    ("query", "document"), [("", ""), ("sea", ""), ("?", "!"), ("ŝ ö", "日本")]
)
def test_odd_texts_are_explained_too(query, document):
    said = explain(query, document, joint())
    json.dumps(said.to_json(), allow_nan=False)
    assert said.to_html().startswith("<!doctype html>")


def test_the_page_escapes_texts_and_asks_for_nothing():
    said = explain("sea <b>fish</b>", '<script>deep</script> "sea" & fish', joint(strm=True))
    page = said.to_html()
    assert "<script" not in page
    assert "<b>fish" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 2
    assert 'aria-label="With STRM, as it scores' in page
