import pytest

from secondlook import data
from secondlook.data import IdTriple, TextTriple
from secondlook.errors import MalformedInput, UnknownFormat, Unwritable
from secondlook.types import Document, Hit, Query, Ranking


def test_collection_and_queries(tmp_path):
    (tmp_path / "collection.tsv").write_text("0\tThe first passage.\n1\t Mojibake: Ã©\x85\n")
    (tmp_path / "queries.tsv").write_text("7\t leading space kept\n8\tsecond\n")
    assert list(data.read_corpus(tmp_path / "collection.tsv")) == [
        Document("0", "The first passage."),
        Document("1", " Mojibake: Ã©\x85"),
    ]
    assert list(data.read_queries(tmp_path / "queries.tsv")) == [
        Query("7", " leading space kept"),
        Query("8", "second"),
    ]


def test_documents_have_an_address_and_a_title(tmp_path):
    path = tmp_path / "msmarco-docs.tsv"
    path.write_text("D1\thttps://a.b/c\tA title\tThe body.\nD2\thttp://d.e\t\t\n")
    assert list(data.read_corpus(path)) == [
        Document("D1", "The body.", "A title"),
        Document("D2", "", ""),
    ]
    path.write_text("D1\thttps://a.b/c\tA title\tThe body.\nD2\tno title\n")
    with pytest.raises(MalformedInput, match=r"tsv:2: must be 4 columns .*docid url title body"):
        list(data.read_corpus(path, "msmarco"))
    path.write_text("7\t1\ta query\ta passage of top1000\n")
    with pytest.raises(UnknownFormat):
        data.read_corpus(path)


def test_judgments_are_trecs_with_tabs(tmp_path):
    (tmp_path / "qrels.dev.tsv").write_text("7\t0\t12\t1\n7\t0\t13\t1\n")
    assert data.read_qrels(tmp_path / "qrels.dev.tsv") == {"7": {"12": 1, "13": 1}}
    assert data.read_qrels(tmp_path / "qrels.dev.tsv", "msmarco") == {"7": {"12": 1, "13": 1}}


def test_candidates_come_in_the_order_of_the_file(tmp_path):
    (tmp_path / "top1000.dev").write_text("7\t1\tq\tfirst\n8\t1\tr\tfirst\n7\t2\tq\tsecond\n")
    assert list(data.read_candidates(tmp_path / "top1000.dev")) == [
        (Query("7", "q"), Document("1", "first")),
        (Query("8", "r"), Document("1", "first")),
        (Query("7", "q"), Document("2", "second")),
    ]


def test_triples_in_both_forms(tmp_path):
    (tmp_path / "ids.tsv").write_text("7\t1\t2\n")
    (tmp_path / "texts.tsv").write_text("a query\ta good passage\ta bad one\n")
    assert list(data.read_triples(tmp_path / "ids.tsv")) == [IdTriple("7", "1", "2")]
    assert list(data.read_triples(tmp_path / "texts.tsv")) == [
        TextTriple("a query", "a good passage", "a bad one")
    ]


def test_a_run_of_ranks_scores_by_their_inverse(tmp_path):
    (tmp_path / "run.tsv").write_text("7\t20\t2\n7\t10\t1\n8\t5\t4\n")
    assert list(data.read_run(tmp_path / "run.tsv")) == [
        Ranking("7", (Hit("10", 1.0), Hit("20", 0.5))),
        Ranking("8", (Hit("5", 0.25),)),
    ]


@pytest.mark.parametrize(
    "document",
    [Document("1", "text", "title"), Document("1", "a\tb"), Document("1", "a\nb"),
     Document("1", "a\rb"), Document("1", "a\0b"), Document("", "x"), Document("1\t", "x"),
     Document("\ufeff1", "x")],
    ids=["title", "tab", "line end", "carriage return", "NUL", "no id", "tab in id", "BOM in id"],
)  # fmt: skip
def test_what_a_collection_cannot_hold_is_refused(tmp_path, document):
    with pytest.raises(Unwritable):
        data.write_corpus(tmp_path / "collection.tsv", [Document("0", "fine"), document])
    assert list(tmp_path.iterdir()) == []


def test_a_query_type_is_never_dropped_silently(tmp_path):
    with pytest.raises(Unwritable, match=r"type 'numeric', for which .* no place; write it as"):
        data.write_queries(tmp_path / "queries.tsv", [Query("1", "x", "numeric")])
