"""The vocabulary of a corpus beside general English, as a program calls it."""

from secondlook.workflows.gap import gap


def test_a_corpus_is_compared(tmp_path, capsys):
    corpus, seen = tmp_path / "corpus.jsonl", []
    row = '{"_id": "%s", "title": "Bogue", "text": "the deep qwertoid"}\n'
    corpus.write_text(row % 1 + row % 2)
    result = gap(str(corpus), documents=1, progress=lambda *step: seen.append(step))
    assert (result.documents, result.words) == (1, 4)
    assert "qwertoid" in result.summary()
    assert result.to_dict()["advice"] == result.advice
    assert gap(corpus).documents == 2
    assert seen[-1] == ("reading", 1, None)
    assert capsys.readouterr() == ("", "")
