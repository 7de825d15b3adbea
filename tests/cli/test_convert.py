import os
from threading import Thread

import pytest
from typer.testing import CliRunner

from command_line import in_process
from secondlook import data
from secondlook.cli import app, main
from secondlook.errors import WrongArgument
from secondlook.types import Document, Query


def convert(*arguments):
    done = CliRunner().invoke(app, ["convert", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_each_kind_goes_from_format_to_format(tmp_path):
    (tmp_path / "collection.tsv").write_text("1\tTides follow the moon.\n")
    (tmp_path / "queries.tsv").write_text("7\twhy tides\n")
    (tmp_path / "qrels.txt").write_text("7 0 1 1\n")
    (tmp_path / "run.tsv").write_text("7\t1\t1\n7\t2\t2\n")
    convert("corpus", tmp_path / "collection.tsv", tmp_path / "corpus.jsonl.zst")
    convert("queries", tmp_path / "queries.tsv", tmp_path / "topics.xml")
    convert("qrels", tmp_path / "qrels.txt", tmp_path / "test.tsv")
    convert("run", tmp_path / "run.tsv", tmp_path / "run.trec.gz")
    assert list(data.read_corpus(tmp_path / "corpus.jsonl.zst")) == [
        Document("1", "Tides follow the moon.")
    ]
    assert list(data.read_queries(tmp_path / "topics.xml")) == [Query("7", "why tides")]
    assert (tmp_path / "test.tsv").read_text() == "query-id\tcorpus-id\tscore\n7\t1\t1\n"
    (ranking,) = data.read_run(tmp_path / "run.trec.gz", "trec")
    assert [(hit.doc_id, hit.score) for hit in ranking.hits] == [("1", 1.0), ("2", 0.5)]


@pytest.mark.parametrize(
    ("kind", "name"), [("corpus", "corpus.jsonl"), ("queries", "queries.jsonl"), ("qrels", "t.tsv")]
)
def test_a_folder_does_not_become_the_file_that_is_read_of_it(tmp_path, kind, name):
    folder = tmp_path / "bd"
    (folder / "qrels").mkdir(parents=True)
    row = '{"_id": "1", "text": "tides", "metadata": {"url": "a"}}\n'
    (folder / "corpus.jsonl").write_text(row)
    (folder / "queries.jsonl").write_text(row)
    (folder / "qrels" / "t.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    own = (folder / "qrels" if kind == "qrels" else folder) / name
    before = own.read_text()
    with pytest.raises(WrongArgument, match="is read, too"):
        convert(kind, folder, own)
    assert own.read_text() == before
    convert(kind, folder, folder / "beside.tsv")


def test_a_run_keeps_its_tag(tmp_path):
    (tmp_path / "run.trec").write_text("7 Q0 1 1 2.5 secondlook-fused\n")
    convert("run", tmp_path / "run.trec", tmp_path / "again.trec.gz")
    assert data.run_tag(tmp_path / "again.trec.gz") == "secondlook-fused"
    for without in ("7\t1\t1\n", "7\t1 2 3 4 5\n"):
        (tmp_path / "run").write_text(without)
        convert("run", tmp_path / "run", tmp_path / "new.trec")
        assert data.run_tag(tmp_path / "new.trec") == "secondlook"


def test_a_pipe_is_read_once(tmp_path):
    reading, writing = os.pipe()
    lines = "".join(f"q{number} Q0 d 1 2.5 tag\n" for number in range(20_000))

    def write():
        with os.fdopen(writing, "w") as pipe:
            pipe.write(lines)

    Thread(target=write, daemon=True).start()
    with os.fdopen(reading):
        convert("run", f"/dev/fd/{reading}", tmp_path / "out.trec", "--from", "trec")
    read = [ranking.query_id for ranking in data.read_run(tmp_path / "out.trec")]
    assert read == [f"q{number}" for number in range(20_000)]


def test_formats_can_be_named(tmp_path):
    (tmp_path / "in").write_text("7\twhy tides\n")
    convert("queries", tmp_path / "in", tmp_path / "out", "--from", "msmarco", "--to", "beir")
    assert (tmp_path / "out").read_text() == '{"_id": "7", "text": "why tides", "metadata": {}}\n'


def test_no_progress_is_shown_where_nobody_watches(tmp_path):
    (tmp_path / "queries.tsv").write_text("7\twhy tides\n")
    assert convert("queries", tmp_path / "queries.tsv", tmp_path / "topics.xml").output == ""


def test_progress_is_shown_on_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "queries.tsv").write_text("7\twhy tides\n8\tmoon\n")
    monkeypatch.setattr(
        "sys.argv",
        [
            "secondlook",
            "convert",
            "queries",
            *map(str, (tmp_path / "queries.tsv", tmp_path / "q.jsonl")),
        ],
    )
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "2/?" in shown.err


def test_trouble_is_one_line_and_leaves_no_target(tmp_path, monkeypatch, capsys):
    source = tmp_path / "run.tsv"
    source.write_text("7\t1\t1\n7\t1\t2\n")
    monkeypatch.setattr(
        "sys.argv", ["secondlook", "convert", "run", str(source), str(tmp_path / "run.trec")]
    )
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert capsys.readouterr().err == (
        f"secondlook: {source}:2: document '1' stands twice for query '7'; keep its best\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run.tsv"]


def test_a_file_is_not_converted_into_itself(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    content = '{"_id": "1", "text": "a", "metadata": {"url": "kept"}}\n'
    corpus.write_text(content, encoding="utf-8")
    assert "name another file to write" in in_process(
        "convert", "corpus", corpus, corpus, fails=True
    )
    assert corpus.read_text(encoding="utf-8") == content
