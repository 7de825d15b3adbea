"""Languages other than English, by name; and what one name means to both engines."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from secondlook.analyze import ANALYZERS, analyzer
from secondlook.errors import UnknownName


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("german", "Häuser für Katzen", "Das Haus der Katze"),
        ("german", "Strassen", "die Straße"),
        ("french", "avions rapides", "L’avion est rapide"),
        ("spanish", "las casas blancas", "una casa blanca"),
        ("italian", "dell'acqua", "L'acqua"),
        ("dutch", "de katten", "een kat"),
        ("russian", "книги", "книга"),
        ("turkish", "I\u015eIKLAR", "\u0131\u015f\u0131k"),
        ("none", "Crème Brûlée", "cre\u0300me bru\u0302le\u0301e"),
    ],
)
def test_other_forms_of_a_word_are_the_same_term_and_stop_words_none(language, query, text):
    terms = analyzer(language).terms
    assert terms(query)
    assert set(terms(query)) <= set(terms(text))


def test_stop_words_of_a_language_are_no_terms():
    assert analyzer("german").terms("die Katze und der Hund") == ["katz", "hund"]
    assert analyzer("french").terms("le chat qu'il a") == ["chat"]
    assert analyzer("none").terms("die Katze und der Hund") == "die katze und der hund".split()


@pytest.mark.parametrize("name", ANALYZERS.names())
def test_every_analyzer_gives_its_terms_with_their_places(name):
    text = "Die Häuser, l'avion; 3,5 книги. 猫は魚を食べる!"
    one = analyzer(name)
    spans = list(one.spans(text))
    assert [term for _, _, term in spans] == one.terms(text) != []
    assert all(0 <= start < end <= len(text) and term for start, end, term in spans)
    assert one.opensearch
    assert one.terms("") == []


def test_texts_without_spaces_match_by_neighbouring_characters():
    cjk = analyzer("cjk")
    assert cjk.terms("北京大学 GPU 猫") == ["北京", "京大", "大学", "gpu", "猫"]
    assert list(cjk.spans("x北京大")) == [(0, 1, "x"), (1, 3, "北京"), (2, 4, "京大")]
    assert set(cjk.terms("大学")) <= set(cjk.terms("我在北京大学学习"))


def test_width_and_spelling_of_characters_make_no_difference():
    cjk = analyzer("cjk")
    wide_ntt, wide_123 = "\uff2e\uff34\uff34", "\uff11\uff12\uff13"
    assert cjk.terms(f"{wide_ntt}ドコモ {wide_123} ﾃﾚﾋﾞ") == cjk.terms("NTTドコモ 123 テレビ")
    assert cjk.terms("か\u3099くせい") == ["がく", "くせ", "せい"]
    assert cjk.terms(normalize("NFD", "한국어")) == ["한국", "국어"]
    assert list(cjk.spans(wide_ntt)) == [(0, 3, "ntt")]


def test_vowel_signs_belong_to_their_word():
    plain = analyzer("none")
    assert plain.terms("हिन्दी भाषा की किताब") == ["हिन्दी", "भाषा", "की", "किताब"]
    assert plain.terms("বাংলা ভাষা") == ["বাংলা", "ভাষা"]
    assert plain.terms("l'eau 1,000.5 U.S. u\u0308ber") == ["l'eau", "1,000.5", "u.s", "über"]
    assert analyzer("arabic").terms("كِتَابٌ") == analyzer("arabic").terms("كتاب")


def test_an_unknown_language_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="no text analyzer 'germn'; did you mean 'german'"):
        analyzer("germn")


def test_dotted_letters_of_turkish_are_the_same_written_as_one_or_two():
    turkish = analyzer("turkish")
    assert turkish.terms(normalize("NFD", "\u0130stanbul")) == turkish.terms("\u0130stanbul")


def test_the_sign_of_repetition_is_a_character_like_others():
    assert analyzer("cjk").terms("佐々木") == ["佐々", "々木"]
