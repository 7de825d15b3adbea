"""The PyTerrier step. PyTerrier starts no Java for pipelines of tables."""

import numpy as np
import pytest

import tiny
from secondlook import Document, Query, Ranker
from secondlook.errors import MalformedInput

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier")

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # in PyTerrier's own code

TABLE = {
    "qid": ["1", "1", "2"],
    "query": ["tide", "tide", "deep sea"],
    "docno": ["a", "b", "a"],
    "text": ["the tide of the sea", "a river", "the tide of the sea"],
}


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    return Ranker.load(tiny.save(tiny.classifier(), tmp_path_factory.mktemp("pt") / "tiny"))


def test_a_pipeline_ends_with_the_rankers_scores_and_ranks(ranker):
    from secondlook.pyterrier import SecondLook

    pipeline = pt.Transformer.from_df(pd.DataFrame(TABLE)) >> SecondLook(ranker)
    made = pipeline(pd.DataFrame(TABLE)[["qid", "query"]].drop_duplicates())
    pairs = [
        (Query(q, query), Document(d, text))
        for q, query, d, text in zip(*TABLE.values(), strict=True)
    ]
    keys = zip(TABLE["qid"], TABLE["docno"], strict=True)
    expected = dict(zip(keys, ranker.score(pairs), strict=True))
    for row in made.itertuples():
        assert row.score == pytest.approx(expected[row.qid, row.docno], abs=1e-4)
    best = made[made["rank"] == 0].set_index("qid")["docno"]
    assert best["1"] == ("a" if expected["1", "a"] > expected["1", "b"] else "b")


def test_titles_are_read_and_missing_columns_are_told(ranker):
    from secondlook.pyterrier import SecondLook

    table = pd.DataFrame(TABLE).assign(title=["fish", "fish", ""])
    made = SecondLook(ranker).transform(table)
    titled = ranker.score([(Query("1", "tide"), Document("a", TABLE["text"][0], "fish"))])
    np.testing.assert_allclose(made["score"][:1], titled, atol=1e-4)
    with pytest.raises(KeyError, match="text"):
        SecondLook(ranker).transform(table.drop(columns=["text"]))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_title_is_empty_and_a_missing_text_is_told_by_its_document(ranker, missing):
    from secondlook.pyterrier import SecondLook

    table = pd.DataFrame(TABLE)
    untitled = SecondLook(ranker).transform(table)
    made = SecondLook(ranker).transform(table.assign(title=["", missing, missing]))
    np.testing.assert_allclose(made["score"], untitled["score"], atol=1e-6)
    with pytest.raises(MalformedInput, match="document 'b' has no text in column 'text'"):
        SecondLook(ranker).transform(table.assign(text=["the tide", missing, "a river"]))
