"""Tuning on an index that there was before: it needs queries and judgments, and no corpus."""

import pytest

import secondlook as sl
from invented import write_deep_sea
from secondlook.errors import SecondlookError
from secondlook.train.budget import Clock
from secondlook.workflows.tune_stages import Tuning


@pytest.fixture
def judged(tmp_path):
    """Queries and judgments alone; the corpus is in an index elsewhere."""
    corpus, queries, qrels = write_deep_sea(tmp_path)
    sl.build_index(corpus, tmp_path / "index")
    folder = tmp_path / "judged"
    (folder / "qrels").mkdir(parents=True)
    queries.rename(folder / "queries.jsonl")
    qrels.rename(folder / "qrels" / "train.tsv")
    return folder


def tuning(judged, index):
    output = judged.parent / "tuned"
    return Tuning(judged, output, "base", 10, None, None, None, Clock(60), given_index=index)


def test_it_needs_no_corpus_and_resumes_on_the_same_index_only(judged):
    index = judged.parent / "index"
    given = tuning(judged, index)
    given.claim()
    names = [name for name, _ in given.stages]
    assert names[:2] == ["split the queries", "open the index"]
    assert "retrieve candidates (the first stage)" in names
    assert given.index == index
    with pytest.raises(SecondlookError, match=r"has no corpus\.jsonl"):
        tuning(judged, None).claim()
    given.run("bm25", "train").write_bytes(b"")  # made with this index
    given.claim()
    other = sl.build_index(judged.parent / "corpus.jsonl", judged.parent / "other", k1=1.2)
    assert other.card.fingerprint == sl.open_index(index).card.fingerprint
    tuning(judged, judged.parent / "other").claim()  # the same documents
    (judged.parent / "less.jsonl").write_text('{"_id": "d0", "text": "the tide"}\n')
    sl.build_index(judged.parent / "less.jsonl", judged.parent / "less")
    with pytest.raises(SecondlookError, match="was started with index sha256"):
        tuning(judged, judged.parent / "less").claim()
