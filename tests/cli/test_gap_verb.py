import json

import tiny
from command_line import in_process as said_by


def test_a_corpus_is_set_beside_general_english(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "1", "title": "Bogue", "text": "the deep qwertoid"}\n')
    ranker = tiny.save(tiny.classifier(), tmp_path / "ranker")
    shown = said_by("gap", corpus, "--ranker", ranker)
    assert "qwertoid" in shown
    assert "the tokenizer splits 50.0% of running words" in " ".join(shown.split())
    said = json.loads(said_by("gap", corpus, "--json"))
    assert said["words"] == 4
    assert said["split"] is None
    assert said["advice"].startswith("75% of the most frequent words")
