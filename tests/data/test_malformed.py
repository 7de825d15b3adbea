"""A corpus of broken files: each gives an error that names the file, the line and the trouble."""

import gzip

import pytest
import zstandard

from secondlook import data
from secondlook.errors import MalformedInput, UnknownFormat
from secondlook.types import Document

RUN = b"1 Q0 a 1 2.5 tag\n1 Q0 b 2 1.5 tag\n"
LONG_RUN = b"".join(b"%d Q0 d%d 1 0.%d tag\n" % (q, q * q, q) for q in range(1, 20_000))
HEADER = b"query-id\tcorpus-id\tscore\n"
DOC = b'{"_id": "1", "title": "t", "text": "x"}\n'
QUERY = b'{"_id": "1", "text": "x", "metadata": {"type": "NUMERIC"}}\n'
TOP = b"<top>\n<num> Number: 1\n<title> first\n</top>\n"

# name: (kind, format, content, line of the error, words of it)
BROKEN = {
    # every line format: the bytes
    "truncated gz": ("run", "trec", gzip.compress(LONG_RUN)[:-40_000], ..., "cut short"),
    "truncated zst": (
        "run", "trec", zstandard.ZstdCompressor().compress(LONG_RUN)[:-40_000], ..., "cut short",
    ),
    "gz without its last byte": ("run", "trec", gzip.compress(RUN)[:-1], ..., "cut short"),
    "zst without its last byte": (
        "run", "trec", zstandard.ZstdCompressor(write_checksum=True).compress(RUN)[:-1],
        ..., "cut short",
    ),
    "gz of noise": ("run", "trec", b"\x1f\x8bnot gzip at all", None, "damaged"),
    "zst of noise": ("run", "trec", b"\x28\xb5\x2f\xfd" + b"\xff" * 40, None, "damaged"),
    "invalid UTF-8": ("run", "trec", RUN + b"1 Q0 \xff 3 1 tag\n", 3, "is not UTF-8"),
    "Latin-1": ("queries", "msmarco", "1\tcafé\n".encode("latin-1"), 1, "is not UTF-8"),
    "another compression": ("corpus", "beir", b"\xfd7zXZ\x00\x00\x04", 1, "compressed otherwise"),
    "NUL": ("corpus", "msmarco", b"1\tfine\n2\ta\x00b\n", 2, r"'\x00'"),
    "NUL in JSON": ("corpus", "beir", DOC + b'{"_id": "2", "text": "\x00"}\n', 2, r"'\x00'"),
    "carriage return inside": ("corpus", "msmarco", b"1\ta\rb\n", 1, r"'\r'"),
    "control character in a run": ("run", "trec", RUN + b"1 Q0 c\x1cd 3 1 t\n", 3, r"'\x1c'"),
    "control character in qrels": ("qrels", "trec", b"1 0 a 1\n1 0 \x07b 1\n", 2, r"'\x07'"),
    "control character in JSON": ("corpus", "beir", b'{"_id": "1", "text": "\x07"}', 1, "not JSON"),
    "blank line amid": ("corpus", "msmarco", b"1\ta\n\n\n2\tb\n", 2, "blank line"),
    "empty corpus": ("corpus", "beir", b"", None, "is empty"),
    "empty queries": ("queries", "msmarco", b"", None, "is empty"),
    "empty qrels": ("qrels", "trec", b"\n\n", None, "is empty"),
    "empty BEIR qrels": ("qrels", "beir", b"", None, "is empty"),
    "empty triples": ("triples", "msmarco-ids", gzip.compress(b""), None, "is empty"),
    "empty candidates": ("candidates", "msmarco", b"\xef\xbb\xbf", None, "is empty"),
    # JSON lines
    "no JSON": ("corpus", "beir", DOC + b"{_id: 2}\n", 2, "is not JSON"),
    "JSON cut short": ("corpus", "beir", DOC + DOC[:20], 2, "is not JSON"),
    "JSON too deep": ("corpus", "beir", b"[" * 200_000, 1, "is not JSON"),
    "a number too long": ("corpus", "beir", b'{"_id": %s}' % (b"1" * 5000), 1, "is not JSON"),
    "a JSON array": ("corpus", "beir", b'["1", "x"]\n', 1, "not a JSON object"),
    "no id": ("corpus", "beir", b'{"text": "x"}\n', 1, 'has no "_id"'),
    "no text": ("corpus", "beir", b'{"_id": "1"}\n', 1, 'has no "text"'),
    "id is a number": ("corpus", "beir", b'{"_id": 1, "text": "x"}\n', 1, "must be a text"),
    "id is empty": ("corpus", "beir", b'{"_id": "", "text": "x"}\n', 1, "that is not empty"),
    "text is null": ("corpus", "beir", b'{"_id": "1", "text": null}\n', 1, "but is null"),
    "title is a list": (
        "corpus", "beir", b'{"_id": "1", "text": "x", "title": ["t"]}\n', 1, '"title" must be',
    ),
    "half a character": ("corpus", "beir", b'{"_id": "1", "text": "\\ud83d!"}\n', 1, "surrogate"),
    "metadata is a text": (
        "queries", "beir", b'{"_id": "1", "text": "x", "metadata": "NUMERIC"}\n', 1, "an object",
    ),
    "type is a number": (
        "queries", "beir", b'{"_id": "1", "text": "x", "metadata": {"type": 3}}\n', 1, "type",
    ),
    "a query id twice": ("queries", "beir", QUERY + QUERY, 2, "stands above already"),
    # columns
    "collection of one column": ("corpus", "msmarco", b"1\ta\n2 b\n", 2, "2 columns"),
    "collection of three columns": ("corpus", "msmarco", b"1\ta\tb\n", 1, "2 columns"),
    "collection without an id": ("corpus", "msmarco", b"\ta\n", 1, "2 columns"),
    "query id twice": ("queries", "msmarco", b"1\ta\n2\tb\n1\tc\n", 3, "stands above already"),
    "header missing": ("qrels", "beir", b"1\ta\t1\n", 1, "--format trec"),
    "header only": ("qrels", "beir", HEADER, None, "no judgment"),
    "BEIR qrels of two columns": ("qrels", "beir", HEADER + b"1\ta\n", 2, "3 columns"),
    "BEIR qrels with spaces": ("qrels", "beir", HEADER + b"1 a 1\n", 2, "3 columns"),
    "BEIR grade is no number": ("qrels", "beir", HEADER + b"1\ta\t1.5\n", 2, "'1.5'"),
    "qrels of three columns": ("qrels", "trec", b"1 0 a 1\n1 0 a\n", 2, "4 columns"),
    "qrels of five columns": ("qrels", "trec", b"1 0 a b 1\n", 1, "4 columns"),
    "grade is no number": ("qrels", "trec", b"1 0 a x\n", 1, "'x'"),
    "grade as only Python reads it": ("qrels", "trec", b"1 0 a 1_0\n", 1, "'1_0'"),
    "grades that contradict": ("qrels", "trec", b"1 0 a 1\n1 0 b 1\n1 0 a 0\n", 3, "but 1 above"),
    "run of five columns": ("run", "trec", RUN + b"1 Q0 c 3 1.0\n", 3, "6 columns"),
    "run of seven columns": ("run", "trec", b"1 Q0 c 3 1.0 my tag\n", 1, "6 columns"),
    "score is no number": ("run", "trec", RUN + b"1 Q0 c 3 high tag\n", 3, "'high'"),
    "score as only Python reads it": ("run", "trec", b"1 Q0 c 3 1_0 tag\n", 1, "'1_0'"),
    "score in other digits": ("run", "trec", "1 Q0 c 3 \u0661 t\n".encode(), 1, "a number"),
    "NaN score": ("run", "trec", RUN + b"1 Q0 c 3 nan tag\n", 3, "nan"),
    "infinite score": ("run", "trec", RUN + b"1 Q0 c 3 -inf tag\n", 3, "-inf"),
    "score beyond single precision": ("run", "trec", b"1 Q0 c 3 1e39 t\n", 1, "single precision"),
    "a document twice": ("run", "trec", RUN + b"2 Q0 a 1 1 t\n2 Q0 b 2 0 t\n2 Q0 a 3 0 t\n", 5,
                         "document 'a' stands twice for query '2'"),
    "a query in two places": ("run", "trec", RUN + b"2 Q0 a 1 1 t\n1 Q0 c 3 1 t\n", 4, "sort "),
    "MS MARCO run of two columns": ("run", "msmarco", b"1\ta\n", 1, "3 columns"),
    "rank is no number": ("run", "msmarco", b"1\ta\tfirst\n", 1, "'first'"),
    "rank zero": ("run", "msmarco", b"1\ta\t0\n", 1, "count from 1"),
    "top1000 of three columns": ("candidates", "msmarco", b"1\ta\tq\n", 1, "4 columns"),
    "triple of two ids": ("triples", "msmarco-ids", b"1\t2\t3\n1\t2\n", 2, "3 columns"),
    "triple with an empty id": ("triples", "msmarco-ids", b"1\t\t3\n", 1, "3 columns"),
    "triple of four texts": ("triples", "msmarco-texts", b"q\ta\tb\tc\n", 1, "3 columns"),
    # topics
    "topic without an end": ("queries", "trec", TOP + TOP[:-8], 5, "no </top>"),
    "topic without a number": ("queries", "trec", b"<top>\n<title> a\n</top>\n", 1, "no number"),
    "topic without a title": ("queries", "trec", b"<top>\n<num> 7\n</top>\n", 1, "topic '7'"),
    "text between topics": ("queries", "trec", TOP + b"stray\n" + TOP, 5, "outside of <top>"),
    "topic twice": ("queries", "trec", TOP + TOP, 5, "stands above already"),
    "XML cut short": ("queries", "trec", b'<topics>\n<topic number="1">\n', 2, "well-formed"),
    "XML without topics": ("queries", "trec", b"<html>\n</html>\n", None, "no <topic>"),
    "XML topic without text": (
        "queries", "trec", b'<t>\n<topic number="1"><gene>a</gene></topic>\n</t>', 2, "neither",
    ),
    "nothing but blanks": ("queries", "trec", b"\n \n", None, "no topic"),
    # TREC CAR
    "outline path with a space": ("queries", "car", b"enwiki:A\nenwiki:B c\n", 2, "a path like"),
    "outline path with a gap": ("queries", "car", b"enwiki:A//B\n", 1, "a path like"),
    "outline path not in UTF-8": ("queries", "car", b"enwiki:A%FF\n", 1, "spell UTF-8"),
    "outline path twice": ("queries", "car", b"enwiki:A\nenwiki:A\n", 2, "stands above already"),
}  # fmt: skip


def consume(kind, path, format_):
    found = getattr(data, f"read_{kind}")(path, format_)
    return found if isinstance(found, dict) else list(found)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_file_and_line(tmp_path, name):
    kind, format_, content, line, trouble = BROKEN[name]
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(MalformedInput) as caught:
        consume(kind, path, format_)
    assert caught.value.path == path
    if line is not ...:
        assert caught.value.line == line
    assert str(path) in str(caught.value)
    assert trouble in str(caught.value)


@pytest.mark.parametrize("name", BROKEN)
def test_nor_does_auto_let_it_pass(tmp_path, name):
    kind, _, content, _, _ = BROKEN[name]
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises((MalformedInput, UnknownFormat)) as caught:
        consume(kind, path, "auto")
    assert str(path) in str(caught.value)


def test_a_truncated_file_says_how_far_it_could_be_read(tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(LONG_RUN)[:-40_000])
    with pytest.raises(MalformedInput) as caught:
        list(data.read_run(path, "trec"))
    assert 1 < caught.value.line < 20_000


def test_a_file_that_is_not_there_and_a_folder_in_its_place_are_refused(tmp_path):
    with pytest.raises(MalformedInput, match="No such file"):
        data.read_run(tmp_path / "nothing")
    with pytest.raises(MalformedInput, match="Is a directory"):
        list(data.read_run(tmp_path, "trec"))


def test_odd_files_that_are_read_all_the_same(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbf" + RUN.replace(b"\n", b"\r\n"))
    (ranking,) = data.read_run(path)
    assert [(hit.doc_id, hit.score) for hit in ranking.hits] == [("a", 2.5), ("b", 1.5)]
    path.write_bytes(b"\xef\xbb\xbf" + HEADER.replace(b"\n", b"\r\n") + b"1\ta\t2\r\n\r\n")
    assert data.read_qrels(path) == {"1": {"a": 2}}
    path.write_bytes(b"\xef\xbb\xbf" + QUERY.replace(b"\n", b"\r\n"))
    (query,) = data.read_queries(path)
    assert (query.id, query.type) == ("1", "numeric")
    path.write_bytes(b"1 0 a 1\n1 0 b 0\n1 0 a 1\n")
    assert data.read_qrels(path) == {"1": {"a": 1, "b": 0}}
    path.write_bytes(b"")
    assert list(data.read_run(path)) == []


def test_texts_of_ten_megabytes_are_read(tmp_path):
    long = "word " * 2_000_000
    path = tmp_path / "corpus.jsonl.zst"
    data.write_corpus(path, [Document("1", long)])
    assert list(data.read_corpus(path)) == [Document("1", long)]
