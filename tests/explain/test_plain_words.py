from secondlook.explain.plain_words import PlainWordReader


def test_words_keep_their_vowel_signs_and_apostrophes():
    text = "हिन्दी, it's 10.5"
    found = PlainWordReader().read(text)
    assert [text[word.start : word.end] for word in found] == ["हिन्दी", ",", "it's", "10.5"]
