import pytest

from secondlook import data
from secondlook.errors import MalformedInput, UnknownFormat, Unwritable
from secondlook.types import Document, Query


@pytest.fixture
def folder(tmp_path):
    """A BEIR folder as the sets are published."""
    (tmp_path / "qrels").mkdir()
    data.write_corpus(
        tmp_path / "corpus.jsonl.gz",
        [Document("d1", "Tides follow the moon.", "Tides"), Document("d2", "", "Only a title")],
    )
    data.write_queries(tmp_path / "queries.jsonl", [Query("q1", "why are there tides")])
    data.write_qrels(tmp_path / "qrels" / "test.tsv", {"q1": {"d1": 1}})
    return tmp_path


def test_a_whole_folder_is_one_source(folder):
    assert [document.title for document in data.read_corpus(folder)] == ["Tides", "Only a title"]
    assert list(data.read_queries(folder)) == [Query("q1", "why are there tides")]
    assert data.read_qrels(folder) == {"q1": {"d1": 1}}
    assert data.read_qrels(folder / "qrels") == {"q1": {"d1": 1}}


def test_of_several_splits_one_must_be_named(folder):
    data.write_qrels(folder / "qrels" / "dev.tsv.gz", {"q1": {"d2": 0}})
    with pytest.raises(UnknownFormat, match=r"qrels/dev.tsv.gz, qrels/test.tsv; name the one"):
        data.read_qrels(folder)
    assert data.read_qrels(folder / "qrels" / "dev.tsv.gz") == {"q1": {"d2": 0}}


def test_a_folder_without_the_file_says_which_it_wants(folder, tmp_path):
    (folder / "queries.jsonl").unlink()
    with pytest.raises(UnknownFormat, match=r"without queries\.jsonl"):
        data.read_queries(folder)


def test_title_and_metadata_may_be_missing_or_null(tmp_path):
    path = tmp_path / "lines"
    path.write_text('{"_id": "1", "text": "x"}\n{"text": "y", "_id": "2", "title": null}\n')
    assert list(data.read_corpus(path)) == [Document("1", "x"), Document("2", "y")]
    path.write_text('{"_id": "1", "text": "x"}\n{"_id": "2", "text": "y", "metadata": null}\n')
    assert list(data.read_queries(path)) == [Query("1", "x"), Query("2", "y")]


def test_the_query_type_comes_along_in_lower_case(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "1", "text": "x", "metadata": {"type": "LOCATION", "wh": "where"}}\n')
    assert list(data.read_queries(path)) == [Query("1", "x", "location")]


def test_an_emoji_spelt_as_a_surrogate_pair_is_one_character(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "1", "text": "\\ud83d\\ude00"}\n')
    assert [document.text for document in data.read_corpus(path)] == ["😀"]


def test_ids_with_tabs_cannot_stand_in_judgments(tmp_path):
    with pytest.raises(Unwritable, match=r"query id 'a\\tb' holds '\\t'"):
        data.write_qrels(tmp_path / "test.tsv", {"a\tb": {"d": 1}})


def test_what_only_the_first_look_goes_by_is_kept(tmp_path):
    documents = [
        Document("d1", "Tides follow the moon.", queries=("why are there tides", "moon")),
        Document("d2", "The sea.", weights={"sea": 31}),
        Document("d3", "Nothing of it matters.", weights={}),
    ]
    data.write_corpus(tmp_path / "corpus.jsonl", documents)
    assert list(data.read_corpus(tmp_path / "corpus.jsonl")) == documents
    with pytest.raises(Unwritable, match="write it as beir"):
        data.write_corpus(tmp_path / "corpus.tsv", documents[1:])


@pytest.mark.parametrize(
    "more",
    [
        '"queries": "moon"',
        '"queries": [1]',
        '"weights": {"sea": 0}',
        '"weights": ["sea"]',
        '"weights": {"sea": 600000, "moon": 600000}',
        '"weights": {"sea": 100000000000000000000}',
    ],
)
def test_odd_queries_and_weights_are_refused(tmp_path, more):
    (tmp_path / "corpus.jsonl").write_text(f'{{"_id": "d", "text": "", {more}}}\n')
    with pytest.raises(MalformedInput, match=r"corpus\.jsonl:1"):
        list(data.read_corpus(tmp_path / "corpus.jsonl"))
